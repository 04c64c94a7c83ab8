"""What a translation must keep: one invariant a test, by hand, then the parallel problems of MGSM."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from curation.planting.translations import CORRUPTIONS, TranslatedPair
from curation.translation.numerals import in_digits, in_words, plain_digits
from curation.translation.quantities import numbers, units

from curation.records import Outcome
from curation.translation import INVARIANTS, CheckedText, check_translation
from curation.translation.formulas import code, formulas, formulas_of, variables
from curation.translation.invariants import labels
from curation.translation.prose import leftovers
from curation.verify import judge_worker
from curation.verify.math_judge import MathJudge, ReferenceCheck
from curation.verify.worker import Guard
from tests.benchmarks.translation_sets import shared
from tests.places import SHARED_DATA

DATA = SHARED_DATA
ORIGINAL = "Anna buys 12 apples for $3.50 each and twenty-five pears. How much does she pay for the apples?"
GERMAN = "Anna kauft 12 Äpfel zu je 3,50 $ und fünfundzwanzig Birnen. Wie viel bezahlt sie für die Äpfel?"


@pytest.fixture(scope="module")
def judge() -> Iterator[MathJudge]:
    """The verifier that looks at answers in words."""
    with MathJudge(workers=1) as judge:
        yield judge


def broken(
    judge: MathJudge, translated: str, target: str = "de", original: str = ORIGINAL, answer: str | None = "42"
) -> set[str]:
    return {
        one.invariant
        for one in check_translation(CheckedText(original, answer), CheckedText(translated, answer), target, judge)
    }


def test_a_true_translation_passes(judge: MathJudge) -> None:
    assert broken(judge, GERMAN) == set()


@pytest.mark.parametrize(
    ("translated", "target", "what"),
    [
        (GERMAN.replace("12", "13"), "de", "numbers"),
        (GERMAN.replace("fünfundzwanzig", "sechsundzwanzig"), "de", "numbers"),
        (GERMAN.replace("3,50 $", "3,50 €"), "de", "units"),
        (GERMAN.replace("Anna kauft", "Anna buys 12 apples for $3.50 each and twenty-five pears. Anna kauft"), "de",
         "leftovers"),
        (GERMAN, "fr", "language"),
        (f"{GERMAN} Antwort: 42", "de", "added_solution"),
        (f"{GERMAN} 42", "de", "numbers"),
        (f"{GERMAN} Sie rechnet die Preise zusammen.", "de", "added_solution"),
        ("Wie viel bezahlt sie?", "de", "length"),
    ],
)  # fmt: skip
def test_what_breaks_an_invariant_is_named(judge: MathJudge, translated: str, target: str, what: str) -> None:
    assert what in broken(judge, translated, target)
    assert what in INVARIANTS


@pytest.mark.parametrize(
    ("lang", "text", "values"),
    [
        ("en", "twenty-five, one hundred and five, two thirds of half a dozen", [25, 105, Fraction(2, 3), 6]),
        ("fr", "quatre-vingt-dix-sept, deux cent trois, vingt et un", [97, 203, 21]),
        ("es", "treinta y uno, doscientos cinco, la mitad", [31, 205, Fraction(1, 2)]),
        ("it", "ventitré, duemila, trecentocinque", [23, 2000, 305]),
        ("de", "fünfundzwanzig, zweihundert, dreitausend, anderthalb", [25, 200, 3000, Fraction(3, 2)]),
        ("ru", "двадцать пять, две тысячи, трёх", [25, 2000, 3]),
        ("zh", "三百零五个，三分之二，一百二十万，二〇一九年", [305, Fraction(2, 3), 1200000, 2019]),
    ],
)
def test_numbers_in_words(lang: str, text: str, values: list[int | Fraction]) -> None:
    assert in_words(text, lang) == values


@pytest.mark.parametrize(
    ("lang", "text", "values"),
    [
        ("de", "2.000", {2000, 2}), ("fr", "2\u202f000", {2000}), ("de", "1.234,5", {Fraction("1234.5")}),
        ("zh", "3万", {30000}), ("en", "3/4", {Fraction(3, 4)}), ("en", "½", {Fraction(1, 2)}), ("en", "5 pm", {5, 17}),
        ("en", ".5 hours", {Fraction(1, 2)}), ("fr", r"2{,}5", {Fraction("2.5")}), ("ru", "2 млн", {2000000}),
    ],
)  # fmt: skip
def test_numbers_in_digits(lang: str, text: str, values: set[int | Fraction]) -> None:
    (token,) = in_digits(plain_digits(text), lang)
    assert token.values == values


def test_numbers_are_counted_and_words_serve_for_digits() -> None:
    assert numbers("3 cats and 3 dogs", "3 chats et 3 chiens", "en", "fr") == []
    assert numbers("3 cats and 3 dogs", "3 chats et des chiens", "en", "fr")
    assert numbers("3 cats and 2 dogs", "trois chats et deux chiens", "en", "fr") == []
    assert numbers("a dozen eggs", "12 œufs", "en", "fr") == []
    assert numbers("on May 3", "5 月 3 日", "en", "zh") == []
    assert numbers("a 25% discount", "七五折", "en", "zh") == []
    assert numbers("n = 2,3,4", "n = 2, 3, 4", "en", "it") == []


def test_units_may_be_said_in_the_other_language() -> None:
    assert units("She bakes 3 pies", "她烤了3个馅饼", "en", "zh") == [], "pies are feet in Spanish alone"
    assert units("He runs 5 km for $20", "Il court 5 kilomètres pour 20 dollars", "en", "fr") == []
    (one,) = units("He runs 5 miles", "Il court 5 km", "en", "fr")
    assert one.evidence == "mile became km"
    assert units("He pays $ x $ and $5$ is a formula", "Er zahlt $x$, und $5$ ist eine Formel", "en", "de") == []


def test_formulas_may_be_written_otherwise_but_not_changed() -> None:
    original = r"Let $\dfrac{a}{b} \le 2$ and $x_{1}, x_2$. Find \(\tan x\)."
    assert formulas(original, r"Пусть \( \frac{a}{b}\leq 2 \), $x_1$ и $x_2$. Найдите $\operatorname{tg} x$.") == []
    assert formulas(original, r"Пусть $\frac{a}{b}\leq 2$ и $x_1$, $x_2$. Найдите $\tan y$.")
    assert formulas(original, r"Пусть $\frac{a}{b}\leq 2$ и $x_1$, $x_2$. Найдите.")
    assert formulas("Points $A$ and $B$.", "Punkte A und $B$.") == []
    assert formulas_of(r"costs $5 and $6 more") == []


def test_variables_and_code_survive() -> None:
    assert variables("A number n and a point P.", "Eine Zahl n und ein Punkt P.") == []
    assert variables("A number n and a point P.", "Eine Zahl m und ein Punkt P.")
    assert variables("t-shirts of TV 4", "Hemden") == []
    block = "Run:\n```python\nprint('a')\n```\nand `x = 1`."
    assert code(block, block.replace("Run", "Führe aus").replace("and", "und")) == []
    assert code(block, block.replace("'a'", "'b'"))


def test_labels_of_choices_stay(judge: MathJudge) -> None:
    original = "Which is prime?\n(A) 4\n(B) 5\n(C) 6"
    assert labels(original) == ["A", "B", "C"]
    assert broken(judge, "Welche Zahl ist prim?\n(A) 4\n(B) 5\n(C) 6", original=original, answer="B") == set()
    assert "choices" in broken(judge, "Welche Zahl ist prim?\n(A) 4\n(C) 5\n(B) 6", original=original, answer="B")


def test_the_answer_still_verifies(judge: MathJudge) -> None:
    question = ("On which day does the shop open again?", "An welchem Tag öffnet der Laden wieder?")

    def said(before: str, after: str | None) -> set[str]:
        return {
            one.invariant
            for one in check_translation(CheckedText(question[0], before), CheckedText(question[1], after), "de", judge)
        }

    assert said("Tuesday", "Dienstag") == set()
    assert said("Tuesday", "Tuesday") == {"answer"}
    assert said("yes", "yes") == {"answer"}
    assert said("yes", "ja") == set()
    assert said("Brenda", "Brenda") == set()
    assert said("12", "12") == set()
    assert said(r"\frac{1}{2}", r"\frac{1}{2}") == set()
    assert said("12", "13") == {"answer"}
    assert said("12", None) == {"answer"}
    assert said("5 days", "6 Tage") == {"answer"}


@pytest.mark.parametrize("failed", [Outcome.TIMEOUT, Outcome.BROKEN])
def test_the_verifiers_own_failure_is_no_wrong_answer(failed: Outcome) -> None:
    class Failing:
        def check(self, references: Iterable[tuple[str, str]]) -> Iterator[ReferenceCheck]:
            yield from (ReferenceCheck(False, failed, "killed") for _ in references)

    question = (
        CheckedText("On which day does the shop open again?", "Tuesday"),
        "An welchem Tag öffnet der Laden wieder?",
    )
    (found,) = check_translation(question[0], CheckedText(question[1], "Dienstag"), "de", Failing())
    assert found.invariant == "verifier"
    assert failed.value in found.evidence


def never_ends(job: dict[str, Any], guard: Guard) -> dict[str, Any]:
    """Do a job as the verifier does, on an answer that takes for ever; in a worker, which is this test's own."""

    def spin(reference: str, lang: str) -> None:
        while True:
            pass

    judge_worker.answers.check_reference = spin
    return judge_worker.run(job, guard)


def test_an_answer_that_takes_too_long_is_killed_and_said_to_be() -> None:
    judge = MathJudge(workers=1, limit_s=0.1)
    judge._pool.target = f"{__name__}:never_ends"
    with judge:
        (found,) = check_translation(
            CheckedText("What is it?", "the sum of all"), CheckedText("Was ist es?", "die Summe aller"), "de", judge
        )
    assert found.invariant == "verifier"
    assert "timeout" in found.evidence


def _planted(pair: Any) -> TranslatedPair:
    return TranslatedPair(pair.id, pair.original, pair.translated, pair.target, pair.answer, pair.others)


def test_the_parallel_problems(judge: MathJudge) -> None:
    path = DATA / "math" / "mgsm.jsonl"
    if not path.is_file():
        pytest.skip(f"no {path}; set GOLDILOCKS_DATA to the folder that holds math/")
    found = shared(path)[::4]
    passed = [
        not check_translation(CheckedText(p.original, p.answer), CheckedText(p.translated, p.answer), p.target, judge)
        for p in found
    ]
    assert sum(passed) / len(passed) >= 0.95  # MGSM has wrong ones, too: pounds as kilos, a month as a week
    for kind in ("number changed", "sentence left", "wrong language", "answer appended", "formula dropped"):
        chance = random.Random(kind)
        made = [(pair, CORRUPTIONS[kind](_planted(pair), chance)) for pair in found[::3]]
        caught = [
            bool(
                check_translation(
                    CheckedText(pair.original, pair.answer), CheckedText(bad, pair.answer), pair.target, judge
                )
            )
            for pair, bad in made
            if bad is not None and bad != pair.translated
        ]
        assert sum(caught) >= 0.99 * len(caught), kind


def test_a_short_sentence_of_words_that_both_languages_have_is_translated() -> None:
    assert leftovers("Dan has $ 4. He buys a cake.", "Dan a 4 dollars. Il achète un gâteau.", "en", "fr") == []
    assert leftovers("Tom walks 4 miles. He buys a cake.", "Tom walked four miles. Il achète un gâteau.", "en", "fr")
