"""Selects inputs with rare kinds of answer, and generated tests to keep."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from curation.programs.sound_tests import SoundTest

VERSION = "test_generation@17"

TIMES = 3
"""Tests that should fail each known wrong solution."""


def select_tests(sound: Sequence[SoundTest], caught: Mapping[int, int], room: int, fill: int) -> list[SoundTest]:
    """Return up to ``room`` tests to keep, in order.

    First come tests that catch new solutions (real before mutants), then tests that catch rarely caught ones, then more
    up to ``fill``.

    Args:
        caught: failures per solution on earlier tests.
    """
    times, selected, remaining = Counter(caught), list[SoundTest](), list(sound)

    def gain(test: SoundTest) -> tuple[int, int, float, int]:
        new = [one for one in test.fails if not times[one]]
        more = sum(1 / (1 + times[one]) for one in test.fails if times[one] < TIMES)
        return sum(one >= 0 for one in new), len(new), more, -test.index

    def take(test: SoundTest) -> None:
        selected.append(test)
        remaining.remove(test)
        times.update(test.fails)

    while remaining and len(selected) < room and gain(best := max(remaining, key=gain))[2]:
        take(best)
    used, answered = Counter[str](), {test.output for test in selected}

    def turn(test: SoundTest) -> tuple[int, int, int]:
        return used[test.kind] + (test.output in answered), -len(test.fails), test.index

    while remaining and len(selected) < min(room, fill):
        best = min(remaining, key=turn)
        answered.add(best.output)
        used[best.kind] += 1
        take(best)
    return sorted(selected, key=lambda test: test.index)


_NUMBER = re.compile(r"-?\d{1,40}(?:\.\d*)?")
_TOKENS = 3
_SMALL = 3
"""Max number that is a kind of its own."""


def output_kind(output: str) -> str:
    r"""Return an output's first words, sizes of first numbers, and length.

    Example: ``output_kind("YES\n1 4521\n")`` is ``"YES 1 4d 2l"``
    """
    tokens = output.split(None, _TOKENS)[:_TOKENS]
    lines = output.count("\n", 0, 1 << 16).bit_length()
    return " ".join([*map(_token_kind, tokens), f"{lines}l"])


def _token_kind(token: str) -> str:
    if _NUMBER.fullmatch(token) is None:
        return token[:12].lower() if len(token) <= 12 else f"{len(token).bit_length()}w"
    whole = token.partition(".")[0]
    if len(whole) <= 2 and abs(int(whole)) <= _SMALL and float(token) == int(whole):
        return whole
    return f"{'-' if token[0] == '-' else ''}{len(whole.lstrip('-'))}d"


@dataclass(slots=True)
class OutputClasses:
    """Counts kinds of output and keeps inputs with rare ones, newest last."""

    most_rare: int = 12
    seen: Counter[str] = field(default_factory=Counter)
    rare: list[str] = field(default_factory=list)

    def choose(self, inputs: Sequence[str], told: Sequence[str | None], count: int) -> list[int]:
        """Return up to ``count`` indices of inputs, rarest kinds of output first.

        Args:
            told: the trusted program's kinds; None skips an input.
        """
        kinds = {at: kind for at, kind in enumerate(told) if kind is not None}
        drawn = Counter(kinds.values())
        chosen: list[int] = []
        while kinds and len(chosen) < count:
            at = min(kinds, key=lambda at: (self.seen[kinds[at]], drawn[kinds[at]], at))
            kind = kinds.pop(at)
            if not self.seen[kind] or drawn[kind] <= len(inputs) // 8:
                self.rare = [*self.rare, inputs[at]][-self.most_rare :]
            self.seen[kind] += 1
            chosen.append(at)
        return chosen
