"""Attempts as letters and counts, for tests of what is decided on them."""

from collections.abc import Sequence

import polars as pl

from curation.difficulty.early_stopping import OutcomeCounts
from curation.records import PASS_RATE, VERDICT, Outcome
from tests.curation.tables import frame

ANSWERS = {"c": Outcome.CORRECT, "n": Outcome.NO_ANSWER, "t": Outcome.TIMEOUT, "b": Outcome.BROKEN}


def verdicts(**attempts: str) -> pl.DataFrame:
    """Attempts as one letter each: c correct, n no answer, t timeout, b broken, 1 2 3 wrong in that answer class."""
    rows = []
    for problem, letters in attempts.items():
        for index, letter in enumerate(letters.replace(" ", "")):
            outcome = ANSWERS.get(letter, Outcome.WRONG)
            wrong = outcome is Outcome.WRONG
            answer = f"{letter}.{index}" if wrong else "ref" if outcome is Outcome.CORRECT else None
            number = int(letter) if wrong else 0 if outcome is Outcome.CORRECT else None
            about = {"problem": problem, "index": index, "outcome": outcome.value}
            rows.append({**about, "answer": answer, "answer_class": number})
    key = {"policy": "weak@1", "prompt": "p", "sampling": "s", "verifier": "v@1"}
    return frame(VERDICT, *rows, **key, reference="ref", method="")


def rates_of(counts: Sequence[OutcomeCounts]) -> pl.DataFrame:
    """One `PASS_RATE` row for each."""
    zeros = dict.fromkeys(PASS_RATE, 0) | {"policy": "p@1", "top_wrong_answer": "x"}
    rows = (
        {"problem": str(number), "attempts": one.attempts, "judged": one.judged, "correct": one.correct}
        | {"wrong": one.top_wrong, "broken": one.failed, "top_wrong_votes": one.top_wrong}
        for number, one in enumerate(counts)
    )
    return frame(PASS_RATE, *rows, **zeros)
