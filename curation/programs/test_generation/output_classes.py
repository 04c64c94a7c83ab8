"""Inputs chosen by what a trusted program prints for them, so that rare answers are hunted.

Of inputs drawn at random nearly all of many problems get one answer ("NO", 0, an empty list), and what asks for the
other was built backwards from a solution. So many small inputs are drawn, one trusted program answers all, and those
stay whose kind of answer was seen least. What gave a rare answer is changed further, by whoever makes inputs.

Invariants: pure but for its own counts; the same calls in the same order choose the same inputs. What it does not do:
say that an answer is right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

_NUMBER = re.compile(r"-?\d{1,40}(?:\.\d*)?")
_TOKENS = 3
_SMALL = 3
"""Numbers up to this are kinds of their own; others are known by sign and length."""


def output_kind(output: str) -> str:
    """Return the kind of an output: its first words, the sizes of its first numbers, and how long it is.

    Example: ``output_kind("YES\\n1 4521\\n")`` is ``"YES 1 4d 2l"``
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
    """How often each kind of output was seen, and inputs that gave rare ones, the newest last."""

    most_rare: int = 12
    seen: Counter[str] = field(default_factory=Counter)
    rare: list[str] = field(default_factory=list)

    def choose(self, inputs: Sequence[str], told: Sequence[str | None], count: int) -> list[int]:
        """Return the numbers of up to ``count`` inputs, those of the rarest kinds of output first, each kind in turn.

        Args:
            told: the kind of each output of the trusted program; None where it gave none, and the input is not chosen.
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
