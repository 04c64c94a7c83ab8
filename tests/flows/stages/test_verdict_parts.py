"""Verdicts of several stages read by the problems of the first one's shards, wherever the later ones have theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest

from curation.records import VERDICT
from curation.storage.stages import Shard, StageFolder
from flows.stages.labels import verdict_parts


def stage(folder: Path, shards: Sequence[Mapping[str, int]]) -> Path:
    """Write a stage's verdicts: of each shard, how many each problem has."""
    made = StageFolder(folder, "verdicts", "test@1", "", {})
    made.prepare()
    for index, problems in enumerate(shards):
        rows = [
            {**dict.fromkeys(VERDICT.names()), "problem": name, "policy": folder.name, "index": number}
            for name, count in problems.items()
            for number in range(count)
        ]
        made.write(index, Shard(len(problems), {"verdicts": pl.DataFrame(rows, VERDICT)}, kept_rows=len(problems)))
    return folder


def counted(parts: Sequence[Sequence[pl.DataFrame]]) -> list[list[dict[str, int]]]:
    return [[dict(table.group_by("problem").len().sort("problem").iter_rows()) for table in part] for part in parts]


@pytest.mark.parametrize(
    "later",
    [
        [{"a": 3, "b": 1}, {"c": 2}, {"x": 4}],  # in the first stage's shards, x has no verdict there
        [{"c": 2, "a": 3}, {"x": 4, "b": 1}],  # in others
        [{"x": 4, "c": 2, "b": 1, "a": 3}],  # in fewer
    ],
)
def test_each_problems_verdicts_are_together_and_none_is_lost(
    tmp_path: Path, later: Sequence[Mapping[str, int]]
) -> None:
    first = stage(tmp_path / "first", [{"a": 4, "b": 4}, {"c": 4, "d": 4}, {}])
    parts = list(verdict_parts([first, stage(tmp_path / "later", later)]))
    assert counted(parts) == [
        [{"a": 4, "b": 4}, {"a": 3, "b": 1}],
        [{"c": 4, "d": 4}, {"c": 2}],
        [{}, {}],
        [{}, {"x": 4}],
    ]


def test_of_one_stage_the_parts_are_its_shards(tmp_path: Path) -> None:
    first = stage(tmp_path / "first", [{"a": 2}, {"b": 1}])
    assert counted(list(verdict_parts([first]))) == [[{"a": 2}], [{"b": 1}], [{}]]
    assert list(verdict_parts([])) == []
