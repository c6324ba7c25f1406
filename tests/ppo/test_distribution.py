"""The masked joint distribution against enumeration."""

import itertools
from math import log

import pytest
import torch as th

from rlgpt.training.ppo.distribution import JointActions

LOGITS = th.tensor([[0.3, -1.0, 2.0, 0.5, 1.1, 0.2, -0.7]], dtype=th.float32)
"""A first head of 2 primitives and 3 slots, a second head of 2."""
MASK = th.tensor([[True, True, True, False, True, True, True]])
JOINT = JointActions((5, 2), 2)


def _joint_probabilities() -> dict[tuple[int, int], float]:
    first = th.softmax(LOGITS[0, :5].masked_fill(~MASK[0, :5], -th.inf), 0)
    second = th.softmax(LOGITS[0, 5:].masked_fill(~MASK[0, 5:], -th.inf), 0)
    result = {}
    for a, b in itertools.product(range(5), range(2)):
        if a < 2:
            result[a, b] = float(first[a] * second[b])
        elif b == 0:
            result[a, 0] = float(first[a])
    return result


def test_log_probabilities_and_entropy_are_those_of_the_joint_actions() -> None:
    p = _joint_probabilities()
    assert sum(p.values()) == pytest.approx(1)
    entropy = -sum(x * log(x) for x in p.values() if x > 0) / log(2 * 2 + 2)
    for action, probability in p.items():
        got, h = JOINT.evaluate(LOGITS, MASK, th.tensor([action]))
        assert float(h[0]) == pytest.approx(entropy, abs=1e-6)
        if probability > 0:
            assert float(got[0].exp()) == pytest.approx(probability, abs=1e-6)


def test_the_second_head_is_inactive_under_an_option() -> None:
    other = LOGITS.clone()
    other[0, 5:] = th.tensor([4.0, -4.0])
    option, primitive = th.tensor([[2, 0]]), th.tensor([[0, 1]])
    assert JOINT.evaluate(LOGITS, MASK, option)[0] == JOINT.evaluate(other, MASK, option)[0]
    assert JOINT.evaluate(LOGITS, MASK, primitive)[0] != JOINT.evaluate(other, MASK, primitive)[0]


def test_uniform_over_the_valid_actions_has_entropy_1() -> None:
    single = JointActions((5,), 2)
    mask = th.tensor([[True, False, True, True, False], [False, True, False, False, False]])
    _, entropy = single.evaluate(th.zeros(2, 5), mask, th.zeros(2, 1, dtype=th.int64))
    assert entropy.tolist() == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("sizes", [(5,), (5, 2, 3)])
def test_the_divergence_is_that_of_the_joint_actions(sizes: tuple[int, ...]) -> None:
    joint = JointActions(sizes, primitives=3)
    generator = th.Generator().manual_seed(1)
    logits, others = (th.randn(1, sum(sizes), generator=generator) for _ in range(2))
    mask = th.ones(1, sum(sizes), dtype=th.bool)
    mask[0, 1] = False
    rest = list(itertools.product(*(range(size) for size in sizes[1:])))
    actions = [(first, *more) for first in (0, 2) for more in rest] + [(3, *rest[0]), (4, *rest[0])]
    table = th.tensor(actions)
    ours, theirs = (
        joint.evaluate(part.expand(len(table), -1), mask.expand(len(table), -1), table)[0] for part in (logits, others)
    )
    assert float(ours.exp().sum()) == pytest.approx(1.0, abs=1e-5)
    wanted = float((ours.exp() * (ours - theirs)).sum())
    assert float(joint.divergence(logits, others, mask)) == pytest.approx(wanted, abs=1e-5)
    assert float(joint.divergence(logits, logits, mask)) == pytest.approx(0.0, abs=1e-6)


def test_a_masked_action_has_probability_0_and_no_gradient() -> None:
    logits = LOGITS.clone().requires_grad_()
    got, entropy = JOINT.evaluate(logits, MASK, th.tensor([[4, 0]]))
    (got + entropy).sum().backward()
    assert logits.grad is not None
    assert float(logits.grad[0, 3]) == 0.0
    assert float(JOINT.evaluate(LOGITS, MASK, th.tensor([[3, 0]]))[0].exp()[0]) == 0.0


def test_five_heads_are_one_joint_distribution() -> None:
    """The kitchen's: a first head of 5 primitives and 2 slots, then 5, 5, 3 and 3; enumerated."""
    sizes, primitives = (7, 5, 5, 3, 3), 5
    logits = th.randn(1, sum(sizes), generator=th.Generator().manual_seed(4))
    mask = th.ones(1, sum(sizes), dtype=th.bool)
    mask[0, [1, 6, 9, 20]] = False
    joint = JointActions(sizes, primitives)
    actions = [(a, *rest) for a in range(primitives) for rest in itertools.product(*map(range, sizes[1:]))]
    actions += [(a, 0, 0, 0, 0) for a in range(primitives, sizes[0])]
    rows = th.tensor(actions)
    log_p, entropy = joint.evaluate(logits.expand(len(actions), -1), mask.expand(len(actions), -1), rows)
    p = log_p.exp().double()
    assert float(p.sum()) == pytest.approx(1, abs=1e-5)
    expected = -float((p[p > 0] * p[p > 0].log()).sum()) / log(4 * 4 * 5 * 2 * 3 + 1)
    assert float(entropy[0]) == pytest.approx(expected, abs=1e-5)
