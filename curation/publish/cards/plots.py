"""A data card's plots of funnel and pass rates.

Invariant: equal facts give equal bytes, whatever the user's settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from curation.publish.cards.facts import CardFacts, StageFacts
from curation.publish.words import capital, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KEPT, DROPPED, BAND, INK = "#1b5e8c", "#e3c99a", "#e8f1f7", "#1d2730"
WIDTH, DPI = 9.0, 160  # inches, dots per inch
LABELLED = 20  # max attempts for a number on every bar


@contextmanager
def _panels(path: Path, count: int, height: float) -> Iterator[list[Axes]]:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"font.family": "DejaVu Sans", "text.parse_math": False, "text.color": INK})
        figure = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor="white", layout="constrained")
        FigureCanvasAgg(figure)
        panels = list(figure.subplots(count, 1, squeeze=False)[:, 0])
        for axes in panels:
            axes.tick_params(labelsize=8, length=0)
            axes.spines[["top", "right", "left"]].set_visible(False)
        yield panels
        figure.savefig(path, format="png", metadata={"Software": None})


def draw_funnel(facts: CardFacts, path: Path) -> None:
    """Draw each stage's kept and dropped rows."""
    rows, positions = facts.funnel, range(len(facts.funnel))
    kept, dropped = [row.kept for row in rows], [row.dropped for row in rows]
    counts = [f"{row.kept:,} of {row.rows_in:,} kept ({share(row.kept, row.rows_in)})" for row in rows]
    labels = [f"{capital(row.title)}\n{count}" for row, count in zip(rows, counts, strict=True)]
    with _panels(path, 1, 1.0 + 0.45 * len(rows)) as (axes,):
        axes.barh(positions, kept, color=KEPT, label="kept")
        axes.barh(positions, dropped, left=kept, color=DROPPED, label="dropped")
        axes.set_yticks(positions, labels)
        axes.invert_yaxis()
        axes.set_xticks([])
        axes.set_title("From raw rows to the curated set", loc="left", fontweight="bold")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, fontsize=8, frameon=False)


def draw_pass_rates(facts: CardFacts, path: Path) -> None:
    """Draw each stage's problems by correct attempts, with the band shaded."""
    with _panels(path, len(facts.stages), 0.25 + 2.75 * len(facts.stages)) as panels:
        for axes, stage in zip(panels, facts.stages, strict=True):
            _draw_stage(axes, stage)


def _draw_stage(axes: Axes, stage: StageFacts) -> None:
    low, high, attempts = stage.band.min_correct, stage.max_correct, stage.band.attempts
    counts = bars(stage.rates, attempts)
    regions = {"too hard": counts[:low], "in the band": counts[low : high + 1], "too easy": counts[high + 1 :]}
    words = ", ".join(f"{sum(inside):,} {name}" for name, inside in regions.items())
    axes.axvspan(low - 0.5, high + 0.5, color=BAND, zorder=0)
    colours = [KEPT if low <= correct <= high else DROPPED for correct in range(attempts + 1)]
    drawn = axes.bar(range(attempts + 1), counts, width=0.82, color=colours, zorder=2)
    axes.set_title(f"{capital(stage.title)} · {stage.policy}\n{words}", loc="left", fontsize=10, fontweight="bold")
    axes.set_xlabel(f"correct attempts of {attempts}", fontsize=9)
    axes.set_ylabel("problems", fontsize=9)
    axes.locator_params(integer=True)
    if attempts <= LABELLED:
        axes.bar_label(drawn, [f"{count:,}" if count else "" for count in counts], fontsize=8, padding=1.5)
        axes.set_xticks(range(attempts + 1))
        axes.set_yticks([])


def bars(rates: pl.DataFrame, attempts: int) -> list[int]:
    """Count problems by correct attempts; fewer attempts are scaled."""
    judged = rates.filter(pl.col("judged") > 0)
    positions = (judged["correct"] / judged["judged"] * attempts + 0.5).floor().cast(pl.Int64)
    counts = [0] * (attempts + 1)
    for position, problems in zip(positions, judged["problems"], strict=True):
        counts[position] += problems
    return counts
