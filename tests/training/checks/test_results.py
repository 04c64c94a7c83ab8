"""Results as a table and as an error; the mean difference, also of what is no number."""

from __future__ import annotations

import pytest
import torch

from training.checks.results import (
    CheckResult,
    ModelCheckError,
    format_results,
    mean_difference,
    require_passed,
)

RESULTS = [
    CheckResult("end token", None, None, "</s> (2) ends a response"),
    CheckResult("room", 1200, 4096, ""),
    CheckResult("packed = unpacked", 0.4321, 1e-3, "0.43 nats off", "set packing.single = true"),
]


def test_the_table_has_a_line_for_each() -> None:
    assert format_results(RESULTS) == [
        "check              figure  tolerance  result",
        "end token                             ok       </s> (2) ends a response",
        "room               1,200   4,096      ok",
        "packed = unpacked  0.43    0.001      refused  0.43 nats off; set packing.single = true",
    ]


def test_the_first_that_failed_is_the_error() -> None:
    require_passed(RESULTS[:2], "some/model")
    with pytest.raises(ModelCheckError) as caught:
        require_passed(RESULTS, "some/model")
    assert str(caught.value).startswith(
        "model some/model: packed = unpacked: 0.43 nats off; set packing.single = true. `goldilocks train RECIPE"
    )


def test_the_mean_is_over_tokens_and_no_number_is_never_near() -> None:
    ours = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([5.0])]
    theirs = [torch.tensor([1.0, 2.5, 3.0]), torch.tensor([4.5])]
    assert mean_difference(ours, theirs) == pytest.approx(0.25)
    assert mean_difference(ours, [torch.tensor([1.0, float("nan"), 3.0]), ours[1]]) == float("inf")
    assert mean_difference(ours, [torch.tensor([1.0, float("-inf"), 3.0]), ours[1]]) == float("inf")
    assert mean_difference([], []) == float("inf")
