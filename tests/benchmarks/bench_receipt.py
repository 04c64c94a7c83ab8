"""What a receipt is worth: does an audit's interval cover the truth, and what does a recipe find of planted defects?

    python -m tests.benchmarks.bench_receipt [RUN …] [--sets 10]

Audits: sets of 1,000 problems with wrong labels planted by probabilities, more than the probabilities say in half
of them; of each set 100 draws of 60 and of 120 rows, judged rightly. The interval is held against the share of wrong
labels, and once more, after what was found was corrected or taken out, against the share that is left.

RUN: folders of finished runs; known defects are planted at the recipe of each, and its receipt is verified.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np
import polars as pl

from curation.publish.audit import draw_audit, estimate_audit
from curation.publish.receipts import Figure
from flows.pipelines.planted_defects import planted_figures
from flows.pipelines.receipts import read_published, verify_receipt

DRAWS = 100


def planted_set(seed: int, tilt: float, problems: int = 1000) -> tuple[pl.DataFrame, set[str]]:
    """Return labels with probabilities, and which are wrong; with ``tilt`` below 1 more are than the former say."""
    rng = np.random.default_rng(seed)
    chances = rng.beta(0.1, 3.0, problems)
    names = [f"p{number:04}" for number in range(problems)]
    wrong = {name for name, chance in zip(names, chances, strict=True) if rng.random() < chance**tilt}
    return pl.DataFrame({"problem": names, "wrong_label": chances}), wrong


def covered(labels: pl.DataFrame, wrong: set[str], size: int, mend: str) -> tuple[int, float]:
    """Return in how many of the draws the interval covers the truth, and its mean width.

    Args:
        mend: what becomes of the wrong labels that were found: ``""``, ``corrected`` or ``gone``.
    """
    hits, widths = 0, []
    for draw in range(DRAWS):
        strata = draw_audit(labels, size, draw)
        told = {name: name in wrong for stratum in strata for name in stratum.drawn}
        found: Collection[str] = [name for name, is_wrong in told.items() if is_wrong]
        truth = len(wrong) / labels.height
        if mend:
            truth = len(wrong - set(found)) / (labels.height - (len(found) if mend == "gone" else 0))
        estimate = estimate_audit(strata, told, **({mend: found} if mend else {}))
        assert estimate is not None
        hits += estimate.low <= truth <= estimate.high
        widths.append(estimate.high - estimate.low)
    return hits, float(np.mean(widths))


def print_figures(figures: Iterable[Figure]) -> None:
    """Print one line for each."""
    for figure in figures:
        print(f"  {figure.name:<31} {figure.text:<24} of {figure.n}: {figure.counted or figure.how}", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="*")
    parser.add_argument("--sets", type=int, default=10)
    options = parser.parse_args()
    for size in (60, 120):
        for mend in ("", "corrected", "gone"):
            counts, widths = [], []
            for seed in range(options.sets):
                hits, width = covered(*planted_set(seed, 0.7 if seed % 2 else 1.0), size, mend)
                counts.append(hits)
                widths.append(width)
            word = mend or "as audited"
            print(
                f"audits of {size:3} rows, {word:<10}: {sum(counts):,} of {DRAWS * len(counts):,} intervals cover the "
                f"truth, at least {min(counts)} of {DRAWS} on each set; mean width {np.mean(widths):.3f}",
                flush=True,
            )
    for run in options.runs:
        published, began = read_published(run), time.process_time()
        print(f"\n{run}: {published.version.number} version(s)")
        print_figures(planted_figures(published.run, published.results))
        planted = time.process_time()
        found = verify_receipt(run, quick=True)
        print(f"  {'; '.join(found.checked)}: {len(found.differing)} differ")
        print(f"  {planted - began:.1f} CPU s of this process to plant, {time.process_time() - planted:.1f} to verify")


if __name__ == "__main__":
    main()
