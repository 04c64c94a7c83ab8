"""Attempts as letters and counts, for tests of what is decided on them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from curation.difficulty.early_stopping import OutcomeCounts
from curation.records import PASS_RATE, VERDICT, Outcome

ANSWERS = {"c": Outcome.CORRECT, "n": Outcome.NO_ANSWER, "t": Outcome.TIMEOUT, "b": Outcome.BROKEN}


def verdicts(**attempts: str) -> pl.DataFrame:
    """Attempts as one letter each: c correct, n no answer, t timeout, b broken, 1 2 3 wrong in that answer class."""
    rows = []
    for problem, letters in attempts.items():
        for index, letter in enumerate(letters.replace(" ", "")):
            outcome = ANSWERS.get(letter, Outcome.WRONG)
            wrong = outcome is Outcome.WRONG
            answer = f"{letter}.{index}" if wrong else "ref" if outcome is Outcome.CORRECT else None
            rows.append(
                {
                    "problem": problem,
                    "policy": "weak@1",
                    "prompt": "p",
                    "sampling": "s",
                    "index": index,
                    "verifier": "v@1",
                    "reference": "ref",
                    "outcome": outcome.value,
                    "answer": answer,
                    "answer_class": int(letter) if wrong else 0 if outcome is Outcome.CORRECT else None,
                    "method": "",
                }
            )
    return pl.DataFrame(rows, schema=VERDICT)


def rates_of(counts: Sequence[OutcomeCounts]) -> pl.DataFrame:
    """One `PASS_RATE` row for each."""
    rows = [
        {
            **dict.fromkeys(PASS_RATE.names(), 0),
            "problem": str(number),
            "policy": "p@1",
            "top_wrong_answer": "x",
            "attempts": one.attempts,
            "judged": one.judged,
            "correct": one.correct,
            "wrong": one.top_wrong,
            "broken": one.failed,
            "top_wrong_votes": one.top_wrong,
        }
        for number, one in enumerate(counts)
    ]
    return pl.DataFrame(rows, schema=PASS_RATE)
