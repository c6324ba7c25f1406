"""Smoothing of a curve: exponential moving average without the bias of its start."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def smoothed(y: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """Debiased exponential average with `weight` in [0, 1) on the past; NaN stays NaN and is skipped.

    Computed by blocks in closed form: y_t = (1 - w) sum_k w^k x_{t-k} / (1 - w^{t+1}).
    """
    if weight <= 0 or len(y) < 2:
        return y
    good = np.isfinite(y)
    x = y[good]
    out = np.full_like(y, np.nan)
    out[good] = _average(x, weight) / (1 - weight ** np.arange(1, len(x) + 1))
    return out


def _average(x: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    block = max(8, min(len(x), int(-60 / np.log10(weight)) if weight < 1 else 8, 512))
    powers = weight ** np.arange(1, block + 1)
    lags = np.arange(block)
    kernel = np.tril(weight ** np.clip(lags[:, None] - lags[None, :], 0, None)) * (1 - weight)
    out = np.empty_like(x)
    carry = 0.0
    for start in range(0, len(x), block):
        part = x[start : start + block]
        n = len(part)
        out[start : start + n] = kernel[:n, :n] @ part + powers[:n] * carry
        carry = float(out[start + n - 1])
    return out
