"""`goldilocks verify statements` and `goldilocks verify answers`: one line out per row in, in order."""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.flows.conftest import goldilocks, refusal, write_jsonl

ROWS: list[dict[str, Any]] = [
    {"no": 7, "task": "What is 3 plus 4?", "key": "7"},
    {"no": 3, "task": "Prove that 3 + 4 = 7.", "key": "7"},
    {"no": 9, "task": None, "key": "7"},
    {"no": 1, "task": "What is 5 plus 4?", "key": None},
]
REASONS = [None, "proof", "missing_statement", "missing_answer"]
MAPPED = ("--map", "statement=task", "--map", "answer=key", "--map", "id=no")


def written(folder: Path, kind: str, rows: list[dict[str, Any]] = ROWS) -> Path:
    """The rows as a file of the kind."""
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        pl.DataFrame(rows).write_parquet(path)
    elif kind == "csv":
        with path.open("w", newline="", encoding="utf-8") as handle:
            table = csv.DictWriter(handle, rows[0].keys())
            table.writeheader()
            table.writerows(rows)
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    else:
        write_jsonl(path, rows)
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "parquet", "csv"])
def test_rows_are_classified_in_their_order(kind: str, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out.jsonl"
    said = goldilocks("verify", "statements", written(tmp_path, kind), "--out", out, *MAPPED)
    assert said.status == 0
    assert said.out == f"4 rows, 1 kept, 3 dropped: {out}\n"
    assert re.fullmatch(r"classify +4 rows +\d+\.\d s\n", said.err)
    found = lines(out)
    assert [line["id"] for line in found] == ["7", "3", "9", "1"]
    assert [line["reason"] for line in found] == REASONS
    assert [line["keep"] for line in found] == [reason is None for reason in REASONS]
    assert [bool(line["evidence"]) for line in found] == [False, True, True, True]
    assert [line["statement"] for line in found] == [row["task"] for row in ROWS]
    assert list(found[0]) == ["id", "keep", "reason", "evidence", "statement", "answer"]
    assert sorted(path.name for path in out.parent.iterdir()) == ["out.jsonl"]


@pytest.mark.parametrize("name", ["problem", "statement"])
def test_the_usual_names_need_no_map_and_rows_are_numbered(name: str, tmp_path: Path) -> None:
    rows = write_jsonl(
        tmp_path / "rows.jsonl", [{name: "What is 3 plus 4?", "answer": "7"}, {name: "Prove it.", "answer": "1"}]
    )
    assert goldilocks("verify", "statements", rows, "--out", tmp_path / "out.jsonl").status == 0
    assert [(line["id"], line["keep"]) for line in lines(tmp_path / "out.jsonl")] == [("0", True), ("1", False)]


def test_nested_fields_and_options_are_found(tmp_path: Path) -> None:
    row = {"q": {"text": "What is 3 plus 4?"}, "options": ["6", "7", "8"], "key": "B"}
    said = goldilocks(
        "verify",
        "statements",
        write_jsonl(tmp_path / "rows.jsonl", [row]),
        "--out", tmp_path / "out.jsonl",
        "--map", "statement=q.text", "--map", "choices=options", "--map", "answer=key",
    )  # fmt: skip
    assert said.status == 0
    (line,) = lines(tmp_path / "out.jsonl")
    assert line["keep"]
    assert line["answer"] == "7"


def test_a_file_without_rows_gives_a_file_without_rows(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").touch()
    assert goldilocks("verify", "statements", tmp_path / "rows.jsonl", "--out", tmp_path / "out.jsonl").out.startswith(
        "0 rows, 0 kept"
    )
    assert lines(tmp_path / "out.jsonl") == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--map", "statement"],
            "--map statement: write FIELD=COLUMN; fields are statement, answer, choices, lang, id, source, meta.",
        ),
        (["--map", "question=task"], "--map question=task: write FIELD=COLUMN; fields are statement"),
        (["--map", "statement=question"], "(statement): no row has `question`; there are: no, task, key."),
        (
            ["--map", "statement=task", "--map", "answer=final"],
            "(answer): no row has `final`; there are: no, task, key.",
        ),
        ([], "(statement): no row has `problem`; there are: no, task, key."),
        (["--map", "statement=task", "--map", "choices=key"], "line 1: `key` should be a list of options, but is '7'"),
    ],
)
def test_a_map_that_does_not_fit_is_one_sentence(arguments: list[str], said: str, tmp_path: Path) -> None:
    rows = written(tmp_path, "jsonl")
    assert said in refusal("verify", "statements", rows, "--out", tmp_path / "out.jsonl", *arguments)
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(("name", "said"), [("rows.txt", "not a .jsonl"), ("absent.jsonl", "there is no such file")])
def test_a_file_that_cannot_be_read_is_one_sentence(name: str, said: str, tmp_path: Path) -> None:
    assert said in refusal("verify", "statements", tmp_path / name, "--out", tmp_path / "out.jsonl")


def test_a_broken_line_leaves_what_was_there_before(tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    rows.write_text('{"problem": "What is 3 plus 4?"}\n{"problem": \n')
    out.write_text("earlier\n")
    assert "rows.jsonl, line 2: not JSON" in refusal("verify", "statements", rows, "--out", out)
    assert out.read_text() == "earlier\n"
    assert {path.name for path in tmp_path.iterdir()} == {"rows.jsonl", "out.jsonl"}


PAIRS = [
    {"gold": "7", "pred": "7", "note": "kept as it is"},
    {"gold": "\\frac{1}{2}", "pred": "The answer is \\boxed{0.5}."},
    {"gold": "7", "pred": "8"},
    {"gold": "7", "pred": None},
]


def test_pairs_come_back_judged_in_their_order(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    said = goldilocks("verify", "answers", write_jsonl(tmp_path / "pairs.jsonl", PAIRS), "--out", out, "--workers", "1")
    assert said.status == 0
    assert said.out == f"4 pairs: correct 2, wrong 1, no_answer 1: {out}\n"
    assert re.fullmatch(r"verify answers +4 rows +\d+\.\d s\n", said.err)
    found = lines(out)
    assert [line["verdict"] for line in found] == ["correct", "correct", "wrong", "no_answer"]
    assert [line["equal"] for line in found] == [True, True, False, False]
    assert [{name: line[name] for name in pair} for line, pair in zip(found, PAIRS, strict=True)] == PAIRS


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"gold": "7"', "line 3: not JSON"),
        ("[1, 2]", "line 3: a JSON object is wanted"),
        ('{"pred": "7"}', 'line 3: "gold" must be a string'),
        ('{"gold": 7, "pred": "7"}', 'line 3: "gold" must be a string'),
        ('{"gold": "7", "pred": 7}', 'line 3: "pred" must be a string or null'),
    ],
)
def test_a_bad_pair_is_one_sentence_with_its_line(line: str, said: str, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(f'{{"gold": "1", "pred": "1"}}\n\n{line}\n')
    assert said in refusal("verify", "answers", pairs, "--out", tmp_path / "out.jsonl", "--workers", "1")
    assert list(tmp_path.iterdir()) == [pairs]


def test_pairs_that_are_not_there_are_one_sentence(tmp_path: Path) -> None:
    assert "absent.jsonl" in refusal("verify", "answers", tmp_path / "absent.jsonl", "--out", tmp_path / "out.jsonl")


@pytest.mark.parametrize("command", [["verify", "statements"], ["verify", "answers"]])
def test_a_place_that_cannot_be_written_is_one_sentence(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    rows = write_jsonl(tmp_path / "rows.jsonl", [{"problem": "What is 3 plus 4?", "gold": "7", "pred": "7"}])
    assert str(tmp_path / "file") in refusal(*command, rows, "--out", tmp_path / "file" / "out.jsonl")


def test_contamination_names_the_benchmark_row(tmp_path: Path) -> None:
    asked = "A farmer has seventeen sheep and buys twelve more at the market. How many sheep does the farmer have now?"
    (tmp_path / "rows.jsonl").write_text(
        json.dumps({"problem": asked}) + "\n" + json.dumps({"problem": "What is 2+2?"}) + "\n"
    )
    (tmp_path / "bench.jsonl").write_text(
        json.dumps({"question": "Unrelated."}) + "\n" + json.dumps({"question": asked}) + "\n"
    )
    out = tmp_path / "out.jsonl"
    said = goldilocks("verify", "overlap", tmp_path / "rows.jsonl", "--against", tmp_path / "bench.jsonl", "--out", out)
    assert said.status == 0, said.err
    first, second = (json.loads(line) for line in out.read_text().splitlines())
    assert {(hit["benchmark"], hit["row"]) for hit in first["hits"]} == {("bench", 1)}
    assert second["hits"] == []
    refused = goldilocks(
        "verify", "overlap", tmp_path / "rows.jsonl", "--against", out, "--out", out, "--method", "magic"
    )
    assert refused.status == 1
    assert "ngram, words, embedding" in refused.err


@pytest.mark.parametrize("field", ["source", "meta"])
def test_source_and_meta_are_read_where_they_are_named(field: str, tmp_path: Path) -> None:
    rows = [{"problem": "What is 2 + 3?", "answer": "5", "of": "book", field: {"not": "text"}}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out.jsonl"
    assert goldilocks("verify", "statements", path, "--out", out).status == 0
    assert goldilocks("verify", "statements", path, "--out", out, "--map", f"{field}=of").status == 0
    assert json.loads(out.read_text())["keep"]


def test_responses_may_think_in_other_tags(tmp_path: Path) -> None:
    pairs = write_jsonl(tmp_path / "pairs.jsonl", [{"gold": "4", "pred": "[THINK]\\boxed{4}[/THINK]I do not know."}])
    out = tmp_path / "out.jsonl"
    verdicts = []
    for options in ([], ["--thinking", "[THINK]"]):
        assert goldilocks("verify", "answers", pairs, "--out", out, "--workers", "1", *options).status == 0
        verdicts.append(lines(out)[0]["verdict"])
    assert verdicts == ["correct", "wrong"]
    assert "--thinking 'think' is no tag" in refusal("verify", "answers", pairs, "--out", out, "--thinking", "think")


def test_classify_sets_bad_rows_aside_where_it_may(tmp_path: Path) -> None:
    sound = b'{"problem": "What is 2 + 2?", "answer": "4"}\n'
    bad = b'{"problem": "What is 2?", "answer": NaN}\n'
    (tmp_path / "in.jsonl").write_bytes(sound + bad + sound)
    out = tmp_path / "out.jsonl"
    assert "more than 0" not in refusal("verify", "statements", tmp_path / "in.jsonl", "--out", out)
    assert not out.exists()
    said = goldilocks("verify", "statements", tmp_path / "in.jsonl", "--out", out, "--bad-rows", 1)
    assert said.status == 0, said.err
    verdicts = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["id"], row["keep"], row["reason"]) for row in verdicts] == [
        ("0", True, None), ("1", False, "bad_row"), ("2", True, None)
    ]  # fmt: skip
    assert verdicts[1]["evidence"].startswith(f"{tmp_path}/in.jsonl, line 2: not JSON (")
    assert pl.read_parquet(tmp_path / "out.jsonl.quarantine.parquet")["raw"].to_list() == [bad]
    (tmp_path / "in.jsonl").write_bytes(sound + bad + bad)
    assert "more than 1 rows cannot be read" in refusal(
        "verify", "statements", tmp_path / "in.jsonl", "--out", out, "--bad-rows", 1
    )
