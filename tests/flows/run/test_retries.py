"""What the verifier failed on: named, judged again by the next run with higher limits, and not for ever."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curation.config import filters
from curation.difficulty import refresh
from curation.policies.excerpt import excerpt
from curation.records import problem_id
from curation.storage.stages import read_table
from flows.publish.versions import scan_decisions, stored_versions
from flows.run import retries
from tests.flows.conftest import Tiny, goldilocks, newer_policy, recipe_with, stamps, tries, write_jsonl
from tests.flows.run.folders import contents, run

RECIPE = recipe_with('name="slow"', "shard_rows=1", "verify.limit_s=0.01")  # what needs a worker takes longer
SUM = r"\sum_{k=0}^{\infty}\frac{1}{2^k}"
PLAIN, SLOW, CLEAR = "What is 17 + 25?", "What is 6 minus 4?", "What is 5 plus 6?"
CURVE = "On which curve does the point lie?"
LONG = "+".join(f"x^{{{k}}}y" for k in range(440)) + "=0"
PROBLEMS = {  # reference, final answers; the verifier takes its time over the sum
    PLAIN: ("42", "42 42 1 2"),
    SLOW: ("2", f"7 {SUM} 9 {SUM}"),
    CLEAR: ("11", f"12 12 12 {SUM}"),
    CURVE: (LONG, "1 3 4 5"),
}


@pytest.fixture(autouse=True)
def _much_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "RETRY_FACTOR", 3000.0)
    monkeypatch.setattr(refresh, "PROBE_SHARE", 0.0)
    monkeypatch.setattr(refresh, "RETRY_SHARE", 0.0)


@pytest.fixture
def slow(tmp_path: Path) -> Tiny:
    """A recipe whose verifier fails on what takes its time; not run yet."""
    home = tmp_path / "inputs"
    home.mkdir()
    write_jsonl(home / "problems.jsonl", [{"question": text, "final": one} for text, (one, _) in PROBLEMS.items()])
    write_jsonl(home / "weak.jsonl", [tries(text, *one) for text, one in PROBLEMS.items()])
    (home / "slow.toml").write_text(RECIPE)
    return Tiny(home / "slow.toml", tmp_path / "run")


def decisions(run: Tiny) -> Mapping[str, Mapping[str, Any]]:
    """The decisions of the published verifier, by statement."""
    mark = json.loads((run.folder / "curated" / ".published.json").read_text())
    frame = read_table(run.folder / "decisions" / "stage1" / mark["verifier"], "decisions")
    names = {problem_id(statement): statement for statement in PROBLEMS}
    return {names[row["problem"]]: row for row in frame.iter_rows(named=True)}


def verdicts_folder(run: Tiny) -> Path:
    (folder,) = (run.folder / "verdicts" / "stage1").iterdir()
    return folder


@pytest.mark.slow
def test_the_next_run_judges_again_what_failed_and_nothing_else(slow: Tiny) -> None:
    first = run(slow.recipe, slow.folder)
    before = decisions(slow)
    assert {statement: row["reason"] for statement, row in before.items()} == {
        PLAIN: None,
        SLOW: "verifier_failed",
        CLEAR: "suspected_wrong_label",  # three of four agree, whatever the fourth is
    }
    failed = before[SLOW]
    assert failed["evidence"] == (
        "the verifier failed on 2 of 4 attempts, which could decide; of 2 judged 0 are correct, 1 agree on another: "
        f'attempts 1, 3 answered {excerpt(SUM, 60)} against "2": timeout (killed at its limit)'
    )
    assert (failed["pass_rate"], failed["low"]) == (0.0, 0.0)
    assert failed["high"] > 0.8  # both may be correct
    dropped = slow.table("dropped").select("statement", "reason", "stage").rows()
    assert (CURVE, "verifier_failed", "references") in dropped
    assert "the next run tries them again (retry 1 of 2)" in first.out
    explained = goldilocks("explain", slow.folder, problem_id(SLOW)).out
    assert failed["evidence"] in explained
    assert "2 timed out, 0 broken" in explained

    verdicts = read_table(verdicts_folder(slow), "verdicts")
    assert "tries them again" not in run(slow.recipe, slow.folder).out
    after = decisions(slow)
    reasons = {PLAIN: None, SLOW: None, CLEAR: "suspected_wrong_label", CURVE: "never_solved"}
    assert {statement: row["reason"] for statement, row in after.items()} == reasons
    assert (after[SLOW]["correct"], after[SLOW]["judged"]) == (2, 4)
    names = verdicts["problem"].unique().implode()
    again = read_table(verdicts_folder(slow), "verdicts").filter(pl.col("problem").is_in(names))
    assert again.filter(verdicts["outcome"] != "timeout").equals(verdicts.filter(pl.col("outcome") != "timeout"))
    assert "timeout" not in again["outcome"]
    assert slow.table("data").height == 2

    settled = stamps(slow.folder)
    run(slow.recipe, slow.folder)
    assert {name for name, stamp in stamps(slow.folder).items() if settled.get(name) != stamp} <= {"run.json", ".lock"}


@pytest.mark.slow
def test_a_round_that_was_killed_goes_on_with_the_same_limits(
    slow: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "RETRY_FACTOR", 1.0)
    run(slow.recipe, slow.folder)
    undisturbed, folder = slow.copy(tmp_path / "copy"), verdicts_folder(slow)
    run(undisturbed.recipe, undisturbed.folder)
    whole = verdicts_folder(undisturbed)
    # killed when the first of two shards with failures had been made again
    failing = [path.name for path in sorted((folder / "shards").iterdir()) if retries.FAILED in path.read_text()]
    assert len(failing) == 2
    (folder / "DONE.json").unlink()
    shutil.copy(whole / "shards" / failing[0], folder / "shards" / failing[0])
    run(slow.recipe, slow.folder)
    assert contents(folder, "*.*") == contents(whole, "*.*")


@pytest.mark.slow
def test_a_refresh_judges_again_itself_and_takes_back_what_the_next_run_would(slow: Tiny, tmp_path: Path) -> None:
    """Its policy is not asked twice, so it has no next run; and a later run must not put the older set back."""
    settings = ("refresh.error_rate=0.2",)
    run(slow.recipe, slow.folder, *settings)
    assert retries.pending_round(verdicts_folder(slow)) == 1
    policy = newer_policy(tmp_path, "weak@2", {})
    write_jsonl(tmp_path / "newer.jsonl", [tries(SLOW, "2", f"{SUM} 9 9 7")])
    refreshed = goldilocks("refresh", slow.folder, "--policy", policy)
    assert refreshed.status == 0, refreshed.err
    assert refreshed.out.startswith("judged again: 1 problems (unsettled 1) with 4 new attempts")
    (row,) = scan_decisions(slow.folder, 2).filter(problem=problem_id(SLOW)).collect().iter_rows(named=True)
    assert (row["policy"], row["reason"], row["correct"], row["judged"]) == ("weak@2", None, 1, 4)
    before = slow.table("data")
    run(slow.recipe, slow.folder, *settings)
    assert [version.origin for version in stored_versions(slow.folder)] == ["run", "refresh"]
    assert slow.table("data").equals(before)
    assert retries.pending_round(verdicts_folder(slow)) == 0
