"""`goldilocks run` on a tiny set: what comes out, what is done again, and what is left alone."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from curation.records import DropReason
from curation.storage.locks import lock_folder
from curation.verify import answers
from tests.flows.conftest import STAGES, TINY, TITLES, Tiny, goldilocks, refusal, stamps, tries, write_jsonl

NAMES = list(TINY)


def fates(run: Tiny) -> dict[str, str]:
    """What became of each row of the tiny set: a reason, or `curated`."""
    kept = {NAMES[row]: "curated" for row in run.table("data")["row"]}
    dropped = {NAMES[row]: reason for row, reason in run.table("dropped").select("row", "reason").iter_rows()}
    assert not kept.keys() & dropped.keys()
    return {**kept, **dropped}


NOTES = {"run.json", "key.json", ".lock"}
"""Every run writes them again; they hold no work."""


def changed_files(before: dict[str, tuple[int, int]], folder: Path) -> set[str]:
    after = stamps(folder)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return {name for name in changed if Path(name).name not in NOTES}


def test_every_row_has_one_fate_with_its_evidence(tiny_run: Tiny) -> None:
    found, dropped = fates(tiny_run), tiny_run.table("dropped")
    assert len(found) == tiny_run.table("data").height + dropped.height == len(NAMES)
    del found["markup"]  # its fate is the format filter's affair
    assert found == {
        "half": "curated",
        "strong only": "curated",
        "easy": "too_easy",
        "wrong label": "suspected_wrong_label",
        "few": "too_few_attempts",
        "proof": "proof",
        "no reference": "missing_answer",
        "again": "duplicate",
        "conflict 1": "conflicting_answers",
        "conflict 2": "conflicting_answers",
    }
    assert set(dropped["reason"]) <= {reason.value for reason in DropReason}
    assert all(dropped["evidence"])
    assert set(dropped["stage"]) <= {"statements", "references", "exact_dedup", "near_dedup", "stage2", "export"}


def test_the_last_stage_judges_the_entire_original_set(tiny_run: Tiny) -> None:
    decisions = {
        part: pl.concat(pl.read_parquet(file) for file in tiny_run.folder.glob(f"decisions/{part}/*/decisions/*"))
        for part in ("stage1", "stage2")
    }
    assert sorted(decisions["stage1"]["problem"]) == sorted(decisions["stage2"]["problem"])
    row = tiny_run.table("data").row(by_predicate=pl.col("row") == NAMES.index("strong only"), named=True)
    first, second = (decisions[part].row(by_predicate=pl.col("problem") == row["id"], named=True) for part in decisions)
    assert (first["keep"], first["reason"], first["pass_rate"]) == (False, "never_solved", 0.0)
    assert (second["keep"], second["reason"], second["pass_rate"]) == (True, None, 0.5)
    measured = ("policy", "attempts", "judged", "correct", "pass_rate", "first_policy", "first_pass_rate")
    assert [row[name] for name in measured] == ["strong@1", 4, 4, 2, 0.5, "weak@1", 0.0]
    assert 0 < row["pass_rate_low"] < 0.5 < row["pass_rate_high"] < 1
    assert (row["source"], row["license"], row["answer"]) == ("school", "MIT", "221")


def test_agreement_with_labels_is_stated_with_the_place_of_the_others(tiny_run: Tiny) -> None:
    line = r"^{}: ([\d,]+) of ([\d,]+) verdicts.*$"
    lines = [re.search(line.format(part), tiny_run.out, re.M) for part in ("stage1", "stage2")]
    first, second = (line for line in lines if line is not None)
    assert int(first[2]) - int(first[1]) == 1
    assert second[1] == second[2]
    assert "the others" not in second[0]
    folder = Path(first[0].partition("the others: ")[2])
    others = pl.concat(pl.read_parquet(file) for file in folder.glob("*.parquet"))
    found = others.select("index", "label", "outcome", "answer", "reference").rows()
    assert found == [(1, False, "correct", "42", "42")]


def test_off_a_terminal_progress_is_one_plain_line_a_stage(tiny_run: Tiny) -> None:
    lines = tiny_run.err.splitlines()
    assert [line[:24].rstrip() for line in lines] == TITLES
    assert [line for line in lines if not re.fullmatch(r".{24} +[\d,]+ rows +\d+\.\d s", line)] == []
    assert int(lines[0][24:].split()[0]) == len(TINY)


@pytest.mark.slow
def test_a_limit_and_one_stage(tiny_inputs: Tiny) -> None:
    run = tiny_inputs
    run.recipe.write_text(run.recipe.read_text().partition("[stage2]")[0])
    assert goldilocks("run", run.recipe, "--limit", 5, "--out", run.folder).status == 0
    assert json.loads(goldilocks("status", run.folder, "--json").out)["stages"][0]["in"] == 5
    found = fates(run)
    assert (found["half"], found["strong only"], found["few"]) == ("curated", "never_solved", "curated")
    assert run.table("data")["first_policy"].null_count() == run.table("data").height


def test_the_same_run_again_does_nothing(tiny_copy: Tiny) -> None:
    before = stamps(tiny_copy.folder)
    said = tiny_copy.run()
    assert (said.status, said.err) == (0, "")
    assert changed_files(before, tiny_copy.folder) == set()


@pytest.mark.slow
def test_a_changed_source_is_judged_anew_with_the_attempts_there_are(tiny_copy: Tiny) -> None:
    problems = tiny_copy.recipe.parent / "problems.jsonl"
    rows = problems.read_text()
    before = stamps(tiny_copy.folder)
    problems.write_text(rows + "\n\n")  # it only looks different: it is read, and nothing more
    assert tiny_copy.run().status == 0
    changed = changed_files(before, tiny_copy.folder)
    assert {"/".join(name.split("/")[:2]) for name in changed} == {STAGES["sources"].folder}
    problems.write_text('{"question": "What is 3 times 9?", "final": "27"}\n' + rows)
    assert tiny_copy.run().status == 0
    after = stamps(tiny_copy.folder)
    same = {name for name in before if after.get(name) == before[name]}
    assert {name.split("/")[0] for name in same} <= {"attempts", ".lock", "versions"}
    assert {name for name in before if "/part-" in name} <= same
    assert tiny_copy.table("data").height + tiny_copy.table("dropped").height == len(TINY) + 1
    new = tiny_copy.table("dropped").row(by_predicate=pl.col("row") == 0, named=True)
    assert (new["statement"], new["reason"]) == ("What is 3 times 9?", "too_few_attempts")


@pytest.mark.slow
def test_a_set_of_which_nothing_is_left_is_not_published(tiny_inputs: Tiny) -> None:
    proofs = [{"question": f"Prove that {number} is odd.", "final": "see above"} for number in (3, 5, 7, 9)]
    write_jsonl(tiny_inputs.recipe.with_name("problems.jsonl"), proofs)
    broken = tiny_inputs.recipe.with_name("broken")  # a model of which no engine can be started, and none is
    broken.mkdir()
    for name in ("config.json", "model.safetensors"):
        (broken / name).write_text("{}")
    said = tiny_inputs.run('models.student={kind="torch",model="broken"}')
    assert said.status == 1
    assert "no problem is left for the set, so nothing is published" in said.err
    assert not (tiny_inputs.folder / "curated").exists()
    assert "Curated set" in goldilocks("status", tiny_inputs.folder).out


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


ODD: list[tuple[str, Callable[[Path], None], str]] = [
    # a file, what happens to it, and the shard that must be made again
    (f"{STAGES['sources'].folder}/DONE.json", Path.unlink, ""),
    (f"{STAGES['statements'].folder}/shards/00001.json", Path.unlink, f"{STAGES['statements'].folder} 00001"),
    (f"{STAGES['references'].folder}/kept/00000.parquet", cut, f"{STAGES['references'].folder} 00000"),
    (f"{STAGES['exact_dedup'].folder}/kept/00002.parquet", Path.unlink, f"{STAGES['exact_dedup'].folder} 00002"),
    ("verdicts/stage1/*/verdicts/00001.parquet", cut, "verdicts/stage1 00001"),
    ("decisions/stage2/*/shards/00003.json", Path.unlink, "decisions/stage2 00003"),
]


@pytest.mark.slow
def test_only_what_is_damaged_is_made_again(tiny_run: Tiny, tiny_copy: Tiny) -> None:
    before = stamps(tiny_copy.folder)
    for pattern, damage, _ in ODD:
        (path,) = tiny_copy.folder.glob(pattern)
        damage(path)
    assert tiny_copy.run().status == 0
    changed = [Path(name) for name in changed_files(before, tiny_copy.folder) - {"metrics.jsonl"}]
    shards = {" ".join(["/".join(path.parts[:2]), path.stem]) for path in changed if path.stem.isdigit()}
    assert shards == {shard for _, _, shard in ODD if shard}
    told = {"DONE.json", "sources.json"}  # written again with their stage
    assert [path for path in changed if not path.stem.isdigit() and path.name not in told] == []
    for file in [*tiny_run.folder.rglob("*.parquet"), *tiny_run.folder.rglob("sources.json")]:
        assert (tiny_copy.folder / file.relative_to(tiny_run.folder)).read_bytes() == file.read_bytes()


def test_lost_attempts_are_made_again_and_damaged_ones_named(tiny_run: Tiny, tiny_copy: Tiny) -> None:
    sorted(tiny_copy.folder.glob("attempts/*/part-*.parquet"))[0].unlink()
    assert tiny_copy.run().status == 0
    tables = [
        pl.read_parquet(run.folder / "attempts" / "**" / "part-*.parquet").sort("policy", "problem", "index")
        for run in (tiny_run, tiny_copy)
    ]
    assert tables[0].equals(tables[1])
    part = sorted(tiny_copy.folder.glob("attempts/*/part-*.parquet"))[0]
    cut(part)
    said = tiny_copy.run()
    assert said.status == 1
    assert str(part) in said.err.splitlines()[-1]


@pytest.mark.slow
def test_a_run_that_failed_states_why_in_one_sentence_and_goes_on_when_it_is_mended(tiny_inputs: Tiny) -> None:
    run, weak = tiny_inputs, tiny_inputs.recipe.with_name("weak.jsonl")
    right = weak.read_text()
    good = [tries(f"What is {number} + 0?", str(number), f"{number}") for number in range(120)]
    write_jsonl(weak, [*good, {"question": "What is 5?", "tries": "none"}])
    said = run.run()
    assert said.status == 1
    (plain,) = (line for line in said.err.splitlines() if not re.fullmatch(r".{24} +[\d,]+ rows +\d+\.\d s", line))
    assert re.fullmatch(r"goldilocks: .*weak\.jsonl, row 120: `tries` is not a list of objects: 'none'\.", plain)
    before = stamps(run.folder / "stages" / "02-statements")
    assert before
    assert not (run.folder / "curated").exists()
    assert "not begun" in goldilocks("status", run.folder).out
    weak.write_text(right)
    assert run.run().status == 0
    assert stamps(run.folder / "stages" / "02-statements") == before
    assert fates(run)["half"] == "curated"


def test_a_folder_in_use_or_of_another_recipe_is_refused(tiny_copy: Tiny) -> None:
    before = stamps(tiny_copy.folder)
    with lock_folder(tiny_copy.folder):
        assert "in use by another run" in refusal("run", tiny_copy.recipe, "--out", tiny_copy.folder)
        assert goldilocks("status", tiny_copy.folder).status == 0
    said = refusal("run", tiny_copy.recipe, "--set", "name=other", "--out", tiny_copy.folder)
    assert "holds a run of recipe `tiny`, not `other`" in said
    assert changed_files(before, tiny_copy.folder) == set()


def test_a_folder_name_that_looks_like_markup_is_printed_as_it_is(tiny_run: Tiny, tmp_path: Path) -> None:
    folder = tmp_path / "run[bold" / "x[/a]"
    shutil.copytree(tiny_run.folder, folder)
    said = goldilocks("status", folder)
    assert said.out.startswith(f"tiny: {folder}")
    assert f"; the others: {folder / 'verdicts'}" in said.out
    assert str(folder) in goldilocks("run", tiny_run.recipe, "--out", folder, "--dry").out
    assert f"card: {folder / 'curated' / 'README.md'}\n" in Tiny(tiny_run.recipe, folder).run().out


def test_another_verifier_looks_for_conflicting_references_again(tiny_run: Tiny) -> None:
    made_by = json.loads((tiny_run.folder / "stages" / "05-exact-dedup" / "stage.json").read_text())
    assert made_by["settings"].startswith(f"{answers.VERSION} ")


def test_status_and_plan_for_programs(tiny_copy: Tiny) -> None:
    told = json.loads(goldilocks("status", tiny_copy.folder, "--json").out)
    assert (told["recipe"], told["kind"], told["version"]["number"]) == ("tiny", "curation", 1)
    assert all(stage["finished"] and stage["in"] == stage["kept"] + stage["dropped"] for stage in told["stages"])
    by_name = {stage["name"]: stage for stage in told["stages"]}
    assert by_name["sources"]["in"] == len(TINY)
    assert by_name["stage2.decisions"]["reasons"]["suspected_wrong_label"] == 1
    assert [line["state"] for line in told["last_command"]][-1] == "finished"
    told = json.loads(goldilocks("plan", tiny_copy.recipe, "--out", tiny_copy.folder, "--json").out)
    assert [stage["stage"] for stage in told["stages"]] == ["stage1", "stage2"]
    assert told["stages"][0]["attempts"]["mean"] > 0
