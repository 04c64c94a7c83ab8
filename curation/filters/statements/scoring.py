"""How likely it is that a row cannot be used as it stands: a small classifier over rules that err too often.

    score(rows) -> probabilities       rows: `statement`, `answer`, and a column for each of `HITS`

It is a logistic regression over named features (features.py), the hits of those rules, and hashed n-grams of statement
and answer (ngrams.py), trained on the project's labels by `python -m tests.statement_classifier`, which prints how well
it is calibrated on sets that it was not trained on, and writes `classifier.json` and `classifier.npy` beside this file.
N-grams are read only where the named features leave a doubt, since they take longer than all rules together.

Invariants: a row's score depends on that row alone; the weights are those of the files, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.filters.statements.features import FEATURES, FIGURE_FEATURES, PARTS, prepared
from curation.filters.statements.ngrams import BUCKETS, hashed

FEATURE_RULES = (
    "choices", "missing_figure", "no_task", "lost_characters", "refers_elsewhere", "rounded_answer", "either_number",
    "series_guess", "cut_off", "open_formula", "open_environment", "broken_off", "no_request",
)  # fmt: skip
"""Rules whose precision on labelled rows is below what drops a row alone: what they find is a feature here. Of
`choices`, words in the question that only make it doubtful that it stands alone.
"""
OPENED = "no_task_opened"
"""What `no_task` finds in rows whose options were taken away, and with them the place for the letter."""
HITS = (*FEATURE_RULES, OPENED)

NAMES = (*FEATURES, *FIGURE_FEATURES, *HITS)
"""The columns of `named_features`, in order."""
GRAM_BUCKETS = 4 * BUCKETS
"""N-grams of the statement, then those of the answer; the last tokens of each apart."""
_SEEDS = {"statement": 1, "answer": 2}
_FILE = Path(__file__).with_name("classifier.json")

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Classifier:
    """The weights, as the files hold them."""

    named: Floats
    intercept: float
    grams: Floats
    doubt: float
    """Least log-odds by the named features alone from which n-grams are read."""


@cache
def classifier() -> Classifier:
    """Return the classifier that comes with the package."""
    table = json.loads(_FILE.read_text(encoding="utf-8"))
    named = np.array([table["named"][name] for name in NAMES])
    grams = np.load(_FILE.with_suffix(".npy")).astype(np.float64)
    return Classifier(named, table["intercept"], grams, table["doubt"])


def named_features(rows: pl.DataFrame) -> Floats:
    """Return a row of zeros and ones for each row, a column for each of `NAMES`."""
    texts = prepared(rows)
    everywhere = [name for name in FEATURES if all(name not in names for _, names in PARTS)]
    passed = texts.lazy().select(
        *_columns(FEATURES, everywhere), *(where.alias(f"{at}") for at, (where, _) in enumerate(PARTS))
    )
    read = passed.collect()
    columns = {name: read[name].to_numpy() for name in everywhere}
    for at, (_, names) in enumerate(PARTS):
        columns |= _read_where(texts, read[f"{at}"], _columns(FEATURES, names))
    figures = _read_where(texts, texts["missing_figure"], _columns(FIGURE_FEATURES, list(FIGURE_FEATURES)))
    return np.hstack(
        [
            np.column_stack([columns[name] for name in FEATURES]).astype(np.float64),
            np.column_stack([figures[name] for name in FIGURE_FEATURES]).astype(np.float64),
            rows.select(HITS).cast(pl.Float64).to_numpy(),
        ]
    )


def _columns(features: Mapping[str, pl.Expr], names: Sequence[str]) -> list[pl.Expr]:
    return [features[name].fill_null(False).alias(name) for name in names]


def _read_where(texts: pl.DataFrame, where: pl.Series, features: Sequence[pl.Expr]) -> dict[str, NDArray[np.bool_]]:
    """Return features of prepared rows by name, read only where something holds; they are not there elsewhere."""
    places = where.arg_true()
    values = {}
    for column in texts[places].lazy().select(features).collect():
        values[column.name] = np.zeros(texts.height, bool)
        values[column.name][places.to_numpy()] = column.to_numpy()
    return values


def gram_features(rows: pl.DataFrame) -> tuple[Places, Places, Floats]:
    """Return row, bucket and value of every n-gram; a text's n-grams have the sum of squares 1."""
    places, buckets, values = [], [], []
    for number, (column, seed) in enumerate(_SEEDS.items()):
        place, bucket = hashed(rows[column].fill_null("").to_list(), seed)
        counts = np.bincount(place, minlength=rows.height)
        places.append(place)
        buckets.append(bucket + number * 2 * BUCKETS)
        values.append(1 / np.sqrt(counts[place]))
    return np.concatenate(places), np.concatenate(buckets), np.concatenate(values)


def score(rows: pl.DataFrame) -> list[float]:
    """Return the probability, to four places, that each row cannot be used as it stands."""
    weights = classifier()
    log_odds = named_features(rows) @ weights.named + weights.intercept
    doubtful = np.flatnonzero(log_odds >= weights.doubt)
    if len(doubtful):
        place, bucket, value = gram_features(rows[doubtful.tolist()])
        log_odds[doubtful] += np.bincount(place, value * weights.grams[bucket], minlength=len(doubtful))
    return probabilities(log_odds).round(4).tolist()  # type: ignore[no-any-return]


def probabilities(log_odds: Floats | Sequence[float]) -> Floats:
    """Return the logistic function of log-odds."""
    return 1 / (1 + np.exp(-np.asarray(log_odds, np.float64)))
