"""Three ways to see that a problem comes from a benchmark: shared runs of tokens, similar shingles (token bigrams),
near vectors.

  ``ngram``      a run of 13 tokens (Brown et al. 2020, appendix C) stands in both; of a text shorter than that, the
                 whole text stands in the other, if it has 6 tokens or more. The score is the part of the problem's
                 runs that the benchmark row holds: 1 for a whole text.
  ``minhash``    the Jaccard similarity of the token bigrams reaches a threshold; MinHash proposes, the score is exact.
                 Numbers need not agree: a benchmark's problem with other numbers is contamination too.
  ``embedding``  the cosine of the sentence embeddings reaches a threshold: paraphrases.

Tokens are those of `curation.filters.dedup.minhash`: case, LaTeX, punctuation and the writing of numbers do not count.

Invariants: a row's hits depend on that row, the benchmarks and the settings alone; with the same input the output is
the same, in the order of problems, then methods, then falling score, then benchmark row.

Not here: any decision, and translations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.filters.dedup.minhash import (
    TokenizedRows,
    band_keys,
    band_rows,
    gram_hashes,
    jaccard,
    signatures,
    tokenize_rows,
)

VERSION = "contamination@1"

METHODS = ("ngram", "minhash", "embedding")

HIT = pl.Schema(
    {
        "row": pl.Int64(),  # position of the problem in the frame
        "method": pl.String(),
        "score": pl.Float64(),
        "benchmark": pl.String(),
        "benchmark_row": pl.Int64(),
    }
)

MINHASH_RECALL = 0.9
"""Share of pairs at the threshold that MinHash should propose, at least: benchmarks are met at low thresholds."""


@dataclass(frozen=True, slots=True)
class OverlapSettings:
    """When a problem and a benchmark row overlap, and by which methods. `bench_decontamination` measures each."""

    methods: tuple[str, ...] = ("ngram", "minhash")  # `embedding` needs the extra
    ngram: int = 13  # tokens in a run
    whole: int = 6  # fewest tokens of a text that counts as a whole
    similarity: float = 0.25  # least Jaccard similarity
    cosine: float = 0.81  # least cosine
    most: int = 5  # hits kept per problem and method, best first


class BenchmarkIndex:
    """Benchmarks, indexed for comparison with batches of problems.

    Args:
        benchmarks: ``benchmark`` (a name), ``row`` (its position there), ``statement``; null statements are skipped.
    """

    def __init__(self, benchmarks: pl.DataFrame, settings: OverlapSettings) -> None:
        self.settings = settings
        self.benchmarks = benchmarks.filter(pl.col("statement").is_not_null())
        self._rows = tokenize_rows(self.benchmarks["statement"])
        if "ngram" in settings.methods:
            self._runs = pl.concat(_runs(self._rows, length, settings) for length in _lengths(settings))
        if "minhash" in settings.methods:
            self._keys = _keys(self._rows, settings.similarity)
        if "embedding" in settings.methods:
            from curation.filters.dedup.embeddings import embed

            self._vectors = embed(self.benchmarks["statement"].to_list())

    def hits(self, statements: pl.Series) -> pl.DataFrame:
        """Return all hits of the problems, in the `HIT` schema; ``row`` is the position in the series."""
        rows = tokenize_rows(statements)
        frames = []
        if "ngram" in self.settings.methods:
            frames.append(self._by_runs(rows).with_columns(order=pl.lit(0)))
        if "minhash" in self.settings.methods:
            frames.append(self._by_shingles(rows).with_columns(order=pl.lit(1)))
        if "embedding" in self.settings.methods:
            frames.append(self._by_vectors(statements).with_columns(order=pl.lit(2)))
        lines = pl.concat(frames).sort("row", "order", -pl.col("score"), "at")
        lines = lines.filter(pl.int_range(pl.len()).over("row", "order") < self.settings.most)
        names = self.benchmarks.select("benchmark", benchmark_row=pl.col("row").cast(pl.Int64))[lines["at"]]
        method = pl.col("order").replace_strict(range(len(METHODS)), METHODS, return_dtype=pl.String)
        return lines.select("row", "score", method=method).hstack(names).match_to_schema(HIT, extra_columns="ignore")

    def _by_runs(self, rows: TokenizedRows) -> pl.DataFrame:
        runs = pl.concat(_runs(rows, length, self.settings) for length in _lengths(self.settings))
        shared = runs.join(self._runs, on=["length", "run"]).filter(
            (pl.col("length") == self.settings.ngram) | pl.col("whole") | pl.col("whole_right")
        )
        part = pl.col("run").n_unique() / pl.col("runs").first()
        whole = (pl.col("whole") | pl.col("whole_right")).any()
        return shared.group_by("row", at="row_right").agg(score=pl.when(whole).then(1.0).otherwise(part)).pipe(_scored)

    def _by_shingles(self, rows: TokenizedRows) -> pl.DataFrame:
        keys = _keys(rows, self.settings.similarity)
        candidates = keys.join(self._keys, on="key").select("row", at="row_right").unique().sort("row", "at")
        left, right = candidates["row"].to_numpy(), candidates["at"].to_numpy()
        scores = jaccard(rows, self._rows, (left, right))
        return (
            candidates.with_columns(score=pl.Series(scores))
            .filter(pl.col("score") >= self.settings.similarity)
            .pipe(_scored)
        )

    def _by_vectors(self, statements: pl.Series) -> pl.DataFrame:
        from curation.filters.dedup.embeddings import embed

        some = pl.DataFrame({"text": statements}).with_row_index("row").filter(pl.col("text").is_not_null())
        cosines = embed(some["text"].to_list()) @ self._vectors.T
        line, at = np.nonzero(cosines >= self.settings.cosine)
        row = some["row"].to_numpy()[line]
        return pl.DataFrame({"row": row, "at": at, "score": cosines[line, at]}).pipe(_scored)


def find_contamination(
    problems: pl.DataFrame, benchmarks: pl.DataFrame, settings: OverlapSettings | None = None
) -> pl.DataFrame:
    """Return the hits of ``problems`` (column statement) in ``benchmarks`` (benchmark, row, statement), in the `HIT`
    schema.
    """
    return BenchmarkIndex(benchmarks, settings or OverlapSettings()).hits(problems["statement"])


def _scored(lines: pl.DataFrame) -> pl.DataFrame:
    return lines.select(pl.col("row").cast(pl.Int64), pl.col("at").cast(pl.Int64), pl.col("score").cast(pl.Float64))


def _lengths(settings: OverlapSettings) -> Iterable[int]:
    return range(min(settings.whole, settings.ngram), settings.ngram + 1)


def _runs(rows: TokenizedRows, length: int, settings: OverlapSettings) -> pl.DataFrame:
    """Return the runs of ``length`` tokens: row, length, run (a hash), the row's number of such runs, and whether the
    run is the whole text.
    """
    row, run = gram_hashes(rows, length)
    runs = np.diff(rows.token_starts)[row] - length + 1
    whole = (runs == 1) & (length < settings.ngram)
    return pl.DataFrame({"row": row, "length": np.full(len(row), length), "run": run, "runs": runs, "whole": whole})


def _keys(rows: TokenizedRows, threshold: float) -> pl.DataFrame:
    """Return band keys of the rows that have tokens: key, row."""
    matrix = signatures(rows)
    some: NDArray[np.int64] = np.flatnonzero(np.diff(rows.shingle_starts))
    keys = [key[some] for key in band_keys(matrix, band_rows(threshold, MINHASH_RECALL))]
    return pl.DataFrame({"key": np.concatenate(keys), "row": np.tile(some, len(keys))})
