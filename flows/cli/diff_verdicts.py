"""The verdicts that led to the decisions that differ between two versions of a run's set, where two verifiers judged.

A verifier's verdicts are stored next to those of the versions before it, so both can be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from curation.policies.excerpt import excerpt
from flows.publish.versions import Version, refreshed_run, stored_versions
from flows.run.lookup import rows_of
from flows.run.run_folder import Run, open_run
from flows.stages.questions import final_verdicts

SHOWN = 3
"""Changed verdicts that are shown of each problem; those with another outcome come first."""

_COMPARED = ("outcome", "answer", "answer_class")


class VerdictChanges:
    """The changed verdicts of two versions of one run; none if these are not that, or one verifier judged both.

    Args:
        old, new: as `goldilocks diff` takes them, as in ``runs/x@1`` and ``runs/x@2``.
    """

    def __init__(self, old: str, new: str) -> None:
        self._sides: tuple[tuple[Run, Version], ...] = ()
        sides = [_version(place) for place in (old, new)]
        found = tuple(side for side in sides if side is not None)
        if len(found) == 2 and found[0][0] == found[1][0] and found[0][1].verifier != found[1][1].verifier:
            self._sides = tuple((_run_of(folder, version), version) for folder, version in found)

    @property
    def title(self) -> str | None:
        """Return which verifiers judged; None if there is nothing to compare."""
        if not self._sides:
            return None
        return "verifier " + " → ".join(version.verifier for _, version in self._sides)

    def lines(self, problem: str) -> Iterator[str]:
        """Yield the attempts at a problem whose outcome, answer or answer class changed, a line each."""
        if not self._sides:
            return
        for part in self._sides[0][0].parts:
            tables = [
                rows_of(final_verdicts(run, part).folder_in(run, version.verifier), "verdicts", problem, "problem")
                for run, version in self._sides
            ]
            if all(table.height for table in tables):
                yield from changed_verdicts(part, *tables)


def changed_verdicts(part: str, old: pl.DataFrame, new: pl.DataFrame) -> Iterator[str]:
    """Yield a line for each of the first changed verdicts on one problem, and how many more there are.

    Args:
        old, new: `VERDICT` rows of a difficulty stage.
    """
    both = old.join(new, on=["problem", "index"], maintain_order="right", suffix="_now")
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_now")) for name in _COMPARED)
    changed = both.filter(differs).sort(pl.col("outcome") == pl.col("outcome_now"), maintain_order=True)
    for row in changed.head(SHOWN).iter_rows(named=True):
        yield (
            f"{part}, attempt {row['index']}: {excerpt(row['answer_now'])} against {excerpt(row['reference_now'])} was "
            f"{row['outcome']} ({row['method']}), is {row['outcome_now']} ({row['method_now']})"
        )
    if changed.height > SHOWN:
        yield f"{part}: {changed.height - SHOWN:,} more verdicts"


def _version(place: str) -> tuple[Path, Version] | None:
    """Return the run folder and the version that a place such as ``runs/x@2`` names."""
    folder, at, number = place.rpartition("@")
    if not at or not number.isdigit() or Path(place).exists():
        return None
    path = Path(folder).absolute()
    return next(((path, version) for version in stored_versions(path) if version.number == int(number)), None)


def _run_of(folder: Path, version: Version) -> Run:
    run = open_run(folder)
    return refreshed_run(run, version) if version.origin == "refresh" else run
