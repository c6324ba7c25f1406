"""Crafter 1.8.3 as a world: exact rules on flat arrays, symbolic senses, tasks, script book.

`host_side`, `library`, `names` and `frame` are imported in the action host and by readers of frames:
standard library only. Nothing is imported here, so that they stay light.
"""
