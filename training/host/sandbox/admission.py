"""Checks the syntax tree of a source against the allow-list; a refusal says what to write instead.

This runs inside a host and does not execute the source.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from rlgpt.training.host.sandbox import rules
from rlgpt.training.host.sandbox.parsing import Refused, parse_source, walk_with_depth


class Vocabulary(NamedTuple):
    """What a world adds to the language: names and attributes of its library and views."""

    names: Collection[str] = ()
    attributes: Collection[str] = ()
    texts: Mapping[str, Collection[str]] = MappingProxyType({})
    """Function, method or keyword -> the texts that may be written there."""
    methods: Collection[str] = ()
    """Those of the attributes that are called."""


class Checked(NamedTuple):
    """A source that may be compiled."""

    kind: str
    name: str
    tree: ast.Module | ast.Expression
    arguments: Mapping[str, tuple[object, ...]] = MappingProxyType({})
    has_available: bool = False
    uninterruptible: bool = False
    uses_rng: bool = False
    tree_hash: str = ""


def check(kind: str, source: str, world: Vocabulary) -> Checked:
    """Raises Refused. `kind` is `action`, `done_when` (one expression) or `reward`."""
    tree = parse_source(kind, source)
    names = frozenset(rules.BUILTINS) | frozenset(rules.EXCEPTIONS) | frozenset(world.names)
    if isinstance(tree, ast.Expression):
        _Checker(rules.EXPRESSIONS, names | {"start", "view"}, world).check(tree)
        for condition in _conditions(tree.body):
            _check_depends_on_state(condition, world.methods)
        return Checked(kind, "done_when", tree, tree_hash=_tree_hash(tree))
    uninterruptible = _check_module_level(tree)
    functions = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
    entry = _find_reward(functions) if kind == "reward" else _find_action(functions)
    arguments = _read_arguments(entry) if kind == "action" else {}
    _strip_annotations(tree)
    nodes = rules.STATEMENTS + rules.EXPRESSIONS
    _Checker(nodes, names | {"rng"} if kind == "action" else names, world).check(tree)
    available = functions.get("available") if kind == "action" else None
    if available is not None:
        _check_available(available, entry)
    uses_rng = any(isinstance(node, ast.Name) and node.id == "rng" for node in ast.walk(tree))
    return Checked(
        kind, entry.name, tree, arguments, available is not None, uninterruptible, uses_rng, _tree_hash(tree)
    )


def _conditions(node: ast.expr) -> Iterator[ast.expr]:
    """What `and`, `or` and `not` join: in `view.front == "coal" or "iron"` the second part is always true."""
    match node:
        case ast.BoolOp(values=parts):
            for part in parts:
                yield from _conditions(part)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            yield from _conditions(part)
        case _:
            yield node


def _check_depends_on_state(node: ast.expr, methods: Collection[str]) -> None:
    """Raises Refused for a condition that is true, or false, whatever the view: a function that nobody calls, a text,
    a tuple of conditions. True and False say so themselves."""
    instead = ""
    match node:
        case ast.Lambda():
            instead = "write the expression without `lambda`; `start` and `view` are known in it"
        case ast.Name(id=name):
            instead = f"`{name}` alone is the same in every state; write a condition on `view`"
        case ast.Attribute(attr=name) if name in methods:
            instead = f"`.{name}` alone is a function, which is always true; call it: `{ast.unparse(node)}(...)`"
        case ast.Constant(value=str() as value):
            instead = (
                f"`{value[:40]}` alone is the same in every state; write a condition on `view`, "
                "of several texts `x in (a, b)` or `x == a or x == b`"
            )
        case ast.Constant(value=value) if not isinstance(value, bool):
            instead = f"`{str(value)[:40]}` alone is the same in every state; write a condition on `view`"
        case ast.GeneratorExp():
            instead = "write `any(...)` or `all(...)` around it; a generator alone is always true"
        case ast.Tuple() | ast.List() | ast.Set() | ast.Dict():
            instead = "write one condition, with `and` or `or` between its parts; a list of them is always true"
        case ast.JoinedStr():
            instead = "write a condition on `view`, not a text"
    if instead:
        raise Refused("expression", node.lineno, instead)


def _check_module_level(tree: ast.Module) -> bool:
    """Raises Refused unless the top level has only functions, constants and docstrings, and removes the docstrings.
    Returns the value of the constant `ignore_alarm`."""
    uninterruptible = False
    statements: list[ast.stmt] = []
    for node in tree.body:
        match node:
            case ast.FunctionDef():
                _check_defaults(node)
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                continue
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_literal(value):
                if name == "ignore_alarm":
                    if not (isinstance(value, ast.Constant) and isinstance(value.value, bool)):
                        raise Refused("ignore_alarm", node.lineno, "write `ignore_alarm = True` or leave it out")
                    uninterruptible = value.value
            case ast.AnnAssign(target=ast.Name(), value=ast.expr() as value) if _is_literal(value):
                pass
            case _:
                advice = rules.INSTEAD.get(type(node).__name__)
                raise Refused(
                    "top level",
                    node.lineno,
                    advice
                    or "outside functions only constants (numbers, texts, tuples, lists, dicts of these) "
                    "are allowed; compute inside a function",
                )
        statements.append(node)
    tree.body = statements
    return uninterruptible


def _is_literal(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant()):
            return True
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return all(_is_literal(part) for part in parts)
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and _is_literal(key) for key in keys) and all(map(_is_literal, values))
    return False


def _is_immutable(node: ast.expr) -> bool:
    return not any(isinstance(part, ast.List | ast.Dict | ast.Set) for part in ast.walk(node))


def _check_defaults(function: ast.FunctionDef) -> None:
    for default in (*function.args.defaults, *function.args.kw_defaults):
        if default is not None and not (_is_literal(default) and _is_immutable(default)):
            raise Refused("default", function.lineno, "a default must be a number, a text, None or a tuple of these")


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    spec = function.args
    if spec.vararg or spec.kwarg or spec.posonlyargs:
        raise Refused("signature", function.lineno, f"`{function.name}` takes named parameters only")
    return [*spec.args, *spec.kwonlyargs]


def _find_action(functions: dict[str, ast.FunctionDef]) -> ast.FunctionDef:
    candidates = [f for name, f in functions.items() if name != "available" and _yields(f) and _first_is_view(f)]
    if not candidates:
        line = next((f.lineno for f in functions.values()), 0)
        raise Refused(
            "no action",
            line,
            "define a generator whose first parameter is `view` and which yields primitives: "
            "`def name(view): ... view = yield primitive`",
        )
    # A helper may stand below the generator that calls it.
    called = {name for f in functions.values() for name in _called_names(f) if name != f.name}
    return ([f for f in candidates if f.name not in called] or candidates)[-1]


def _called_names(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def _first_is_view(function: ast.FunctionDef) -> bool:
    return bool(function.args.args) and function.args.args[0].arg == "view"


def _yields(function: ast.FunctionDef) -> bool:
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            todo.extend(ast.iter_child_nodes(node))
    return False


def _read_arguments(entry: ast.FunctionDef) -> dict[str, tuple[object, ...]]:
    """Values of each argument after `view`, from its annotation `Literal[...]`."""
    arguments: dict[str, tuple[object, ...]] = {}
    for parameter in _parameters(entry)[1:]:
        match parameter.annotation:
            case ast.Subscript(value=ast.Name(id="Literal"), slice=inside):
                values = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            case _:
                raise Refused(
                    "argument",
                    parameter.lineno,
                    f"annotate `{parameter.arg}` with its possible values: "
                    f'`{parameter.arg}: Literal["tree", "stone"]` (at most {rules.LITERAL_CAP})',
                )
        if not 1 <= len(values) <= rules.LITERAL_CAP:
            raise Refused("argument", parameter.lineno, f"write 1 to {rules.LITERAL_CAP} values in `Literal`")
        arguments[parameter.arg] = tuple(_literal_value(value) for value in values)
    if len(arguments) > rules.ARGUMENTS_CAP:
        raise Refused("argument", entry.lineno, f"an action takes at most {rules.ARGUMENTS_CAP} arguments")
    return arguments


def _literal_value(node: ast.expr) -> object:
    value: object = ...
    match node:
        case ast.Constant(value=value):
            pass
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            value = -number
    if isinstance(value, str) and (len(value) > rules.ARGUMENT_TEXT_CAP or not value.isprintable()):
        raise Refused(
            "argument",
            node.lineno,
            f"texts in `Literal` are printable and at most {rules.ARGUMENT_TEXT_CAP} characters",
        )
    if value is None or (type(value) in (bool, str)) or (type(value) is int and abs(value) < rules.INTEGER_CAP):
        return value
    raise Refused("argument", node.lineno, "values in `Literal` are texts, whole numbers, True, False or None")


def _check_available(available: ast.FunctionDef, entry: ast.FunctionDef) -> None:
    allowed = [parameter.arg for parameter in _parameters(entry)]
    parameters = [parameter.arg for parameter in _parameters(available)]
    if parameters[:1] != ["view"] or not set(parameters) <= set(allowed):
        raise Refused(
            "signature",
            available.lineno,
            f"`available` takes (view) and may take the action's own arguments ({', '.join(allowed)})",
        )
    if _yields(available):
        raise Refused("yield", available.lineno, "`available` returns True or False; it must not yield")


def _find_reward(functions: dict[str, ast.FunctionDef]) -> ast.FunctionDef:
    entry = functions.get("reward")
    if entry is None or [parameter.arg for parameter in _parameters(entry)] != ["before", "view"]:
        raise Refused("no reward", 0, "define `def reward(before, view): ... return number`")
    if _yields(entry):
        raise Refused("yield", entry.lineno, "`reward` returns a number; it must not yield")
    return entry


def _strip_annotations(tree: ast.Module) -> None:
    """Annotations are never evaluated, so they are removed instead of checked."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            if node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
                node.body = node.body[1:] or [ast.copy_location(ast.Pass(), node.body[0])]
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.copy_location(ast.Constant(None), node.annotation)


def _tree_hash(tree: ast.AST) -> str:
    """Equal in every Python for equal code: of the text of 3.11's `ast.dump`, to which 3.12 added type parameters, and
    from which 3.13 leaves empty fields out."""
    whole = {"show_empty": True} if sys.version_info >= (3, 13) else {}
    parameters = [(node, vars(node).pop("type_params")) for node in ast.walk(tree) if "type_params" in vars(node)]
    text = ast.dump(tree, **whole)
    for node, value in parameters:  # compile wants them
        node.type_params = value  # type: ignore[attr-defined]
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class _Checker:
    """Checks every node, name and attribute against the allow-list; raises Refused."""

    def __init__(self, nodes: tuple[type[ast.AST], ...], names: Collection[str], world: Vocabulary) -> None:
        self.nodes = nodes
        self.names = names
        self.attributes = rules.ATTRIBUTES | frozenset(world.attributes)
        self.world_attributes = world.attributes
        self.texts = world.texts
        self.line = 0

    def check(self, tree: ast.Module | ast.Expression) -> None:
        bound = frozenset(_bound_names(tree))
        for top in tree.body if isinstance(tree, ast.Module) else [tree.body]:
            for node, _ in walk_with_depth(top):
                self.line = getattr(node, "lineno", self.line)
                self._check_node(node, bound)

    def refuse(self, rule: str, message: str) -> Refused:
        return Refused(rule, self.line, message)

    def _check_node(self, node: ast.AST, bound: Collection[str]) -> None:
        kind = type(node).__name__
        if not isinstance(node, self.nodes):
            advice = rules.INSTEAD.get(kind, f"`{kind.lower()}` is not part of the language of actions")
            raise self.refuse("syntax element", advice)
        match node:
            case ast.Name(id=name):
                self._check_name(name, bound)
            case ast.Attribute(value=value, attr=attribute, ctx=context):
                if isinstance(value, ast.Name):  # first: of `math.sqrt` it is `math` that has to go
                    self._check_name(value.id, bound, attribute)
                self._check_attribute(attribute, value)
                if not isinstance(context, ast.Load):
                    raise self.refuse(
                        "attribute",
                        "attributes cannot be changed; views are immutable, keep a local variable",
                    )
            case ast.FunctionDef(name=name, decorator_list=decorators):
                self._check_identifier(name)
                if decorators:
                    raise self.refuse("decorator", "decorators are not available; call the function directly")
                if getattr(node, "type_params", None):
                    raise self.refuse("syntax element", "type parameters are not available")
            case ast.arg(arg=name):
                self._check_identifier(name)
            case ast.keyword(arg=str() as name):
                self._check_identifier(name)
            case ast.Nonlocal(names=names):
                for name in names:
                    self._check_identifier(name)
            case ast.Try(finalbody=final):
                if final:
                    raise self.refuse("finally", "`finally` is not available; write the code after the `try`")
            case ast.ExceptHandler(type=exception_type, name=name):
                if exception_type is None:
                    raise self.refuse("bare except", "write `except Exception:` or the exception you expect")
                self._check_exception_type(exception_type)
                if name is not None:
                    self._check_identifier(name)
            case ast.Constant(value=value):
                self._check_constant(value)
            case ast.FormattedValue(conversion=conversion, format_spec=spec):
                if conversion != -1 or spec is not None:
                    raise self.refuse("f-string", "write {value} without `!` or `:`; round numbers with round(x, 2)")
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments, keywords=keywords):
                if name not in bound:
                    self._check_texts(name, arguments)
                    for keyword in keywords:
                        self._check_texts(keyword.arg or "", [keyword.value])
            case ast.Compare():
                self._check_identity(node)
            case ast.AugAssign(op=ast.Mod()):
                raise self.refuse("remainder", "write `x = x % y` instead of `x %= y`")
            case ast.comprehension(is_async=is_async):
                if is_async:
                    raise self.refuse("syntax element", rules.INSTEAD["AsyncFor"])

    def _check_name(self, name: str, bound: Collection[str], attribute: str = "") -> None:
        self._check_identifier(name)
        if name not in bound and name not in self.names:
            known = f"; write `{attribute}` alone" if attribute in self.names else ""
            raise self.refuse("name", self._describe_unknown_name(name) + known)

    def _check_identifier(self, name: str) -> None:
        if name.startswith("_") and name != "_":
            raise self.refuse("underscore", f"`{name}`: names must not start with an underscore")
        if not name.isascii():
            raise self.refuse("name", "write names in ASCII letters")
        if len(name) > rules.NAME_CAP:
            raise self.refuse("name", f"names have at most {rules.NAME_CAP} characters")

    def _check_attribute(self, attribute: str, value: ast.expr) -> None:
        if attribute.startswith("_"):
            raise self.refuse("underscore", f"`.{attribute}`: attributes must not start with an underscore")
        if (
            attribute not in self.attributes
            or attribute in rules.FORBIDDEN_ATTRIBUTES
            or attribute.startswith(rules.FORBIDDEN_PREFIXES)
        ):
            listed = ", ".join(sorted(self.world_attributes)[:60])
            also = f" Views and the library have: {listed}." if listed else ""
            if isinstance(value, ast.Name) and value.id == "rng":
                also = f" `rng` has: {', '.join(rules.RNG)}."
            instead = " Write an f-string." if attribute in ("format", "format_map") else ""
            raise self.refuse("attribute", f"`.{attribute}` is not available.{instead}{also}")

    def _check_exception_type(self, exception_type: ast.expr) -> None:
        parts = exception_type.elts if isinstance(exception_type, ast.Tuple) else [exception_type]
        for part in parts:
            if not (isinstance(part, ast.Name) and part.id in rules.EXCEPTIONS):
                raise self.refuse("except", f"catch one of {', '.join(rules.EXCEPTIONS)}")

    def _check_constant(self, value: object) -> None:
        if value is None or isinstance(value, bool | float):
            return
        if isinstance(value, int):
            if value >= rules.INTEGER_CAP:
                raise self.refuse("number", "whole numbers must be below 2 to the 62nd")
        elif isinstance(value, str):
            if len(value) > rules.TEXT_CAP:
                raise self.refuse("text", f"write texts of at most {rules.TEXT_CAP} characters")
        else:
            raise self.refuse(
                "constant", f"{type(value).__name__} constants are not available; use numbers, texts, None"
            )

    def _check_texts(self, where: str, arguments: Sequence[ast.expr]) -> None:
        """Raises Refused for a literal text that the function, method or keyword `where` of the world does not take."""
        allowed = self.texts.get(where)
        if allowed is None:
            return
        for part in arguments:
            for text in part.elts if isinstance(part, ast.Tuple) else [part]:
                if isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value not in allowed:
                    listed = ", ".join(sorted(allowed))
                    raise self.refuse("text", f"`{where}` does not take {text.value[:40]!r}; it takes: {listed}")

    def _check_identity(self, node: ast.Compare) -> None:
        """Raises Refused for `is` on values other than None, True and False: whether two equal values are one object
        depends on what was computed before."""
        sides = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, sides, sides[1:], strict=False):
            if isinstance(op, ast.Is | ast.IsNot) and not (_is_singleton(left) or _is_singleton(right)):
                raise self.refuse("identity", "`is` is only for None, True and False; write `==` or `!=`")

    def _describe_unknown_name(self, name: str) -> str:
        advice = rules.NAME_ADVICE.get(name)
        if advice:
            return f"`{name}` is not available: {advice}"
        return f"`{name}` is not known here; available: {', '.join(sorted(self.names))}"


def _is_singleton(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))


def _bound_names(tree: ast.AST) -> Iterator[str]:
    """Every name that the source binds, in any scope."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str() as name):
                yield name
