"""What failed verdicts leave undecided, by enumeration; how they are named; what becomes of them when judged again."""

from __future__ import annotations

import math

import polars as pl
import pytest

from curation.config import Band
from curation.difficulty.early_stopping import OutcomeCounts, StoppingRule
from curation.difficulty.pass_rates import counted_verdicts, decide, failed_verdicts, pass_rates, replace_failed
from curation.records import Outcome
from curation.verify.math_judge import Verdict
from tests.curation.difficulty.attempt_letters import rates_of, verdicts

STAGE1 = Band(attempts=16)


def counts_of(correct: int, top_wrong: int, others: int, failed: int) -> OutcomeCounts:
    """Counts of 16 attempts; the others gave an answer each that nobody else gave."""
    total = correct + top_wrong + others + failed
    return OutcomeCounts(correct, max(top_wrong, min(1, others)), total - failed, total, total)


@pytest.mark.parametrize("band", [STAGE1, Band(attempts=16, min_correct=3, max_pass_rate=0.5, min_judged=2)])
def test_every_completion_of_the_failed_verdicts_decides_alike_or_the_verifier_has_failed(band: Band) -> None:
    """Over all (correct, rival, wrong, failed) of 16: against every way in which the failed ones can turn out."""
    n = band.attempts
    states = [
        (correct, top_wrong, others, n - correct - top_wrong - others)
        for correct in range(n + 1)
        for top_wrong in range(n + 1 - correct)
        for others in range(n + 1 - correct - top_wrong)
    ]
    assert len(states) == math.comb(n + 3, 3)
    frame = rates_of([counts_of(*state) for state in states])
    reasons = dict(zip(states, decide(frame, band, "stage1")["reason"].to_list(), strict=True))
    for (correct, top_wrong, others, failed), reason in reasons.items():
        completions = set()
        for solved in range(failed + 1):
            for agreeing in range(failed - solved + 1):  # with the rival, with another answer, with one another
                votes = {top_wrong + agreeing, max(top_wrong, agreeing + min(1, others)), max(top_wrong, agreeing)}
                completions |= {reasons[correct + solved, most, n - correct - solved - most, 0] for most in votes}
        is_judged = n - failed >= band.required_judged
        wanted = completions.pop() if len(completions) == 1 and is_judged else "verifier_failed"
        assert reason == wanted, (correct, top_wrong, others, failed)


def test_six_that_timed_out_are_named() -> None:
    """0 correct, 10 wrong, 6 timed out of 16: all six gave one answer, which may be the right one."""
    frame = verdicts(x="1234512345" + "t" * 6).with_columns(
        pl.when(pl.col("outcome") == "timeout")
        .then(pl.lit("x^2\n+\x1b[31m" + "1" * 99))
        .otherwise("answer")
        .alias("answer"),
        pl.when(pl.col("outcome") == "timeout").then(pl.lit("killed at its limit")).otherwise("method").alias("method"),
    )
    rule = StoppingRule(STAGE1)
    measured = pass_rates(pl.Series(["x"]), frame, "weak@1", rule)
    (row,) = decide(measured, STAGE1, "stage1", rule, failed_verdicts(counted_verdicts(frame, rule))).to_dicts()
    assert row["reason"] == "verifier_failed"
    assert row["evidence"] == (
        "the verifier failed on 6 of 16 attempts, which could decide; of 10 judged 0 are correct, 2 agree on another: "
        f'attempts 10, 11, 12, 13, 14, 15 answered "x^2 + [31m{"1" * 20} … {"1" * 30}" against "ref": '
        "timeout (killed at its limit)"
    )


def test_what_is_judged_again_replaces_failures_only() -> None:
    """Classes keep their numbers; an answer that is new to them gets the next one."""
    frame = verdicts(x="c12ttbtt")
    again = [
        Verdict(Outcome.CORRECT, "ref", 0, "again"),
        Verdict(Outcome.WRONG, "1.1", 2, "again"),  # the classes are numbered otherwise this time
        Verdict(Outcome.TIMEOUT, "2.2", None, "again"),  # was judged before, and stays so
        Verdict(Outcome.CORRECT, "a", 0, "again"),
        Verdict(Outcome.WRONG, "b", 1, "again"),
        Verdict(Outcome.WRONG, "c", 2, "again"),
        Verdict(Outcome.WRONG, "b", 1, "again"),
        Verdict(Outcome.TIMEOUT, "d", None, "killed"),
    ]
    replaced = replace_failed(frame, again)
    assert replaced.schema == frame.schema
    assert replaced[:3].equals(frame[:3])
    assert replaced[3:].select("outcome", "answer_class", "method").rows() == [
        ("correct", 0, "again"),
        ("wrong", 3, "again"),
        ("wrong", 1, "again"),
        ("wrong", 3, "again"),
        ("timeout", None, "killed"),
    ]
    kept = [name for name in frame.columns if name not in ("outcome", "answer_class", "method")]
    assert replaced.select(kept).equals(frame.select(kept))
