"""What `goldilocks analyse` does and prints."""

from __future__ import annotations

from pathlib import Path

from flows.cli.as_json import print_json
from flows.pipelines.analyse import analyse
from flows.run.terminal import echo


def analyse_run(run: Path, size: int, problems: int, attempts: int, *, as_json: bool = False) -> None:
    """Analyse a training run, or go on with it, and print what was seen."""
    analysis = analyse(run, size, problems, attempts)
    if as_json:
        print_json(analysis.table())
        return
    first, second = analysis.directions.explained
    echo(f"{len(analysis.directions.states)} states; two directions hold {first:.1%} and {second:.1%} of their way")
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
