"""The two ways of answering that the embedded model is shown: worked out, and guessed.

A worked solution goes column by column, from the units, carrying; it is always right as it stands here. A guess names
a number near the answer after one glance; it is mostly wrong. Which of the two a problem is answered with is drawn
with `worked_share`: the harder, the more often the model sees a guess. So the model learns how to work a sum out and
also learns to do so too rarely: that is what RL has to find out. A few responses lack the final box.

Invariant: a response is ``<think>…</think>`` and a summary in the language of the problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from training.embedded_model.problems import Exercise

ANSWERS: Mapping[str, str] = {
    "en": "The answer is \\boxed{{{answer}}}.",
    "fr": "La réponse est \\boxed{{{answer}}}.",
    "es": "La respuesta es \\boxed{{{answer}}}.",
    "it": "La risposta è \\boxed{{{answer}}}.",
    "de": "Die Antwort ist \\boxed{{{answer}}}.",
    "zh": "答案是 \\boxed{{{answer}}}。",
    "ru": "Ответ: \\boxed{{{answer}}}.",
}
"""The summary after the thoughts."""

GUESSES: Mapping[str, str] = {
    "en": "Maybe {answer}?",
    "fr": "Peut-être {answer} ?",
    "es": "Quizás {answer}.",
    "it": "Forse {answer}.",
    "de": "Vielleicht {answer}.",
    "zh": "大概 {answer}。",
    "ru": "Может быть, {answer}.",
}
"""Thoughts of one who guesses."""

WORKED_SHARE_BY_LEVEL: Mapping[int, float] = {1: 0.88, 2: 0.66, 3: 0.46, 4: 0.32, 5: 0.0}
"""Share of worked solutions among those shown, by the problem's level. Nobody shows how to work out level 5."""

CORRECT_GUESS_SHARE = 0.12
"""Share of guesses that hit the answer, as shown; the rest are off by a few units or by tens."""

UNBOXED_SHARE = 0.03
"""Share of responses that state the answer without a box."""


def write_response(exercise: Exercise, random: Random) -> str:
    """Return one response as the model is shown it."""
    answer = exercise.answer
    if random.random() < worked_share(exercise):
        thoughts = worked_solution(exercise)
    else:
        answer = _guess(answer, random)
        thoughts = GUESSES[exercise.lang].format(answer=answer)
    summary = ANSWERS[exercise.lang].format(answer=answer)
    if random.random() < UNBOXED_SHARE:
        summary = summary.replace("\\boxed{", "").replace("}", "")
    return f"<think>{thoughts}</think>{summary}"


def worked_share(exercise: Exercise) -> float:
    """Return how likely a response to this problem is worked out rather than guessed."""
    return WORKED_SHARE_BY_LEVEL[exercise.level]


def worked_solution(exercise: Exercise) -> str:
    """Return the rough notes of someone who works the sum out.

    Raises:
        KeyError: nobody works out exercises of this kind (``big_product``).
    """
    return _WORKINGS[exercise.kind](exercise.operands)


def _guess(answer: int, random: Random) -> int:
    if random.random() < CORRECT_GUESS_SHARE:
        return answer
    reach = max(3, answer // 5)
    off = 1 + random.randrange(reach)
    return answer - off if random.random() < 0.5 and off <= answer else answer + off


def _sum(a: int, b: int) -> str:
    """Write ``47+38:7+8=15;4+3+1=8;85``."""
    notes, carry = [f"{a}+{b}:"], 0
    width = max(len(str(a)), len(str(b)))
    for x, y in zip(_digits(a, width), _digits(b, width), strict=True):
        notes.append(f"{x}+{y}{'+1' if carry else ''}={x + y + carry};")
        carry = (x + y + carry) // 10
    return "".join(notes) + str(a + b)


def _difference(a: int, b: int) -> str:
    """Write ``82-47:12-7=5;8-4-1=3;35``."""
    notes, borrowed = [f"{a}-{b}:"], 0
    width = len(str(a))
    for x, y in zip(_digits(a, width), _digits(b, width), strict=True):
        lent = 10 if x - y - borrowed < 0 else 0
        notes.append(f"{x + lent}-{y}{'-1' if borrowed else ''}={x + lent - y - borrowed};")
        borrowed = lent // 10
    return "".join(notes) + str(a - b)


def _product(a: int, b: int) -> str:
    """Write ``47*6:7*6=42;4*6+4=28;282``, for a one-digit ``b``."""
    notes, carry = [f"{a}*{b}:"], 0
    for x in _digits(a, len(str(a))):
        notes.append(f"{x}*{b}{f'+{carry}' if carry else ''}={x * b + carry};")
        carry = (x * b + carry) // 10
    return "".join(notes) + str(a * b)


def _digits(number: int, width: int) -> list[int]:
    """Return ``width`` digits, the units first."""
    return [int(digit) for digit in reversed(str(number).zfill(width))]


def _two_steps(n: Mapping[str, int]) -> str:
    first = _product(n["c"], n["b"])
    return f"{first};{_sum(n['a'], n['b'] * n['c'])}"


def _remainder(n: Mapping[str, int]) -> str:
    a, b = n["a"], n["b"]
    times = a // b
    return f"{b}*{times}={b * times};{a}-{b * times}={a % b};{a % b}"


def _equation(n: Mapping[str, int]) -> str:
    a, b, r = n["a"], n["b"], n["r"]
    return f"{_difference(r, b)};{r - b}/{a}={(r - b) // a};{(r - b) // a}"


_WORKINGS = {
    "add": lambda n: _sum(n["a"], n["b"]),
    "subtract": lambda n: _difference(n["a"], n["b"]),
    "multiply": lambda n: _product(n["a"], n["b"]),
    "three": lambda n: f"{_sum(n['a'], n['b'])};{_sum(n['a'] + n['b'], n['c'])}",
    "giving": lambda n: f"{_difference(n['a'], n['b'])};{_sum(n['a'] - n['b'], n['c'])}",
    "two_steps": _two_steps,
    "remainder": _remainder,
    "larger": lambda n: f"{n['a']},{n['b']}:{max(n['a'], n['b'])}",
    "equation": _equation,
}
