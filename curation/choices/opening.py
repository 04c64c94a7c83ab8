"""A multiple-choice question made into an open one: the same question, complete without its options.

Invariants:
  - the numbers and formulas of the question stay as they are; only words that point at options go;
  - a question is opened only if its answer would be the same without the options: no "which of these", no "could be",
    no "closest to", no answer that is a sentence or that names other options;
  - otherwise `Refused` says why, with the words that decided.

Rules only, no model: when in doubt the question is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from curation.choices.options import tidy_option
from curation.choices.words import (
    COUNTS_ZH,
    EQUAL_WHICH,
    LISTS,
    META_OPTION,
    OPEN_WHICH,
    POINTS,
    POINTS_EN,
    POINTS_EN_HARMLESS,
    TRIGGERS,
)
from curation.records import DropReason


@dataclass(frozen=True, slots=True)
class Opened:
    """An open question and its answer."""

    statement: str
    answer: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a multiple choice cannot be opened; ``evidence`` is the text that decided."""

    reason: DropReason
    evidence: str


_CURRENCY = re.compile(r"^(?:rs\.?|re\.?|inr|usd|us|eur|gbp|cny|rmb|£|€|¥|\\?\$|hk\\?\$|s\\?\$)\s*", re.IGNORECASE)
_FORMULA = re.compile(r"\$\$[^$]*\$\$|\$[^$]*\$|\\\([\s\S]*?\\\)|\\\[[\s\S]*?\\\]")
_LABEL_LIKE = re.compile(r"^[\s$(（]*(?:\$*[1-9]\$*|[①-⑧]+|[IVX]{1,4}|[a-e])[\s$)）]*$")
_WORDS = re.compile(r"[A-Za-zÀ-ÿЀ-ӿ]{2,}")
_YES_NO = re.compile(
    r"(?i)^\W*(?:yes|no|true|false|是|否|对|错|正确|错误|不正确|能|不能|да|нет|oui|non|sí|ja|nein|vrai|faux)\W*$"
)


def open_question(question: str, options: Sequence[str], index: int, lang: str | None) -> Opened | Refused:
    """The question opened, with ``options[index]`` as its answer; or why it makes no sense without the options."""
    answer = tidy_answer(tidy_option(options[index]))
    wrong = _answer_trouble(answer, question, options)
    if wrong:
        return Refused(DropReason.CHOICES_NEEDED, wrong)
    text = _tidied(question)
    if "hich" in text:
        text = EQUAL_WHICH.sub("What is the value of ", text) if _is_number(answer) else text
        text = OPEN_WHICH.sub("What is ", text)
        text = re.sub(r"(?<=[a-z0-9$,;)] )What is ", "what is ", text)
    points = _pointing(text, lang)
    if points:
        return Refused(DropReason.CHOICES_NEEDED, points)
    filled = _filled(text, lang)
    bare = None if filled[-1:] in "?？" else _BARE_BLANK.search(filled) or _BARE_END.search(filled)
    if bare:
        return Refused(DropReason.CHOICES_NEEDED, bare.group().strip())
    return Opened(filled, answer)


def tidy_answer(option: str) -> str:
    """The option's text as an answer: no layout, no final stop."""
    text = option.strip().strip("~").strip()
    return re.sub(r"(?<=[\w})$%])\s*[.。．;；]$", "", text)


def _answer_trouble(answer: str, question: str, options: Sequence[str]) -> str | None:
    """The answer, if it cannot stand without the other options: another's mention, yes/no, a label, a phrase."""
    meta = META_OPTION.search(_FORMULA.sub(" ¦ ", answer))
    if meta or _YES_NO.match(answer):
        return answer
    if _is_label(answer, question):
        return answer
    if mathematical(answer):
        return None
    if len(answer) <= 24 and len(options) > 1 and all(_named_in(tidy_option(option), question) for option in options):
        return None
    return answer


def _is_label(answer: str, question: str) -> bool:
    """Whether the answer names an item that the question lists: "(3)", "①②", "II" beside "II. …"."""
    if re.match(r"^[\s$]*[(（]\$*\d\$*[)）][\s$]*$|^[\s$①-⑧、,，和]+$", answer):
        return True
    name = answer.strip("$ ()（）")
    if not _LABEL_LIKE.match(answer) or name.isdigit():
        return False
    return bool(re.search(rf"[(（]\s*\$*{re.escape(name)}\$*\s*[)）]|\b{re.escape(name)}\s*[.)]\s", question))


def mathematical(answer: str) -> bool:
    """A number, a formula, or either with a currency before and a unit of at most three words after."""
    text = _CURRENCY.sub("", answer.strip())
    if re.match(r"(?i)(?:an?|the|it|its|there|he|she|they|on|in|at|after|before|by)\s+[a-z]{2,}", text):
        return False
    if not re.search(r"\d|[$\\^=√π∞]|^[A-Za-z]$", text):
        return False
    prose = _FORMULA.sub(" 1 ", text)
    prose = re.sub(r"\\(?:text|mathrm|textbf)\s*\{([^{}]*)\}", r" \1 ", prose)
    prose = re.sub(r"\\[a-zA-Z]+", "", prose)
    if re.search(r"[\u4e00-\u9fff]{5,}", prose):
        return False
    if re.search(r"[\u4e00-\u9fff]", prose):
        return bool(
            re.match(r"^[^\u4e00-\u9fff]*[\d)\]}](?:[^\u4e00-\u9fff]*[\u4e00-\u9fff]{1,4})*[^\u4e00-\u9fff]*$", prose)
        ) and (len(re.findall(r"[\u4e00-\u9fff]+", prose)) <= 3)
    words = [word for word in _WORDS.findall(prose) if word.lower() not in _FUNCTIONS]
    first = re.search(r"[\d$\\(\[{|√π−-]|\b[A-Za-z]\b", text)
    leads = _WORDS.search(prose)
    starts_with_word = bool(leads and first and leads.start() < (re.search(r"\d|\b[A-Za-z]\b", prose) or leads).start())
    return len(words) <= 3 and not (starts_with_word and leads and leads.group().lower() not in _FUNCTIONS)


_FUNCTIONS = frozenset(
    "sin cos tan cot sec csc log ln lg exp sqrt pi mod arcsin arccos arctan max min gcd lcm or and am pm".split()
)  # fmt: skip


def _is_number(answer: str) -> bool:
    """No unknowns in the answer: digits and LaTeX commands only."""
    return not re.search(r"[A-Za-z]", re.sub(r"\\(?:d?frac|sqrt|pi|cdot|times|left|right|text\{[^}]*\})", "", answer))


def _named_in(option: str, question: str) -> bool:
    """Whether the question itself names the option, as a short name."""
    words = option.strip().strip(".。").lower()
    return 0 < len(words) <= 24 and words in question.lower() and len(words.split()) <= 3


def _pointing(text: str, lang: str | None) -> str | None:
    """The words of a question that point at options, or null."""
    if _HAN.search(text):
        if COUNTS_ZH.search(text.rstrip(" 。．.?？_（）()~")) and LISTS.search(text):
            return None
        match = POINTS["zh"].search(text) if any(word in text for word in TRIGGERS["zh"]) else None
        return match.group() if match else None
    plain = lang in (None, "en") or lang not in POINTS
    if plain and not _points_possible(text):
        return None
    last = _question_part(text)
    if lang in POINTS and lang != "zh":
        match = POINTS[lang].search(last)
        if match:
            return match.group().strip()
    match = POINTS_EN.search(POINTS_EN_HARMLESS.sub(" ¦ ", last))
    return match.group().strip() if match else None


def _points_possible(text: str) -> bool:
    """Whether a word is there without which no English expression matches."""
    lower = text.lower()
    return any(word in lower for word in TRIGGERS["en"])


def _question_part(text: str) -> str:
    """The sentences that ask: those with a question mark, and the last one."""
    sentences = re.split(
        r"(?<=[.!?;])\s+(?=[A-ZÀ-ÝА-Я\"$(\[])|\n+", _FORMULA.sub(lambda found: found.group().replace(". ", ", "), text)
    )
    asking = [sentence for sentence in sentences[:-1] if "?" in sentence]
    return " ".join([*asking, sentences[-1]]) if sentences else text


# Places where an answer was to be written: （ ）, (    ), ＿＿
# and in LaTeX $(\quad)$, (\quad$ ）, （ $)$; the dollars around or inside are weighed in `_blank`.
_EMPTY_BRACKETS = re.compile(
    r"(?:(?<!\$)\$(?!\$))?\s*[（(](?:[\s~　]|\\q?quad|\\ |\\hspace\{[^{}]*\})*\$?(?:[\s~　]|\\q?quad"
    r"|\\ )*[)）](?:\s*\$(?!\$))?"
)
# A sentence that ends in "then ____": nothing says what the blank stands for.
_BARE_BLANK = re.compile(
    r"(?i)(?:^|[，,。．；;:：]|\$)\s*(?:则|那么|则有|有|故|所以|可得|可知|必有|必|总有|都有|then|we\s+have|so|hence)[\s,，]*____[\s．。.]*(?:[（(][^（）()]{0,120}[)）])?[\s．。.]*$"
)
_BARE_END = re.compile(r"(?i)(?:，|,|。|．|；|;)\s*(?:则|那么|则有|有)\s*$|\b(?:then|we\s+have)\s*[:.]?$")
# A bracket that the source lost the end of: $a=($
_OPEN_BRACKET = re.compile(r"[（(]\s*\$\s*(?:____)?\s*$")
_MARKED_AS_CHOICE = re.compile(r"[（(]\s*(?:单选|多选|选择题|单项选择)\s*[)）]")
_CHOOSES = re.compile(r"[Cc]hoose|[Ss]elect|[Pp]ick|[Cc]ircle")
_INSTRUCTION = re.compile(
    r"(?i)\s*\(?(?:choose|select|pick|circle)\s+(?:the\s+)?(?:one\s+)?(?:correct|right|best)\s+"
    r"(?:answer|option|choice)s?[^.?]{0,30}[.:)]?\s*$"
)
# A key that the source left behind the statement: 【本题欣赏题】答案：B
_LEFT_KEY = re.compile(r"\s*(?:【[^】]{0,20}】\s*)?(?:正确)?答案\s*[:：]\s*[A-E][\s．。.]*$")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_BLANKS = re.compile(r"[_＿]{2,}")
_ZH_END = re.compile(
    r"(是|为|=|＝|等于|有|共|得|需|需要|：|:|至少|最多|最大|最小|至多|应是|应为)\s*(\$*)\s*[．。.]?\s*$"
)
# A measure word with nothing to measure, near the end: 则共有种不同的方法．
_ZH_UNIT_END = re.compile(
    r"(?!得分|到位)([长宽高深](?=\s?(?:厘米|分米|千米|米))|共|有|需|要|是|为|得|剩|少|多|了|走|花|用|排|开|成|到|第|达|余|约|卖|买|坐|分|装|付|拿|给|差|吃|跑|于|在|出|今年|明年|去年)\s?"
    r"(种|个|条|对|组|名|人|米|千米|厘米|平方厘米|平方米|立方厘米|元|岁|天|分钟|小时|次|只|块|页|本|棵|分|秒|位|颗|支|张|件|倍|辆|间|千克|克|吨|升|毫升|％|%|项|级|层|场|盏"
    r"|段|根|头|桌|瓶|袋|盒|杯|粒|片|把|朵|株|步|道题|道|周)"
    r"(?=\s*(?:$|[．。.]\s*$|(?:的|不同|就|才|能)[^，。．,.？?]{0,16}[．。.]?\s*$|[^，。．,.？?位数别钟母子解度积形]{1,8}[．。.]?\s*$))"
)
_EN_GAP = re.compile(r"(?<=[a-z,=$])(?:  (?=[a-z.%]|$)|\s+(?=[．.]$))")


def _tidied(question: str) -> str:
    """Brackets left for a letter become a blank; instructions about choosing go."""
    text = question.strip()
    if "(" in text or "（" in text:
        text = _EMPTY_BRACKETS.sub(_blank, text)
        text = _MARKED_AS_CHOICE.sub("", text)
    if "_" in text or "＿" in text:
        text = _BLANKS.sub("____", text)
    text = _OPEN_BRACKET.sub("$ ____", text)
    if "答案" in text:
        text = _LEFT_KEY.sub("", text)
    if _CHOOSES.search(text):
        text = _INSTRUCTION.sub("", text)
    return text.strip()


def _blank(match: re.Match[str]) -> str:
    """Empty brackets as a blank; one dollar more or less among them belongs to the formula beside."""
    found = match.group()
    if not found.count("$") % 2:
        return "____" if "$" in found or not found.startswith((" ", "\n")) else " ____"
    return " $____" if found.startswith("$") else "$ ____"


def _filled(text: str, lang: str | None) -> str:
    """A question that ends where its answer would stand gets a blank there."""
    if "____" in text or re.search(r"[?？]", text):
        return re.sub(r"____\s*([?？])", r"\1", text) if re.search(r"(?:多少|几)[^？?]*____\s*[?？]", text) else text
    if _HAN.search(text):
        if _ZH_END.search(text):
            return _ZH_END.sub(r"\1\2____．", text)
        return _ZH_UNIT_END.sub(r"\1____\2", text)
    if re.search(r"=\s*\$+\s*[．.]?$", text):
        return f"{text.rstrip(' ．.')} ____."
    if lang in (None, "en") and _EN_GAP.search(text):
        head, tail = text[: _EN_GAP.search(text).start()], text[_EN_GAP.search(text).end() :]  # type: ignore[union-attr]
        return f"{head} ____ {tail}".rstrip()
    if re.search(r"[:=]\s*\$*$", text) and not text.endswith("$"):
        return f"{text.rstrip(' :')} ____." if text.endswith(":") else f"{text} ____."
    if re.search(r"(?i)\b(?:is|are|was|be|equals?|by|of|to|has|in|for)\s*[．.]?$", text):
        return f"{text.rstrip(' ．.')} ____."
    return text
