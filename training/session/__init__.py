"""One running session: its runtime, command inbox, recorded LLM calls, replayed commands and budgets.

What a step does with them is in `steps/`.
"""
