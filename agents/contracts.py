"""What the agents say, as pydantic models: the JSON schemas that language models answer in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rlgpt.store.plan_edits import LONGEST_FIELD, LONGEST_GOAL, MOST_ITEMS
from rlgpt.store.row_types import JsonObject

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Mode = Literal["code", "rl", "option"]
Executor = Literal["sequence", "policy"]
FOLLOW_PLAN = "follow_plan"
"""The option that runs the plan: a guard whose trigger holds, else the first step whose done_when is false."""

EXPLAINING = ("rationale", "reason", "note", "cause", "advice_slow", "advice_fast")
"""Fields that explain, and that no decision waits for: a reply is of use without them."""

_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*[\w+-]*")


def unfenced(source: str) -> str:
    """Without a byte order mark and the fence of Markdown that some models put around code."""
    source = source.removeprefix("\ufeff")
    lines = source.strip().splitlines(keepends=True)
    opening = _FENCE.fullmatch(lines[0].rstrip()) if len(lines) > 1 else None
    if opening is None or lines[-1].strip() != opening[1] or any(opening[1] in line for line in lines[1:-1]):
        return source
    return "".join(lines[1:-1]).removeprefix("\ufeff")


Source = Annotated[str, AfterValidator(unfenced)]


LONGEST_SOURCE = 16_384
"""Characters, and bytes, of a source: what the action host takes (training/host/sandbox/rules.py)."""


class Reply(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class SubTask(Reply):
    task: str
    """A task id of the world."""
    goal: str
    """What it leaves behind for those that follow, in one sentence."""
    reason: str
    """The recipe or danger that decided its place."""


class TaskPlanReply(Reply):
    """The task planner, for long-horizon tasks."""

    sub_tasks: list[SubTask] = Field(min_length=1, max_length=12)
    """In order, the task itself last."""
    reason: str
    """Why this order, in one or two sentences."""


class SubActionReply(Reply):
    """A step of the sequence, a guard, or an option that the policy alone calls."""

    name: Name
    """Lower-case letters, digits and underscores, a letter first; a verb and its object. Code is kept under it."""
    mode: Mode
    """code: the fast agent writes it. rl: PPO learns it. option: the fast agent writes it, the plan never runs it, and
    PPO learns when to call it. A guard is always code."""
    goal: str = Field(max_length=LONGEST_GOAL)
    """What it shall bring about, for the agent that writes the code."""
    reason: str = Field(max_length=LONGEST_FIELD)
    """Why it is needed and why this mode."""
    trigger: str = Field(default="", max_length=LONGEST_FIELD)
    """Empty for a step of the sequence. A guard has a Python expression over `start` and `view`: whenever it holds, the
    guard runs before the steps and interrupts them. An option has one too: its code is tried from where it holds."""
    done_when: str = Field(max_length=LONGEST_FIELD)
    """One Python expression over `start` and `view`: the step need not run, or the guard may stop."""
    max_steps: int = Field(ge=1, le=2000)
    """Env steps that one try may take."""


class PlanReply(Reply):
    """The slow agent, for a plan and for a refinement alike."""

    executor: Executor
    """sequence: code alone, one step after the other. policy: PPO chooses between primitives and coded actions."""
    sub_actions: list[SubActionReply] = Field(min_length=1, max_length=MOST_ITEMS)
    """In the order of need; guards in the order in which they may interrupt each other."""
    rationale: str
    """Why this plan, or what was changed and why, in two or three sentences."""


class CodeReply(Reply):
    """The fast agent writing a coded action: `source` defines one generator function named as the sub-action."""

    source: Source = Field(max_length=LONGEST_SOURCE)
    """The whole source; empty to keep the newest version as it is, or, where there is none, if it cannot be coded."""
    note: str
    """What this version does, or changed and why, in one or two sentences."""


class RewardTerm(Reply):
    term: Literal["task", "world", "step", "distance", "milestone", "generated"]
    """task: 1 at success. world: the world's published reward. step: 1 per env step (use a negative weight).
    distance: progress towards `argument`. milestone: 1 the first time `argument` is reached in an episode.
    generated: `argument` is the source hash of an admitted reward function, or empty for the one that comes with the
    reply (RlConfigAsked)."""
    argument: str = ""
    """Target of `distance`, name of `milestone`, hash of `generated`; empty for the others."""
    weight: float = Field(ge=-100.0, le=100.0)
    """What one unit of the term counts."""


EARLIER_NAMES = {"epochs": "n_epochs", "entropy": "ent_coef", "value_coefficient": "vf_coef"}
"""Hyperparameters as sessions recorded them before they had stable-baselines3's names."""


class Hyperparameters(Reply):
    """Of PPO, by stable-baselines3's names."""

    learning_rate: float = Field(default=3e-4, ge=0.0, le=1e-2)
    """Step size of Adam."""
    gamma: float = Field(default=0.99, ge=0.8, le=0.9999)
    """Discount per env step; an option of k env steps is discounted by gamma ** k."""
    gae_lambda: float = Field(default=0.95, ge=0.0, le=1.0)
    """Bias against variance of generalised advantage estimation, per decision."""
    clip_range: float = Field(default=0.2, ge=0.01, le=0.5)
    """How far a probability may move from its value in the rollout, as a ratio."""
    ent_coef: float = Field(default=0.01, ge=0.0, le=0.2)
    """Weight of the entropy, which is divided by the log of the number of valid joint actions."""
    vf_coef: float = Field(default=0.5, ge=0.0, le=10.0)
    """Weight of the value loss."""
    n_epochs: int = Field(default=4, ge=1, le=80)
    """Passes over a rollout."""
    batch_size: int = Field(default=512, ge=32, le=65_536)
    """Decisions in a minibatch."""
    n_envs: int = Field(default=8, ge=1, le=64)
    """Environments side by side."""
    n_steps: int = Field(default=256, ge=8, le=131_072)
    """Env steps of each environment between two updates: a rollout has n_steps * n_envs env steps."""
    target_kl: float | None = Field(default=0.03, gt=0.0, le=1.0)
    """An update ends early where the KL divergence exceeds 1.5 times this; null for never."""
    max_grad_norm: float = Field(default=0.5, gt=0.0, le=100.0)
    """The gradient is scaled down to this norm."""
    width: int = Field(default=64, ge=8, le=512)
    """Units of each hidden layer of policy and value network."""

    @model_validator(mode="before")
    @classmethod
    def _translate_earlier_names(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        values = {EARLIER_NAMES.get(name, name): value for name, value in values.items()}
        rollout = values.pop("rollout_env_steps", None)  # counted over all environments
        if isinstance(rollout, int) and "n_steps" not in values:
            n_envs = values.get("n_envs", cls.model_fields["n_envs"].default)
            values["n_steps"] = max(8, rollout // max(1, n_envs)) if isinstance(n_envs, int) else rollout
        return values


class SelfImitation(Reply):
    """Learning again from what went well; for successes that are rare but do occur."""

    mode: Literal["none", "paper", "oh2018"] = "none"
    """none; paper: cross-entropy on the best stored trajectories; oh2018: on whatever was better than its value."""
    weight: float = Field(default=1.0, ge=0.0, le=10.0)
    """Of its loss."""


class Recovery(Reply):
    """Training from where the plan alone fails; for a plan that is an option, and a world that can be restored."""

    share: float = Field(default=0.0, ge=0.0, le=0.9)
    """Share of training episodes that begin 20 to 60 decisions before the plan alone failed."""
    only_in_trouble: bool = False
    """The policy decides only for a while after a sign of trouble; elsewhere follow_plan runs."""


class Branches(Reply):
    """Advantages measured by restoring states of the rollout and playing on; for a world that can be restored."""

    decisions: int = Field(default=0, ge=0, le=256)
    """Of each rollout, whose advantage is measured; 0 for none. What is played is charged."""
    repeats: int = Field(default=4, ge=1, le=32)
    """How often each of two actions is played from such a state."""
    env_steps: int = Field(default=60, ge=1, le=1000)
    """After which the value estimate stands for the rest."""


SHORTEST, LONGEST = 10, 20_000
"""Env steps of a training episode."""


def training_horizon(horizon: int) -> int:
    """Of a task with this horizon. Episodes of a shorter one end by themselves, of a longer one they are cut off."""
    return max(SHORTEST, min(LONGEST, horizon))


class RlConfigReply(Reply):
    """The fast agent instantiating RL as a tool: what the policy sees, may do, is rewarded for, and for how long."""

    target: str
    """Milestone or success the policy is trained for; the last milestone of the task by default."""
    observation: list[str] = Field(min_length=1)
    """Subset of the world's feature names."""
    reward: list[RewardTerm] = Field(min_length=1, max_length=12)
    """The terms whose weighted sum is the reward of an env step."""
    primitives: list[str]
    """Subset of the world's primitives; may be empty when options are given."""
    options: list[Name]
    """Subset of the accepted sub-actions, and `follow_plan`."""
    option_prior: float = Field(default=0.5, gt=0.0, lt=1.0)
    """Total prior probability of all options together when they are activated."""
    plan_prior: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Prior probability of follow_plan; the other options share option_prior."""
    prior_kl: float = Field(default=0.0, ge=0.0, le=100.0)
    """Weight of the KL divergence from the policy as it was before the first update; falls to 0 over the run."""
    option_cap: int = Field(default=16, ge=1, le=200)
    """Env steps after which an option hands control back."""
    primitive_steps: int = Field(default=1, ge=1, le=16)
    """Env steps that a primitive is repeated for."""
    horizon: int = Field(ge=SHORTEST, le=LONGEST)
    """Env steps of a training episode."""
    env_steps: int = Field(ge=0, le=100_000_000)
    """Of this training."""
    hyperparameters: Hyperparameters = Hyperparameters()
    self_imitation: SelfImitation = SelfImitation()
    recovery: Recovery = Recovery()
    branches: Branches = Branches()
    note: str = ""
    """What was changed and why."""


def with_fields(config: RlConfigReply, fields: JsonObject) -> RlConfigReply:
    """The configuration with these fields in place of its own; of a part, such as the hyperparameters, only what is
    named. Raises pydantic's ValidationError."""
    tree = config.model_dump()
    for name, value in fields.items():
        own = tree.get(name)
        tree[name] = {**own, **value} if isinstance(own, dict) and isinstance(value, Mapping) else value
    return RlConfigReply.model_validate(tree)


class RlConfigAsked(RlConfigReply):
    """What the fast agent answers: a configuration and, if it wants one, the source of a reward function of its own."""

    reward_source: Source = Field(default="", max_length=LONGEST_SOURCE)
    """Defines `reward(before, view)`, which returns a number; used by the `generated` term without argument."""


class CritiqueReply(Reply):
    """The critic on one sub-action, or on an iteration."""

    success: bool
    """Whether the goal, or the target of the iteration, is reached."""
    confidence: float = Field(ge=0.0, le=1.0)
    """0.5: cannot be told from what is shown; 1: plain."""
    cause: str
    """What went wrong most, with the values that show it."""
    advice_slow: str
    """What to change in the plan; empty if nothing."""
    advice_fast: str
    """What to change in code or configuration; empty if nothing."""
