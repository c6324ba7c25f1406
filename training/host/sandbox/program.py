"""An admitted source, compiled and ready to be called."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

from rlgpt.training.host.sandbox.admission import Checked, Vocabulary, check
from rlgpt.training.host.sandbox.instrument import compile_source
from rlgpt.training.host.sandbox.runtime import (
    BUILTINS,
    LIBRARY_TICKS,
    Meter,
    frozen,
    remainder,
    reraise_exhaustion,
    text,
)
from rlgpt.training.ordered_sets import Set, window


class Language:
    """One world's vocabulary, and its library, whose calls are charged to one meter."""

    def __init__(self, world: ModuleType, meter: Meter) -> None:
        costs: Mapping[str, int] = getattr(world, "COSTS", {})  # by name: the sandbox does not import the protocol
        self.meter = meter
        self.library = {
            name: meter.charged(value, costs.get(name, LIBRARY_TICKS)) if callable(value) else value
            for name, value in world.LIBRARY.items()
        }
        texts = getattr(world, "TEXTS", {})
        self.vocabulary = Vocabulary(frozenset(self.library), _public_attributes(world), texts, _methods(world))

    def check(self, kind: str, source: str) -> Checked:
        return check(kind, source, self.vocabulary)

    def namespace(self) -> dict[str, Any]:
        return {
            "__builtins__": BUILTINS,
            "__name__": "action",
            "_tick": self.meter.tick,
            "_mod": remainder,
            "_text": text,
            "_set": Set,
            "_window": window,
            "_caught": reraise_exhaustion,
            **self.library,
        }


def _public_attributes(world: ModuleType) -> frozenset[str]:
    """`ATTRIBUTES` of the world, or the public attributes of every class its module and library name."""
    names_by_world = getattr(world, "ATTRIBUTES", None)
    if names_by_world is not None:
        return frozenset(names_by_world)
    names: set[str] = set()
    for each in _classes(world):
        names.update(getattr(each, "__annotations__", ()))
        names.update(name for name in vars(each) if not name.startswith("_"))
    return frozenset(name for name in names if not name.startswith("_"))


def _methods(world: ModuleType) -> frozenset[str]:
    """The names that are functions in every class that has them."""
    functions: set[str] = set()
    values: set[str] = set()
    for each in _classes(world):
        values.update(getattr(each, "__annotations__", ()))
        for name, value in vars(each).items():
            (functions if isinstance(value, FunctionType) else values).add(name)
    return frozenset(functions - values)


def _classes(world: ModuleType) -> list[type]:
    """Those that the world's module and its library name."""
    classes = [value for value in vars(world).values() if isinstance(value, type)]
    return [each for each in classes if each.__module__ not in ("builtins", "typing", "collections.abc")]


def _seal(value: Any, namespace: dict[str, Any]) -> Any:
    """A value that a source has put into its namespace, made immutable: a function of its own, whose defaults are
    frozen, or a constant. Raises TypeError."""
    if not isinstance(value, FunctionType) or value.__globals__ is not namespace:
        return frozen(value)
    if value.__closure__ or value.__dict__:
        raise TypeError("a function of the top level keeps nothing")
    value.__defaults__ = frozen(value.__defaults__)
    value.__kwdefaults__ = dict(frozen(value.__kwdefaults__ or {}))
    return value


class Program:
    """One compiled source. Its functions share one namespace, in which every object that they can reach is
    immutable."""

    __slots__ = ("_code", "_language", "checked", "entry", "may_start", "namespace")

    def __init__(self, checked: Checked, language: Language, code: CodeType | None = None) -> None:
        self.checked = checked
        self._language = language
        self._code = code = code or compile_source(checked)
        self.namespace = language.namespace()
        self.may_start: Callable[..., Any] | None = None
        if checked.kind == "done_when":
            self.entry: Callable[..., Any] = eval(code, self.namespace)
            return
        initial_namespace = dict(self.namespace)
        language.meter.refill()
        exec(code, self.namespace)
        for name, value in self.namespace.items():
            if name not in initial_namespace or initial_namespace[name] is not value:
                self.namespace[name] = _seal(value, self.namespace)
        self.entry = self.namespace[checked.name]
        if checked.has_available:
            self.may_start = self.namespace["available"]

    def reload(self) -> Program:
        """A second program of the same source, with function and constant objects of its own."""
        return Program(self.checked, self._language, self._code)

    def open(self, view: object, arguments: Mapping[str, object]) -> Generator[object, object, object]:
        generator: Generator[object, object, object] = self.entry(view, **arguments)
        return generator

    def available(self, view: object, arguments: Mapping[str, object]) -> bool:
        """Raises TypeError unless the source returns True or False."""
        if self.may_start is None:
            return True
        code = self.may_start.__code__
        names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        answer = self.may_start(view, **{name: arguments[name] for name in names})
        if answer is True or answer is False:
            return answer
        raise TypeError("`available` must return True or False")

    def reward(self, before: object, view: object) -> float:
        """Clipped to [-1, 1]; raises TypeError or ValueError for anything but a finite number."""
        value = self.entry(before, view)
        if type(value) not in (int, float, bool):
            raise TypeError("`reward` must return a number")
        if not math.isfinite(value):
            raise ValueError("`reward` must return a finite number")
        return max(-1.0, min(1.0, float(value)))

    def holds(self, start: object, view: object) -> bool:
        return bool(self.entry(start, view))
