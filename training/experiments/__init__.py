"""The paper's experiments as sets of ordinary sessions: which arms there are, what they cost, running them.

Nothing here learns, plays or measures: an arm is a session whose settings say how much of the method is in force
(`store/settings.py`, MethodSettings), its numbers are that session's rows, and `rlgpt compare` reads them.
"""
