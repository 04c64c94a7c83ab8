"""Compute an evaluation's figures from attempts and verdicts on a benchmark.

Invariants: TIMEOUT and BROKEN are not judged; pass@k and maj@k leave out problems with fewer than k judged attempts;
both are counted. Data that recorded attempts lack is unknown, never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from curation.records import COUNTED_OUTCOMES, Domain, Outcome
from curation.thinking import THINK, ThinkingTags, split_response
from training.evaluation.estimators import Estimate, majority_at_k, mean_interval, pass_at_k
from training.rewards import format_error

SCORES = pl.Schema(
    {
        "problem": pl.String(),
        "source": pl.String(),
        "lang": pl.String(),
        "pair": pl.String(),  # the same for one problem in several languages
        "attempts": pl.Int32(),  # correct + wrong + no_answer: those that count
        "correct": pl.Int32(),
        "votes": pl.List(pl.Int32()),  # of the other classes of answers, the largest first
        "no_answer": pl.Int32(),
        "failed": pl.Int32(),  # the verifier's own failures
        "tokens": pl.Float64(),  # mean length; null where unknown
        "finished": pl.Int32(),  # attempts with a known finish
        "cut": pl.Int32(),
        "texts": pl.Int32(),  # attempts with a known text
        "formed": pl.Int32(),  # of these, in the format
        "rewarded": pl.Int32(),  # of these, correct
        "compared": pl.Int32(),  # attempts whose languages were compared
        "one_language": pl.Int32(),
    }
)

MEASURES: Mapping[str, Callable[[int, int, Sequence[int], int], float]] = {
    "pass": lambda attempts, correct, _, k: pass_at_k(attempts, correct, k),
    "maj": majority_at_k,
}
"""Functions of attempts, correct ones, votes of other classes, and k."""


@dataclass(frozen=True, slots=True)
class LanguageScore:
    """A language's figures; ``difference`` is to English, over common problems."""

    lang: str
    pass_1: Estimate
    one_language: float | None
    difference: Estimate | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The figures of an evaluation, None if unknown; ``skipped`` counts problems with too few judged attempts by k."""

    problems: int
    attempts: int
    failed: int
    unjudged: int
    pass_1: Estimate
    pass_k: Mapping[int, Estimate]
    majority_k: Mapping[int, Estimate]
    skipped: Mapping[int, int]
    tokens: Estimate | None
    cut_share: float | None
    format_share: float | None
    language_share: float | None
    languages: tuple[LanguageScore, ...]


def score_problems(
    problems: pl.DataFrame,
    attempts: pl.DataFrame,
    verdicts: pl.DataFrame,
    tags: ThinkingTags,
    response_format: str,
    check_language: Callable[..., Any] | None,
) -> pl.DataFrame:
    """Return `SCORES` rows in the order of the problems; translations share a `row`.

    Args:
        tags, response_format: the required form of attempts.
        check_language: compares the languages of problem and attempt.
    """
    tags = THINK if tags.are_used else tags  # attempts are stored with THINK's tags
    joined = verdicts.select("problem", "index", "outcome", "answer_class").join(
        attempts.select("problem", "index", "text", "finish", "tokens"), on=["problem", "index"], how="left"
    )
    groups = {str(key[0]): group for key, group in joined.sort("index").group_by("problem", maintain_order=True)}
    rows = []
    for problem in problems.iter_rows(named=True):
        group = groups.get(problem["id"], joined.clear())
        outcomes = Counter(group["outcome"])
        wrong = group.filter(outcome=Outcome.WRONG.value)["answer_class"]
        classes = Counter(wrong.drop_nulls())  # answers without a class are each alone
        row = {
            "problem": problem["id"],
            "source": problem["source"],
            "lang": problem["lang"],
            "pair": str(problem["row"]),
            "attempts": sum(outcomes[outcome.value] for outcome in COUNTED_OUTCOMES),
            "correct": outcomes[Outcome.CORRECT.value],
            "votes": sorted([*classes.values(), *[1] * wrong.null_count()], reverse=True),
            "no_answer": outcomes[Outcome.NO_ANSWER.value],
            "failed": outcomes[Outcome.TIMEOUT.value] + outcomes[Outcome.BROKEN.value],
            "tokens": group["tokens"].mean(),
            "finished": group["finish"].drop_nulls().len(),
            "cut": int((group["finish"] == "length").sum()),
        }
        texts = group.filter(pl.col("text").is_not_null()).select("text", "finish", "outcome").rows()
        row |= {"texts": len(texts), "formed": 0, "rewarded": 0, "compared": 0, "one_language": 0}
        for text, finish, outcome in texts:
            keeps = format_error(text, Domain(problem["domain"]), tags, finish, response_format) is None
            row["formed"] += keeps
            row["rewarded"] += keeps and outcome == Outcome.CORRECT.value
            if check_language is not None:
                response = split_response(text)
                answer = response.answer or ""
                thoughts = response.thoughts if tags.are_used else answer
                row["compared"] += 1
                row["one_language"] += check_language(problem["statement"], thoughts, answer, strict=False)
        rows.append(row)
    return pl.DataFrame(rows, schema=SCORES)


def evaluate_scores(scores: pl.DataFrame, k: Sequence[int] = ()) -> Evaluation:
    """Return the figures of `SCORES` rows; each ``k`` is above 1."""
    pass_1 = _by_problem(scores, "pass", 1)
    by_k = {name: {size: list(_by_problem(scores, name, size).values()) for size in k} for name in MEASURES}
    lengths = [length for length in scores["tokens"] if length is not None]
    total = {name: int(scores[name].sum()) for name in SCORES if SCORES[name] == pl.Int32}
    return Evaluation(
        problems=scores.height,
        attempts=total["attempts"] + total["failed"],
        failed=total["failed"],
        unjudged=scores.height - len(pass_1),
        pass_1=mean_interval(list(pass_1.values()), 0.0, 1.0),
        pass_k={size: mean_interval(values, 0.0, 1.0) for size, values in by_k["pass"].items()},
        majority_k={size: mean_interval(values, 0.0, 1.0) for size, values in by_k["maj"].items()},
        skipped={size: scores.height - len(values) for size, values in by_k["pass"].items()},
        tokens=mean_interval(lengths, 0.0) if lengths else None,
        cut_share=_share(total["cut"], total["finished"]),
        format_share=_share(total["formed"], total["texts"]),
        language_share=_share(total["one_language"], total["compared"]),
        languages=tuple(_languages(scores.filter(pl.col("attempts") > 0))),
    )


def compare_scores(first: pl.DataFrame, second: pl.DataFrame, k: Sequence[int] = ()) -> dict[str, Estimate]:
    """Return the differences ``second`` - ``first`` over common problems, by measure."""
    measures = [("pass", 1), *((name, size) for size in k for name in MEASURES)]
    return {
        f"{name}@{size}": paired_difference(_by_problem(first, name, size), _by_problem(second, name, size))
        for name, size in measures
    }


def paired_difference(first: Mapping[str, float], second: Mapping[str, float]) -> Estimate:
    """Return the mean of ``second`` - ``first`` over common problems, with a 95 % interval."""
    return mean_interval([second[name] - first[name] for name in first if name in second], -1.0, 1.0)


def _by_problem(scores: pl.DataFrame, measure: str, k: int, key: str = "problem") -> dict[str, float]:
    """Return a measure of each problem with k judged attempts."""
    rows = scores.filter(pl.col("attempts") >= k).select(key, "attempts", "correct", "votes").iter_rows()
    return {name: MEASURES[measure](attempts, correct, votes, k) for name, attempts, correct, votes in rows}


def _languages(scores: pl.DataFrame) -> list[LanguageScore]:
    names = sorted(scores["lang"].drop_nulls().unique(), key=lambda lang: (lang != "en", lang))
    if len(names) < 2:
        return []
    rows = {lang: scores.filter(lang=lang) for lang in names}
    rates = {lang: _by_problem(frame, "pass", 1, "pair") for lang, frame in rows.items()}
    results = []
    for lang, frame in rows.items():
        difference = paired_difference(rates.get("en", {}), rates[lang])
        results.append(
            LanguageScore(
                lang,
                pass_1=mean_interval(list(rates[lang].values()), 0.0, 1.0),
                one_language=_share(int(frame["one_language"].sum()), int(frame["compared"].sum())),
                difference=difference if lang != "en" and difference.count else None,
            )
        )
    return results


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
