"""Plot a training run from its metrics.jsonl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from curation.extras import has_extra

PANELS: Mapping[str, tuple[str, Sequence[str]]] = {
    "pass_rate": ("pass rate", ("evaluation/pass_rate", "sampled/pass_rate", "batch/pass_rate")),
    "texts": ("nats a token", ("evaluation/answer_logprob", "policy/answer_logprob")),
    "reward": ("reward", ("reward/total", "reward/format", "reward/correctness", "reward/length", "reward/language")),
    "solved": ("share of groups solved", ("sampled/none", "sampled/some", "sampled/all")),
    "length": ("tokens", ("length/sampled_mean", "length/trained_mean")),
    "entropy": ("nats a token", ("policy/entropy",)),
    "ratio": ("clipped share", ("policy/clip_low", "policy/clip_high")),
    "kl": ("nats a token", ("policy/kl_generator", "policy/kl_reference")),
    "mismatch": ("|log ratio|, mean", ("policy/mismatch_mean", "policy/stale_mean")),
    "mismatch_max": ("|log ratio|, largest", ("policy/mismatch_max", "policy/stale_max")),
    "age": ("versions", ("age/token_mean", "age/token_max")),
    "speed": ("tokens/s", ("speed/trained_tokens_s", "speed/sampled_tokens_s")),
    "idle": ("idle share", ("speed/generator_idle_share", "speed/generator_held_share", "speed/trainer_idle_share")),
    "gradient": ("norm", ("policy/gradient_norm",)),
    "update": ("seconds", ("speed/update_s",)),
}
"""File name: unit of the axis, and the curves."""


def draw_plots(rows: Sequence[Mapping[str, float]], folder: Path) -> list[Path]:
    """Write a PNG for each panel with data; return their paths. Without the extra `plots`, write a note."""
    folder.mkdir(parents=True, exist_ok=True)
    if not has_extra("plots"):
        (folder / "README.txt").write_text("No plots were drawn: the extra `plots` is not installed.\n")
        return []
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    paths = []
    for name, (unit, curves) in PANELS.items():
        series = {curve: [(row["step"], row[curve]) for row in rows if curve in row] for curve in curves}
        if not any(series.values()):
            continue
        figure = Figure(figsize=(6, 3.5), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for curve, points in series.items():
            if points:
                axes.plot(
                    *zip(*points, strict=True), label=curve, marker="o" if len(points) < 25 else None, markersize=3
                )
        axes.set_xlabel("step")
        axes.set_ylabel(unit)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=120)
        paths.append(path)
    return paths
