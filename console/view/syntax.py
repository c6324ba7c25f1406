"""Python source as coloured lines. The source is untrusted: it is cleaned before it is lexed."""

from __future__ import annotations

from rlgpt.console.sanitise import clean_lines
from rlgpt.console.view.text import Line, Span

_STYLES = (
    ("Token.Comment", "code_comment"),
    ("Token.Literal.String.Doc", "code_comment"),
    ("Token.Literal.String", "code_string"),
    ("Token.Literal.Number", "code_number"),
    ("Token.Keyword", "code_keyword"),
    ("Token.Name.Builtin", "code_builtin"),
    ("Token.Name.Function", "code_name"),
    ("Token.Name.Class", "code_name"),
    ("Token.Operator.Word", "code_keyword"),
)


def coloured(source: str) -> list[Line]:
    """One line of spans per line of `clean_lines(source)`. Takes about 10 ms per 400 lines: not on the UI loop."""
    from pygments.lexers.python import PythonLexer

    expected = clean_lines(source.rstrip("\n"), most=5_000)
    lines: list[list[Span]] = [[]]
    for kind, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens("\n".join(expected)):
        style = _style(str(kind))
        for index, part in enumerate(text.split("\n")):
            if index:
                lines.append([])
            if part:
                lines[-1].append(Span(part, style))
    coloured_lines: list[Line] = [tuple(parts) for parts in lines]
    if len(coloured_lines) < len(expected):
        coloured_lines += [(Span(text),) for text in expected[len(coloured_lines) :]]
    return coloured_lines[: len(expected)]


def _style(kind: str) -> str:
    return next((style for prefix, style in _STYLES if kind.startswith(prefix)), "")
