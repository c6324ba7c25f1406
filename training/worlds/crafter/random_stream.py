"""The two kinds of draw that Crafter's rules make from numpy's `RandomState`, on the first 625 numbers of `state`.

The Mersenne Twister MT19937 of Matsumoto and Nishimura (1998); doubles and bounded integers are made from
its words as numpy's legacy generator makes them, so a stream copied from a `RandomState` continues with the same draws.
"""

from __future__ import annotations

from rlgpt.training.worlds.crafter.compiled import compiled
from rlgpt.training.worlds.crafter.layout import RANDOM_AT, RANDOM_SIZE, Array


@compiled
def seed_stream(state: Array, seed: int) -> None:
    """`RandomState(seed)` for 0 <= seed < 2**32."""
    word = seed
    for i in range(RANDOM_SIZE):
        state[i] = word
        word = (1812433253 * (word ^ (word >> 30)) + i + 1) & 0xFFFFFFFF
    state[RANDOM_AT] = RANDOM_SIZE


@compiled
def refill(state: Array) -> None:
    for i in range(RANDOM_SIZE):
        y = (state[i] & 0x80000000) | (state[(i + 1) % RANDOM_SIZE] & 0x7FFFFFFF)
        word = state[(i + 397) % RANDOM_SIZE] ^ (y >> 1)
        if y & 1:
            word ^= 0x9908B0DF
        state[i] = word
    state[RANDOM_AT] = 0


@compiled
def word32(state: Array) -> int:
    """The next 32 bits, as a non-negative 64-bit integer."""
    if state[RANDOM_AT] >= RANDOM_SIZE:
        refill(state)
    y = state[state[RANDOM_AT]]
    state[RANDOM_AT] += 1
    y ^= y >> 11
    y ^= (y << 7) & 0x9D2C5680
    y ^= (y << 15) & 0xEFC60000
    return int(y ^ (y >> 18))


@compiled
def uniform(state: Array) -> float:
    """`RandomState.uniform()`: 53 bits in [0, 1)."""
    high = word32(state) >> 5
    low = word32(state) >> 6
    return (high * 67108864.0 + low) / 9007199254740992.0


@compiled
def below(state: Array, n: int) -> int:
    """`RandomState.randint(0, n)` for 1 <= n <= 2**31: masked rejection, no draw when n is 1."""
    largest = n - 1
    if largest == 0:
        return 0
    mask = largest
    mask |= mask >> 1
    mask |= mask >> 2
    mask |= mask >> 4
    mask |= mask >> 8
    mask |= mask >> 16
    draw = word32(state) & mask
    while draw > largest:
        draw = word32(state) & mask
    return draw
