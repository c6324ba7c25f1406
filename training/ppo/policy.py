"""The actor-critic: stable-baselines3's ActorCriticPolicy over named features and masked heads."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, NatureCNN
from torch import nn

from rlgpt.training.options.observation import Observation
from rlgpt.training.options.slots import ActionSpace
from rlgpt.training.ppo.distribution import JointActions
from rlgpt.training.worlds.protocol import WorldFailed

EMBEDDING = 4
"""Width of a category's embedding, shared by all positions of its feature."""
TRUNK = 128
PIXEL_FEATURES = 256
LAYERS, PLAIN_LAYERS = 1, 2
"""Hidden layers of policy and value network each, behind the shared layer of categories or pictures and without one."""


class NamedFeatures(BaseFeaturesExtractor):
    """Scalars and categories, these through embeddings, through one shared layer; scalars scaled to [0, 1] before it.

    Without categories it is the identity on scalars in [-1, 1], so the network is stock SB3's MlpPolicy, and an offset
    of 0 is an input of 0.
    """

    scalars: th.Tensor
    low: th.Tensor
    scale: th.Tensor
    tables: nn.ModuleList
    trunk: nn.Linear | None

    def __init__(self, observation_space: spaces.Box, layout: Observation) -> None:
        features = (*layout.features, *layout.own)
        starts = np.cumsum([0, *(feature.size for feature in features)])
        scalars: list[int] = []
        low: list[float] = []
        scale: list[float] = []
        embedded: list[tuple[int, int, int]] = []
        names: list[str] = []
        categories = any(feature.categories for feature in features)
        for feature, start in zip(features, starts, strict=False):
            if feature.categories:
                embedded.append((int(start), feature.size, feature.categories))
                names.append(feature.name)
                continue
            least = feature.low if categories else 0.0
            scalars.extend(range(int(start), int(start) + feature.size))
            low.extend([least] * feature.size)
            # A feature without categories beside it keeps its 0, so one that ends at 0 is scaled by its lower bound.
            scale.extend([1.0 / (feature.high - least or -feature.low)] * feature.size)
        width = len(scalars) + EMBEDDING * sum(size for _, size, _ in embedded)
        super().__init__(observation_space, TRUNK if embedded else len(scalars))
        self.embedded, self.names = embedded, names
        self.register_buffer("scalars", th.tensor(scalars, dtype=th.int64))
        self.register_buffer("low", th.tensor(low))
        self.register_buffer("scale", th.tensor(scale))
        self.tables = nn.ModuleList(nn.Embedding(count, EMBEDDING) for _, _, count in embedded)
        self.trunk = nn.Linear(width, TRUNK) if embedded else None

    def expect_categories(self, observations: NDArray[Any]) -> None:
        """Raises WorldFailed for a category that there is not: a table of numpy has a row for -1 too, its last."""
        for name, (start, size, count) in zip(self.names, self.embedded, strict=True):
            given = observations[:, start : start + size]
            if given.size and not (given.min() >= 0 and given.max() < count):
                bad = given[(given < 0) | (given >= count)][0]
                raise WorldFailed(f"The world observed {name} = {bad:g}, which has the categories 0 to {count - 1}.")

    def forward(self, observations: th.Tensor) -> th.Tensor:
        values = (observations.index_select(1, self.scalars) - self.low) * self.scale
        if self.trunk is None:
            return values
        parts = [values]
        for table, (start, size, _) in zip(self.tables, self.embedded, strict=True):
            parts.append(_embed(table, observations[:, start : start + size]))
        return th.tanh(self.trunk(th.cat(parts, 1)))


class PictureFeatures(BaseFeaturesExtractor):
    """SB3's NatureCNN on the picture, joined by the scalars that follow it."""

    def __init__(self, observation_space: spaces.Box, layout: Observation) -> None:
        if layout.picture is None:
            raise ValueError("PictureFeatures needs a picture")
        height, width, depth = layout.picture
        super().__init__(observation_space, PIXEL_FEATURES + len(layout.own))
        self.shape = (height, width, depth)
        self.cnn = NatureCNN(spaces.Box(0, 255, (depth, height, width), np.uint8), PIXEL_FEATURES)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        count = self.shape[0] * self.shape[1] * self.shape[2]
        values = observations.float() / 255.0
        picture = values[:, :count].view(-1, *self.shape).permute(0, 3, 1, 2)
        return th.cat([self.cnn(picture), values[:, count:]], 1)


class OptionPolicy(ActorCriticPolicy):
    """Value and masked joint action distribution of one observation layout and one set of heads."""

    action_net: nn.Linear
    value_net: nn.Linear

    def __init__(
        self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any], lr_schedule: Any,
        *, layout: Observation, primitives: int, width: int = 64, **kwargs: Any,
    ) -> None:  # fmt: skip
        self.layout = layout
        plain = not layout.picture and not any(f.categories for f in layout.features)
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            net_arch={part: [width] * (PLAIN_LAYERS if plain else LAYERS) for part in ("pi", "vf")},
            features_extractor_class=PictureFeatures if layout.picture else NamedFeatures,
            features_extractor_kwargs={"layout": layout},
            normalize_images=False,
            **kwargs,
        )
        sizes = (
            (int(action_space.n),)
            if isinstance(action_space, spaces.Discrete)
            else tuple(int(n) for n in action_space.nvec)  # type: ignore[attr-defined]
        )
        self.joint = JointActions(sizes, primitives)

    def rows(self, observations: NDArray[Any]) -> th.Tensor:
        """What a world observed, on the policy's device. Raises WorldFailed."""
        if isinstance(self.features_extractor, NamedFeatures):
            self.features_extractor.expect_categories(observations)
        return th.as_tensor(observations, device=self.device)

    def outputs(self, observations: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Logits (n, total) and values (n,)."""
        latent_pi, latent_vf = self.mlp_extractor(self.features_extractor(observations))
        return self.action_net(latent_pi), self.value_net(latent_vf).squeeze(1)

    def logits(self, observations: th.Tensor) -> th.Tensor:
        logits: th.Tensor = self.action_net(self.mlp_extractor.forward_actor(self.features_extractor(observations)))
        return logits

    def values(self, observations: th.Tensor) -> th.Tensor:
        values: th.Tensor = self.value_net(self.mlp_extractor.forward_critic(self.features_extractor(observations)))
        return values.squeeze(1)

    def evaluate_masked(
        self, observations: th.Tensor, mask: th.Tensor, actions: th.Tensor
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
        """Values, log probabilities and normalised entropies, each (n,)."""
        logits, values = self.outputs(observations)
        log_prob, entropy = self.joint.evaluate(logits, mask, actions)
        return values, log_prob, entropy


def gym_spaces(layout: Observation, space: ActionSpace) -> tuple[spaces.Box[Any], spaces.Space[Any]]:
    """The spaces that stable-baselines3 sees."""
    box: spaces.Box[Any]
    if layout.picture:
        box = spaces.Box(0, 255, (layout.size,), np.uint8)
    else:
        box = spaces.Box(-np.inf, np.inf, (layout.size,), np.float32)
    sizes = space.sizes
    actions: spaces.Space[Any] = spaces.Discrete(sizes[0]) if len(sizes) == 1 else spaces.MultiDiscrete(list(sizes))
    return box, actions


def network_hash(policy: OptionPolicy) -> str:
    """Equal for networks whose parameters fit each other."""
    text = repr([(name, tuple(tensor.shape)) for name, tensor in policy.state_dict().items()])
    return hashlib.blake2b((text + policy.layout.fingerprint()).encode(), digest_size=8).hexdigest()


class Actor:
    """Logits for the next decisions, outside autograd.

    Symbolic networks on the CPU run in numpy: for the few rows of a tick torch's dispatch costs more than
    the arithmetic. Others run in torch on the policy's device.
    """

    def __init__(self, policy: OptionPolicy) -> None:
        self.policy = policy
        extractor = policy.features_extractor
        self._named = extractor if isinstance(extractor, NamedFeatures) and policy.device.type == "cpu" else None
        self._layers: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []
        self._tables: list[NDArray[np.float32]] = []
        self.refresh()

    def refresh(self) -> None:
        """Take over the policy's parameters after an update."""
        extractor, policy = self._named, self.policy
        if extractor is None:
            return
        linears = [layer for layer in policy.mlp_extractor.policy_net if isinstance(layer, nn.Linear)]
        linears.append(policy.action_net)
        if extractor.trunk is not None:
            linears.insert(0, extractor.trunk)
        self._layers = [
            (np.ascontiguousarray(layer.weight.detach().numpy().T), layer.bias.detach().numpy().copy())
            for layer in linears
        ]
        self._tables = [table.weight.detach().numpy().copy() for table in _embeddings(extractor)]
        self._low = extractor.low.numpy()
        self._scale = extractor.scale.numpy()
        self._scalars = extractor.scalars.numpy()

    def logits(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """(n, total) from (n, size). Raises WorldFailed."""
        if self._named is None:
            with th.no_grad():
                result: NDArray[np.float32] = self.policy.logits(self.policy.rows(observations)).cpu().numpy()
                return result
        self._named.expect_categories(observations)
        x: NDArray[Any] = (observations[:, self._scalars] - self._low) * self._scale
        if self._tables:
            parts = [x]
            for table, (start, size, _) in zip(self._tables, self._named.embedded, strict=True):
                ids = observations[:, start : start + size].astype(np.intp)
                parts.append(table[ids].reshape(len(ids), -1))
            x = np.concatenate(parts, 1)
        for weight, bias in self._layers[:-1]:
            x = np.tanh(x @ weight + bias)
        weight, bias = self._layers[-1]
        x = x @ weight + bias
        return x.astype(np.float32, copy=False)


def _embed(table: nn.Module, ids: th.Tensor) -> th.Tensor:
    """(n, size * width). A product with one-hot rows: for a handful of categories its gradient is a small
    matrix product, where an index lookup's would be summed entry by entry."""
    assert isinstance(table, nn.Embedding)
    rows = th.eye(table.num_embeddings, dtype=table.weight.dtype, device=ids.device)
    return (rows.index_select(0, ids.flatten().long()) @ table.weight).view(len(ids), -1)


def _embeddings(extractor: NamedFeatures) -> list[nn.Embedding]:
    return [table for table in extractor.tables if isinstance(table, nn.Embedding)]
