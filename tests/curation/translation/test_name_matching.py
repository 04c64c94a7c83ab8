"""Names found again in another script and in every case, and parts, clauses and labels that go with them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from curation.translation.equivalence import check_equivalence
from curation.translation.invariants import labels
from curation.translation.name_matching import names_of
from curation.translation.name_sounds import sounds, stem, unlike
from curation.translation.numerals import in_words
from curation.translation.quantities import numbers


def broken(original: str, translated: str, target: str) -> set[str]:
    return {one.invariant for one in check_equivalence(original, translated, "en", target)}


@pytest.mark.parametrize(
    ("name", "word"),
    [("Julia", "Юлия"), ("Henry", "Генри"), ("Heracles", "Геракла"), ("Jane", "Джейн"),
     ("Tom", "Тома"), ("Cheryl", "Шерил"), ("Will", "Уилл"), ("Bruce", "Брюса"), ("Zachary", "Закари")],
)  # fmt: skip
def test_a_name_sounds_like_itself_in_cyrillic(name: str, word: str) -> None:
    assert unlike(name, word) < 0.26


def test_other_names_sound_otherwise_and_cases_share_a_stem() -> None:
    assert min(unlike("Veronica", "Моники"), unlike("Martha", "Джордж")) > 0.26
    assert stem("Марта") == stem("Мартой") == stem("Марты")
    assert sounds("Jane") == sounds("Джейн")


def test_each_name_has_the_word_that_is_most_like_it() -> None:
    names = names_of("Tom, Tim and Paul ran. Tom won.", "Том, Тим и Пол бежали. У Тома победа.", "en", "ru")
    assert {name.original: name.forms for name in names} == {
        "Tom": ("Том", "Тома"), "Tim": ("Тим",), "Paul": ("Пол",)
    }  # fmt: skip


def test_a_name_that_is_a_word_too_is_a_name_inside_a_sentence() -> None:
    names = names_of("What will Will do for Ann?", "Was wird Will für Ann tun?", "en", "de")
    assert [name.original for name in names] == ["Will", "Ann"]


def test_names_that_share_their_second_word_are_told_apart_by_the_first() -> None:
    original = "Tall Tuna has 5 more fish than Jerk Tuna."
    assert broken(original, "Tall Tuna hat 5 Fische mehr als Jerk Tuna.", "de") == set()
    assert broken(original, "Jerk Tuna hat 5 Fische mehr als Tall Tuna.", "de") == {"entities"}


@pytest.mark.parametrize(
    ("target", "original", "true", "turned"),
    [
        # a second mention counts
        ("ru", "Asaf is as old as Alexander, who lives with Asaf.",
         "Асафу столько же лет, сколько Александру, который живет с Асафом.",
         "Асафу столько же лет, сколько Асафу, который живет с Александром."),
        # names behind a conjunction that joins nothing
        ("de", "Barbeck has more guitars than Steve, but Davey has three.",
         "Barbeck hat mehr Gitarren als Steve, aber Davey hat drei.",
         "Barbeck hat mehr Gitarren als Davey, aber Steve hat drei."),
        # the other name of two, in another case
        ("ru", "Henry gave six of them to Neil.", "Генри отдал шесть из них Нилу.", "Нил отдал шесть из них Генри."),
    ],
)  # fmt: skip
def test_names_that_changed_places(target: str, original: str, true: str, turned: str) -> None:
    assert broken(original, true, target) == set()
    assert broken(original, turned, target) == {"entities"}


@pytest.mark.parametrize(
    ("target", "original", "true", "turned"),
    [
        ("ru", "A third are red, and a quarter are blue.", "Треть - красные, а четверть - синие.",
         "Треть - красные, а треть - синие."),
        ("de", "The third cat slept a third of the time.", "Die dritte Katze schlief ein Drittel der Zeit.",
         "Die dritte Katze schlief ein Viertel der Zeit."),
        ("es", "How many quarts does his sixth-grade class drink?", "¿Cuántos cuartos bebe su clase de sexto grado?",
         "¿Cuántos tercios bebe su clase de sexto grado?"),
    ],
)  # fmt: skip
def test_a_part_that_the_original_does_not_say(target: str, original: str, true: str, turned: str) -> None:
    assert broken(original, true, target) == set()
    assert "numbers" in broken(original, turned, target)


def test_a_clause_moves_with_its_number() -> None:
    original = "How much change will he get from $350 if each liter of fuel costs $3?"
    assert broken(original, "如果每升燃料的价格是3美元，他从350美元中能找回多少零钱？", "zh") == set()
    assert broken(original, "如果每升燃料的价格是350美元，他从3美元中能找回多少零钱？", "zh") == {"order"}


@pytest.mark.parametrize(
    ("target", "original", "true", "turned"),
    [
        ("ru", "She read nothing.", "Она ничего не прочитала.", "Она ничего прочитала."),
        ("es", "He read nothing.", "No leyó nada.", "Leyó nada."),
        ("ru", "How much money is she short?", "Сколько денег ей не хватает?", "Сколько денег ей хватает?"),
        ("zh", "How many disagree?", "有多少人不同意？", "有多少人同意？"),
    ],
)  # fmt: skip
def test_two_words_deny_once_and_one_of_them_nothing(target: str, original: str, true: str, turned: str) -> None:
    assert broken(original, true, target) == set()
    assert broken(original, turned, target) == {"polarity"}


@pytest.mark.parametrize(
    ("lang", "text", "values"),
    [("de", "zwei halbe Dutzend", [2, 6]), ("ru", "полдюжины яиц", [6]), ("es", "tres y medio", [3, Fraction(1, 2)]),
     ("fr", "trois pièces de 25 cents", [3]), ("fr", "deux cents pages", [200])],
)  # fmt: skip
def test_dozens_halves_and_cents(lang: str, text: str, values: list[int | Fraction]) -> None:
    assert in_words(text, lang) == values


def test_a_number_of_a_pronoun_may_go_and_become_no_other() -> None:
    original = "How many do the three of them have?"
    assert numbers(original, "Wie viele haben sie zusammen?", "en", "de") == []
    assert broken(original, "Wie viele haben alle vier von ihnen?", "de") == {"numbers"}


def test_a_letter_that_ends_a_sentence_is_no_label() -> None:
    assert labels("It has 2 fewer than Machine A. The rest are of Machine B. Which?") == []
    assert labels("Which is it?\nA. red B. blue") == ["A", "B"]
