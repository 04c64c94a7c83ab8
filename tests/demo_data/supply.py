"""A supply of items of which no two ask the same question.

Invariant: an item is handed out once, by its normalised question, whoever asks; so the only repeated problems in the
demo are those that were planted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from curation.records import normalise_text
from tests.demo_data.items import Dice, Item
from tests.demo_data.templates import ENGLISH, Template
from tests.demo_data.templates_foreign import foreign

TRIES = 1000


class Supply:
    """Fresh items from templates, drawn with one `Dice`."""

    def __init__(self, seed: int) -> None:
        self.dice = Dice(seed)
        self._questions: set[str] = set()  # looked up, never iterated

    def reserve(self, question: str) -> None:
        """Keep a hand-written question from being drawn."""
        self._questions.add(normalise_text(question))

    def item(self, templates: Sequence[Template] = ENGLISH) -> Item:
        """Return a fresh item of one of the templates."""
        return self._fresh(lambda: self.dice.pick(templates)(self.dice))

    def foreign(self, lang: str, which: int) -> Item:
        """Return a fresh item in another language."""
        return self._fresh(lambda: foreign(self.dice, lang, which))

    def _fresh(self, draw: Callable[[], Item]) -> Item:
        for _ in range(TRIES):
            item = draw()
            name = normalise_text(item.question)
            if name not in self._questions:
                self._questions.add(name)
                return item
        raise RuntimeError("the templates are used up: give them wider ranges of numbers")
