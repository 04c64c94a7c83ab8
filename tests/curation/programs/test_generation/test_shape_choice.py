"""The bandit over shapes of inputs."""

from __future__ import annotations

import random
from collections import Counter

from curation.programs.test_generation.shape_choice import ShapeChoice


def test_shapes_that_paid_are_chosen_more_often_and_others_still_tried() -> None:
    choice = ShapeChoice({"a": 0.3, "b": 0.3, "c": 0.3})
    draw = random.Random(1)
    counts: Counter[str] = Counter()
    for _ in range(400):
        shape = choice.choose(draw)
        counts[shape] += 1
        choice.learn(shape, paid=shape == "b" and draw.random() < 0.6)
    assert counts["b"] > 300
    assert min(counts["a"], counts["c"]) >= 2


def test_the_same_seed_and_rewards_choose_the_same_shapes_and_unknown_ones_teach_nothing() -> None:
    def chosen() -> list[str]:
        choice = ShapeChoice({"a": 0.2, "b": 0.5})
        choice.learn("model", paid=True)
        assert choice.tried == {}
        draw = random.Random(7)
        return [choice.choose(draw) for _ in range(20)]

    assert chosen() == chosen()
    assert set(chosen()) == {"a", "b"}
