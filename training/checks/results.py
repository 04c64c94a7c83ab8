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

ROUNDED = 0.03
"""Tolerance in half precision of packed against plain. Measured in bf16: 2e-4 to 1e-2; a state that leaks between
sequences is 0.05 to 1.
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
    rows = [("check", "figure", "tolerance", "result", "")]
    for result in results:
        figures = _number(result.figure), _number(result.tolerance)
        told = "; ".join(filter(None, (result.detail, result.advice)))
        rows.append((result.check, *figures, "ok" if result.passed else "refused", told))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _number(figure: float | None) -> str:
    return "" if figure is None else f"{figure:,}" if isinstance(figure, int) else f"{figure:.2g}"


def mean_difference(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """Return the mean absolute difference over all tokens, infinite unless all are finite."""
    differences = [(one - other).abs() for one, other in zip(ours, theirs, strict=True)]
    count = sum(len(difference) for difference in differences)
    total = float(sum(float(difference.double().sum()) for difference in differences))
    return total / count if count and total == total else float("inf")
