"""Numbers and names that a free translation reorders, told apart from those that were exchanged."""

from __future__ import annotations

import pytest

from curation.languages.mixing import language_shares
from curation.translation.alignment import align
from curation.translation.equivalence import check_equivalence
from curation.translation.formulas import variables
from curation.translation.number_words import replaced_words
from curation.translation.prose import added_solution
from curation.translation.quantities import numbers, units


def broken(original: str, translated: str, target: str) -> set[str]:
    return {one.invariant for one in check_equivalence(original, translated, "en", target)}


@pytest.mark.parametrize(
    ("target", "original", "true", "turned"),
    [
        # a unit tells two numbers apart, though only one language says the role
        ("zh", "He sold 15 pots for $25.", "他以每个25美元的价格卖出15个花盆。", "他以每个15美元的价格卖出25个花盆。"),
        # the sign of a bill is the bill's
        ("ru", "It has 1 $50 bill and 5 $20 bills.", "Там 1 купюра по 50 долларов и 5 купюр по 20 долларов.",
         "Там 50 купюр по 1 доллару и 5 купюр по 20 долларов."),
        # numbers that are names of their own
        ("zh", "There are 12 mats in house 1 and 20 mats in house 2.", "房子1有12张垫子，房子2有20张垫子。",
         "房子12有1张垫子，房子2有20张垫子。"),
        # rates of what is counted
        ("de", "Diana did 40 situps at a rate of 4 situps per minute.",
         "Diana hat mit einer Rate von 4 Situps pro Minute 40 Situps gemacht.",
         "Diana hat 4 Situps mit einer Rate von 40 Situps pro Minute gemacht."),
        # what another number is compared with
        ("zh", "He drove 2 more than 5 miles.", "他行驶了比5英里多2英里。", "他行驶了比2英里多5英里。"),
        # a date, a total, a difference, the number out of which some are
        ("zh", "They married on August 17 when Josh turned 22.", "他们在乔希22岁生日的8月17日结婚。",
         "他们在乔希17岁生日的8月22日结婚。"),
        ("zh", "She ran a total of 24 feet, 20 feet of it uphill.", "她跑了20英尺上坡路，总共跑了24英尺。",
         "她跑了24英尺上坡路，总共跑了20英尺。"),
        ("zh", "There are 20 fewer men than women and 180 people.", "有180人，男性比女性少20人。",
         "有20人，男性比女性少180人。"),
        ("zh", "A student got 3 wrong out of 40.", "一个学生在40道题中错了3道。", "一个学生错了40道题，在3道题中。"),
        # each of somebody's
        ("ru", "There are 3 birds in each of the park's 7 trees.", "В каждом из 7 деревьев парка 3 птицы.",
         "В каждом из 3 деревьев парка 7 птиц."),
    ],
)  # fmt: skip
def test_numbers_may_change_places_with_what_they_stand_with(
    target: str, original: str, true: str, turned: str
) -> None:
    assert "order" not in broken(original, true, target)
    assert "order" in broken(original, turned, target)


@pytest.mark.parametrize(
    ("target", "original", "true", "turned"),
    [
        ("zh", "Haley, Michael and Brandon play. Michael has 3 times as many as Haley.",
         "海莉、迈克尔和布兰登在玩。迈克尔的数量是海莉的3倍。", "海莉、迈克尔和布兰登在玩。海莉的数量是迈克尔的3倍。"),
        ("de", "Doug, Betty's friend, is 40 years old.", "Bettys Freund Doug ist 40 Jahre alt.",
         "Dougs Freundin Betty ist 40 Jahre alt."),
        ("de", "How many more bills than Mandy will Peter have?", "Wie viele Scheine mehr hat Peter als Mandy?", ""),
        ("zh", "If Sam and Shelly go fishing, they catch 2.", "如果莎莉和山姆去钓鱼，他们捕到2条。", ""),
    ],
)  # fmt: skip
def test_names_that_are_joined_compared_or_part_of_others(target: str, original: str, true: str, turned: str) -> None:
    assert "entities" not in broken(original, true, target)
    if turned:
        assert "entities" in broken(original, turned, target)


def test_ranks_are_no_parts() -> None:
    ten = "Ten fourth-graders each bought 20 pizzas."
    assert replaced_words(ten, "Zehn Viertklässler kauften je 20 Pizzen.", "en", "de") == []
    assert replaced_words(ten, "Neun Viertklässler kauften je 20 Pizzen.", "en", "de") != []
    quarters = "There are four quarters in a school year."
    assert broken(quarters, "Ein Schuljahr hat vier Quartale.", "de") == set()
    assert "numbers" in broken(quarters, "Ein Schuljahr hat drei Quartale.", "de")
    assert "numbers" in broken("She ate three quarters of it.", "Sie aß zwei Viertel davon.", "de")


def test_halves_and_doubles_are_not_hidden_by_other_numbers() -> None:
    original = "He took 50 photos in the first week and twice that many in the second week."
    true = "In der ersten Woche machte er 50 Fotos und in der zweiten Woche doppelt so viele."
    assert broken(original, true, "de") == set()
    assert "numbers" in broken(original, true.replace("doppelt", "halb"), "de")


def test_units_inside_quotations_and_of_rates() -> None:
    sale = 'There is an "Any item $10" sale.'
    assert units(sale, 'Es gibt einen "Alles für 10 $"-Verkauf.', "en", "de") == []
    assert units('It is 10" long.', "Es ist 10 Meter lang.", "en", "de") != []
    assert variables("Oil weighs 5 g/ml at 14 cents per kw/h.", "油重5克/毫升，每千瓦时14美分。") == []
    assert variables("Let h and g be given.", "设 h 已知。") != []


@pytest.mark.parametrize(
    ("target", "original", "true", "turned"),
    [
        ("es", "She swims 3 laps.", "Ella nada 3 vueltas.", "Ella no nada 3 vueltas."),
        ("fr", "They were not in chocolate.", "Ils n'étaient pas en chocolat.", "Ils étaient en chocolat."),
        ("ru", "He decided not to spend more than $70.", "Он решил не тратить больше 70 долларов.",
         "Он решил тратить больше 70 долларов."),
        ("zh", "He eats rice instead of bread.", "他吃米饭而不是面包。", "他吃米饭和面包。"),
        ("zh", "How many are neither red or blue?", "有多少既没有红色也没有蓝色？", "有多少有红色和蓝色？"),
        ("de", "Half of them are gluten-free.", "Die Hälfte davon ist glutenfrei.", "Die Hälfte davon ist mit Gluten."),
    ],
)  # fmt: skip
def test_what_denies_and_what_does_not(target: str, original: str, true: str, turned: str) -> None:
    assert {"polarity", "comparisons"} & broken(original, true, target) == set()
    assert {"polarity", "comparisons"} & broken(original, turned, target)


def test_two_gaps_are_one_free_sentence() -> None:
    original = "Jack is counting out his register at the end of his long shift in the little shop. It has $100."
    segments = align(original, "杰克在清点收银机。里面有100美元。", "en", "zh")
    assert all(segment.before and segment.after for segment in segments)
    assert sentences_split("他给了Ms. Delmont班级。") == 1


def sentences_split(text: str) -> int:
    return len(align("He gave it to Ms. Delmont's class.", text, "en", "zh"))


def test_a_dozen_each_and_a_half_in_a_word() -> None:
    assert numbers("They cost $3 a dozen.", "每打3美元。", "en", "zh") == []
    assert numbers("She uses 1/2 a gallon.", "Она использует полгаллона.", "en", "ru") == []
    assert numbers("She uses 1/2 a gallon.", "Она использует галлон.", "en", "ru") != []


def test_a_repeated_word_is_no_passage_and_a_name_no_language() -> None:
    german = "Je mehr er kauft, desto besser, je Stück zahlt er zwei Euro, und je Tag kauft er drei Stück davon."
    assert dict(language_shares(german)) == {"de": 1.0}
    chinese = "他在 Pat's Pool Supply Store 买了三个苹果。他又买了五个梨，一共花了二十元。他还剩下多少钱？"
    assert dict(language_shares(chinese)) == {"zh": 1.0}


@pytest.mark.parametrize(
    ("target", "original", "true", "turned"),
    [
        ("zh", "Each is either white or grey.", "每只不是白色就是灰色。", "每只都不是白色。"),
        ("zh", "Jake has 13 fewer peaches and 3 more apples than Steven.",
         "与史蒂文相比，杰克的桃子少13个，苹果多3个。", None),
        ("zh", "John had 10 video games but 8 of them weren't working.", "约翰有10个电子游戏，但其中8个坏了。", None),
        ("de", "In a poll of 450 dentists 30 responded.",
         "Bei einer Umfrage unter 450 Zahnärzten antworteten 30.", None),
        ("ru", "Roses cost $2 each.", "Одна роза стоит 2 доллара.", "Розы стоят 2 доллара."),
        ("zh", "He has one sale pending.", "他有一笔销售尚未成交。", None),
        ("zh", "How many are grey at the most?", "最多有多少只是灰色的？", None),
        ("zh", "If 8 students do n't want to go, how many go?", "如果8名学生不想去，有多少人去？",
         "如果8名学生想去，有多少人去？"),
        ("zh", "8 people couldn't come, and 1/4 that number had other plans.",
         "8人不能来，另有这个人数的1/4因有约不能来。",
         None),
        ("zh", "Exactly 5 of the 8 pupils passed.", "8名学生中恰好有5名通过。", None),
        ("zh", "Nikita scored 11 more than half as many as Pierson.", "尼基塔的得分比皮尔逊得分的一半多 11 分。",
         "尼基塔的得分比皮尔逊得分的一半少 11 分。"),
        ("zh", "Richie scored 20 more goals than Mark and 45 more goals than Anna.",
         "里奇比马克多进 20 个球，比安娜多进 45 个球。",
         "里奇比安娜多进 20 个球，比马克多进 45 个球。"),
    ],
)  # fmt: skip
def test_what_a_model_wrote_is_read(target: str, original: str, true: str, turned: str | None) -> None:
    assert not broken(original, true, target)
    assert turned is None or broken(original, turned, target)


def test_a_form_of_the_answer_may_stand_behind_the_question() -> None:
    original = "What is the likelihood, expressed as a percentage, that she wins?"
    assert not added_solution(original, "她获胜的可能性是多少？用百分数表示。", None, "en", "zh")
    assert added_solution(original, "她获胜的可能性是多少？答案是一半。" + "因为她已经赢了两局，" * 5, None, "en", "zh")
    assert added_solution("What is the likelihood that she wins?", "她获胜的可能性是多少？一半。", None, "en", "zh")
    assert not variables("Joseph\\textquotesingle s mice", "约瑟夫的老鼠")
