"""Implements `goldilocks ablate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flows.cli.as_json import print_json
from flows.pipelines.ablate import ablate, analyse
from flows.run.benches import find_file
from flows.run.terminal import echo
from training.evaluation.ablations import ablation_lines


def run_ablation(name: str, overrides: Sequence[str], out: Path | None, *, as_json: bool = False) -> None:
    """Run or continue an ablation, and print its tables."""
    report = ablate(find_file("ablation", name).absolute(), out, overrides)
    if as_json:
        results = [result.table() for result in report.results]
        print_json({"name": report.ablation.name, "folder": str(report.folder), "results": results})
        return
    echo("\n".join(ablation_lines(report.ablation, report.results)))
    echo(f"\nthe report: {report.folder / 'report.md'}")


def analyse_run(run: Path, size: int, problems: int, attempts: int, *, as_json: bool = False) -> None:
    """Analyse the path of a training run's weights, and print the result."""
    analysis = analyse(run, size, problems, attempts)
    if as_json:
        print_json(analysis.table())
        return
    first, second = analysis.directions.explained
    echo(f"{len(analysis.directions.states)} states; two directions explain {first:.1%} and {second:.1%} of the path")
    best = max(analysis.points, key=lambda point: point.reward)
    trained = next(point for point in analysis.points if point.first == 0 and point.second == 0)
    echo(f"reward {trained.reward:.3f} and {trained.tokens:.0f} tokens at the trained model")
    echo(
        f"reward {best.reward:.3f} and {best.tokens:.0f} tokens at the best point ({best.first:.2f}, {best.second:.2f})"
    )
    if analysis.fit is not None:
        fit = analysis.fit
        echo(
            f"reward = {fit.slope:.3f} ln(length) {fit.intercept:+.3f}, slope {fit.low:.3f} to {fit.high:.3f} (95 %), "
            f"R2 {fit.explained:.2f}"
        )
    echo("\n".join(str(path) for path in analysis.plots))
