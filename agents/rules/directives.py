"""Recognises fixed phrases of the operator or the critic that change a plan."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_SENTENCE = re.compile(r"[.;!\n]+")
_NOT = re.compile(r"\b(not|never|don't|no)\b")
_RL = re.compile(r"\b(rl|reinforcement learning|learn|learnt|learned|train)\b")
_CODE = re.compile(r"\b(code|coded|script|scripted)\b")
_DROP = re.compile(r"\b(drop|remove|leave out|skip)\b")
_POLICY = re.compile(r"\b(policy on top|use (?:the|a) policy|executor policy|train a policy)\b")
_SEQUENCE = re.compile(r"\b(sequence alone|use the sequence|executor sequence|without a policy)\b")


@dataclass
class Directives:
    modes: dict[str, str] = field(default_factory=dict)
    """Sub-action -> code | rl."""
    dropped: set[str] = field(default_factory=set)
    executor: str = ""


def directives(texts: Iterable[str], names: Iterable[str]) -> Directives:
    """Later sentences win. A sub-action is meant when its name stands in the sentence, with _ or spaces."""
    longest_first = sorted(names, key=len, reverse=True)
    out = Directives()
    for text in texts:
        for sentence in _SENTENCE.split(text.lower()):
            _sentence(sentence, longest_first, out)
    return out


def _sentence(sentence: str, names: list[str], out: Directives) -> None:
    plain = sentence.replace("_", " ")
    negated = bool(_NOT.search(plain))
    if not negated and _POLICY.search(plain):
        out.executor = "policy"
    elif not negated and _SEQUENCE.search(plain):
        out.executor = "sequence"
    for name in names:
        words = name.replace("_", " ")
        if not re.search(rf"\b{re.escape(words)}\b", plain):
            continue
        plain = plain.replace(words, " ")
        if _DROP.search(plain) and not negated:
            out.dropped.add(name)
        elif _RL.search(plain):
            out.modes[name] = "code" if negated else "rl"
        elif _CODE.search(plain):
            out.modes[name] = "rl" if negated else "code"
