r"""Equal and unequal pairs of every answer type, one line a pair."""

from __future__ import annotations

import pytest

from curation.records import Outcome
from curation.verify import answers

EQUAL = r"""
\frac{1}{2} | 0.5
\frac{1}{2} | 1/2
1/2 | 0.50
2\sqrt{2} | \sqrt{8}
x^2-1 | (x-1)(x+1)
(-\infty, 3] | x \le 3
x>2 | (2,\infty)
x\in(2,\infty) | (2,+\infty)
\{1,2,3\} | \{3,2,1\}
1,2,3 | 3, 1, 2
\pm 2 | 2, -2
x=\pm 2 | -2,2
x=2 \text{ or } x=-2 | \pm2
120^\circ | \frac{2\pi}{3}
\frac{2\pi}{3} | 120^{\circ}
x^2+C | x^2+K
\frac{x^3}{3}+C | \frac{1}{3}x^3+c
3x+4y+14=0 | 6x+8y+28=0
y=2x+1 | 2x-y+1=0
25\% | 0.25
0.25 | 25\%
25\% | \frac14
\$5.00 | 5
\$5 | 5 dollars
3\frac{1}{2} | 3.5
1{,}000 | 1000
1,000,000 | 10^6
1.5\times 10^3 | 1500
2:3 | 2/3
4:6 | 2:3
1:2:3 | 2:4:6
\begin{pmatrix}1\\2\end{pmatrix} | (1,2)
\begin{bmatrix}1&2\\3&4\end{bmatrix} | \begin{pmatrix}1&2\\3&4\end{pmatrix}
5 \text{ cm} | 5
5 cm | 0.05 m
1 hour | 60 minutes
\text{yes} | Yes
True | \text{true}
oui | yes
是 | yes
(A) | A
\text{(B)} | B
B. 12 | B
0.333 | \frac{1}{3}
\frac{1}{3} | 0.3333
\pi | 3.14159
\sqrt{2} | 1.414
e^{i\pi} | -1
\log_2 8 | 3
\sin(\pi/6) | 1/2
\binom{5}{2} | 10
5! | 120
\tan x | \frac{\sin x}{\cos x}
\sin 2x | 2\sin x\cos x
\ln 4 | 2\ln 2
2^{x+1} | 2\cdot 2^x
[1,2]\cup[3,4] | [3,4]\cup[1,2]
x\neq 3 | (-\infty,3)\cup(3,\infty)
\mathbb{R}\setminus\{3\} | x\ne 3
\emptyset | \varnothing
\text{no solution} | \emptyset
3+4i | 4i+3
\frac{1}{1-i} | \frac{1+i}{2}
a_n=2n+1 | 2n+1
f(x)=x^2 | x^2
n^2 | f(n)=n^2
\left(\frac{1}{2},\frac{3}{4}\right) | (0.5,0.75)
-\frac{1}{2} | \frac{-1}{2}
\frac{-1}{-2} | 0.5
10^{-3} | 0.001
1.23e-4 | 0.000123
\frac{\pi}{6}+k\pi | \frac{\pi}{6}+n\pi
x=\frac{\pi}{4}+2k\pi, k\in\mathbb{Z} | \frac{\pi}{4}+2\pi n
\frac{\pi}{6}+k\pi | -\frac{5\pi}{6}+k\pi
1101_2 | 1101_{2}
\text{12 apples} | 12
3:30 pm | 15:30
six | 6
\lfloor 3.7 \rfloor | 3
|-5| | 5
\sum_{k=1}^{10} k | 55
\frac{x+1}{x^2-1} | \frac{1}{x-1}
\sqrt{x}\sqrt{y} | \sqrt{xy}
0.\overline{3} | \frac13
0.1\overline{6} | 1/6
(x-1)^2+(y-2)^2=4 | x^2+y^2-2x-4y+1=0
A=3, B=4 | B=4, A=3
\sqrt[3]{-8} | -2
90^\circ | 90
45 degrees | 45^\circ
2^{10} | 1024
13 \text{ m}^2 | 13 m^2
60 km/h | 60
\frac{3}{4}\text{ hours} | 45 \text{ minutes}
\frac{\sqrt{3}}{3} | \frac{1}{\sqrt3}
\cos 36^\circ | \frac{1+\sqrt5}{4}
x=1,y=2 | (1,2)
(x,y)=(1,2) | x=1, y=2
-3<x<5 | (-3,5)
\{x\mid x>1\} | (1,\infty)
1\frac12 | 1.5
7, 8 | {7,8}
\text{Tuesday} | tuesday
\infty | infinity
-\infty | -\infty
\frac{\ln 2}{\ln 3} | \log_3 2
2x+3 | 3+2x
x(x+1) | x^2+x
\text{Monday and Tuesday} | Tuesday, Monday
100\pi | 100 \pi \text{ cm}^3
\frac{7}{2}x | 3.5x
1 - \frac{1}{e} | \frac{e-1}{e}
4.5 \times 10^{-7} | 4.5e-7
3.0 | 3
12\,345 | 12345
\sec^2 x | 1+\tan^2 x
0 \le x < 1 | [0,1)
x < -1 \text{ or } x > 1 | (-\infty,-1)\cup(1,\infty)
|x|>1 | (-\infty,-1)\cup(1,\infty)
n(n+1)/2 | \binom{n+1}{2}
(n+1)! | (n+1)\cdot n!
\frac{n!}{(n-2)!} | n(n-1)
a\vec{i}+b | b+a\vec{i}
\arctan 1 | \frac\pi4
5/6 | \dfrac{5}{6}
\text{A, C} | AC
two | 2
1/3, 2/3 | \frac{2}{3}, \frac{1}{3}
3x^2 + 2x + C | 3x^2+2x+C_1
y = -\frac12 x + 4 | x+2y=8
12 \text{ and } 15 | 12, 15
e^{2x} | (e^x)^2
\frac{a}{b} | a/b
\sqrt{12} | 2 \sqrt 3
\{(1,2),(3,4)\} | (3,4),(1,2)
1.0 \times 10^5 | 100000
k=\frac{3}{2} | 1.5
x \ge 0 | [0, \infty)
\frac{22}{7} | 22/7
15\% | 15 percent
"""

UNEQUAL = r"""
\frac{1}{2004!} | \frac{1}{2006!}
\frac{1}{2^{99}} | \frac{1}{2^{98}}
1-\frac1e | 1+\frac1e
3*x-1*y+13=0 | 3x+4y+14=0
\frac{1}{3} | 0.3
\frac13 | 0.34
(1,2) | (2,1)
[1,2] | (1,2)
\{1,2\} | \{1,2,3\}
x>2 | x\ge 2
x>2 | x<2
5 cm | 5 m
x^2 | x^3
\sin x | \cos x
2 | -2
\pm 2 | 2
\sqrt2 | 1.4
yes | no
A | B
(A) | (B)
25\% | 0.5
2:3 | 3:2
x^2+C | x^2
x^2+C | x^3+C
120^\circ | \frac{\pi}{3}
\begin{pmatrix}1&2\\3&4\end{pmatrix} | \begin{pmatrix}1&3\\2&4\end{pmatrix}
1101_2 | 1101_3
12:30 | 1:30
3:30 pm | 3:30 am
y=2x+1 | y=2x-1
2x+3y=5 | 2x-3y=5
5! | 5
10^{10} | 10^{11}
9^{9^9} | 9^{9^8}
\frac{\pi}{6}+k\pi | \frac{\pi}{6}+2k\pi
\frac{\pi}{6}+k\pi | \frac{\pi}{3}+k\pi
x+y | x-y
3.14 | \pi+1
0.5 | 0.51
100 | 100.4
1000 | 1,0000
1,2 | 1.2
-5 | 5
\infty | -\infty
\emptyset | 0
\frac{a}{b} | \frac{b}{a}
a=1,b=2 | a=2,b=1
(-1,1) | (-\infty,1)
2^k | 2^n
n+1 | n+2
x | y
12 | 12.5
7 | 7 or 8
\text{Monday} | Tuesday
\sqrt{x^2} | x^2
abc | acb d
\frac{3}{4} hours | 30 minutes
1 | 1.001
0.125 | 0.13
\pi | 3
\pi | 22/7
e | 2.7
(1,2),(3,4) | (1,3),(2,4)
\{(1,2)\} | \{1,2\}
f(x)=x | f(x)=-x
x<y | x>y
10\text{ apples} | 12 \text{ apples}
\log_2 3 | \log_3 2
2^{2^{100}} | 2^{2^{100}}+1
2^{1000}+1 | 2^{1000}
\frac{10^{30}+1}{10^{30}} | 1
e^{\pi\sqrt{163}} | 262537412640768744
"""


def _pairs(block: str) -> list[tuple[str, str]]:
    return [(left, right) for left, _, right in (line.partition(" | ") for line in block.strip().split("\n"))]


@pytest.mark.parametrize(("reference", "answer"), _pairs(EQUAL))
def test_equal_in_both_directions(reference: str, answer: str) -> None:
    for one, two in ((reference, answer), (answer, reference)):
        found = answers.compare(one, two)
        assert found.outcome is Outcome.CORRECT, found


@pytest.mark.parametrize(("reference", "answer"), _pairs(UNEQUAL))
def test_unequal(reference: str, answer: str) -> None:
    found = answers.compare(reference, answer)
    assert found.outcome is Outcome.WRONG, found


@pytest.mark.parametrize("reference", sorted({one for one, _ in _pairs(EQUAL)}))
def test_a_good_reference_verifies_against_itself(reference: str) -> None:
    assert answers.check_reference(reference) is None


@pytest.mark.parametrize("reference", ["", "   ", r"\\noindent", r"\frac{1}{", "about 5", "{" * 5000])
def test_a_bad_reference_is_refused_with_a_reason(reference: str) -> None:
    assert answers.check_reference(reference)


def test_languages_read_commas_their_way() -> None:
    assert answers.compare("1,5", "3/2", lang="de").outcome is Outcome.CORRECT
    assert answers.compare("1234", "1.234", lang="de").outcome is Outcome.CORRECT
    assert answers.compare("1234,5", "1.234,50", lang="fr").outcome is Outcome.CORRECT
    assert answers.compare("1234", "1.234", lang="en").outcome is Outcome.WRONG
    assert answers.compare("1,5", "1.5", lang="en").outcome is Outcome.WRONG


@pytest.mark.parametrize(
    ("yes", "no", "lang"),
    [
        ("yes", "no", "en"),
        ("oui", "non", "fr"),
        ("ja", "nein", "de"),
        ("sí", "no", "es"),
        ("sì", "no", "it"),
        ("да", "нет", "ru"),
        ("是", "否", "zh"),
    ],
)
def test_yes_and_no_in_seven_languages(yes: str, no: str, lang: str) -> None:
    assert answers.compare("yes", yes, lang=lang).outcome is Outcome.CORRECT
    assert answers.compare("True", yes, lang=lang).outcome is Outcome.CORRECT
    assert answers.compare("yes", no, lang=lang).outcome is Outcome.WRONG


def test_refused_near_misses_are_doubtful() -> None:
    assert answers.compare(r"\frac{1}{3}", "0.33").doubtful
    assert answers.compare(r"\sqrt{x^2}", "x").doubtful
    assert answers.compare("[1,2]", "[1,2)").doubtful
    assert not answers.compare("5", "6").doubtful


def test_the_policy_on_approximations_is_an_argument() -> None:
    strict = answers.ApproximationPolicy(enabled=False)
    loose = answers.ApproximationPolicy(answer_digits=2)
    assert answers.compare(r"\frac{1}{3}", "0.333").outcome is Outcome.CORRECT
    assert answers.compare(r"\frac{1}{3}", "0.333", policy=strict).outcome is Outcome.WRONG
    assert answers.compare(r"\frac{1}{3}", "0.33", policy=loose).outcome is Outcome.CORRECT


def test_quick_decides_numbers_and_leaves_the_rest() -> None:
    right = answers.quick("18", "$18.00")
    wrong = answers.quick("1/2", "1/3")
    assert right is not None
    assert right.outcome is Outcome.CORRECT
    assert wrong is not None
    assert wrong.outcome is Outcome.WRONG
    assert answers.quick("x+1", "1+x") is None
    assert answers.quick("1" * 1_000_000, "1" * 1_000_000) is None
