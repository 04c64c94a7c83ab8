"""What is to be shown gives the answer away, in whatever way it is written; what is given or a property does not."""

from __future__ import annotations

import pytest

from curation.records import DropReason
from tests.curation.filters.statements.test_rules import verdict


@pytest.mark.parametrize(
    ("statement", "answer"),
    [
        ("Find the probability that two dice sum to 7. Show that it is $\\frac{1}{6}$.", "\\dfrac16"),
        ("How many primes are below 10? Show that it is four.", "4"),
        ("Evaluate $\\int_0^1 x dx$, showing that it equals $\\frac12$.", "1/2"),
        ("Find the sum of $1/n^2$ and show that it is equal to $\\frac{\\pi^2}{6}$.", "\\pi^2/6"),
        ("Determine the limit. Show that the limit of $n^{1/n}$, as $n$ goes to infinity, is $1$.", "1"),
        ("Find the value of $f(1)$ and show that $f(1)=3$.", "3"),
        ("What is the remainder of $5^{30}$ by 7? Show that it is 1.", "1"),
        ("Find the remainder. Show that the remainder is $\\frac16$.", "\\frac{1}{6}"),
        ("What is the length? Show that it is 12 cm.", "12"),
        ("Find the value of $x$. Show that it is $x = 4$ for all $n$.", "4"),
        ("Find the number of roots and show that it is (2).", "2"),
        ("Find $x$. Show that the value is $x = n$.", "n"),
    ],
)
def test_what_is_to_be_shown_is_given_away_however_it_is_written(statement: str, answer: str) -> None:
    assert verdict(statement, answer) == ("answer_to_show", DropReason.ANSWER_IN_STATEMENT)


@pytest.mark.parametrize(
    ("statement", "answer"),
    [
        ("Determine the maximum value of $f(0)$ and prove that this maximum is attained.", "3"),
        ("Find the minimum of $x+1/x$ for $x>0$ and show that it is attained only at $x=1$.", "2"),
        ("Show that the only such functions are $f(x)=cx$. Find $f(2)$ if $f(1)=3$.", "6"),
        ("What is the sum? A student showed that it is $12$, which is wrong.", "14"),
        ("Show that f(x)=2x+3 is 1-1 and find its inverse at 7.", "2"),
        ("Show that f(x)=2x+3 is 1-1 and find its inverse at 5.", "1"),
        ("Show that the map is 1-to-1 and find the number of its fixed points.", "1"),
        ("Show that the graph is 2-colourable and find its chromatic number.", "2"),
        ("Show that the number is the 3rd term and find its last digit.", "3"),
        ("Show that $f(x) = 2x+3$ is odd about $x_0$ and find $f(2)$.", "2"),
        ("Show that the sequence is $a_n = 3n - 1$ and find the index of the term 8.", "3"),
        ("Show that the sum is the n-th prime and find $n$ if it is 7.", "n"),
    ],
)
def test_a_proof_beside_a_value_gives_nothing_away(statement: str, answer: str) -> None:
    assert verdict(statement, answer) == (None, None)
