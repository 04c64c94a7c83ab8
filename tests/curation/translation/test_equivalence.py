"""What the aligned sentences of a translation must say: a true one, then one difference a test."""

from __future__ import annotations

import pytest

from curation.languages.vocabulary import languages
from curation.translation.alignment import align
from curation.translation.directions import directions
from curation.translation.equivalence import check_equivalence
from curation.translation.exchanged_words import exchanged_words
from curation.translation.name_matching import names_of
from curation.translation.sentences import Segment, sentences

ENGLISH = (
    "Janet has 12 marbles. Maria has 5 more marbles than Janet, and she does not lose any. "
    "They play for 3 hours. How many marbles does Maria have?"
)
TRUE = {
    "de": "Janet hat 12 Murmeln. Maria hat 5 Murmeln mehr als Janet und verliert keine. Sie spielen 3 Stunden lang. "
    "Wie viele Murmeln hat Maria?",
    "fr": "Janet a 12 billes. Maria a 5 billes de plus que Janet et n'en perd aucune. Elles jouent pendant 3 heures. "
    "Combien de billes Maria a-t-elle ?",
    "es": "Janet tiene 12 canicas. Maria tiene 5 canicas más que Janet y no pierde ninguna. Juegan durante 3 horas. "
    "¿Cuántas canicas tiene Maria?",
    "it": "Janet ha 12 biglie. Maria ha 5 biglie in più di Janet e non ne perde nessuna. Giocano per 3 ore. "
    "Quante biglie ha Maria?",
    "ru": "У Джанет 12 шариков. У Марии на 5 шариков больше, чем у Джанет, и она не теряет ни одного. "
    "Они играют 3 часа. Сколько шариков у Марии?",
    "zh": "珍妮特有 12 颗弹珠。玛丽亚比珍妮特多 5 颗弹珠，而且她没有丢失任何一颗。"
    "他们玩了 3 小时。玛丽亚有多少颗弹珠？",
}


def broken(translated: str, target: str, original: str = ENGLISH) -> set[str]:
    return {one.invariant for one in check_equivalence(original, translated, "en", target)}


@pytest.mark.parametrize("target", sorted(TRUE))
def test_a_true_translation_says_the_same(target: str) -> None:
    assert broken(TRUE[target], target) == set()


@pytest.mark.parametrize(
    ("target", "before", "after", "what"),
    [
        ("de", "3 Stunden", "3 Minuten", "units"),
        ("fr", "3 heures", "3 semaines", "units"),
        ("ru", "3 часа", "3 минуты", "units"),
        ("zh", "3 小时", "3 分钟", "units"),
        ("de", "verliert keine", "verliert eine", "polarity"),
        ("es", "y no pierde ninguna", "y pierde una", "polarity"),
        ("zh", "没有丢失", "丢失", "polarity"),
        ("de", "mehr als", "weniger als", "comparisons"),
        ("it", "in più di", "in meno di", "comparisons"),
        ("ru", "больше, чем", "меньше, чем", "comparisons"),
        ("zh", "特多 5", "特少 5", "comparisons"),
        ("fr", "Maria a 5 billes de plus que Janet", "Janet a 5 billes de plus que Maria", "entities"),
        ("ru", "Марии на 5 шариков больше, чем у Джанет", "Джанет на 5 шариков больше, чем у Марии", "entities"),
        ("es", "Juegan durante 3 horas. ", "", "sentences"),
        ("it", "Quante biglie ha Maria?", "", "sentences"),
    ],
)  # fmt: skip
def test_each_difference_is_named_with_both_sides(target: str, before: str, after: str, what: str) -> None:
    assert before in TRUE[target]
    violations = check_equivalence(ENGLISH, TRUE[target].replace(before, after), "en", target)
    assert what in {one.invariant for one in violations}
    assert all("“" in one.evidence for one in violations)


def test_numbers_that_changed_places_are_noticed_and_those_with_their_units_are_not() -> None:
    original = "She pays $5 a week for 8 weeks. She buys 3 pens and 7 books."
    moved = "8 Wochen lang bezahlt sie 5 $ pro Woche. Sie kauft 3 Stifte und 7 Bücher."
    assert broken(moved, "de", original) == set()
    assert broken(moved.replace("8 W", "5 W").replace("sie 5", "sie 8"), "de", original) == {"order"}
    assert broken(moved.replace("3 S", "7 S").replace("7 B", "3 B"), "de", original) == {"order"}
    assert broken(moved.replace("5 $", "3 $").replace("3 S", "5 S"), "de", original) == {"order"}


def test_numbers_of_formulas_are_noticed() -> None:
    original = "Let $f(x) = 2x + 3$. Find $f(4)$."
    assert broken("Sei $f(x) = 2x + 3$. Finde $f(4)$.", "de", original) == set()
    assert "formulas" in broken("Sei $f(x) = 3x + 2$. Finde $f(4)$.", "de", original)


@pytest.mark.parametrize(
    ("target", "right", "left"), [("de", "1.000", "1,000"), ("fr", "1 000", "1,000"), ("zh", "1,000", "1.000")]
)
def test_thousands_are_parted_as_the_language_does(target: str, right: str, left: str) -> None:
    text = {"de": "Er hat {} Äpfel.", "fr": "Il a {} pommes.", "zh": "他有 {} 个苹果。"}[target]
    assert broken(text.format(right), target, "He has 1,000 apples.") == set()
    assert broken(text.format(left), target, "He has 1,000 apples.") == {"notation"}


def test_sentences_are_aligned_where_one_became_two() -> None:
    one = "He buys 3 apples, and then he eats 2 of them. How many are left?"
    two = "Er kauft 3 Äpfel. Dann isst er 2 davon. Wie viele bleiben übrig?"
    assert [segment.after for segment in align(one, two, "en", "de")] == [
        "Er kauft 3 Äpfel. Dann isst er 2 davon.",
        "Wie viele bleiben übrig?",
    ]


def test_abbreviations_and_formulas_end_no_sentence() -> None:
    assert sentences("Mr. Smith pays $3. Then $x = 1. 5$ holds.", "en") == [
        "Mr. Smith pays $3.",
        "Then $x = 1. 5$ holds.",
    ]
    assert sentences("他有 3 个。她呢？", "zh") == ["他有 3 个。", "她呢？"]


def test_names_are_found_in_every_script() -> None:
    for target, text in TRUE.items():
        assert {name.original for name in names_of(ENGLISH, text, "en", target)} == {"Janet", "Maria"}, target


def test_every_language_has_its_words() -> None:
    for lang in languages():
        meaning = lang.meaning
        assert meaning.more
        assert meaning.less
        assert meaning.negations
        assert meaning.thousands


@pytest.mark.parametrize(
    ("original", "target", "true", "changed", "what"),
    [
        (
            "The mouse jumped 9 inches lesser than the frog.",
            "fr",
            "La souris a sauté 9 pouces de moins que la grenouille.",
            "La souris a sauté 9 pouces de plus que la grenouille.",
            "comparisons",
        ),
        (
            "It can carry no more than 80 pounds.",
            "es",
            "No puede soportar más de 80 libras.",
            "Puede soportar 80 libras como mínimo.",
            "comparisons",
        ),
        (
            "Where 3 students fail to answer correctly, those who answer wrongly get 0 points.",
            "es",
            "Donde 3 estudiantes no responden correctamente, quienes responden incorrectamente obtienen 0 puntos.",
            "Donde 3 estudiantes responden correctamente, quienes responden incorrectamente obtienen 0 puntos.",
            "polarity",
        ),
        (
            "The roses must not be late, or the missing roses are paid for by 5 pm.",
            "fr",
            "Les roses ne doivent pas être en retard, ou les roses manquantes sont payées avant 17 heures.",
            "Les roses doivent être en retard, ou les roses manquantes sont payées avant 17 heures.",
            "polarity",
        ),
        (
            "To pay Sandra's rent, how much must Fred earn in 5 days?",
            "es",
            "¿Cuánto debe ganar Fred en 5 días para pagar el alquiler de Sandra?",
            "¿Cuánto debe ganar Sandra en 5 días para pagar el alquiler de Fred?",
            "entities",
        ),
        (
            "Darrell and Allen's ages are in the ratio of 7 to 11.",
            "de",
            "Das Verhältnis der Alter von Darrell und Allen ist 7 zu 11.",
            "Das Verhältnis der Alter von Allen und Darrell ist 7 zu 11.",
            "entities",
        ),
        (
            "He brings 4 letters to each of the 16 blocks.",
            "de",
            "In jeden der 16 Blöcke bringt er 4 Briefe.",
            "In jeden der 4 Blöcke bringt er 16 Briefe.",
            "order",
        ),
        (
            "He has 27 books in each of his 23 bookshelves.",
            "zh",
            "他的23个书架上每个书架有27本书。",
            "他的27个书架上每个书架有23本书。",
            "order",
        ),
        (
            "Mandy owes Benedict $100.",
            "es",
            "Mandy le debe $100 a Benedict.",
            "Benedict le debe $100 a Mandy.",
            "entities",
        ),
        (
            "Harry slept more than James.",
            "ru",
            "Гарри спал больше, чем Джеймс.",
            "Джеймс спал больше, чем Гарри.",
            "entities",
        ),
        (
            "Amy made 20 more friends than Ruth.",
            "ru",
            "Эми завела на 20 друзей больше, чем Рут.",
            "Рут завела на 20 друзей больше, чем Эми.",
            "entities",
        ),
    ],
)
def test_what_is_said_otherwise_passes_and_what_is_turned_does_not(
    original: str, target: str, true: str, changed: str, what: str
) -> None:
    assert broken(true, target, original) == set()
    assert what in broken(changed, target, original)


def test_an_adjective_that_another_language_says_without_a_negation_is_no_lost_one() -> None:
    assert broken("El resto de las 9 manzanas están verdes.", "es", "The rest of the 9 apples are unripe.") == set()
    assert broken("Der Rest der 9 Äpfel ist unreif.", "de", "The rest of the 9 apples are unripe.") == set()


def test_a_question_may_ask_first_where_a_statement_may_not() -> None:
    question = "How many coins has Mandy if Benedict has 20?"
    assert broken("Wenn Benedict 20 hat, wie viele Münzen hat Mandy?", "de", question) == set()
    assert broken("Benedict gibt 20 Münzen an Mandy.", "de", "Mandy gives Benedict 20 coins.") == {"entities"}


def test_two_names_whose_words_could_be_exchanged_say_nothing() -> None:
    names = names_of("Dan and Don met Tom.", "Дэн и Дан встретили Тома.", "en", "ru")
    assert [name.original for name in names] == ["Tom"]


@pytest.mark.parametrize(
    ("target", "true", "turned", "original"),
    [
        ("de", "Ihr gehen die Löffel aus.", "Sie hat Löffel.", "She was out of spoons."),
        ("es", "Él dejó de comprar pan.", "Él compró pan.", "He stopped buying bread."),
        ("zh", "他停止买面包了。", "他买面包了。", "He stopped buying bread."),
        ("fr", "20 % des oranges ne sont pas mûres.", "20 % des oranges sont mûres.", "20% of the oranges are unripe."),
    ],
)  # fmt: skip
def test_what_ends_or_is_lacking_is_said_so_or_denied(target: str, true: str, turned: str, original: str) -> None:
    assert broken(true, target, original) == set()
    assert broken(turned, target, original) == {"polarity"}


@pytest.mark.parametrize(
    ("target", "true", "turned", "original"),
    [
        (
            "es",
            "Cobró $40 en la primera mitad del año y un 10 % menos en la otra mitad.",
            "Cobró $40 en la primera mitad del año y un 10 % más en la otra mitad.",
            "She charged $40 in the first half of the year and 10% less in the other half.",
        ),
        (
            "ru",
            "Возраст Марка был на 5 лет больше, чем половина возраста Яна.",
            "Возраст Марка был на 5 лет меньше, чем половина возраста Яна.",
            "Mark's age was 5 years more than half of Jan's age.",
        ),
        (
            "es",
            "El tercer mes hubo tres veces más descargas que el primero.",
            "El tercer mes hubo tres veces menos descargas que el primero.",
            "In the third month there were three times as many downloads as in the first.",
        ),
        ("es", "¿Quién comió la mayor cantidad?", "¿Quién comió la menor cantidad?", "Who ate the most?"),
    ],
)  # fmt: skip
def test_a_number_keeps_its_direction(target: str, true: str, turned: str, original: str) -> None:
    assert "comparisons" not in broken(true, target, original)
    assert "comparisons" in broken(turned, target, original)


def test_a_direction_belongs_to_the_number_that_it_compares() -> None:
    said = dict(directions("She caught 5 fewer fish than Ann, and 2 more than Tom. She had 7 and not 9.", "en"))
    assert {int(min(values)): ways for values, ways in said.items()} == {5: {"less"}, 2: {"more"}}


@pytest.mark.parametrize(
    ("target", "true", "changed", "original"),
    [
        ("fr", "Tous les deux font 80 km.", "Tous les trois font 80 km.", "They both travel for 80 km."),
        ("de", "Es sind zwei Drittel davon.", "Es sind drei Drittel davon.", "It is two thirds of that."),
        (
            "ru",
            "В двух аквариумах в два раза больше рыб.",
            "В двух аквариумах в три раза больше рыб.",
            "The two tanks have twice as many fish.",
        ),
        ("zh", "她妈妈四舍五入到两元。", "她妈妈四舍五入到三元。", "Her mother rounds to two dollars."),
        ("es", "Tres cuartas partes bailan.", "Dos cuartas partes bailan.", "Three-fourths of them dance."),
        ("de", "Er braucht eineinhalb Minuten.", "Er braucht zweieinhalb Minuten.", "He takes a minute and a half."),
    ],
)  # fmt: skip
def test_a_number_in_words_is_another_in_its_own_sentence(target: str, true: str, changed: str, original: str) -> None:
    assert exchanged_words(Segment(original, true), "en", target) == []
    assert len(exchanged_words(Segment(original, changed), "en", target)) == 1
