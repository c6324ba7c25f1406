"""A valid reply is found in whatever a model wraps it in, and what is cut off or foreign is not taken for one."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from rlgpt.agents.contracts import CodeReply, CritiqueReply, PlanReply, RlConfigReply
from rlgpt.agents.fences import blocks
from rlgpt.agents.parsing import parse


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    the_source_that_was_asked_for: str
    note: str


NOISE = st.one_of(
    st.text(max_size=80),
    st.text(alphabet='{}[]"\\`\n,:<>/think# ', max_size=80),
    st.sampled_from(
        [
            "<think>maybe {",
            "</think>",
            "```json\n",
            "\n```\n",
            "```",
            '{"a": ',
            "}",
            "]",
            '"',
            "// {",
            "/* ",
            '"""',
            "{{{",
        ]
    ),
)


@settings(max_examples=400, deadline=None)
@given(
    st.text(max_size=60), st.text(max_size=20), st.lists(NOISE, max_size=4), st.lists(NOISE, max_size=4), st.booleans()
)
@example("def f(view):\n    yield '}'\n", "{", ["<think>so: {"], ["</think> done }"], False)
@example('a = "</think>"', "```", ["```json\n"], ["\n```"], True)
def test_valid_json_wrapped_in_anything_is_found(
    source: str, note: str, before: list[str], after: list[str], indented: bool
) -> None:
    wanted = Answer(the_source_that_was_asked_for=source, note=note)
    text = json.dumps(wanted.model_dump(), indent=2 if indented else None)
    assert parse("".join(before) + text + "".join(after), Answer) == (wanted, "")


SOURCE = "def dig(view):\n    yield 'noop'\n"
GOOD = json.dumps({"source": SOURCE, "note": "n"})


@pytest.mark.parametrize(
    "text",
    [
        f'<think>The schema says {{source}}, so {{"source": 1}} will not do.</think>{GOOD}',
        f'I think {{x}} is best.\n```json\n{{"draft": 1}}\n```\nFinally:\n```json\n{GOOD}\n```\nDone.',
        f"```\n{GOOD}\n```",
        f"[{GOOD}]",
        f'{{"answer": {GOOD}}}',
        f'{{"name": "CodeReply", "arguments": {json.dumps(GOOD)}}}',
        json.dumps(GOOD),
        GOOD[:-1] + ",}",
        GOOD[:-1] + ", // the note says nothing\n}",
        GOOD.replace("\\n", "\n"),
        f'{{"source": """{SOURCE}""", "note": "n"}}',
        f"<|channel|>analysis<|message|>{{}}<|channel|>final<|message|>{GOOD}",
        f"{GOOD}\n\nThe JSON above follows {{the schema}}.",
        "\ufeff" + GOOD,
    ],
)
def test_what_language_models_really_write_is_read(text: str) -> None:
    reply, fault = parse(text, CodeReply)
    assert fault == "" and reply is not None and (reply.source, reply.note) == (SOURCE, "n")


def test_escapes_of_other_languages_are_taken_as_they_were_meant() -> None:
    reply, _ = parse('{"source": "yield \\\'noop\\\'", "note": "C:\\dig"}', CodeReply)
    assert reply is not None and reply.source == "yield \\'noop\\'" and reply.note == "C:\\dig"


def test_the_last_answer_counts() -> None:
    first, second = (json.dumps({"source": "", "note": note}) for note in ("draft", "final"))
    reply, _ = parse(f"{first}\nNo, wait:\n{second}", CodeReply)
    assert reply is not None and reply.note == "final"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "the reply is empty"),
        ("I cannot do that.", "malformed JSON: there is no JSON object"),
        (GOOD[:-4], "malformed JSON: "),
        ('{"note": "x"}', "wrong schema: source: Field required"),
        ('<think>{"a": 1}</think>{"note": "x"}', "wrong schema: source: Field required"),
        ('<think>{"source": "x"}</think>{"sauce": "x", "note": ""}', "wrong schema: source: Field required; sauce: "),
        ("[" * 5000 + "{" * 5000, "malformed JSON: "),
        ('{"a":' * 3000, "malformed JSON: "),
    ],
)
def test_what_is_no_reply_is_said_so_that_the_model_can_mend_it(text: str, fault: str) -> None:
    reply, said = parse(text, CodeReply)
    assert reply is None and said.startswith(fault)


STEP = {"name": "dig", "mode": "code", "goal": "g", "reason": "r", "done_when": "True", "max_steps": 9, "trigger": ""}
PLAN = {"executor": "sequence", "sub_actions": [STEP], "rationale": 'it\'s "so"\n\x1b'}
CONFIG = {
    "target": "t", "observation": ["f"], "reward": [{"term": "task", "weight": 1.0}], "primitives": [], "options": [],
    "horizon": 10, "env_steps": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        repr(PLAN),
        f"Here's the plan:\n```python\n{PLAN!r}\n```\nIt's done.",
        json.dumps(PLAN).replace('\\"', "''").replace('"', "“").replace("''", '\\"'),
        json.dumps(PLAN).replace('"executor": "sequence"', "“executor”: “sequence”"),
        re.sub(r'"(\w+)":', r"\1:", json.dumps(PLAN)),
        re.sub(r"'(\w+)':", r"\1 :", repr(PLAN)),
        json.dumps(PLAN).replace('"sub_actions"', '# it\'s the "plan" {\n"sub_actions"'),
        json.dumps(PLAN).replace(": ", ":\u00a0").replace(", ", ",\u202f"),
        json.dumps(PLAN).replace('"sequence"', '"Sequence"').replace('"code"', '" CODE"'),
        json.dumps(PLAN).replace("sub_actions", "subActions").replace("done_when", "DoneWhen"),
        json.dumps(PLAN).replace("sub_actions", "sub-actions").replace("max_steps", "Max Steps"),
        json.dumps(PLAN | {"sub_actions": {**STEP, "mode": "Code"}}).replace("done_when", "doneWhen"),
        json.dumps(PLAN | {"sub_actions": [STEP | {"trigger": None, "note": "n"}], "thoughts": ["hm"]}),
        repr(PLAN | {"sub_actions": [STEP | {"trigger": None}], "sure": True}),
    ],
)
def test_a_plan_with_the_slips_of_a_weak_model_is_the_plan(text: str) -> None:
    assert parse(text, PlanReply) == (PlanReply.model_validate(PLAN), "")


def test_a_reply_without_its_explanations_is_of_use() -> None:
    reply, _ = parse(json.dumps({"executor": "sequence", "sub_actions": [STEP | {"reason": None}]}), PlanReply)
    assert reply is not None and reply.rationale == reply.sub_actions[0].reason == ""
    judged, _ = parse('{"success": true, "confidence": 1, "advice_slow": null}', CritiqueReply)
    assert judged is not None and judged.advice_slow == judged.cause == ""


@pytest.mark.parametrize(
    ("tree", "contract"),
    [
        (PLAN | {"executor": None}, PlanReply),
        (PLAN | {"sub_actions": [{**STEP, "triger": "True"} | {"trigger": None}]}, PlanReply),
        (PLAN | {"sub_actions": [{k: v for k, v in STEP.items() if k != "trigger"} | {"triger": "True"}]}, PlanReply),
        (PLAN | {"subActions": []}, PlanReply),
        (PLAN | {"sub_actions": [STEP | {"Trigger": "True"}]}, PlanReply),
        (PLAN | {"sub_actions": [STEP | {"mode": "coded"}]}, PlanReply),
        (CONFIG | {"hyperparameters": {"Learning-Rate": "fast"}}, RlConfigReply),
        (CONFIG | {"hyperparameters": {"lr": 1e-3}}, RlConfigReply),
        (CONFIG | {"plan_priors": 0.5}, RlConfigReply),
    ],
)
def test_what_a_decision_waits_for_is_not_guessed(tree: dict[str, object], contract: type[BaseModel]) -> None:
    reply, fault = parse(json.dumps(tree), contract)
    assert reply is None and fault.startswith("wrong schema")


def test_a_hyperparameter_in_another_spelling_is_the_one_that_was_meant() -> None:
    reply, fault = parse(json.dumps(CONFIG | {"hyperparameters": {"learningRate": 1e-3, "n-envs": 4}}), RlConfigReply)
    assert reply is not None and fault == ""
    assert (reply.hyperparameters.learning_rate, reply.hyperparameters.n_envs) == (1e-3, 4)


def test_many_superfluous_fields_are_forgiven_at_once() -> None:
    """A thousand took 20 seconds: the schema was made anew for each."""
    schemas = []

    class Config(RlConfigReply):
        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            schemas.append(cls)
            return super().model_json_schema(*args, **kwargs)

    reply, fault = parse(json.dumps(CONFIG | {f"thought_{i}": "x" for i in range(1_000)}), Config)
    assert reply is not None and fault == "" and len(schemas) <= 1
    reply, fault = parse(json.dumps(CONFIG | {f"thought_{i}": "x" for i in range(10_000)}), Config)
    assert reply is None and fault.endswith("; and 9992 more")


def test_a_superfluous_field_that_is_nested_without_an_end_is_survived() -> None:
    reply, fault = parse('{"source": "x", "note": "n", "z": ' + "[" * 900 + "]" * 900 + "}", CodeReply)
    assert (reply is None) == bool(fault)


def test_an_inner_part_is_not_taken_for_the_whole() -> None:
    reply, said = parse('{"success": true, "confidence": 0.5, "cause": {"source": "x", "note": "y"}}', CritiqueReply)
    assert reply is None and said.startswith("wrong schema")


@pytest.mark.parametrize(
    "endless",
    [
        '{"the_source_that_was_asked_for": "x", ' + "/* x */ " * 60,
        '{"the_source_that_was_asked_for": "x", ' + "/* " * 200_000,
        '{"the_source_that_was_asked_for": "' + '\\"' * 200_000,
        '{"the_source_that_was_asked_for": ' + '\\"' * 200_000,
        "```python\n" * 100_000,
        '{"a":[1,' * 400 + "1," * 200_000,
        "{'a': '" + "\\'" * 150_000 + "}",
        "{'a': " + "'" * 299_997 + "}",
        "{a: " + "“ ‘ " * 99_000 + "}",
        "{a: " + "‘" * 299_000 + "}",
        "{a: “" + "\\“" * 150_000 + "}",
        "{a: " + "b" * 150_000 + " " * 150_000 + "}",
        "{#" * 150_000 + "}",
        "~" * 200_000 + "`",
    ],
    ids=[
        "closed comments",
        "open comments",
        "escapes in a text",
        "escapes",
        "fences",
        "braces",
        "quotes",
        "long quotes",
        "curly quotes",
        "small curly quotes",
        "escapes in curly quotes",
        "a long key",
        "hashes",
        "tildes",
    ],
)
def test_a_model_that_repeats_itself_without_an_end_is_read_through_at_once(endless: str) -> None:
    """Each took minutes to years: a reply is read in time linear in its length, whatever it never closes."""
    reply, fault = parse(endless, Answer)
    assert reply is None and fault.startswith("malformed JSON")
    good = json.dumps({"the_source_that_was_asked_for": "x", "note": "/* kept */ // too"})
    found, _ = parse(endless[:2000] + "\n</think>\n" + good, Answer)
    assert found is not None and found.note == "/* kept */ // too"


BLOCK = f"```python\n{SOURCE}```"
BRACES = "def dig(view):\n    yield {'source': 1}['source']\n"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (f"Here is the code:\n{BLOCK}\nIt digs {{once}}.", SOURCE),
        (f"```py\n{BRACES}```", BRACES),
        (f"```sh\npip install x\n```\n{BLOCK}", SOURCE),
        (f'{BLOCK}\n```json\n{{"source": "", "note": "see above"}}\n```', SOURCE),
        (f"{{'source': '', 'note': None}}\n{BLOCK}", SOURCE),
        (f"```python\n{{'source': '''{SOURCE}def end(): pass\n''', 'note': 'n'}}\n```", f"{SOURCE}def end(): pass\n"),
        (f'{{"source": "{SOURCE}  # the "best"", "note": "n"}}', f'{SOURCE}  # the "best"'),
        ('Sure: {"source": "x = view["a\\n"]", "note": "so \\"n\\""} Done.', 'x = view["a\n"]'),
    ],
)
def test_code_is_found_where_it_is_plain_which_it_is(text: str, source: str) -> None:
    reply, fault = parse(text, CodeReply)
    assert fault == "" and reply is not None and reply.source == source


@pytest.mark.parametrize(
    "text",
    [
        f"First:\n{BLOCK}\nor better:\n{BLOCK}",
        "It begins so:\n```python\nview.x\n```\nGood luck.",
        f'{BLOCK}\n{{"source": 1, "note": "n"}}',
        f"```\n{SOURCE}```",
        f"```python\n{SOURCE}",
        '{"source": "a = "b", "note": "c"", "note": "d"}',
    ],
)
def test_code_is_not_guessed_where_it_could_be_another(text: str) -> None:
    assert parse(text, CodeReply)[0] is None
    assert parse(BLOCK, CodeReply, False)[0] is None and parse(BLOCK, Answer)[0] is None


def test_code_in_the_object_is_not_replaced_by_a_block_beside_it() -> None:
    reply, _ = parse(f"Before it was\n```python\ndef old(): pass\n```\n{GOOD}", CodeReply)
    assert reply is not None and reply.source == SOURCE
    for text in (f"{BLOCK}\n{BLOCK}", "```python\nview.x\n```", "Nothing to do."):
        reply, _ = parse(f'{text}\n{{"source": "", "note": "n"}}', CodeReply)
        assert reply is not None and reply.source == ""


def test_blocks_between_fences_are_those_whose_end_is_there() -> None:
    text = '```json\n{"a": 1}\n```\n~~~~ x\n```\nb\n```\n~~~~\n````\nc\n```\n'
    assert [block.text for block in blocks(text)] == ['{"a": 1}\n', "```\nb\n```\n"]


def test_a_brace_that_is_missing_at_the_end_of_a_reply_that_is_over_is_no_fault() -> None:
    whole = json.dumps(PLAN)
    for text in (whole[:-1], f"Sure! {whole[:-1]}\n", f"```json\n{whole[:-1]}\n```", f"<think>{{</think>{whole[:-1]}"):
        assert parse(text, PlanReply, closes=True) == (PlanReply.model_validate(PLAN), "")
    rationale_first = json.dumps({"rationale": "r", "executor": "sequence", "sub_actions": [STEP]})
    reply, _ = parse(rationale_first[:-3] + ",", PlanReply, closes=True)
    assert reply is None
    reply, _ = parse(rationale_first[:-3], PlanReply, closes=True)
    assert reply is not None and reply.sub_actions[0].name == "dig"
    for cut_off in (parse(whole[:-1], PlanReply), parse(whole[:-1], PlanReply, False, True)):
        assert cut_off[0] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (json.dumps(PLAN)[:-1], "the reply ends before its JSON does: Expecting ',' delimiter"),
        (json.dumps(PLAN).rpartition(",")[0], "the reply ends before its JSON does: Expecting ',' delimiter"),
        (json.dumps(PLAN)[:-1] + ", ...}", "Expecting property name enclosed in double quotes"),
        (json.dumps(PLAN)[:-1] + ' "sure": yes}', "Expecting ',' delimiter"),
        ("It is {short}.\n" + json.dumps(PLAN)[:-1] + ' "sure": yes}', "Expecting ',' delimiter: line 2"),
        ('<think>{"a": </think>' + json.dumps(PLAN)[:-1] + ' "sure": yes}', "Expecting ',' delimiter"),
    ],
)
def test_of_json_that_breaks_the_break_is_told_and_not_what_its_parts_lack(text: str, said: str) -> None:
    reply, fault = parse(text, PlanReply)
    assert reply is None and fault.startswith(f"malformed JSON: {said}")


def test_of_json_that_can_be_read_its_mistakes_are_told_whatever_is_broken_beside_it() -> None:
    for text in ('{"executor": 1, "sub_actions": [], }', "{'executor': 1}", '{"a": b} {"executor": "x"}'):
        reply, fault = parse(text, PlanReply)
        assert reply is None and fault.startswith("wrong schema: executor: ")


DRAFT = '{"success": true, "confidence": 0.9, "cause": "draft", "advice_slow": "", "advice_fast": ""}'
FINAL = '{"success": false, "confidence": 0.8, "cause": "final", "advice_slow": "", "advice_fast": ""}'


@pytest.mark.parametrize(
    "text",
    [
        f"My idea:\n```json\n{DRAFT}\n```\nBut trial 2 shows that nothing changed. My answer:\n\n{FINAL}",
        f"My idea:\n{DRAFT}\nBut. My answer:\n```json\n{FINAL}\n```\nThat is all, {{as told}}.",
        f"```json\n{DRAFT}\n```\nNo. My answer:\n```json\n{FINAL}\n```",
        f"```json\n{DRAFT}\n```\nNo. My answer:\n{FINAL[:-1]},}}\n",
    ],
)
def test_an_answer_follows_its_drafts_with_a_fence_or_without(text: str) -> None:
    reply, fault = parse(text, CritiqueReply)
    assert not fault and reply is not None and reply.cause == "final"
