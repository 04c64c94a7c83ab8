"""Drawings are the numbers they show."""

from __future__ import annotations

import pytest

from flows.page.charts import HEIGHT, WIDTH, chart, flow, histogram


def test_a_histogram_counts_every_rate_once() -> None:
    columns = histogram([(0.0, False), (0.05, True), (0.3, True), (0.34, False), (1.0, False)])
    assert sum(column.rows for column in columns) == 5
    assert [(column.low, column.rows, column.kept) for column in columns if column.rows] == [
        *((0.0, 1, 0), (0.05, 1, 1), (0.3, 2, 1), (0.95, 1, 0))
    ]
    assert columns[6].height == HEIGHT
    assert columns[6].kept_height == HEIGHT / 2


def test_a_flow_keeps_its_problems() -> None:
    made = flow(
        {("in the set", "too easy"): 3, ("in the set", "in the set"): 5, ("never solved", "in the set"): 2}, 100.0
    )
    assert {block.name: block.rows for block in made.before} == {"in the set": 8, "never solved": 2}
    assert {block.name: block.rows for block in made.after} == {"in the set": 7, "too easy": 3}
    assert sum(block.height for block in made.before) == pytest.approx(100)
    assert sum(ribbon.rows for ribbon in made.ribbons) == 10


def test_a_line_spans_its_steps_and_its_values() -> None:
    made = chart("reward", {"total": [(1, 0.2, None, None), (3, 0.6, 0.5, 0.7), (5, float("nan"), None, None)]})
    assert made is not None
    (line,) = made.lines
    assert line.points.split()[0].startswith("0.0,")
    assert line.points.split()[-1].startswith(f"{WIDTH:.1f},")
    assert line.last == 0.6
    assert len(line.band.split()) == 2
    assert chart("nothing", {"total": []}) is None
