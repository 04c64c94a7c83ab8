"""Plans by stated figures, and the recipe that states them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from curation.records import ConfigError
from flows.cli.plan import show_plan, stated_plan
from flows.run.recipe import load_recipe, unpinned_lines
from tests.flows.conftest import DEMO, ROOT


def show_stated(path: Path, overrides: Sequence[str] = ()) -> None:
    show_plan(path, overrides, None, 1, stated=True, as_json=False)


MAGISTRAL = ROOT / "flows" / "recipes" / "magistral_math.toml"
CODE = MAGISTRAL.with_name("magistral_code.toml")


def test_the_plan_of_the_large_recipe() -> None:
    first, second = stated_plan(MAGISTRAL)
    assert (first.stage, second.stage, first.pilot) == ("stage1", "stage2", 0)
    assert first.attempts.mean == 545_000 * 16 * 0.75
    assert second.tokens.mean == second.attempts.mean * 4000
    assert second.hours is not None
    assert second.hours.mean == pytest.approx(second.tokens.mean / 5000 / 3600)


def test_what_a_run_takes_on_the_stated_gpus_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for path, said in (
        (MAGISTRAL, "1,708 GPU hours: 213 hours on 8 GPUs"),
        (CODE, "32 GPU hours: 4 hours on 8 GPUs"),
    ):
        show_stated(path)
        assert said in capsys.readouterr().out


def test_a_hub_set_that_is_not_pinned_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    show_stated(CODE)
    said = capsys.readouterr().out
    assert said.count("is not pinned") == 1
    assert "source codeforces, joined table: open-r1/codeforces-submissions is not pinned: no revision is named" in said
    show_stated(MAGISTRAL, ["sources.0.revision=main"])
    assert "AI-MO/NuminaMath-1.5 is not pinned: `main` is no commit" in capsys.readouterr().out


SAMPLING = [
    path
    for path in sorted(MAGISTRAL.parent.glob("*.toml"))
    if "collector" not in tomllib.loads(path.read_text(encoding="utf-8"))
]
"""The shipped recipes but those of training, whose plans are tested beside this (`test_plan_training`)."""


@pytest.mark.parametrize("path", SAMPLING, ids=lambda path: path.stem)
def test_every_shipped_recipe_says_what_its_sampling_takes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_stated(path)
    assert "GPU hours: " in capsys.readouterr().out


def test_one_figure_stands_for_all_stages_and_early_stopping_may_be_off() -> None:
    asked = ["costs.tokens_per_s=[100]", "stage1.sampling.early_stopping=false"]  # of the grader's stage 2 too
    first, second = stated_plan(MAGISTRAL, asked)
    assert (first.rates.tokens_per_s, second.rates.tokens_per_s) == (800, 800)
    assert second.attempts.mean == 545_000 * 16


def test_refusals(tmp_path: Path) -> None:
    assert stated_plan(DEMO) == []  # recorded attempts cost nothing
    silent = tmp_path / "silent.toml"
    silent.write_text(re.sub(r"^\[costs\].*\n(?:(?!\[).*\n)*", "", MAGISTRAL.read_text(), flags=re.MULTILINE))
    with pytest.raises(ConfigError, match="states no costs"):
        stated_plan(silent)
    three = tmp_path / "three.toml"
    text = (
        MAGISTRAL.read_text()
        .replace("[5000, 5000]", "[1, 2]")
        .replace("attempts_share = [0.75, 0.75]", "attempts_share = []")
    )
    three.write_text(text)
    with pytest.raises(ConfigError, match="attempts_share"):
        stated_plan(three)


def test_a_data_set_in_a_folder_of_this_machine_needs_no_pin(tmp_path: Path) -> None:
    recipe = load_recipe(MAGISTRAL, ["sources.0.path=runs/mine", "sources.0.revision=main"])
    assert len(unpinned_lines(recipe, tmp_path)) == 1
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    assert not unpinned_lines(recipe, tmp_path)
