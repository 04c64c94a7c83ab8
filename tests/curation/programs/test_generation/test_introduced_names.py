"""Names that a description introduces by their limits, behind one noun, or not at all; what is drawn from them."""

import pytest

from curation.programs.test_generation import InputMaker, infer_form
from curation.programs.test_generation.introduced_names import introduced_names
from curation.programs.test_generation.stated_names import stated_names
from curation.programs.test_generation.stated_rules import Rule, Trust, stated_rules


def described(words: str) -> str:
    return f"A task.\n\nInput\n{words}\n\nOutput\nOne number.\n"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("An integer $1 \\le N \\le 9$, the size of the sequence $A$, and $1 \\le L \\le 5$, a length.", ["N", "L"]),
        ("One line with $n$ ($1 \\le n \\le 16$) and $p$ ($1 \\le p \\le n$).", ["n", "p"]),
        (
            "The integers $n$ ($1 \\le n \\le 9$), $k$ ($1 \\le k \\le 3$), $a$ and $b$ ($0 \\le a,b \\le 2$).",
            [*"nkab"],
        ),
        ("Each description contains two numbers $0 \\le a \\le b \\le 1\\,000$.", ["a", "b"]),
        ("The number of cards in your hand ($0 \\leq n \\leq 52$), of lower rank than rank $a$.", ["n"]),
        ("The number of candidates $C$ and parties $P$ ($1 \\le P \\le 9$).", ["C", "P"]),
        ("The first two lines contain the strings $S_1$ respectively $S_2$.", ["S_1", "S_2"]),
        ("$N$ integers $a_1, \\dots, a_N$ ($1 \\le a_i \\le 5$ for each $i$), and the $i$-th of them.", ["a"]),
    ],
)
def test_what_is_introduced(words: str, names: list[str]) -> None:
    assert introduced_names(described(words)) == [names]


def test_columns_without_a_name_are_counted_too() -> None:
    words = "A single integer $2 \\leq n \\leq 30$. The second line contains $n-1$ integers giving the sheets."
    assert introduced_names(described(words)) == [["n"], ["n", "?1"]]


BOILING = described(
    "An integer $1 \\le N \\le 1\\,000$. Then, $N$ descriptions of a boiling follow. Each contains two numbers\n"
    "$0 \\le a \\le b \\le 1\\,000$: Edward looked away during seconds $[a, b]$."
)


def test_limits_of_introduced_names_are_drawn_from_and_formulas_kept() -> None:
    samples = ["2\n1 7\n5 5\n", "3\n4 6\n4 8\n7 8\n"]
    assert stated_names(BOILING) == ["N", "a"]
    form = infer_form(samples, BOILING, careful=True)
    assert form is not None
    assert form.named is not None
    assert form.named.trust is Trust.INTRODUCED
    assert form.named.columns == {"N": 0, "a": 1, "b": 2}
    assert form.allows("1\n0 0\n")  # that none of two lists begins with a zero is an accident
    assert form.allows("2\n9 1000\n1 2\n")  # as that they are sorted
    assert not form.allows("1\n5 4\n")
    assert not form.allows("1\n5 1001\n")
    made = [one.text for one in InputMaker(samples, BOILING, 4096).make(60, "7", careful=True)]
    rows = [tuple(map(int, row.split())) for text in made for row in text.splitlines()[1:]]
    assert len(made) > 20
    assert all(0 <= a <= b <= 1000 for a, b in rows)
    assert max(b for _, b in rows) == 1000
    assert min(a for a, _ in rows) == 0


def test_a_given_input_outside_of_the_formulas_tells_that_names_were_misread() -> None:
    form = infer_form(["2\n1 7\n5 5000\n"], BOILING, careful=True)
    assert form is None or form.named is None


def test_numbers_that_words_call_distinct() -> None:
    rules = stated_rules(
        described("The numbers $m_1$, $m_2$, $m_3$ are all primes and distinct. $a$ and $b$ are even.")
    )
    assert rules == [Rule("m_1", "!=", "m_2"), Rule("m_1", "!=", "m_3"), Rule("m_2", "!=", "m_3")]


def test_words_are_no_longer_than_a_number_of_letters() -> None:
    words = (
        "The height of the tree $H$, $1\\le H\\le 30$ and a string of the letters 'L' and 'R', of at most $H$ letters."
    )
    made = [
        one.text.split()
        for one in InputMaker(["3 LR\n", "3 RRL\n"], described(words), 4096).make(40, "7", careful=True)
    ]
    assert len(made) > 10
    assert all(len(word) <= int(height) for height, word in made)
