"""Results of a model's checks, and how far two computations of one log-probability may differ.

Figures are mean absolute differences of log-probabilities, in nats a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from curation.records import GoldilocksError

EXACT = 1e-3
"""Tolerance if all compute in fp32. Measured: 1e-7 to 3e-6."""

ROUNDED, ISOLATED = 0.05, 0.01
"""Tolerances in half precision, for packed against plain, and for a packing with other tokens in its other sequences.
Measured in bf16: 2e-4 to 1e-2, and 0; a state that leaks between sequences is 0.05 to 1.
"""

ENGINES, ROUTED = 0.1, 0.25
"""Tolerances between trainer and generator in half precision, for dense models and mixtures of experts, whose routing
rounds. Measured in bf16: 1e-3 to 0.05, and 0.11 to 0.14; weights that did not arrive are 0.5 to 5.
"""


class ModelCheckError(GoldilocksError):
    """The recipe would train the model wrongly."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check: what was measured and allowed (None without a number), and ``advice`` if it failed.

    Example: ``CheckResult("packed = unpacked", 0.43, 1e-3, "they differ by 0.43 nats", "set packing.single = true")``
    """

    check: str
    figure: float | None
    tolerance: float | None
    detail: str
    advice: str = ""

    @property
    def passed(self) -> bool:
        """Return whether the model may be trained as far as this goes."""
        return not self.advice


def require_passed(results: Sequence[CheckResult], model: str) -> None:
    """Raise `ModelCheckError` with the first failed check."""
    for result in results:
        if not result.passed:
            raise ModelCheckError(
                f"model {model}: {result.check}: {result.detail}; {result.advice}. "
                "`goldilocks train RECIPE --check` tries all of it again, `checks = false` leaves it out."
            )


def format_results(results: Sequence[CheckResult]) -> list[str]:
    """Return the results as a table's lines."""
    head = ("check", "figure", "tolerance", "result", "")
    rows = [
        (
            result.check,
            _number(result.figure),
            _number(result.tolerance),
            "ok" if result.passed else "refused",
            "; ".join(filter(None, (result.detail, result.advice))),
        )
        for result in results
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(4)]
    lines = []
    for row in (head, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join((*cells, row[4])).rstrip())
    return lines


def _number(figure: float | None) -> str:
    return "" if figure is None else f"{figure:,}" if isinstance(figure, int) else f"{figure:.2g}"


def mean_difference(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """Return the mean absolute difference over all tokens, infinite unless all are finite."""
    differences = [(one - other).abs() for one, other in zip(ours, theirs, strict=True)]
    count = sum(len(difference) for difference in differences)
    total = float(sum(float(difference.double().sum()) for difference in differences))
    return total / count if count and total == total else float("inf")
