"""What `goldilocks ablate` does and prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flows.cli.as_json import print_json
from flows.pipelines.ablate import ablate, ablation_path
from flows.run.terminal import echo
from training.evaluation.ablations import ablation_lines


def run_ablation(name: str, overrides: Sequence[str], out: Path | None, *, as_json: bool = False) -> None:
    """Run an ablation, or go on with it, and print its tables."""
    report = ablate(ablation_path(name), out, overrides)
    if as_json:
        results = [result.table() for result in report.results]
        print_json({"name": report.ablation.name, "folder": str(report.folder), "results": results})
        return
    echo("\n".join(ablation_lines(report.ablation, report.results)))
    echo(f"\nthe page: {report.folder / 'report.html'}")
