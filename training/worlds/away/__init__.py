"""Slow worlds with only the game away: policy, action host, rewards and rows stay with the worker, and each env step
is one message to a game in another process.

The game's side performs *moves* (reset, step, restore, reseed) and answers *questions* about where its env stands then
(`player.py`). The worker's env (`env.py`) asks with each step what it will be asked itself. A lost game is started
again, and the episode's moves are made again.
"""
