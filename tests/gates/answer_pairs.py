"""Labelled pairs of answers, our verifier and Math-Verify on them, each in a process of its own.

python -m tests.gates.answer_pairs NAME      a verifier's process: lines of pairs in, verdicts and CPU seconds out
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self

from curation.records import Outcome
from curation.verify import answers
from tests.gates.base import shared_rows
from tests.places import ROOT


class Pair(NamedTuple):
    """A reference, an answer, and whether they are the same."""

    reference: str
    answer: str
    equal: bool
    kind: str


@cache
def labelled_pairs() -> tuple[Pair, ...]:
    """Return all pairs of the shared data, trusted or not."""
    rows = shared_rows("answers", "equivalence.jsonl")
    return tuple(Pair(row["gold"], row.get("pred") or "", row["equal"], row.get("kind", "")) for row in rows)


@cache
def drawn_pairs() -> tuple[list[Pair], list[Pair]]:
    """Return near misses, a few of which are the same answer after all, and rewritings of real references.

    A row of `drawn.jsonl` has which reference of the shared data it changes, and the part that is changed.
    """
    pairs, rows_of = [], cache(shared_rows)
    for line in Path(__file__).with_name("drawn.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        folder, _, name = row["set"].partition("/")
        reference = rows_of(folder, f"{name}.jsonl")[row["row"]]["answer" if folder == "math" else "gold"]
        answer = reference[: row["start"]] + row["text"] + reference[row["end"] :]
        pairs.append(Pair(reference, answer, row["equal"], row["kind"]))
    near, equal = ([pair for pair in pairs if pair.kind == kind] for kind in ("near miss", "rewriting"))
    return near, equal


def ours(reference: str, answer: str) -> bool:
    """Return the verdict of the product."""
    return answers.compare_texts(reference, answer).outcome is Outcome.CORRECT


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
        command = [sys.executable, "-m", "tests.gates.answer_pairs", name]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
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
