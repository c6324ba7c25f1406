"""Parses a source to a syntax tree. A refusal carries Python's own message, the line, and a hint for common mistakes.

This runs inside a host, because parsing hostile text is itself a risk.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlgpt.training.host.sandbox import rules


class Refused(Exception):
    """Rule, line (from 1; 0 when it is about the whole source) and the sentence for the author."""

    def __init__(self, rule: str, line: int, message: str) -> None:
        super().__init__(message)
        self.rule, self.line, self.message = rule, line, message


def parse_source(kind: str, source: str) -> ast.Module | ast.Expression:
    """The tree of a source that Python can compile and that is within the limits of size. Raises Refused."""
    if not source.strip():
        raise Refused("empty", 0, "there is no code")
    if len(source.encode("utf-8", "replace")) > rules.SOURCE_CAP:
        raise Refused("too long", 0, f"write at most {rules.SOURCE_CAP} bytes of source")
    if source.count("\n") >= rules.LINES_CAP:
        raise Refused("too long", 0, f"write at most {rules.LINES_CAP} lines")
    mode = "eval" if kind == "done_when" else "exec"
    text = source.strip() if kind == "done_when" else source
    try:
        tree: ast.Module | ast.Expression = ast.parse(text, mode=mode)  # type: ignore[assignment]
        _measure(tree)
        # Some errors are only found by the compiler: `break` outside a loop, `nonlocal` at the top level. Its code is
        # not used: the source is compiled again after the checks.
        compile(tree, "<action>", mode, dont_inherit=True)
    except SyntaxError as error:
        expected = "write one expression over `start` and `view`: " if kind == "done_when" else ""
        raise Refused(
            "syntax", error.lineno or _line_of_nul(text), f"{expected}{error.msg}{_hint(text, error)}"
        ) from None
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise Refused("syntax", line, "the source has characters that are no valid text") from None
    except (RecursionError, MemoryError, OverflowError):
        raise Refused("too deep", 0, "the source is nested too deeply to be read") from None
    except ValueError as error:  # a NUL, or a number of thousands of digits
        raise Refused("syntax", _line_of_nul(text), str(error)) from None
    return tree


def _measure(tree: ast.AST) -> None:
    count = deepest = 0
    for _, depth in walk_with_depth(tree):
        count, deepest = count + 1, max(deepest, depth)
    if deepest > rules.DEPTH_CAP:
        raise Refused("too deep", 0, f"nest at most {rules.DEPTH_CAP} levels; name intermediate results")
    if count > rules.NODES_CAP:
        raise Refused("too long", 0, f"the source has {count} syntax nodes; {rules.NODES_CAP} are allowed")


def walk_with_depth(tree: ast.AST) -> Iterator[tuple[ast.AST, int]]:
    """Nodes with their depth, in the order of the source, so that the first refusal is about the first bad line."""
    todo = [(tree, 0)]
    while todo:
        node, depth = todo.pop()
        yield node, depth
        todo.extend((child, depth + 1) for child in reversed(list(ast.iter_child_nodes(node))))


def _line_of_nul(text: str) -> int:
    at = text.find("\0")
    return text.count("\n", 0, at) + 1 if at >= 0 else 0


def _hint(text: str, error: SyntaxError) -> str:
    """What to do about the mistakes of models that write code as a text inside another text; empty for other errors."""
    message = error.msg or ""
    if "```" in text:
        return "; send the code alone, without the ``` around it"
    if "line continuation" in message and "\\n" in text:
        return "; the source has the two characters \\ and n where a line must end: send real line breaks"
    if "'await'" in message or "asynchronous" in message or "'async " in message:
        return f"; {rules.INSTEAD['Await']}"
    return ""
