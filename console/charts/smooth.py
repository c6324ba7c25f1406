"""Smoothing of a curve: exponential moving average without the bias of its start."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_BLOCK = 128


def smoothed(y: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """Debiased exponential average with `weight` in [0, 1) on the past; NaN stays NaN and is skipped.

    Computed by blocks in closed form: y_t = (1 - w) sum_k w^k x_{t-k} / (1 - w^{t+1}).
    """
    if weight <= 0 or len(y) < 2:
        return y
    good = np.isfinite(y)
    average = _average(y[good], weight)
    few = min(len(average), int(-40 / np.log(weight)) + 1)  # beyond, the bias is less than a rounding error
    average[:few] /= 1 - weight ** np.arange(1, few + 1)
    out = np.full_like(y, np.nan)
    out[good] = average
    return out


def _average(x: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    kernel, powers = _kernel(weight)
    count = -(-len(x) // _BLOCK)
    blocks = np.zeros((count, _BLOCK))
    blocks.ravel()[: len(x)] = x
    blocks = blocks @ kernel.T
    carry = 0.0
    carried = np.empty(count)
    for index, last in enumerate(blocks[:, -1].tolist()):
        carried[index] = carry
        carry = last + powers[-1] * carry
    return (blocks + carried[:, None] * powers).ravel()[: len(x)]


@lru_cache(maxsize=32)
def _kernel(weight: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(what each value of a block gets from the block's own, what it gets from the value before the block)."""
    lags = np.arange(_BLOCK)
    kernel: NDArray[np.float64] = np.tril(weight ** np.clip(lags[:, None] - lags[None, :], 0, None)) * (1 - weight)
    powers: NDArray[np.float64] = weight ** np.arange(1.0, _BLOCK + 1)
    return kernel, powers
