"""Groups a test's equal outputs into classes, named by their first member's digest.

Invariants: classes depend only on outputs and their order; outputs on which the checker fails have none.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import IO

from curation.verify.programs.checkers import check_outputs
from curation.verify.programs.comparison import Comparison, same_output
from curation.verify.programs.problem import CodeProblem, CodeVerdict
from curation.verify.programs.tools import Runner

_MAX_LEADERS = 6
"""Max representatives to compare an output with, by tolerance or checker."""
_FORM_SHARE = 1 / 3
"""Max share of expected outputs that may be wrong; more have another form (a hint to the checker, the best value),
which the package format allows. Not in the paper.
"""


class Spill:
    """Distinct outputs in a temporary file."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed with the matrix
        self._places: dict[str, tuple[int, int]] = {}
        self._lock = Lock()
        self._end = 0

    def put(self, digest: str, output: bytes) -> None:
        with self._lock:
            if digest in self._places:
                return
            self._file.seek(self._end)
            self._file.write(output)
            self._places[digest] = (self._end, len(output))
            self._end += len(output)

    def get(self, digest: str) -> bytes:
        with self._lock:
            start, size = self._places[digest]
            self._file.seek(start)
            return self._file.read(size)

    def close(self) -> None:
        self._file.close()


def canonical(output: bytes, how: Comparison) -> str:
    """Return equal digests for equal outputs, tolerance aside."""
    folded = output if how.case_sensitive else output.lower()
    if not how.space_change_sensitive:
        folded = b" ".join(folded.split())
    return hashlib.blake2b(folded, digest_size=10).hexdigest()


@dataclass(slots=True)
class Classes:
    """The classes of one problem's outputs.

    ``expected`` holds digests or None; ``broken`` counts checker failures on them, ``why`` explains the last.
    """

    runner: Runner
    problem: CodeProblem
    spill: Spill
    expected: Sequence[str | None]
    broken: int = 0
    why: str = ""
    _class_of: dict[int, dict[str, str]] = field(default_factory=dict)
    _failed: set[tuple[int, str]] = field(default_factory=set)  # outputs that the checker failed on

    def find(self, outputs: Sequence[Sequence[str]], voting: Sequence[Sequence[str]]) -> None:
        """Group the outputs of each test.

        Args:
            outputs: distinct digests per test, in order.
            voting: those of voters.
        """
        for index, digests in enumerate(outputs):
            self._class_of[index] = self._group(index, digests, self.expected[index])
        self._settle()
        for index in self._doubted(voting):
            self._class_of[index] = self._group(index, outputs[index], None)
        self._refuse_unsolvable(voting)

    def of(self, index: int, digest: str) -> str | None:
        """Return an output's class in a test, if any."""
        if (index, digest) in self._failed:
            return None
        return self._class_of.get(index, {}).get(digest, digest)

    def _settle(self) -> None:
        """Restore failed outputs that the checker can judge as their own answer."""
        checker = self.problem.checker
        if checker is None or not self._failed:
            return
        failed_outputs = sorted(self._failed)
        texts = [(self.problem.tests[index].input, self.spill.get(digest)) for index, digest in failed_outputs]
        verdicts = check_outputs(self.runner, checker, [(test_input, text, text) for test_input, text in texts])
        for failed_output, (verdict, _) in zip(failed_outputs, verdicts, strict=True):
            if verdict is not CodeVerdict.BROKEN:
                self._failed.discard(failed_output)

    def _refuse_unsolvable(self, voting: Sequence[Sequence[str]]) -> None:
        """Remove classes that the checker rejects as their own answer."""
        checker = self.problem.checker
        indices = [index for index, digests in enumerate(voting) if digests and self.expected[index] is None]
        if checker is None or not indices:
            return
        members: dict[tuple[int, str], list[str]] = {}
        for index in indices:
            for digest in voting[index]:
                if (group := self.of(index, digest)) is not None:
                    members.setdefault((index, group), []).append(digest)
        firsts = [
            (self.problem.tests[index].input, self.spill.get(digests[0])) for (index, _), digests in members.items()
        ]
        verdicts = check_outputs(self.runner, checker, [(test_input, out, out) for test_input, out in firsts])
        for ((index, _), digests), (verdict, _) in zip(members.items(), verdicts, strict=True):
            if verdict is not CodeVerdict.AC:
                self._failed |= {(index, digest) for digest in digests}

    def _group(self, index: int, digests: Sequence[str], expected: str | None) -> dict[str, str]:
        """Return the class of outputs in shared classes, ``expected`` first."""
        test = self.problem.tests[index]
        class_of: dict[str, str] = {}
        remaining = list(digests)
        leaders = [expected] if expected is not None else []
        for number in range(_MAX_LEADERS):
            remaining = [digest for digest in remaining if digest not in leaders]
            if not remaining:
                break
            if number >= len(leaders):
                leaders.append(remaining.pop(0))
            leader = leaders[number]
            answer = test.output if leader == expected else self.spill.get(leader)
            for digest, joins in zip(remaining, self._same(index, answer, remaining, leader == expected), strict=True):
                if joins:
                    class_of[digest] = leader
            remaining = [digest for digest in remaining if digest not in class_of]
        return class_of

    def _same(self, index: int, answer: bytes, digests: Sequence[str], is_expected: bool) -> list[bool]:
        """Return whether outputs are right for ``answer``; count failures if it ``is_expected``."""
        checker = self.problem.checker
        if checker is None:
            return [same_output(answer, self.spill.get(digest), self.problem.comparison) for digest in digests]
        test_input = self.problem.tests[index].input
        verdicts = check_outputs(
            self.runner, checker, [(test_input, answer, self.spill.get(candidate)) for candidate in digests]
        )
        for digest, (verdict, how) in zip(digests, verdicts, strict=True):
            if verdict is CodeVerdict.BROKEN and is_expected:
                self.broken += 1
                self.why = how
                self._failed.add((index, digest))
        return [verdict is CodeVerdict.AC for verdict, _ in verdicts]

    def _doubted(self, voting: Sequence[Sequence[str]]) -> list[int]:
        """Return the few tests whose expected output the checker rejects (`_FORM_SHARE`)."""
        checker = self.problem.checker
        if checker is None:
            return []
        checks: dict[int, tuple[bytes, bytes, bytes]] = {}
        sound = 0
        for index, test in enumerate(self.problem.tests):
            expected = self.expected[index]
            if expected is None:
                continue
            if expected in voting[index]:
                sound += 1
                continue
            joined = [digest for digest in voting[index] if self.of(index, digest) == expected]
            if joined:
                checks[index] = (test.input, self.spill.get(joined[0]), test.output)
        verdicts = check_outputs(self.runner, checker, list(checks.values())) if checks else []
        verdict_of = {index: verdict for index, (verdict, _) in zip(checks, verdicts, strict=True)}
        sound += sum(verdict is CodeVerdict.AC for verdict in verdict_of.values())
        doubted = [index for index, verdict in verdict_of.items() if verdict is CodeVerdict.WA]
        return doubted if len(doubted) <= _FORM_SHARE * (sound + len(doubted)) else []
