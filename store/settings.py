"""The settings of a session: one tree, from `rlgpt.toml`, then `RLGPT_*` variables, then flags.

Stored whole in the session's first row and never re-decided. No field may hold a secret: keys come from the
environment variable named by `llm.api_key_env`, in the worker.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from rlgpt.store.errors import BadSchema
from rlgpt.store.home import FILE, home, read_toml
from rlgpt.store.limits import MOST_SLOTS, OFFLINE, SLOTS
from rlgpt.store.plain import is_plain
from rlgpt.store.providers import ProviderName
from rlgpt.store.urls import checked_url

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

PREFIX = "RLGPT_"
_OTHERS = re.compile(r"RLGPT_(HOME|STORE|GAMES_ON|SESSION_FOLDER|NUMBA|MINECLIP_WEIGHTS|MINEDOJO_\w+|TEST_\w+)\Z")
"""Variables of ours that are no settings of a session."""

Device = Literal["auto", "cpu", "cuda"]
Observation = Literal["symbolic", "pixels"]
Critic = Literal["model", "human", "none"]
HostMode = Literal["locked", "process", "trusted"]


class Refused(ValueError):
    """Settings that cannot be; the argument is the sentence for the operator."""


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)  # JSON has neither

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_value_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Pydantic takes `seed = true` for seed 1."""
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation is not bool:
            raise ValueError("cannot be true or false")
        return value


Url = Annotated[str, AfterValidator(checked_url)] | None


Variable = Annotated[str | None, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
CAPS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
OURS = ("model", "messages", "input", "stream", "stream_options", "response_format", "n", *CAPS,
        "tools", "tool_choice", "functions", "function_call")  # fmt: skip
"""Parameters of a request that `llm.extra` may not replace."""


def _no_parameter_of_ours(extra: dict[str, Any]) -> dict[str, Any]:
    reserved = [name for name in extra if name in OURS]
    if reserved:
        instead = ": --max-tokens-per-call gives it" if reserved[0] in CAPS else ""
        raise ValueError(f"may not set {reserved[0]}, which rlgpt sets itself{instead}")
    secret = [name for name in extra if re.search("api.?key|secret|password|authorization", name, re.IGNORECASE)]
    if secret:
        raise ValueError("must hold no key or password: put the key in the variable that llm.api_key_env names")
    if not is_plain(extra):
        raise ValueError("must hold nothing that JSON does not, such as NaN, a date or an endless number")
    return extra


Extra = Annotated[dict[str, Any], AfterValidator(_no_parameter_of_ours)]


LONGEST_TIMEOUT = 1_000_000.0
"""Seconds; of much more no clock of the system can be set."""


class RoleSettings(Part):
    """What differs for one role; None takes the session's value."""

    provider: ProviderName | None = None
    model: str | None = None
    base_url: Url = None
    api_key_env: Variable = None
    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    timeout: float | None = Field(default=None, gt=0.0, le=LONGEST_TIMEOUT)
    max_tokens: int | None = Field(default=None, ge=256)
    parallel: int | None = Field(default=None, ge=1, le=64)
    reasoning_effort: str | None = None
    extra: Extra = Field(default_factory=dict)
    price_in: float | None = Field(default=None, ge=0.0)
    """USD per million tokens; None: the built-in table, else unknown."""
    price_out: float | None = Field(default=None, ge=0.0)
    price_cached: float | None = Field(default=None, ge=0.0)
    """Of prompt tokens from the server's cache; None: as the others."""


class LlmSettings(Part):
    kind: str = Field(default="rules", pattern=r"^(rules|openai|replay:[A-Za-z0-9_.\-]+)$")
    """`rules`, `openai` (any server that speaks Chat Completions) or `replay:SESSION`."""
    provider: ProviderName | None = None
    model: str = "gpt-5-mini"
    base_url: Url = None
    api_key_env: Variable = None
    """The variable that holds the key; None: the one that belongs to the host (agents/providers.py)."""
    temperature: float = Field(default=0.0, ge=0.0, le=2.0)
    timeout: float = Field(default=300.0, gt=0.0, le=LONGEST_TIMEOUT)
    """Seconds of silence after which a try is given up."""
    max_tokens: int = Field(default=16_000, ge=256)
    """Cap on one reply, thoughts included; lowered where a server says that less fits."""
    parallel: int | None = Field(default=None, ge=1, le=64)
    """Calls that may be under way at once; None: 8, and 1 for a server on this machine."""
    probes: int | None = Field(default=None, ge=0, le=50)
    """Tools that a model may call before it answers one question about code; None: 6 where the provider is known to
    have function calling, else 0."""
    probes_per_session: int = Field(default=200, ge=0)
    stream: bool = True
    api: Literal["chat", "responses"] = "chat"
    """The Responses API is taken by itself where a server says that a model lives there only."""
    patience: float = Field(default=12.0, ge=0.0)
    """Hours that a server may be away before the session ends; 0: six tries, half a minute."""
    reasoning_effort: str | None = None
    """minimal, low, medium, high: as the model takes it."""
    extra: Extra = Field(default_factory=dict)
    """Further parameters of the request, word for word: service_tier, chat_template_kwargs ..."""
    price_in: float | None = Field(default=None, ge=0.0)
    """USD per million tokens, for every role that has no price of its own."""
    price_out: float | None = Field(default=None, ge=0.0)
    price_cached: float | None = Field(default=None, ge=0.0)
    roles: dict[Literal["planner", "slow", "fast", "critic"], RoleSettings] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _a_provider_is_no_rule_based_model(self) -> LlmSettings:
        if "kind" not in self.model_fields_set and self.provider is not None:
            self.kind = "openai"
        return self


class Budget(Part):
    """Where a session ends cleanly; None: no limit."""

    env_steps: int | None = Field(default=1_000_000, ge=1)
    """Trials, their prefixes, probes and training; evaluation is free."""
    cost: float | None = Field(default=5.0, ge=0.0)
    """USD."""
    tokens: int | None = Field(default=2_000_000, ge=1)
    hours: float | None = Field(default=None, gt=0.0)
    """Of active time."""
    daily_cost: float | None = Field(default=20.0, ge=0.0)
    """USD over all sessions of this store since midnight UTC."""


class LoopSettings(Part):
    """The constants of the two loops (`agents/loop.py`, Limits)."""

    iterations: int = Field(default=3, ge=0, le=100)
    """Refinements after iteration 0."""
    inner: int = Field(default=3, ge=1, le=10)
    """Attempts at the code of a sub-action in an iteration."""
    candidates: int = Field(default=1, ge=1, le=8)
    """Drafts of an attempt, each tried on the same seeds."""
    step_ms: float = Field(default=20.0, gt=0.0, le=250.0)
    """CPU time per env step that a coded action may take in its trials, in milliseconds."""
    depth: int = Field(default=2, ge=0, le=5)
    target: float = Field(default=0.95, gt=0.0, le=1.0)
    dev_first: int = Field(default=20, ge=1, le=1000)
    dev_more: int = Field(default=30, ge=0, le=1000)
    test_episodes: int = Field(default=100, ge=1, le=10_000)


class MethodSettings(Part):
    """How much of the method is in force: what the arms of an experiment differ in."""

    label: str = Field(default="", max_length=40)
    """What an experiment calls this arm."""
    arm: Literal["rlgpt", "code", "rl"] = "rlgpt"
    """`code`: everything is coded and PPO never runs; `rl`: nothing is coded; whatever the slow agent answers."""
    reward: Literal["designed", "published", "success"] = "designed"
    """In place of the fast agent's: `published`, the world's own; `success`, 1 when the task is done and nothing else
    (where a score counts milestones nothing is ever done: the world's own)."""
    plan: Literal["revised", "fixed"] = "revised"
    """`fixed`: the slow agent is asked once per sub-task; neither failed code nor a verdict changes its plan."""
    warm: bool = True
    """Whether PPO starts from the incumbent where it can."""
    rl: dict[str, Any] = Field(default_factory=dict)
    """Fields of the RL configuration (`agents/contracts.py`, RlConfigReply) in place of the fast agent's."""
    whole_budget: bool = False
    """PPO gets all env steps that are left in its last pass, and before it at most an equal share."""
    uncoded: tuple[str, ...] = ()
    """Sub-actions, by name, that get no code: RL-GPT leaves them to RL, code alone goes without them."""
    controls: tuple[Literal["plan", "random", "prior", "script"], ...] = ()
    """Tested beside the incumbent on the same seeds (`training/steps/judging.py`, policy_of)."""


class LimitSettings(Part):
    """Of this machine, not of the session's result."""

    host_slots: int = Field(default=SLOTS, ge=1, le=MOST_SLOTS)
    """Sessions that train at once; others are queued."""
    exact: bool = False
    """Compute as every other machine with AVX2 does, bit for bit, if more slowly."""
    offline: float = Field(default=OFFLINE, gt=0.0)
    """Minutes that the team's store may be away before the session pauses."""


class Settings(Part):
    task: str
    world: str = "crafter"
    name: str = ""
    """Shown beside the id; the task and the seed when empty."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    device: Device = "auto"
    kernel: Literal["eager", "compiled"] = "eager"
    """How PPO's updates are computed (training/ppo/ppo.py)."""
    observation: Observation = "symbolic"
    """What a policy sees: features of the world sheet that the fast agent chooses, or the world's picture."""
    skills: str = Field(default="all", pattern=r"^(none|all|[0-9a-f]{6,64})$")
    critic: Critic = "model"
    host_mode: HostMode = "locked"
    review: bool = False
    """Every plan waits for the operator's approval."""
    review_timeout: float | None = Field(default=None, gt=0.0)
    """Minutes of waiting before `review_then` happens; None: wait for ever."""
    review_then: Literal["continue", "stop"] = "continue"
    llm: LlmSettings = Field(default_factory=LlmSettings)
    budget: Budget = Field(default_factory=Budget)
    loop: LoopSettings = Field(default_factory=LoopSettings)
    method: MethodSettings = Field(default_factory=MethodSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)


def _of_file(path: Path) -> dict[str, Any]:
    """What `rlgpt.toml` sets; it may also say where a team's store is, which is no setting of a session (stores.py).
    Raises OSError, ValueError."""
    tree = read_toml(path) if path.is_file() else {}
    return {name: value for name, value in tree.items() if name != "store"}


class _Layers(BaseSettings, Settings):
    """The same tree, filled from flags over the environment over the files."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        here, at_home = (InitSettingsSource(settings_cls, _of_file(path)) for path in (Path(FILE), home() / FILE))
        return init_settings, env_settings, here, at_home


def settle(flags: Mapping[str, Any]) -> Settings:
    """The settings of a new session: `flags` (a tree) over the environment over the files. Raises Refused."""
    try:
        settings = Settings.model_validate(_Layers(**flags).model_dump(exclude_unset=True))
    except ValidationError as error:
        raise Refused(_sentence(error)) from error
    except SettingsError as error:
        raise Refused(_of_variable(error)) from error
    except (OSError, ValueError) as error:
        raise Refused(f"{FILE} cannot be read: {error}") from error
    require_name(settings.name)
    _no_stranger({settings.llm.api_key_env, *(role.api_key_env for role in settings.llm.roles.values())})
    return settings


def _of_variable(error: SettingsError) -> str:
    """Which variable holds a part of the tree that is no JSON; pydantic-settings names the field alone."""
    cause = error.__cause__
    if isinstance(cause, json.JSONDecodeError):
        for name, value in os.environ.items():
            if name.upper().startswith(PREFIX) and value == cause.doc:
                return f"the variable {name} must hold JSON, and does not: {cause}"
    return str(error)


MOST_LETTERS = 100
"""Of a session's name: a list has a column for it."""


def require_name(name: str) -> None:
    """Raises Refused for a name by which its session could not be found."""
    if name == "last":
        raise Refused("a session cannot be called last: that word stands for the newest one")
    if len(name) > MOST_LETTERS:
        raise Refused(f"a session's name has at most {MOST_LETTERS} letters, not {len(name)}")


def changed(tree: Mapping[str, Any]) -> Settings:
    """The settings of a session with some of them changed, taken as they are. Raises Refused."""
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise Refused(_sentence(error)) from error


RETIRED = ("n_envs", "threads")
"""Settings of earlier versions that nothing ever read; the rows of their sessions still hold them."""


def stored(tree: Mapping[str, Any]) -> Settings:
    """The settings of a session row, taken as they are: no file and no variable has a say. Raises BadSchema."""
    try:
        return Settings.model_validate({key: value for key, value in tree.items() if key not in RETIRED})
    except ValidationError as error:
        words = f"the settings of a session are none of this rlgpt's, but perhaps of a newer one: {_sentence(error)}"
        raise BadSchema(words) from error


def fault_of(tree: Mapping[str, Any]) -> str:
    """What no version of rlgpt can have written into the settings of a session row, in one sentence, else "". A setting
    that is not known here may be of a newer one."""
    try:
        Settings.model_validate({key: value for key, value in tree.items() if key not in RETIRED})
    except ValidationError as error:
        mistakes = error.errors(include_url=False)
        return _clauses(m for m in mistakes if m["type"] not in ("extra_forbidden", "literal_error"))
    return ""


def _no_stranger(keys: set[str | None]) -> None:
    """Raises Refused for a variable that looks like a setting and is none: pydantic-settings would overlook it."""
    for name in sorted(os.environ):
        field, inner, _ = name.upper().removeprefix(PREFIX).partition("__")
        known = _GROUPS if inner else Settings.model_fields  # RLGPT_REVIEW__TIMEOUT is no part of `review`
        if not name.upper().startswith(PREFIX) or name in keys or field.lower() in known or _OTHERS.match(name):
            continue
        names = [place.replace(".", "__").upper() for place in _places(Settings)]
        close = difflib.get_close_matches(name.upper().removeprefix(PREFIX), names, 1, 0.0)
        raise Refused(f"the variable {name} is no setting of rlgpt: did you mean {PREFIX}{close[0]}? Else unset it")


def _places(model: type[BaseModel], before: str = "") -> Iterator[str]:
    """Every setting, such as `loop.iterations`."""
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _places(inner, f"{before}{name}.")
        else:
            yield before + name


_GROUPS = frozenset(place.partition(".")[0] for place in _places(Settings) if "." in place)


def _sentence(error: ValidationError) -> str:
    """`budget.cost must be greater than or equal to 0 (got -1)`, one clause a mistake."""
    return _clauses(error.errors(include_url=False))


def _clauses(mistakes: Iterable[ErrorDetails]) -> str:
    clauses = []
    for mistake in mistakes:
        place = ".".join(str(part) for part in mistake["loc"])
        if mistake["type"] == "extra_forbidden":
            close = difflib.get_close_matches(place, _places(Settings), 1)
            clauses.append(f"there is no setting called {place}" + (f"; did you mean {close[0]}?" if close else ""))
        elif mistake["type"] == "model_type":
            clauses.append(f"{place} is a group of settings, not {mistake['input']!r:.100}")
        elif mistake["type"] == "missing":
            clauses.append(f"{place} is missing")
        else:
            rule = mistake["msg"].removeprefix("Input ").removeprefix("String ").removeprefix("Value error, ")
            shown = "" if place.endswith("base_url") else f" (got {mistake['input']!r:.100})"
            clauses.append(f"{place} {rule}{shown}")
    return "; ".join(clauses)
