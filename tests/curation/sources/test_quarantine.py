"""Rows that cannot be read: each set aside with its file, line, reason and bytes, while its neighbours go on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curation.config import ProblemColumns, Source
from curation.records import DROPPED, SourceError
from curation.sources.problems import problem_rows
from curation.sources.reading import QUARANTINE, Part, read_parts
from curation.sources.rows import Row

SOUND = b'{"problem": "What is 1 + %d?", "answer": "%d"}\n'
BAD: dict[str, tuple[bytes, str]] = {
    "broken": (b'{"problem": "What is\n', "not JSON"),
    "choices": (b'{"problem": "What is 2?", "options": 5}\n', "should be a list of options, but is '5'"),
}


def source(path: str = "x.jsonl", **changes: Any) -> Source:
    columns = ProblemColumns(statement="problem", answer="answer")
    settings = {"name": "s", "kind": "jsonl", "path": path, "columns": columns, "bad_rows": 100}
    return Source.model_validate({**settings, **changes})


def parts(wanted: Source, folder: Path, batch_rows: int = 100) -> list[Part[pl.DataFrame]]:
    def build(rows: list[Row], positions: Sequence[int]) -> pl.DataFrame:
        return problem_rows(wanted, rows, positions)

    return list(read_parts(wanted, folder, batch_rows, build))


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_set_aside_between_its_neighbours(name: str, tmp_path: Path) -> None:
    line, said = BAD[name]
    columns = ProblemColumns(statement="problem", answer="answer", choices="options")
    sound = b'{"problem": "What is 1 + 1?", "answer": "2", "options": ["1", "2"]}\n'
    (tmp_path / "x.jsonl").write_bytes(sound + b"\n" + line + sound)
    (part,) = parts(source(columns=columns), tmp_path)
    assert part.rows == 3
    assert part.positions == [0, 2]
    assert part.built["statement"].to_list() == ["What is 1 + 1?"] * 2
    assert part.quarantine.schema == QUARANTINE
    (aside,) = part.quarantine.rows(named=True)
    assert said in aside["reason"]
    assert {**aside, "reason": ""} == {
        "source": "s", "row": 1, "file": "x.jsonl", "line": 3, "reason": "", "raw": line
    }  # fmt: skip
    assert part.dropped.schema == DROPPED
    (dropped,) = part.dropped.rows(named=True)
    assert (dropped["stage"], dropped["reason"], dropped["row"]) == ("sources", "bad_row", 1)
    assert dropped["evidence"] == f"x.jsonl, line 3: {aside['reason']}"
    assert dropped["statement"] is None


def test_positions_and_the_budget_go_on_from_batch_to_batch(tmp_path: Path) -> None:
    lines = [SOUND % (i, i + 1) if i % 3 else b"{%d\n" % i for i in range(10)]
    (tmp_path / "x.jsonl").write_bytes(b"".join(lines))
    found = parts(source(bad_rows=4), tmp_path, batch_rows=4)
    assert [part.positions for part in found] == [[1, 2], [4, 5, 7], [8]]
    assert [row for part in found for row in part.quarantine["row"]] == [0, 3, 6, 9]
    with pytest.raises(SourceError, match=r"source s: more than 3 rows .*x\.jsonl, line 10: .*raise its `bad_rows`"):
        parts(source(bad_rows=3), tmp_path, batch_rows=4)
    assert [part.rows for part in parts(source(limit=2), tmp_path)] == [2]
