"""Pass rates, the Goldilocks band, suspected wrong labels: what the verdicts say of a problem.

Pure functions over frames. Measuring (`pass_rates`) and deciding (`decide`) are apart, so that a new threshold costs
no attempt. The rules, in order, and the paper's section 4.1 behind them:

    verifier_failed        the verifier failed on so many attempts that too few could be judged
    too_few_attempts       too few attempts were made
    suspected_wrong_label  a majority agrees, by the verifier's equivalence, on an answer that is not the reference;
                           looked for before never_solved, because such a problem may have no correct attempt at all
    never_solved           fewer correct attempts than the band's least
    too_easy               a higher pass rate than the band's highest

Attempts on which the verifier failed (TIMEOUT, BROKEN) count neither for nor against the problem.
"""

from __future__ import annotations

import polars as pl

from curation.config import Band
from curation.records import DECISION, JUDGED, PASS_RATE, DropReason, Outcome

VERSION = "difficulty@1"

Z95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""


def wilson(correct: pl.Expr, judged: pl.Expr, z: float = Z95) -> tuple[pl.Expr, pl.Expr]:
    """Wilson's score interval of a share, as (low, high); it stays inside [0, 1] and is sane at 0 and 1.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).
    """
    n = judged.cast(pl.Float64)
    share = correct / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = (z / (1 + z * z / n)) * (share * (1 - share) / n + z * z / (4 * n * n)).sqrt()
    return (centre - half).clip(0.0, 1.0), (centre + half).clip(0.0, 1.0)


def pass_rates(problems: pl.Series, verdicts: pl.DataFrame, policy: str) -> pl.DataFrame:
    """One `PASS_RATE` row per problem, in the order of ``problems``; problems without verdicts get zero counts.

    Args:
        problems: ids, each once.
        verdicts: `VERDICT` rows of one policy and one verifier.
    """
    counted = verdicts.group_by("problem").agg(
        pl.len().cast(pl.Int32).alias("attempts"),
        *((pl.col("outcome") == outcome).sum().cast(pl.Int32).alias(outcome.value) for outcome in Outcome),
    )
    frame = (
        problems.alias("problem")
        .to_frame()
        .join(counted, on="problem", how="left", maintain_order="left")
        .join(_rivals(verdicts), on="problem", how="left", maintain_order="left")
    )
    zeros = ["attempts", "rival_votes", *(outcome.value for outcome in Outcome)]
    low, high = wilson(pl.col("correct"), pl.col("judged"))
    return (
        frame.with_columns(pl.col(zeros).fill_null(0).cast(pl.Int32), pl.lit(policy).alias("policy"))
        .with_columns(pl.sum_horizontal(outcome.value for outcome in JUDGED).cast(pl.Int32).alias("judged"))
        .with_columns(
            pl.when(pl.col("judged") > 0).then(pl.col("correct") / pl.col("judged")).alias("pass_rate"),
            pl.when(pl.col("judged") > 0).then(low).alias("low"),
            pl.when(pl.col("judged") > 0).then(high).alias("high"),
        )
        .select(PASS_RATE.names())
        .cast(PASS_RATE)
    )


def _rivals(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Per problem the most frequent answer that is not the reference, in its first writing; ties go to the earlier."""
    return (
        verdicts.filter(pl.col("answer_class") > 0)
        .sort("problem", "index")
        .group_by("problem", "answer_class", maintain_order=True)
        .agg(pl.len().cast(pl.Int32).alias("rival_votes"), pl.col("answer").first().alias("rival"))
        .sort("problem", "rival_votes", "answer_class", descending=[False, True, False])
        .group_by("problem", maintain_order=True)
        .first()
        .select("problem", "rival", "rival_votes")
    )


def against_labels(verdicts: pl.DataFrame, attempts: pl.DataFrame) -> tuple[int, pl.DataFrame]:
    """Verdicts against the labels that came with recorded attempts: how many could be compared, and those that differ.

    A label is another's opinion: it is compared so that somebody reads the differences, and decides nothing.

    Args:
        verdicts, attempts: `VERDICT` and `ATTEMPT` rows of the same attempts.
    """
    labels = attempts.filter(pl.col("label").is_not_null()).select("problem", "index", "label")
    both = verdicts.join(labels, on=["problem", "index"], how="inner", maintain_order="left")
    compared = both.filter(pl.col("outcome").is_in([outcome.value for outcome in JUDGED]))
    differs = compared.filter((pl.col("outcome") == Outcome.CORRECT.value) != pl.col("label"))
    return compared.height, differs.select("problem", "index", "label", "outcome", "answer", "reference", "how")


def decide(rates: pl.DataFrame, band: Band, stage: str) -> pl.DataFrame:
    """One `DECISION` row per `PASS_RATE` row, same order: keep, or the first rule that drops, with its numbers."""
    most_correct = most_correct_kept(band)
    failed = pl.col("timeout") + pl.col("broken")
    too_few = pl.col("judged") < band.least_judged
    rules: list[tuple[pl.Expr, DropReason, pl.Expr]] = [
        (
            too_few & (pl.col("attempts") >= band.least_judged),
            DropReason.VERIFIER_FAILED,
            pl.format(
                "the verifier failed on {} of {} attempts; {} judged, {} wanted",
                failed,
                "attempts",
                "judged",
                pl.lit(band.least_judged),
            ),
        ),
        (
            too_few,
            DropReason.TOO_FEW_ATTEMPTS,
            pl.format("{} attempts judged, {} wanted", "judged", pl.lit(band.least_judged)),
        ),
        (
            suspected_wrong_label(band),
            DropReason.SUSPECTED_WRONG_LABEL,
            pl.format(
                "{} of {} agree on {}, {} on the reference",
                "rival_votes",
                "judged",
                pl.col("rival").str.head(200),
                "correct",
            ),
        ),
        (
            pl.col("correct") < band.min_correct,
            DropReason.NEVER_SOLVED,
            pl.format("{} of {} correct, at least {} wanted", "correct", "judged", pl.lit(band.min_correct)),
        ),
        (
            pl.col("correct") > most_correct,
            DropReason.TOO_EASY,
            pl.format("{} of {} correct, at most {} wanted", "correct", "judged", most_correct),
        ),
    ]
    reason = pl.coalesce(pl.when(fires).then(pl.lit(name.value)) for fires, name, _ in rules)
    evidence = pl.coalesce(pl.when(fires).then(numbers) for fires, _, numbers in rules)
    kept = pl.format("{} of {} correct", "correct", "judged")
    return (
        rates.with_columns(reason.alias("reason"), pl.coalesce(evidence, kept).alias("evidence"))
        .with_columns(pl.col("reason").is_null().alias("keep"), pl.lit(stage).alias("stage"))
        .select(DECISION.names())
        .cast(DECISION)
    )


def suspected_wrong_label(band: Band) -> pl.Expr:
    """The paper's rule: a majority of attempts shares one final answer that disagrees with the reference."""
    majority = pl.col("rival_votes") > band.wrong_label_share * pl.col("judged") + 1e-9
    return majority & (pl.col("rival_votes") >= band.wrong_label_votes)


def most_correct_kept(band: Band) -> pl.Expr:
    """The most correct attempts that a kept problem may have, of those judged."""
    return (pl.col("judged") * band.max_pass_rate + 1e-9).floor().cast(pl.Int32)
