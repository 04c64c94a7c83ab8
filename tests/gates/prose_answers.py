"""Right answers in prose, by the rows of the shared data, and the same with their number changed.

    attempts    correct attempts of four models at GSM8K without their line "A: 26": what is left ends in a sentence
    solutions   every fourth solution of GSM8K's training part without its line "#### 26", written by people
    reworded    the answers of SVAMP in `FRAMES`, which were written after the rules

The rules of `curation.verify.prose` and `asked.without_words` were made with GSM8K's solutions, so rows of
`solutions` may have been seen; attempts and frames were not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from curation.records import Outcome
from curation.verify import answers
from curation.verify.extraction import extract_answer
from tests.gates.base import shared_rows

FRAMES = (
    "Working through it step by step gives the result.\n\nSo the final count comes to **{}**.",
    "Hence {} is the number we were looking for.",
    "In conclusion, they end up with exactly \\({}\\) of them.",
    "That leaves us with a grand total of ${}$, as required.",
    "Checking: everything adds up, and the value is {}, which answers the question.",
)
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_CALCULATION = re.compile(r"<<[^>]*>>")


@dataclass(frozen=True, slots=True)
class ProseAnswer:
    """A right response in prose to a problem whose reference is a number; ``changed`` states another number."""

    kind: str
    id: str
    statement: str
    reference: str
    text: str

    @property
    def changed(self) -> str:
        right = _value(self.reference)
        other = f"{right + 1:g}" if right < 100_000 else str(int(right) + 1)
        return _NUMBER.sub(lambda match: other if _value(match[0]) == right else match[0], self.text)


def accepted(one: ProseAnswer, text: str) -> bool:
    """Return whether a response is judged correct, as an attempt is."""
    found = extract_answer(text)
    if found is None:
        return False
    return answers.compare(one.reference, found.answer, statement=one.statement).outcome is Outcome.CORRECT


@cache
def all_answers() -> tuple[ProseAnswer, ...]:
    """Return the answers of all kinds.

    Raises:
        SkippedError: the shared data is not on this machine.
    """
    return (*_attempts(), *_solutions(), *_reworded())


def _attempts() -> Iterator[ProseAnswer]:
    for row in shared_rows("attempts", "gsm8k_openai_models.jsonl"):
        for sample in row["samples"]:
            text, _, line = _CALCULATION.sub("", sample["text"] or "").strip().rpartition("\n")
            if sample["correct"] and line.startswith("A:") and _states(text, row["gold"]):
                yield ProseAnswer("attempts", f"{row['id']} {sample['model']}", row["problem"], row["gold"], text)


def _solutions() -> Iterator[ProseAnswer]:
    for number, row in enumerate(row for row in shared_rows("math", "gsm8k.jsonl") if row["split"] == "train"):
        text = _CALCULATION.sub("", row["solution"].partition("####")[0]).strip()
        if number % 4 == 0 and _states(text, row["answer"]):
            yield ProseAnswer("solutions", row["id"], row["problem"], row["answer"], text)


def _reworded() -> Iterator[ProseAnswer]:
    for number, row in enumerate(shared_rows("math", "svamp.jsonl")):
        reference = row["answer"].removesuffix(".0")
        text = FRAMES[number % len(FRAMES)].format(reference)
        yield ProseAnswer("reworded", row["id"], row["problem"], reference, text)


def _states(text: str, reference: str) -> bool:
    """Return whether the last line of a text has the number."""
    return any(_value(match[0]) == _value(reference) for match in _NUMBER.finditer(text.rpartition("\n")[2]))


def _value(text: str) -> float:
    return float(text.replace(",", ""))
