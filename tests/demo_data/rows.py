"""One row of the demo's sources before it is written: what it shows, what was planted in it, how it is answered.

Invariant: a row that should survive the format filter has an `Answering`; a row that should not has none, so a
filter that lets it through finds no attempts for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.demo_data.items import Dice, Item
from tests.demo_data.responses import Plan


@dataclass(frozen=True, slots=True)
class Planted:
    """What was planted in a row.

    ``expected`` is the DropReason that should take it, `REWRITTEN` or `KEEP`; ``stage`` is where that shows;
    ``stage1_alone`` is what the weak model alone would have said, where that differs.
    """

    kind: str
    expected: str
    stage: str
    note: str = ""
    stage1_alone: str | None = None


@dataclass(frozen=True, slots=True)
class Answering:
    """How the two models answer the row: the item they solve, and how often they get it right."""

    item: Item
    weak: Plan
    strong: Plan
    wrong_label: str | None = None  # the row's reference, where that is planted to be wrong


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a source. ``question`` or ``reference`` is None where the source has a null there."""

    question: str | None
    reference: str | None
    worked: str = ""
    options: tuple[str, ...] | None = None
    topic: str = "mixed"
    level: int = 1
    lang: str = "en"
    planted: Planted | None = None
    answering: Answering | None = None
    pair: str | None = None  # rows of one pair keep the order in which they were made


WEAK_CHANCE = (0.92, 0.68, 0.45, 0.22, 0.08)
STRONG_CHANCE = (0.98, 0.92, 0.76, 0.52, 0.27)
"""Mean probability of a right attempt by level, 1 to 5."""


def by_level(d: Dice, item: Item) -> Answering:
    """Draw attempts from binomials whose probability falls with the item's level, differently for each item."""
    shift = d.spread(0.25)
    return Answering(
        item, _draw(d, WEAK_CHANCE[item.level - 1] + shift), _draw(d, STRONG_CHANCE[item.level - 1] + shift)
    )


def _draw(d: Dice, probability: float) -> Plan:
    return Plan(d.hits(16, min(0.98, max(0.03, probability))))


def in_band(d: Dice, item: Item) -> Answering:
    """Draw attempts that both default bands keep."""
    weak = d.between(2, 11)
    return Answering(item, Plan(weak), Plan(min(13, weak + d.between(0, 3))))


def row_of(item: Item, answering: Answering | None, planted: Planted | None = None) -> Row:
    """Return the row that shows an item as it is."""
    return Row(item.question, item.reference, item.worked, None, item.topic, item.level, item.lang, planted, answering)
