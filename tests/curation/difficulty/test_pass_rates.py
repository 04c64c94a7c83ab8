"""Difficulty: pass rates by hand, every rule with its boundary, and which rule comes first."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import polars as pl
import pytest

from curation.config import Band
from curation.difficulty.early_stopping import WRONG_LABEL_VOTES
from curation.difficulty.pass_rates import decide, disagreements_with_labels, pass_rates
from curation.records import ATTEMPT, PASS_RATE
from tests.curation.difficulty.attempt_letters import verdicts
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


def evidence(band: Band, letters: str) -> str:
    text: str = decide(rates(x=letters), band, "stage1")["evidence"][0]
    return text


def of(n: int, correct: int) -> str:
    """``n`` attempts of which ``correct`` are right; the others give no answer."""
    return "c" * correct + "n" * (n - correct)


def test_pass_rates_by_hand() -> None:
    frame = rates(b="cc1 n c2 1t", a="tb", z="")
    assert frame.schema == PASS_RATE
    assert frame["problem"].to_list() == ["b", "a", "z"]
    b, a, z = frame.to_dicts()
    assert {name: b[name] for name in ("attempts", "judged", "correct", "wrong", "no_answer", "timeout", "broken")} == {
        "attempts": 8,
        "judged": 7,
        "correct": 3,
        "wrong": 3,
        "no_answer": 1,
        "timeout": 1,
        "broken": 0,
    }
    assert b["pass_rate"] == 3 / 7
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


def test_the_interval_is_wide_enough_for_every_outcome_of_the_failed_verdicts() -> None:
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


def expected(band: Band, letters: str) -> str | None:
    """The rules once more, in words of plain Python."""
    judged = [letter for letter in letters if letter not in "tb"]
    failed = len(letters) - len(judged)
    if failed and len(letters) >= (band.min_judged or math.ceil(band.attempts / 2)):
        if len(judged) < (band.min_judged or math.ceil(band.attempts / 2)):
            return "verifier_failed"
        ways = {expected(band, "".join((*judged, *way))) for way in combinations_with_replacement("c123n", failed)}
        return ways.pop() if len(ways) == 1 else "verifier_failed"
    correct = judged.count("c")
    votes = max(judged.count(letter) for letter in "123")
    least = band.min_judged or math.ceil(band.attempts / 2)
    if len(judged) < least:
        return "verifier_failed" if len(letters) >= least else "too_few_attempts"
    if votes > round(band.wrong_label_share * len(judged), 6) and votes >= WRONG_LABEL_VOTES:
        return "suspected_wrong_label"
    if correct < band.min_correct:
        return "never_solved"
    if correct > round(band.max_pass_rate * len(judged), 6):
        return "too_easy"
    return None


def test_verdicts_against_the_labels_that_came_with_the_attempts() -> None:
    frame = verdicts(x="c1ntbc", y="c")
    labels = [True, True, False, True, True, False, None]
    attempts = frame.select("problem", "policy", "prompt", "sampling", "index").with_columns(pl.Series("label", labels))
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in ATTEMPT.items() if name not in attempts.columns]
    attempts = attempts.with_columns(missing)
    compared, differs = disagreements_with_labels(frame, attempts.select(ATTEMPT.names()))
    assert compared == 4  # the verifier's own failures and the attempt without a label are not compared
    assert differs.select("problem", "index", "label", "outcome").rows() == [
        ("x", 1, True, "wrong"),
        ("x", 5, False, "correct"),
    ]


def test_the_evidence_says_the_numbers_and_a_long_rival_is_cut() -> None:
    assert evidence(STAGE1, "n" * 7 + "t" * 6 + "b" * 3) == (
        "the verifier failed on 9 of 16 attempts; 7 judged, 8 wanted"
    )
    assert evidence(STAGE1, "ccct") == "3 attempts judged, 8 wanted"
    assert evidence(STAGE1, "n" * 16) == "0 of 16 correct, at least 1 wanted"
    assert evidence(STAGE2, of(14, 13)) == "13 of 14 correct, at most 12 wanted"
    assert evidence(STAGE1, of(16, 5)) == "5 of 16 correct"
    frame = verdicts(x="1" * 9 + "c" * 7).with_columns(answer=pl.lit("9" * 5000))
    decision = decide(pass_rates(pl.Series(["x"]), frame, "weak@1"), STAGE1, "stage1")
    assert decision["evidence"][0] == f"9 of 16 agree on {'9' * 200}, 7 on the reference"


def test_failures_of_the_verifier_decide_nothing_and_a_majority_accuses_the_reference() -> None:
    check_table("reasons of attempts", lambda letters: why(STAGE1, letters))
