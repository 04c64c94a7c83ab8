"""What the card of a code set says of its solutions and tests."""

import polars as pl

from curation.programs.execution_matrix import MEASURED
from flows.publish.code_publish import how_tested, older_standards


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


def test_the_card_says_what_vouches_for_inputs_and_what_was_made_where_nothing_does() -> None:
    nothing = dict.fromkeys(
        ("vouched_package", "vouched_model", "vouched_none", "made_unvouched", "validators_aside"), 0
    )
    assert "alidator" not in how_tested(nothing)
    text = how_tested({**nothing, "vouched_model": 1, "vouched_none": 2, "made_unvouched": 7})
    assert "A validator states which inputs are allowed for 1 problem (0 by the package's own, 1 by one that" in text
    assert "For 2 problems there is none: a model's programs wrote the inputs of their 7 generated tests, and" in text
    assert "solutions, and two thirds of those not known to be wrong, agreed on each." in text
    assert "Validators of 3 problems were not believed." in how_tested({**nothing, "validators_aside": 3})
