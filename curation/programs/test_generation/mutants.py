"""Mutants of right programs: each with one mistake of the kind that people make, to hunt inputs on which it shows.

A made test is worth keeping where it tells a right program from one that is nearly right. Known wrong submissions are
few, so right programs are changed in one place: a comparison off by one, a constant, a starting value, a branch or a
statement left out, the wrong end of a range, arithmetic of 32 bits (mutation analysis: DeMillo, Lipton and Sayward
1978). Which mutants say something is found out by running them, in the sandbox only.

Invariants: pure; the same program, count and seed give the same mutants; no two alike, none like the program. What it
does not do: say that a mutant is wrong; many are not, and many are caught by any input.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from curation.programs.test_generation.mutants_cpp import cpp_changes
from curation.programs.test_generation.mutants_python import python_changes

Change = tuple[str, Callable[[], str]]
"""Its kind, and what makes the changed program."""
_CHANGES: Mapping[str, Callable[[str], Sequence[Change]]] = {"python": python_changes, "cpp": cpp_changes}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed program, and the kind of its change: ``compare``, ``constant``, ``branch`` …"""

    code: str
    kind: str


def mutants_of(code: str, lang: str, count: int, seed: str) -> list[Mutant]:
    """Return up to ``count`` mutants of a program in ``python`` or ``cpp``, kinds in turn; none if it cannot be read.

    Example: ``mutants_of("print(int(input()) < 3)", "python", 9, "")`` holds ``print(int(input()) <= 3)``
    """
    draw = random.Random(int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "big"))
    by_kind: dict[str, list[Callable[[], str]]] = {}
    for kind, change in _CHANGES[lang](code):
        by_kind.setdefault(kind, []).append(change)
    for changes in by_kind.values():
        draw.shuffle(changes)
    kinds = sorted(by_kind)
    draw.shuffle(kinds)
    seen = {code}
    mutants: list[Mutant] = []
    while len(mutants) < count and any(by_kind.values()):
        for kind in kinds:
            if by_kind[kind] and len(mutants) < count:
                changed = by_kind[kind].pop()()
                if changed not in seen:
                    seen.add(changed)
                    mutants.append(Mutant(changed, kind))
    return mutants
