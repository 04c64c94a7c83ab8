"""What is asked and what is answered: the expressions about questions, their parts and their answers.

The companion of `words`, with the same conventions: Rust syntax, all languages tried on every row.
"""

from __future__ import annotations

from curation.filters.statements.words import either
from curation.languages.vocabulary import every, one_of

# A verb or a question word that asks for something, right after the mark of a part.
_ASKS = f"(?:{one_of(lambda lang: lang.statements.asks, spaced=True)})\\b"
_HAN_ASKS = f"(?:{one_of(lambda lang: lang.statements.asks, spaced=False)})"
# The same for parts that stand after a condition of their own ("(b) …" with a condition before the mark).
_ORDERS = f"(?:{one_of(lambda lang: lang.statements.orders, spaced=True)})\\b"
_HAN_ORDERS = f"(?:{one_of(lambda lang: lang.statements.orders, spaced=False)})"
# Anything between the first part and the second: no bracket that opens the second.
_UNTIL_2 = r"(?:[^（(]|[（(]\s*[^\s2２Ⅱi二])*?"

# (a) … (b) …, each of them asking; a. … b. …; i) … ii) …; Part A … Part B; numbered questions; （1）求…（2）求…
_MARK = r"(?:^|[^A-Za-z0-9_}\\)\]])"
"""What stands before the bracket of a part: f(1) and (a)(b) are no parts."""
MULTI_PART = either(
    rf"{_MARK}\(\s*a\s*\)[\s,:$]*{_ASKS}[\s\S]*\(\s*b\s*\)",
    rf"{_MARK}\(\s*a\s*\)(?:[\s\S]*(?:[^A-Za-z0-9_}}\\]|\\n))?\(\s*b\s*\)[\s,:$]*{_ORDERS}",
    rf"(?:^|\n|[.?:;]\s+)\**a\s*[.)]\**\s+{_ASKS}[\s\S]*(?:\n|[.?;]\s*)\**b\s*[.)]\**\s+",
    rf"{_MARK}\(\s*(?:i|1)\s*\)[\s,:$]*{_ASKS}[\s\S]*\(\s*(?:ii|2)\s*\)",
    rf"{_MARK}\(\s*(?:i|1)\s*\)(?:[\s\S]*(?:[^A-Za-z0-9_}}\\]|\\n))?\(\s*(?:ii|2)\s*\)[\s,:$]*{_ORDERS}",
    rf"(?:^|\n|[.?:;]\s+)(?:i|1)\s*[.)]\s+{_ASKS}[\s\S]*(?:\n|[.?;]\s*)(?:ii|2)\s*[.)]\s+{_ASKS}",
    rf"\bpart\s+\(?(?:a|1|i|one)\b\)?\s*[:.)\-]?\s*{_ASKS}?[\s\S]*\bpart\s+\(?(?:b|2|ii|two)\b",
    rf"{_MARK}[（(]\s*\$*(?:[1１]|Ⅰ|i|I|一)\$*\s*[)）]{_UNTIL_2}{_HAN_ASKS}(?:{_UNTIL_2}[^A-Za-z0-9_}}\\（(])?[（(]\s*\$*(?:[2２]|Ⅱ|ii|II|二)\$*\s*[)）]",
    rf"(?:^|\n|[。．；;])\s*(?:1|１|一)[、.．]\s*[^\n]*?{_HAN_ORDERS}[\s\S]*(?:\n|[。．；;?？])\s*(?:2|２"
    rf"|二)[、.．]\s*[^\n]*?{_HAN_ORDERS}",
    rf"①\s*[^②]*?{_HAN_ORDERS}[\s\S]*②[\s\S]*?{_HAN_ORDERS}",
)  # fmt: skip

MULTI_PART_NEEDLES = [
    "(i", "( i", "（i", "（ i", "(2", "（2", "( 2", "（ 2",
    "(a)", "( a )", "(i)", "(1)", "( 1 )", "a)", "a.", "1.", "1)", "i)", "part a", "part (", "part 1", "part i",
    "part one",
    "（1）", "(１)", "（１）", "（Ⅰ）", "(Ⅰ)", "（一）", "(一)", "（$", "($1$", "($$1", "(2)",
    "（２）", "（Ⅱ）", "(Ⅱ)",
    "一、", "1、", "１、", "1．", "①",
]  # fmt: skip

# "find also", two asked quantities in two sentences
ALSO_ASKED_NEEDLES = every(lambda lang: lang.statements.also_asked_needles)
ALSO_ASKED = either(*every(lambda lang: lang.statements.also_asked))
ALSO_ASKED_HARMLESS = either(*every(lambda lang: lang.statements.also_asked_harmless))

# Several answers in the reference, by their marks: "(a) 3 (b) 5", "（1）2；（2）3", "① 4 ② 5", "a) 1; b) 2"
MARKED_ANSWERS = either(
    r"^[\s$*\\({\[（【:：.]{0,6}a\s*[).:]\s*\S[\s\S]*[\s,;.]\(?\s*b\s*[).:]\s*\S",
    r"^[\s$*:：.]{0,4}[（(]\s*(?:[1１]|Ⅰ|i|一)\s*[)）]\s*\S[\s\S]*[（(]\s*(?:[2２]|Ⅱ|ii|二)\s*[)）]\s*\S",
    r"①\s*\S[\s\S]*②\s*\S|^\s*\(?i\)\s*\S[\s\S]*\(?ii\)\s*\S",
    r"^\s*1\s*(?:[)、．]\s*\S|\.(?:\s+\S|[^\s0-9]))[\s\S]*[\s,;；]2\s*(?:[)、．]\s*\S|\.(?:\s+\S|[^\s0-9]))",
)

# What separates answers, and statements that ask for more than one of them.
SEVERAL = rf"[^,;，；]\s*(?:[;；]|,\s|，|、|{one_of(lambda lang: lang.statements.several_joiners)})\s*[^,;，；\s]"
_BLANK = r"[（(](?:\s|\\q?quad|\\ )*\\?[)）]"
TWO_BLANKS = rf"____[^_](?:[\s\S]*[^_])?____|{_BLANK}[^（()）]*[^（()）\s][\s\S]*?{_BLANK}"
ASKS_SEVERAL = either(
    TWO_BLANKS,
    *every(lambda lang: lang.statements.asks_several),
    r"\?[^?]{8,}\?",
)

# "Return the answers as a list": one answer after all.
ASKS_A_LIST = (
    r"(?i)\b(?:return|give|write|enter|express|present|report|state)\b[^.?]{0,50}"
    r"\b(?:lists?|ordered|pair|triple|tuple|vector|coordinates)\b"
)

# --- yes/no ----------------------------------------------------------------------------------------------------------

YES_NO_ANSWER = (
    r"(?i)^[\s$(\[*\"'“「]*(?:\\(?:text|mathrm|textbf|boxed|operatorname)\s*\{\s*)*"
    rf"(?:{one_of(lambda lang: lang.statements.yes_no_answers)}|√|×|✓|✗)"
    r"[\s}$)\]*.。．\"'”」]*(?:$|[,，;；:：—–-]\s*\D|\.\s+\D)"
)
TRUE_FALSE_NEEDLES = every(lambda lang: lang.statements.true_false_needles)
TRUE_FALSE = either(*every(lambda lang: lang.statements.true_false))

# --- answers ---------------------------------------------------------------------------------------------------------

NO_ANSWER = (
    r"(?i)^[\s$.*(\[]*(?:n/?a|none|null|nan|nil|tbd|todo|unknown|undefined answer|-+|\?+"
    rf"|{one_of(lambda lang: lang.statements.no_answer)})[\s$.。)\]]*$"
)
# "≈ 24.33": often a value that everybody comes to.
ROUNDED = r"^[\s$]*(?:\\approx|≈|~\s*[0-9]|\\sim\b)"
HEDGED = either(
    rf"^[\s$]*(?:{one_of(lambda lang: lang.statements.hedges)})\s*[\d$\\−-]",
    rf"\d\s*(?:{one_of(lambda lang: lang.statements.hedges_behind)})\s*\S{{0,10}}$",
    *every(lambda lang: lang.statements.hedged),
)
# A rounded value was asked for: then a mark of rounding before it hedges nothing.
ASKS_ROUNDED = r"(?i)\b(?:to\s+the\s+nearest|(?:decimal|significant)\s+(?:places?|digits?|figures?)|rounded?)\b"
# Words that join answers; those of one letter may be unknowns.
_JOINERS = "|".join(
    word.strip()
    for word in (*every(lambda lang: lang.answers.and_words), *every(lambda lang: lang.answers.or_words))
    if len(word.strip()) > 1
)
# A reference that lost a piece: 90^ , (90^), 3 \\times, \\frac{}{2}, \\frac{3}; a sign alone may be what was asked for.
BROKEN = (
    r"[0-9\p{L})}\]]\s*(?:[=/*<>]|\\(?:times|cdot|div|pm|mp|leq?|geq?|neq?|in|cup|cap|to|left))[\s$.。]*$"
    r"|(?:^|[^^_])[0-9a-z)}\]]\s*[+\-−][\s$.。]*$"
    r"|\\(?:[dt]?frac|sqrt|log|ln|sin|cos|tan|left)[\s$.。]*$"
    r"|(?:^|[^\\_])[\^_]\s*(?:[)\]},，;；.。$]|\\[)\]]|\\right\b|\{\s*\}\s*(?:[^\\\s]|\\[^c\s]|$)|\^|\s[A-Za-z]{2}|$)"
    r"|\\(?:[dtc]?frac|sqrt|d?binom)\s*(?:\[[^\]]*\]|\{[^{}]*\})?\s*\{\s*\}|\\[dtc]?frac\s*\{[^{}]*\}\s*(?:[)$,.]|$)"
    r"|[^\\]\\$|^[\s$]*\^|\\?#\s*\\?#"
    r"|[0-9]\.\.[0-9]|[0-9]\.[0-9]+\.[0-9]|,\s*,|[(\[]\s*,|,\s*[)\]]|\+\s*\+|__|[0-9]#\s*$|%\s*[0-9]"
    r"|^[\s$]*-?[0-9]+\s*/\s*0[\s$]*$|^[\s$]*\\(?:angle|circ|triangle)[\s$]*$"
    rf"|[\s,](?i:{_JOINERS})[\s$.]*$|^[\s$]*(?i:{_JOINERS})\s"
)
# What is none of these: letters, digits and single blanks, commas and points.
MAY_BE_BROKEN = r"[^0-9\p{L}\s,.]|[,.]\s*[,.]|\.\d*\.|(?:^|[\s,])\p{L}+\W*$|^\W*\p{L}+\s"

EITHER_NUMBER = (
    rf"(?i)^\W*\d[\d.,]*\s*(?:{one_of(lambda lang: lang.statements.either_words)}|-|–|~)"
    r"\s*\d[\d.,]*(?:\s+\w*|\w{2,})?\W*$"
)
ASKS_A_NUMBER = either(*every(lambda lang: lang.statements.asks_a_number))

# What is to be proved, where the answer should be.
PROOF_ANSWER = rf"(?i)^[\s\"'$*(\[]*(?:{one_of(lambda lang: lang.statements.proof_answers)})"

# A worked solution where the answer should be.
WORKED = rf"^\s*(?:{one_of(lambda lang: lang.statements.worked)})"
LONGEST_ANSWER = 400
"""Characters; a final answer in words is shorter than this, a worked solution rarely is."""

PROSE = r"(?:[A-Za-zÀ-ɏЀ-ӿ]{2,}[\s,]+){3,}|\p{Han}{4}"

# A sentence instead of an answer: six words of prose in a row, or three and no mathematics at all, or nine hanzi.
_WORD = r"[A-Za-zÀ-ɏЀ-ӿ'’]{2,}"
SENTENCE = rf"(?:{_WORD}[\s,]+){{5,}}{_WORD}"
PHRASE = rf"^\W*(?:[A-Za-zÀ-ɏЀ-ӿ'’]+[\s,]+){{3,}}{_WORD}\W*$"
HAN_SENTENCE = r"\p{Han}{6,}|\p{Han}[\p{Han}，、]{8,}"
FORMULA = r"\$[^$]*\$|\\\([\s\S]*?\\\)|\\\[[\s\S]*?\\\]|\\[a-zA-Z]+"

# A letter for an answer to a statement that still holds lettered options: their style was not understood.
ONLY_LETTER = r"^[\s$(（]*(?:\\(?:text|mathrm|textbf|boxed)\{)?[\s(]*[A-H][\s)}）.$]*$"
LETTERED = r"(?:^|[\s(（])A\s*[.)．、：:）][\s\S]*[\s(（]B\s*[.)．、：:）]"

# An answer in words only, less those that a verifier reads as mathematics: names, days, colours, shapes.
NOT_WORDS = r"[0-9$=<>^_+*/|∞π√\\]"
TEXT_MARKS = r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox|operatorname)\s*|\\[ ,;!]|[{}$]"
MATH_WORDS = either(
    r"\b(?:arc)?(?:sinh?|cosh?|tanh?|cot|sec|csc|log|ln|exp|sqrt|max|min|gcd|lcm|mod|det|deg|pi)[a-z]{0,2}\b|\b(?:abcde?|[b-df-hj-np-tv-xz]{2,6})\b"
    r"|\b(?:alpha|beta|gamma|delta|epsilon|zeta|eta|theta|lambda|sigma|omega|phi|psi|rho|tau)\b",
    *every(lambda lang: lang.statements.math_words),
)
WORDY = r"[A-ZÀ-Þ]?[a-zß-ÿ’']{4,}|[A-ZÀ-Þ][a-zß-ÿ]{2}|[A-Z]{6,}|[Ѐ-ӿ]{3,}|\p{Han}\p{Han}"
LONGEST_WORDS = 120
LONE_LETTER = r"(?:^|[\s,(])[b-zB-Z](?:$|[\s,)])"
