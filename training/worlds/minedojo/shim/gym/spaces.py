"""Spaces as the MineDojo client subclasses them: shape, dtype, membership, a seeded random stream."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


class Space:
    """A set of values with `shape` and `dtype`; `np_random` is a numpy RandomState made on first use."""

    def __init__(self, shape: Any = None, dtype: Any = None, seed: int | None = None) -> None:
        self._shape = None if shape is None else tuple(int(n) for n in shape)
        self.dtype: Any = None if dtype is None else np.dtype(dtype)
        self._np_random: np.random.RandomState | None = None
        if seed is not None:
            self.seed(seed)

    @property
    def shape(self) -> Any:
        return self._shape

    @property
    def np_random(self) -> np.random.RandomState:
        if self._np_random is None:
            self._np_random = np.random.RandomState()
        return self._np_random

    def seed(self, seed: int | None = None) -> list[int | None]:
        self._np_random = np.random.RandomState(seed)
        return [seed]

    def contains(self, x: Any) -> bool:
        raise TypeError(f"{type(self).__name__} does not define membership")

    def __contains__(self, x: Any) -> bool:
        return self.contains(x)


class Box(Space):
    """Arrays between `low` and `high` (bounds included), each a scalar or an array of `shape`."""

    def __init__(
        self, low: Any, high: Any, shape: Any = None, dtype: Any = np.float32, seed: int | None = None
    ) -> None:
        if shape is None:
            shape = np.shape(low) or np.shape(high)
        super().__init__(shape, dtype, seed)
        full = tuple(self._shape or ())
        self.bounded_below = np.broadcast_to(np.asarray(low, dtype=float) > -np.inf, full)
        self.bounded_above = np.broadcast_to(np.asarray(high, dtype=float) < np.inf, full)
        self.low = self._bound(low, full)
        self.high = self._bound(high, full)

    def _bound(self, value: Any, shape: tuple[int, ...]) -> Any:
        array = np.broadcast_to(np.asarray(value, dtype=float), shape)
        if self.dtype.kind in "iu":
            limits = np.iinfo(self.dtype)
            array = np.clip(array, float(limits.min), float(limits.max) // 2)
        return array.astype(self.dtype)

    def contains(self, x: Any) -> bool:
        x = np.asarray(x, dtype=self.dtype)
        return bool(x.shape == self.shape and np.all(x >= self.low) and np.all(x <= self.high))

    def sample(self) -> Any:
        """Uniform where bounded on both sides, else a normal deviate."""
        low, high = self.low.astype(float), self.high.astype(float)
        bounded = self.bounded_below & self.bounded_above
        if self.dtype.kind in "iu":
            high = high + 1
        uniform = self.np_random.uniform(np.where(bounded, low, 0), np.where(bounded, high, 1), self.shape)
        drawn = np.where(bounded, uniform, self.np_random.normal(size=self.shape))
        if self.dtype.kind in "iu":
            drawn = np.floor(drawn)
        return drawn.astype(self.dtype)


class Discrete(Space):
    """The integers 0 to n - 1."""

    def __init__(self, n: int, seed: int | None = None) -> None:
        self.n = int(n)
        super().__init__((), np.int64, seed)

    def contains(self, x: Any) -> bool:
        scalar = np.asarray(x)
        return scalar.shape == () and scalar.dtype.kind in "iu" and 0 <= int(scalar) < self.n


class MultiDiscrete(Space):
    """Vectors whose i-th entry is an integer from 0 to nvec[i] - 1."""

    def __init__(self, nvec: Any, dtype: Any = np.int64, seed: int | None = None) -> None:
        self.nvec = np.array(nvec, dtype=dtype)
        super().__init__(self.nvec.shape, dtype, seed)

    def contains(self, x: Any) -> bool:
        x = np.asarray(x)
        return bool(x.shape == self.shape and x.dtype.kind in "iu" and np.all(x >= 0) and np.all(x < self.nvec))


class Tuple(Space):
    def __init__(self, spaces: Any, seed: int | None = None) -> None:
        self.spaces = tuple(spaces)
        super().__init__(None, None, seed)

    def contains(self, x: Any) -> bool:
        return (
            isinstance(x, (tuple, list))
            and len(x) == len(self.spaces)
            and all(space.contains(part) for space, part in zip(self.spaces, x))  # noqa: B905 - 3.9
        )


class Dict(Space):
    """Named spaces, sorted by name like gym's."""

    def __init__(self, spaces: Any = None, seed: int | None = None, **named: Any) -> None:
        pairs = dict(spaces if spaces is not None else {}, **named)
        ordered = spaces if isinstance(spaces, OrderedDict) else sorted(pairs.items())
        self.spaces: OrderedDict[str, Any] = OrderedDict(ordered)
        super().__init__(None, None, seed)

    def contains(self, x: Any) -> bool:
        return (
            isinstance(x, Mapping)
            and len(x) == len(self.spaces)
            and all(name in x and space.contains(x[name]) for name, space in self.spaces.items())
        )

    def keys(self) -> Any:
        return self.spaces.keys()

    def __getitem__(self, name: str) -> Any:
        return self.spaces[name]

    def __setitem__(self, name: str, space: Any) -> None:
        self.spaces[name] = space

    def __iter__(self) -> Iterator[str]:
        return iter(self.spaces)

    def __len__(self) -> int:
        return len(self.spaces)
