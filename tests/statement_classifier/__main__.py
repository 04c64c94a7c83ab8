"""Train the format filter's classifier on the labelled rows, and print how it does on sets that it has not seen.

    .venv/bin/python -m tests.statement_classifier [DATA] [--elsewhere FOLDER] [--write]

DATA and FOLDER hold the rows, as in `bench_filters`. Each family of sets is left out once, and its rows scored by what
was trained on the others: that is what is printed, by threshold, by family and by decile of the score (calibration).
``--write`` trains on all rows and writes `classifier.json` and `classifier.npy` into the package: the same labels and
rows give the same bytes.

Trained on are rows that no trusted rule drops; a row weighs the square root of the rows that it stands for, at most 6,
so that no clean set drowns the others. Beside them stand copies of the usable ones, cut off:
from these only the rules about broken off texts learn, for sets hold few that are, and no other feature should say what
only they can show. Weights are found by gradient descent with momentum (Adam) in a fixed number of
steps, without chance; n-grams are held back more than named features (ridge).
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.config import StatementSettings
from curation.filters.statements import broken_off, scoring
from curation.filters.statements.measuring import suspicious_rows
from curation.filters.statements.scoring import GRAM_BUCKETS, HITS, NAMES, Floats, probabilities
from curation.planting.rows import cut_off
from curation.records import PROBLEM, DropReason
from tests.benchmarks.bench_filters import ROOT, load
from tests.benchmarks.labelled_rows import KEEP, LABELS, load_elsewhere, written_rows

STEPS, RATE = 250, 0.1
RIDGE_NAMED, RIDGE_RULES, RIDGE_GRAMS = 3.0, 0.3, 6.0
MOST_WEIGHT = 6.0
WRITTEN_WEIGHT = 2.0
"""Of a row written to try the rules: what the rules are for, where real rows are few."""
CUT = "cut off: "
"""What the ids of copies begin with that were cut off here."""
CUT_WEIGHT = 0.25
LEAST_CUT = 40
"""Characters of a statement that is worth cutting."""
DOUBT = -2.5
THRESHOLDS = (0.3, 0.5, 0.7, 0.85, 0.9)
FAMILIES = (
    (r"gaokao.*|agieval_cloze", "gaokao"),
    (r"gsm8k|mgsm|polymath|mip_missing_premise", "gsm8k"),
    (r"umwp|svamp", "svamp"),
    (r"math_train|aime|amc|mathv", "math"),
    (r"ape_.*|m23_.*|hmwp|cmath_ds", "chinese schools"),
    (r"dolphin_.*|draw_.*|alg514_.*|mawps|asdiv", "word problems of the web"),
    (r"scibench_.*", "scibench"),
    (r"tabmwp_.*", "tabmwp"),
    (r"aqua_rat|mathqa.*", "aqua"),
    (r"cmmlu_.*", "cmmlu"),
)
"""Sets that share problems are left out together."""
BARE = "math_bare"
"""The set of `labelled_rows` whose figures were taken away."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows trained on: features, n-grams by row, whether each is unusable, its weight, its family and whether
    it was cut off here; ``texts`` are id, statement, answer and language as the filter leaves them.
    """

    named: Floats
    grams: tuple[NDArray[np.int64], NDArray[np.int64], Floats]
    unusable: Floats
    weight: Floats
    family: NDArray[np.str_]
    planted: NDArray[np.bool_]
    texts: pl.DataFrame


def labelled_rows(data: Path, elsewhere: Path) -> Rows:
    """Return the labelled rows that no trusted rule drops."""
    labels = pl.read_csv(LABELS, separator="\t", schema_overrides={"weight": pl.Float64})
    read = labels.filter(pl.col("how") == "read").select("id", "label", stands_for="weight")
    problems = pl.concat([load(data), load_elsewhere(elsewhere)]).join(read, on="id", maintain_order="left").sort("id")
    written = written_problems().with_columns(stands_for=pl.lit(WRITTEN_WEIGHT))
    problems = problems.select(written.columns)
    problems = pl.concat([problems, cut_copies(problems), written])
    rows = suspicious_rows(problems.select(PROBLEM.names()), StatementSettings())
    picked = problems[rows["_at"].to_list()]
    return Rows(
        scoring.named_features(rows),
        scoring.gram_features(rows),
        (picked["label"] != KEEP).cast(pl.Float64).to_numpy(),
        picked["stands_for"].fill_null(1.0).to_numpy(),
        np.array([family_of(name) for name in picked["source"]]),
        picked["id"].str.starts_with(CUT).fill_null(False).to_numpy(),
        picked.select("id", "lang").hstack(rows.select("statement", "answer")),
    )


def cut_copies(problems: pl.DataFrame) -> pl.DataFrame:
    """Return the usable ones of labelled rows, cut off as a receipt plants it; sets hold hardly any that is."""
    whole = problems.filter((pl.col("label") == KEEP) & (pl.col("statement").str.len_chars() >= LEAST_CUT))
    whole = whole.filter(pl.col("choices").is_null())
    cut = [cut_off(text, random.Random(name)) for name, text in whole.select("id", "statement").iter_rows()]
    return whole.with_columns(
        pl.concat_str(pl.lit(CUT), "id").alias("id"),
        pl.Series("statement", cut),
        label=pl.lit(str(DropReason.TRUNCATED)),
        stands_for=pl.lit(CUT_WEIGHT),
    )


def written_problems() -> pl.DataFrame:
    """Return the rows that were written to try the rules, with what each should be, in the `PROBLEM` schema."""
    frame = written_rows()
    absent = [pl.lit(None, kind).alias(name) for name, kind in PROBLEM.items() if name not in frame.columns]
    return frame.with_columns(absent).with_columns(source=pl.lit("written")).select(*PROBLEM.names(), "label")


def family_of(name: str) -> str:
    """Return the family that a set is left out with."""
    return next((family for pattern, family in FAMILIES if re.fullmatch(pattern, name)), name)


def train(rows: Rows, chosen: NDArray[np.bool_]) -> scoring.Classifier:
    """Return the weights that minimise the weighted log-loss of the chosen rows with its ridge."""
    place, bucket, value = rows.grams
    of_chosen = chosen[place]
    place, bucket, value = place[of_chosen], bucket[of_chosen], value[of_chosen]
    weight = np.where(chosen, np.sqrt(np.minimum(rows.weight, MOST_WEIGHT)), 0.0)
    parts: list[Floats] = [np.zeros(len(NAMES)), np.array([-3.0]), np.zeros(GRAM_BUCKETS)]
    ridge = np.where([name in HITS for name in NAMES], RIDGE_RULES, RIDGE_NAMED)
    of_cut = np.isin(NAMES, [*(rule.name for rule in broken_off.RULES), "cut_off"])
    means = [np.zeros_like(part) for part in parts]
    squares = [np.zeros_like(part) for part in parts]
    for step in range(1, STEPS + 1):
        named, intercept, grams = parts
        log_odds = rows.named @ named + intercept + np.bincount(place, value * grams[bucket], len(weight))
        every = weight * (probabilities(log_odds) - rows.unusable)
        error = np.where(rows.planted, 0.0, every)
        slopes = [
            rows.named.T @ error + of_cut * (rows.named.T @ (every - error)) + ridge * named,
            np.array([error.sum()]),
            np.bincount(bucket, value * error[place], GRAM_BUCKETS) + RIDGE_GRAMS * grams,
        ]
        rate = RATE * 0.5 * (1 + np.cos(np.pi * step / STEPS))
        for number, slope in enumerate(slopes):
            means[number] = 0.9 * means[number] + 0.1 * slope
            squares[number] = 0.99 * squares[number] + 0.01 * slope**2
            change = means[number] / (1 - 0.9**step) / (np.sqrt(squares[number] / (1 - 0.99**step)) + 1e-6)
            parts[number] = parts[number] - rate * change
    named, intercept, grams = parts
    return scoring.Classifier(named, float(intercept[0]), grams, DOUBT)


def scores(rows: Rows, weights: scoring.Classifier) -> Floats:
    """Return each row's probability; n-grams count where the named features leave a doubt."""
    place, bucket, value = rows.grams
    log_odds = rows.named @ weights.named + weights.intercept
    grams = np.bincount(place, value * weights.grams[bucket], len(log_odds))
    return probabilities(log_odds + np.where(log_odds >= weights.doubt, grams, 0.0))


def left_out(rows: Rows) -> Floats:
    """Return each row's probability by the weights that were trained without its family."""
    probability = np.zeros(len(rows.unusable))
    for family in np.unique(rows.family):
        out = rows.family == family
        probability[out] = scores(rows, train(rows, ~out))[out]
    return probability


def report(rows: Rows, probability: Floats) -> None:
    """Print what a threshold would drop, by family, and how often rows of a score are unusable; rows weigh as drawn.

    Written rows are trained on and not counted, nor are those whose figures were taken away, of which every one would
    need a figure or be lucky: they have a line of their own.
    """
    real = ~np.isin(rows.family, ("written", BARE)) & ~rows.planted
    report_bare(rows, probability)
    report_cut(rows, probability)
    unusable, weight, probability, families = (
        rows.unusable[real],
        rows.weight[real],
        probability[real],
        rows.family[real],
    )
    print(f"{len(unusable):,} rows that no trusted rule drops, {int(unusable.sum())} of them unusable; each scored by "
          "weights trained without its family of sets")  # fmt: skip
    for threshold in THRESHOLDS:
        drop = probability >= threshold
        right, good = unusable[drop].sum(), ((1 - unusable) * weight).sum()
        lost = ((1 - unusable) * weight)[drop].sum() / good
        print(f"  from {threshold:g}: {int(drop.sum()):4} dropped, precision {right / max(1, drop.sum()):.2f}, recall "
              f"{right / unusable.sum():.2f}; of the usable rows {lost:.2%} are lost (weighted)")  # fmt: skip
    settings = StatementSettings()
    by_rule = rows.named[real][:, -len(HITS) :].any(axis=1)
    default = probability >= np.where(by_rule, settings.suspected_from, settings.unusable_from)
    for name, at in (("a rule found something", by_rule), ("no rule did", ~by_rule)):
        drop = default & at
        print(f"  by default, where {name}: {int(drop.sum())} of {int(at.sum())} dropped, {int(unusable[drop].sum())} "
              f"rightly; of {int(unusable[at].sum())} unusable")  # fmt: skip
    print("  by family: rows, unusable, mean score and share unusable (weighted), dropped by default, rightly")
    for family in np.unique(families):
        at = families == family
        mean, share = (np.average(values[at], weights=weight[at]) for values in (probability, unusable))
        drop = at & default
        print(f"    {family:<16} {at.sum():5} {int(unusable[at].sum()):4}   {mean:.3f} {share:.3f}   {drop.sum():4} "
              f"{int(unusable[drop].sum()):4}")  # fmt: skip
    print("  calibration: score, rows, mean score, share unusable")
    edges = (0, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0001)
    for low, high in itertools.pairwise(edges):
        at = (probability >= low) & (probability < high)
        if at.any():
            mean, share = probability[at].mean(), unusable[at].mean()
            print(f"    {low:4.2f} to {min(high, 1):4.2f} {at.sum():6}   {mean:.3f} {share:.3f}")


def report_bare(rows: Rows, probability: Floats) -> None:
    """Print what the default threshold drops of the rows whose figures were taken away, by weights that saw none."""
    drop = (rows.family == BARE) & ~rows.planted & (probability >= StatementSettings().suspected_from)
    bare = int(((rows.family == BARE) & ~rows.planted).sum())
    print(f"of {bare} rows without their figures {int(drop.sum())} would be dropped by "
          f"weights trained without them, {int(rows.unusable[drop].sum())} rightly")  # fmt: skip


def report_cut(rows: Rows, probability: Floats) -> None:
    """Print how many of the copies that were cut off here are dropped at the defaults."""
    settings = StatementSettings()
    by_rule = rows.named[:, -len(HITS) :].any(axis=1)
    drop = rows.planted & (probability >= np.where(by_rule, settings.suspected_from, settings.unusable_from))
    print(f"of {int(rows.planted.sum()):,} rows that were cut off {int(drop.sum()):,} are dropped by default, in "
          f"{int((rows.planted & by_rule).sum()):,} a rule found something")  # fmt: skip


def write(weights: scoring.Classifier, folder: Path) -> None:
    """Write the weights: named ones to three places as JSON, n-grams as 16-bit floats."""
    table = {
        "doubt": weights.doubt,
        "intercept": round(weights.intercept, 3),
        "named": {name: round(float(value), 3) for name, value in zip(NAMES, weights.named, strict=True)},
    }
    (folder / "classifier.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    np.save(folder / "classifier.npy", np.round(weights.grams, 3).astype(np.float16))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--elsewhere", type=Path, default=Path("nowhere"), help="the sets of `labelled_rows.ELSEWHERE`")
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    arguments = parser.parse_args()
    rows = labelled_rows(arguments.data, arguments.elsewhere)
    print({name: int(rows.named[:, NAMES.index(name)].sum()) for name in HITS})
    report(rows, left_out(rows))
    if arguments.write:
        write(train(rows, np.ones(len(rows.unusable), bool)), Path(scoring.__file__).parent)


if __name__ == "__main__":
    main()
