"""Planted defects that the format filter and the check of references must catch. Texts are hand-written for this set.

Each table is one kind; each of its lines is (question, reference) or (question, reference, language). Where a kind
has a variant that is only recognisable by one feature, the other features are in order: a proof has a reference,
a problem with a textual answer has a complete statement.
"""

from __future__ import annotations

from curation.records import DropReason
from tests.demo_data.rows import Planted, Row

Line = tuple[str | None, str | None] | tuple[str | None, str | None, str]

MISSING_STATEMENT: tuple[Line, ...] = (
    (None, "12"), ("", "35"), ("   ", "8"), (None, "0.5"), ("\n\n", "144"), ("", "7/3"), ("\u200b", "19"), (None, "60"),
)  # fmt: skip

MISSING_ANSWER: tuple[Line, ...] = (
    ("What is 61 + 27 + 5?", None),
    ("Find the sum of 44, 19 and 6.", ""),
    ("A box holds 14 pens. How many pens are in 6 boxes?", "   "),
    ("Solve 7x - 5 = 44 for x.", None),
    ("What is 35% of 260?", "N/A"),
    ("Find the mean of 3, 8, 19 and 26.", ""),
    ("Combien font 18 + 26 + 4 ?", None, "fr"),
    ("Wie viele Minuten haben 7 Stunden?", "", "de"),
    ("一个班有 6 组，每组 7 人，一共多少人？", None, "zh"),
)

PROOF: tuple[Line, ...] = (
    ("Prove that the sum of two odd numbers is even.", "proof"),
    ("Show that n^2 + n is even for every whole number n.", "see proof"),
    ("Prove that $\\sqrt{3}$ is irrational.", "Proof by contradiction."),
    ("Let a, b > 0. Prove that (a + b)^2 >= 4ab.", "Proof."),
    ("Show that 9 divides 10^n - 1 for all n >= 1.", "Q.E.D."),
    ("Explain how you would add 1/2 and 1/3.", "Bring both to sixths, then add the numerators."),
    ("Démontrer que le produit de deux nombres pairs est divisible par 4.", "preuve", "fr"),
    ("Demuestra que la suma de tres números consecutivos es múltiplo de 3.", "demostración", "es"),
    ("Dimostrare che la somma di due numeri dispari è pari.", "dimostrazione", "it"),
    ("Beweise, dass das Quadrat einer ungeraden Zahl ungerade ist.", "Beweis", "de"),
    ("证明：任意两个连续整数的乘积是偶数。", "证明略", "zh"),
    ("Докажите, что сумма двух чётных чисел чётна.", "доказательство", "ru"),
)

MULTI_PART: tuple[Line, ...] = (
    ("(a) What is 14 + 9? (b) What is 14 * 9?", "(a) 23 (b) 126"),
    ("a) Find 30% of 90. b) Find 45% of 60. c) Which is larger?", "a) 27 b) 27 c) equal"),
    ("(i) Solve x + 4 = 11. (ii) Solve 3y = 27.", "(i) 7, (ii) 9"),
    ("1. Compute 6 * 7. 2. Compute 8 * 9. 3. Add both results.", "42, 72, 114"),
    ("Part 1: find the area of a square of side 6. Part 2: find its perimeter.", "36; 24"),
    ("What is 15 + 8?\n(a) in decimal\n(b) in binary", "(a) 23, (b) 10111"),
    ("(a) Calculer 7 + 8. (b) Calculer 7 * 8.", "(a) 15 (b) 56", "fr"),
    ("a) Berechne 12 + 5. b) Berechne 12 - 5.", "a) 17 b) 7", "de"),
    ("a) Calcula 9 + 6. b) Calcula 9 * 6.", "a) 15 b) 54", "es"),
    ("（1）求 8 + 5 的值；（2）求 8 × 5 的值。", "（1）13；（2）40", "zh"),
)

YES_NO: tuple[Line, ...] = (
    ("Is 51 a prime number?", "No"),
    ("True or false: 3/7 is larger than 2/5.", "True"),
    ("Is 2^10 larger than 1000?", "yes"),
    ("Does the equation x^2 = -4 have a real solution?", "No"),
    ("Can 84 be divided by 7 without remainder?", "Yes"),
    ("Decide whether the statement is true or false: every square is a rectangle.", "true"),
    ("Est-ce que 91 est un nombre premier ?", "Non", "fr"),
    ("Ist 111 durch 3 teilbar?", "Ja", "de"),
    ("¿Es 57 un número primo?", "No", "es"),
    ("77 是质数吗？", "否", "zh"),
    ("Является ли число 39 простым?", "нет", "ru"),
)

MISSING_FIGURE: tuple[Line, ...] = (
    ("In the figure below, ABCD is a square with side 4. What is the shaded area?", "8"),
    ("![](images/t3.png) The diagram shows a right triangle. Find the length of x.", "13"),
    ("![triangle](images/t17.png) What is the area of the triangle?", "24"),
    ('<img src="fig3.gif"> How many cubes are in the stack?', "14"),
    ("![bar chart](images/cars.png) According to the bar chart, how many cars were sold in May?", "35"),
    ("<image1> As shown in the picture, a ladder leans on a wall. How high does it reach?", "12"),
    ("\\includegraphics[width=3cm]{graph.png} Use the graph below to find f(3).", "5"),
    ("![](images/abc.png) Sur la figure ci-dessous, quelle est l'aire du triangle ABC ?", "18", "fr"),
    ("Wie groß ist der Winkel in der Abbildung unten?", "40", "de"),
    ("![](images/9.png) 如图所示，求阴影部分的面积。", "16", "zh"),
)

TRUNCATED: tuple[Line, ...] = (
    ("A shop sells 12 boxes with 4 pens in each box. How many pens does the", "48"),
    ("Lena has 35 beads and loses 8 of them. Then she", "27"),
    ("Find the area of a rectangle whose length is 9 cm and whose", "45"),
    ("If 3x + 5 = 26, then the value of", "7"),
    ("A train leaves at 9:15 and travels at 80 km per hour for 45 minutes. How far does it", "60"),
    ("Calculate $\\frac{3}{4} + \\frac{1}{", "1"),
    ("The sum of two numbers is 40 and their difference is 6. What is the larger of the", "23"),
    ("Ein Bus hat 48 Plätze, davon sind 3/4 besetzt. Wie viele", "36", "de"),
    ("Un camion transporte 15 caisses de 8 kg. Quel est le poids de", "120", "fr"),
)

REFERS_ELSEWHERE: tuple[Line, ...] = (
    ("Using the result of the previous problem, find the total cost.", "84"),
    ("Repeat Exercise 12 with a radius of 5.", "25"),
    ("For the sequence defined in Problem 3, find the tenth term.", "31"),
    ("See Table 2.4. How many students chose football?", "18"),
    ("With the same numbers as in question 7, compute the mean.", "9"),
    ("Use the formula from Example 2.3 to find the volume.", "150"),
    ("What is the answer to part (b) if the price doubles?", "42"),
    ("En reprenant les données de l'exercice précédent, calculer le prix total.", "56", "fr"),
    ("Verwende das Ergebnis aus Aufgabe 5, um den Umfang zu berechnen.", "22", "de"),
)

DEBRIS: tuple[Line, ...] = (
    ("What is the sum of 10Â\u00a0and 17, â€œroughly speakingâ€\u009d?", "27"),
    ("锟斤拷 14 锟斤拷 8 锟斤拷 ?", "22"),
    ("%PDF-1.4 %âãÏÓ 5 0 obj << /Length 6 0 R /Filter /FlateDecode >> stream", "5"),
    ('<div class="nav"><a href="/">Home</a><a href="/math">Math</a><a href="/login">Log in</a></div>', "3"),
    ("<script>function add(a, b) { return a + b; } document.write(add(3, 4));</script>", "7"),
    ("\x00\x01\x02 12 \x03\x04 + \x05 9 \x06 ?", "21"),
    ("\x01\x02 ### ||| ~~~ 4 ^^^ ### ||| ~~~ ^^^ \x03", "4"),
    ("Ð§ÐµÐ¼Ñƒ Ñ€Ð°Ð²Ð½Ð° ÑÑƒÐ¼Ð¼Ð° Ñ‡Ð¸ÑÐµÐ» 15 Ð¸ 27?", "42", "ru"),
)

NOT_A_PROBLEM: tuple[Line, ...] = (
    ("Thanks for using this worksheet! Subscribe for more exercises every week.", "4"),
    ("Solutions to chapter 4.", "12"),
    ("The sum of 13 and 4 is a prime number.", "17"),
    ("Answers are on page 36 of the booklet.", "36"),
    ("Area of rectangles, continued", "40"),
    ("420 pupils and 21 teachers.", "20"),
    ("Copyright 2020. All rights reserved.", "2020"),
    ("Remember: a triangle has three angles", "3"),
)

HEDGED_ANSWER: tuple[Line, ...] = (
    ("How many days are there in 17 weeks?", "about 120"),
    ("A tank holds 90 litres and loses 7 litres an hour. How many litres are left after 4 hours?", "62 or 63"),
    ("What is 19 * 21?", "approximately 400"),
    ("How many seconds are there in 14 minutes?", "840 seconds, I think"),
    ("What is 1/7 of 365?", "roughly 52"),
    ("Find 18% of 250.", "between 40 and 50"),
    ("What is the square root of 200?", "$\\approx 14.1$"),
    ("Combien y a-t-il d'heures dans 12 jours ?", "environ 290", "fr"),
    ("Wie viele Tage haben 13 Wochen?", "ungefähr 90", "de"),
)

TEXTUAL_ANSWER: tuple[Line, ...] = (
    ("Tom has 17 coins and Ana has 19 coins. Who has more coins?", "Ana has more coins than Tom"),
    ("Today is Tuesday. What day of the week will it be in 100 days?", "It will be a Thursday then"),
    ("A train needs 50 minutes and a bus 65 minutes for the same way. What arrives first?", "The train arrives first."),
    ("Why is the product of 4 and 25 a round number?", "because both share factors with ten"),
    ("What is the name of a polygon with seven sides?", "It is called a heptagon"),
    ("Which month has the fewest days?", "February has the fewest days"),
    ("Aujourd'hui c'est lundi. Quel jour serons-nous dans 10 jours ?", "Nous serons alors un jeudi", "fr"),
    ("Max ist 12 und Eva ist 15 Jahre alt. Wer ist jünger?", "Max ist drei Jahre jünger", "de"),
)

ANSWER_IN_STATEMENT: tuple[Line, ...] = (
    ("What is 46 + 37? Answer: 83", "83"),
    ("Find 15% of 480. (Answer: 72)", "72"),
    ("Solve 4x + 9 = 45 for x. Ans. 9", "9"),
    (
        "A crate holds 24 bottles. How many bottles are in 12 crates?\nSolution: 24 * 12 = 288, so the answer is 288.",
        "288",
    ),
    ("What is the remainder when 95 is divided by 8? The correct answer is 7.", "7"),
    ("Find the least common multiple of 8 and 18. \\boxed{72}", "72"),
    ("Combien font 13 fois 14 ? Réponse : 182", "182", "fr"),
    ("Was ist 17 mal 8? Antwort: 136", "136", "de"),
    ("25 与 38 的和是多少？答案：63", "63", "zh"),
)

GUESSWORK: tuple[Line, ...] = (
    ("What is the next number in the sequence 3, 5, 9, 17?", "33"),
    ("Find the missing term of the series 4, 9, ?, 25, 36.", "16"),
    ("Which number comes next: 1, 4, 10, 22?", "46"),
    ("Complete the pattern: 2, 6, 12, 20, ____", "30"),
    ("Find the wrong number in the series 5, 10, 21, 40, 80.", "21"),
    ("Quel est le nombre suivant de la suite 2, 5, 11, 23 ?", "47", "fr"),
    ("Setze die Zahlenfolge fort: 1, 3, 7, 15, ____", "31", "de"),
    ("找规律填数：2，5，11，23，____", "47", "zh"),
)  # fmt: skip

CHOICES_NEEDED: tuple[Line, ...] = (
    ("Which of the following is a prime number? (A) 21 (B) 27 (C) 31 (D) 33", "C"),
    ("Which of these numbers is divisible by 7?\nA. 45\nB. 56\nC. 65\nD. 75", "B"),
    ("Which of the following fractions is the largest?\nA) 1/2\nB) 2/5\nC) 4/7\nD) 3/8", "C"),
    ("Which number does not belong with the others? (A) 9 (B) 16 (C) 20 (D) 25", "C"),
    ("Which statement is true? (A) 2 > 3 (B) 5 < 4 (C) 6 = 7 (D) 8 > 1", "D"),
    ("Which of the following is a multiple of 12? (A) 44 (B) 50 (C) 60 (D) 70", "C"),
    ("Lequel des nombres suivants est un carré ? (A) 12 (B) 36 (C) 48 (D) 50", "B", "fr"),
    ("Welche der folgenden Zahlen ist durch 9 teilbar? (A) 35 (B) 46 (C) 54 (D) 65", "C", "de"),
    ("下列哪个数是偶数？ A. 13 B. 15 C. 18 D. 21", "C", "zh"),
)

CHOICES_UNRESOLVED: tuple[Line, ...] = (
    ("What is 23 + 45? (A) 58 (B) 66 (C) 68 (D) 78", "F"),
    ("What is 12 * 15?\nA. 160\nB. 170\nC. 180", "E"),
    ("Find 40% of 150. (A) 45 (B) 50 (C) 60 (D) 75", "G"),
    ("What is 9^2? (A) 18 (B) 72 (C) 81", "D"),
    ("Solve 5x = 65.\nA) 11\nB) 12\nC) 13\nD) 14", "E"),
    ("What is the mean of 6, 10 and 14? (1) 8 (2) 10 (3) 12 (4) 14", "E"),
    ("Find gcd(36, 60). (A) 6 (B) 9 (C) 12 (D) 18", "H"),
    ("25 × 16 等于多少？ A. 300 B. 350 C. 400 D. 450", "E", "zh"),
)

UNVERIFIABLE_ANSWER: tuple[Line, ...] = (
    ("What is 3/8 + 1/4?", "\\frac{5}{"),
    ("Simplify $\\sqrt{98}$.", "7\\sqrt{2"),
    ("Multiply x^2 by x.", "x^{3"),
    ("What is 70 - 34?", "{{36}"),
    ("Write 6/4 as a reduced fraction.", "\\frac{}{2}"),
    ("What is 5^3?", "= ="),
    ("Find 60% of 115.", "}{"),
    ("What is 81 / 9?", "^9"),
    ("Was ist 5/6 minus 1/3?", "\\frac{1{2}", "de"),
)

VOTED = {
    "missing_figure": "INCOMPLETE",
    "truncated": "INCOMPLETE",
    "refers_elsewhere": "INCOMPLETE",
    "not_a_problem": "NOTHING",
    "hedged_answer": "REFERENCE",
    "guesswork": "SEVERAL",
}
"""By kind, what the recorded model answers about a row that no rule drops."""

SHOWS_A_PICTURE = ("![", "<image", "<img", "\\include")
"""With these a rule finds that a figure is missing."""

TABLES: tuple[tuple[str, DropReason, str, tuple[Line, ...]], ...] = (
    ("missing_statement", DropReason.MISSING_STATEMENT, "statements", MISSING_STATEMENT),
    ("missing_answer", DropReason.MISSING_ANSWER, "statements", MISSING_ANSWER),
    ("proof", DropReason.PROOF, "statements", PROOF),
    ("multi_part", DropReason.MULTI_PART, "statements", MULTI_PART),
    ("yes_no", DropReason.YES_NO, "statements", YES_NO),
    ("missing_figure", DropReason.MISSING_FIGURE, "statements", MISSING_FIGURE),
    ("truncated", DropReason.UNUSABLE, "doubtful_rows", TRUNCATED),
    ("refers_elsewhere", DropReason.UNUSABLE, "doubtful_rows", REFERS_ELSEWHERE),
    ("debris", DropReason.DEBRIS, "statements", DEBRIS),
    ("not_a_problem", DropReason.UNUSABLE, "doubtful_rows", NOT_A_PROBLEM),
    ("hedged_answer", DropReason.UNUSABLE, "doubtful_rows", HEDGED_ANSWER),
    ("textual_answer", DropReason.TEXTUAL_ANSWER, "statements", TEXTUAL_ANSWER),
    ("answer_in_statement", DropReason.ANSWER_IN_STATEMENT, "statements", ANSWER_IN_STATEMENT),
    ("guesswork", DropReason.MULTI_PART, "doubtful_rows", GUESSWORK),
    ("choices_needed", DropReason.MULTIPLE_CHOICE, "statements", CHOICES_NEEDED),
    ("choices_unresolved", DropReason.MULTIPLE_CHOICE, "statements", CHOICES_UNRESOLVED),
    ("unverifiable_answer", DropReason.UNVERIFIABLE_ANSWER, "references", UNVERIFIABLE_ANSWER),
)  # fmt: skip
"""Kind, the reason and the stage of the drop, and the lines."""


def defective_rows() -> list[Row]:
    """Return every line of every table as a row, without attempts."""
    rows: list[Row] = []
    for kind, reason, stage, lines in TABLES:
        for line in lines:
            lang = line[2] if len(line) == 3 else "en"
            planted = Planted(kind, str(reason), stage)
            if reason is DropReason.MISSING_FIGURE and not (line[0] or "").startswith(SHOWS_A_PICTURE):
                planted = Planted(kind, str(DropReason.UNUSABLE), "doubtful_rows")
            rows.append(Row(line[0], line[1], lang=lang, planted=planted))
    return rows
