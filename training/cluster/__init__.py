"""Sessions on the nodes of a Ray cluster, of which only actors and their placement are used (Ray Core).

Ray comes with the extra `rlgpt[ray]`; nothing but this package and what plays games on other machines imports it.
"""
