"""Three ways to see that a problem comes from a benchmark: shared runs of tokens, shared rare words, near vectors.

  ``ngram``      runs of 13 tokens (Brown et al. 2020, appendix C) stand in both. The score is the part of the runs of
                 the text that has fewer, weighed by rarity: one run that hundreds of problems have ("where m and n are
                 relatively prime …") is next to nothing. Of a text shorter than a run, the whole text stands in the
                 other, if it has 6 tokens or more; the score is 1 then.
  ``words``      the cosine of the texts' words, weighed by rarity; words of more than one problem in twenty are left
                 out, and words count by how they begin. In running text each of up to five figures that both have
                 adds a little: few problems share many.
  ``embedding``  the cosine of the sentence embeddings: paraphrases. Only what shares some rare words with a benchmark
                 row is embedded; of programs all, for they say little, and a port may share no word.

Of programs, vectors are those of what they say in words (`programs`). To their cosine adds what
a port keeps: three runs of values of the examples that no other task has, or a function's name. Where tasks near each
other were run on one another (`behaviour`), what came of it adds to the score, or takes from it.

Each hit also says how far the figures agree, and the wording without them (`figures`). A hit whose score and figures
suffice is an ``overlap``; one whose figures differ but whose wording is the same, whatever the score, is a
``template``: another problem.
`classify_hits` decides that from the scores alone, so another threshold reads no statement again.

Invariants: a row's hits depend on that row, the benchmarks, the settings, and how rare runs and words are in the corpus
that was counted, which is taken without regard to its order; with the same input the output is the same, in the order
of problems, then methods, then falling score, then benchmark row.

Not here: what is dropped, and translations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import polars as pl

from curation.embeddings.base import Embedder, OnOutcome
from curation.filters.decontamination.behaviour import with_trial_worth
from curation.filters.decontamination.figures import Figures, compare_figures, compare_wording
from curation.filters.decontamination.programs import EXAMPLE, program_evidence, program_texts
from curation.filters.decontamination.rarity import Rarity
from curation.filters.dedup.minhash import TokenizedRows, gram_hashes, text_hash, tokenize, tokenize_rows
from curation.records import RequestRefused

VERSION = "contamination@7"

METHODS = ("ngram", "words", "embedding")

OVERLAP, TEMPLATE = "overlap", "template"

FLOORS: Mapping[str, float] = {"ngram": 0.2, "words": 0.35, "embedding": 0.7}
"""Scores (of words: cosines) from which on hits are measured and kept, or the threshold where that is lower."""

FIGURE_WORTH, MOST_FIGURES = 0.05, 5
"""What a shared figure adds to the cosine of the words in running text, where all agree, and how many count."""

EXAMPLES_WORTH, NAME_WORTH, FEWEST_RUNS, MOST_OWNERS = 0.22, 0.06, 3, 1
"""What adds to the cosine of programs: shared runs of values, or else a function's name; how many runs must be shared,
and how many texts of benchmarks may have one of those that count."""

NEAR = 0.4
"""The score of vectors from which on programs are run on one another, or the threshold where that is lower."""

FIGURES_FLOOR, FORMULAS_FLOOR = 0.5, 0.8
"""Agreement of the figures from which on a candidate is embedded, or the setting where that is lower."""

COMMON, FEWEST = 0.05, 20
"""A word of more than this part of the rows, and of more than so many, is left out."""

STEM = 5
"""Letters of a word that count."""

ROWS_AT_ONCE = 2_500
"""Problems that are compared together: memory grows with the pairs of them and the benchmarks that share words."""

SCORE = pl.Schema(
    {
        "row": pl.Int64(),  # position of the problem in the frame
        "method": pl.String(),
        "score": pl.Float64(),
        "agreement": pl.Float64(),  # of the figures
        "formal": pl.Boolean(),  # one of the two texts has formulas
        "wording": pl.Float64(),  # how far the rest agrees
        "benchmark": pl.String(),
        "benchmark_row": pl.Int64(),
        "trial": pl.String(),  # of programs that were run on one another: what came of it, by a word, or null
        "agreed": pl.Int64(),  # calls that came to the same; null where none was made
        "calls": pl.Int64(),  # of so many
    }
)
"""What is measured of a problem and a benchmark row."""

HIT = pl.Schema({**SCORE, "kind": pl.String()})
"""What counts of it: an overlap or a template."""


@dataclass(frozen=True, slots=True)
class OverlapSettings:
    """When a problem and a benchmark row overlap, and by which methods. `bench_decontamination` measures each."""

    methods: tuple[str, ...] = ("ngram", "words")  # `embedding` needs the extra
    ngram: int = 13  # tokens in a run
    whole: int = 6  # fewest tokens of a text that counts as a whole
    coverage: float = 0.5  # least part of the shorter text's runs
    words: float = 0.6  # least cosine of the words, raised by figures that agree
    cosine: float = 0.77  # least cosine of the vectors
    programs: bool = False  # whether vectors are those of what programs say in words
    candidates: float = 0.15  # least cosine of the words of what is embedded
    figures: float = 0.55  # least agreement of the figures in running text
    formulas: float = 0.95  # the same where there are formulas
    template: float = 0.8  # least agreement of the wording of a template
    behaviour: bool = True  # whether programs near each other are run on one another
    most: int = 5  # hits kept per problem and method, best first

    @property
    def thresholds(self) -> Mapping[str, float]:
        """Return the least score by method."""
        return {"ngram": self.coverage, "words": self.words, "embedding": self.cosine}

    @property
    def floors(self) -> Mapping[str, float]:
        """Return the least score that is measured, by method."""
        floors = {method: min(FLOORS[method], self.thresholds[method]) for method in METHODS}
        return (
            floors
            | ({"embedding": min(NEAR, self.cosine)} if self.runs_programs else {})
            | {"words": max(0.0, min(FLOORS["words"], self.words - FIGURE_WORTH * MOST_FIGURES))}
        )

    @property
    def runs_programs(self) -> bool:
        """Return whether tasks near each other are run on one another."""
        return self.programs and self.behaviour

    @property
    def measured_with(self) -> str:
        """Return all that measured scores depend on: thresholds above the floors do not count."""
        agreement = min(self.figures, FIGURES_FLOOR), min(self.formulas, FORMULAS_FLOOR)
        measures = f"{self.methods} {self.ngram} {self.whole} {self.candidates} {self.programs} {self.most}"
        return f"{measures} {dict(self.floors)} {agreement}{' behaviour' * self.runs_programs}"


@dataclass(slots=True)
class _Batch:
    """Texts as the methods take them."""

    texts: pl.Series  # what vectors are of
    rows: TokenizedRows
    words: pl.DataFrame  # row, word (a hash), n
    figures: Figures
    runs: pl.DataFrame = field(default_factory=pl.DataFrame)
    evidence: pl.DataFrame | None = None  # of programs: `program_evidence`


class BenchmarkIndex:
    """Benchmarks, indexed for comparison with batches of problems.

    First `count` is called with all problems, batch after batch; without it rarity is that of the benchmarks alone.

    Args:
        benchmarks: ``benchmark`` (a name), ``row`` (its position there), ``statement``; null statements are skipped.
        embedder: who computes vectors; the embedder of the extra `embeddings` where absent.
        benchmark_embedder: who does so for the benchmarks, where that is another one: it may keep them.
        on_outcome: told what servers refuse of the benchmarks, by the place in ``benchmarks``; the other methods alone
            compare such a row. Where absent a refusal is raised.
    """

    def __init__(
        self,
        benchmarks: pl.DataFrame,
        settings: OverlapSettings,
        embedder: Embedder | None = None,
        benchmark_embedder: Embedder | None = None,
        on_outcome: OnOutcome | None = None,
    ) -> None:
        self.settings = settings
        self.benchmarks = benchmarks.filter(pl.col("statement").is_not_null())
        self._batch = self._read(self.benchmarks["statement"])
        self._rarity = Rarity(self._batch.runs["run"].to_numpy())
        self._rarity.add(self.benchmarks.height, self._batch.words["word"], self._batch.runs)
        self._postings: pl.DataFrame | None = None
        self._weighed: pl.DataFrame | None = None
        if "embedding" in settings.methods:
            from curation.embeddings.minilm import MiniLm

            self._embedder = embedder or MiniLm()
            self._vectors = (benchmark_embedder or self._embedder).embed(self._batch.texts.to_list(), on_outcome)

    def count(self, statements: pl.Series) -> None:
        """Count the words and runs of some problems of the corpus."""
        words = _words(tokenize(statements, commands=True))
        self._rarity.add(len(statements), words["word"], self._runs_of(tokenize_rows(statements)))
        self._postings = self._weighed = None

    def scores(self, statements: pl.Series, on_outcome: OnOutcome | None = None) -> pl.DataFrame:
        """Return what is alike enough to be measured, in the `SCORE` schema; ``row`` is the position in the series.

        Args:
            on_outcome: told what servers refuse to embed, by that position; where absent a refusal is raised.
        """
        scored = []
        for first in range(0, max(1, len(statements)), ROWS_AT_ONCE):
            told = None if on_outcome is None else partial(_told, on_outcome, first)
            lines = self._scores(statements[first : first + ROWS_AT_ONCE], told)
            scored.append(lines.with_columns(row=pl.col("row") + first))
        return pl.concat(scored)

    def _scores(self, statements: pl.Series, on_outcome: OnOutcome | None) -> pl.DataFrame:
        """Return the `scores` of so few statements that what is compared stays small."""
        batch = self._read(statements)
        frames = []
        if "ngram" in self.settings.methods:
            frames.append(self._by_runs(batch).with_columns(order=pl.lit(0)))
        alike = compare_figures(self._by_words(batch), batch.figures, self._batch.figures)
        if "words" in self.settings.methods:
            words = alike.filter(pl.col("score") >= self.settings.floors["words"])
            frames.append(_with_figures(words, self.settings).pipe(_scored).with_columns(order=pl.lit(1)))
        if "embedding" in self.settings.methods:
            vectors = self._by_vectors(batch, self._embedded(batch, alike), on_outcome)
            frames.append(vectors.with_columns(order=pl.lit(2)))
        lines = compare_figures(pl.concat(frames), batch.figures, self._batch.figures)
        # shared runs say that one text stands in the other, which may have more to it
        lines = lines.with_columns(agreement=pl.when(pl.col("order") == 0).then("contained").otherwise("agreement"))
        best = -(pl.col("score") + pl.col("agreement") / 10)
        lines = lines.sort("row", "order", best, "at")
        lines = lines.filter(pl.int_range(pl.len()).over("row", "order") < self.settings.most)
        lines = compare_wording(lines, batch.figures, self._batch.figures)
        names = self.benchmarks.select("benchmark", benchmark_row=pl.col("row").cast(pl.Int64))[lines["at"]]
        method = pl.col("order").replace_strict(range(len(METHODS)), METHODS, return_dtype=pl.String)
        lines = lines.with_columns(names).sort("row", "order", -pl.col("score"), "at")
        return lines.with_columns(method=method).match_to_schema(
            SCORE, extra_columns="ignore", missing_columns="insert"
        )

    def hits(self, statements: pl.Series) -> pl.DataFrame:
        """Return all hits of the problems, in the `HIT` schema; ``row`` is the position in the series."""
        return classify_hits(self.scores(statements), self.settings)

    def _read(self, statements: pl.Series) -> _Batch:
        tokens = tokenize(statements, commands=True)
        rows = tokenize_rows(statements)
        texts = program_texts(statements) if self.settings.programs else statements
        batch = _Batch(texts, rows, _words(tokens), Figures(statements, tokens))
        batch.runs = self._runs_of(rows)
        if self.settings.programs and "embedding" in self.settings.methods:
            batch.evidence = program_evidence(statements)
        return batch

    def _runs_of(self, rows: TokenizedRows) -> pl.DataFrame:
        lengths = _lengths(self.settings) if "ngram" in self.settings.methods else [self.settings.ngram]
        return pl.concat(_runs(rows, length, self.settings) for length in lengths)

    def _by_runs(self, batch: _Batch) -> pl.DataFrame:
        known = batch.runs.filter(self._rarity.is_known(batch.runs["run"])).select("row", "length").unique()
        mine = self._weighed_runs(batch.runs.join(known, on=["row", "length"], how="semi"))
        if self._weighed is None:
            self._weighed = self._weighed_runs(self._batch.runs)
        theirs = self._weighed
        shared = mine.join(theirs, on=["length", "run"]).filter(
            (pl.col("length") == self.settings.ngram) | pl.col("whole") | pl.col("whole_right")
        )
        whole = (pl.col("whole") | pl.col("whole_right")).any()
        part = pl.col("weight").sum() / pl.min_horizontal(pl.col("sum").first(), pl.col("sum_right").first())
        score = pl.when(whole).then(1.0).otherwise(part.clip(0, 1))
        scored = shared.group_by("row", at="row_right").agg(score=score)
        return scored.filter(pl.col("score") >= self.settings.floors["ngram"]).pipe(_scored)

    def _weighed_runs(self, runs: pl.DataFrame) -> pl.DataFrame:
        distinct = runs.unique(["row", "length", "run"])
        weight = pl.Series("weight", self._rarity.run_weights(distinct["run"]))
        return distinct.with_columns(weight).with_columns(sum=pl.col("weight").sum().over("row", "length"))

    def _embedded(self, batch: _Batch, alike: pl.DataFrame) -> pl.Series:
        """Return which rows are embedded, in order: of programs all, else what shares words and figures."""
        if self.settings.programs:
            has_text = batch.texts.is_not_null() & (batch.texts.str.strip_chars() != "")
            return has_text.arg_true().cast(pl.Int64).alias("row")
        least = min(self.settings.figures, FIGURES_FLOOR), min(self.settings.formulas, FORMULAS_FLOOR)
        return alike.filter(agrees(*least))["row"].unique().sort()

    def _by_words(self, batch: _Batch) -> pl.DataFrame:
        if self._postings is None:
            self._postings = self._weighed_words(self._batch.words)
        return (
            self._weighed_words(batch.words)
            .join(self._postings, on="word")
            .group_by("row", at="row_right")
            .agg(score=(pl.col("weight") * pl.col("weight_right")).sum())
            .filter(pl.col("score") >= min(self.settings.candidates, self.settings.floors["words"]))
            .pipe(_scored)
        )

    def _weighed_words(self, words: pl.DataFrame) -> pl.DataFrame:
        """Return the words of each row with weights whose squares sum to 1."""
        weights = self._rarity.word_weights(words["word"])
        is_common = self._rarity.word_frequency(words["word"]) > max(COMMON, FEWEST / max(1, self._rarity.rows))
        weighed = words.with_columns(weight=pl.Series(weights)).filter(~pl.Series(is_common))
        weighed = weighed.with_columns(weight=pl.col("weight") * (1 + pl.col("n").log()))
        return weighed.select("row", "word", weight=pl.col("weight") / pl.col("weight").pow(2).sum().sqrt().over("row"))

    def _by_vectors(self, batch: _Batch, rows: pl.Series, on_outcome: OnOutcome | None = None) -> pl.DataFrame:
        """Return the pairs near enough by the vectors of some rows, given in order."""
        if rows.is_empty():
            return pl.DataFrame({"row": rows, "at": rows, "score": rows}).pipe(_scored)
        told = None if on_outcome is None else lambda place, why: on_outcome(rows[place], why)
        vectors = self._embedder.embed(batch.texts[rows].to_list(), told)
        if not vectors.shape[1] or not self._vectors.shape[1]:  # every text was refused
            return pl.DataFrame({"row": rows, "at": rows, "score": rows}).clear().pipe(_scored)
        scores = vectors @ self._vectors.T
        if batch.evidence is not None and self._batch.evidence is not None:
            lifted = _lifted(batch.evidence, self._batch.evidence).filter(pl.col("row").is_in(rows.implode()))
            line = np.searchsorted(rows.to_numpy(), lifted["row"].to_numpy())
            scores[line, lifted["at"].to_numpy()] += lifted["worth"].to_numpy()
            scores = np.clip(scores, -1.0, 1.0)
        line, at = np.nonzero(scores >= self.settings.floors["embedding"])
        return pl.DataFrame({"row": rows.to_numpy()[line], "at": at, "score": scores[line, at]}).pipe(_scored)


def classify_hits(scores: pl.DataFrame, settings: OverlapSettings) -> pl.DataFrame:
    """Return what counts of measured scores, in the `HIT` schema: overlaps, and templates with other figures."""
    is_alike = with_trial_worth() >= pl.col("method").replace_strict(settings.thresholds, return_dtype=pl.Float64)
    is_same = agrees(settings.figures, settings.formulas)
    is_template = ~is_same & (pl.col("wording") >= settings.template)
    kind = pl.when(is_alike & is_same).then(pl.lit(OVERLAP)).when(is_template).then(pl.lit(TEMPLATE))
    return scores.with_columns(kind=kind).filter(pl.col("kind").is_not_null()).match_to_schema(HIT)


def _with_figures(alike: pl.DataFrame, settings: OverlapSettings) -> pl.DataFrame:
    """Return the pairs with what shared figures add to the score: nothing in formulas, or where none need agree."""
    worth = FIGURE_WORTH if settings.figures else 0.0
    added = worth * pl.min_horizontal("shared", pl.lit(MOST_FIGURES)) * pl.col("agreement")
    score = pl.col("score") + pl.when("formal").then(0.0).otherwise(added)
    return alike.with_columns(score=score.clip(0, 1))


def _lifted(mine: pl.DataFrame, benchmarks: pl.DataFrame) -> pl.DataFrame:
    """Return what adds to the cosine of a program and a benchmark row: ``row``, ``at``, ``worth``; where anything."""
    owners = pl.col("text").n_unique().over("kind", "key")
    rare = benchmarks.filter(owners <= MOST_OWNERS).rename({"row": "at"})
    is_example = pl.col("kind") == EXAMPLE
    worth = pl.when(is_example.sum() >= FEWEST_RUNS).then(EXAMPLES_WORTH).when((~is_example).any()).then(NAME_WORTH)
    shared = mine.join(rare, on=["kind", "key"]).group_by("row", "at").agg(worth=worth.cast(pl.Float32))
    return shared.drop_nulls("worth")


def agrees(figures: float, formulas: float) -> pl.Expr:
    """Return whether the figures of a pair agree so far, in running text and where there are formulas."""
    return pl.col("agreement") >= pl.when("formal").then(formulas).otherwise(figures)


def find_contamination(
    problems: pl.DataFrame, benchmarks: pl.DataFrame, settings: OverlapSettings | None = None
) -> pl.DataFrame:
    """Return the hits of ``problems`` (column statement) in ``benchmarks`` (benchmark, row, statement), in the `HIT`
    schema. The problems are the corpus.
    """
    index = BenchmarkIndex(benchmarks, settings or OverlapSettings())
    index.count(problems["statement"])
    return index.hits(problems["statement"])


def _told(on_outcome: OnOutcome, first: int, row: int, why: RequestRefused | None) -> None:
    on_outcome(first + row, why)


def _scored(lines: pl.DataFrame) -> pl.DataFrame:
    """Return row, at and score, without the last bits, which depend on the order in which threads add up."""
    score = pl.col("score").cast(pl.Float64).round(9)
    return lines.select(pl.col("row").cast(pl.Int64), pl.col("at").cast(pl.Int64), score)


def _words(tokens: pl.DataFrame) -> pl.DataFrame:
    """Return the words of each row by how they begin: row, word (a hash), n."""
    counted = tokens.group_by("row", token=pl.col("token").str.slice(0, STEM)).agg(n=pl.len())
    names = counted["token"].unique()
    hashes = pl.DataFrame({"token": names, "word": pl.Series([text_hash(name) for name in names], dtype=pl.UInt64)})
    return counted.join(hashes, on="token").select("row", "word", "n")


def _lengths(settings: OverlapSettings) -> Iterable[int]:
    return range(min(settings.whole, settings.ngram), settings.ngram + 1)


def _runs(rows: TokenizedRows, length: int, settings: OverlapSettings) -> pl.DataFrame:
    """Return the runs of ``length`` tokens: row, length, run (a hash), and whether the run is the whole text."""
    row, run = gram_hashes(rows, length)
    runs = np.diff(rows.token_starts)[row] - length + 1
    whole = (runs == 1) & (length < settings.ngram)
    return pl.DataFrame({"row": row, "length": np.full(len(row), length), "run": run, "whole": whole})
