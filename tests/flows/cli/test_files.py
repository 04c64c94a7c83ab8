"""`goldilocks verify statements`, `answers` and `overlap`: one line out per row in, in order."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

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


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_rows_are_classified_in_their_order(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out.jsonl"
    said = goldilocks("verify", "statements", write_jsonl(tmp_path / "rows.jsonl", ROWS), "--out", out, *MAPPED)
    assert said.status == 0
    assert said.out == f"4 rows, 1 kept, 3 dropped: {out}\n"
    assert re.fullmatch(r"classify +4 rows +\d+\.\d s\n", said.err)
    found = lines(out)
    assert [line["id"] for line in found] == ["7", "3", "9", "1"]
    assert [line["reason"] for line in found] == REASONS
    assert [line["keep"] for line in found] == [reason is None for reason in REASONS]
    assert [bool(line["evidence"]) for line in found] == [False, True, True, True]
    assert [line["statement"] for line in found] == [row["task"] for row in ROWS]
    assert sorted(path.name for path in out.parent.iterdir()) == ["out.jsonl"]


def test_columns_are_found_by_usual_names_and_by_maps(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    rows = [{"problem": "What is 3 plus 4?", "answer": "7"}, {"problem": "Prove it.", "answer": "1"}]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    assert goldilocks("verify", "statements", path, "--out", out).status == 0
    assert [(line["id"], line["keep"]) for line in lines(out)] == [("0", True), ("1", False)]
    write_jsonl(path, [{"q": {"text": "What is 3 plus 4?"}, "options": ["6", "7", "8"], "key": "B", "meta": {"a": 1}}])
    maps = [word for one in ("statement=q.text", "choices=options", "answer=key") for word in ("--map", one)]
    assert goldilocks("verify", "statements", path, "--out", out, *maps).status == 0
    assert [(line["keep"], line["answer"]) for line in lines(out)] == [(True, "7")]
    path.write_text("")
    assert goldilocks("verify", "statements", path, "--out", out).out.startswith("0 rows, 0 kept")
    assert lines(out) == []


MISFITS = [
    (("statement",), "--map statement: write FIELD=COLUMN; fields are statement, answer, choices, lang, id."),
    (("statement=question",), "(statement): no row has `question`; there are: no, task, key."),
    (("statement=task", "answer=final"), "(answer): no row has `final`; there are: no, task, key."),
    ((), "(statement): no row has `problem`; there are: no, task, key."),
    (("statement=task", "choices=key"), "line 1: `key` should be a list of options, but is '7'"),
]


@pytest.mark.parametrize(("maps", "said"), MISFITS)
def test_a_map_that_does_not_fit_is_one_sentence(maps: tuple[str, ...], said: str, tmp_path: Path) -> None:
    options = [word for one in maps for word in ("--map", one)]
    assert said in refusal(
        "verify", "statements", write_jsonl(tmp_path / "rows.jsonl", ROWS), "--out", tmp_path / "out.jsonl", *options
    )
    assert not (tmp_path / "out.jsonl").exists()


def test_a_broken_line_leaves_what_was_there_before(tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    rows.write_text('{"problem": "What is 3 plus 4?"}\n{"problem": \n')
    out.write_text("earlier\n")
    assert "rows.jsonl, line 2: not JSON" in refusal("verify", "statements", rows, "--out", out)
    assert out.read_text() == "earlier\n"
    assert {path.name for path in tmp_path.iterdir()} == {"rows.jsonl", "out.jsonl"}
    for name, said in (("rows.txt", "not a .jsonl"), ("absent.jsonl", "there is no such file")):
        assert said in refusal("verify", "statements", tmp_path / name, "--out", out)


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
    found = lines(out)
    assert [line["verdict"] for line in found] == ["correct", "correct", "wrong", "no_answer"]
    assert [line["equal"] for line in found] == [True, True, False, False]
    assert [{name: line[name] for name in pair} for line, pair in zip(found, PAIRS, strict=True)] == PAIRS


BAD_PAIRS = {
    '{"gold": "7"': "line 3: not JSON",
    "[1, 2]": "line 3: a JSON object is wanted",
    '{"gold": 7, "pred": "7"}': 'line 3: "gold" must be a string',
    '{"gold": "7", "pred": 7}': 'line 3: "pred" must be a string or null',
    '{"gold": "7", "pred": "7", "lang": ["de"]}': 'line 3: "lang" must be a string or null',
}


def test_a_bad_pair_is_one_sentence_with_its_line(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    for line, said in BAD_PAIRS.items():
        pairs.write_text(f'{{"gold": "1", "pred": "1"}}\n\n{line}\n')
        assert said in refusal("verify", "answers", pairs, "--out", tmp_path / "out.jsonl", "--workers", "1")
    assert list(tmp_path.iterdir()) == [pairs]
    write_jsonl(pairs, PAIRS)
    assert str(pairs) in refusal("verify", "answers", pairs, "--out", pairs / "out.jsonl")  # that is no folder


def test_responses_may_think_in_other_tags(tmp_path: Path) -> None:
    pairs = write_jsonl(tmp_path / "pairs.jsonl", [{"gold": "4", "pred": "[THINK]\\boxed{4}[/THINK]I do not know."}])
    out = tmp_path / "out.jsonl"
    verdicts = []
    for options in ([], ["--thinking", "[THINK]"]):
        assert goldilocks("verify", "answers", pairs, "--out", out, "--workers", "1", *options).status == 0
        verdicts.append(lines(out)[0]["verdict"])
    assert verdicts == ["correct", "wrong"]
    assert "--thinking 'think' is no tag" in refusal("verify", "answers", pairs, "--out", out, "--thinking", "think")


def test_overlap_names_the_benchmark_row(tmp_path: Path) -> None:
    asked = "A farmer has seventeen sheep and buys twelve more at the market. How many sheep does the farmer have now?"
    rows = write_jsonl(tmp_path / "rows.jsonl", [{"problem": asked}, {"problem": "What is 2+2?"}])
    bench = write_jsonl(tmp_path / "bench.jsonl", [{"question": "Unrelated."}, {"question": asked}])
    out = tmp_path / "out.jsonl"
    said = goldilocks("verify", "overlap", rows, "--against", bench, "--out", out)
    assert said.status == 0, said.err
    first, second = lines(out)
    assert {(hit["benchmark"], hit["row"]) for hit in first["hits"]} == {("bench", 1)}
    assert second["hits"] == []
