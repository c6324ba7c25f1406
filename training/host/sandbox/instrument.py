"""Adds counters to a checked syntax tree, so that the compiled code counts its own work.

A call to `_tick` stands at the start of every function and loop body and in every clause of a comprehension, so no loop
written in the language runs uncounted. `_mod` and `_text` take the place of `%` and of values in f-strings, which would
otherwise print memory addresses; sets and the keys and items of dicts become those of `training.ordered_sets`, whose
order does not depend on addresses; `_caught` stands at the start of every `except`. Names of sources have no leading
underscore, so these cannot clash with them.
"""

from __future__ import annotations

import ast
from types import CodeType

from rlgpt.training.host.sandbox.admission import Checked

FILENAME = "<action>"


def compile_source(checked: Checked) -> CodeType:
    """Code of the module, or of the expression wrapped as `lambda start, view: ...`."""
    tree = checked.tree
    if isinstance(tree, ast.Expression):
        parameters = ast.arguments(
            posonlyargs=[],
            args=[ast.arg("start"), ast.arg("view")],
            kwonlyargs=[],
            kw_defaults=[],
            defaults=[],
        )
        tree = ast.Expression(ast.copy_location(ast.Lambda(parameters, tree.body), tree.body))
    tree = _Instrument().visit(tree)
    ast.fix_missing_locations(tree)
    mode = "eval" if isinstance(tree, ast.Expression) else "exec"
    return compile(tree, FILENAME, mode, dont_inherit=True, optimize=0)


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


class _Instrument(ast.NodeTransformer):
    def _body(self, node: ast.For | ast.While | ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(_call("_tick")), node))
        return node

    visit_For = visit_While = visit_FunctionDef = _body

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        node.body = ast.copy_location(ast.BoolOp(ast.And(), [_call("_tick"), node.body]), node.body)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs.insert(0, ast.copy_location(_call("_tick"), node.target))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and not _is_number(node.left):
            return ast.copy_location(_call("_mod", node.left, node.right), node)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        self.generic_visit(node)
        node.value = ast.copy_location(_call("_text", node.value), node.value)
        return node

    def visit_Set(self, node: ast.Set) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(_call("_set", ast.Tuple(node.elts, ast.Load())), node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        self.generic_visit(node)
        elements = ast.copy_location(ast.ListComp(node.elt, node.generators), node)
        return ast.copy_location(_call("_set", elements), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """`x in {"a", "b"}` stays as it is: the compiler makes a constant of it, and its order has no effect."""
        constant_sets = {
            index: right
            for index, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True))
            if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.Set) and _all_constant(right)
        }
        self.generic_visit(node)
        for index, right in constant_sets.items():
            node.comparators[index] = right
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr in ("keys", "items"):
            return ast.copy_location(_call("_window", node.value, ast.Constant(node.attr)), node)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(_call("_caught")), node))
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _all_constant(node: ast.Set) -> bool:
    return all(isinstance(part, ast.Constant) for part in node.elts)
