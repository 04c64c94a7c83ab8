"""Hints: numbers and words that inputs may turn on."""

from __future__ import annotations

import random

from curation.programs.test_generation.forms import infer_form
from curation.programs.test_generation.growing import grow_shapes
from curation.programs.test_generation.hints import Hints, find_hints, hinted_word

WORD = "Input\n\nA string of lowercase letters, of at most $20$.\n"


def test_hints_are_the_literals_of_statement_and_solutions() -> None:
    found = find_hints('the word "meow", $1 \\leq n \\leq 10^5$', ["if n > 4096 or s == 'purr': n = 7"])
    assert found.words == ("meow", "purr")
    assert {7, 4096, 100_000} <= set(found.numbers)
    assert not find_hints("no literal")


def test_a_hinted_word_holds_the_hint_or_one_edit_of_it_and_fits() -> None:
    draw = random.Random(3)
    words = [hinted_word("abcab", "meow", (1, 8), "abcdefghijklmnopqrstuvwxyz", draw) for _ in range(200)]
    assert all(1 <= len(word) <= 8 for word in words)
    assert any("meow" in word for word in words)
    assert any(edited in word for word in words for edited in ("emow", "mow", "meo"))
    assert all(len(hinted_word("abcab", "meow", (5, 5), "abc", draw)) == 5 for _ in range(50))


def test_grown_inputs_turn_on_hints() -> None:
    words = infer_form(["pastime\n", "yarn\n"], WORD, careful=True)
    assert words is not None
    texts = list(grow_shapes(words, set(), ["small hinted"] * 30, "seed", 100, Hints((), ("meow",))))
    assert sum("meow" in text for text in texts) >= 3
    statement = "Input\n\nTwo integers $n$ and $k$ ($1 \\leq n, k \\leq 10^9$).\n"
    pairs = infer_form(["3 5\n", "20 1\n"], statement, careful=True)
    assert pairs is not None
    numbers = [text.split() for text in grow_shapes(pairs, set(), ["small hinted"] * 30, "s", 100, Hints((4096,), ()))]
    assert any({"4095", "4096", "4097"} & set(row) for row in numbers)
