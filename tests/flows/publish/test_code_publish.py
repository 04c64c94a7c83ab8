"""What the card of a code set says of its solutions."""

import polars as pl

from curation.programs.execution_matrix import MEASURED
from flows.publish.code_publish import older_standards


def test_solutions_that_only_an_older_standard_accepts_are_counted_once_each() -> None:
    rows = [
        ("p", 0, 0, "gnu++20"),
        ("p", 1, 0, "gnu++14"),
        ("p", 1, 1, "gnu++14"),
        ("p", 2, 0, None),
        ("q", 0, 0, "gnu++17"),
        ("q", 1, 0, "gnu++14"),
        ("dropped", 0, 0, "gnu++14"),
    ]
    names = ("problem", "solution", "test", "standard")
    runs = pl.DataFrame(rows, schema={name: MEASURED[name] for name in names}, orient="row").drop("test")
    assert older_standards(runs, {"p", "q"}) == {"gnu++17": 1, "gnu++14": 2}
    assert older_standards(runs.clear(), {"p"}) == {}
