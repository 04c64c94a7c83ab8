"""Names and formulas of a statement: which column each name is, which ranges and rules they give."""

from __future__ import annotations

import string

import pytest

from curation.programs.test_generation.demands import (
    is_unforeseen_refusal,
    promises,
    required_letters,
    stated_alphabet,
    stated_total,
)
from curation.programs.test_generation.forms import InputForm, infer_form, inputs_breaking_the_statement
from curation.programs.test_generation.making import InputMaker, new_inputs
from curation.programs.test_generation.negatives import rule_breaking_inputs
from curation.programs.test_generation.stated_names import stated_names
from curation.programs.test_generation.stated_rules import Rule, stated_rules

GRAPH = r"""Input

- One line with two integers $n$ and $m$ ($2 \leq n \leq 2\cdot10^5$, $1\leq m \le 500\,000$), the numbers of nodes.
- $m$ lines, each with two integers $a$ and $b$ ($1\le a,b\le n$, $a \neq b$).

Output
"""
EDGES = ["3 2\n1 2\n2 3\n", "4 3\n1 2\n1 3\n4 1\n"]


def form_of(inputs: list[str], statement: str) -> InputForm:
    form = infer_form(inputs, statement, careful=True)
    assert form is not None
    return form


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("two integers $n$ and $m$ ($1 \\le n, m$), then $n$ integers $a_1, \\ldots, a_n$", ["n", "m", "a"]),
        ("containing three integers $x_1, x_2, y$ ($x_1 \\le x_2$)", ["x_1", "x_2", "y"]),
        ("an integer $1 \\le n \\le 400\\,000$, the number", ["n"]),
        ("one real number $p$ and two integers $b$ and $s$", ["p", "b", "s"]),
        ("one string $s$ containing letters, where $k$ of them", ["s"]),
        ("two integers $u_i$ and $v_i$", ["u", "v"]),
    ],
)
def test_names_of_what_is_read(words: str, names: list[str]) -> None:
    assert stated_names(words) == names


@pytest.mark.parametrize(
    ("formula", "rules"),
    [
        ("$1 \\le k < n \\leq 2 \\cdot 10^{5}$", ["1 <= k", "k < n", "n <= 2 * 10^5"]),
        ("$1 \\le d,s \\le 10^6, s + d < e$", ["1 <= d", "1 <= s", "d <= 10^6", "s <= 10^6", "s + d < e"]),
        ("$(1\\leq n \\leq 500\\,000)$", ["1 <= n", "n <= 500000"]),
        ("$-n \\leq x_1 \\leq x_2$ and $a_i \\neq b_i$", ["-n <= x_1", "x_1 <= x_2", "a != b"]),
        ("$a_1 + \\dots + a_n \\le 10$", []),
    ],
)
def test_formulas(formula: str, rules: list[str]) -> None:
    assert [rule.text for rule in stated_rules(formula)] == rules


def test_a_rule_is_evaluated_with_powers_products_and_magnitudes() -> None:
    assert Rule("2(n+1)", "<=", "3*10^2").holds({"n": 149})
    assert not Rule("2(n+1)", "<=", "3*10^2").holds({"n": 150})
    assert Rule("|x-y|", "=", "1").holds({"x": 3, "y": 4})
    assert Rule("1.5 * 10^5", "=", "150000").holds({})
    with pytest.raises(ValueError, match="not known"):
        Rule("n", "<", "m").holds({"n": 1})


def test_names_are_columns_only_where_every_rule_holds_in_every_given_input() -> None:
    form = form_of(EDGES, GRAPH)
    assert form.named is not None
    assert dict(form.named.columns) == {"n": 0, "m": 1, "a": 2, "b": 3}
    assert (form.columns[0].low, form.columns[0].high) == (2, 200_000)
    assert form_of(["3 1\n1 7\n", "4 2\n1 7\n2 3\n"], GRAPH).named is None


def test_new_inputs_keep_the_rules_and_use_the_stated_range() -> None:
    texts = new_inputs(EDGES, GRAPH, 40, "seed", 4000, careful=True)
    rows = [[list(map(int, line.split())) for line in text.splitlines()] for text in texts]
    assert len(texts) >= 20
    assert all(1 <= a <= r[0][0] and 1 <= b <= r[0][0] and a != b for r in rows for a, b in r[1:])
    assert max(r[0][0] for r in rows) > 1000  # the given ones go to 4
    assert any(a > b for r in rows for a, b in r[1:])


def test_the_rules_that_a_validator_must_check_are_broken_one_at_a_time() -> None:
    broken = rule_breaking_inputs(EDGES, GRAPH)
    assert {rule.text for rule in broken.values()} >= {"1 <= a", "a <= n", "b <= n", "a != b"}
    form = form_of(EDGES, GRAPH)
    assert not any(form.allows(text) for text in broken)
    assert rule_breaking_inputs(EDGES, "no formula") == {}


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("It is guaranteed that all $x_i$ are distinct.", 0),
        ("It is guaranteed that the graph is connected.", 0),
        ("It is guaranteed that all bars have different heights at every moment.", 1),
        ("It is guaranteed that no price appears more than once and that each has at least one offer.", 1),
        ("It is guaranteed that the string is the result of a word written three times.", 1),
        ("The word will contain at least one lowercase vowel.", 1),
        ("Note that every house has at least one knight.", 0),
        ("None of the discs touch or overlap.", 1),
        ("The fences don't cross.", 1),
        ("The knights do not count.", 0),
        ("They pay tolls in order to guarantee that a route is possible.", 0),
        ("It is not guaranteed that every crossing has a light.", 0),
        ("The string will contain at least $1$ and at most $1\\,000$ characters.", 0),
        ("It is guaranteed that the total, i.e. the length of all words, is pretty.", 1),
    ],
)
def test_promises_that_nothing_expresses(words: str, count: int) -> None:
    assert len(promises(f"Input\n\nOne line.\n\n{words}\n\nOutput\n")) == count


def test_numbers_of_lines_that_the_statement_names_count_lines() -> None:
    words = "Input\n\nTwo integers $n$ and $m$ ($1 \\leq m \\leq n \\leq 9$).\n\n"
    words += "{lines}two integers $a$ and $b$\n({limits}).\n"
    limits = "$1 \\leq a, b \\leq 1000$"
    read = infer_form(["3 1\n1 2\n"], words.format(lines="Then a line with ", limits=limits), careful=True)
    assert read is not None
    assert read.is_told
    several = words.format(lines="Each of the next $m$ lines contains ", limits=limits)
    one_row, rows = "3 1\n1 2\n", ["3 1\n1 2\n", "4 2\n5 6\n7 8\n", "5 3\n9 9\n9 9\n1 2\n"]
    assert infer_form([one_row], several, careful=True) is None
    form = infer_form(rows, several, careful=True)
    assert form is not None
    assert form.is_told
    assert form.allows("6 2\n5 6\n7 8\n")
    assert not form.allows("6 2\n5 6\n")


def test_why_nothing_careful_is_made_is_said() -> None:
    maker = InputMaker(EDGES, GRAPH.replace("Output", "It is guaranteed that ships never touch.\n\nOutput"), 1000)
    assert maker.make(8, "seed", careful=True) == []
    assert "ships never touch" in str(maker.form(careful=True))
    assert str(InputMaker(["say hello to Bob\n", "hello\n"], "", 1000).form(careful=True)) == (
        "the given inputs do not tell their form"
    )


def test_a_formula_of_known_names_keeps_its_promise() -> None:
    statement = GRAPH.replace("Output", "It is guaranteed that $m < 3n$.\n\nOutput")
    texts = new_inputs(EDGES, statement, 20, "seed", 4000, careful=True)
    assert texts
    assert all(int(text.split()[1]) < 3 * int(text.split()[0]) for text in texts)


def test_totals_and_letters() -> None:
    assert stated_total("It is guaranteed that the sum of $n$ over all test cases is at most $10^6$.") == 10**6
    assert stated_total("The total length of the text is not greater than $2 \\cdot 10^5$.") == 200_000
    assert stated_total("the length is at most $10^6$") is None
    assert stated_alphabet("a string of lowercase letters") == "abcdefghijklmnopqrstuvwxyz"
    assert stated_alphabet("uppercase letters A-Z")[:3] == "ABC"
    assert stated_alphabet("the characters h, d, c, and s") == ""


def test_words_that_the_statement_lists_are_all_there_are() -> None:
    statement = (
        'Input\n\nA line with a string $s$, one of "circle" or "square", and an integer $a$ ($1 \\le a \\le 9$).\n'
    )
    texts = new_inputs(["circle 2\n", "square 4\n", "circle 1\n"], statement, 20, "seed", 100, careful=True)
    assert texts
    assert {text.split()[0] for text in texts} <= {"circle", "square"}


def test_a_block_of_fixed_size_is_one() -> None:
    grids = ["..x\nx..\n.x.\n2 3\n", "xxx\n...\nx.x\n1 1\n", "...\n...\nxx.\n3 2\n"]
    texts = new_inputs(grids, "", 20, "seed", 200, careful=True)
    assert texts
    assert all([len(line) for line in text.splitlines()[:3]] == [3, 3, 3] for text in texts)
    assert any(text.splitlines()[:3] not in [grid.splitlines()[:3] for grid in grids] for text in texts)


@pytest.mark.parametrize(
    ("sentence", "inputs", "letters"),
    [
        ("The word will contain at least one lowercase vowel.", ["cat\n", "Sky e\n"], [set("aeiou")]),
        ("It holds at least one uppercase letter.", ["aB\n"], [set(string.ascii_uppercase)]),
        ("It has at least one digit.", ["a1\n"], [set(string.digits)]),
        ("The map contains at least one land cell.", ["2 2\n#.\n..\n", "1 2\n#.\n"], [{"#"}, {"."}]),
        ("The text contains at least one palindrome.", ["some words here\n"], []),
        ("The map contains at least one ship and no two ships touch.", ["#.\n"], []),
        ("Each house has a knight.", ["#.\n"], []),
    ],
)
def test_what_every_input_must_contain(sentence: str, inputs: list[str], letters: list[set[str]]) -> None:
    assert [set(one) for one in required_letters(sentence, inputs)] == letters


def test_new_inputs_contain_what_is_promised() -> None:
    promise = "It will contain at least one lowercase vowel."
    statement = f"Input\n\nOne line with a word of at most $8$ letters a-z.\n\n{promise}\n\nOutput\n"
    texts = new_inputs(["cat\n", "gin\n", "owl\n", "tree\n"], statement, 20, "seed", 100, careful=True)
    assert len(texts) >= 10
    assert all(set(text) & set("aeiou") for text in texts)


@pytest.mark.parametrize(
    ("output", "statement", "outputs", "unforeseen"),
    [
        ("impossible\n", "A solution exists.", ["+-=x\n"], True),
        ("impossible\n", "Print `Impossible` if there is none.", ["3\n"], False),
        ("-1\n", "The answer is the sum.", ["3\n", "-1\n"], False),
        ("-1\n", "Print the length, or $-1$ if there is no path.", ["3\n"], False),
        ("-1\n", "There are $n-1$ roads.", ["3\n"], True),
        ("\n", "Print the word.", ["abc\n"], True),
        ("4\n", "", ["3\n"], False),
    ],
)
def test_a_refusal_of_which_nothing_was_said(output: str, statement: str, outputs: list[str], unforeseen: bool) -> None:
    assert is_unforeseen_refusal(output, statement, outputs) is unforeseen


def test_a_word_that_reads_as_a_number_without_end_is_a_word() -> None:
    statement = "Input\n\nA word $s$ ($1 \\leq |s| \\leq 8$).\n\nOutput\n\nIts length.\n"
    words = ["abc\n", "infinity\n", "de\n", "nan\n", "f\n"]
    assert inputs_breaking_the_statement(words, statement) == frozenset()
    assert inputs_breaking_the_statement([*words, "infinitely\n"], statement) == {5}


def test_both_of_two_unequal_names_lie_between_the_ends() -> None:
    told = {rule.text for rule in stated_rules("$1 \\le a \\not= b \\le N$")}
    assert told == {"a != b", "1 <= a", "1 <= b", "a <= N", "b <= N"}
    assert [rule.text for rule in stated_rules("$a \\neq b$")] == ["a != b"]
    assert stated_names("two integers $1 \\le a \\not= b \\le N$") == ["a", "b"]
