"""What is said before a run of collectors whose bounds starve generators, and that the advice holds."""

from __future__ import annotations

import re

import pytest

from training.config import CollectorSettings
from training.rollouts.curriculum.settings import CurriculumSettings
from training.rollouts.starvation import (
    WORTH_SAYING,
    WORTH_SAYING_HEAVY,
    collector_warnings,
    scaled_down,
    simulated_idle,
    starvation_warning,
)


def sizes(n_async: int, n_batch: int, max_staleness: int) -> CollectorSettings:
    return CollectorSettings(group_size=16, n_async=n_async, n_batch=n_batch, max_staleness=max_staleness)


def test_idle_falls_as_more_staleness_is_allowed() -> None:
    narrow = [simulated_idle(sizes(256, 128, bound), "narrow") for bound in (1, 2, 3, 8)]
    assert narrow == sorted(narrow, reverse=True)
    assert narrow[0] > 0.3
    assert narrow[-1] < 0.01
    assert simulated_idle(sizes(256, 128, 1), "wide") > narrow[0]


@pytest.mark.parametrize(("max_staleness", "idle"), [(1, "40%"), (2, "13%")])
def test_the_papers_sizes_with_little_staleness_are_told_of(max_staleness: int, idle: str) -> None:
    settings = CollectorSettings(max_staleness=max_staleness)  # n_async / n_batch = 2
    (said,) = collector_warnings(settings)
    assert f"max_staleness = {max_staleness}, n_async = 4096 and n_batch = 2048" in said
    assert f"idle {idle} of their time where lengths spread from 1 to 5" in said
    advised = re.search(r"max_staleness = (\d+) would do", said)
    assert advised is not None
    mended = settings.model_copy(update={"max_staleness": int(advised[1])})
    assert starvation_warning(mended) is None
    assert simulated_idle(mended, "narrow") < WORTH_SAYING
    assert simulated_idle(mended, "wide") < WORTH_SAYING_HEAVY


def test_sizes_that_starve_nobody_and_synchronous_ones_are_not() -> None:
    assert starvation_warning(sizes(2048, 2048, 8)) is None
    assert starvation_warning(sizes(256, 128, 0)) is None  # it waits on purpose


def test_the_default_sizes_starve_nobody() -> None:
    assert collector_warnings(CollectorSettings()) == ()


def test_a_stage_whose_sizes_starve_is_named() -> None:
    collector = CollectorSettings(n_async=8192, n_batch=8192, max_staleness=8)
    stages = [{"steps": 5}, {"steps": 5, "n_async": 4096, "n_batch": 2048}, {"lengths": 100}]
    curriculum = CurriculumSettings.model_validate({"stages": stages})
    (said,) = collector_warnings(collector, curriculum)
    assert said.startswith("stage 2: generators will wait")
    assert "n_async = 4096 and n_batch = 2048" in said
    assert collector_warnings(collector.model_copy(update={"max_staleness": 16}), curriculum) == ()


def test_large_collectors_are_simulated_in_the_same_proportions() -> None:
    small = scaled_down(CollectorSettings(n_async=8192, n_batch=2048, max_staleness=3))
    assert (small.n_async, small.n_batch, small.max_staleness) == (256, 64, 3)
    odd = scaled_down(CollectorSettings(group_size=100, n_async=5000, n_batch=300))
    assert (odd.n_async, odd.n_batch) == (1667, 100)
    few = CollectorSettings(group_size=2, n_async=8, n_batch=4)
    assert scaled_down(few) is few
