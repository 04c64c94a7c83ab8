"""Names that moved past several others, and numbers that moved with their limit or as an age, were not exchanged."""

from __future__ import annotations

import pytest

from curation.translation.equivalence import check_equivalence
from curation.translation.formulas import formulas, variables
from curation.translation.name_matching import Name
from curation.translation.names import exchanged_names
from curation.translation.sentences import Segment


def broken(original: str, translated: str, target: str) -> set[str]:
    return {one.invariant for one in check_equivalence(original, translated, "en", target)}


@pytest.mark.parametrize(
    ("target", "original", "true", "turned"),
    [
        # a number up to which another holds
        ("zh", "The rolls are priced at Rs. 2 per roll up to 200 rolls.", "不超过200个时，每个面包的价格为2卢比。",
         "不超过2个时，每个面包的价格为200卢比。"),
        ("ru", "The rolls are priced at Rs. 2 per roll up to 200 rolls.",
         "Если булочек не больше 200, одна булочка стоит 2 рупии.",
         "Если булочек не больше 2, одна булочка стоит 200 рупий."),
        # an age
        ("zh", "Raj is going to be 32 years old 8 years from now.", "再过8年Raj将是32岁。", "再过32年Raj将是8岁。"),
    ],
)  # fmt: skip
def test_numbers_that_moved_with_their_limit_or_as_an_age(target: str, original: str, true: str, turned: str) -> None:
    assert "order" not in broken(original, true, target)
    assert "order" in broken(original, turned, target)


def test_a_name_that_moved_past_several_is_no_exchange() -> None:
    original = "Tony, Bobby and Kathy pick 12 pears on the farm of Concetta."
    names = [Name(name, (name,)) for name in ("Tony", "Bobby", "Kathy", "Concetta")]
    true = "在Concetta的农场上，Tony、Bobby和Kathy采了12个梨。"
    assert exchanged_names(Segment(original, true), names) is None
    for turned in (
        "在Tony的农场上，Concetta、Bobby和Kathy采了12个梨。",
        "在Concetta的农场上，Kathy、Bobby和Tony采了12个梨。",
    ):
        assert exchanged_names(Segment(original, turned), names) is not None


@pytest.mark.parametrize(
    ("target", "original", "true", "turned"),
    [
        ("zh", "If the costs of the items do not change, how much are they?",
         "如果这些商品的价格不变，它们一共多少钱？",
         "如果这些商品的价格改变，它们一共多少钱？"),
        ("ru", "How many can he miss before they don't sign him up again?",
         "Сколько он может пропустить, прежде чем они откажутся записать его снова?",
         "Сколько он может пропустить, прежде чем они запишут его снова?"),
    ],
)  # fmt: skip
def test_what_denies_in_one_word(target: str, original: str, true: str, turned: str) -> None:
    assert "polarity" not in broken(original, true, target)
    assert "polarity" in broken(original, turned, target)


def test_a_number_in_words_of_another_sentence_may_come_again() -> None:
    original = "Four people cross a river. The time for each is 1 minute, 2 minutes or 7 minutes."
    true = "四个人过河。四个人所需的时间为1分钟、2分钟或7分钟。"
    assert broken(original, true, "zh") == set()
    assert "numbers" in broken(original, true.replace("。四", "。五"), "zh")
    taps = "There are three taps. Each of the two other taps fills it $4$ times faster."
    assert broken(taps, "有三个水龙头。另外两个水龙头中的每一个注满它的速度都是它的 $4$ 倍。", "zh") == set()
    assert "numbers" in broken(taps, "有三个水龙头。另外三个水龙头中的每一个注满它的速度都是它的 $4$ 倍。", "zh")


def test_a_quadrant_is_no_quarter() -> None:
    assert broken("The graph lies in which quadrant?", "В какой четверти лежит график?", "ru") == set()
    assert "numbers" in broken("The graph lies in which half?", "В какой четверти лежит график?", "ru")


def test_letters_beside_numbers_and_formulas_are_no_names() -> None:
    assert variables("Two or more $E$s do not meet.", "两个或更多的$E$不相邻。") == []
    assert variables("Let $E$ and s be given.", "设$E$已知。") != []
    assert variables("A piece of 150 sq m is given.", "已知一块150平方米的地。") == []
    assert variables("The width m is given.", "已知宽度。") != []


def test_an_ordinal_in_a_formula_is_its_number() -> None:
    assert formulas("He was in $5th$ place.", "Он был на $5$-м месте.") == []
    assert formulas("Find the $n$th digit of $x^{5th}+1$.", "求 $x^{6}+1$ 的第$n$位数字。") != []
