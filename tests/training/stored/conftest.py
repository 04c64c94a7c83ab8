"""A training run that keeps its attempts, made once: what the tests of stored attempts start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.engines.embedded.test_run import small
from training.engines.embedded.run import train

NO_CHECKS = {"checks": False}


@pytest.fixture(scope="session")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four steps with its attempts, and one evaluation's, in its store."""
    out = tmp_path_factory.mktemp("stored") / "teacher"
    train(small(collector={"max_staleness": 0, "group_size": 4}, evaluation={"every": 4}, **NO_CHECKS), Path(), out)
    return out
