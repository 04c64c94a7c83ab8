"""What a translation must keep, by hand; `tests.gates.translations` has the figures."""

from collections.abc import Iterable, Iterator

import pytest

from curation.records import Domain, Outcome
from curation.translation.digits import changed_numbers, misread_thousands
from curation.translation.formulas import changed_code, changed_formulas, formulas_of
from curation.translation.invariants import ProblemText, broken, is_in_words, kept_texts, labels
from curation.verify.math_judge import MathJudge, ReferenceCheck
from tests.curation.tables import check_table

ORIGINAL = "Anna buys 12 apples for $3.50 each and 25 pears. How much does she pay for the apples?"
GERMAN = "Anna kauft 12 Äpfel zu je 3,50 $ und 25 Birnen. Wie viel bezahlt sie für die Äpfel?"


@pytest.fixture(scope="module")
def judge() -> Iterator[MathJudge]:
    """The verifier that looks at answers in words."""
    with MathJudge(workers=1) as judge:
        yield judge


def names(
    judge: MathJudge, translated: str, target: str = "de", original: str = ORIGINAL, answer: str | None = "42"
) -> set[str]:
    reasons = broken(ProblemText(original, answer), ProblemText(translated, answer), target, judge)
    return {reason.partition(":")[0] for reason in reasons}


def test_a_true_translation_passes_and_what_breaks_an_invariant_is_named(judge: MathJudge) -> None:
    def named(translated: str, target: str) -> list[str]:
        return sorted(names(judge, translated, target))

    assert named(GERMAN, "de") == []
    check_table("invariants broken", named)


def test_changed_numbers_are_named_and_thousands_that_are_decimals_to_the_reader_refused() -> None:
    check_table("changed numbers", changed_numbers)
    assert misread_thousands("1,000 Euro", "1,000 euros", decimal_comma=True) == "1,000"
    assert misread_thousands("1.000 Euro", "1,000 euros", decimal_comma=True) is None
    assert misread_thousands("1.000 元", "1,000 yuan", decimal_comma=False) == "1.000"
    assert misread_thousands("0,125 und 1,125", "0.125 and 1.125", decimal_comma=True) is None


def test_formulas_may_be_written_otherwise_but_not_changed() -> None:
    original = r"Let $\dfrac{a}{b} \le 2$ and $x_{1}, x_2$. Find \(\tan x\)."
    assert not changed_formulas(original, r"Пусть \( \frac{a}{b}\leq 2 \), $x_1$ и $x_2$. $\operatorname{tg} x$ = ?")
    assert changed_formulas(original, r"Пусть $\frac{a}{b}\leq 2$ и $x_1$, $x_2$. Найдите $\tan y$.")
    assert changed_formulas(original, r"Пусть $\frac{a}{b}\leq 2$ и $x_1$, $x_2$. Найдите.")
    assert not changed_formulas("Points $A$ and $B$.", "Punkte A und $B$.")
    assert changed_formulas("2 + 3 = ____", "2 + 3 =")
    assert formulas_of(r"costs $5 and $6 more") == []


def test_code_survives_to_the_letter() -> None:
    block = "Run:\n```python\nprint('a')\n```\nand `x = 1`."
    assert changed_code(block, block.replace("Run", "Führe aus").replace("and", "und")) is None
    assert all(changed_code(block, changed) for changed in (block.replace("'a'", "'b'"), block + " `y`"))


PROGRAM = """Read a number n and print its double.

Example input:
21
Example output:
42

def double(n: int) -> int:"""
PROGRAM_GERMAN = PROGRAM.replace("Read a number n and print its double.", "Lies eine Zahl n und gib ihr Doppeltes aus.")
PROGRAM_GERMAN = PROGRAM_GERMAN.replace("Example input", "Beispieleingabe").replace("Example output", "Beispielausgabe")


def test_examples_and_signatures_of_programs_stay_as_they_are() -> None:
    unchanged = kept_texts(PROGRAM, ["21\n", "42", "7", None, "def double(n: int) -> int:"])
    assert unchanged == ("21", "42", "def double(n: int) -> int:")
    original = ProblemText(PROGRAM, domain=Domain.CODE, unchanged=unchanged)

    def codes(translated: str) -> list[str]:
        return broken(original, ProblemText(translated, domain=Domain.CODE), "de", None)

    assert codes(PROGRAM_GERMAN) == []
    for old, new in (("\n42\n", "\n 42\n"), ("double(n", "doppelt(n"), ("\n21\n", " 21\n")):
        (reason,) = codes(PROGRAM_GERMAN.replace(old, new))
        assert reason.startswith("code: ")


def test_labels_of_options_stay(judge: MathJudge) -> None:
    original = "Which is prime?\n(A) 4\n(B) 5\n(C) 6"
    assert labels(original) == ["A", "B", "C"]
    assert names(judge, "Welche Zahl ist prim?\n(A) 4\n(B) 5\n(C) 6", original=original, answer="B") == set()
    assert "options" in names(judge, "Welche Zahl ist prim?\n(A) 4\n(C) 5\n(B) 6", original=original, answer="B")


def test_an_answer_in_words_keeps_its_numbers_and_can_be_verified(judge: MathJudge) -> None:
    question = ("On which day does the shop open again?", "An welchem Tag öffnet der Laden wieder?")

    def said(before: str, after: str | None) -> list[str]:
        return broken(ProblemText(question[0], before), ProblemText(question[1], after), "de", judge)

    assert all(map(is_in_words, ("Tuesday", "no", "红色")))
    assert not any(map(is_in_words, ("12", r"\frac{1}{2}", "AB", None)))
    assert said("Tuesday", "Dienstag") == []
    assert said("yes", "ja") == []
    assert said("Tuesday", None) == ["answer: the answer 'Tuesday' is gone"]
    assert said("5 days", "6 Tage")[0].startswith("answer: '5 days' became '6 Tage'")


@pytest.mark.parametrize("failed", [Outcome.TIMEOUT, Outcome.BROKEN])
def test_the_verifiers_own_failure_is_no_wrong_answer(failed: Outcome) -> None:
    class Failing(MathJudge):
        def check(self, references: Iterable[tuple[str, str]]) -> Iterator[ReferenceCheck]:
            yield from (ReferenceCheck(False, failed, "killed") for _ in references)

    original, german = "On which day does the shop open again?", "An welchem Tag öffnet der Laden wieder?"
    (found,) = broken(ProblemText(original, "Tuesday"), ProblemText(german, "Dienstag"), "de", Failing(workers=1))
    assert found.startswith("verifier: ")
    assert failed.value in found


def test_languages_without_a_file_are_told_apart(judge: MathJudge) -> None:
    portuguese = "A Ana compra 12 maçãs por $3,50 cada e 25 peras. Quanto paga ela pelas maçãs?"
    japanese = "アンナは1個3.50ドルのりんごを12個と梨を25個買います。りんごにいくら払いますか。"
    assert names(judge, portuguese, "pt") == set()
    assert names(judge, japanese, "ja") == set()
    assert "language" in names(judge, portuguese, "ja")
    assert "language" in names(judge, japanese, "pt")
