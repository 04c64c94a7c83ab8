r"""Equal and unequal pairs of every answer type, one line a pair."""

from __future__ import annotations

import pytest

from curation.records import Outcome
from curation.verify import answers

EQUAL = r"""
\frac{1}{2} | 0.5
n \equiv 0, 1 \pmod 4 | n \equiv 1, 0 \pmod{4}
N = 1011_2 | 1011_2
C_5^2 | 10
C_{10}^{3} | 120
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
\frac{3}{4} | 0.75
\dfrac{\sqrt{2}}{2} | \frac{1}{\sqrt{2}}
x \in \mathbb{R} | (-\infty, \infty)
\text{all real numbers} | (-\infty,\infty)
\mathbb{R} | (-\infty,+\infty)
\text{All real numbers} | \mathbb{R}
(-\infty, 0) \cup (0, \infty) | x \neq 0
x = 1, 2 | 1, 2
x=1 \text{ and } x=2 | \{1,2\}
y = 3x^2 | 3x^2
P(x) = x^2+1 | x^2+1
m = -\frac{1}{2} | -0.5
\angle ABC = 60^\circ | 60
30^{\circ} | 30
AB = 5 | 5
5\text{ units} | 5
\$12,345.67 | 12345.67
12,345 \text{ dollars} | \$12345
£5 | 5
€10 | 10
10 € | 10
1 hour 30 minutes | 90 minutes
2 hours | 120 min
5\% | 0.05
\frac{1}{20} | 5\%
6:00 PM | 6 pm
3\sqrt{2} + 2\sqrt{3} | 2\sqrt{3} + 3\sqrt{2}
\frac{1+\sqrt{5}}{2} | \frac{\sqrt{5}+1}{2}
-x+3 | 3-x
(x+2)(x-3) | x^2-x-6
\log_{10} 100 | 2
\lg 100 | 2
\ln(e^2) | 2
\frac{5\pi}{6} \text{ rad} | 150^\circ
\sqrt{\frac{2}{3}} | \frac{\sqrt{6}}{3}
2^{-3} | 0.125
\left[0, \frac{\pi}{2}\right) | 0 \le \theta < \frac{\pi}{2}
\{x : 0 < x < 1\} | (0,1)
\{0,1\} | \{1,0\}
a^2+b^2 | b^2+a^2
i | \sqrt{-1}
2i | 0+2i
-1+i\sqrt{3} | -1+\sqrt{3}i
\begin{bmatrix} 1 & 0 \\ 0 & 1 \end{bmatrix} | [[1,0],[0,1]]
\langle 1,2,3\rangle | (1,2,3)
\begin{pmatrix} 1 \\ 2 \\ 3\end{pmatrix} | \langle 1, 2, 3 \rangle
10! | 3628800
C(5,2) | 10
\frac{n(n+1)}{2} | \frac{n^2+n}{2}
1 + \frac{1}{2} + \frac{1}{4} | \frac74
\text{(C)} | C
\textbf{(C)}\ 12 | C
\text{C} | (C)
C | \text{Option C}
C | C) 15
\text{east} | East
Saturday | \text{Saturday}
17 | seventeen
\frac{17}{1} | 17
+5 | 5
- 5 | -5
1.50 | 1.5
\frac{1}{2}x + 3 | \frac{x}{2}+3
x\sin x + \cos x + C | \cos x + x \sin x + C
\frac{1}{2}\ln|x| + C | \frac{\ln |x|}{2} + C
\ln 2 + C | C + \ln 2
\tan^{-1} x | \arctan x
\sin^{-1}(1/2) | \pi/6
e^{x+1} | e \cdot e^x
\sqrt{x^2+1} | (x^2+1)^{1/2}
x^{1/3} | \sqrt[3]{x}
x^{-1} | \frac{1}{x}
\frac{dy}{dx} = 2x | 2x
2x\,dx | 2x dx
0.1\dot{6} | \frac{1}{6}
0.\dot{3} | 1/3
2 \frac{2}{3} | \frac{8}{3}
(2, 3) | x=2, y=3
(x, y) = (2, 3) | (2,3)
x = 2, y = 3 | y = 3, x = 2
2 \text{ or } 3 | 3, 2
2 \text{ and } 3 | 2,3
\text{2 and 3} | 3,2
-2 \le x \le 2 | |x| \le 2
[-2,2] | |x| \leq 2
x^2 + y^2 = 4 | x^2+y^2-4=0
\frac{x^2}{4} + \frac{y^2}{9} = 1 | 9x^2+4y^2=36
y - 2 = 3(x - 1) | y = 3x - 1
2x + 3y \leq 6 | 6 \geq 2x+3y
x + 2y > 3 | -x-2y < -3
1:2 | \frac{1}{2}
1 : 2 : 3 | 1:2:3
101_2 | 101_{2}
\text{101}_2 | 101_2
10^{-5} | 0.00001
3 \times 10^8 | 3e8
3.00 \times 10^{8} \text{ m/s} | 3\times10^8
\infty | +\infty
\text{DNE} | does not exist
\text{undefined} | undefined
\text{True} | T
对 | true
是 | 是的
\frac{\pi}{4} + \frac{k\pi}{2} | \frac{\pi}{4}+\frac{n\pi}{2}, n \in \mathbb{Z}
k \cdot 180^\circ | n \cdot 180^\circ
x = \frac{\pi}{3} + 2\pi n | x=\frac{\pi}{3}+2\pi k
\max(3,5) | 5
\gcd(12,18) | 6
|3-7| | 4
\left|\frac{-1}{2}\right| | 0.5
n! \cdot (n+1) | (n+1)!
4\pi\text{ cm}^2 | 4\pi
16\pi | 50.265
2^{100} | 1267650600228229401496703205376
x>3 \text{ and } x<5 | (3,5)
x > 3 \text{ or } x < -3 | (-\infty,-3)\cup(3,\infty)
\{(1,2),(2,1)\} | (2,1),(1,2)
\varnothing | \{\}
0.\overline{142857} | \frac{1}{7}
７ | 7
−3 | -3
x² + 1 | x^2+1
√2/2 | \frac{\sqrt2}{2}
π/2 | \frac{\pi}{2}
½ | 0.5
3×4 | 12
x \equiv 3 \pmod{7} | x \equiv 10 \pmod 7
a \equiv \pm 6 \pmod{37} | a = 6 \pmod{37}, a = 31 \pmod{37}
n \equiv 3 (mod 7) | n \equiv 3 \pmod{7}
f(x) = x + c \text{ for some constant } c | f(x)=x+a \text{ for any constant } a
\boxed{\text{(B)}\ 12} | B
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
\frac{3}{4} | 0.74
\frac{2}{3} | 0.67
\frac{2}{3} | 0.66
3\sqrt2 | 2\sqrt3
(2,3) | (3,2)
(2,3) | \{2,3\}
[0,1) | (0,1]
x \ge 1 | x > 1
|x|<2 | |x|>2
x^2+y^2=4 | x^2+y^2=2
2x+3y \le 6 | 2x+3y \ge 6
1:2 | 2:1
C | D
C | C or D
\text{(C)} | 3
101_2 | 101
5 | 101_2
12 | 1, 2
1234 | 1, 234
12 | 21
\$5 | 5 cents
5 m | 5 s
90 minutes | 2 hours
30^\circ | \frac{\pi}{3}
30^\circ | 30\pi
\sin x | \sin y
e^x | e^{-x}
x+C | x
\frac{\pi}{4}+k\pi | \frac{\pi}{4}
\begin{pmatrix}1\\2\end{pmatrix} | (2,1)
\infty | 10^{100}
\text{east} | west
Saturday | Sunday
yes | maybe
0 | \emptyset
\{0\} | \emptyset
n^2 | m^2
a+b | a-b
a_1 | a_2
x_1 + x_2 | x_1 x_2
1/2 | 1/2/2
2^{10} | 2\cdot 10
3.14159 | \frac{22}{7}
\pi | 3.15
1.5 | 15
100\% | 1\%
0.5 | 0.5\%
50\% | 5
7:30 | 7:45
(1,2,3) | (1,2)
1,2,3 | 1,2
1,1,2 | 1,2,2
\sqrt{2} | \sqrt{-2}
i | -i
2+3i | 2-3i
\log_2 x | \log_3 x
\tan x | \cot x
10 \text{ m}^2 | 10 \text{ m}^3
x=1 | x=-1
x=1 | x \ne 1
y=x | y=-x
y = x^2 | x = y^2
f(x)=x^2 | f(x)=x^2+1
2^{2^{50}} | 2^{2^{51}}
100! | 99!
\frac{1}{100!} | \frac{1}{101!}
\frac{1}{3^{50}} | \frac{1}{3^{51}}
1-\frac{1}{2^{60}} | 1
1-10^{-20} | 1
5 | -5
\pm 3 | 3
3 | \pm 3
3 | 3, 4
\text{None} | 5
A, B | A, C
AB | AC
ABC | AB
2\pi | 6
2\pi | 6.3
1,000 | 1.000
12.5 | 12.48
7.5 | 7.54
0.33 | 1/3
x \equiv 3 \pmod{7} | x \equiv 4 \pmod{7}
\{1,2,3\} | 1:2:3
(2,3) | 2 \text{ or } 3
x=1,y=2 | x=1 \text{ and } x=2
(A) | a \equiv 6 \pmod{37}
C | C \cup D
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
    right = answers.quick_compare("18", "$18.00")
    wrong = answers.quick_compare("1/2", "1/3")
    assert right is not None
    assert right.outcome is Outcome.CORRECT
    assert wrong is not None
    assert wrong.outcome is Outcome.WRONG
    assert answers.quick_compare("x+1", "1+x") is None
    assert answers.quick_compare("1" * 1_000_000, "1" * 1_000_000) is None
