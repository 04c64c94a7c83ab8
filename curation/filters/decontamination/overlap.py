"""Finds problems that come from a benchmark, by three scores.

  ``ngram``      rarity-weighted share of common runs of 13 tokens (Brown et al. 2020, appendix C)
  ``words``      rarity-weighted cosine of words
  ``embedding``  cosine of sentence embeddings

Words and runs weigh ``log((n + 2) / (df + 1))`` (Spärck Jones 1972). A ``template`` has the benchmark row's wording
with other figures.

Invariants: hits do not depend on the order of rows; they are ordered by problem, method, score and benchmark row;
dropping, in = kept + dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.embeddings import Embedder
from curation.filters.decontamination.figures import Figures, compare_figures, compare_wording, is_figure
from curation.filters.decontamination.programs import program_texts
from curation.filters.dedup.tokens import shared_passages, text_hash, token_runs, tokenize, without_passages
from curation.records import DROPPED, DropReason

VERSION = "contamination@8"

STAGE = "decontamination"

METHODS = ("ngram", "words", "embedding")

OVERLAP, TEMPLATE = "overlap", "template"

NGRAM = 13
"""Tokens in a run."""

MIN_TOKENS, MIN_FORMULA = 6, 3
"""Min tokens of a benchmark row that is searched whole; fewer with two figures, one a number."""

COVERAGE, WORDS, COSINE = 0.5, 0.6, 0.77
"""Min scores by runs and by words."""

FIGURES, FORMULAS = 0.55, 0.95
"""Min agreement of figures, in running text and with formulas."""

WORDING = 0.8
"""Min agreement of a template's words."""

FLOORS: Mapping[str, float] = {"ngram": 0.2, "words": 0.35, "embedding": 0.7, "programs": 0.4}
"""Min scores that are stored; a model may decide those below thresholds."""

FIGURE_WORTH, MAX_FIGURES = 0.05, 5
"""Bonus on the score of words per shared figure if all agree, and the max number of such figures."""

CANDIDATES, FIGURES_FLOOR, FORMULAS_FLOOR = 0.15, 0.5, 0.8
"""Min word score, and figures' agreements, of an embedded row."""

COMMON, MIN_COMMON = 0.05, 20
"""More frequent words, by share and number of rows, are ignored."""

SLOTS = 1 << 22
"""Counters of words, by hash."""

STEM = 5
"""Letters of a word that count."""

ROWS_AT_ONCE = 2_500
"""Problems compared together, which bounds memory."""

SCORE = pl.Schema(
    {
        "row": pl.Int64(),  # index of the problem in the frame
        "method": pl.String(),
        "score": pl.Float64(),
        "agreement": pl.Float64(),  # of the figures
        "formal": pl.Boolean(),  # one of the two texts has formulas
        "wording": pl.Float64(),  # agreement of the other words
        "benchmark": pl.String(),
        "benchmark_row": pl.Int64(),
    }
)
"""A measured pair."""

HIT = pl.Schema({**SCORE, "kind": pl.String()})
"""A pair that is an overlap or template."""


@dataclass(frozen=True, slots=True)
class OverlapSettings:
    """Methods and their thresholds."""

    methods: tuple[str, ...] = ("ngram", "words")  # `embedding` needs an embedder
    programs: bool = False  # whether the rows are programs
    most: int = 5  # hits kept per problem and method, best first

    @property
    def thresholds(self) -> Mapping[str, float]:
        """Return an overlap's min score by method."""
        return {"ngram": COVERAGE, "words": WORDS, "embedding": COSINE}

    @property
    def cosine_floor(self) -> float:
        """Return the min cosine that is measured."""
        return min(FLOORS["programs" if self.programs else "embedding"], COSINE)

    @property
    def measured_with(self) -> str:
        """Return a key of what scores depend on."""
        return f"{self.methods} {self.programs} {self.most} {self.cosine_floor}"

    def agrees(self, figures: float = FIGURES, formulas: float = FORMULAS) -> pl.Expr:
        """Return whether figures agree; those of programs always do."""
        if self.programs:
            return pl.lit(True)
        return pl.col("agreement") >= pl.when("formal").then(formulas).otherwise(figures)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Texts as the methods read them."""

    texts: pl.Series  # for vectors
    words: pl.DataFrame  # row, word (a hash), n
    figures: Figures
    lines: pl.DataFrame  # tokens
    runs: pl.DataFrame  # row, run (a hash)


class Rarity:
    """Document frequencies of words and benchmarks' runs."""

    def __init__(self, runs: pl.Series) -> None:
        self.rows = 0
        self._words = np.zeros(SLOTS, dtype=np.uint32)
        self._runs = runs.cast(pl.UInt64).unique().to_frame("run").with_columns(rows=pl.lit(0, pl.Int64))

    def add(self, rows: int, words: pl.Series, runs: pl.DataFrame) -> None:
        """Count rows by their distinct words' hashes and ``runs`` (row, run)."""
        self.rows += rows
        np.add.at(self._words, _slots(words), 1)
        matches = runs.filter(self.is_known(runs["run"])).unique().group_by("run").len("more")
        counted = self._runs.join(matches, on="run", how="left")
        self._runs = counted.select("run", rows=pl.col("rows") + pl.col("more").fill_null(0))

    def is_known(self, runs: pl.Series) -> pl.Series:
        """Return which runs are in a benchmark."""
        return runs.is_in(self._runs["run"].implode())

    def word_frequency(self, words: pl.Series) -> NDArray[np.float64]:
        """Return the share of rows with each word."""
        share: NDArray[np.float64] = self._words[_slots(words)] / max(1, self.rows)
        return share

    def word_weights(self, words: pl.Series) -> NDArray[np.float64]:
        """Return words' weights by hash."""
        return self._weights(self._words[_slots(words)])

    def run_weights(self, runs: pl.Series) -> NDArray[np.float64]:
        """Return runs' weights by hash; unknown runs are rare."""
        counts = runs.to_frame("run").join(self._runs, on="run", how="left", maintain_order="left")["rows"]
        return self._weights(counts.fill_null(1).to_numpy())

    def _weights(self, counts: NDArray[np.integer]) -> NDArray[np.float64]:
        weights: NDArray[np.float64] = np.log((self.rows + 2) / (np.minimum(counts, self.rows) + 1.0))
        return weights


def _slots(words: pl.Series) -> NDArray[np.uint64]:
    slots: NDArray[np.uint64] = words.to_numpy() & np.uint64(SLOTS - 1)
    return slots


class BenchmarkIndex:
    """Indexes benchmarks for comparison with problems.

    Call `count` with all problems first; else rarity is that of the benchmarks.

    Args:
        benchmarks: ``benchmark``, ``row``, ``statement``; null statements are skipped.
        benchmark_embedder: for the benchmarks.
    """

    def __init__(
        self,
        benchmarks: pl.DataFrame,
        settings: OverlapSettings,
        embedder: Embedder | None = None,
        benchmark_embedder: Embedder | None = None,
    ) -> None:
        self.settings = settings
        self.benchmarks = benchmarks.filter(pl.col("statement").is_not_null())
        statements = self.benchmarks["statement"]
        lines = tokenize(statements)
        self._passages = shared_passages(lines, self.benchmarks["benchmark"])
        lines = without_passages(lines, self._passages)
        self._whole = _whole_runs(lines)
        self._batch = self._read(statements, lines)
        self._rarity = Rarity(self._batch.runs["run"])
        self._rarity.add(self.benchmarks.height, self._batch.words["word"], self._batch.runs)
        self._postings: pl.DataFrame | None = None
        self._weighed: pl.DataFrame | None = None
        if "embedding" in settings.methods:
            from curation.embeddings import MiniLm

            self._embedder = embedder or MiniLm()
            self._vectors = (benchmark_embedder or self._embedder).embed(self._batch.texts.to_list())

    def count(self, statements: pl.Series) -> None:
        """Count problems' words and runs, for rarity."""
        for first in range(0, len(statements), ROWS_AT_ONCE):
            rows = statements[first : first + ROWS_AT_ONCE]
            lines = without_passages(tokenize(rows), self._passages)
            self._rarity.add(len(rows), _words(lines)["word"], _runs(lines))
        self._postings = self._weighed = None

    def scores(self, statements: pl.Series) -> pl.DataFrame:
        """Return measured pairs as `SCORE` rows; ``row`` is the index in the series."""
        scored = []
        for first in range(0, max(1, len(statements)), ROWS_AT_ONCE):
            lines = self._scores(statements[first : first + ROWS_AT_ONCE])
            scored.append(lines.with_columns(row=pl.col("row") + first))
        return pl.concat(scored)

    def _scores(self, statements: pl.Series) -> pl.DataFrame:
        batch = self._read(statements, without_passages(tokenize(statements), self._passages))
        frames = []
        if "ngram" in self.settings.methods:
            frames.append(self._by_runs(batch).with_columns(order=pl.lit(0)))
        alike = compare_figures(self._by_words(batch), batch.figures, self._batch.figures)
        if "words" in self.settings.methods:
            words = alike.filter(pl.col("score") >= FLOORS["words"])
            frames.append(_with_figures(words, self.settings).pipe(_scored).with_columns(order=pl.lit(1)))
        if "embedding" in self.settings.methods:
            vectors = self._by_vectors(batch, self._embedded(batch, alike))
            frames.append(vectors.with_columns(order=pl.lit(2)))
        lines = compare_figures(pl.concat(frames), batch.figures, self._batch.figures)
        # with shared runs, one text is in the other, which may be longer
        lines = lines.with_columns(agreement=pl.when(pl.col("order") == 0).then("contained").otherwise("agreement"))
        best = -(pl.col("score") + pl.col("agreement") / 10)
        lines = lines.sort("row", "order", best, "at")
        lines = lines.filter(pl.int_range(pl.len()).over("row", "order") < self.settings.most)
        lines = compare_wording(lines, batch.figures, self._batch.figures)
        names = self.benchmarks.select("benchmark", benchmark_row=pl.col("row").cast(pl.Int64))[lines["at"]]
        method = pl.col("order").replace_strict(range(len(METHODS)), METHODS, return_dtype=pl.String)
        lines = lines.with_columns(names).sort("row", "order", -pl.col("score"), "at")
        return lines.with_columns(method=method).match_to_schema(SCORE, extra_columns="ignore")

    def hits(self, statements: pl.Series) -> pl.DataFrame:
        """Return overlaps and templates as `HIT` rows."""
        return classify_hits(self.scores(statements), self.settings)

    def _read(self, statements: pl.Series, lines: pl.DataFrame) -> _Batch:
        texts = program_texts(statements) if self.settings.programs else statements
        return _Batch(texts, _words(lines), Figures(statements, lines), lines, _runs(lines))

    def _by_runs(self, batch: _Batch) -> pl.DataFrame:
        has_known = batch.runs.filter(self._rarity.is_known(batch.runs["run"])).select("row").unique()
        weighed = self._weighed_runs(batch.runs.join(has_known, on="row", how="semi"))
        if self._weighed is None:
            self._weighed = self._weighed_runs(self._batch.runs)
        share = pl.col("weight").sum() / pl.min_horizontal(pl.col("sum").first(), pl.col("sum_right").first())
        shared = weighed.join(self._weighed, on="run").group_by("row", at="row_right").agg(score=share.clip(0, 1))
        shared = shared.filter(pl.col("score") >= FLOORS["ngram"]).pipe(_scored)
        return pl.concat([shared, _whole_inside(batch.lines, self._whole)])

    def _weighed_runs(self, runs: pl.DataFrame) -> pl.DataFrame:
        distinct = runs.unique(["row", "run"])
        weight = pl.Series("weight", self._rarity.run_weights(distinct["run"]))
        return distinct.with_columns(weight).with_columns(sum=pl.col("weight").sum().over("row"))

    def _embedded(self, batch: _Batch, alike: pl.DataFrame) -> pl.Series:
        """Return the rows to embed: programs, or texts with similar words and figures."""
        if self.settings.programs:
            has_text = batch.texts.is_not_null() & (batch.texts.str.strip_chars() != "")
            return has_text.arg_true().cast(pl.Int64).alias("row")
        return alike.filter(self.settings.agrees(FIGURES_FLOOR, FORMULAS_FLOOR))["row"].unique().sort()

    def _by_words(self, batch: _Batch) -> pl.DataFrame:
        if self._postings is None:
            self._postings = self._weighed_words(self._batch.words)
        return (
            self._weighed_words(batch.words)
            .join(self._postings, on="word")
            .group_by("row", at="row_right")
            .agg(score=(pl.col("weight") * pl.col("weight_right")).sum())
            .filter(pl.col("score") >= CANDIDATES)
            .pipe(_scored)
        )

    def _weighed_words(self, words: pl.DataFrame) -> pl.DataFrame:
        weights = self._rarity.word_weights(words["word"])
        is_common = self._rarity.word_frequency(words["word"]) > max(COMMON, MIN_COMMON / max(1, self._rarity.rows))
        weighed = words.with_columns(weight=pl.Series(weights)).filter(~pl.Series(is_common))
        weighed = weighed.with_columns(weight=pl.col("weight") * (1 + pl.col("n").log()))
        return weighed.select("row", "word", weight=pl.col("weight") / pl.col("weight").pow(2).sum().sqrt().over("row"))

    def _by_vectors(self, batch: _Batch, rows: pl.Series) -> pl.DataFrame:
        if rows.is_empty():
            return pl.DataFrame({"row": rows, "at": rows, "score": rows}).pipe(_scored)
        scores = self._embedder.embed(batch.texts[rows].to_list()) @ self._vectors.T
        line, at = np.nonzero(scores >= self.settings.cosine_floor)
        return pl.DataFrame({"row": rows.to_numpy()[line], "at": at, "score": scores[line, at]}).pipe(_scored)


def classify_hits(scores: pl.DataFrame, settings: OverlapSettings) -> pl.DataFrame:
    """Return overlaps and templates as `HIT` rows."""
    is_alike = pl.col("score") >= pl.col("method").replace_strict(settings.thresholds, return_dtype=pl.Float64)
    is_template = ~settings.agrees() & (pl.col("wording") >= WORDING)
    kind = pl.when(is_alike & settings.agrees()).then(pl.lit(OVERLAP)).when(is_template).then(pl.lit(TEMPLATE))
    return scores.with_columns(kind=kind).filter(pl.col("kind").is_not_null()).match_to_schema(HIT)


def drop_contaminated(
    problems: pl.DataFrame, hits: pl.DataFrame, *, with_templates: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split a shard into `PROBLEM` rows and `DROPPED` ones, in order.

    Args:
        hits: `HIT` rows; the first per method is evidence.
    """
    counted = hits if with_templates else hits.filter(pl.col("kind") == OVERLAP)
    best = counted.group_by("row", "method", maintain_order=True).first()
    prefix = pl.when(pl.col("kind") == TEMPLATE).then(pl.lit("template, ")).otherwise(pl.lit(""))
    hit_text = pl.format(
        "{}{} {} with row {} of {}",
        prefix,
        "method",
        pl.col("score").round(3),
        "benchmark_row",
        "benchmark",
    )
    evidence = best.group_by("row", maintain_order=True).agg(hit_text.str.join("; ").alias("evidence"))
    joined = (
        problems.with_row_index("_at")
        .with_columns(pl.col("_at").cast(pl.Int64))
        .join(evidence, left_on="_at", right_on="row", how="left", maintain_order="left")
        .with_columns(stage=pl.lit(STAGE), reason=pl.lit(DropReason.CONTAMINATED.value))
    )
    has_hit = pl.col("evidence").is_not_null()
    return joined.filter(~has_hit).select(problems.columns), joined.filter(has_hit).select(DROPPED.names())


def count_templates(hits: pl.DataFrame) -> int:
    """Count problems with template hits only."""
    overlapping = hits.filter(pl.col("kind") == OVERLAP)["row"]
    return hits.filter((pl.col("kind") == TEMPLATE) & ~pl.col("row").is_in(overlapping.implode()))["row"].n_unique()


def format_hits(problems: pl.DataFrame, hits: pl.DataFrame) -> pl.DataFrame:
    """Replace indices by the problems' ids, sources and rows."""
    origins = problems.select("id", "source", pl.col("row").alias("source_row"))[hits["row"]]
    located = origins.hstack(hits.drop("row"))
    return located.rename({"source_row": "row"})


def _with_figures(alike: pl.DataFrame, settings: OverlapSettings) -> pl.DataFrame:
    if settings.programs:
        return alike
    added = FIGURE_WORTH * pl.min_horizontal("shared", pl.lit(MAX_FIGURES)) * pl.col("agreement")
    return alike.with_columns(score=(pl.col("score") + pl.when("formal").then(0.0).otherwise(added)).clip(0, 1))


def _scored(lines: pl.DataFrame) -> pl.DataFrame:
    """Round scores, since threads sum in any order."""
    score = pl.col("score").cast(pl.Float64).round(9)
    return lines.select(pl.col("row").cast(pl.Int64), pl.col("at").cast(pl.Int64), score)


def _words(lines: pl.DataFrame) -> pl.DataFrame:
    """Return row, word (hash of the stem) and n."""
    counted = lines.group_by("row", token=pl.col("token").str.slice(0, STEM)).agg(n=pl.len())
    names = counted["token"].unique()
    hashes = pl.DataFrame({"token": names, "word": pl.Series([text_hash(name) for name in names], dtype=pl.UInt64)})
    return counted.join(hashes, on="token").select("row", "word", "n")


def _runs(lines: pl.DataFrame) -> pl.DataFrame:
    first, run = token_runs(lines, NGRAM)
    return pl.DataFrame({"row": lines["row"].to_numpy()[first], "run": run})


def _whole_runs(lines: pl.DataFrame) -> dict[int, pl.DataFrame]:
    figures = lines.with_columns(is_figure=is_figure(), is_number=pl.col("token").str.contains(r"^\d"))
    rows = figures.group_by("row").agg(n=pl.len(), figures=pl.col("is_figure").sum(), numbers=pl.col("is_number").sum())
    is_formula = (pl.col("n") >= MIN_FORMULA) & (pl.col("figures") >= 2) & (pl.col("numbers") >= 1)
    short = rows.filter((pl.col("n") < NGRAM) & ((pl.col("n") >= MIN_TOKENS) | is_formula))
    whole = {}
    for length in short["n"].unique():
        own = lines.join(short.filter(pl.col("n") == length), on="row", how="semi", maintain_order="left")
        first, run = token_runs(own, length)
        whole[length] = pl.DataFrame({"at": own["row"].to_numpy()[first], "run": run})
    return whole


def _whole_inside(lines: pl.DataFrame, whole: Mapping[int, pl.DataFrame]) -> pl.DataFrame:
    matches = [pl.DataFrame(schema={"row": pl.Int64, "at": pl.Int64, "score": pl.Float64})]
    goes_on = _goes_on(lines)
    row = lines["row"].to_numpy()
    for length, benchmarks in whole.items():
        first, run = token_runs(lines, length)
        is_closed = ~goes_on[first + length]
        own = pl.DataFrame({"row": row[first[is_closed]], "run": run[is_closed]})
        matches.append(own.join(benchmarks, on="run").with_columns(score=1.0).pipe(_scored).unique())
    return pl.concat(matches)


def _goes_on(lines: pl.DataFrame) -> NDArray[np.bool_]:
    """Return whether a formula continues at each token and the end."""
    is_sign = pl.col("token").is_in(["plus", "minus", "=", "<", ">", "≤", "≥", "≠"])
    inside = (is_figure() | is_sign) & ~pl.col("opens")
    return np.concatenate([lines.select(inside).to_series().to_numpy(), [False]])
