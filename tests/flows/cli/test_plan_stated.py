"""Plans by stated figures, and the recipe that states them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curation.config import Recipe
from curation.records import PROBLEM, ConfigError
from curation.sources import problems
from flows.cli.plan_stated import print_stated, stated_plan
from flows.run.recipe import load_recipe
from tests.flows.conftest import DEMO, ROOT

MAGISTRAL = ROOT / "flows" / "recipes" / "magistral_math.toml"
CODE = MAGISTRAL.with_name("magistral_code.toml")

ROWS: dict[str, dict[str, Any]] = {
    "numina-1.5": {
        "problem": "Find $x$ if $2x = 6$.", "solution": "Divide by 2: $x = 3$.", "answer": "3",
        "problem_type": "Algebra",
        "question_type": "math-word-problem", "problem_is_valid": "Yes", "solution_is_valid": "Yes",
        "source": "olympiads", "synthetic": False,
    },
    "big-math": {
        "problem": "What is 7 times 8?", "answer": "56", "source": "gsm8k", "domain": ["Arithmetic"],
        "llama8b_solve_rate": 0.875,
    },
    "deepscaler": {"problem": "What is 2^{10}?", "answer": "1024", "solution": "Double ten times."},
    "dapo-17k": {
        "prompt": "How many primes lie below 20?", "solution": "8", "data_source": "math_dapo",
        "source_prompt": [{"content": "Solve. How many primes lie below 20?", "role": "user"}], "ability": "MATH",
        "reward_model": {"ground_truth": "8", "style": "rule-lighteval/MATH_v2"}, "extra_info": {"index": "9a"},
    },
    "openr1-220k": {
        "problem": "What is 100 minus 58?", "solution": "Count up: 42.", "answer": "42", "source": "cn_k12",
        "uuid": "x", "generations": ["<think>58 + 42</think> \\boxed{42}"],
    },
}  # fmt: skip
"""A row of each source, in its own columns."""


def saved(folder: Path) -> Recipe:
    """The recipe with its hub names replaced by data sets on disk, column maps as they are."""
    import datasets

    recipe = load_recipe(MAGISTRAL)
    made = []
    for source in recipe.sources:
        where = folder / source.name
        where.mkdir(parents=True)
        datasets.Dataset.from_list([ROWS[source.name]]).to_parquet(str(where / "train-00000-of-00001.parquet"))
        made.append(source.model_copy(update={"path": str(where), "subset": None, "revision": None}))
    return recipe.model_copy(update={"sources": tuple(made)})


def test_every_source_is_read_by_its_own_column_map(tmp_path: Path) -> None:
    recipe = saved(tmp_path)
    assert {source.name for source in recipe.sources} == set(ROWS)
    for source in recipe.sources:
        (frame,) = problems.read_source(source, tmp_path, 10)
        assert frame.schema == PROBLEM
        row, given = frame.row(0, named=True), ROWS[source.name]
        assert row["statement"] == given["prompt" if source.name == "dapo-17k" else "problem"]
        assert row["answer"] == given["solution" if source.name == "dapo-17k" else "answer"]
        assert row["license"] == source.license
        meta = json.loads(row["meta"] or "{}")
        assert set(meta) == set(source.columns.meta)


def test_the_plan_of_the_large_recipe() -> None:
    first, second = stated_plan(MAGISTRAL)
    assert (first.stage, second.stage, first.pilot) == ("stage1", "stage2", 0)
    assert first.expected.attempts.mean == 501_000 * 16 * 0.75
    assert second.expected.tokens.mean == second.expected.attempts.mean * 4000
    assert second.expected.hours is not None
    assert second.expected.hours.mean == pytest.approx(second.expected.tokens.mean / 5000 / 3600)
    assert second.expected.attempts.mean < second.without_early_stopping.attempts.mean


def test_what_a_run_takes_on_the_stated_gpus_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for path, said in (
        (MAGISTRAL, "1,570 GPU hours: 196 hours on 8 GPUs"),
        (CODE, "128 GPU hours: 16 hours on 8 GPUs"),
    ):
        print_stated(path)
        assert said in capsys.readouterr().out


def test_sources_and_benchmarks_are_pinned_where_a_commit_is_known() -> None:
    for path in (MAGISTRAL, CODE):
        recipe = load_recipe(path)
        named = {one.name: one.revision for one in (*recipe.sources, *recipe.decontamination.against)}
        assert {name for name, revision in named.items() if revision is None} <= {"numina-1.5"}
        assert all(len(revision) == 40 for revision in named.values() if revision is not None)


def test_one_figure_stands_for_all_stages_and_early_stopping_may_be_off() -> None:
    asked = ["costs.tokens_per_s=[100]", "stage2.sampling.early_stopping=false"]
    first, second = stated_plan(MAGISTRAL, asked)
    assert (first.tokens_per_s, second.tokens_per_s) == (800, 800)
    assert second.expected == second.without_early_stopping


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="states no costs"):
        stated_plan(DEMO)
    three = tmp_path / "three.toml"
    text = (
        MAGISTRAL.read_text()
        .replace("[5000, 5000]", "[1, 2]")
        .replace("attempts_share = [0.75, 0.75]", "attempts_share = []")
    )
    three.write_text(text)
    with pytest.raises(ConfigError, match="attempts_share"):
        stated_plan(three)
