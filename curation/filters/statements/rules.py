"""Defines the format rules in order of precedence.

Invariants: nulls fire only the rules about missing texts and proofs; a rule reads one row.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from curation.config import StatementSettings
from curation.filters.statements.expressions import (
    ANSWER,
    LETTERS,
    STATEMENT,
    StatementRule,
    cheap,
    either,
    either_text,
    matched_text,
    tokens,
)
from curation.languages.identification import identify_many
from curation.languages.vocabulary import every, language, languages, one_of
from curation.records import DropReason

# --- characters ---

MIN_LETTERS = 8
"""Min characters of a statement; a hanzi counts twice."""
_SUM = r"(?:[^\p{L}\\]|\\(?:times|div|cdot|sqrt))*"
# A sum that is short because it is one: "26-18=", "48*201．", "√(21)^2".
SHORT_SUM = rf"^{_SUM}\d[\s)\]}}]*(?:[+\-−×÷*/^]|\\(?:times|div|cdot))[\s(\[{{]*\d{_SUM}$"
_SIZE = STATEMENT.str.replace_all(r"\s+", "").str.len_chars() + STATEMENT.str.count_matches(r"\p{Han}")

# UTF-8 read as Latin-1 or Windows-1252, in Cyrillic, Latin and Chinese; control characters; remains of pages.
_LATE = "\u0080-\u00bf‚ƒ„…†‡ˆ‰Š‹Œ“”•–—˜™š›œžŸŽ’‘€"
DEBRIS = cheap(
    r".{0,20}(?:[\x00-\x08\x0B\x0E-\x1F\x7F]|锟斤拷|烫烫烫|ï¿½|Ã["
    + _LATE
    + r"]|â€|Â[°·±×²³]|(?:[ÐÑ]["
    + _LATE
    + r"]\s?){3}"
    r"|(?:[ä-é][" + _LATE + r"]{2}){2}"
    r"|&nbsp|</(?:div|span|script|nav|form|iframe|style|button)>|<a\s+(?:href|class)|<!DOCTYPE|<\?xml"
    r"|<(?:div|span|script|nav|form|iframe|style|input|button)\s+[a-z-]+\s*=|<(?:script|style|iframe)>|<img\s[^<>]{0,200}\sonerror\s*="
    r"|^%PDF-|\bendobj\b|\bendstream\b|/FlateDecode|\bundefined\s+undefined\b|\[object\s+Object\]).{0,20}"
)
DEBRIS_NEEDLES = [
    "锟斤拷", "烫烫烫", "ï¿½", "Ã", "â€", "Â", "Ð", "Ñ", "ä", "å", "æ", "ç", "è", "é", "&nbsp", "div", "span",
    "<script", "</", "<nav", "<form", "<iframe", "<style", "<input", "<button", "<a ", "<!doctype", "<?xml", "%PDF",
    "onerror", "endobj", "endstream", "FlateDecode", "undefined undefined", "[object ",
    *map(chr, (*range(9), 11, *range(14, 32), 127)),
]  # fmt: skip

# A picture where its file was, or code of one that is not whole.
PICTURE = either(
    r"!\[[^\]]*\]\([^)]*\)|!\[\]|\[asy\]|<img\b|\\includegraphics|\\begin\{tikzpicture\}|\[(?:image|figure"
    r"|diagram)\s*\d*\]|<(?:image|figure)[^>]{0,20}>"
)
PICTURE_NEEDLES = (
    *("![", "[asy]", "<img", "includegraphics", "tikz"),
    *("[image", "[figure", "[diagram", "<image", "<figure"),
)

# --- proofs ---

PROOF_NEEDLES = every(lambda lang: lang.statements.proof_needles)
PROOF_HARMLESS = either(*every(lambda lang: lang.statements.proof_harmless))
PROOF = either(*every(lambda lang: lang.statements.proof))
_ASKS_A_VALUE = either(*every(lambda lang: lang.statements.asks_a_value))

# --- answers ---

NO_ANSWER = (
    r"(?i)^[\s$.*(\[]*(?:n/?a|none|null|nan|nil|tbd|todo|unknown|undefined answer|-+|\?+"
    rf"|{one_of(lambda lang: lang.statements.no_answer)})[\s$.。)\]]*$"
)
_NO_ANSWER = ANSWER.is_null() | (ANSWER.str.strip_chars() == "") | ANSWER.str.contains(NO_ANSWER)
# An answer short enough to be compared, to a question that asks for a value in addition to the proof.
_ALSO_FINDS = _NO_ANSWER.not_() & (ANSWER.str.len_chars() <= 80) & STATEMENT.str.contains(_ASKS_A_VALUE)

# Words that join answers; those of one letter may be unknowns.
_JOINERS = "|".join(
    word.strip()
    for word in (*every(lambda lang: lang.answers.and_words), *every(lambda lang: lang.answers.or_words))
    if len(word.strip()) > 1
)
# A reference that was cut: 90^ , (90^), 3 \\times, \\frac{}{2}, \\frac{3}; a sign alone may be the answer.
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
_OPENED, _CLOSED = (
    ANSWER.str.count_matches(brace, literal=True) - ANSWER.str.count_matches(f"\\{brace}", literal=True)
    for brace in "{}"
)
_UNBALANCED = (_OPENED != _CLOSED) | (
    ANSWER.str.count_matches(r"\\left(?:[^a-z]|$)") != ANSWER.str.count_matches(r"\\right(?:[^a-z]|$)")
)

# A letter for an answer to a statement with lettered options whose style was not understood.
ONLY_LETTER = r"^[\s$(（]*(?:\\(?:text|mathrm|textbf|boxed)\{)?[\s(]*[A-H][\s)}）.$]*$"
LETTERED = r"(?:^|[\s(（])A\s*[.)．、：:）][\s\S]*[\s(（]B\s*[.)．、：:）]"

YES_NO_ANSWER = (
    r"(?i)^[\s$(\[*\"'“「]*(?:\\(?:text|mathrm|textbf|boxed|operatorname)\s*\{\s*)*"
    rf"(?:{one_of(lambda lang: lang.statements.yes_no_answers)}|√|×|✓|✗)"
    r"[\s}$)\]*.。．\"'”」]*(?:$|[,，;；:：—–-]\s*\D|\.\s+\D)"
)

# A proposition or a worked solution where the answer should be; a sentence: six words of prose in a row, or three and
# no mathematics at all, or nine hanzi.
PROOF_ANSWER = rf"(?i)^[\s\"'$*(\[]*(?:{one_of(lambda lang: lang.statements.proof_answers)})"
WORKED = rf"^\s*(?:{one_of(lambda lang: lang.statements.worked)})"
MAX_ANSWER = 400
"""Characters; worked solutions are rarely shorter."""
PROSE = r"(?:[A-Za-zÀ-ɏЀ-ӿ]{2,}[\s,]+){3,}|\p{Han}{4}"
_WORD = r"[A-Za-zÀ-ɏЀ-ӿ'’]{2,}"
SENTENCE = rf"(?:{_WORD}[\s,]+){{5,}}{_WORD}"
PHRASE = rf"^\W*(?:[A-Za-zÀ-ɏЀ-ӿ'’]+[\s,]+){{3,}}{_WORD}\W*$"
HAN_SENTENCE = r"\p{Han}{6,}|\p{Han}[\p{Han}，、]{8,}"
FORMULA = r"\$[^$]*\$|\\\([\s\S]*?\\\)|\\\[[\s\S]*?\\\]|\\[a-zA-Z]+"
# An answer of two words or more, less those that a verifier reads as mathematics; one word can be compared.
NOT_WORDS = r"[0-9$=<>^_+*/|∞π√\\]"
TEXT_MARKS = r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox|operatorname)\s*|\\[ ,;!]|[{}$]"
MATH_WORDS = either(
    r"\b(?:arc)?(?:sinh?|cosh?|tanh?|cot|sec|csc|log|ln|exp|sqrt|max|min|gcd|lcm|mod|det|deg|pi)[a-z]{0,2}\b|\b(?:abcde?|[b-df-hj-np-tv-xz]{2,6})\b"
    r"|\b(?:alpha|beta|gamma|delta|epsilon|zeta|eta|theta|lambda|sigma|omega|phi|psi|rho|tau)\b",
    *every(lambda lang: lang.statements.math_words),
)
_WORDY = r"(?:[A-ZÀ-Þ]?[a-zß-ÿ’']{4,}|[A-ZÀ-Þ][a-zß-ÿ]{2}|[A-Z]{6,}|[Ѐ-ӿ]{3,}|\p{Han}\p{Han})"
WORDY = rf"{_WORDY}(?:[^\p{{L}}]+\p{{L}}+)*?[^\p{{L}}]+{_WORDY}|\p{{Han}}{{3}}"
LONE_LETTER = r"(?:^|[\s,(])[b-zB-Z](?:$|[\s,)])"
_PROSE = ANSWER.str.replace_all(FORMULA, " ¦ ")
_BARE_WORDS = ANSWER.str.replace_all(TEXT_MARKS, " ")
_IN_WORDS = pl.coalesce(
    matched_text(ANSWER, PROOF_ANSWER),
    either_text(
        ((ANSWER.str.len_chars() > MAX_ANSWER) & ANSWER.str.contains(PROSE)) | ANSWER.str.contains(WORKED),
        ANSWER.str.head(60),
    ),
    matched_text(_PROSE, SENTENCE),
    either_text(ANSWER.str.contains(r"[\d$\\=]").not_(), matched_text(_PROSE, PHRASE)),
    either_text(ANSWER.str.contains(r"[\d$\\=]").not_(), matched_text(_PROSE, HAN_SENTENCE)),
    either_text(
        _BARE_WORDS.str.contains(NOT_WORDS).not_() & _BARE_WORDS.str.contains(LONE_LETTER).not_(),
        matched_text(_BARE_WORDS, WORDY, MATH_WORDS),
    ),
)

# --- several questions ---

# A verb or a question word that asks for something, right after the mark of a part.
_ASKS = f"(?:{one_of(lambda lang: lang.statements.asks, spaced=True)})(?:[^{LETTERS}]|$)"
_HAN_ASKS = f"(?:{one_of(lambda lang: lang.statements.asks, spaced=False)})"
# The same for parts after a condition of their own ("(b) …" with a condition before the mark).
_ORDERS = f"(?:{one_of(lambda lang: lang.statements.orders, spaced=True)})(?:[^{LETTERS}]|$)"
_HAN_ORDERS = f"(?:{one_of(lambda lang: lang.statements.orders, spaced=False)})"
# Anything between the first part and the second: no bracket that opens the second.
_UNTIL_2 = r"(?:[^（(]|[（(]\s*[^\s2２Ⅱi二])*?"
_MARK = r"(?:^|[^A-Za-z0-9_}\\)\]])"
"""Before a part's bracket; f(1) and (a)(b) are no parts."""
# (a) … (b) …, each of them asking; a. … b. …; i) … ii) …; Part A … Part B; numbered questions; （1）求…（2）求…
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
    "(a)", "( a )", "(1)", "( 1 )", "a)", "a.", "1.", "1)", "i)", "part a", "part (", "part 1", "part i", "part one",
    "（1）", "(１)", "（１）", "（Ⅰ）", "(Ⅰ)", "（一）", "(一)", "（$", "($1$", "($$1",
    "（２）", "（Ⅱ）", "(Ⅱ)", "一、", "1、", "１、", "1．", "①",
]  # fmt: skip

# "find also", two asked quantities in two sentences; a question inside brackets repeats the one before it
ALSO_ASKED = either(*every(lambda lang: lang.statements.also_asked))
ALSO_ASKED_HARMLESS = either(r"\([^()]{0,200}\?\s*\)", *every(lambda lang: lang.statements.also_asked_harmless))
ALSO_ASKED_NEEDLES = ("?", "？", *every(lambda lang: lang.statements.also_asked_needles))

# Several answers in the reference, by their marks: "(a) 3 (b) 5", "（1）2；（2）3", "① 4 ② 5", "a) 1; b) 2"
MARKED_ANSWERS = either(
    r"^[\s$*\\({\[{（【:：.]{0,6}a\s*[).:]\s*\S[\s\S]*[\s,;.]\(?\s*b\s*[).:]\s*\S",
    r"^[\s$*:：.]{0,4}[（(]\s*(?:[1１]|Ⅰ|i|一)\s*[)）]\s*\S[\s\S]*[（(]\s*(?:[2２]|Ⅱ|ii|二)\s*[)）]\s*\S",
    r"①\s*\S[\s\S]*②\s*\S|^\s*\(?i\)\s*\S[\s\S]*\(?ii\)\s*\S",
    r"^\s*1\s*(?:[)、．]\s*\S|\.(?:\s+\S|[^\s0-9]))[\s\S]*[\s,;；]2\s*(?:[)、．]\s*\S|\.(?:\s+\S|[^\s0-9]))",
)
# What separates answers, and statements that ask for more than one of them.
SEVERAL = rf"[^,;，；]\s*(?:[;；]|,\s|，|、|{one_of(lambda lang: lang.statements.several_joiners)})\s*[^,;，；\s]"
_BLANK = r"[（(](?:\s|\\q?quad|\\ )*\\?[)）]"
TWO_BLANKS = rf"____[^_](?:[\s\S]*[^_])?____|{_BLANK}[^（()）]*[^（()）\s][\s\S]*?{_BLANK}"
ASKS_SEVERAL = either(TWO_BLANKS, *every(lambda lang: lang.statements.asks_several), r"\?[^?]{8,}\?")
# "Return the answers as a list": one answer after all.
ASKS_A_LIST = (
    r"(?i)\b(?:return|give|write|enter|express|present|report|state)\b[^.?]{0,50}"
    r"\b(?:lists?|ordered|pair|triple|tuple|vector|coordinates)\b"
)
# "sin x = 1/2, cos x = …": two values by name
_EQUATIONS = ANSWER.str.contains(r"=[^=]*[,;][^=]*=") & ANSWER.str.contains("\\begin", literal=True).not_()

# --- the answer in the statement: "Answer: 42", "the answer is 42", "答案：42", "#### 42", or a worked solution ---

GIVEN = cheap(
    rf"(?i)^[\s\S]*(?:(?:{one_of(lambda lang: lang.statements.answer_labels)})\W{{0,3}}?"
    rf"(?:[:：=】\]]|\.\s|\s(?:{one_of(lambda lang: lang.statements.copulas, spaced=True)})\s"
    rf"|{one_of(lambda lang: lang.statements.copulas, spaced=False)})|####|\\boxed\s*\{{)([^?？]*)$"
)
WORKED_OUT = cheap(
    rf"(?i)(?:^|[\n.?!。？！)）*\[【(]\s*)(?:{one_of(lambda lang: lang.statements.worked_labels)})"
    r"\s?\**\s*[:：】\]]([\s\S]*)$"
)
GIVEN_NEEDLES = (*every(lambda lang: lang.statements.given_needles), "####", "\\boxed")
_TOKENS, _GIVEN, _WORKED_OUT = (
    tokens(text) for text in (ANSWER, STATEMENT.str.extract(GIVEN), STATEMENT.str.extract(WORKED_OUT))
)


# --- language tags, checked by common words, else by identification; not in the paper ---

MIN_IDENTIFIED_LETTERS = 30
MIN_CONFIDENCE = 0.8

TAGS = tuple(lang.code for lang in languages())


def _in_doubt(tag: str) -> pl.Expr:
    text, vocabulary = pl.col("statement"), language(tag).identification
    if vocabulary.telling:
        return (
            text.str.contains_any(list(vocabulary.telling)) & text.str.contains_any(list(vocabulary.further))
        ).not_()
    doubt = pl.lit(False)
    if vocabulary.own_letters:
        doubt |= text.str.contains(vocabulary.own_letters).not_()
    if vocabulary.foreign_letters:
        doubt |= text.str.contains(vocabulary.foreign_letters)
    return doubt


def another_language() -> pl.Expr:
    """Return evidence of a wrong tag, as ``tag de, text fr (0.97)``, or null."""
    return pl.struct("statement", "lang").map_batches(_evidence, return_dtype=pl.String)


def _evidence(rows: pl.Series) -> pl.Series:
    frame = rows.struct.unnest().with_row_index("at")
    evidence: list[str | None] = [None] * frame.height
    for tag in frame["lang"].unique().drop_nulls().sort():
        if tag not in TAGS:
            continue
        doubted = frame.filter((pl.col("lang") == tag) & pl.col("statement").is_not_null()).filter(_in_doubt(tag))
        identified = identify_many(doubted["statement"].to_list())
        for at, guess in zip(doubted["at"], identified, strict=True):
            sure = guess.letters >= MIN_IDENTIFIED_LETTERS and guess.confidence >= MIN_CONFIDENCE
            if sure and guess.lang is not None and guess.lang != tag:
                evidence[at] = f"tag {tag}, text {guess.lang} ({guess.confidence:.2f})"
    return pl.Series("evidence", evidence, pl.String)


_FIXED: tuple[StatementRule, ...] = (
    StatementRule(
        "missing_statement",
        DropReason.MISSING_STATEMENT,
        either_text(
            STATEMENT.is_null() | ((_SIZE < MIN_LETTERS) & STATEMENT.str.contains(SHORT_SUM).not_()),
            STATEMENT.fill_null("null"),
        ),
        gate=STATEMENT.is_null() | (STATEMENT.str.len_chars() < 4 * MIN_LETTERS),
    ),
    StatementRule("broken_characters", DropReason.DEBRIS, matched_text(STATEMENT, DEBRIS), needles=DEBRIS_NEEDLES),
    StatementRule(
        "proof",
        DropReason.PROOF,
        either_text(_ALSO_FINDS.not_(), matched_text(STATEMENT, PROOF, PROOF_HARMLESS)),
        needles=PROOF_NEEDLES,
    ),
    StatementRule("missing_answer", DropReason.MISSING_ANSWER, ANSWER.fill_null("null"), gate=_NO_ANSWER),
    StatementRule(
        "broken_answer",
        DropReason.UNVERIFIABLE_ANSWER,
        either_text(ANSWER.str.contains(BROKEN) | _UNBALANCED, ANSWER),
        gate=ANSWER.str.contains(MAY_BE_BROKEN),
    ),
    StatementRule(
        "missing_figure", DropReason.MISSING_FIGURE, matched_text(STATEMENT, PICTURE), needles=PICTURE_NEEDLES
    ),
    StatementRule(
        "letter_answer",
        DropReason.MULTIPLE_CHOICE,
        matched_text(STATEMENT, LETTERED),
        gate=ANSWER.str.contains(ONLY_LETTER),
    ),
    StatementRule("multi_part", DropReason.MULTI_PART, matched_text(STATEMENT, MULTI_PART), needles=MULTI_PART_NEEDLES),
    StatementRule(
        "also_asked",
        DropReason.MULTI_PART,
        matched_text(STATEMENT, ALSO_ASKED, ALSO_ASKED_HARMLESS),
        needles=ALSO_ASKED_NEEDLES,
    ),
    StatementRule(
        "marked_answers",
        DropReason.MULTI_PART,
        matched_text(ANSWER, MARKED_ANSWERS),
        gate=ANSWER.str.contains(r"[)）①.、:．]"),
    ),
    StatementRule(
        "several_answers",
        DropReason.MULTI_PART,
        either_text(
            (ANSWER.str.contains(r"[^\\][;；]") & STATEMENT.str.contains(TWO_BLANKS))
            | (ANSWER.str.contains(r"^[\s$]*[(\[{\\]").not_() | _EQUATIONS)
            & ANSWER.str.contains(r"^\d{1,3}(?:,\d{3})+(?:\.\d+)?\D*$").not_()
            & STATEMENT.str.contains(ASKS_A_LIST).not_()
            & (ANSWER.str.contains(SEVERAL) | ANSWER.str.contains(r"^\s*-?[\d.]+,-?[\d.]+\s*$")),
            matched_text(STATEMENT, ASKS_SEVERAL),
        ),
        gate=ANSWER.str.contains(",", literal=True) | ANSWER.str.contains(SEVERAL),
    ),
    StatementRule("yes_no", DropReason.YES_NO, matched_text(ANSWER, YES_NO_ANSWER), gate=ANSWER.is_not_null()),
    StatementRule(
        "textual_answer",
        DropReason.TEXTUAL_ANSWER,
        _IN_WORDS,
        gate=ANSWER.str.contains(r"\p{Latin}{2}|\p{Han}|\p{Cyrillic}{2}"),
    ),
    StatementRule(
        "answer_in_statement",
        DropReason.ANSWER_IN_STATEMENT,
        either_text(
            (_TOKENS.str.len_chars() > 2)
            & (_GIVEN.str.starts_with(_TOKENS) | _WORKED_OUT.str.contains(_TOKENS, literal=True)).fill_null(False),
            STATEMENT.str.tail(80),
        ),
        needles=GIVEN_NEEDLES,
    ),
    StatementRule("another_language", DropReason.WRONG_LANGUAGE, another_language(), gate=pl.col("lang").is_in(TAGS)),
)


def rules_for(settings: StatementSettings) -> tuple[StatementRule, ...]:
    """Return the enabled rules, in order of precedence."""
    is_other = pl.lit(bool(settings.languages)) & pl.col("lang").is_in(list(settings.languages)).not_()
    language_rule = StatementRule(
        "language_not_wanted", DropReason.WRONG_LANGUAGE, pl.concat_str(pl.lit("lang="), "lang"), gate=is_other
    )
    return tuple(rule for rule in (_FIXED[0], language_rule, *_FIXED[1:]) if rule.name not in settings.disabled)


RULES = rules_for(StatementSettings())
"""All rules, with default settings."""

MEASURED: Mapping[str, tuple[int, int]] = {
    "also_asked": (44, 43),
    "answer_in_statement": (19, 19),
    "broken_answer": (36, 36),
    "missing_answer": (2440, 2440),
    "missing_figure": (56, 41),
    "multi_part": (72, 71),
    "proof": (531, 531),
    "several_answers": (65, 65),
    "textual_answer": (52, 52),
    "yes_no": (27, 27),
}
"""Labelled rows that each rule drops, and how many rightly, for rules with enough rows."""
