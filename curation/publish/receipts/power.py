"""What the tests of a set tell apart: right solutions that pass them all, wrong ones that fail one.

Both are shares among solutions whose label the source gives. They flatter: right solutions had a vote on the tests, and
tests were made until known wrong ones fail. So each wrong solution is counted once more without the tests that only it
was caught by; a solution no one has seen is like that one.
"""

from __future__ import annotations

import polars as pl

from curation.publish.receipts.figures import Figure, Needs, share_figure

_ONE = ["problem", "solution"]


def power_of_tests(runs: pl.DataFrame, decisions: pl.DataFrame, made: pl.DataFrame) -> list[Figure]:
    """Return the shares of right solutions that pass, and of wrong ones that are caught by which tests.

    Args:
        runs: problem, solution, right, test, valid, output, ended: every solution on every test.
        decisions: problem, test, decision, output: those not discarded are the set's.
        made: problem, test of the tests that were made here.
    """
    failing = _failing(runs, decisions)
    by_made = failing.join(made, on=["problem", "test"], how="semi")
    by_given = failing.join(made, on=["problem", "test"], how="anti")
    of_others = by_made.filter(pl.len().over("problem", "test") > 1)  # such a test had been kept without it, too
    solutions = runs.select(*_ONE, "right").unique()
    wrong, right = solutions.filter(~pl.col("right")), solutions.filter("right")
    passed = right.join(_failing(runs, decisions, right=True), on=_ONE, how="anti").height

    def caught(name: str, title: str, how: str, *by: pl.DataFrame) -> Figure:
        hits = wrong.join(pl.concat(by).select(_ONE), on=_ONE, how="semi").height
        return share_figure(f"tests.{name}", title, hits, wrong.height, how, Needs.RUN)

    held_out = "left out: a wrong solution that only tests made against it catch counts as missed"
    return [
        share_figure(
            "tests.tpr",
            "Right solutions that pass (TPR)",
            passed,
            right.height,
            "solutions that the source calls right, on all tests of their problem; they had a vote on these tests",
            Needs.RUN,
        ),
        caught("tnr", "Wrong solutions caught (TNR)", "of those that the source calls wrong", by_given, by_made),
        caught("tnr.left_out", "the same, each left out of making tests", held_out, by_given, of_others),
        caught("tnr.given", "the same, by the source's own tests", "by tests of the source that stayed", by_given),
    ]


def _failing(runs: pl.DataFrame, decisions: pl.DataFrame, *, right: bool = False) -> pl.DataFrame:
    """Return problem, test and solution of each failed run of a wrong solution (of a right one) on a test that stays.

    What was not run, because the solution had used up its limits before, shows nothing.
    """
    staying = decisions.filter(pl.col("decision") != "discard").select("problem", "test", wanted="output")
    told = runs.filter(pl.col("right") == right).filter(pl.col("ended").ne_missing("skipped"))
    joined = told.join(staying, on=["problem", "test"])
    fails = ~pl.col("valid") | (pl.col("output") != pl.col("wanted"))
    return joined.filter(fails.fill_null(True)).select("problem", "test", "solution").unique()
