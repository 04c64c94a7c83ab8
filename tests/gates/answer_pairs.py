"""Labelled pairs of answers, our verifier and Math-Verify on them, each in a process of its own.

python -m tests.gates.answer_pairs NAME      a verifier's process: lines of pairs in, verdicts and CPU seconds out
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Self

from curation.records import Outcome
from curation.verify import answers
from tests.curation.verify.answers.corpus import real_references
from tests.curation.verify.answers.mutations import mutations
from tests.curation.verify.answers.rewritings import rewritings
from tests.gates.base import shared
from tests.places import ROOT

TRUSTED = frozenset({"unit_test", "hardverify", "scoring_example", "github_issue"})
"""Kinds of `equivalence.jsonl` whose labels are not a model's."""

NEAR_MISS = "near miss"
DRAWN = 300
"""Near misses and rewritings, each."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A reference, an answer, and whether they are the same."""

    reference: str
    answer: str
    equal: bool
    kind: str


@cache
def labelled_pairs() -> tuple[Pair, ...]:
    """Return all pairs of the shared data, trusted or not."""
    text = shared("answers", "equivalence.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.split("\n") if line]
    return tuple(Pair(row["gold"], row.get("pred") or "", row["equal"], row.get("kind", "")) for row in rows)


def trusted_pairs() -> list[Pair]:
    """Return the pairs whose labels are not a model's."""
    return [pair for pair in labelled_pairs() if pair.kind in TRUSTED]


@cache
def drawn_pairs() -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Return near misses and equivalent rewritings of real English references, `DRAWN` of each."""
    shared("answers", "equivalence.jsonl")
    shared("math")
    english = [text for text, lang in real_references() if lang == "en"]
    near = [Pair(text, one.changed, False, NEAR_MISS) for text in english for one in mutations(text, seed=7)]
    equal = [Pair(text, other, True, "rewriting") for text in english for other in rewritings(text).values()]
    dice = random.Random(7)
    return tuple(dice.sample(near, DRAWN)), tuple(dice.sample(equal, DRAWN))


def ours(reference: str, answer: str) -> bool:
    """Return the verdict of the product."""
    return answers.compare_texts(reference, answer).outcome is Outcome.CORRECT


def is_right(pair: Pair, verdict: bool) -> bool:
    """Return whether a verdict is the pair's label; an accepted near miss may be an identity that the oracle knows."""
    if pair.kind != NEAR_MISS or not verdict:
        return verdict == pair.equal
    from tests.curation.verify.answers.oracle import is_same_answer

    return is_same_answer(pair.reference, pair.answer) is not None


def theirs(reference: str, answer: str) -> bool:
    """Return the verdict of Math-Verify, which looks for LaTeX between delimiters."""
    from math_verify import parse, verify

    return bool(verify(parse(_delimited(reference)), parse(_delimited(answer))))


def _delimited(text: str) -> str:
    bare = not any(mark in text for mark in ("$", "boxed", "\\(", "\\[")) and len(text) < 200
    return f"${text}$" if bare else text


VERIFIERS: dict[str, Callable[[str, str], bool]] = {"ours": ours, "Math-Verify": theirs}


class Verifier:
    """A verifier in a process of its own."""

    def __init__(self, name: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.gates.answer_pairs", name],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def judge(self, pairs: Sequence[Pair]) -> tuple[list[bool], list[float]]:
        """Return the verdicts on pairs, and the CPU seconds that each took."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([(pair.reference, pair.answer) for pair in pairs]) + "\n")
        self._process.stdin.flush()
        verdicts, seconds = json.loads(self._process.stdout.readline())
        return verdicts, seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()


def main() -> None:
    """Judge the pairs that come in."""
    verify = VERIFIERS[sys.argv[1]]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a verifier prints must not get between the lines
    verify("x+1", "1+x")
    for line in sys.stdin:
        verdicts, seconds = [], []
        for reference, answer in json.loads(line):
            started = time.process_time()
            verdicts.append(verify(reference, answer))
            seconds.append(time.process_time() - started)
        out.write(json.dumps([verdicts, seconds]) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
