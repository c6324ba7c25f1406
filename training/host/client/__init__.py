"""The trusted side of the action host: starts host processes, sends requests, checks replies, recovers from deaths.

Runs in the worker. Never evaluates generated code except in mode `trusted`.
"""
