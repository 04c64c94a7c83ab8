"""What inputs on which right solutions disagree, or crash, have in common that others lack.

Accepted solutions that disagree are evidence against the input, more than against a solution: the statement may forbid
it in words that no validator checks. The others of its kind, on which the solutions at hand happen to agree, may be
forbidden as well, and a solution that is not at hand fails on them. So a trait is looked for: a relation that all given
inputs keep and these break, or the shape that they were made in.

Invariants: pure; few doubts say nothing, for one may be a solution's own fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from curation.programs.test_generation.forms import InputForm
from curation.programs.test_generation.relations import Key, evaluate, infer_relations, read_input
from curation.programs.test_generation.shapes import read_lines

_LEAST, _SHARE = 2, 0.03
"""So many doubtful inputs, and such a share of all, are told from chance."""
_RATE = 0.25
"""A trait may be the cause where at least this share of the inputs that have it are doubtful; of several it is the one
that most of the doubtful inputs have, for a shape of two inputs is doubtful by chance."""
_MOST_BYTES = 64 << 10

Trait = Key | str


@dataclass(frozen=True, slots=True)
class RunInput:
    """An input that the voting solutions ran on. ``doubtful``: they disagree, or one of them crashed."""

    text: str
    shape: str
    doubtful: bool


def doubtful_inputs(form: InputForm | str, given: Sequence[str], run: Sequence[RunInput]) -> frozenset[int]:
    """Return the places of inputs that share a trait of those on which solutions disagree, these included.

    Args:
        form: of the given inputs; where it is none, traits are shapes alone.
        given: inputs that keep what the statement promises.
    """
    doubted = {at for at, one in enumerate(run) if one.doubtful}
    if len(doubted) < max(_LEAST, _SHARE * len(run)):
        return frozenset(doubted)
    kept = _kept_by_all(form, given)
    traits: list[set[Trait]] = [{one.shape, *_broken(form, one.text, kept)} for one in run]
    left, dropped = set(doubted), set(doubted)
    while left:
        candidates = sorted({trait for at in left for trait in traits[at]}, key=str)
        rates = {trait: _rate(trait, traits, left, dropped) for trait in candidates}
        causes = [trait for trait in candidates if rates[trait] >= _RATE]
        if not causes:
            break
        worst = max(causes, key=lambda trait: (sum(trait in traits[at] for at in left), rates[trait]))
        having = {at for at, own in enumerate(traits) if worst in own}
        left -= having
        dropped |= having
    return frozenset(dropped)


def _rate(trait: Trait, traits: Sequence[Iterable[Trait]], left: set[int], dropped: set[int]) -> float:
    """Return the share of doubtful inputs among those that have a trait and were not dropped for another."""
    having = [at for at, own in enumerate(traits) if trait in own and (at in left or at not in dropped)]
    return sum(at in left for at in having) / (len(having) + 1)


def _kept_by_all(form: InputForm | str, given: Sequence[str]) -> frozenset[Key]:
    if isinstance(form, str):
        return frozenset()
    short = [text for text in given if len(text) <= _MOST_BYTES]
    read = [(lines, text) for text in short if (lines := read_lines(text))]
    readings = [one for lines, text in read if (one := read_input(form.nodes, lines, text)) is not None]
    return infer_relations(readings).kept if readings else frozenset()


def _broken(form: InputForm | str, text: str, kept: frozenset[Key]) -> frozenset[Key]:
    """Return the relations that an input breaks of those that all given ones keep; none of a large input."""
    lines = read_lines(text) if kept and len(text) <= _MOST_BYTES else None
    reading = read_input(form.nodes, lines, text) if lines and not isinstance(form, str) else None
    if reading is None:
        return frozenset()
    held, shown = evaluate(reading)
    return frozenset(shown - held) & kept
