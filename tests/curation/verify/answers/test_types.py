r"""Every answer type as data sets and models write it.

One line a pair, ``reference == answer`` or ``reference != answer``.

A line may begin with its language, ``de: 1.234,5 == 1234,5``; without one it is read as ``goldilocks verify answers``
reads a row, in English. Either side may be a whole sentence. Questions of policy are left to `test_answer_pairs`.
"""

from __future__ import annotations

import re

import pytest

from curation.records import Outcome
from curation.verify import answers

TYPES: dict[str, str] = {
    "integers and fractions": r"""
        -\dfrac{7}{3} == \frac{-7}{3}
        -\frac{7}{3} == \frac{7}{-3}
        \frac{12}{16} == 3/4
        \tfrac{5}{2} == 2.5
        0042 == 42
        \frac 3 5 == 0.6
        {7 \over 9} == 7/9
        10 == 1e1
        \frac{7}{3} != \frac{3}{7}
        \frac{12}{17} != \frac{12}{16}
        142857 != 142587
        -6 != 6
        \frac{1}{7} != 0.14
        2^{31}-1 == 2147483647
        2^{31}-1 != 2147483648
        1.0 != 1.01
    """,
    "mixed numbers": r"""
        5\frac{2}{3} == \frac{17}{3}
        5 2/3 == 17/3
        -1\frac{1}{4} == -1.25
        5\frac{2}{3} != \frac{10}{3}
        2\tfrac12 == 5/2
        3 \text{ and } \frac{1}{2} != 3
        -1\frac14 != -0.75
        7\frac{1}{8} \text{ inches} == 57/8
    """,
    "thousands and decimals by language": r"""
        12,345,678 == 12345678
        12 345 678 == 12345678
        1{,}234{,}567 == 1234567
        1\,234\,567 == 1234567
        fr: 3,14 == 3.14
        fr: 1 234,5 == 1234.5
        de: 1.234.567 == 1234567
        de: 1.234,50 == 1234,5
        es: 0,75 == \frac{3}{4}
        it: 2,5 == \frac52
        ru: 12,5 == 12.5
        ru: 1 000 000 == 10^6
        de: 0,125 == 1/8
        fr: 2{,}5 == 5/2
        12,345 != 12345678
        fr: 3,14 != 314
        de: 1,5 != 15
        1,234 != 1.234
        it: 2,5 != 2; 5
        ru: 12,5 != 125
        es: 0,75 != 0,57
        zh: 1,200 == 1200
    """,
    "scientific notation": r"""
        6.02 \times 10^{23} == 6.02e23
        6.02 \times 10^{23} == 6.02*10^23
        6.02 \cdot 10^{23} == 6.02 \times 10^{23} \text{ atoms}
        4.7\times 10^{-5} == 0.000047
        4.7E-5 == 4.7 \times 10^{-5}
        4.7×10⁻⁵ == 4.7e-5
        10^6 == 1,000,000
        6.02 \times 10^{23} != 6.02 \times 10^{22}
        4.7\times 10^{-5} != 4.7 \times 10^{5}
        3.2 \times 10^4 != 3200
        3.2 \times 10^4 == 32000
        1.6 \times 10^{-19} \mathrm{C} == 1.6e-19
    """,
    "percent": r"""
        37.5\% == 37.5 percent
        37.5\% == \frac{3}{8}
        37.5\% == 0.375
        0.2 == 20 \%
        12\frac{1}{2}\% == 12.5\%
        150\% == 1.5
        37.5\% != 3.75
        0.2 != 2\%
        25% != 52%
        8\% != 0.8
        33\frac{1}{3}\% == \frac13
        20\% \text{ increase} == 20\%
    """,
    "money": r"""
        \$1,250 == 1250
        \$1,250.00 == \$1250
        $18 == 18
        18 dollars == \$18
        75 cents == \$0.75
        75¢ == 75 cents
        \text{\$}40 == 40
        \$3.50 == 3.5
        ¥200 == 200 yuan
        200元 == 200
        €12.50 == 12.50 euros
        £7 == 7 pounds
        \$1,250 != \$1,520
        75 cents != \$75
        \$3.50 != \$3.05
        18 dollars != 18 cents
        €12 != €21
    """,
    "units and physical quantities": r"""
        9.8 \text{ m/s}^2 == 9.8 m/s^2
        9.8 \mathrm{~m} / \mathrm{s}^{2} == 9.8\ \text{m/s}^2
        9.8 \, m\cdot s^{-2} == 9.8 m/s^2
        2.5 \text{ km} == 2500 \text{ m}
        36 km/h == 10 m/s
        1.5 \text{ hours} == 90 \text{ minutes}
        2 \text{ kg} == 2000 g
        500 mL == 0.5 L
        12 \text{ cm}^2 == 12 square centimeters
        12 cm² == 12 \text{cm}^2
        3 \mathrm{~cm}^{3} == 3
        1 \text{ m}^2 == 10000 \text{ cm}^2
        15 N == 15 \text{ newtons}
        220 \, \text{V} == 220 volts
        4.2 \text{ kJ} == 4200 \text{ J}
        50\ \Omega == 50 ohms
        0.5 \, \mu\text{m} == 0.5 micrometers
        24 \text{ square units} == 24
        6 feet == 72 inches
        2 hours 15 minutes == 135 minutes
        25 mph == 25 miles per hour
        60\ \text{miles per hour} == 60
        18\sqrt{3}\text{ cm}^2 == 18\sqrt3
        120 千米 == 120 km
        35平方厘米 == 35 cm^2
        9.8 \text{ m/s}^2 != 9.8 \text{ m/s}
        2.5 \text{ km} != 2.5 \text{ m}
        36 km/h != 36 m/s
        12 \text{ cm}^2 != 12 \text{ cm}^3
        1 \text{ m}^2 != 100 \text{ cm}^2
        1.5 \text{ hours} != 1.5 \text{ minutes}
        15 N != 15 J
        2 kg != 2 g
        18\sqrt{3}\text{ cm}^2 != 18\sqrt2\text{ cm}^2
        2 hours 15 minutes != 2.15 hours
        10 \text{ apples} != 11 \text{ apples}
        40 students == 40
    """,
    "degrees and radians": r"""
        45^\circ == \frac{\pi}{4}
        135° == \frac{3\pi}{4}
        135 degrees == 135^{\circ}
        \frac{\pi}{3} \text{ radians} == 60^\circ
        22.5^\circ == \frac{\pi}{8}
        \arccos\left(\frac12\right) == 60^\circ
        \arccos\left(\frac12\right) == \frac{\pi}{3}
        30^\circ 30' == 30.5^\circ
        \angle A = 40^\circ, \angle B = 60^\circ == 40^\circ, 60^\circ
        45^\circ != \frac{\pi}{3}
        135° != 153°
        \frac{\pi}{3} != 30^\circ
        60^\circ != 60\pi
        72 != \frac{\pi}{5}
    """,
    "choices": r"""
        (B) == B
        B == (B) 12
        (B) 12 == 12
        12 == (B) 12
        12 == B) 12
        B) 12 == 12
        \textbf{(D)}\ \frac{3}{4} == \frac34
        \frac34 == D. \frac{3}{4}
        D. \frac{3}{4} == D
        A == \text{A}
        C == The correct answer is C.
        C == The answer is (C)
        C == **C**
        AC == A, C
        ACD == A,C,D
        B == $\boxed{B}$
        E == \mathrm{(E)}
        (B) != (D)
        12 != (B) 21
        B != B and C
        AC != AB
        (B) 12 != (C) 12
        D. \frac{3}{4} != \frac43
        C == 选C
        B == 答案：B
        A != 答案是B
        B == option B
    """,
    "yes and no": r"""
        yes == Yes.
        no == No
        Yes == \text{Yes}
        True == true
        False == \textbf{False}
        fr: oui == Oui
        fr: vrai == Vrai.
        fr: non == \text{Non}
        de: ja == Ja
        de: falsch == Falsch.
        es: sí == Si
        es: verdadero == Verdadero
        it: sì == Sì
        it: falso == Falso
        ru: да == Да
        ru: неверно == Неверно.
        zh: 是 == 是。
        zh: 不能 == 不能。
        zh: 正确 == 对
        yes == True
        yes == Yes, it is possible.
        no == No, because 7 is odd
        yes != no
        True != False
        fr: vrai != faux
        de: wahr != falsch
        es: sí != no
        it: vero != falso
        ru: да != нет
        zh: 是 != 不是
        zh: 正确 != 错误
        no != not
        yes != Yesterday
    """,
    "names and short texts": r"""
        Alice == alice
        \text{Alice} == \textbf{Alice}
        \text{Wednesday} == Wednesday.
        blue == Blue
        isosceles triangle == \text{Isosceles Triangle}
        the second player == second player
        \text{second quadrant} == Second quadrant
        \text{odd} == odd
        hyperbola == a hyperbola
        Alice and Bob == Bob and Alice
        Alice, Bob == Alice and Bob
        zh: 等腰三角形 == \text{等腰三角形}
        zh: 星期三 == 星期三。
        fr: mercredi == Mercredi
        Alice != Bob
        \text{Wednesday} != Tuesday
        isosceles triangle != equilateral triangle
        first player != second player
        odd != even
        Alice and Bob != Alice and Carol
        zh: 星期三 != 星期二
        \text{ellipse} != \text{hyperbola}
        increasing != decreasing
        neither != either
    """,
    "dates and times": r"""
        3:45 PM == 3:45 p.m.
        15:45 == 3:45 PM
        8:05 a.m. == 8:05 AM
        \text{10:30 a.m.} == 10:30 AM
        12:00 noon == 12:00 PM
        7:15 == 7:15
        March 14 == 14 March
        March 14, 2015 == 14 March 2015
        July 4 == July 4th
        3:45 PM != 3:45 AM
        8:05 != 8:50
        March 14 != March 15
        March 14, 2015 != March 14, 2016
        15:45 != 5:45 PM
    """,
    "bases": r"""
        1011_2 == 1011_{2}
        1011_{(2)} == 1011_2
        \text{2A}_{16} == 2A_{16}
        (213)_5 == 213_5
        213_{\text{five}} == 213_5
        1011_2 != 1101_2
        1011_2 != 1011_3
        2A_{16} != 2B_{16}
    """,
    "ratios": r"""
        3:4 == 3/4
        3:4 == 6:8
        3 : 4 : 5 == 6:8:10
        3 \text{ to } 4 == 3:4
        \sqrt{2}:1 == \sqrt2
        1:\sqrt{3}:2 == 1 : \sqrt3 : 2
        3∶4 == 3:4
        3:4 != 4:3
        3 : 4 : 5 != 3:5:4
        2:1 != \sqrt2:1
        3 \text{ to } 4 != 4 to 3
    """,
    "tuples and coordinates": r"""
        (3,-2) == \left( 3, -2 \right)
        (3,-2) == (3.0, -2.0)
        \left(\frac{1}{2}, -\sqrt{3}\right) == (0.5, -\sqrt 3)
        (1,2,3) == (1, 2, 3)
        (1;2) == (1, 2)
        A(1,2) == (1,2)
        P = (4, 5) == (4,5)
        (x,y,z) = (1,2,3) == x=1, y=2, z=3
        (a, b) = (3, 4) == a = 3 and b = 4
        (1,2), (3,4) == (3,4), (1,2)
        (1,2) \text{ and } (3,4) == (3,4), (1,2)
        \{(0,0),(1,1)\} == (0,0) \text{ or } (1,1)
        (\pm 1, 2) == (1,2), (-1,2)
        (3,-2) != (-2,3)
        (1,2,3) != (1,2)
        (1,2,3) != (3,2,1)
        (x,y) = (1,2) != x=2, y=1
        (1,2), (3,4) != (1,4), (3,2)
        (\pm 1, 2) != (1, 2)
        (0, 1) != [0, 1]
        (2,4,6,8) != (2,4,8,6)
        a=3, b=4 != a=4, b=3
    """,
    "sets and lists": r"""
        \{1,2,5\} == 5, 2, 1
        \{1,2,5\} == \left\{ 5,1,2 \right\}
        {1, 2, 5} == 1,2,5
        1, 2, 5 == 1, 2 and 5
        2 and 3 == x=2 or x=3
        x = 2, x = 3 == 2, 3
        x=-1,\ x=4 == \{4,-1\}
        \{-2, 0, 2\} == 0, \pm 2
        A = \{1, 2\} == \{2, 1\}
        2；3 == 2, 3
        2或3 == 3, 2
        zh: x=2或x=-2 == \pm 2
        fr: 2 ou 3 == 3 et 2
        de: 2 oder 3 == 2 und 3
        es: 2 o 3 == 3 y 2
        it: 2 o 3 == 2 e 3
        ru: 2 или 3 == 3; 2
        \{1,2,5\} != \{1,2\}
        \{1,2,5\} != \{1,2,6\}
        1, 2, 5 != 125
        3 or 5 != 3
        x = 2, x = 3 != x = 2
        \{-2, 0, 2\} != \pm 2
        \{0\} != \{\}
        2, 3 != 2.3
        \{\{1\},\{2\}\} != \{\{1,2\}\}
        3, 3, 5 != 3, 5, 5
    """,
    "empty, infinite and no solution": r"""
        \emptyset == \text{no solution}
        \varnothing == {}
        \text{no real solutions} == No solution
        \infty == +\infty
        -\infty == -∞
        \text{infinitely many} == infinite
        zh: 无解 == \emptyset
        ru: нет решений == \emptyset
        fr: pas de solution == \varnothing
        de: keine Lösung == \emptyset
        es: no hay solución == \emptyset
        DNE == Does not exist
        \infty != -\infty
        \emptyset != \{0\}
        \text{no solution} != 0
        \text{infinitely many} != 100
        DNE != 0
    """,
    "intervals and unions": r"""
        (-\infty,-2)\cup(2,\infty) == (-∞, -2) ∪ (2, ∞)
        (-\infty,-2)\cup(2,+\infty) == x<-2 \text{ or } x>2
        (-\infty,-2)\cup(2,+\infty) == |x|>2
        (-\infty,-2)\cup(2,\infty) == (-\infty,-2),(2,\infty)
        [0, 2\pi) == 0 \le x < 2\pi
        \left[\frac{1}{2}, 3\right] == [0.5, 3]
        x \in [1, 4) == 1 \leq x < 4
        \{x \mid -1 < x < 5\} == (-1, 5)
        \{x \in \mathbb{R} : x \ge 2\} == [2, \infty)
        \mathbb{R} \setminus \{0, 1\} == (-\infty,0)\cup(0,1)\cup(1,\infty)
        x \neq 0, 1 == \mathbb{R} \setminus \{0, 1\}
        [1, 2] \cup [2, 3] == [1,3]
        ]1, 4] == (1, 4]
        fr: ]-\infty; 3] == (-\infty, 3]
        ru: [1; 3] == [1,3]
        de: [1;3) == [1,3)
        ru: (-\infty; 1) \cup (3; +\infty) == x<1 or x>3
        (-\infty, \sqrt{2}] == x \le \sqrt2
        zh: [2,+∞) == x≥2
        1 < x < 4 \text{ or } x > 6 == (1,4)\cup(6,\infty)
        [0, 2\pi) != [0, 2\pi]
        (-\infty,-2)\cup(2,\infty) != (-2,2)
        x \in [1, 4) != (1, 4)
        (-1, 5) != (-5, 1)
        \mathbb{R} \setminus \{0, 1\} != \mathbb{R} \setminus \{0\}
        [1,2]\cup[3,4] != [1,4]
        x \le \sqrt2 != x < \sqrt2
        [2, \infty) != (2, \infty)
        -1 \le x \le 1 != -1 \le x \le 2
        (1,2)\cup(2,3) != (1,3)
    """,
    "ranges": r"""
        3 \text{ to } 5 == 3-5
        3 to 5 == 3 - 5
        between 3 and 5 == 3 to 5
        3 to 5 != 3 or 5
        3 to 5 != 3 to 6
        3 or 5 == 5 or 3
    """,
    "matrices and vectors": r"""
        \begin{pmatrix}2 & 1\\ 0 & 3\end{pmatrix} == \begin{bmatrix} 2&1\\0&3 \end{bmatrix}
        \left(\begin{array}{cc}2 & 1\\ 0 & 3\end{array}\right) == \begin{pmatrix}2&1\\0&3\end{pmatrix}
        \begin{pmatrix}2 & 1\\ 0 & 3\end{pmatrix} == [[2, 1], [0, 3]]
        \begin{pmatrix} 1/2 \\ -3 \end{pmatrix} == (0.5, -3)
        \begin{pmatrix} a & b \\ c & d \end{pmatrix} == \begin{bmatrix} a & b \\ c & d \end{bmatrix}
        \begin{pmatrix} x+x & 0 \\ 0 & x^2 \end{pmatrix} == \begin{pmatrix} 2x & 0 \\ 0 & x\cdot x \end{pmatrix}
        \frac{1}{2}\begin{pmatrix} 2 & 4 \\ 6 & 8 \end{pmatrix} == \begin{pmatrix} 1&2\\3&4 \end{pmatrix}
        \begin{vmatrix} 1 & 2 \\ 3 & 4 \end{vmatrix} == -2
        \langle 2,-1,3 \rangle == (2,-1,3)
        2\mathbf{i} - 3\mathbf{j} == 2\vec{i}-3\vec{j}
        2\mathbf{i} - 3\mathbf{j} + \mathbf{k} == \langle 2,-3,1\rangle
        \vec{v} = (1, 2) == (1,2)
        I_2 == I_{2}
        \begin{pmatrix}2 & 1\\ 0 & 3\end{pmatrix} != \begin{pmatrix}2 & 0\\ 1 & 3\end{pmatrix}
        \begin{pmatrix} 1 \\ 2 \end{pmatrix} != \begin{pmatrix} 2 \\ 1 \end{pmatrix}
        \langle 2,-1,3 \rangle != \langle 2,1,3 \rangle
        2\mathbf{i} - 3\mathbf{j} != 3\mathbf{i} - 2\mathbf{j}
        \begin{pmatrix} 1&2\\3&4 \end{pmatrix} != \begin{pmatrix} 1&2\\3&5 \end{pmatrix}
        \begin{vmatrix} 1 & 2 \\ 3 & 4 \end{vmatrix} != 2
        \begin{pmatrix} x & 0 \\ 0 & 1 \end{pmatrix} != \begin{pmatrix} x^2 & 0 \\ 0 & 1 \end{pmatrix}
    """,
    "equations": r"""
        y = 3x - 7 == 3x - y - 7 = 0
        y = 3x - 7 == y + 7 = 3x
        y = 3x - 7 == 3x - 7
        x^2 + y^2 - 6x + 8y = 0 == (x-3)^2 + (y+4)^2 = 25
        \frac{x^2}{9} - \frac{y^2}{16} = 1 == 16x^2 - 9y^2 = 144
        2x - y + 3z = 6 == 4x - 2y + 6z - 12 = 0
        y^2 = 4x == x = \frac{y^2}{4}
        xy = 12 == y = \frac{12}{x}
        r = 2\cos\theta == r=2 \cos(\theta)
        x = 7 == 7
        \lambda = 3 == 3
        y = 3x - 7 != y = 3x + 7
        y = 3x - 7 != y = -3x - 7
        (x-3)^2 + (y+4)^2 = 25 != (x+3)^2 + (y-4)^2 = 25
        \frac{x^2}{9} - \frac{y^2}{16} = 1 != \frac{x^2}{16} - \frac{y^2}{9} = 1
        2x - y + 3z = 6 != 2x + y + 3z = 6
        y^2 = 4x != x^2 = 4y
        x = 7 != x = -7
        2x+3y=6, x-y=1 == x-y=1, 2x+3y=6
    """,
    "inequalities": r"""
        a \ge \frac{9}{4} == a \geq 2.25
        a ≥ 9/4 == \left[\frac94, \infty\right)
        2 < k \le 5 == k \in (2, 5]
        5 \ge k > 2 == 2<k\leq5
        x > -1 == -1 < x
        a > 0 \text{ and } b < 0 == b<0, a>0
        m < n == n > m
        2x + 1 > 7 == x > 3
        x + y \le 4 == 2x + 2y \le 8
        a \ge \frac{9}{4} != a > \frac{9}{4}
        a \ge \frac{9}{4} != a \le \frac{9}{4}
        2 < k \le 5 != 2 \le k < 5
        x + y \le 4 != x + y \ge 4
        m < n != m > n
        a > b > c != a > c > b
    """,
    "plus and minus": r"""
        \pm\sqrt{7} == \sqrt7, -\sqrt7
        x = \pm 3 == x=3 \text{ or } x=-3
        \frac{-b \pm \sqrt{b^2-4ac}}{2a} == \frac{-b+\sqrt{b^2-4ac}}{2a}, \frac{-b-\sqrt{b^2-4ac}}{2a}
        2 \pm i == 2+i, 2-i
        1 \pm 2\sqrt{3} == 1+\sqrt{12}, 1-\sqrt{12}
        ±5 == -5, 5
        \pm\sqrt{7} != \sqrt7
        2 \pm i != 2+i
        \pm 3 != \pm 4
        1 \pm 2\sqrt{3} != 2 \pm \sqrt3
        ±1, ±2 == -2, -1, 1, 2
        ±1, ±2 != 1, 2
    """,
    "polynomials and rational functions": r"""
        x^3 - 6x^2 + 11x - 6 == (x-1)(x-2)(x-3)
        x^3 - 6x^2 + 11x - 6 == -6 + 11x - 6x^2 + x^3
        (a+b)^3 == a^3+3a^2b+3ab^2+b^3
        \frac{x^2-9}{x-3} == x+3
        \frac{1}{x} + \frac{1}{y} == \frac{x+y}{xy}
        3(x+2)^2(x-1) == 3 (x - 1) (x + 2)^2
        (x^2+1)(x-1)(x+1) == x^4-1
        x**2 + 2*x + 1 == (x+1)^2
        6xy^2 == 6y^2x
        \frac{3x+5}{(x+1)(x+2)} == \frac{2}{x+1}+\frac{1}{x+2}
        x^3 - 6x^2 + 11x - 6 != (x-1)(x-2)(x+3)
        (a+b)^3 != a^3+b^3
        \frac{1}{x} + \frac{1}{y} != \frac{1}{x+y}
        x^4-1 != x^4+1
        6xy^2 != 6x^2y
        3(x+2)^2 != 3(x+2)
        2x^2-x != 2x^2+x
    """,
    "functions": r"""
        f(x) = x^2 + 3x == x^2+3x
        f(x) = x^2 + 3x == f(x)=x(x+3)
        f(n) = 2^n - 1 == 2^n-1
        f(x)=2x+1 == y=2x+1
        a_n = 3n - 1 == a_{n} = 3n-1
        f^{-1}(x) = \frac{x-1}{2} == \frac{x-1}{2}
        S_n = \frac{n(n+1)}{2} == \frac{n^2+n}{2}
        f(x) = x^2 + 3x != f(x) = x^2 - 3x
        a_n = 3n - 1 != a_n = 3n + 1
        f(n) = 2^n - 1 != 2^{n-1}
        f(x) = 0 \text{ or } f(x) = x == f(x)=x, f(x)=0
        f(x) = c == f(x) = c \text{ for any constant } c
        f(x) = x \text{ for all } x == f(x)=x
    """,
    "piecewise": r"""
        \begin{cases} 1 & \text{if } x>0 \\ 0 & x \le 0 \end{cases} == \begin{cases} 1, & x>0 \\ 0, & x\le 0 \end{cases}
        \begin{cases} 1 & x>0 \\ 0 & x \le 0 \end{cases} == \begin{cases} 0, & x \le 0 \\ 1, & x > 0 \end{cases}
        \begin{cases} x=1 \\ y=2 \end{cases} == (1,2)
        \begin{cases} x & x \ge 0 \\ -x & x < 0 \end{cases} != x
        \begin{cases} 1 & x>0 \\ 0 & x \le 0 \end{cases} != \begin{cases} 1 & x<0 \\ 0 & x \ge 0 \end{cases}
        \begin{cases} x=1 \\ y=2 \end{cases} != (2,1)
    """,
    "trigonometric and other identities": r"""
        \sin^2 x == 1-\cos^2 x
        \cos 2x == 1-2\sin^2 x
        \cos 2x == \cos^2 x - \sin^2 x
        \tan\frac{x}{2} == \frac{\sin x}{1+\cos x}
        \sin x + \cos x == \sqrt{2}\sin\left(x+\frac{\pi}{4}\right)
        \sin 3x == 3\sin x - 4\sin^3 x
        \cosh^2 x - \sinh^2 x == 1
        \ln(x^2) != 2x
        \ln\frac{a}{b} == \ln a - \ln b
        \log_4 x == \frac{1}{2}\log_2 x
        e^{3\ln 2} == 8
        \log_3 81 == 4
        2\ln 3 == \ln 9
        \sin^2 x != \sin x^2
        \cos 2x != 2\cos x
        \ln(a+b) != \ln a + \ln b
        \sin 75^\circ == \frac{\sqrt6+\sqrt2}{4}
        \sin 75^\circ != \frac{\sqrt6-\sqrt2}{4}
        \log_2 3 != \log_2 5
        \sec x \tan x == \frac{\sin x}{\cos^2 x}
    """,
    "surds and constants": r"""
        3\sqrt{5} == \sqrt{45}
        \frac{6}{\sqrt{3}} == 2\sqrt3
        \sqrt{5+2\sqrt{6}} == \sqrt2+\sqrt3
        \sqrt[3]{54} == 3\sqrt[3]{2}
        \frac{1}{\sqrt{3}-1} == \frac{\sqrt3+1}{2}
        2^{3/2} == 2\sqrt2
        \sqrt{50} - \sqrt{8} == 3\sqrt{2}
        \sqrt{2}^{\sqrt{2}} == 2^{\sqrt{2}/2}
        3√5 == 3\sqrt{5}
        5\pi - 3 == -3+5π
        e^2 - 1 == (e-1)(e+1)
        3\sqrt{5} != 5\sqrt3
        \sqrt{5+2\sqrt{6}} != \sqrt5+\sqrt6
        \sqrt[3]{54} != 3\sqrt2
        5\pi - 3 != 3\pi-5
        \frac{\sqrt{3}}{2} != \frac{\sqrt{2}}{3}
        \frac{4\pi}{3} != \frac{3\pi}{4}
        e^2-1 != e^2
        sqrt(3)/2 == \frac{\sqrt{3}}{2}
        2*pi == 2\pi
    """,
    "complex numbers": r"""
        3 - 4i == -4i + 3
        \frac{1+i}{1-i} == i
        2e^{i\pi/3} == 1+\sqrt{3}i
        2\left(\cos\frac{\pi}{3}+i\sin\frac{\pi}{3}\right) == 1 + i\sqrt3
        (1+i)^4 == -4
        z = 2 + 3i == 2+3i
        3 - 4i != 3+4i
        2e^{i\pi/3} != 1-\sqrt{3}i
        \frac{1+i}{1-i} != -i
        -\frac{1}{2} + \frac{\sqrt{3}}{2} i == e^{2\pi i/3}
    """,
    "huge numbers": r"""
        \frac{100!}{98!} == 9900
        2024! == 2024 \cdot 2023!
        2^{2023} + 2^{2023} == 2^{2024}
        3^{100} == 9^{50}
        \frac{1}{2023!} != \frac{1}{2024!}
        2^{2024} != 2^{2023}
        3^{100} != 3^{101}
        \binom{2024}{1012} == \frac{2024!}{(1012!)^2}
        \binom{2024}{1012} != \binom{2024}{1011}
        7^{7^{7^7}} != 7^{7^{7^6}}
        10^{100}+1 != 10^{100}
        2^{1000}-1 == 2\cdot 2^{999}-1
        \frac{10^{2024}-1}{9} == \frac{10^{2024}-1}{9}
        \binom{n}{2} == \frac{n(n-1)}{2}
        \binom{n}{k} == \frac{n!}{k!(n-k)!}
        \binom{n}{k} != \frac{n!}{k!}
    """,
    "constants of integration and calculus": r"""
        \frac{x^4}{4} + C == \frac14 x^4 + C
        \sin^2 x + C == -\cos^2 x + C
        \ln|x+1| + C == C + \ln |1+x|
        -\frac{1}{x}+C == \frac{-1}{x} + K
        \int_0^1 x^2 dx == \frac{1}{3}
        \int_{0}^{\pi} \sin x \, dx == 2
        \int_0^1 e^x \, dx == e - 1
        \int 2x \, dx == x^2 + C
        \int \cos x \, dx == \sin x + C
        \lim_{x \to 0} \frac{\sin x}{x} == 1
        \lim_{n\to\infty} \left(1+\frac1n\right)^n == e
        \frac{d}{dx} x^3 == 3x^2
        \frac{d}{dx}\left(\sin x\right) == \cos x
        \sum_{k=1}^{n} k == \frac{n(n+1)}{2}
        \sum_{k=0}^{\infty} \frac{1}{2^k} == 2
        \sum_{n=1}^{\infty} \frac{1}{n^2} == \frac{\pi^2}{6}
        \prod_{k=1}^{n} k == n!
        \frac{x^4}{4} + C != \frac{x^4}{4}
        \sin^2 x + C != \cos^2 x + C
        \int_0^1 x^2 dx != \frac{1}{2}
        \int 2x \, dx != x + C
        \lim_{x \to 0} \frac{\sin x}{x} != 0
        \frac{d}{dx} x^3 != 3x
        \sum_{k=1}^{n} k != \frac{n(n-1)}{2}
        \sum_{n=1}^{\infty} \frac{1}{n^2} != \frac{\pi^2}{8}
        C_1 e^x + C_2 e^{-x} == C_1 e^{x} + C_2 e^{-x}
        y = C e^{2x} == y = A e^{2x}
        y = C e^{2x} != y = C e^{-2x}
        e^x(x-1) + C == xe^x - e^x + C
    """,
    "periodic families": r"""
        x = \frac{\pi}{2} + 2k\pi, k \in \mathbb{Z} == \frac{\pi}{2}+2\pi n
        k\pi, k\in\mathbb{Z} == x = n\pi
        \frac{\pi}{4} + k\pi \ (k \in \mathbb{Z}) == \frac{\pi}{4}+n\pi
        x = \frac{\pi}{2} + 2k\pi != x = \frac{\pi}{2} + k\pi
        k\pi != 2k\pi
        30^\circ + 360^\circ k == 30^\circ + 360^\circ n
    """,
    "labels and wrappers": r"""
        x = 12 == 12
        12 == x = 12
        n=2024 == 2024.
        \boxed{12} == 12
        $\frac{3}{5}$ == 3/5
        \[ 12 \] == 12
        \(12\) == 12
        $$12$$ == 12
        \text{12} == 12
        \mathrm{12} == 12
        \\frac{3}{5} == \frac{3}{5}
        \\sqrt{2} + \\pi == \sqrt{2}+\pi
        \left(12\right) == 12
        \displaystyle\frac{3}{5} == 0.6
        \boxed{x = 5} == 5
        \textbf{12} == 12
        **12** == 12
        12. == 12
        The answer is 12. == 12
        12 == The final answer is $\boxed{12}$.
        2 == The sum of the series is 2.
        2 == Thus, the sum is $2$
        6\pi == The area of the circle is $6\pi$ square units.
        \frac{3}{5} == So the probability is \frac{3}{5}.
        24 == #### 24
        24 == There are 24 ways.
        zh: 24 == 答案是24
        fr: 24 == La réponse est 24.
        es: 24 == La respuesta es 24.
        de: 24 == Die Antwort ist 24.
        it: 24 == La risposta è 24.
        ru: 24 == Ответ: 24.
        zh: 24 == 共有24种
        fr: 24 == Il y a 24 façons.
        AB = 12 == 12
        \text{Area} = 12 == 12
        \triangle ABC = 12 == 12
        |AB| = 12 == 12
        12 \text{ (approximately)} == 12
        k = 12 != 21
        2 != The sum of the series is 3.
        12 != The answer is 13.
        \boxed{12} != \boxed{-12}
        \\frac{3}{5} != \\frac{5}{3}
        24 != There are 42 ways.
        zh: 24 != 答案是42
        x = 12 != y = 13
        ru: 24 != Ответ: 42.
    """,
    "a second list, of all types": r"""
        \frac{\sqrt{15}}{4} == \sqrt{\frac{15}{16}}
        \cfrac{1}{3} == 1/3
        5.0\% == 5%
        1,500 square feet == 1500 \text{ ft}^2
        8\pi \text{ in}^3 == 8\pi
        \frac{1}{2} \text{ gallon} == 0.5
        3.0 \times 10^{8} \mathrm{~m/s} == 3e8 m/s
        \text{18 km/h} == 5 m/s
        5 \text{ N}\cdot\text{m} == 5 J
        100 kPa == 10^5 Pa
        5 \text{ kg m/s} == 5 kg*m/s
        12 J != 12 W
        5 m/s != 5 m/s^2
        3 h 20 min == 200 minutes
        x=\frac{-1\pm\sqrt{5}}{2} == \frac{-1+\sqrt5}{2}, \frac{-1-\sqrt5}{2}
        a=1, b=-2, c=3 == c=3, b=-2, a=1
        (1,-2,3) == a=1, b=-2, c=3
        \left(-\infty, \frac{1}{2}\right) \cup \left[3, \infty\right) == x<0.5 or x>=3
        \{x | x \neq 2\} == (-\infty,2)\cup(2,\infty)
        x > 2 \text{ and } x \neq 5 == (2,5)\cup(5,\infty)
        [-1, 1) != (-1, 1]
        \{ (x,y) : x+y=1 \} == x+y=1
        \dfrac{x-1}{2} = \dfrac{y+2}{3} = \dfrac{z}{4} == \frac{x-1}{2}=\frac{y+2}{3}=\frac{z}{4}
        x = 1+2t, y = -2+3t, z=4t == (1+2t, -2+3t, 4t)
        2x+3y+4=0 == -2x-3y-4=0
        3x-4y+5=0 != 3x-4y-5=0
        x-2y+z-3=0 == z = 3 - x + 2y
        y = \frac{1}{2}x == x - 2y = 0
        \frac{x^2}{4}+y^2=1 == x^2+4y^2=4
        x^2=8y == y=\frac{1}{8}x^2
        \text{(A)} \frac{1}{2} == A
        D == \text{(D) None of the above}
        None of the above == (D) None of the above
        \frac{\pi}{6} == \text{(C) } \frac{\pi}{6}
        A) 5 == 5
        A) 5 != B) 5
        \text{True} == Yes
        \text{Yes} != \text{No}
        \text{Monday} == It is Monday
        2^{n+1}-2 == 2(2^n-1)
        3\cdot 2^{n-1} == \frac{3}{2} 2^n
        (-1)^{n+1} == (-1)^{n-1}
        (-1)^n != (-1)^{n+1}
        \frac{n(n+1)(2n+1)}{6} == \sum_{k=1}^n k^2
        \sum_{k=0}^{n} \binom{n}{k} == 2^n
        \int_{-\infty}^{\infty} e^{-x^2} dx == \sqrt{\pi}
        \int_0^{\pi/2} \cos^2 x \, dx == \frac{\pi}{4}
        \int \frac{dx}{x} == \ln|x| + C
        \int \frac{1}{1+x^2} dx == \arctan x + C
        \int_1^e \frac{1}{x} \mathrm{d}x == 1
        \int x e^x dx == (x-1)e^x + C
        \int x e^x dx != xe^x + C
        \int_0^1 \int_0^1 xy \, dx \, dy == \frac14
        \lim_{x\to\infty} \frac{2x+1}{x-3} == 2
        \lim_{x \to 0} \frac{1-\cos x}{x^2} == 1/2
        \lim_{h\to 0}\frac{(x+h)^2-x^2}{h} == 2x
        \frac{d^2}{dx^2} \sin x == -\sin x
        \frac{1}{2}x^2 + \ln|x| + C == \frac{x^2+2\ln|x|}{2}+C
        \frac12 \sin^2 x + C == -\frac14\cos 2x + C
        \tan x - x + C == -x+\tan x + C
        \arctan x + C == -\text{arccot} x + C
        \sec x + C != \tan x + C
        \sqrt{3+2\sqrt2} == 1+\sqrt2
        \sqrt{7-4\sqrt3} == 2-\sqrt3
        \sqrt[3]{2+\sqrt5}+\sqrt[3]{2-\sqrt5} == 1
        \cos\frac{\pi}{7}-\cos\frac{2\pi}{7}+\cos\frac{3\pi}{7} == \frac12
        \frac{\sqrt2}{2} - \frac{\sqrt2}{2}i == e^{-i\pi/4}
        \log_{2}(x+1) == \frac{\ln(x+1)}{\ln 2}
        \log_{0.5} 8 == -3
        \lg 2 + \lg 5 == 1
        0.\overline{27} == \frac{3}{11}
        0.1666\ldots == \frac16
        0.272727... == 3/11
        2^{10}\cdot 3^5 == 3^5 \times 2^{10}
        2^4 \cdot 3^2 \cdot 5 == 720
        13! == 6227020800
        \frac{2024!}{2022!} == 2024 \cdot 2023
        2^{1000} != 2^{1000}+1
        1 - \frac{1}{2^{100}} != 1
        \frac{1}{2}^{10} == \frac{1}{1024}
        \left(\frac{2}{3}\right)^5 == \frac{32}{243}
        \begin{pmatrix}\cos t & -\sin t\\ \sin t & \cos t\end{pmatrix} == [[\cos t, -\sin t], [\sin t, \cos t]]
        \begin{pmatrix}1&0\\0&1\end{pmatrix} != \begin{pmatrix}0&1\\1&0\end{pmatrix}
        \left[\begin{matrix}1\\-1\end{matrix}\right] == \begin{pmatrix}1\\-1\end{pmatrix}
        \begin{bmatrix} 2/3 \\ -1/3 \end{bmatrix} == \frac{1}{3}\begin{bmatrix} 2 \\ -1 \end{bmatrix}
        \begin{pmatrix} 3 & 4 \end{pmatrix} == (3,4)
        3\hat{i}+4\hat{j} == (3,4)
        \overrightarrow{AB} = (2,3) == (2,3)
        \text{between 10 and 20} == 10 to 20
        4 or 6 == 6, 4
        x = 4 or x = 6 == 4, 6
        11:59 pm == 23:59
        2:30 != 3:30
        \text{May 5} == 5 May
        5 \text{ dollars and } 25 \text{ cents} == \$5.25
        \$2\frac{1}{2} == \$2.50
        \$1.2 \text{ million} == \$1,200,000
        2 million == 2000000
        one half == 1/2
        twenty-five == 25
        \frac{2}{5} == 2 out of 5
        40^{\circ} == 40 deg
        \pi \text{ rad} == 180^\circ
        \angle A=30^\circ != 60^\circ
        -45^\circ == -\frac{\pi}{4}
        3 + \sqrt{5}, 3 - \sqrt{5} == 3 \pm \sqrt{5}
        \{3, -3\} == \pm3
        ±2√3 == 2\sqrt3, -2\sqrt3
        x=0, \pm 1 == -1, 0, 1
        $\text{no real roots}$ == no real solutions
        \text{None} == no solution
        k>1 或 k<-1 == |k|>1
        2\sqrt{3}\,\text{cm} == 2√3 cm
        S=\frac{3\sqrt3}{2} == \frac{3\sqrt{3}}{2}
        a_n=2^{n}-1 == 2^n - 1 (n \in \mathbb{N}^*)
        f(x)=\sin\left(2x+\frac{\pi}{6}\right) == y=\sin(2x+\pi/6)
        y'=2x == 2x
        x^2 - 5x + 6 == (x - 2) (x - 3)
        x(x-1)^2 != x^2(x-1)
        a^2b+ab^2 == ab(a+b)
        \frac{a-b}{c} == -\frac{b-a}{c}
        \frac{1}{a+b} != \frac1a+\frac1b
        |a-b| == |b-a|
        |a-b| != a-b
        \max(a,b) == \max(b,a)
        \lfloor \frac{n}{2} \rfloor == \lfloor n/2 \rfloor
        \lfloor \frac{n}{2} \rfloor != \frac{n}{2}
        \gcd(m,n) == \gcd(n,m)
        e^{i\theta} == \cos\theta+i\sin\theta
        5. == 5
        (5) == 5
        \{5\} == 5
        5\text{ (five)} == 5
        Answer: 5 == 5
        The value of $x$ is $\boxed{-3}$. == -3
        Therefore, the final answer is: $\boxed{\frac{7}{8}}$ == 7/8
        We get x = 3 and y = 4, so x + y = 7. == 7
        The probability is 3/8. == \frac{3}{8}
        The solutions are x = 1 and x = -4. == -4, 1
        $x \in [2,3]$ == [2,3]
        1e-3 == 0.001
        .5 == 0.5
        1/2 + 1/3 == 5/6
        1 : 4 == 1:4
        3 : 2 != 2 : 3
        4/6 == 2 : 3
        8.0 == 8
        1000000007 != 1000000009
        \frac{123456789}{987654321} == \frac{13717421}{109739369}
        m \in (0,1) \cup (1, +\infty) == m > 0 \text{ and } m \ne 1
        a>1 != a \geq 1
        -3 \leq x < 2 == [-3, 2)
        y \in [0, 4] == [0,4]
        (2,+\infty) == \{x|x>2\}
        \{0, 1, 2\} == {x: x=0,1,2}
        \{1\} \cup [2, 3] == x = 1 or 2<=x<=3
        12\% \text{ per year} == 12\%
        6 hours per day == 6
        7 cm^2 != 7 cm
        1 km == 1000 m
        300 K == 300 \text{ kelvin}
        98.6°F == 98.6^\circ F
        1.5 \text{ V} == 1500 mV
    """,
    "permutations and sequences": r"""
        (1 2 3) != (1 3 2)
        1, 1, 2, 3, 5 == 1,1,2,3,5
        (3,1,2) != (1,2,3)
        (3,1,2) == (3, 1, 2)
        3 > 2 > 1 != 1 > 2 > 3
        a < b < c == c > b > a
        ABCD == ABCD
    """,
}


def rows() -> list[tuple[str, str, str, str, bool]]:
    found = []
    for kind, table in TYPES.items():
        for line in filter(None, (line.strip() for line in table.split("\n"))):
            lang = re.match(r"(en|zh|fr|es|it|de|ru): ", line)
            text = line[lang.end() :] if lang else line
            equal = " == " in text
            one, two = text.split(" == " if equal else " != ")
            found.append((kind, lang.group(1) if lang else "en", one.strip(), two.strip(), equal))
    return found


@pytest.mark.parametrize("kind", TYPES)
def test_pairs_of_the_type(kind: str) -> None:
    wrong = []
    for other, lang, one, two, equal in rows():
        if other == kind:
            found = answers.compare_texts(one, two, lang=lang)
            if (found.outcome is Outcome.CORRECT) != equal:
                wrong.append((one, two, found))
    assert not wrong
