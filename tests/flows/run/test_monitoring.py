"""A run's numbers shown elsewhere: sampling and funnel, in rising steps, by a package that notes its calls."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.flows.conftest import Tiny, refusal, stamps
from tests.training.evaluation.test_monitors import Noted


@pytest.mark.slow
def test_sampling_and_funnel_are_shown_and_a_run_that_goes_on_goes_on_there(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted, run = Noted("wandb"), Tiny(tiny_recipe, tmp_path / "run")
    monkeypatch.setitem(sys.modules, "wandb", noted)
    overrides = ("monitor.wandb=sums",)
    for rows in (3, 4):  # other shards: every stage is made again
        assert run.run(*overrides, f"shard_rows={rows}").status == 0
    names = [name for name, _ in noted.calls]
    assert names.count("init") == names.count("finish") == 2
    first, again = (options for name, options in noted.calls if name == "init")
    assert first["project"] == "sums"
    assert {**first, "config": None} == {**again, "config": None}
    logged = [value for name, value in noted.calls if name == "log"]
    steps = [step for step, _ in logged]
    assert steps == sorted(set(steps))
    shown = {name: number for _, numbers in reversed(logged) for name, number in numbers.items()}
    assert shown["funnel/sources/in"] == shown["funnel/sources/kept"] > shown["funnel/statements/kept"]
    assert shown["stage1.attempts/attempts"] > 0
    assert run.run(*overrides, "shard_rows=4").status == 0  # nothing to do: nothing of the funnel is shown again
    assert [name for name, _ in noted.calls][-2:] == ["init", "finish"]


def test_showing_changes_nothing_of_the_set_and_a_missing_package_is_a_sentence(
    tiny_copy: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stamps(tiny_copy.folder / "curated")
    monkeypatch.setitem(sys.modules, "wandb", Noted("wandb"))
    assert tiny_copy.run("monitor.wandb=sums").status == 0
    assert stamps(tiny_copy.folder / "curated") == before
    monkeypatch.setitem(sys.modules, "wandb", None)
    why = refusal("run", tiny_copy.recipe, "--out", tmp_path / "other", "--set", "monitor.wandb=sums")
    assert "monitor.wandb needs the package wandb" in why
