"""Numbers shown elsewhere: what a package is told, with one of its name that notes its calls."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from curation.config.schedule import MonitorSettings
from curation.records import ConfigError
from training.evaluation.metrics import MetricsLogger, open_monitors
from training.optimisation.checkpoint import JsonlLog


def recorder() -> tuple[Any, list[tuple[str, Any]]]:
    """A package of this name, and its calls."""
    calls: list[tuple[str, Any]] = []
    noted: Any = ModuleType("wandb")
    noted.init = lambda **options: calls.append(("init", options))
    noted.log = lambda numbers, *, step: calls.append(("log", (step, numbers)))
    noted.finish = lambda: calls.append(("finish", None))
    return noted, calls


def test_every_step_is_shown_and_a_run_that_goes_on_is_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted, calls = recorder()
    monkeypatch.setitem(sys.modules, "wandb", noted)
    settings = MonitorSettings(wandb="sums")
    for step in (1, 2):
        log = JsonlLog(tmp_path / "metrics.jsonl")
        monitors = open_monitors(settings, "my-run", tmp_path, {"seed": 3})
        logger = MetricsLogger(tmp_path, log, 2, step, monitors)
        logger.log_step(step, {"policy/loss": 0.5 * step, "speed/nan": float("nan")})
        logger.close()
        log.close()
    assert [name for name, _ in calls] == ["init", "log", "finish"] * 2
    first, again = (options for name, options in calls if name == "init")
    assert first == again
    assert (first["project"], first["name"], first["config"]) == ("sums", "my-run", {"seed": 3})
    assert first["id"].startswith("my-run-")
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    shown = [{"step": step, **numbers} for name, (step, numbers) in calls[1:5:3]]
    assert shown == rows == [{"step": 1, "policy/loss": 0.5}, {"step": 2, "policy/loss": 1.0}]


def test_nothing_is_shown_unless_asked_for_and_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert open_monitors(MonitorSettings(), "a", tmp_path, {}) == []
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ConfigError, match=r"monitor.wandb needs the package wandb"):
        open_monitors(MonitorSettings(wandb="sums"), "a", tmp_path, {})
