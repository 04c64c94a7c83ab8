"""Pass rates by hand, every rule with its boundary, and what failed verdicts leave undecided."""

import math

import polars as pl
import pytest

from curation.config import Band
from curation.difficulty.early_stopping import OutcomeCounts, StoppingRule
from curation.difficulty.pass_rates import (
    counted_verdicts,
    decide,
    disagreements_with_labels,
    failed_verdicts,
    pass_rates,
    replace_failed,
)
from curation.records import ATTEMPT, PASS_RATE, Outcome
from curation.verify.math_judge import Verdict
from tests.curation.difficulty.attempt_letters import rates_of, verdicts
from tests.curation.tables import check_table

STAGE1, STAGE2 = Band(attempts=16), Band(attempts=16, max_pass_rate=0.875)


def rates(**attempts: str) -> pl.DataFrame:
    return pass_rates(pl.Series(list(attempts), dtype=pl.String), verdicts(**attempts), "weak@1")


def why(band: Band, letters: str) -> str | None:
    """The reason, or None where the problem is kept."""
    (row,) = decide(rates(x=letters), band, "stage1").to_dicts()
    assert row["keep"] is (row["reason"] is None)
    reason: str | None = row["reason"]
    return reason


def of(n: int, correct: int) -> str:
    """``n`` attempts of which ``correct`` are right; the others give no answer."""
    return "c" * correct + "n" * (n - correct)


def test_pass_rates_by_hand() -> None:
    frame = rates(b="cc1 n c2 1t", a="tb", z="")
    assert frame.schema == PASS_RATE
    assert frame["problem"].to_list() == ["b", "a", "z"]
    b, a, z = frame.to_dicts()
    counts = ("attempts", "judged", "correct", "wrong", "no_answer", "timeout", "broken", "pass_rate")
    assert [b[name] for name in counts] == [8, 7, 3, 3, 1, 1, 0, 3 / 7]
    assert (b["top_wrong_answer"], b["top_wrong_votes"], b["policy"]) == ("1.2", 2, "weak@1")
    assert (a["attempts"], a["judged"], a["timeout"], a["broken"]) == (2, 0, 1, 1)
    assert [a[name] for name in ("pass_rate", "low", "high", "top_wrong_answer")] == [None] * 4
    assert (z["attempts"], z["judged"], z["correct"], z["top_wrong_votes"], z["pass_rate"]) == (0, 0, 0, 0, None)


@pytest.mark.parametrize(
    ("correct", "judged", "low", "high"),
    [
        # half-width of 8 of 16: z / (2 √(16 + z²)) = 1.959964 / 8.908751 = 0.220004; high of 0 of 16: z² / (16 + z²)
        (0, 16, 0.0, 0.193608),
        (8, 16, 0.279996, 0.720004),
        (1, 1, 0.206549, 1.0),
    ],
)
def test_the_wilson_interval(correct: int, judged: int, low: float, high: float) -> None:
    row = rates(x=of(judged, correct)).row(0, named=True)
    assert (row["low"], row["high"]) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))

    # failed verdicts widen it by every way in which they may turn out
    row = rates(x="c" * 5 + "n" * 7 + "ttbb").row(0, named=True)
    none, all_ = (rates(x=of(16, correct)).row(0, named=True) for correct in (5, 9))
    assert row["pass_rate"] == 5 / 12
    assert (row["low"], row["high"]) == (none["low"], all_["high"])


@pytest.mark.parametrize(
    ("band", "n", "least", "most"),
    [
        (STAGE1, 16, 1, 12),
        (STAGE2, 16, 1, 14),
        (Band(attempts=10, max_pass_rate=0.3, min_correct=3), 10, 3, 3),
        (Band(attempts=50, max_pass_rate=0.58, min_correct=1), 50, 1, 29),  # 0.58 * 50 is 28.999999999999996 in floats
        (Band(attempts=4, min_correct=0, max_pass_rate=0.5), 4, 0, 2),
    ],
)
def test_the_band_and_its_two_edges(band: Band, n: int, least: int, most: int) -> None:
    measured = rates(**{f"p{correct}": of(n, correct) for correct in range(n + 1)})
    reasons = ["never_solved"] * least + [None] * (most - least + 1) + ["too_easy"] * (n - most)
    assert decide(measured, band, "stage1")["reason"].to_list() == reasons


def test_a_majority_of_few_needs_its_votes_and_exactly_the_share_is_not_more() -> None:
    four = Band(attempts=4)
    assert why(four, "111c") == "suspected_wrong_label"
    assert why(four, "11n") == "never_solved"  # two of three judged agree, three votes are wanted
    assert why(four, "11nt") == "verifier_failed"  # … and the fourth may be the third
    assert why(Band(attempts=4, wrong_label_share=0.75), "111c") is None
    # 0.58 * 50 is 28.999999999999996 in floating point; 29 of 50 is exactly the share all the same.
    band = Band(attempts=50, wrong_label_share=0.58)
    assert why(band, "1" * 29 + "c" * 21) is None
    assert why(band, "1" * 30 + "c" * 20) == "suspected_wrong_label"


def test_verdicts_against_the_labels_that_came_with_the_attempts() -> None:
    frame = verdicts(x="c1ntbc", y="c")
    labels = [True, True, False, True, True, False, None]
    attempts = frame.select("problem", "policy", "prompt", "sampling", "index").with_columns(label=pl.Series(labels))
    compared, differs = disagreements_with_labels(frame, attempts.match_to_schema(ATTEMPT, missing_columns="insert"))
    assert compared == 4  # the verifier's own failures and the attempt without a label are not compared
    assert differs.select("problem", "index", "label", "outcome").rows() == [
        ("x", 1, True, "wrong"),
        ("x", 5, False, "correct"),
    ]


def test_the_evidence_says_the_numbers_and_a_long_rival_is_cut() -> None:
    for band, letters, numbers in (
        (STAGE1, "n" * 7 + "t" * 6 + "b" * 3, "the verifier failed on 9 of 16 attempts; 7 judged, 8 wanted"),
        (STAGE1, "ccct", "3 attempts judged, 8 wanted"),
        (STAGE1, "n" * 16, "0 of 16 correct, at least 1 wanted"),
        (STAGE2, of(14, 13), "13 of 14 correct, at most 12 wanted"),
        (STAGE1, of(16, 5), "5 of 16 correct"),
    ):
        assert decide(rates(x=letters), band, "stage1")["evidence"].to_list() == [numbers]
    frame = verdicts(x="1" * 9 + "c" * 7).with_columns(answer=pl.lit("9" * 5000))
    decision = decide(pass_rates(pl.Series(["x"]), frame, "weak@1"), STAGE1, "stage1")
    assert decision["evidence"][0] == f"9 of 16 agree on {'9' * 200}, 7 on the reference"


def test_failures_of_the_verifier_decide_nothing_and_a_majority_accuses_the_reference() -> None:
    check_table("reasons of attempts", lambda letters: why(STAGE1, letters))


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
    timed_out = pl.when(outcome="timeout")
    frame = verdicts(x="1234512345" + "t" * 6).with_columns(
        answer=timed_out.then(pl.lit("x^2\n+\x1b[31m" + "1" * 99)).otherwise("answer"),
        method=timed_out.then(pl.lit("killed at its limit")).otherwise("method"),
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
