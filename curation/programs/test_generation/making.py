"""New inputs from those at hand: most grown from their common form, the others made by changing one of them.

What is known of a problem's inputs is found out once (`InputMaker`): their form, with relations and the statement's
rules where nobody will say whether an input is valid (careful), without them where a validator will.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from curation.programs.test_generation.demands import promises, required_letters, speaks_of_border, stated_total
from curation.programs.test_generation.forms import InputForm, infer_form
from curation.programs.test_generation.growing import grow_shapes
from curation.programs.test_generation.hints import Hints, find_hints
from curation.programs.test_generation.limits import stated_bounds, with_numbered_names
from curation.programs.test_generation.mutation import mutate_input
from curation.programs.test_generation.profiles import FIRST_SHAPES, SHAPE_PRIORS, shape_name
from curation.programs.test_generation.promised_outputs import promised_most
from curation.programs.test_generation.shape_choice import ShapeChoice
from curation.programs.test_generation.stated_geometry import promised_kinds
from curation.programs.test_generation.stated_rules import MATH, stated_rules

_GROWN = 2 / 3
_TRIES = 8
"""How many inputs are drawn for each that is wanted: many lack a relation."""
_VAIN, _VAIN_BYTES = 24, 4 << 10
"""After so many tries that all fail inputs are no larger: relations may exclude one another, and tries cost time."""
_QUANTIFIED = re.compile(r"\bfor (?:each|all|every|any)\b", re.IGNORECASE)
"""The formulas behind it say of what the promise is, not what it is: unless nothing but formulas is promised."""
_PLAIN = frozenset("it is guaranteed you we may can safely assume that and for each all every any hold holds".split())
_LARGE_BYTES = 256 << 10
"""Larger inputs are few: they ask for speed, and a judge reads each of them for every program."""
_SMALL_BYTES = 512
_LARGE_SHAPES = ("most", "many", "one", "mixed")
"""Sizes of which some counts are as great as fits: trying one of 4 MB takes a second, whether it fits or not."""
_SMALLEST = tuple(f"{size} {values}" for size in ("least", "tiny") for values in ("zero", "narrow", "whole", "few"))
"""Shapes of the smallest inputs, of which there are few: drawn often enough they are nearly all of them."""
_HINTED_COUNTS = ("hinted whole", "hinted narrow")
_HINTED = "hinted"
MUTATED = "mutated"


@dataclass(frozen=True, slots=True)
class MadeInput:
    """A made input and its shape: how large its counts are and how its values were drawn, or `MUTATED`."""

    text: str
    shape: str


@dataclass(slots=True)
class InputMaker:
    """Makes inputs of one problem. ``inputs`` are those seen, trusted to be valid; those that are learned from others
    may be added.

    Args:
        most_bytes: size of the largest one.
        large: how many may be larger than 256 KB in one call.
        hints: numbers and words that inputs may turn on.
        rare: inputs that are worth changing further though nothing is learned from them.
        vouched: a validator will say which inputs are allowed, so that a promise which nothing expresses forbids none.
    """

    inputs: list[str]
    statement: str
    most_bytes: int
    large: int = 2
    hints: Hints = field(default_factory=Hints)
    vouched: bool = False
    rare: list[str] = field(default_factory=list)
    shapes: ShapeChoice = field(default_factory=lambda: ShapeChoice(SHAPE_PRIORS))
    _forms: dict[bool, InputForm | str] = field(default_factory=dict)
    _begun: set[bool] = field(default_factory=set)

    def form(self, *, careful: bool) -> InputForm | str:
        """Return the form of the inputs, or why there is none that new ones could have."""
        if careful not in self._forms:
            form = infer_form(self.inputs, self.statement, careful=careful, vouched=self.vouched)
            broken = self._untold(form) if careful and not self.vouched else []
            self._forms[careful] = (
                f"the statement promises what no relation expresses: {broken[0]!r}" if broken
                else form if form is not None
                else "the given inputs do not tell their form"
            )  # fmt: skip
        return self._forms[careful]

    @property
    def has_careful_form(self) -> bool:
        """Return whether inputs can be made carefully: their form is known, and all that the statement promises."""
        return isinstance(self.form(careful=True), InputForm)

    def has_form(self, text: str) -> bool:
        """Return whether an input is one that could be made carefully."""
        form = self.form(careful=True)
        return isinstance(form, InputForm) and form.allows(text)

    def _untold(self, form: InputForm | None) -> list[str]:
        """Return the promises of the statement that no relation and no rule keeps."""
        known = set(form.named.rules) if form is not None and form.named is not None else set()
        points = {one.kind for one in form.promises} if form is not None else set()
        told = []
        for sentence in promises(with_numbered_names(self.statement)):
            quantified = _QUANTIFIED.search(sentence) and not _is_formulas(sentence)
            rules = set() if quantified else set(stated_rules(sentence))
            if required_letters(sentence, self.inputs) or promised_kinds(sentence) & points:
                continue
            if speaks_of_border(sentence) and form is not None and form.relations.speaks_of("border"):
                continue
            if promised_most(sentence, ()) is not None:  # whoever runs the solutions looks at their answers
                continue
            if (not rules or not rules <= known) and stated_total(sentence) is None:
                told.append(" ".join(sentence.split()))
        return told

    def make(self, count: int, seed: str, *, careful: bool, most_bytes: int | None = None) -> list[MadeInput]:
        """Return up to ``count`` inputs that are not among those seen, no two alike.

        Args:
            careful: nothing will say whether they are valid: all keep the form, the relations, the rules and the ranges
                that those seen and the statement show. Where no such form is found there are none, or if a validator
                vouches, those that it is to choose among.
        """
        form = self.form(careful=careful)
        if careful and isinstance(form, str):
            if not self.vouched:
                return []
            careful, form = False, self.form(careful=False)
        most_bytes = min(self.most_bytes, most_bytes or self.most_bytes)
        if careful:
            most_bytes = min(most_bytes, stated_total(self.statement) or most_bytes)
        made: list[MadeInput] = []
        if isinstance(form, InputForm):
            made = self._grown(form, round(count * _GROWN), seed, most_bytes)
        mutated = mutate_input([*self.inputs, *self.rare], stated_bounds(self.statement), count - len(made), seed)
        fitting = [text for text in mutated if len(text) <= most_bytes]
        if isinstance(form, InputForm) and (careful or form.promises):
            fitting = [text for text in fitting if form.allows(text)]
        texts = {one.text for one in made}
        return [*made, *(MadeInput(text, MUTATED) for text in fitting if text not in texts)]

    def smallest(self, count: int, seed: str, *, careful: bool) -> list[MadeInput]:
        """Return up to ``count`` of the smallest inputs that are not among those seen, short ones first.

        Programs that are wrong at all are mostly wrong on a small input (the small scope hypothesis, Jackson and Damon
        1996). None where there is no form.
        """
        made = self._of_shapes(_SMALLEST, 2 * count, seed, careful=careful, most_bytes=_SMALL_BYTES)
        return sorted(made, key=lambda one: (len(one.text), one.text))[:count]

    def at_hints(self, count: int, seed: str, *, careful: bool, most_bytes: int) -> list[MadeInput]:
        """Return up to ``count`` inputs whose counts lie at numbers that programs and statement name."""
        return self._of_shapes(_HINTED_COUNTS, count, seed, careful=careful, most_bytes=most_bytes)

    def _of_shapes(
        self, shapes: Sequence[str], tries: int, seed: str, *, careful: bool, most_bytes: int
    ) -> list[MadeInput]:
        """Return inputs of these shapes in turn, no two alike, none that was seen."""
        form = self.form(careful=careful)
        if careful and isinstance(form, str) and self.vouched:
            form = self.form(careful=False)
        if isinstance(form, str):
            return []
        known, made = set(self.inputs), []
        for number in range(tries):
            shape = shapes[number % len(shapes)]
            for text in grow_shapes(form, known, [shape], f"{shape} {seed} {number}", most_bytes, self.hints):
                known.add(text)
                made.append(MadeInput(text, shape))
        return made

    def _grown(self, form: InputForm, count: int, seed: str, most_bytes: int) -> list[MadeInput]:
        draw = random.Random(int.from_bytes(hashlib.blake2b(f"shapes {seed}".encode(), digest_size=8).digest(), "big"))
        first = [] if form.careful in self._begun else [shape_name(shape) for shape in FIRST_SHAPES]
        self._begun.add(form.careful)
        made: list[MadeInput] = []
        texts = set(self.inputs)
        large = self.large
        for number in range(_TRIES * count + len(first)):
            if len(made) >= count:
                break
            shape = first[number] if number < len(first) else self.shapes.choose(draw)
            if shape.endswith(_HINTED) and not self.hints:
                self.shapes.learn(shape, paid=False)
                continue
            room = most_bytes if large > 0 and shape.startswith(_LARGE_SHAPES) else min(most_bytes, _LARGE_BYTES)
            room = room if made or number < _VAIN else min(room, _VAIN_BYTES)
            text = next(iter(grow_shapes(form, texts, [shape], f"{seed} {number}", room, self.hints)), None)
            if text is None:
                large -= room > _LARGE_BYTES  # it costs time, too
                self.shapes.learn(shape, paid=False)
                continue
            large -= len(text) > _LARGE_BYTES
            texts.add(text)
            made.append(MadeInput(text, shape))
        return made


def _is_formulas(sentence: str) -> bool:
    """Return whether a promise says nothing but formulas, and of which names they hold."""
    return set(re.findall(r"[A-Za-z']+", MATH.sub(" ", sentence.lower()))) <= _PLAIN


def new_inputs(
    inputs: Sequence[str], statement: str, count: int, seed: str, most_bytes: int, *, careful: bool = False
) -> list[str]:
    """Return up to ``count`` inputs that are not among ``inputs``, no two alike: one call of `InputMaker.make`."""
    maker = InputMaker(list(inputs), statement, most_bytes, hints=find_hints(statement))
    return [one.text for one in maker.make(count, seed, careful=careful)]
