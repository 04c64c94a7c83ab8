"""`goldilocks rejudge`: another verifier on the attempts there are; what it changed and why, and the way back."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curation.records import problem_id
from flows.cli.rejudge import override_verifier
from flows.publish.curated_set import settled_digest
from flows.run.run_folder import new_run
from tests.benchmarks.bench_crash import write_recipe
from tests.flows.conftest import Said, Tiny, goldilocks, published, refusal, stamps, tries, write_jsonl

DIFFERENT = {  # the two verifiers differ on what is right here
    "What angle does the minute hand of a clock turn in 20 minutes?": (
        "120^\\circ",
        "\\frac{2\\pi}{3} \\frac{2\\pi}{3} 1 2",
    ),
    "Find all antiderivatives of $2x$.": ("x^2+C", "x^2+K x^2+K x^3 x^4"),
}
SAME = {
    "What is 17 + 25?": ("42", "42 42 1 2"),
    "What is 9 times 10?": ("91", "90 90 90 91"),
    "What is 5 plus 6?": ("11", "11 11 11 11"),
}
NAMES = {problem_id(statement): statement for statement in (*DIFFERENT, *SAME)}


@dataclass(frozen=True)
class Story:
    """A run judged by one verifier, by another, by that once more, and by the first: what was said and left."""

    run: Tiny
    said: dict[str, Said]
    files: dict[str, dict[str, tuple[int, int]]]
    decisions: dict[str, dict[tuple[str, str], str]]
    changes: dict[str, list[dict[str, Any]]]
    curated: dict[str, pl.DataFrame]
    status: dict[str, str]


def decisions(folder: Path) -> dict[tuple[str, str], str]:
    """(stage, problem) → reason or `kept`, as the funnel's verifier decided."""
    mark = json.loads((folder / "curated" / ".published.json").read_text())
    found = {}
    for part in ("stage1", "stage2"):
        for file in (folder / "decisions" / part / mark["verifier"] / "decisions").glob("*.parquet"):
            found |= {(part, name): reason or "kept" for name, reason in
                      pl.read_parquet(file).select("problem", "reason").iter_rows()}  # fmt: skip
    return found


STEPS = {"forth": "goldilocks", "again": "goldilocks", "back": "math-verify"}


@pytest.fixture(scope="module")
def story(tiny_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("rejudge")
    shutil.copytree(tiny_recipe.parent, folder / "in")
    rows = {**DIFFERENT, **SAME}
    write_jsonl(folder / "in" / "problems.jsonl", [{"question": q, "final": answer} for q, (answer, _) in rows.items()])
    for model in ("weak", "strong"):
        write_jsonl(
            folder / "in" / f"{model}.jsonl", [tries(q, answer, finals) for q, (answer, finals) in rows.items()]
        )
    run = Tiny(folder / "in" / "tiny.toml", folder / "run")
    tale = Story(run, {"run": run.run("verify.engine=math-verify")}, {}, {}, {}, {}, {})
    assert tale.said["run"].status == 0
    shutil.rmtree(folder / "in")  # whatever is judged again needs none of the files that the run read
    for step in ("run", *STEPS):
        if step != "run":
            tale.said[step] = goldilocks("rejudge", run.folder, "--set", f"verify.engine={STEPS[step]}")
            assert tale.said[step].status == 0, tale.said[step].err
            text = (run.folder / "rejudged.jsonl").read_text(encoding="utf-8")
            tale.changes[step] = [json.loads(line) for line in text.splitlines()]
        tale.files[step] = stamps(run.folder)
        tale.decisions[step] = decisions(run.folder)
        tale.curated[step] = published(run.folder, "data")
        tale.status[step] = goldilocks("status", run.folder).out
    return tale


def test_the_decisions_that_changed_are_those_that_are_listed(story: Story) -> None:
    before, after = story.decisions["run"], story.decisions["forth"]
    assert before.keys() == after.keys()
    moved = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
    assert moved
    assert {NAMES[problem] for _, problem in moved} <= set(DIFFERENT)
    assert {(c["stage"], c["problem"]): (c["before"], c["after"]) for c in story.changes["forth"]} == moved
    assert len(story.changes["forth"]) == len(moved)


def test_each_is_printed_with_the_verdicts_behind_it(story: Story) -> None:
    out = story.said["forth"].out
    assert re.search(r"^verifier math-verify@\S+ → answers@\S+: (\d+) of 10 decisions changed$", out, re.M)
    for change in story.changes["forth"]:
        assert f"{change['stage']}  {change['problem']}  {change['before']} → {change['after']}\n" in out
        assert change["why"]
        for why in change["why"][:3]:
            assert f"    {why}\n" in out
        assert re.fullmatch(r'attempt 0: ".+" against ".+" was wrong \(.+\), is correct \(.+\)', change["why"][0])
    assert f"all of them: {story.run.folder / 'rejudged.jsonl'}\n" in out


def test_the_published_set_is_that_of_the_last_verifier(story: Story) -> None:
    for step in ("run", "forth", "back"):
        kept = {
            problem for (part, problem), fate in story.decisions[step].items() if part == "stage2" and fate == "kept"
        }
        assert set(story.curated[step]["id"]) == kept
    assert story.curated["forth"].height > story.curated["run"].height
    card = (story.run.folder / "curated" / "README.md").read_text(encoding="utf-8")
    assert "math-verify@" in card
    assert 'engine = "math-verify"' in card


def test_no_attempt_is_made_and_no_stage_before_the_verdicts(story: Story) -> None:
    def settled(step: str) -> dict[str, tuple[int, int]]:
        files = story.files[step]
        return {name: stamp for name, stamp in files.items() if name.startswith(("attempts/", "stages/0")) and
                not name.startswith("stages/07")}  # fmt: skip

    assert any("/part-" in name for name in settled("run"))
    assert settled("run") == settled("forth") == settled("again") == settled("back")


def test_the_verdicts_of_both_stay_side_by_side(story: Story) -> None:
    for part in ("stage1", "stage2"):
        verifiers = sorted(path.name.partition("@")[0] for path in (story.run.folder / "verdicts" / part).iterdir())
        assert verifiers == ["answers", "math-verify"]
    own = {name: stamp for name, stamp in story.files["run"].items() if name.startswith("verdicts/")}
    assert own.items() <= story.files["back"].items()


def test_where_nothing_changes_it_says_so(story: Story) -> None:
    assert re.fullmatch(r"verifier (answers@\S+) → \1: 0 of 10 decisions changed\n", story.said["again"].out)
    assert story.changes["again"] == []
    assert story.decisions["again"] == story.decisions["forth"]


def test_the_way_back_gives_the_first_decisions_again(story: Story) -> None:
    assert story.decisions["back"] == story.decisions["run"]
    assert story.curated["back"].equals(story.curated["run"])
    # but for the version's number: going there and back are two more
    said = [[line for line in story.status[when].splitlines() if line[:8] != "version "] for when in ("back", "run")]
    assert said[0] == said[1]
    forth = {(c["stage"], c["problem"], c["before"], c["after"]) for c in story.changes["forth"]}
    assert {(c["stage"], c["problem"], c["after"], c["before"]) for c in story.changes["back"]} == forth


def test_a_band_can_be_tried_without_a_verdict(tiny_copy: Tiny) -> None:
    said = goldilocks("rejudge", tiny_copy.folder, "--set", "stage2.band.max_pass_rate=1")
    assert said.status == 0
    easy = problem_id("What is the sum of 5 and 6?")
    assert f"stage2  {easy}  too_easy → kept\n" in said.out
    assert ": 1 of " in said.out.splitlines()[0]
    assert easy in set(tiny_copy.table("data")["id"])


@pytest.mark.parametrize(
    "override",
    ["sources.0.limit=2", "shard_rows=50", "name=other", "models.strong.path=weak.jsonl", "stage1.band.attempts=16"],
)
def test_what_was_settled_before_the_attempts_cannot_be_changed(override: str, tiny_copy: Tiny) -> None:
    before = stamps(tiny_copy.folder)
    assert f"--set {override}: rejudge changes verify.*" in refusal("rejudge", tiny_copy.folder, "--set", override)
    assert stamps(tiny_copy.folder) == before


def test_a_mistake_in_a_setting_is_one_sentence(tiny_copy: Tiny) -> None:
    assert "`verify.engine` = 'sympy'" in refusal("rejudge", tiny_copy.folder, "--set", "verify.engine=sympy")


def test_an_unfinished_run_is_not_judged_again(tiny_copy: Tiny) -> None:
    shutil.rmtree(tiny_copy.folder / "curated")
    assert "holds no finished run yet; finish it with `goldilocks run`." in refusal("rejudge", tiny_copy.folder)


@pytest.mark.parametrize("stage", ["02-statements", "05-exact-dedup", "06-near-dedup", "09-stage2-attempts"])
def test_a_run_that_is_being_made_again_is_not_judged_again(stage: str, tiny_copy: Tiny) -> None:
    (tiny_copy.folder / "stages" / stage / "DONE.json").unlink()
    before = stamps(tiny_copy.folder)
    assert "not finished; finish the run with `goldilocks run`." in refusal("rejudge", tiny_copy.folder)
    assert {
        name: stamp for name, stamp in stamps(tiny_copy.folder).items() if name != ".lock"
    }.items() <= before.items()


def test_a_recipe_that_was_changed_but_not_run_is_not_judged_again(tiny_copy: Tiny) -> None:
    path = tiny_copy.folder / "run.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    told["recipe"]["sources"][0]["limit"] = 2
    path.write_text(json.dumps(told), encoding="utf-8")  # as a run leaves it that was killed before its first shard
    before = published(tiny_copy.folder, "data")
    refusal("rejudge", tiny_copy.folder)
    assert published(tiny_copy.folder, "data").equals(before)


def test_lost_attempts_are_refused_and_not_judged_as_none(tiny_copy: Tiny) -> None:
    for part in tiny_copy.folder.glob("attempts/*/part-*.parquet"):
        part.unlink()
    before = published(tiny_copy.folder, "data")
    refusal("rejudge", tiny_copy.folder, "--set", "verify.engine=math-verify")
    assert published(tiny_copy.folder, "data").equals(before)


def test_the_band_of_a_graders_stage_can_be_changed(tmp_path: Path) -> None:
    run = new_run(write_recipe(tmp_path / "inputs", problems=2), [], tmp_path / "run")
    changed = override_verifier(run, ["stage2.band.max_pass_rate=0.5"])
    assert changed.stage2 is not None
    assert run.recipe.stage2 is not None
    assert changed.stage2.band.max_pass_rate == 0.5 != run.recipe.stage2.band.max_pass_rate
    assert changed.models == run.recipe.models
    assert settled_digest(changed) == settled_digest(run.recipe)
