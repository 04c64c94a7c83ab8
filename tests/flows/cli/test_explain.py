"""`goldilocks explain`: one problem's whole way, whatever its text looks like."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from curation.records import problem_id
from tests.flows.conftest import TINY, Tiny, goldilocks, refusal, stamps, write_jsonl, write_tiny


def name_of(key: str) -> str:
    return problem_id(TINY[key][0])


def explained(run: Tiny, key: str) -> str:
    said = goldilocks("explain", run.folder, name_of(key))
    assert (said.status, said.err) == (0, "")
    return said.out


def test_a_curated_problem_with_all_its_attempts(tiny_run: Tiny) -> None:
    text = explained(tiny_run, "strong only")
    lines = text.splitlines()
    assert lines[0] == f"{name_of('strong only')}  row 1 of school, licence MIT"
    assert lines[1:3] == ["  statement  What is 13 times 17?", "  reference  221"]
    for stage in ("Format filter", "Reference check", "Exact dedup"):
        assert f"{stage}: kept row 1 of school" in lines
    first, second = (text.index(f"stage {number} (") for number in (1, 2))
    assert re.match(r"stage 1 \(weak@1, [^)]+\): dropped, never_solved: 0 of 4 correct", text[first:])
    assert re.match(r"stage 2 \(strong@1, [^)]+\): kept: 2 of 4 correct", text[second:])
    assert "pass rate  0.500 over 4 attempts, 95 % interval 0.15 to 0.85" in text[second:]
    attempts = [re.findall(r"attempt (\d+) +(\w+) +(\S+)", part) for part in (text[first:second], text[second:])]
    assert attempts[0] == [(str(index), "wrong", str(index + 1)) for index in range(4)]
    assert attempts[1] == [("0", "correct", "221"), ("1", "correct", "221"), ("2", "wrong", "3"), ("3", "wrong", "4")]
    assert text.count(r"We work it out: \boxed{") == 8
    assert lines[-1] == "Curated set: in the curated set"


def test_dropped_problems_have_their_reason_where_they_left(tiny_run: Tiny) -> None:
    text = explained(tiny_run, "proof")
    dropped = tiny_run.table("dropped").row(by_predicate=pl.col("id") == name_of("proof"), named=True)
    assert f"Format filter: dropped row 5 of school, {dropped['reason']}: {dropped['evidence']}" in text
    not_reached = [line.partition(":")[0] for line in text.splitlines() if line.endswith("not reached")]
    assert not_reached == ["Reference check", "Exact dedup", "Near dedup", "stage 1", "stage 2"]
    assert "in the curated set" not in text
    for key, words, times in (
        ("no reference", "\n  reference  (none)\n", 1),
        ("no reference", "dropped row 6 of school, missing_answer: ", 1),
        ("conflict 1", "conflicting_answers: references: 56 | 54", 2),
        ("wrong label", "dropped, suspected_wrong_label: 3 of 4 agree on 90", 2),
    ):
        assert explained(tiny_run, key).count(words) == times, key
    assert "class 1, 3 votes" in explained(tiny_run, "wrong label")


def test_a_repeated_problem_shows_all_its_rows(tiny_run: Tiny) -> None:
    text, name = explained(tiny_run, "half"), name_of("half")
    heads = [line for line in text.splitlines() if line.startswith(name)]
    assert heads == [f"{name}  row {row} of school, licence MIT" for row in (0, 7)]
    assert "Exact dedup: dropped row 7 of school, duplicate: same as row 0 of school" in text
    assert "Exact dedup: kept row 0 of school" in text
    assert text.endswith("Curated set: in the curated set\n")


@pytest.mark.slow
def test_the_beginning_of_an_id_is_enough_if_it_is_of_one_problem(tiny_run: Tiny) -> None:
    ids, name = sorted({name_of(key) for key in TINY}), name_of("half")
    shortest = next(name[:length] for length in range(1, 21) if sum(one.startswith(name[:length]) for one in ids) == 1)
    assert goldilocks("explain", tiny_run.folder, shortest).out == explained(tiny_run, "half")
    shared = next(one[0] for one, other in itertools.pairwise(ids) if one[0] == other[0])
    matching = [one for one in ids if one.startswith(shared)]
    said = refusal("explain", tiny_run.folder, shared)
    assert f"'{shared}' matches {len(matching)} ids: {', '.join(matching[:5])}; give more." in said
    assert f"matches {len(ids)} ids: {', '.join(ids[:5])} …; give more." in refusal("explain", tiny_run.folder, "")
    for odd in ("zz", "[bold]", ".*"):
        assert f"holds no problem whose id begins with {odd!r}" in refusal("explain", tiny_run.folder, odd)


def test_rows_of_a_reason_are_rows_for_programs_and_a_misspelt_reason_is_named(tiny_run: Tiny) -> None:
    table = json.loads(goldilocks("explain", tiny_run.folder, "missing_answer", "--json").out)
    assert [row["row"] for row in table["rows"]] == [6]
    assert "did you mean `missing_answer`" in refusal("explain", tiny_run.folder, "mising_answer")


def test_a_problem_is_its_rows_for_programs(tiny_run: Tiny) -> None:
    name = name_of("wrong label")
    told = json.loads(goldilocks("explain", tiny_run.folder, name[:8], "--json").out)
    assert told["problem"] == name
    by_name = {stage["name"]: stage for stage in told["stages"]}
    assert by_name["sources"]["kept"][0]["statement"] == TINY["wrong label"][0]
    assert by_name["stage2.decisions"]["decisions"][0]["reason"] == "suspected_wrong_label"
    assert len(by_name["stage2.attempts"]["verdicts"]) == 4
    assert by_name["export"] == {"name": "export"}


def test_a_drop_reason_lists_its_rows(tiny_run: Tiny) -> None:
    dropped = tiny_run.table("dropped").filter(reason="missing_answer")
    said = goldilocks("explain", tiny_run.folder, "missing_answer").out.splitlines()
    assert [line.split()[0] for line in said[:-1]] == dropped["id"].to_list() != []
    assert said[-1] == f"{dropped.height} rows were dropped as missing_answer"


def test_explaining_writes_nothing_and_needs_neither_input_files_nor_a_finished_run(tiny_copy: Tiny) -> None:
    before = explained(tiny_copy, "strong only")
    files = stamps(tiny_copy.folder)
    for file in tiny_copy.recipe.parent.glob("*.jsonl"):
        file.unlink()
    assert explained(tiny_copy, "strong only") == before
    assert stamps(tiny_copy.folder) == files
    for later in (
        "stages/05-exact-dedup",
        "stages/06-near-dedup",
        "decisions",
        "verdicts",
        "stages/10-export",
        "curated",
    ):
        shutil.rmtree(tiny_copy.folder / later)
    text = explained(tiny_copy, "half")
    for words in ("Reference check: kept row 0 of school", "Exact dedup: not reached", "stage 2: not reached"):
        assert words in text


@pytest.mark.slow
def test_control_characters_of_rows_are_written_out(tmp_path: Path) -> None:
    recipe, folder = write_tiny(tmp_path / "in"), tmp_path / "run"
    hostile = "\x1b[2J\x1b]0;owned\x07\x9b1A\x7f"
    for file in recipe.parent.glob("*.jsonl"):
        first, *rows = [json.loads(line) for line in file.read_text().splitlines()]  # the first is left for the set
        for row in rows:
            row["question"] += hostile
            row |= {"final": f"{row['final']}{hostile}"} if row.get("final") == "221" else {}
            for attempt in row.get("tries", ()):
                attempt["text"] += hostile
        write_jsonl(file, [first, *rows])
    said = [goldilocks("run", recipe, "--out", folder)]
    names = [problem_id(TINY[key][0] + hostile) for key in ("strong only", "wrong label", "proof", "conflict 1")]
    said += [goldilocks("explain", folder, name, *options) for name in names for options in ((), ("--json",))]
    said += [goldilocks(command, folder) for command in ("review", "status")]
    said += [goldilocks("diff", folder, folder), goldilocks("review", folder, "--audit", "3")]
    assert [one.status for one in said] == [0] * len(said), [one.err for one in said if one.status]
    assert sum(r"\x1b[2J" in one.out for one in said) >= len(names)
    assert [one.out + one.err for one in said if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", one.out + one.err)] == []


def test_an_id_of_ones_own_in_meta_is_found(tmp_path: Path) -> None:
    recipe = write_tiny(tmp_path / "inputs")
    meta = ("--set", 'sources.0.columns.meta=["question", "final"]')
    assert goldilocks("run", recipe, "--out", tmp_path / "run", *meta).status == 0
    found = goldilocks("explain", tmp_path / "run", "What is 13 times 17?").out
    assert found == goldilocks("explain", tmp_path / "run", "221").out
    assert found.startswith(name_of("strong only"))
    assert "2 ids" in refusal("explain", tmp_path / "run", "42")
