"""Which rows of a source are taken: where, quota, join and limit, in this order, and what is refused."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import datasets
import pytest
from pydantic import ValidationError

from curation.records import SourceError
from curation.sources.reading import read_parts, selected_rows
from tests.curation.sources.reading import read, source
from tests.curation.tables import check_refused, write_lines

ROWS = [
    {"problem": f"What is {n} + 1?", "answer": str(n + 1), "valid": "Yes" if n % 2 else "No", "level": n,
     "meta": {"kind": "abc"[n % 3]}, "license": "MIT" if n < 5 else None}
    for n in range(30)
]  # fmt: skip


def positions(folder: Path, **settings: Any) -> list[int]:
    write_lines(folder / "x.jsonl", ROWS)
    return read(source(**settings), folder)["row"].to_list()


def test_rows_of_a_where_keep_their_positions_in_the_source(tmp_path: Path) -> None:
    assert positions(tmp_path, where="valid = 'Yes' AND level >= 20") == [21, 23, 25, 27, 29]
    assert positions(tmp_path, where="level IN (1, 3) OR meta.kind = 'c'")[:4] == [1, 2, 3, 5]
    assert positions(tmp_path, where="license = 'MIT'") == [0, 1, 2, 3, 4]


def test_a_where_that_cannot_be_meant_or_is_of_no_row_is_refused(tmp_path: Path) -> None:
    check_refused("where refused", lambda where: positions(tmp_path, where=where), SourceError)
    with pytest.raises(SourceError, match=r"source s: x.jsonl holds no rows that pass its `where`"):
        positions(tmp_path, where="level > 100")


def test_a_quota_draws_the_same_rows_again_and_more_of_the_same(tmp_path: Path) -> None:
    few = positions(tmp_path, quota=5)
    assert len(few) == 5
    assert few == sorted(few)
    assert positions(tmp_path, quota=5) == few
    assert set(few) < set(positions(tmp_path, quota=9))
    assert positions(tmp_path, quota=100) == list(range(30))


def test_bad_rows_pass_a_where_and_are_set_aside_with_their_place(tmp_path: Path) -> None:
    write_lines(tmp_path / "x.jsonl", ROWS[:4])
    with (tmp_path / "x.jsonl").open("a") as handle:
        handle.write("{broken\n" + json.dumps(ROWS[5]) + "\n")
    wanted = source(where="valid = 'Yes'", bad_rows=100)
    (part,) = read_parts(wanted, tmp_path, 100, lambda _, positions: positions)
    assert part.built == [1, 3, 5]
    assert part.quarantine.select("row", "line").rows() == [(4, 5)]


PROGRAMS = [
    {"problem_id": "1/A", "code": "print(1)", "lang": "python", "size": 3},
    {"problem_id": "1/A", "code": "print(2)", "lang": "python", "size": 4},
    {"problem_id": "1/B", "code": "int main(){}", "lang": "cpp", "size": 5},
    {"problem_id": None, "code": "", "lang": "cpp", "size": 6},
]
STATEMENTS = [{"problem": f"Task {name}", "id": f"1/{name}", "answer": "0"} for name in "ABC"]


def joined(folder: Path, join: Mapping[str, Any], **settings: Any) -> list[dict[str, Any]]:
    write_lines(folder / "x.jsonl", STATEMENTS)
    write_lines(folder / "programs.jsonl", PROGRAMS)
    table = {"path": "programs.jsonl", "on": "id", "key": "problem_id", "into": "solutions", **join}
    return [dict(raw.row or {}) for raw in selected_rows(source(join=table, **settings), folder, 2, Counter())]


def test_matching_rows_become_a_list(tmp_path: Path) -> None:
    found = joined(tmp_path, {"into": "solutions", "columns": ["code", "lang"]})
    codes = [[one["code"] for one in row["solutions"]] for row in found]
    assert codes == [["print(1)", "print(2)"], ["int main(){}"], []]
    assert set(found[0]["solutions"][0]) == {"code", "lang"}
    found = joined(tmp_path, {"into": "solutions", "most": 1})
    assert [(row["id"], len(row["solutions"])) for row in found][:2] == [("1/A", 1), ("1/B", 1)]
    assert found[0]["solutions"][0]["size"] == 3  # all columns where none are named


def test_joins_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "torn.jsonl").write_text('{"problem_id": 1}\n{"problem_id"\n')
    for join, said in (
        ({"key": "uid"}, r"source s: join with programs.jsonl: no row has `uid`; there are: problem_id"),
        ({"on": "uid"}, r"source s: `join.on`: no row has `uid`; there are: problem, id, answer"),
        ({"path": "gone.jsonl"}, "no file at"),
        ({"path": "torn.jsonl"}, r"join with torn.jsonl: .*torn.jsonl, line 2: not JSON"),
    ):
        with pytest.raises(SourceError, match=said):
            joined(tmp_path, join)


def test_several_configurations_and_splits_are_read_one_after_another(tmp_path: Path) -> None:
    for name in ("easy", "hard"):
        for split in ("train", "test"):
            (tmp_path / "set" / name).mkdir(parents=True, exist_ok=True)
            rows = [{"problem": f"{name} {split}", "answer": "1"}]
            datasets.Dataset.from_list(rows).to_parquet(str(tmp_path / "set" / name / f"{split}.parquet"))
    configs = "".join(
        f"- config_name: {name}\n  data_files:\n  - split: train\n    path: {name}/train.parquet\n"
        f"  - split: test\n    path: {name}/test.parquet\n"
        for name in ("easy", "hard")
    )
    (tmp_path / "set" / "README.md").write_text(f"---\nconfigs:\n{configs}---\n")
    wanted = source(kind="dataset", path="set", subset=["hard", "easy"], split=["train", "test"])
    assert read(wanted, tmp_path)["statement"].to_list() == ["hard train", "hard test", "easy train", "easy test"]
    assert read(source(kind="dataset", path="set", subset="easy", split="test"), tmp_path).height == 1
    by_files = source(kind="dataset", path="set", files="hard/*.parquet")
    assert set(read(by_files, tmp_path)["statement"]) == {"hard train", "hard test"}
    with pytest.raises(ValidationError, match="without a `subset`"):
        source(kind="dataset", path="set", subset="easy", files="x")
