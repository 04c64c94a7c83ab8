"""What small samples leave open, and the statement or the samples' other relations decide."""

import pytest

from curation.programs.test_generation import InputMaker, infer_form, select_tests
from curation.programs.test_generation.borders import border_of, with_border
from curation.programs.test_generation.demands import promises
from curation.programs.test_generation.grammar import ArrayNode, LengthReference, LineNode, LinesNode
from curation.programs.test_generation.stated_counts import adds_unsaid, counted_values
from curation.programs.test_generation.stated_names import mentioned_names
from curation.programs.test_generation.stated_rules import Trust


def made_of(inputs: list[str], statement: str, count: int = 40) -> list[str]:
    maker = InputMaker(inputs, statement, 4096)
    return [one.text for one in maker.make(count, "7", careful=True)]


ROWS = """Input
The first line holds the integers $1 \\le N \\le 50$ and $0 \\le K \\le 90$.
The next line contains the $N$ integers $a_1, a_2, \\dots, a_N$.
The next line contains the $N$ integers $b_1, b_2, \\dots, b_N$. All are between $0$ and $99$.

Output
A number.
"""


def test_values_on_a_line_are_counted_as_the_statement_says() -> None:
    inputs = ["2 10\n1 12\n1 13\n", "2 10\n1 5\n1 4\n"]  # two lines of two numbers, by these alone
    assert counted_values(ROWS) == {"N"}
    form = infer_form(inputs, ROWS, careful=True)
    assert form is not None
    counted = LengthReference(0, 0)
    assert form.nodes[1:] == (ArrayNode(2, counted), ArrayNode(3, counted))
    made = made_of(inputs, ROWS)
    assert len(made) > 10
    for text in made:
        (head, *rows) = [line.split() for line in text.splitlines()]
        assert [len(row) for row in rows] == [int(head[0])] * 2, text


def test_no_line_more_than_a_number_says_unless_the_statement_says_so() -> None:
    nodes = (LineNode(0, 1), LinesNode(1, LengthReference(0, 1), 7))
    assert adds_unsaid(nodes, "Input\nOne line with seven integers, then $n$ lines with as many.")
    assert not adds_unsaid(nodes, "Input\nThen $n + 1$ lines with seven integers each.")


MAP = """Input
Two integers $3 \\le C \\le 9$ and $3 \\le R \\le 9$, then $R$ lines of $C$ characters, each '.' or '#'.
The edges of the map are always surrounded by '#'.

Output
A number.
"""


def test_the_border_of_a_map_is_kept() -> None:
    inputs = ["5 4\n#####\n#..##\n#.#.#\n#####\n", "3 3\n###\n#.#\n###\n", "4 3\n####\n#..#\n####\n"]
    made = made_of(inputs, MAP)
    assert len(made) > 5
    assert all(border_of(text.splitlines()[1:]) == {"#"} for text in made)
    assert any("." in text for text in made)
    # what the samples do not show is promised by nothing
    maker = InputMaker(["3 3\n...\n#.#\n###\n", *inputs], MAP, 4096)
    assert "surrounded" in str(maker.form(careful=True))


def test_a_border_has_three_rows_and_three_columns() -> None:
    assert border_of(["##", "##", "##"]) == frozenset()
    assert with_border(["...", "...", "..."], "#") == ["###", "#.#", "###"]


def test_names_that_pairs_name_were_listed() -> None:
    statement = (
        "Input\nTwo integers $n$ and $k$ with $1 \\le n \\le 17$ and $0 \\le k \\le 20$. Then follow $n$ lines with\n"
        "the names, and $k$ lines with a pair of names each. No pair of names appears twice.\n\nOutput\nA number.\n"
    )
    made = made_of(["3 2\nAda\nBob\nCarl\nAda Bob\nBob Carl\n", "2 1\nZoe\nAnna\nAnna Zoe\n"], statement)
    assert len(made) > 5
    for text in made:
        (head, *rows) = [line.split() for line in text.splitlines()]
        names, pairs = rows[: int(head[0])], rows[int(head[0]) :]
        assert {name for pair in pairs for name in pair} <= {name for row in names for name in row}, text
        assert len({frozenset(pair) for pair in pairs}) == len(pairs), text


def test_words_are_as_long_as_a_number_says_at_least() -> None:
    statement = (
        "Input\nAn integer $k$ ($1 \\le k \\le 100$), then a string of the characters 0 and 1.\n"
        "The length of the string will be at least $k$ and at most $100\\,000$.\n\nOutput\nA number.\n"
    )
    made = made_of(["1\n01\n", "4\n0110011\n"], statement)
    assert len(made) > 10
    assert all(int(k) <= len(word) for k, word in (text.split() for text in made))


def test_rows_of_digits_are_no_numbers() -> None:
    statement = "Input\nAn integer $2 \\le n \\le 60$, then $n$ lines of length $n$, each entry is 1, 2 or 3.\n"
    made = made_of(["4\n1223\n2123\n2213\n3212\n", "2\n12\n33\n"], statement)
    assert len(made) > 5
    for text in made:
        size, *rows = text.split()
        assert [len(row) for row in rows] == [int(size)] * int(size), text
        assert set("".join(rows)) <= set("123"), text


@pytest.mark.parametrize(
    "words", ["You can\nassume that the city has zones of all types.", "It is guaranteed\nthat X."]
)
def test_promises_are_seen_through_line_breaks(words: str) -> None:
    assert len(promises(f"Input\nOne integer $n$. {words}\n\nOutput\nA number.\n")) == 1


def test_many_cards_that_never_repeat_do_not_by_accident() -> None:
    statement = (
        "Input\nThe number of cards ($0 \\leq n \\leq 52$). Each of the next $n$ lines contains a number from $1$ to\n"
        "$13$ and one of the letters 'C', 'D', 'H', 'S'.\n\nOutput\nA number.\n"
    )
    cards = "".join(f"{rank} {suit}\n" for suit in "CDHS" for rank in range(1, 8))
    made = made_of([f"28\n{cards}"], statement)
    assert len(made) > 5
    assert all(len(set(rows := text.splitlines()[1:])) == len(rows) for text in made)


def test_names_in_the_order_of_mention() -> None:
    words = "Input\nThe limit $1 \\le L \\le 9$ and the number of events $0 \\le x \\le 9$ of the set $S$.\n"
    assert mentioned_names(words) == [["L", "x", "S"], ["L", "x"]]
    form = infer_form(["4 5\n", "9 1\n"], words, careful=True)
    assert form is not None
    assert form.named is not None
    assert form.named.trust is Trust.INTRODUCED
    assert not form.is_told
    # not where a value lies outside of what the formulas say
    other = infer_form(["4 50\n", "9 1\n"], words, careful=True)
    assert other is None or other.named is None


def test_no_known_wrong_program_is_lost_for_mutants() -> None:
    mutants = frozenset(range(-40, 0))
    failing = dict.fromkeys(range(5), mutants) | {9: frozenset({3})}
    assert 9 in select_tests([0, 1, 2, 3, 4, 9], failing, {}, 2, 2)


def test_words_of_which_nobody_says_how_they_are_spelt_are_those_seen() -> None:
    statement = (
        "Input\nOne line with a date such as FEB 9: a month, then a day from $1$ to $31$.\n\nOutput\nyes or no.\n"
    )
    made = made_of(["OCT 31\n", "FEB 9\n", "DEC 25\n"], statement)
    assert made
    assert {text.split()[0] for text in made} <= {"OCT", "FEB", "DEC"}
    spelt = statement.replace("month", "word of three upper-case letters")
    assert {text.split()[0] for text in made_of(["OCT 31\n", "FEB 9\n", "DEC 25\n"], spelt)} - {"OCT", "FEB", "DEC"}
