"""Numbers that a translation writes so that they can be read twice, and what a true one may say otherwise."""

from __future__ import annotations

import pytest

from curation.translation.distribution import distribution
from curation.translation.equivalence import check_equivalence
from curation.translation.formulas import variables
from curation.translation.quantities import numbers
from curation.translation.readings import as_the_original_reads
from curation.translation.sentences import Segment
from curation.translation.units import units_mentioned


def broken(original: str, translated: str, target: str) -> set[str]:
    """Return what the numbers and the sentences of a translation break, read as `check_translation` reads them."""
    read = as_the_original_reads(original, translated, "en", target)
    found = [*numbers(original, read, "en", target), *check_equivalence(original, read, "en", target)]
    return {one.invariant for one in found}


@pytest.mark.parametrize(
    ("target", "original", "true", "wrong"),
    [
        # two numbers side by side are no thousands
        ("de", "An iPhone 12 costs $800.", "Ein iPhone 12 kostet: iPhone 12 800 $.", "Ein iPhone 13 800 $."),
        # cents behind words are no hundreds, where the original has the cents
        ("fr", "The rice cost ten cents a plate.", "Le riz coûtait dix cents l'assiette.",
         "Le riz coûtait douze cents l'assiette."),
        # what is cut in two is cut in half
        ("fr", "He cuts the log in half.", "Il coupe la bûche en deux.", "Il coupe la bûche en trois."),
        # a percentage is a part, a coin is called by its part
        ("zh", "He pays ten percent of it.", "他支付其中的十分之一。", "他支付其中的五分之一。"),
        ("de", "Guy has two quarters and a dime.", "Guy hat zwei Vierteldollar und einen Zehner.",
         "Guy hat drei Vierteldollar und einen Zehner."),
        # half an hour has 30 minutes, an hour and a half has not; 3 and a half are 3.5
        ("zh", "He swings for 30 minutes.", "他荡了半小时。", "他荡了两个半小时。"),
        ("ru", "He runs for 30 minutes.", "Он бежит полчаса.", "Он бежит полтора часа."),
        ("zh", "He is 3 and 1/2 times older.", "他的年龄是3.5倍。", "他的年龄是4.5倍。"),
        # kilobytes are no thousands of bytes, a coin's name is no number
        ("zh", "Each photo has 1.5 kilobytes.", "每张照片的大小为1.5千字节。", "每张照片的大小为2.5千字节。"),
        ("zh", "He has 4 quarters and 3 nickels.", "他有4个二角五分硬币和3个五分硬币。",
         "他有5个二角五分硬币和3个五分硬币。"),
        # $280k is 280,000; a k behind another number may be a letter
        ("zh", "The house costs $280k.", "房子的价格是28万美元。", "房子的价格是38万美元。"),
        # a number that is only said once more, or once less
        ("zh", "Each floor has 3 windows and the house has 3 floors.", "房子有3层楼，这3层楼每层有3扇窗户。",
         "房子有3层楼，每层有4扇窗户。"),
        ("de", "They sell 50 more each year for three years. How many three years from now?",
         "Sie verkaufen jedes Jahr 50 mehr. Wie viele in drei Jahren?",
         "Sie verkaufen jedes Jahr 50 mehr. Wie viele in vier Jahren?"),
    ],
)  # fmt: skip
def test_doubtful_numbers_are_read_as_the_original_has_them(target: str, original: str, true: str, wrong: str) -> None:
    assert not broken(original, true, target) & {"numbers", "order"}
    assert broken(original, wrong, target) & {"numbers", "order"}


@pytest.mark.parametrize(
    ("original", "translated", "target"),
    [
        ("It has 12,800 seats.", "Es hat 12 800 Plätze.", "de"),
        ("They sold five hundred tickets.", "Ils ont vendu cinq cents billets.", "fr"),
        ("He cuts it into two.", "Il la coupe en deux.", "fr"),
    ],
)
def test_what_is_not_doubtful_stays_as_it_is(original: str, translated: str, target: str) -> None:
    assert as_the_original_reads(original, translated, "en", target) == translated


@pytest.mark.parametrize(
    ("target", "original", "true", "turned"),
    [
        # the smaller number may follow as a part of the larger, but is never the larger
        ("zh", "60 kernels pop and the bag has 75 kernels.", "袋子里有75颗爆米花，其中有60颗爆开。", ""),
        ("zh", "The bag has 75 kernels, of which 60 pop.", "袋子里有75颗爆米花，其中有60颗爆开。",
         "袋子里有60颗爆米花，其中有75颗爆开。"),
        ("ru", "She built 3 tanks that hold 15 fish each.",
         "Она построила 3 аквариума, каждый из которых вмещает 15 рыб.",
         "Она построила 15 аквариумов, каждый из которых вмещает 3 рыбы."),
        ("zh", "It is 70% blue and 20% red.", "其中70%是蓝色，20%是红色。", "其中20%是蓝色，70%是红色。"),
        # in so many years is after them
        ("zh", "If Ana will be 15 in 3 years, how old is Sarah?", "如果安娜3年后将满15岁，莎拉多大？", ""),
        # ten times is a factor though the word has a capital
        ("de", "He climbs the ladder, which has 11 steps, 10 times.", "Er steigt 10 Mal auf die Leiter mit 11 Stufen.",
         "Er steigt 11 Mal auf die Leiter mit 10 Stufen."),
        # a year is one on both sides
        ("de", "Kelsey turned 25 in 1999.", "Kelsey wurde 1999 25 Jahre alt.", ""),
    ],
)  # fmt: skip
def test_numbers_told_apart_by_part_time_and_factor(target: str, original: str, true: str, turned: str) -> None:
    assert "order" not in broken(original, true, target)
    if turned:
        assert "order" in broken(original, turned, target)


@pytest.mark.parametrize(
    ("target", "original", "true", "swapped"),
    [
        # a name put in where the original understands it
        ("es", "Mike has 3. Matt got twice as many, and Mark got as many as Mike and Matt.",
         "Mike tiene 3. Matt recibió el doble que Mike, y Mark recibió tantos como Mike y Matt.",
         "Mike tiene 3. Mark recibió el doble que Mike, y Matt recibió tantos como Mike y Mark."),
        # the words of one name
        ("es", "Dalton started a Fan Club.", "Dalton comenzó un Club de Fans.", ""),
        # a name that ends in s owns nothing by that alone
        ("de", "Boris has 100 pieces of Halloween candy.", "Boris hat 100 Stück Halloween-Süßigkeiten.", ""),
        # 如果 is no name
        ("zh", "If Tina sold twice as many as Katya, how many more than Katya did Tina sell?",
         "如果蒂娜卖的是卡蒂娅的两倍，蒂娜比卡蒂娅多卖了多少？", ""),
    ],
)  # fmt: skip
def test_names_put_in_of_two_words_and_in_s(target: str, original: str, true: str, swapped: str) -> None:
    assert "entities" not in broken(original, true, target)
    if swapped:
        assert "entities" in broken(original, swapped, target)


@pytest.mark.parametrize(
    ("target", "translated", "lost"),
    [
        ("de", "Wie viel kann er ausgeben, ohne mehr auszugeben als er hat?",
         "Wie viel kann er ausgeben, um mehr auszugeben als er hat?"),
        ("zh", "他可以花多少钱，而不超过他的预算？", "他可以花多少钱，而超过他的预算？"),
    ],
)  # fmt: skip
def test_a_limit_may_be_a_denied_more(target: str, translated: str, lost: str) -> None:
    original = "How much can he spend without spending more than he has budgeted?"
    assert not broken(original, translated, target) & {"polarity", "comparisons"}
    assert broken(original, lost, target) & {"polarity", "comparisons"}


def test_units_by_signs_and_letters_are_no_variables() -> None:
    assert [one.unit for one in units_mentioned("Steve is 5'6\" tall.", "en")] == ["foot", "inch"]
    assert [one.unit for one in units_mentioned("麦迪的4年级班级有5年历史。", "zh")] == ["year"]
    assert variables("A square lake at 10 MPH.", "Ein quadratischer See mit 10 Meilen pro Stunde.") == []
    assert variables("What did City D receive?", "Сколько получил город Д?") == []
    assert variables("What did City D receive?", "Сколько получил город?") != []


@pytest.mark.parametrize(
    ("target", "true", "lost"),
    [
        ("de", "Er zahlte jeweils 30 $ für sechs Bücher.", "Er zahlte 30 $ für sechs Bücher."),
        ("fr", "Il a payé six livres 30 $ chacun.", "Il a payé six livres 30 $."),
        ("es", "Pagó 30 $ por cada uno de los seis libros.", "Pagó 30 $ de los seis libros."),
        ("ru", "Он заплатил по 30 долларов шесть раз, и книг шесть.", "Он заплатил 30 долларов, и книг шесть."),
    ],
)
def test_what_is_each_ones_stays_each_ones(target: str, true: str, lost: str) -> None:
    segment = Segment("He paid $30 each for six books.", true)
    assert distribution(segment, "en", target) == []
    (violation,) = distribution(Segment(segment.before, lost), "en", target)
    assert violation.invariant == "order"


def test_each_is_looked_for_behind_a_number_alone_and_where_a_language_says_it() -> None:
    assert distribution(Segment("Each of them has 3 dogs.", "Sie haben 3 Hunde."), "en", "de") == []
    assert distribution(Segment("They cost $3 each.", "糖果3美元一颗。"), "en", "zh") == []
