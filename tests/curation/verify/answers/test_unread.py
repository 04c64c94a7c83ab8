r"""Nothing is dropped silently: what reading leaves out of a text makes an answer doubtful, never equal."""

from __future__ import annotations

import pytest

from curation.records import Outcome
from curation.verify import answers
from curation.verify.answers.reading import parse_readings
from curation.verify.answers.words import parse_boolean, parse_choice
from tests.curation.verify.answers.corpus import own_references

DIFFERENT = r"""
2^{2^l} \text{ for } l=1,2,4,8 | 2^{2^l} \text{ for } l=1,2,4,9
P(x)=c x, where c \ne -1 | P(x)=cx, where c \ne 1
P(x)=c x, where c \ne -1 | P(x)=cx
k=-4,-2 | m=-4,-2
150,000 | 150,-000
13 \text{ cm}^2 | 13 \text{ cm}\cdot 2
60 km/h | 60 km/q
C: \{0, 1\} | C: \{0, 8\}
x \equiv 17 \pmod{343} | x \equiv 17 \pmod{348}
n \equiv 0,1 \pmod 4 | n \equiv 0,1 \pmod 3
x \equiv 17 \pmod{343} | 17
21 r. 42 c. | 21 r. 41 c.
-2f'(0) | -5f'(0)
\frac12 \max A | \frac12 \min A
\frac{100}{3} \approx 33.33\% | \frac{100}{3} \approx 53.33\%
(1, y) for any natural y and (2, 2) | (1, y) for any natural y and (4, 2)
Yes. F = 4x^2y+3 | Yes. F = 4x^2y-3
Yes, if n is even | Yes
R=0, converges only when x=2 | R=7, converges only when x=2
Yes, \begin{pmatrix}1&2\\3&4\end{pmatrix} | Yes, \begin{pmatrix}1&2\\3&5\end{pmatrix}
\neq 5 | 5
> 5 | 5
5\text{ over }6 | 5
5\text{ plus }6 | 5
5\text{ dozen} | 5
5\text{ is wrong} | 5
3\text{ fifths} | 3
5 \text{ if } x>0 | 5
True, False | True
(A) or (B) | A
f' | no
12 \text{ red apples} | 12 \text{ green apples}
xy+yz+zx+3 | 3
z = 1 + 1 = 2 | z = 0 + 1 = 2
\{(a,b): ab \ge 3\} | \{(a,c): ab \ge 3\}
\{2k \mid k \in \mathbb{Z}\} | \{3k \mid k \in \mathbb{Z}\}
k\pi, k \in \mathbb{Z} | k\pi, k \in \mathbb{N}
f(x)=x+a \text{ for any constant } a | f(x)=x+a \text{ for any constant } y
x+y=5 | 5
5\text{ factorial} | 5
5 \text{ squared} | 5
5 \text{ thousandths} | 5
x < 5 cm | x < 5 km
[1 cm, 5 cm] | [1 km, 5 km]
20\% \text{ increase} | 20\% \text{ decrease}
3 \text{ R } 2 | 3
7 \text{ r } 3 | 7 \text{ r } 4
x=2, x \ne 3 | x=2
x \in \mathbb{R}, x \ne 0 | x \in \mathbb{R}
"""
SAME = r"""
2^a 3^b 5^c | 2^a \cdot 3^b \cdot 5^c
$2^a 3^b 5^c$ | 2^a3^b5^c
\lceil\frac n3\rceil | \lceil n/3\rceil
n 2^{n-1} | n \cdot 2^{n-1}
n2^{n-1} | n \cdot 2^{n-1}
2^6 3^5 | 15552
113 | \boxed{m+n=113}
5 | \det A=5
f(m)=2m+1 | f(n)=2n+1
\mathbf{5} | 5
\color{red}{5} | 5
\textcolor{red}{5} | 5
\underline{5} | 5
40\ {cm}^3 | 40 \mathrm{~cm}^3
40\ {cm}^3 | 40
k\pi, k\in\mathbb{Z} | k\pi
k\pi \text{ where } k \text{ is any integer} | k\pi, k \in \mathbb{Z}
5 apples | 5
5\text{ dozen} | 60
3\text{ fifths} | 3/5
x = 1, 2 | x=1 \text{ or } x=2
x = 1, 2 | 1, 2
A(1,2) | (1,2)
\{x \mid x > 1\} | (1,\infty)
x \in \mathbb{R} | \mathbb{R}
\frac{100}{3} \approx 33.33 | \frac{100}{3}
x \equiv 3 \pmod 7 | x \equiv 10 \pmod 7
"""
FOREIGN = (r" \text{ for } q > 7", r" \text{, unless } 7 \text{ blargs}", r" \text{ zumbles } q^2")


def pairs(text: str) -> list[tuple[str, str]]:
    return [(left, right) for left, right in (line.split(" | ") for line in text.strip().split("\n"))]


@pytest.mark.parametrize(("left", "right"), pairs(DIFFERENT))
def test_what_is_left_out_counts(left: str, right: str) -> None:
    assert answers.compare(left, right).outcome is Outcome.WRONG
    assert answers.compare(right, left).outcome is Outcome.WRONG


@pytest.mark.parametrize(("left", "right"), pairs(SAME))
def test_what_says_nothing_more_is_read(left: str, right: str) -> None:
    for compare in (answers.compare, answers.compare_texts):
        assert compare(left, right).outcome is Outcome.CORRECT
        assert compare(right, left).outcome is Outcome.CORRECT


def test_a_condition_on_one_side_only_is_doubtful() -> None:
    comparison = answers.compare(r"P(x)=cx, where c \ne -1", "P(x)=cx")
    assert comparison.outcome is Outcome.WRONG
    assert comparison.doubtful


def test_a_reading_says_what_it_left_out() -> None:
    (reading, _) = parse_readings(r"2^k \text{ for } k > 1", "en")
    assert reading.unread == "fork>1"
    (reading, _) = parse_readings(r"2^k, k \in \mathbb{Z}", "en")
    assert (reading.unread, reading.declared) == ("", (("k", "Z"),))


@pytest.mark.parametrize("tail", FOREIGN)
def test_nothing_foreign_behind_an_answer_is_dropped(tail: str) -> None:
    for reference, lang in own_references()[::2]:
        if parse_choice(reference) or parse_boolean(reference):
            continue  # a letter may stand before any text, yes and no before a remark
        text = f"{reference.strip().strip('$')}{tail}"
        assert answers.compare(reference, text, lang=lang).outcome is Outcome.WRONG, text


@pytest.mark.parametrize("left", ["-f(x,y)", "2f(x,y)", "f(x,y)^2"])
def test_a_left_side_that_computes_is_no_name_of_the_right_side(left: str) -> None:
    assert answers.compare("f(x,y)=3x", f"{left}=3x").outcome is Outcome.WRONG
    assert answers.compare("3x", f"{left}=3x").outcome is Outcome.WRONG
    assert answers.compare("3x", "f(x,y)=3x").outcome is Outcome.CORRECT
