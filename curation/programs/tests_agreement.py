"""Decides which tests of a code problem are trusted (paper, section 4.2).

Invariant: decisions do not depend on the order of rows.
"""

from __future__ import annotations

import polars as pl

from curation.config import CodeSettings
from curation.records import DropReason

VERSION = "tests_agreement@5"

RUN = pl.Schema(
    {
        "problem": pl.String(),
        "solution": pl.Int32(),  # position among the problem's solutions
        "right": pl.Boolean(),  # its label; null if the source has none
        "test": pl.Int32(),
        "valid": pl.Boolean(),  # it ended by itself, within its limits, with exit code 0
        "output": pl.String(),  # the class of its output; null if the run is not valid
        "expected": pl.Boolean(),  # that class is the expected output's
    }
)

TEST_DECISION = pl.Schema(
    {
        "problem": pl.String(),
        "test": pl.Int32(),
        "decision": pl.String(),  # keep, correct, discard
        "why": pl.String(),
        "votes": pl.Int32(),  # valid runs of voting solutions
        "agreeing": pl.Int32(),  # of these, with the most frequent output
        "expecting": pl.Int32(),  # of these, with the expected output
        "output": pl.String(),  # class of the most frequent output, which a corrected test takes
        "evidence": pl.String(),  # why an input is refused, in a validator's words if it was one, else null
    }
)

INPUT = pl.Schema(
    {
        "problem": pl.String(),
        "test": pl.Int32(),
        "allowed": pl.Boolean(),  # false: a validator refuses it; null: unknown
        "words": pl.String(),  # the validator's
    }
)
"""What is known of given inputs."""

PROBLEM_DECISION = pl.Schema(
    {
        "problem": pl.String(),
        "keep": pl.Boolean(),
        "reason": pl.String(),
        "evidence": pl.String(),
        "solutions": pl.Int32(),
        "voting": pl.Int32(),
        "tests": pl.Int32(),
        "tests_kept": pl.Int32(),
        "tests_corrected": pl.Int32(),
        "tests_discarded": pl.Int32(),
        "wrong_solutions": pl.Int32(),
        "wrong_caught": pl.Int32(),  # of these, failing at least one test that stays
        "weakly_tested": pl.Boolean(),  # a known wrong solution passes everything that stays
    }
)

MAX_FAILING_SHARE = 0.5
"""Max share of tests that a voting solution may fail."""

MAX_DEVIATING_SHARE = 0.5
"""Max share of tests on which a voting solution may deviate."""

MAX_SPLIT_SHARE = 0.3
"""Max share of tests without agreement; above, a problem has several right outputs."""

MIN_SOLUTIONS = 1
"""Min voting solutions of a problem."""

MIN_AGREEMENT = 0.75
"""Min share of a test's valid runs with the same output."""

MIN_VOTES = 2
"""Min valid runs of a test unless all give its expected output."""

VOTES_TO_CORRECT = 3
"""Min equal outputs, and none as expected, for a correction."""

_MIN_OTHERS = 3
"""Min other valid runs of a test for a run to deviate."""


def majority_outputs(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the most frequent valid ``output`` per problem and test.

    Ties go to the expected output, then to the smaller name.
    """
    valid = runs.filter(pl.col("valid"))
    classes = valid.group_by("problem", "test", "output").agg(
        pl.len().cast(pl.Int32).alias("agreeing"), pl.col("expected").any()
    )
    ranked = classes.sort(
        "problem", "test", "agreeing", "expected", "output", descending=[False, False, True, True, False]
    )
    return ranked.group_by("problem", "test", maintain_order=True).agg(
        pl.col("agreeing").sum().alias("votes"),
        pl.col("agreeing").first(),
        pl.col("agreeing").filter(pl.col("expected")).sum().alias("expecting"),
        pl.col("output").first(),
        pl.col("expected").first().alias("mode_expected"),
    )


def deviating_solutions(runs: pl.DataFrame) -> pl.DataFrame:
    """Return solutions that do not vote: (problem, solution, why, share)."""
    labelled = runs.filter(~pl.col("right").fill_null(True))
    wrong = labelled.select("problem", "solution").unique().with_columns(why=pl.lit("labelled_wrong"), share=1.0)
    candidates = runs.filter(pl.col("right").fill_null(True))
    failing = (
        candidates.group_by("problem", "solution")
        .agg((~pl.col("valid")).mean().alias("share"))
        .filter(pl.col("share") > MAX_FAILING_SHARE)
        .select("problem", "solution", pl.lit("fails").alias("why"), "share")
    )
    rest = candidates.join(failing, on=["problem", "solution"], how="anti")
    deviating = (
        _against_others(rest)
        .group_by("problem", "solution")
        .agg(pl.col("deviates").mean().alias("share"))
        .filter(pl.col("share") > MAX_DEVIATING_SHARE)
        .select("problem", "solution", pl.lit("deviates").alias("why"), "share")
    )
    return pl.concat([wrong, failing, deviating]).sort("problem", "solution")


def _against_others(runs: pl.DataFrame) -> pl.DataFrame:
    valid = runs.filter(pl.col("valid"))
    counts = valid.group_by("problem", "test", "output").agg(pl.len().alias("same"))
    totals = counts.group_by("problem", "test").agg(
        pl.col("same").sum().alias("all"), pl.col("same").max().alias("top")
    )
    joined = valid.join(counts, on=["problem", "test", "output"]).join(totals, on=["problem", "test"])
    others = pl.col("all") - 1
    majority = pl.col("top") * 2 > others  # a strict majority of the other runs, in another class
    return joined.filter(others >= _MIN_OTHERS).with_columns(deviates=(pl.col("same") < pl.col("top")) & majority)


def decide_tests(
    runs: pl.DataFrame,
    asked: pl.DataFrame | None = None,
    inputs: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return one `TEST_DECISION` row per (problem, test), by the first rule that applies.

    Args:
        runs: `RUN` rows.
        asked: (problem, test), also of tests whose runs all broke.
        inputs: `INPUT` rows; a test without a row has an allowed input.
    """
    voting = runs.join(deviating_solutions(runs), on=["problem", "solution"], how="anti")
    all_tests = runs.select("problem", "test")
    if asked is not None:
        all_tests = pl.concat([all_tests, asked.select("problem", "test").cast(all_tests.schema)])
    all_tests = all_tests.unique()
    tests = all_tests.join(majority_outputs(voting), on=["problem", "test"], how="left").with_columns(
        pl.col("votes", "agreeing", "expecting").fill_null(0)
    )
    known = (INPUT.to_frame() if inputs is None else inputs).with_columns(listed=True)
    tests = tests.join(known, on=["problem", "test"], how="left").rename({"words": "evidence"})
    refused = (~pl.col("allowed")).fill_null(False)
    unproven = pl.col("allowed").is_null() & pl.col("listed").fill_null(False)
    agreed = pl.col("agreeing") >= MIN_AGREEMENT * pl.col("votes") - 1e-9
    unanimous = pl.col("expecting") == pl.col("votes")
    correctable = (pl.col("expecting") == 0) & (pl.col("agreeing") >= VOTES_TO_CORRECT)
    rules: list[tuple[pl.Expr, str, str]] = [
        (refused, "discard", "refused_input"),
        (pl.col("votes") == 0, "discard", "no_votes"),
        (unanimous, "keep", "agrees"),
        (pl.col("votes") < MIN_VOTES, "discard", "too_few_votes"),
        (~agreed, "discard", "no_agreement"),
        (pl.col("mode_expected"), "keep", "agrees"),
        (correctable & unproven, "discard", "unproven_input"),
        (correctable, "correct", "corrected"),
        (pl.lit(True), "discard", "disputed"),
    ]
    return (
        tests.with_columns(
            pl.coalesce(pl.when(fires).then(pl.lit(decision)) for fires, decision, _ in rules).alias("decision"),
            pl.coalesce(pl.when(fires).then(pl.lit(why)) for fires, _, why in rules).alias("why"),
        )
        .select(TEST_DECISION.names())
        .cast(TEST_DECISION)
        .sort("problem", "test")
    )


def decide_problems(
    runs: pl.DataFrame,
    tests: pl.DataFrame,
    settings: CodeSettings,
    checked: pl.Series | None = None,
    made: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return one `PROBLEM_DECISION` row per problem of the `RUN` rows.

    Args:
        checked: problems with a checker.
        made: (problem, test) of generated tests, ignored in the agreement.
    """
    given = tests if made is None else tests.join(made, on=["problem", "test"], how="anti")
    agreement = given.group_by("problem").agg(
        pl.len().alias("given"), (pl.col("why") == "no_agreement").mean().alias("split")
    )
    nonvoters = deviating_solutions(runs)
    solutions = runs.select("problem", "solution").unique()
    voters = solutions.join(nonvoters, on=["problem", "solution"], how="anti").group_by("problem").len("voting")
    caught = (
        _caught_solutions(runs, tests)
        .group_by("problem")
        .agg(pl.len().alias("wrong_solutions"), pl.col("caught").sum().alias("wrong_caught"))
    )
    counts = [
        pl.len().alias("tests"),
        *(
            (pl.col("decision") == decision).sum().alias(f"tests_{name}")
            for decision, name in (("keep", "kept"), ("correct", "corrected"), ("discard", "discarded"))
        ),
    ]
    table = (
        solutions.group_by("problem")
        .len("solutions")
        .join(voters, on="problem", how="left")
        .join(tests.group_by("problem").agg(counts), on="problem")
        .join(caught, on="problem", how="left")
        .join(agreement, on="problem", how="left")
        .with_columns(pl.col("voting", "wrong_solutions", "wrong_caught").fill_null(0))
        .with_columns(weakly_tested=pl.col("wrong_caught") < pl.col("wrong_solutions"))
    )
    names = [] if checked is None else checked.to_list()
    staying = pl.col("tests_kept") + pl.col("tests_corrected")
    rules: list[tuple[pl.Expr, DropReason, pl.Expr]] = [
        (
            pl.col("voting") < MIN_SOLUTIONS,
            DropReason.NO_SOLUTION,
            pl.format("{} of {} solutions vote, {} wanted", "voting", "solutions", pl.lit(MIN_SOLUTIONS)),
        ),
        (
            (pl.col("split") > MAX_SPLIT_SHARE) & ~pl.col("problem").is_in(names),
            DropReason.SEVERAL_OUTPUTS,
            pl.format("the solutions do not agree on {} % of {} tests", (pl.col("split") * 100).round(1), "given"),
        ),
        (
            staying < settings.min_tests,
            DropReason.TOO_FEW_TESTS,
            pl.format("{} of {} tests stay, {} wanted", staying, "tests", pl.lit(settings.min_tests)),
        ),
    ]
    summary = pl.format("{} of {} tests stay, {} corrected", staying, "tests", "tests_corrected")
    return (
        table.with_columns(
            pl.coalesce(pl.when(fires).then(pl.lit(name.value)) for fires, name, _ in rules).alias("reason"),
            pl.coalesce([*(pl.when(fires).then(text) for fires, _, text in rules), summary]).alias("evidence"),
        )
        .with_columns(keep=pl.col("reason").is_null())
        .select(PROBLEM_DECISION.names())
        .cast(PROBLEM_DECISION)
        .sort("problem")
    )


def _caught_solutions(runs: pl.DataFrame, tests: pl.DataFrame) -> pl.DataFrame:
    staying = tests.filter(pl.col("decision") != "discard").select(
        "problem", "test", pl.col("output").alias("kept_output")
    )
    wrong = runs.filter(~pl.col("right").fill_null(True))
    fails = ~pl.col("valid") | (pl.col("output") != pl.col("kept_output"))
    judged = wrong.join(staying, on=["problem", "test"], how="inner").with_columns(fails=fails.fill_null(True))
    outcome = judged.group_by("problem", "solution").agg(pl.col("fails").any().alias("caught"))
    all_wrong = wrong.select("problem", "solution").unique()
    return all_wrong.join(outcome, on=["problem", "solution"], how="left").with_columns(
        pl.col("caught").fill_null(False)
    )
