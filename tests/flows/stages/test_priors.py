"""Stages that learn priors before they sample: live servers whose pass rates are known, a whole run each."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curation.difficulty.early_stopping import OutcomeCounts, StoppingRule
from curation.difficulty.priors import as_priors
from curation.storage.stages import read_table
from flows.cli.refresh import refresh_run
from flows.pipelines.refresh import summarise_refresh
from flows.publish.versions import decisions_of
from flows.run import stage_priors
from flows.run.progress import read_metrics
from flows.run.run_folder import difficulty_stage, open_run
from flows.run.sampling_session import LEARNT
from flows.stages.attempts import stopping_rule
from tests.flows.conftest import goldilocks, published, write_jsonl
from tests.flows.solver import Solver, answer, pass_rate, statement

PROBLEMS = 240
RECIPE = """
name = "sums"
shard_rows = 100
workers = 1
near_dedup = {{ enabled = false }} # sums are alike

[[sources]]
name = "sums"
kind = "jsonl"
path = "sums.jsonl"
license = "MIT"
columns = {{ statement = "question", answer = "final", meta = ["rate"] }}
"""
STAGE = """
[{part}]
model = "{part}"
band = {{ attempts = 16 }}
sampling = {{ error_rate = 0.1 }}
[models.{part}]
{policy}
"""


@pytest.fixture(autouse=True)
def _a_small_anchor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_priors, "ANCHOR_LEAST", 60)


def write_recipe(home: Path, stages: dict[str, tuple[Solver, str]]) -> Path:
    rows = [
        {"question": statement(number), "final": str(answer(number)), "rate": round(pass_rate(number, 0.0), 3)}
        for number in range(PROBLEMS)
    ]
    write_jsonl(home / "sums.jsonl", rows)
    text = RECIPE.format()
    for part, (solver, model) in stages.items():
        text += STAGE.format(part=part, policy=solver.table(model))
    path = home / "recipe.toml"
    path.write_text(text)
    return path


def verdicts_folder(folder: Path, part: str) -> Path:
    (verifier,) = (folder / "verdicts" / part).iterdir()
    return verifier


def learnt(folder: Path, stage: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((verdicts_folder(folder, stage) / LEARNT).read_text())
    return content


def wilson(correct: int, judged: int) -> tuple[float, float]:
    """The 95 % interval as the card states it."""
    z, share = 1.959963984540054, correct / judged
    centre, half = share + z * z / (2 * judged), z * (share * (1 - share) / judged + (z / (2 * judged)) ** 2) ** 0.5
    scale = 1 + z * z / judged
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def unbiased(rule: StoppingRule, outcomes: list[str], answers: list[int | None]) -> float:
    """Of all orders of these correct and other attempts of which none stops earlier, those that begin correctly."""
    tops, votes = [0], dict[int, int]()
    for outcome, said in zip(outcomes, answers, strict=True):
        if outcome != "correct":
            votes[said or 0] = votes.get(said or 0, 0) + 1
            tops.append(max((count for name, count in votes.items() if name), default=0))
    correct, others = outcomes.count("correct"), len(tops) - 1

    @cache
    def orders(solved: int, other: int) -> tuple[int, int]:
        """All orders of so many, and those that begin with a correct one."""
        found = [1 if solved + other == 0 else 0, 0]
        for before in ((solved - 1, other), (solved, other - 1)):
            made = sum(before)
            if min(before) < 0 or (
                made and rule.should_stop(OutcomeCounts(before[0], tops[before[1]], made, made, made))
            ):
                continue
            begun = orders(*before)
            found[0] += begun[0]
            found[1] += begun[1] if made else int(before != (solved, other - 1))
        return found[0], found[1]

    whole, begun = orders(correct, others)
    return begun / whole


def check_every_figure(folder: Path, part: str, policy: str, *stated: str) -> None:
    """Each published row says what the verdicts on its attempts say.

    Args:
        stated: whom the source names with their attempts at every problem, as ``somebody 16``.
    """
    own = verdicts_folder(folder, part)
    verdicts, run = read_table(own, "verdicts"), open_run(folder)
    priors = as_priors(read_table(own, "priors"))
    rule = stopping_rule(difficulty_stage(run.recipe, part)).given(priors)
    earlier = read_table(next((folder / "decisions" / "stage1").iterdir()), "decisions")
    first = dict(earlier.select("problem", "pass_rate").iter_rows()) if part == "stage2" else {}
    rows = published(folder, "data")
    assert rows.height > 20
    assert (rows["attempts"] < 16).any()
    for row in rows.iter_rows(named=True):
        own = verdicts.filter(pl.col("problem") == row["id"]).sort("index")
        outcomes = own["outcome"].to_list()
        assert row["policy"] == own["policy"][0] == policy
        assert own["index"].to_list() == list(range(row["attempts"]))
        assert row["correct"] == outcomes.count("correct")
        assert row["judged"] == row["attempts"] == len(outcomes)
        assert (row["pass_rate_low"], row["pass_rate_high"]) == pytest.approx(wilson(row["correct"], row["judged"]))
        assert row["pass_rate"] == pytest.approx(row["correct"] / row["judged"])
        assert row["pass_rate_low"] <= row["pass_rate"] <= row["pass_rate_high"]
        if row["attempts"] == 16:
            assert row["decided_by"] == "all attempts"
        else:
            answers = own["answer_class"].to_list()
            assert row["unbiased_pass_rate"] == pytest.approx(unbiased(rule.of(row["id"]), outcomes, answers))
            assert row["decided_by"].endswith(f" after {row['attempts']} of 16")
        tried = earlier.filter((pl.col("problem") == row["id"]) & (pl.col("policy") != policy) & (pl.col("judged") > 0))
        with_others = [
            f"{name} {judged}" for name, judged in tried.sort("policy").select("policy", "judged").iter_rows()
        ]
        with_others = sorted([*with_others, *stated])
        is_foreseen = row["decided_by"].startswith("foreseen") and rule.priors[row["id"]].informed_by
        others = with_others if is_foreseen else []
        assert row["informed_by"] == ", ".join([f"{policy} {row['judged']}", *others])
        assert row["first_pass_rate"] == first.get(row["id"])


@pytest.mark.slow
def test_stage_1s_attempts_spare_stage_2_attempts(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with Solver(-1.0) as weak, Solver(1.0) as strong:
        recipe = write_recipe(tmp_path, {"stage1": (weak, "weak"), "stage2": (strong, "strong")})
        said = goldilocks("run", recipe, "--out", folder)
        assert said.status == 0, said.err
        marks = [json.loads(path.read_text()) for path in (folder / "verdicts").glob("*/*/DONE.json")]
        made = sum(mark["notes"]["made"] for mark in marks)  # the anchor's are among them
        reports = [row for row in read_metrics(folder) if "attempts" in row]
        assert sum(last["attempts"] for last in {row["stage"]: row for row in reports}.values()) == made
        assert made == weak.requests + strong.requests
    told = learnt(folder, "stage2")
    assert told["used"], told["sentence"]
    assert told["attempts"] < told["attempts_without"]
    priors = read_table(verdicts_folder(folder, "stage2"), "priors")
    assert priors.filter(pl.col("error_rate") == 0).height == 60
    assert priors.height == PROBLEMS
    check_every_figure(folder, "stage2", "strong@1")


@pytest.mark.slow
def test_a_refresh_starts_its_policy_once_and_spends_less_than_a_full_judgement(tmp_path: Path) -> None:
    with Solver(-1.0) as weak, Solver(0.5) as strong:
        recipe = write_recipe(tmp_path, {"stage1": (weak, "weak")})
        recipe.write_text(recipe.read_text().replace("error_rate = 0.1", "error_rate = 0.0"))
        said = goldilocks("run", recipe, "--out", tmp_path / "run")
        assert said.status == 0, said.err
        (tmp_path / "strong.toml").write_text(f"[models.newer]\n{strong.table('strong')}")
        result = refresh_run(tmp_path / "run", tmp_path / "strong.toml", None)
        assert strong.starts == 1
        assert result.anchor is not None
        assert result.anchor.priors is not None
        assert strong.requests == result.cost["attempts"]
        assert strong.requests < 0.75 * weak.requests
    lines = "\n".join(summarise_refresh(result))
    assert "of the decisions are expected to differ from a full judgement's" in lines
    assert "tenth 10: expected" in lines
    made = decisions_of(tmp_path / "run", 2)
    foreseen = made.filter(pl.col("evidence").str.contains("foreseen at"))
    assert foreseen.height > 20
    assert set(foreseen["policy"]) == {"strong@1"}
