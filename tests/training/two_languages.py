"""Problems in English and French whose answers are sentences, to try the language bonus on.

Problem and summary are in one language; the thoughts are in it or in the other. All sentences are long enough for the
identification that the reward uses, which a test compares with every wording.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

SLIPS = 0.03
"""Share of the responses whose sum is wrong by a few."""

LARGEST = 12
"""Largest number of a sum, the least being 2."""

NAMES = ("Emma", "Paul", "Laura", "Lucas", "Nora", "Victor", "Alice", "Simon")
THINGS = {
    "en": ("apples", "books", "coins", "stamps", "marbles", "flowers", "pencils", "stones"),
    "fr": ("pommes", "livres", "pièces", "timbres", "billes", "fleurs", "crayons", "pierres"),
}
ASKED = {
    ("en", "+"): (
        "{name} has {a} {things} and buys {b} more at the market. How many {things} are there now?",
        "There are {a} {things} in the house, and {name} brings {b} more. How many {things} is that in all?",
    ),
    ("en", "-"): (
        "{name} has {a} {things} and gives {b} of them to a friend. How many {things} are left?",
        "There are {a} {things} in the house, but {name} loses {b} of them. How many {things} remain?",
    ),
    ("fr", "+"): (
        "{name} a {a} {things} et en achète {b} autres au marché. Combien y a-t-il de {things} maintenant ?",
        "Il y a {a} {things} dans la maison, et {name} en apporte encore {b}. Combien de {things} cela fait-il ?",
    ),
    ("fr", "-"): (
        "{name} a {a} {things} et en donne {b} à un ami. Combien de {things} reste-t-il ?",
        "Il y a {a} {things} dans la maison, mais {name} en perd {b}. Combien de {things} y reste-t-il ?",
    ),
}
THOUGHTS = {
    ("en", "+"): (
        "First there are some {things}, then others come, so we have to add the two numbers: {sum}.",
        "The number of {things} grows here. Let me add both numbers together: {sum}.",
    ),
    ("en", "-"): (
        "Some of the {things} go away, so we have to subtract the second number from the first: {sum}.",
        "The number of {things} becomes smaller here. Let me take away what is gone: {sum}.",
    ),
    ("fr", "+"): (
        "Il y a d'abord des {things}, puis il en vient d'autres, donc il faut additionner les deux nombres : {sum}.",
        "Le nombre de {things} augmente ici. Je fais donc la somme des deux nombres : {sum}.",
    ),
    ("fr", "-"): (
        "Une partie des {things} s'en va, donc il faut soustraire le second nombre du premier : {sum}.",
        "Le nombre de {things} diminue ici. Je retire donc ce qui est parti : {sum}.",
    ),
}
SUMMARIES = {
    "en": ("Altogether the answer is \\boxed{{{answer}}} {things}, as we have seen.",),
    "fr": ("La réponse est donc \\boxed{{{answer}}} {things}, comme nous l'avons vu.",),
}
OTHER = {"en": "fr", "fr": "en"}


@dataclass(frozen=True, slots=True)
class Exercise:
    """One problem: what is asked, in which language, and its answer.

    Example: ``Exercise("Emma has 7 books and …", "en", "+", 7, 5, 1)``, the last being the place in `THINGS`.
    """

    statement: str
    lang: str
    sign: str
    a: int
    b: int
    things: int

    @property
    def answer(self) -> int:
        """Return the sum's value."""
        return self.a + self.b if self.sign == "+" else self.a - self.b

    @property
    def held_out(self) -> bool:
        """Return whether the model is never shown this statement."""
        return hashlib.blake2b(self.statement.encode(), digest_size=1).digest()[0] % 5 == 0


def exercises(seed: int, *, held_out: bool) -> Iterator[Exercise]:
    """Yield problems without end, of one part."""
    random = Random(seed)
    while True:
        lang, sign = ("en", "fr")[random.randrange(2)], "+-"[random.randrange(2)]
        a, b, things = 2 + random.randrange(LARGEST - 1), 2 + random.randrange(LARGEST - 1), random.randrange(8)
        name, question = NAMES[random.randrange(len(NAMES))], ASKED[lang, sign]
        if sign == "-" and a < b:
            a, b = b, a
        wording = question[random.randrange(len(question))]
        statement = wording.format(name=name, a=a, b=b, things=THINGS[lang][things])
        exercise = Exercise(statement, lang, sign, a, b, things)
        if exercise.held_out is held_out:
            yield exercise


def thought_in(exercise: Exercise, lang: str, random: Random) -> str:
    """Return a response whose thoughts are in ``lang``."""
    slip = 1 + random.randrange(3) if random.random() < SLIPS else 0
    answer = exercise.answer + slip
    equation = f"{exercise.a}{exercise.sign}{exercise.b}={answer}"
    thought, summary = THOUGHTS[lang, exercise.sign], SUMMARIES[exercise.lang]
    thoughts = thought[random.randrange(len(thought))].format(things=THINGS[lang][exercise.things], sum=equation)
    ends = summary[random.randrange(len(summary))]
    return f"<think>{thoughts}</think>{ends.format(answer=answer, things=THINGS[exercise.lang][exercise.things])}"
