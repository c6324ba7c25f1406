"""The allow-list of syntax for generated code, and for everything else the sentence that says what to write.

Names a world adds come from its host-side module (`LIBRARY`, and the public attributes of its classes).
"""

from __future__ import annotations

import ast

SOURCE_CAP = 16_384
LINES_CAP = 600
NODES_CAP = 4_000
DEPTH_CAP = 40
LITERAL_CAP = 6
ARGUMENTS_CAP = 4
INTEGER_CAP = 1 << 62
TEXT_CAP = 1_000
NAME_CAP = 80
ARGUMENT_TEXT_CAP = 200

EXPRESSIONS: tuple[type[ast.AST], ...] = (
    ast.BoolOp, ast.NamedExpr, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Dict, ast.Set,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Compare, ast.Call, ast.JoinedStr,
    ast.FormattedValue, ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List,
    ast.Tuple, ast.Slice, ast.comprehension, ast.arguments, ast.arg, ast.keyword, ast.expr_context,
    ast.boolop, ast.unaryop, ast.cmpop, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.FloorDiv,
    ast.BitOr, ast.BitXor, ast.BitAnd, ast.RShift,
)  # fmt: skip
STATEMENTS: tuple[type[ast.AST], ...] = (
    ast.FunctionDef, ast.Return, ast.Delete, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While,
    ast.If, ast.Raise, ast.Try, ast.ExceptHandler, ast.Assert, ast.Nonlocal, ast.Expr, ast.Pass,
    ast.Break, ast.Continue, ast.Yield, ast.YieldFrom,
)  # fmt: skip

INSTEAD: dict[str, str] = {
    "Import": "imports are not available; everything you may use is already there (see the library)",
    "ImportFrom": "imports are not available; `Literal` and the library are already there",
    "ClassDef": "classes are not available; use tuples, dicts and functions",
    "AsyncFunctionDef": "write a plain generator: `def name(view): ... view = yield primitive`",
    "AsyncFor": "write a plain `for`",
    "AsyncWith": "`with` is not available",
    "Await": "write `view = yield primitive`",
    "With": "`with` is not available; there is nothing to open or lock here",
    "Match": "write `if` / `elif` instead of `match`",
    "TryStar": "write `except ValueError:`",
    "Global": "an action keeps nothing between calls; pass values as arguments or return them",
    "Pow": "`**` is not available; write `x * x`",
    "LShift": "`<<` is not available; multiply instead",
    "MatMult": "`@` is not available",
    "TypeAlias": "type aliases are not available",
}

BUILTINS: tuple[str, ...] = (
    "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "frozenset", "int", "isinstance",
    "len", "list", "max", "min", "next", "range", "reversed", "round", "set", "sorted", "str", "sum",
    "tuple", "zip",
)  # fmt: skip
EXCEPTIONS: tuple[str, ...] = (
    "ArithmeticError", "AssertionError", "AttributeError", "Exception", "IndexError", "KeyError",
    "LookupError", "OverflowError", "RuntimeError", "StopIteration", "TypeError", "ValueError",
    "ZeroDivisionError",
)  # fmt: skip

NAME_ADVICE: dict[str, str] = {
    "print": "nothing can be printed here; raise ValueError('what you want to know') to see a value",
    "getattr": "write the attribute itself: `view.name`",
    "hasattr": "the view always has all its attributes; test the value",
    "setattr": "values cannot be changed; keep a local variable",
    "iter": "loop with `for`",
    "map": "write a comprehension: `[f(x) for x in xs]`",
    "filter": "write a comprehension: `[x for x in xs if f(x)]`",
    "pow": "write `x * x`",
    "type": "use isinstance(value, int)",
    "repr": "use str(value)",
    "random": "use `rng`: rng.random(), rng.randint(a, b), rng.choice(sequence)",
    "math": "modules are not available; use + - * / // % abs min max round",
    **dict.fromkeys(
        ("np", "numpy", "itertools", "collections", "heapq", "functools", "time"),
        "modules are not available; use lists, dicts, loops and the builtins",
    ),
    "Literal": "`Literal` is only for the annotations of the action's arguments",
}

RNG = ("choice", "randint", "random", "randrange", "shuffle")
"""What `rng` has (runtime.Rng)."""
ATTRIBUTES = frozenset(
    (
        # list, tuple
        "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse",
        "sort",
        # dict
        "get", "items", "keys", "setdefault", "update", "values",
        # set
        "add", "difference", "discard", "intersection", "isdisjoint", "issubset", "issuperset",
        "symmetric_difference", "union",
        # str
        "endswith", "find", "isdigit", "join", "lower", "lstrip", "partition", "removeprefix",
        "removesuffix", "replace", "rfind", "rpartition", "rsplit", "rstrip", "split", "splitlines",
        "startswith", "strip", "title", "upper",
        # int
        "bit_count", "bit_length", *RNG,
    )
)  # fmt: skip
FORBIDDEN_ATTRIBUTES = frozenset((
    "format", "format_map", "mro", "close", "throw", "send", "with_traceback", "add_note", "from_bytes",
    "to_bytes", "encode", "decode", "translate", "maketrans", "fromkeys", "obj", "args",
))  # fmt: skip
"""Never allowed, whatever a world's classes offer; nor is anything with one of the prefixes."""
FORBIDDEN_PREFIXES = ("_", "gi_", "cr_", "ag_", "f_", "tb_", "co_", "func_")
