"""A data card's plots of funnel and pass rates.

Invariant: equal facts give equal bytes, whatever the user's settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from curation.publish.cards.facts import CardFacts, FunnelRow, StageFacts, regraded_stages
from curation.publish.words import by_count, capital, reason_words, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STAYS, GOES, BAND = "#1b5e8c", "#e3c99a", "#e8f1f7"
INK, SOFT, LINE = "#1d2730", "#5b6770", "#cfd6db"
WIDTH = 9.0  # inches
DPI = 160
REASON_LETTERS = 134  # that fit in a line of reasons
LABELLED = 20  # most attempts with which every bar carries its number


@contextmanager
def _canvas(path: Path, height: float) -> Iterator[Figure]:
    """Yield a figure under matplotlib's defaults, write it, then restore the user's."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"font.family": "DejaVu Sans", "text.parse_math": False, "text.color": INK})
        figure = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor="white")
        FigureCanvasAgg(figure)
        yield figure
        figure.savefig(path, format="png", metadata={"Software": None})


def draw_funnel(facts: CardFacts, path: Path) -> None:
    """Draw each stage's rows and drop reasons."""
    notes = [_reason_lines(row) for row in facts.funnel]
    heights = [0.62 + 0.17 * len(lines) for lines in notes]  # inches: title and bar, then the lines of reasons
    top, bottom = 0.62, 0.12
    total = top + sum(heights) + bottom
    regraded = {row.stage for row, _ in regraded_stages(facts.funnel)}
    widest = max((row.rows_in for row in facts.funnel), default=0) or 1
    with _canvas(path, total) as figure:
        axes = figure.add_axes((0.03, 0.0, 0.94, 1.0))
        axes.set(xlim=(0, widest), ylim=(total, 0))
        axes.axis("off")
        axes.text(0, 0.3, "From raw rows to the curated set", fontsize=13, fontweight="bold", va="center")
        for x, colour, word in ((0.80, STAYS, "kept"), (0.895, GOES, "dropped")):
            axes.barh(0.3, 0.016 * widest, left=x * widest, height=0.13, color=colour)
            axes.text((x + 0.023) * widest, 0.3, word, fontsize=9, color=SOFT, va="center")
        y = top
        for row, lines, height in zip(facts.funnel, notes, heights, strict=True):
            _funnel_row(axes, row, lines, y, widest, again=row.stage in regraded)
            y += height


def _funnel_row(axes: Axes, row: FunnelRow, lines: list[str], y: float, widest: int, again: bool) -> None:
    title = axes.text(0, y + 0.1, capital(row.title), fontsize=10, fontweight="bold", va="center")
    if again:
        axes.annotate(
            "grades everything again", (1, 0.5), xycoords=title, xytext=(8, 0), textcoords="offset points",
            fontsize=8.5, color=SOFT, va="center",
        )  # fmt: skip
    label = f"{row.kept:,} of {row.rows_in:,} kept ({share(row.kept, row.rows_in)})"
    if not row.dropped:
        label = f"all {row.rows_in:,} kept" if row.rows_in else "no rows"
    axes.text(widest, y + 0.1, label, fontsize=9.5, va="center", ha="right")
    axes.barh(y + 0.34, row.kept, height=0.2, color=STAYS)
    axes.barh(y + 0.34, row.dropped, left=row.kept, height=0.2, color=GOES)
    for number, line in enumerate(lines):
        axes.text(0, y + 0.54 + 0.17 * number, line, fontsize=8, color=SOFT, va="center")


def _reason_lines(row: FunnelRow) -> list[str]:
    parts = [f"{reason_words(reason)} {count:,}" for reason, count in by_count(row.reasons)]
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) < REASON_LETTERS:
            lines[-1] += f"  ·  {part}"
        else:
            lines.append(part)
    return lines


def draw_pass_rates(facts: CardFacts, path: Path) -> None:
    """Draw each stage's problems by correct attempts, with the band shaded."""
    with _canvas(path, 0.25 + 2.75 * len(facts.stages)) as figure:
        panels = figure.subplots(len(facts.stages), 1, squeeze=False)
        for axes, stage in zip(panels[:, 0], facts.stages, strict=True):
            _pass_rate_panel(axes, stage)
        figure.tight_layout(h_pad=2.0)


def _pass_rate_panel(axes: Axes, stage: StageFacts) -> None:
    from matplotlib.ticker import MaxNLocator

    least, most, attempts = stage.min_correct, stage.max_correct, stage.attempts
    title = f"{capital(stage.title)} · {stage.policy}"
    counts = bars(stage.rates, attempts)
    colours = [STAYS if least <= k <= most else GOES for k in range(attempts + 1)]
    axes.axvspan(least - 0.5, most + 0.5, color=BAND, zorder=0)
    drawn = axes.bar(range(attempts + 1), counts, width=0.82, color=colours, zorder=2)
    highest = max(counts) or 1
    axes.set(xlim=(-1.1, attempts + 1.1), ylim=(0, highest * 1.36))
    _region(axes, "too hard", counts[:least], (least - 1) / 2 - 0.12, SOFT)
    _region(axes, "in the band", counts[least : most + 1], (least + most) / 2, STAYS)
    _region(axes, "too easy", counts[most + 1 :], (most + 1 + attempts) / 2 + 0.12, SOFT)
    axes.set_title(title, loc="left", fontsize=10.5, fontweight="bold", color=INK, pad=8)
    axes.set_xlabel(f"correct attempts of {attempts}", fontsize=9, color=SOFT)
    axes.set_ylabel("problems", fontsize=9, color=SOFT)
    axes.tick_params(labelsize=8, colors=SOFT, length=0)
    if attempts <= LABELLED:  # every bar carries its number, so the axis needs none
        axes.bar_label(drawn, [f"{n:,}" if n else "" for n in counts], fontsize=8, color=INK, padding=1.5)
        axes.set_xticks(range(attempts + 1))
        axes.set_yticks([])
    else:
        axes.xaxis.set_major_locator(MaxNLocator(17, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.grid(axis="y", color=LINE, linewidth=0.6, zorder=1)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(LINE)


def _region(axes: Axes, name: str, counts: list[int], centre: float, colour: str) -> None:
    if sum(counts):
        weight = "bold" if colour == STAYS else "normal"
        text = f"{name}\n{sum(counts):,}"
        placed = axes.text(centre, 0.98, text, color=colour, fontsize=7.5, fontweight=weight, linespacing=1.3)
        placed.set(ha="center", va="top", transform=axes.get_xaxis_transform())


def bars(rates: pl.DataFrame, attempts: int) -> list[int]:
    """Count problems by correct attempts; fewer attempts are scaled."""
    judged = rates.filter(pl.col("judged") > 0)
    places = (judged["correct"] / judged["judged"] * attempts + 0.5).floor().cast(pl.Int64)
    counts = [0] * (attempts + 1)
    for place, problems in zip(places, judged["problems"], strict=True):
        counts[place] += problems
    return counts
