"""Sources: every format and column map into Problems; whatever is wrong is one error that lists what was there."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import datasets
import polars as pl
import pytest

from curation.records import PROBLEM, SourceError, problem_id
from curation.sources.reading import check_source, source_digest
from tests.curation.sources.reading import read, source
from tests.curation.tables import check_refused, write_lines

GSM8K = [
    {"question": "Ann has 3 bags of 6. How many?", "answer": "3 * 6 = <<3*6=18>>18\n#### 18"},
    {"question": "What is 2 + 3?", "answer": "Easy. #### 4? No.\n#### 5 "},
    {"question": "No answer here?", "answer": "I do not know."},
]


def test_every_column_of_a_problem(tmp_path: Path) -> None:
    row = {"problem": "Which is even?", "reference": {"value": 4}, "options": ["A) 3", "B) 4"], "worked": "4 = 2 * 2"}
    write_lines(
        tmp_path / "x.jsonl", [{**row, "meta": {"lang": "de", "level": 2}, "uid": "x-1"}, {"problem": "Find x²."}]
    )
    columns = {"statement": "problem", "answer": "reference.value", "choices": "options", "solution": "worked"}
    columns |= {"lang": "meta.lang", "meta": ["uid", "meta.level", "meta"]}
    frame = read(source(columns=columns, license="MIT", weight=2), tmp_path)
    assert frame.schema == PROBLEM
    id_ = problem_id("Which is even?", ["A) 3", "B) 4"])
    first, second = frame.to_dicts()
    assert json.loads(first.pop("meta")) == {"uid": "x-1", "meta.level": 2, "meta": {"lang": "de", "level": 2}}
    assert first == {
        **{"id": id_, "group": id_, "domain": "math", "statement": "Which is even?", "answer": "4"},
        **{"choices": ["A) 3", "B) 4"], "solution": "4 = 2 * 2", "lang": "de", "source": "s", "row": 0},
        **{"license": "MIT", "weight": 2.0, "raw_statement": None, "raw_answer": None},
    }
    assert (second["id"], second["lang"], second["row"]) == (problem_id("Find x²."), "en", 1)
    assert [second[name] for name in ("answer", "choices", "solution")] == [None, None, None]


def test_the_same_rows_from_every_format(tmp_path: Path) -> None:
    write_lines(tmp_path / "x.jsonl", GSM8K)
    frame = pl.DataFrame(GSM8K)
    frame.write_csv(tmp_path / "x.csv")
    frame.write_parquet(tmp_path / "x.parquet")
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress((tmp_path / "x.jsonl").read_bytes()))
    datasets.Dataset.from_list(GSM8K).save_to_disk(str(tmp_path / "saved"))
    (tmp_path / "folder").mkdir()
    write_lines(tmp_path / "folder" / "train.jsonl", GSM8K)
    columns = {"statement": "question", "answer": {"path": "answer", "take": "hash"}, "solution": "answer"}
    kinds = {"x.jsonl": "jsonl", "x.jsonl.gz": "jsonl", "x.csv": "csv", "x.parquet": "parquet"}
    kinds |= {"saved": "dataset", "folder": "dataset"}
    found = [read(source(path, kind, columns=columns), tmp_path, batch_rows=2) for path, kind in kinds.items()]
    assert found[0]["answer"].to_list() == ["18", "5", None]
    assert found[0]["solution"].to_list() == [row["answer"] for row in GSM8K]
    assert all(frame.equals(found[0]) for frame in found)


def test_the_answer_in_the_solutions_last_box(tmp_path: Path) -> None:
    texts = (r"\boxed{1}, so \boxed{\frac{1}{2}}.", r"\boxed 7", r"\boxed{1")
    write_lines(tmp_path / "x.jsonl", ({"problem": "p", "answer": text} for text in texts))
    columns = {"answer": {"path": "answer", "take": "boxed"}}
    assert read(source(columns=columns), tmp_path)["answer"].to_list() == [r"\frac{1}{2}", "7", None]


def test_large_integers_keep_their_digits(tmp_path: Path) -> None:
    big = 2**70
    rows = [{"problem": "p", "answer": value, "tag": big} for value in (big, -big, 2**63, 2**53 + 1)]
    write_lines(tmp_path / "x.jsonl", rows)
    frame = read(source(columns={"answer": "answer", "meta": ["tag"]}), tmp_path)
    assert frame["answer"].to_list() == [str(big), str(-big), str(2**63), str(2**53 + 1)]
    assert json.loads(frame["meta"][0]) == {"tag": big}


def test_nothing_behind_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"problem": "a"}\n{"problem": "b"}\nbroken\n')
    assert read(source(limit=2), tmp_path).height == 2
    with pytest.raises(SourceError, match="line 3"):
        read(source(limit=3), tmp_path)


def test_several_files_are_one_source_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "parts" / "b").mkdir(parents=True)
    write_lines(tmp_path / "parts" / "2.jsonl", [{"problem": "c"}])
    write_lines(tmp_path / "parts" / "10.jsonl", [{"problem": "a"}, {"problem": "b"}])
    write_lines(tmp_path / "parts" / "b" / "1.jsonl", [{"problem": "d"}])
    flat = read(source("parts/*.jsonl"), tmp_path, batch_rows=2)
    assert flat.select("statement", "row").rows() == [("a", 0), ("b", 1), ("c", 2)]
    assert read(source("parts/**/*.jsonl"), tmp_path)["statement"].to_list() == ["a", "b", "c", "d"]
    assert read(source(str(tmp_path / "parts" / "2.jsonl")), tmp_path / "elsewhere").height == 1


def test_a_column_may_come_later_but_not_never(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"problem": f"p{i}"} for i in range(5)]
    write_lines(tmp_path / "x.jsonl", [*rows, {"problem": "q", "answer": "1"}])
    wanted = source(columns={"answer": "answer"})
    check_source(wanted, tmp_path)
    # However the rows are cut into shards: what the check before the run accepts, the run accepts too.
    assert read(wanted, tmp_path, batch_rows=2)["answer"].to_list() == [None] * 5 + ["1"]


def test_a_wrong_column_is_one_error_that_lists_what_was_there(tmp_path: Path) -> None:
    write_lines(tmp_path / "x.jsonl", [{"problem": "p", "answer": "18", "meta": {"level": 3}, "turns": ["a"]}])
    check_refused("columns refused", lambda given: check_source(source(columns=given), tmp_path), SourceError)
    check_refused("columns refused", lambda given: read(source(columns=given), tmp_path), SourceError)


def test_a_wrong_path_lists_its_neighbours(tmp_path: Path) -> None:
    write_lines(tmp_path / "right.jsonl", GSM8K)
    (tmp_path / "folder").mkdir()
    for path in ("wrong.jsonl", "*.csv", "folder"):
        with pytest.raises(SourceError) as caught:
            read(source(path), tmp_path)
        assert str(caught.value) == f"source s: no file at {tmp_path / path}; {tmp_path} holds folder/, right.jsonl."
    with pytest.raises(SourceError, match=r"no file at .*folder/deep/x\.csv; .*folder holds nothing"):
        read(source("folder/deep/x.csv", "csv"), tmp_path)
    with pytest.raises(SourceError, match="no file at"):
        source_digest(source("wrong.jsonl"), tmp_path)


def test_what_holds_no_rows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("\n\n")
    (tmp_path / "x.csv").write_text("problem,answer\n")
    pl.DataFrame(schema={"problem": pl.String}).write_parquet(tmp_path / "x.parquet")
    for kind in ("jsonl", "csv", "parquet"):
        for look in (read, check_source):
            with pytest.raises(SourceError, match=rf"source s: x\.{kind} holds no rows"):
                look(source(f"x.{kind}", kind), tmp_path)


def test_a_saved_data_set_with_splits(tmp_path: Path) -> None:
    splits = {"train": datasets.Dataset.from_list(GSM8K[:2]), "test": datasets.Dataset.from_list(GSM8K[2:])}
    datasets.DatasetDict(splits).save_to_disk(str(tmp_path / "saved"))
    columns = {"statement": "question"}
    assert read(source("saved", "dataset", columns=columns), tmp_path).height == 2
    test = read(source("saved", "dataset", columns=columns, split="test"), tmp_path)
    assert test["statement"].to_list() == ["No answer here?"]
    assert read(source("saved", "dataset", columns=columns, limit=1), tmp_path).height == 1
    with pytest.raises(SourceError, match="has no split `dev`; it has: train, test"):
        read(source("saved", "dataset", columns=columns, split="dev"), tmp_path)
    with pytest.raises(SourceError, match="no row has `problem`; there are: question, answer"):
        check_source(source("saved", "dataset"), tmp_path)


def test_the_digest_follows_the_content(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", GSM8K)
    wanted = source()
    before = source_digest(wanted, tmp_path)
    os.utime(path, (1, 1))
    (tmp_path / "elsewhere").mkdir()
    write_lines(tmp_path / "elsewhere" / "x.jsonl", GSM8K)
    assert source_digest(wanted, tmp_path) == source_digest(wanted, tmp_path / "elsewhere") == before
    write_lines(path, GSM8K[:2])
    assert source_digest(wanted, tmp_path) != before
    write_lines(tmp_path / "x2.jsonl", GSM8K)
    assert source_digest(source("x*.jsonl"), tmp_path) != source_digest(wanted, tmp_path)
