"""Strategies for sources that nobody would write on purpose: broken, hostile, huge, and nearly right."""

from __future__ import annotations

import io
import tokenize

from hypothesis import strategies as st

VALID: dict[str, tuple[str, ...]] = {
    "action": (
        'def act(view):\n    while view.at < END:\n        view = yield "right"\n',
        'STEPS: int = 4\nNAMES = {"oak": ("left", 1), "rock": ("right", -1)}\nignore_alarm = True\n\n'
        "def available(view, what):\n    return view.coins >= 0 and NAMES[what] is not None\n\n"
        "def towards(view, step):\n    for _ in range(STEPS):\n        view = yield step\n    return view\n\n"
        'def walk(view, what: Literal["oak", "rock"] = "oak", far: Literal[True, False, -3] = False):\n'
        "    seen = [x for x in view.seen if x % 2 == 0]\n"
        "    best = min(seen, key=lambda cell: abs(cell - view.at), default=None)\n"
        "    try:\n        view = yield from towards(view, NAMES[what][0])\n"
        "    except (KeyError, ValueError) as error:\n        raise ValueError(f'lost at {best}') from error\n",
        'def act(view):\n    total = 0\n    for n in range(6):\n        total = total + distance(n, view.at) % 3\n'
        '        view = yield rng.choice(["left", "right"]) if total // 2 else f"{\'stay\'}"\n    return total\n',
        'def act(view):\n    cells = {view.at: [1, 2.5, None], (1, 2): "x" * 3}\n'
        "    a, *b = sorted(cells[view.at][:2])\n    if not b or a != 1:\n        del cells[view.at]\n"
        "    elif any(x > 1 for x in b):\n        cells.update({3: {1}})\n"
        '    assert len(cells) == 2, f"has {len(cells)}"\n    yield "stay" if a else 0\n',
    ),
    "done_when": ("view.at - start.at >= 3", "any(x > 2 for x in view.seen) and not view.coins", "len(view.seen) % 2"),
    "reward": (
        "def reward(before, view):\n    return (view.at - before.at) / 10\n",
        "def far(x):\n    return distance(x, END)\ndef reward(before, view):\n    if view.coins:\n        return -0.5\n"
        "    return far(before.at) - far(view.at)\n",
    ),
}  # fmt: skip

ODD = (
    "\t", "\f", "\r", "\r\n", "\0", "\ufeff", "\ud800", "\x1a", "\x7f", "\u2028", "\u200b", "\xa0", "\\", "\\\n",
    "'''", '"""', "`", "```", "€", "ﬁ", "𝕏", "\\N{BULLET}", "\\ud800", "\\x00", "#", ";", "$", "?", "!", "0x",
    "1_000_", "0777", "1e999", "1j", "b'x'", "f'{", "f'{x!r:{y}}'", "...", ":=", "->", "@", "**", "<<", "9" * 30,
    "9" * 5000, "(" * 250, "{" * 90, "-" * 300, "not " * 120, "x." * 300, "\n" * 50, " " * 120,
)  # fmt: skip
WORDS = (
    "def", "act", "(", ")", "view", ":", "\n", "\n    ", "\n        ", "yield", "return", "if", "else", "for", "in",
    "while", "lambda", "=", "==", ".", ",", "[", "]", "{", "}", "'stay'", '"left"', "1", "0.5", "+", "*", "%", "and",
    "not", "None", "True", "try", "except", "finally", "raise", "class", "import", "global", "nonlocal", "async",
    "await", "break", "continue", "pass", "del", "assert", "with", "as", "match", "case", "type", "print", "range",
    "rng", "start", "before", "__class__", "from", "is", "reward", "Literal", "available",
)  # fmt: skip

odd = st.sampled_from(ODD) | st.characters() | st.characters(categories=["Cs", "Cc", "Zl", "Zs", "Nd"])


def kinds() -> st.SearchStrategy[str]:
    return st.sampled_from(sorted(VALID))


def _tokens(source: str) -> list[str]:
    """A source in pieces that make it again when they are joined."""
    pieces, at = [], 0
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.start[0] >= len(starts):
            break
        begin, end = (starts[row - 1] + column for row, column in (token.start, token.end))
        if begin > at:
            pieces.append(source[at:begin])
        pieces.append(source[begin:end])
        at = max(at, end)
    return [piece for piece in pieces if piece]


@st.composite
def mutated(draw: st.DrawFn, kind: str) -> str:
    """A valid source with a few tokens gone, doubled, swapped, replaced, or with something odd between them."""
    pieces = _tokens(draw(st.sampled_from(VALID[kind])))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(pieces) - 1))
        match draw(st.sampled_from(("drop", "double", "swap", "word", "odd", "indent"))):
            case "drop":
                pieces[at] = ""
            case "double":
                pieces[at] *= draw(st.sampled_from((2, 3, 40)))
            case "swap":
                other = draw(st.integers(0, len(pieces) - 1))
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case "word":
                pieces[at] = draw(st.sampled_from(WORDS))
            case "odd":
                pieces[at] += draw(odd)
            case "indent":
                lines = "".join(pieces).splitlines(keepends=True) or [""]
                row = draw(st.integers(0, len(lines) - 1))
                lines[row] = draw(st.sampled_from(("", " ", "   ", "\t", "        ", "\f  "))) + lines[row].lstrip(" ")
                pieces = lines
    return "".join(pieces)


soup = st.lists(st.sampled_from(WORDS) | odd, max_size=60).map(" ".join)
"""Tokens in any order."""
REPEATED = (
    "(",
    "[",
    "{",
    "-",
    "not ",
    "x.",
    "lambda: ",
    "[x for x in ",
    "f(",
    "1 if 1 else ",
    "1,",
    "'a' 'b' ",
    "x=",
    "if 1:\n",
    ";",
)
huge = st.builds(
    lambda head, part, times, tail: head + part * times + tail,
    st.sampled_from(("", "def act(view):\n    yield ", "def act(view):\n    x = ")),
    st.sampled_from(REPEATED) | odd,
    st.sampled_from((10, 39, 100, 200, 1_000, 5_000)),
    st.sampled_from(("", "1", ")", "\n    yield 'stay'\n")),
)
"""One part repeated far too often."""

NUMBERS = st.sampled_from(
    ("0", "1", "-1", "3", "7", "1e308", "-0.0", "4611686018427387903", "2147483648", "50000", "100000000")
)
TEXTS = st.sampled_from(
    ("''", "'x'", "'stay'", "'left'", "'%999999999d'", "'%s%s'", "'\\ud800'", "'\\x00'", "'\\n' * 9", "'{}'")
)
NAMES = st.sampled_from(
    ("view", "view.at", "view.coins", "view.seen", "x", "y", "END", "rng", "None", "True", "act", "len", "str")
)
CALLS = (
    "len({})", "str({})", "list({})", "sorted({})", "sum({})", "max({}, {})", "range({})", "zip({}, {})", "set({})",
    "dict({})", "tuple({})", "enumerate({})", "reversed({})", "int({})", "float({})", "round({}, {})",
    "divmod({}, {})", "isinstance({}, {})", "next({})", "any({})", "bool({})", "min({})", "abs({})",
    "distance({}, {})", "rng.choice({})", "rng.randint({}, {})", "rng.shuffle({})", "rng.randrange({})",
    "{}.append({})", "{}.extend({})", "{}.join({})", "{}.replace({}, {})", "{}.split({})", "{}.pop()", "{}.sort()",
    "{}.update({})", "{}.count({})", "{}.index({})", "{}.get({})", "{}.items()", "{}.copy()", "{}.bit_length()",
    "{}.title()", "{}.setdefault({}, {})", "f'{{{}}}'", "frozenset({})", "Exception({})", "KeyError({}, {})",
)  # fmt: skip
OPERATORS = (
    "{} + {}", "{} * {}", "{} - {}", "{} / {}", "{} // {}", "{} % {}", "{} | {}", "{} >> {}", "{} < {}", "{} == {}",
    "{} in {}", "{} is {}", "{} and {}", "{}[{}]", "{}[{}:{}]", "{} if {} else {}", "({}, {})", "[{}, {}]",
    "{{{}: {}}}", "{{{}}}", "-{}", "not {}", "[{} for x in {}]", "({} for y in {})", "{{x: {} for x in {}}}",
    "(lambda x: {})({})", "(x := {})", "*{},", "[{}] * {}", "{}({})",
)  # fmt: skip


def _filled(forms: tuple[str, ...], parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def fill(form: str) -> st.SearchStrategy[str]:
        holes = form.replace("{{", "").replace("}}", "").count("{}")
        return st.lists(parts, min_size=holes, max_size=holes).map(lambda given: form.format(*given))

    return st.sampled_from(forms).flatmap(fill)


expressions = st.recursive(
    NUMBERS | TEXTS | NAMES, lambda parts: _filled(OPERATORS + CALLS, parts).map("({})".format), max_leaves=12
)

STATEMENTS = (
    "x = {}", "y = {}", "x = x * x", "x = [x, x]", "x = (x,)", "x = zip(x)", "x = x + x", "view = yield {}",
    "yield {}", "yield from {}", "raise ValueError({})", "raise {}", "raise KeyError({}) from x", "del x",
    "assert {}, {}", "x.append(x)", "x = {{}}\nx[1] = x", "return {}", "x = lambda: x()", "x = f(x)",
    "x = {}\ny = str(x)", "nonlocal x", "break", "pass", "view = yield 'stay'", "x[{}] = {}", "x += {}", "{}",
)  # fmt: skip
BLOCKS = ("for x in {}:", "while {}:", "if {}:", "for _ in range(40):", "for _ in range(45000):", "while True:")


@st.composite
def blocks(draw: st.DrawFn, yields: bool, depth: int = 2) -> list[str]:
    lines: list[str] = []
    forms = tuple(form for form in STATEMENTS if yields or "yield" not in form)
    for _ in range(draw(st.integers(1, 4))):
        if depth and draw(st.integers(0, 3)) == 0:
            lines += draw(_filled(BLOCKS, expressions)).splitlines()
            inside = draw(blocks(yields, depth - 1))
            if draw(st.booleans()):
                inside = ["try:", *("    " + line for line in inside), "except Exception as y:", "    x = y"]
            lines += ["    " + line for line in inside]
        else:
            lines += draw(_filled(forms, expressions)).splitlines()
    return lines


HIDDEN = "view.coins > 2"
"""False in every view of the dry run, true later: what stands behind it is admitted unseen."""


@st.composite
def written(draw: st.DrawFn, kind: str) -> str:
    """Follows the grammar, and does whatever it likes: at once, or when it has been admitted."""
    hidden = draw(st.booleans())
    if kind == "done_when":
        expression = draw(expressions).replace("y", "start").replace("x", "view.coins")
        return f"{HIDDEN} and {expression}" if hidden else expression
    action = kind == "action"
    body = draw(blocks(action))
    if hidden:
        body = [f"if {HIDDEN}:", *("    " + line for line in body)]
    if action:
        body = ["while True:", *("    " + line for line in ["view = yield 'stay'", *body])]
    else:
        body.append("return 0.1")
    helper = ["def f(x):", "    y = x", *("    " + line for line in draw(blocks(False, 1)))]
    above = [f"A = {draw(expressions)}"] if draw(st.integers(0, 9)) == 0 else []
    first = "def act(view):" if action else "def reward(before, view):"
    return "\n".join([*above, *helper, first, "    x = y = 1", *("    " + line for line in body)])


def sources(kind: str) -> st.SearchStrategy[str]:
    """Any of the above, and more often what gets as far as being run."""
    ways = {
        "written": (8, written(kind)),
        "mutated": (3, mutated(kind)),
        "soup": (1, soup),
        "huge": (1, huge | st.text(max_size=200)),
    }
    chosen = [way for way, (weight, _) in ways.items() for _ in range(weight)]
    return st.sampled_from(chosen).flatmap(lambda way: ways[way][1])
