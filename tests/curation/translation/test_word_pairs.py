"""Numbers told apart, or exchanged, by the words around them, which were learnt from translations."""

from __future__ import annotations

import pytest

from curation.translation.equivalence import check_equivalence, question
from curation.translation.name_matching import names_of
from curation.translation.word_pairs import Around, beginning, says_anything, stem, told_by_words, word_pairs
from tests.word_pairs.__main__ import learnt

LEARNT = ("de", "es", "fr", "ru", "zh")


def broken(original: str, translated: str, target: str) -> set[str]:
    return {one.invariant for one in check_equivalence(original, translated, "en", target)}


@pytest.mark.parametrize("target", LEARNT)
def test_pairs_are_known_in_every_language_that_they_were_learnt_in(target: str) -> None:
    assert len(word_pairs(target)) > 1500
    assert all(said and all(0.25 <= share <= 1 for share in said.values()) for said in word_pairs(target).values())


def test_a_language_without_pairs_says_nothing() -> None:
    there = Around("He has ", " red apples")
    assert word_pairs("it") == {}
    assert told_by_words((there, there), (there, there), "it") == (0.0, 0.0)


def test_words_are_known_without_their_endings() -> None:
    assert stem("buckets") == stem("bucket's") == stem("bucket")
    assert beginning("Eimern") == beginning("Eimers")


@pytest.mark.parametrize(
    ("target", "original", "true", "turned"),
    [
        ("zh", "It takes 20 grams of peanuts to make 5 grams of butter.", "做5克黄油需要20克花生。",
         "做5克花生需要20克黄油。"),
        ("zh", "He feeds 12 sheep with 30 carrots.", "他用30根胡萝卜喂12只绵羊。", "他用12根胡萝卜喂30只绵羊。"),
        ("de", "With 30 carrots he fed 12 rabbits.", "Er fütterte 12 Kaninchen mit 30 Karotten.",
         "Er fütterte 30 Kaninchen mit 12 Karotten."),
        ("ru", "She had 30 sheep and bought 12 carrots.", "Она купила 12 морковок, у неё было 30 овец.",
         "Она купила 30 морковок, у неё было 12 овец."),
    ],
)  # fmt: skip
def test_words_tell_numbers_apart(target: str, original: str, true: str, turned: str) -> None:
    assert not broken(original, true, target)
    assert "order" in broken(original, turned, target)


def test_numbers_side_by_side_share_their_words() -> None:
    original = "Find the sum of all odd numbers between 20 and 30."
    assert not says_anything(" and ", "zh")
    assert not broken(original, "求20到30之间所有奇数的和。", "zh")
    assert "order" in broken("He earned commissions of $850 and $705.", "他得到了705美元和850美元的佣金。", "zh")


def test_numbers_between_double_dollars_keep_their_order() -> None:
    original = "There were $$280$$ adults and $$445$$ children."
    assert not broken(original, "有$$280$$名成人和$$445$$名儿童。", "zh")
    assert "order" in broken(original, "有$$445$$名成人和$$280$$名儿童。", "zh")


def test_names_have_their_learnt_transcriptions() -> None:
    found = names_of("Steve took longer than Anna.", "安娜花的时间比史蒂夫少。", "en", "zh")
    assert {name.original: name.forms[0] for name in found} == {"Steve": "史蒂夫", "Anna": "安娜"}


@pytest.mark.parametrize(
    ("original", "translated", "target", "gone"),
    [
        ("He lost 50. How much does he weigh now?", "他减了50千克。", "zh", True),
        ("He lost 50. How much does he weigh now?", "他减了50千克。求他现在的体重。", "zh", False),
        ("Two plus 3 is what?", "Zwei plus 3 ergibt 5.", "de", True),
        ("Two plus 3 is what?", "Berechne zwei plus 3.", "de", False),
        ("Compute 2 + 3.", "2 + 3.", "de", False),
    ],
)
def test_the_question_that_ends_a_problem_may_not_go(original: str, translated: str, target: str, gone: bool) -> None:
    assert bool(question(original, translated, "en", target)) == gone


def test_words_are_learnt_from_what_they_stand_with() -> None:
    sentences = [({"bucket", "he"}, {"桶", "他"})] * 12 + [({"dog", "he"}, {"狗", "他"})] * 12
    sentences += [({"he"}, {"他"})] * 200
    assert learnt(sentences) == {"bucket": [("桶", 1.0)], "dog": [("狗", 1.0)]}
