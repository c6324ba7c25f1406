"""What the agents say, as pydantic models: the JSON schemas that language models answer in."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Mode = Literal["code", "rl"]
Executor = Literal["sequence", "policy"]


class Reply(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class SubTask(Reply):
    task: str
    """A task id of the world."""
    goal: str
    reason: str


class TaskPlanReply(Reply):
    """The task planner, for long-horizon tasks."""

    sub_tasks: list[SubTask] = Field(min_length=1, max_length=12)
    reason: str


class SubActionReply(Reply):
    name: Name
    mode: Mode
    goal: str = Field(max_length=400)
    reason: str = Field(max_length=600)
    done_when: str = Field(max_length=600)
    """One Python expression over `start` and `view`."""
    max_steps: int = Field(ge=1, le=2000)


class PlanReply(Reply):
    """The slow agent, for a plan and for a refinement alike."""

    executor: Executor
    sub_actions: list[SubActionReply] = Field(min_length=1, max_length=24)
    rationale: str


class CodeReply(Reply):
    """The fast agent writing a coded action: `source` defines one generator function named as the sub-action."""

    source: str = Field(max_length=20_000)
    note: str


class RewardTerm(Reply):
    term: Literal["task", "world", "step", "distance", "milestone", "generated"]
    """task: 1 at success. world: the world's published reward. step: 1 per env step (use a negative weight).
    distance: progress towards `argument`. milestone: 1 the first time `argument` is reached in an episode.
    generated: `argument` is the source hash of an admitted reward function, or empty for the one that comes with the
    reply (RlConfigAsked)."""
    argument: str = ""
    weight: float = Field(ge=-100.0, le=100.0)


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
    mode: Literal["none", "paper", "oh2018"] = "none"
    weight: float = Field(default=1.0, ge=0.0, le=10.0)


class Recovery(Reply):
    """Training from where the plan alone fails; for a plan that is an option, and a world that can be restored."""

    share: float = Field(default=0.0, ge=0.0, le=0.9)
    """Share of training episodes that begin 20 to 60 decisions before the plan alone failed."""
    only_in_trouble: bool = False
    """The policy decides only for a while after a sign of trouble; elsewhere follow_plan runs."""


class RlConfigReply(Reply):
    """The fast agent instantiating RL as a tool: what the policy sees, may do, is rewarded for, and for how long."""

    target: str
    """Milestone or success the policy is trained for; the last milestone of the task by default."""
    observation: list[str] = Field(min_length=1)
    """Subset of the world's feature names."""
    reward: list[RewardTerm] = Field(min_length=1, max_length=12)
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
    primitive_steps: int = Field(default=1, ge=1, le=16)
    """Env steps that a primitive is repeated for."""
    horizon: int = Field(ge=10, le=20_000)
    env_steps: int = Field(ge=0, le=100_000_000)
    hyperparameters: Hyperparameters = Hyperparameters()
    self_imitation: SelfImitation = SelfImitation()
    recovery: Recovery = Recovery()
    note: str = ""


class RlConfigAsked(RlConfigReply):
    """What the fast agent answers: a configuration and, if it wants one, the source of a reward function of its own."""

    reward_source: str = Field(default="", max_length=20_000)
    """Defines `reward(before, view)`, which returns a number; used by the `generated` term without argument."""


class CritiqueReply(Reply):
    """The critic on one sub-action, or on an iteration."""

    success: bool
    confidence: float = Field(ge=0.0, le=1.0)
    cause: str
    advice_slow: str
    advice_fast: str
