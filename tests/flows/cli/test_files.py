"""`goldilocks verify` on files: one line out per row in, in order."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.flows.conftest import Said, goldilocks, refusal, write_jsonl

ROWS: list[dict[str, Any]] = [
    {"no": 7, "task": "What is 3 plus 4?", "key": "7"},
    {"no": 3, "task": "Prove that 3 + 4 = 7.", "key": "7"},
    {"no": 9, "task": None, "key": "7"},
    {"no": 1, "task": "What is 5 plus 4?", "key": None},
]
PAIRS = [
    {"gold": "7", "pred": "7", "note": "kept as it is"},
    {"gold": "\\frac{1}{2}", "pred": "The answer is \\boxed{0.5}."},
    {"gold": "7", "pred": "8"},
    {"gold": "7", "pred": None},
]


def mapped(*fields: str) -> list[str]:
    return [word for field in fields for word in ("--map", field)]


def verified(folder: Path, kind: str, rows: list[dict[str, Any]], *options: str | Path) -> tuple[Said, list[Any]]:
    """What `goldilocks verify KIND` prints about rows, and the lines that it writes."""
    out = folder / "new" / "out.jsonl"
    said = goldilocks("verify", kind, write_jsonl(folder / "rows.jsonl", rows), "--out", out, *options)
    assert said.status == 0, said.err
    assert [path.name for path in out.parent.iterdir()] == ["out.jsonl"]
    return said, [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_rows_are_classified_in_their_order(tmp_path: Path) -> None:
    said, found = verified(tmp_path, "statements", ROWS, *mapped("statement=task", "answer=key", "id=no"))
    assert said.out.startswith("4 rows, 1 kept, 3 dropped: ")
    assert re.fullmatch(r"classify +4 rows +\d+\.\d s\n", said.err)
    assert [(line["id"], line["keep"], line["reason"], bool(line["evidence"])) for line in found] == [
        ("7", True, None, False),
        ("3", False, "proof", True),
        ("9", False, "missing_statement", True),
        ("1", False, "missing_answer", True),
    ]
    assert [line["statement"] for line in found] == [row["task"] for row in ROWS]


def test_columns_are_found_by_usual_names_and_by_maps(tmp_path: Path) -> None:
    usual = [{"problem": "What is 3 plus 4?", "answer": "7"}, {"problem": "Prove it.", "answer": "1"}]
    _, found = verified(tmp_path, "statements", usual)
    assert [(line["id"], line["keep"]) for line in found] == [("0", True), ("1", False)]
    nested = {"q": {"text": "What is 3 plus 4?"}, "options": ["6", "7", "8"], "key": "B", "meta": {"a": 1}}
    maps = mapped("statement=q.text", "choices=options", "answer=key")
    _, found = verified(tmp_path, "statements", [nested], *maps)
    assert [(line["keep"], line["answer"]) for line in found] == [(True, "7")]
    said, found = verified(tmp_path, "statements", [])
    assert (said.out[:14], found) == ("0 rows, 0 kept", [])


@pytest.mark.parametrize(
    ("maps", "words"),
    [
        (("statement",), "--map statement: write FIELD=COLUMN; fields are statement, answer, choices, lang, id."),
        (("statement=question",), "(statement): no row has `question`; there are: no, task, key."),
        (("statement=task", "answer=final"), "(answer): no row has `final`; there are: no, task, key."),
        ((), "(statement): no row has `problem`; there are: no, task, key."),
        (("statement=task", "choices=key"), "line 1: `key` should be a list of options, but is '7'"),
    ],
)
def test_a_map_that_does_not_fit_is_one_sentence(maps: tuple[str, ...], words: str, tmp_path: Path) -> None:
    rows, out = write_jsonl(tmp_path / "rows.jsonl", ROWS), tmp_path / "out.jsonl"
    assert words in refusal("verify", "statements", rows, "--out", out, *mapped(*maps))
    assert not out.exists()


def test_a_broken_line_leaves_what_was_there_before(tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    rows.write_text('{"problem": "What is 3 plus 4?"}\n{"problem": \n')
    out.write_text("earlier\n")
    assert "rows.jsonl, line 2: not JSON" in refusal("verify", "statements", rows, "--out", out)
    assert out.read_text() == "earlier\n"
    assert {path.name for path in tmp_path.iterdir()} == {"rows.jsonl", "out.jsonl"}
    for name, words in (("rows.txt", "not a .jsonl"), ("absent.jsonl", "there is no such file")):
        assert words in refusal("verify", "statements", tmp_path / name, "--out", out)


def test_pairs_come_back_judged_in_their_order(tmp_path: Path) -> None:
    said, found = verified(tmp_path, "answers", PAIRS, "--workers", "1")
    assert said.out.startswith("4 pairs: correct 2, wrong 1, no_answer 1: ")
    verdicts = ("correct", "correct", "wrong", "no_answer")
    assert found == [
        {**line, **pair, "verdict": verdict, "equal": verdict == "correct"}
        for line, pair, verdict in zip(found, PAIRS, verdicts, strict=True)
    ]


def test_a_bad_pair_is_one_sentence_with_its_line(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    for line, words in (
        ('{"gold": "7"', "line 3: not JSON"),
        ("[1, 2]", "line 3: expected a JSON object"),
        ('{"gold": 7, "pred": "7"}', 'line 3: "gold" must be a string'),
        ('{"gold": "7", "pred": 7}', 'line 3: "pred" must be a string or null'),
        ('{"gold": "7", "pred": "7", "lang": ["de"]}', 'line 3: "lang" must be a string or null'),
    ):
        pairs.write_text(f'{{"gold": "1", "pred": "1"}}\n\n{line}\n')
        assert words in refusal("verify", "answers", pairs, "--out", tmp_path / "out.jsonl", "--workers", "1")
    assert list(tmp_path.iterdir()) == [pairs]
    write_jsonl(pairs, PAIRS)
    assert str(pairs) in refusal("verify", "answers", pairs, "--out", pairs / "out.jsonl")  # that is no folder


def test_responses_may_think_in_other_tags(tmp_path: Path) -> None:
    pair = {"gold": "4", "pred": "[THINK]\\boxed{4}[/THINK]I do not know."}
    for tag, verdict in (("<think>", "correct"), ("[THINK]", "wrong")):
        _, (line,) = verified(tmp_path, "answers", [pair], "--workers", "1", "--thinking", tag)
        assert line["verdict"] == verdict
    command = ("verify", "answers", tmp_path / "rows.jsonl", "--out", tmp_path / "out.jsonl", "--thinking", "think")
    assert "--thinking 'think' is no tag" in refusal(*command)


def test_overlap_names_the_benchmark_row(tmp_path: Path) -> None:
    asked = "A farmer has seventeen sheep and buys twelve more at the market. How many sheep does the farmer have now?"
    bench = write_jsonl(tmp_path / "bench.jsonl", [{"question": "Unrelated."}, {"question": asked}])
    rows = [{"problem": asked}, {"problem": "What is 2+2?"}]
    _, (first, second) = verified(tmp_path, "overlap", rows, "--against", bench)
    assert {(hit["benchmark"], hit["row"]) for hit in first["hits"]} == {("bench", 1)}
    assert second["hits"] == []


def test_rows_gain_their_language(tmp_path: Path) -> None:
    texts = ["Combien de pommes reste-t-il ?", "$x^2$", "How many are left?", None]
    said, found = verified(tmp_path, "language", [{"n": n, "text": text} for n, text in enumerate(texts)])
    assert [(row["n"], row["lang"]) for row in found] == [*enumerate(("fr", "undetermined", "en", "undetermined"))]
    assert 0 < found[0]["confidence"] <= 1
    assert said.out.startswith("undetermined 2, fr 1, en 1: ")
    command = ("verify", "language", tmp_path / "rows.jsonl", "--out", tmp_path / "out.jsonl", "--field", "body")
    assert "no row has `body`" in refusal(*command)
