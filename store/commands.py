"""The shape of every command, checked where it is sent and where it is taken. Pure.

  override  {edits: [{op: set|add|remove|move|pin|unpin|executor, name?, ...}], apply: now|next}; a revision
  approve   {}                       reject {text}                      need the revision they answer
  advise    {agent: planner|slow|fast|critic, text}
  verdict   {success, cause, sub_action?, advice_slow?, advice_fast?, confidence?}   a person is the critic
  edit_code {sub_action, source}     edit_reward {source, weight?}      apply: now|next
  stop_training {}                   ends the PPO run, keeps what it learnt
  pause {}    resume {}              stop {now?}                        budget {name, value}
What a command means for the plan (which names exist, which values fit) is the worker's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rlgpt.store.errors import BadCommand

AGENTS = ("planner", "slow", "fast", "critic")
OPS = ("set", "add", "remove", "move", "pin", "unpin", "executor")
BUDGETS = ("env_steps", "hours", "tokens", "cost", "daily_cost")
LONGEST = 20_000


class Field(NamedTuple):
    check: Callable[[Any], bool]
    rule: str
    default: Any = ...
    """`...`: required."""


def _text(most: int = LONGEST) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, str) and len(v) <= most


def _one_of(*choices: str) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, str) and v in choices


def _number(v: Any) -> bool:
    return isinstance(v, (int, float)) and not isinstance(v, bool) and abs(v) < 1e15


def _edits(v: Any) -> bool:
    return (
        isinstance(v, list)
        and 0 < len(v) <= 100
        and all(isinstance(e, Mapping) and e.get("op") in OPS and all(map(_scalar, e.values())) for e in v)
        and all(e["op"] == "executor" or isinstance(e.get("name"), str) for e in v)
    )


def _scalar(v: Any) -> bool:
    return isinstance(v, (str, int, float, bool)) and (not isinstance(v, str) or len(v) <= LONGEST)


APPLY = Field(_one_of("now", "next"), "now or next", "next")
TEXT = Field(_text(), f"a text of at most {LONGEST} characters")
NOTE = TEXT._replace(default="")

SHAPES: Mapping[str, Mapping[str, Field]] = {
    "override": {
        "edits": Field(_edits, f"a list of edits, each with an op ({', '.join(OPS)}) and a name"),
        "apply": APPLY,
    },
    "approve": {},
    "reject": {"text": NOTE},
    "advise": {"agent": Field(_one_of(*AGENTS), f"one of {', '.join(AGENTS)}"), "text": TEXT},
    "verdict": {
        "success": Field(lambda v: isinstance(v, bool), "true or false"),
        "cause": TEXT,
        "sub_action": Field(lambda v: v is None or _text(40)(v), "a sub-action's name, or nothing", None),
        "advice_slow": NOTE,
        "advice_fast": NOTE,
        "confidence": Field(lambda v: _number(v) and 0 <= v <= 1, "a number from 0 to 1", 1.0),
    },
    "edit_code": {
        "sub_action": Field(_text(40), "the name of a sub-action"),
        "source": TEXT,
        "apply": APPLY,
    },
    "edit_reward": {
        "source": TEXT,
        "weight": Field(lambda v: _number(v) and abs(v) <= 100, "a number from -100 to 100", 1.0),
        "apply": APPLY,
    },
    "stop_training": {},
    "pause": {},
    "resume": {},
    "stop": {"now": Field(lambda v: isinstance(v, bool), "true or false", False)},
    "budget": {
        "name": Field(_one_of(*BUDGETS), f"one of {', '.join(BUDGETS)}"),
        "value": Field(lambda v: v is None or (_number(v) and v >= 0), "a number from 0, or null for no limit"),
    },
}
NEEDS_REVISION = ("override", "approve", "reject")


def check(kind: str, payload: Mapping[str, Any], revision: int | None = None) -> dict[str, Any]:
    """The payload with its defaults filled in. Raises BadCommand with a sentence."""
    shape = SHAPES.get(kind)
    if shape is None:
        raise BadCommand(f"there is no command {kind!r:.50}; there are {', '.join(SHAPES)}")
    if not isinstance(payload, Mapping):
        raise BadCommand(f"the payload of {kind} must be an object")
    unknown = sorted(str(k) for k in payload if k not in shape)
    if unknown:
        raise BadCommand(f"{kind} takes no {unknown[0]!r:.50}")
    if kind in NEEDS_REVISION and (not isinstance(revision, int) or isinstance(revision, bool)):
        raise BadCommand(f"{kind} needs the plan revision that it answers")
    checked = {}
    for name, field in shape.items():
        if name not in payload and field.default is ...:
            raise BadCommand(f"{kind} needs {name}: {field.rule}")
        value = payload.get(name, field.default)
        if not field.check(value):
            raise BadCommand(f"{kind}: {name} must be {field.rule}, not {value!r:.80}")
        checked[name] = value
    return checked
