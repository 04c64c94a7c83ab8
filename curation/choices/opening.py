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


# "Which of the following is the value of X?" asks for one thing, and the options only repeat it.
_WHICH = r"which\s+(?:one\s+)?of\s+(?:the\s+)?(?:following|these|given)(?:\s+(?:numbers?|values?|expressions?|fractions?|amounts?|choices?|options?|quantit(?:y|ies)|answers?|percent(?:age)?s?))?"
_OPEN_WHICH = re.compile(
    rf"(?i)\b{_WHICH}\s+(?:correctly\s+)?(?:is|are|gives?|equals?|represents?|shows?|expresses|denotes|indicates|would\s+be)\s+(?:equal\s+to\s+)?(?=the\s+(?!same|best|only|reason|following|correct\s+(?:way|statement|order))|(?:\w+'s)\s)"
)
_EQUAL_WHICH = re.compile(rf"(?i)\b{_WHICH}\s+(?:is\s+(?:equal|equivalent)\s+to|equals)\s+(?=\$|\\\(|\d|the\s)")

# Words that point at options, by language; whatever matches in the question is the evidence for refusing.
_POINTS_EN = re.compile(
    r"""(?ix)
    \b(?:of|from|among)\s+the\s+(?:following|options|choices|answers|given\s+(?:options|choices|answers))\b
    | \bthe\s+following\s+(?:\w+\s+){0,3}(?:is|are|can|could|cannot|must|may|would|will|has|have|does|do|represents?|shows?)\b
    | \b(?:which|what)\s+(?:\w+\s+){0,2}(?:below|above)\b | \bfollowing\s+(?:options|choices|statements?|answers|alternatives)\b
    | \bwhich\s+(?:one\s+|two\s+)?of\b
    | \b(?:what|which)\s+is\s+(?:the\s+)?(?:greatest|largest|smallest|biggest|least|most|highest|lowest|longest|shortest|heaviest|odd)\s*(?:number|fraction|value|decimal|one|amount)?\s*\?
    | \b(?:below|above)\s+(?:is|are|has|have|can)\b
    | \bwhich\s+(?:one|option|choice|statement|expression|equation|inequality|graph|function|formula|description|sentence|answer|pair|set|group
        |number|fraction|decimal|value|figure|shape|symbol|sign|digit|list|item|table|diagram|phrase|word|conclusion|property|unit|system|quantity|integer|point|term|ratio|method|model|interval|order|statements|expressions|equations|numbers)s?\s
        (?!of\s+(?:days|months))
    | \b(?:could|can|may|might|must|cannot|can't|can\s+not)\s+(?:\w+\s+){0,3}?(?:be|equal|represent|have|describe|take)\b(?!\s+(?:the\s+)?(?:(?:least|greatest|largest|smallest|maximum|minimum|highest|lowest|most|fewest|total\s+number|formed|made|arranged|chosen|selected|seated|placed|drawn|used|expressed|written|found|obtained|divided|bought|filled|put|packed|cut|completed|done|seen|assigned|ordered|distributed|purchased|read|built|produced|printed|painted|created|rearranged|determined|played|covered|held|given|taken|left|distinct)))
    | \bpossible\s+(?:values?|answers?|solutions?|numbers?|lengths?|areas?|perimeters?|dimensions|reasons?)\s+(?:of|for|to)?\b(?<!\bthe\spossible\svalues\sof) | \ba\s+possible\b
    | \b(?:closest|nearest|approximate(?:ly)?|approx\.?|about\s+how|roughly|estimated?|best\s+(?:estimate|approximation|describes?|represents?|answer|choice|expressed|option))\b(?!\s+(?:integer|whole|tenth|hundredth|thousandth|hundred|ten|thousand|cent|dollar|degree|percent|minute|second|unit|number|centimeter|meter|foot|inch|mile))
    | \b(?:true|false|correct|incorrect|wrong|equivalent|not\s+necessarily|always|never|except|describes?|explains?|best)\b(?=[^.]{0,80}(?:\?|:|$|is\s*$|are\s*$))
    | \b(?:answer|option|choice)s?\s+(?:choices?|options?|[A-E])\b | \beach\s+of\s+the\s+following\b | \ball\s+of\s+the\s+following\b
    | \b(?:is|are)\s+(?:NOT|not)\b[^.]{0,60}(?:\?|$)
    """
)
_POINTS_EN_HARMLESS = re.compile(
    r"(?i)\bhow\s+many\s+of\s+the\s+following\b|\b(?:in)?correct\s+(?:answers?|results?|instructions|problems|questions|digits?|order\s+of)\b|\bof\s+the\s+following\s+(?:arithmetic|geometric|infinite|finite|sequence|series|equation|function|expression|numbers?|fractions?|data|integral|set)\b(?=[^?]*[$\d])|\bwhich\s+(?:digit|number|term|integer)\s+(?:is\s+in|in)\s+the\b|\bwhat\s+(?:number|fraction|digit|value|decimal)\b|\bthe\s+number\s+of\s+(?:possible|different)\b|\bhow\s+many\s+(?:different\s+|distinct\s+)?possible\b"
    r"|\b(?:sum|product|number|greatest|largest|smallest|least|maximum|minimum|average|total|all|range|set)\s+(?:\w+\s+){0,4}possible\s+\w+|\b(?:all|the)\s+possible\s+values\b|\b(?:greatest|largest|smallest|least|maximum|minimum|highest|lowest)\s+possible\b|\bif\s+possible\b|\bas\s+(?:many|much|few|little)\s+as\s+possible\b"
    r"|\bto\s+the\s+nearest\b|\bcorrect\s+to\b|\bcorrectly\b|\bwhich\s+(?:number|integer|digit)\s+(?:multiplied|added|divided|subtracted|should|must|will|when)\b|\bestimated?\s+(?:that|time|cost|to\s+be)\b|\bfollowing\s+(?:conditions|equation|system|table|data|rules?|expression)\b"
)
_POINTS: dict[str, re.Pattern[str]] = {
    "zh": re.compile(
        r"(?<!所有)(?<!一切)(?<!全部)可能(?!性|的?情况|取值)[^，。]{0,12}(?:多少|几|是|为|有|____)|(?:下列|以下|下面|下述)(?:[^，。．,]{0,14})(?:[哪是的中各四五三个]|选项|说法|命题|结论|判断|关系|函数|图|式)|选项|正确的(?:一项|选项)?\s*(?:是|为|有|____)|(?:不正确|错误|成立|恒成立|不成立|合理|恰当|合适|符合[^，。]{0,12})的\s*(?:一项|一个|选项)?\s*(?:是|为|有|____)"
        r"|可以(?:是|为|等于|取)|不可能|不能(?:是|为|等于|取)|不等于|最接近|大约|约(?:是|为|等于|有|____)|估[计算一]|近似|应填|列式|算式(?:是|为|____)|列(?:出的)?方程|方程组?(?:应|可以)?列"
        r"|哪(?:个|一个|项|一项|种|一种|些|幅|组|一组|句|条|两|几)|一定(?:是|为|有|能|成立)|必(?:然|定)?(?:是|为|有|成立)|属于|(?:大小)?关系(?:是|为|____)|比较[^，。]{0,20}(?:大小|____)|的(?:图象|图像|形状|图形)(?:大致)?(?:是|为|____)"
        r"|(?:其中|叙述|说法|描述)[^，。]{0,8}(?:正确|错误|真|假)|充分|必要|正确的[是有____]|正确[的]?(?:[是为]?\s*____|$)"
    ),
    "fr": re.compile(r"(?i)\b(?:laquelle|lequel|lesquel(?:le)?s)\b|parmi\s+les|suivante?s\s*[:?]|ci-dessous|\b(?:vraie?s?|fausses?|faux|correcte?s?|exacte?s?)\b|peut\s+être|environ|proche"),
    "es": re.compile(r"(?i)\bcuál(?:es)?\s+de\s+(?:las|los|est|l)|\bsiguientes\b|\b(?:verdader[oa]s?|fals[oa]s?|correct[oa]s?|incorrect[oa]s?)\b|puede\s+(?:ser|n)|aproximad|cercan"),
    "it": re.compile(r"(?i)\bqual[ei]?\s+(?:di|dei|delle|tra|fra)\b|\bseguenti\b|\b(?:ver[ao]|fals[ao]|corrett[ao]|esatt[ao])\b|può\s+essere|approssim|circa"),
    "de": re.compile(r"(?i)\bwelche[rsn]?\s+(?:der|von|dieser|aussage|gleichung|zahl|antwort)|\bfolgende[nr]?\b|\b(?:richtig|falsch|wahr|korrekt)\b|\bkann\b.{0,30}\bsein\b|ungefähr|etwa|trifft"),
    "ru": re.compile(r"(?i)как(?:ое|ая|ой|ие)\s+из|котор(?:ое|ая|ый|ые)\s+из|следующ|перечисленн|приведенн|верн[оыа]|неверн|может\s+(?:быть|равн)|примерно|приблиз|ниже"),
}  # fmt: skip
# 下列三个命题…其中真命题的个数是: a count of things that the question itself lists
_COUNTS_ZH = re.compile(r"(?:个数|数目|有几个|有多少个?|有____个|共有)[^，。．]{0,10}$")
_LISTS = re.compile(r"[①②]|[（(]\s*\$*[1２2]\$*\s*[)）]|[甲乙丙][）)、]")

# Options that speak of other options.
_META_OPTION = re.compile(
    r"(?i)\b(?:none|all|any|both|neither|either|each|some|two|more\s+than\s+one)\s+(?:of\s+)?(?:the\s+)?(?:above|these|those|them|following|options|choices|others?)\b|^\W*(?:none|all|neither|both|nota|other)\W*$|\bnot\s+(?:listed|given|here)\b"
    r"|\b(?:cannot|can't|can\s+not|could\s+not|impossible\s+to|unable\s+to)\s+(?:be\s+)?(?:determine[d]?|tell|say|find|found|known|know|answered?|calculated?)|\bnot\s+(?:enough|sufficient)\b|\binsufficient\b|\bindeterminate\b|\binadequate\b|impossible\s+to"
    r"|^\W*(?:[A-E]|[IVX]{1,4})(?:\s*(?:,|and|&|or|、|和)\s*(?:[A-E]|[IVX]{1,4}))+(?:\s+only)?\W*$|\bonly\b"
    r"|以上|上述|都(?:对|错|不对|不是|不正确|正确|有可能|不可能)|(?:不能|无法|不可以?)确定|不确定|无法(?:判断|比较|计算)|条件不足|其[他它]|皆(?:对|错|非)|均(?:对|错|不)|ни\s+один|все\s+перечисл|невозможно|ninguna|todas\s+las|nessuna|tutte\s+le|aucune|toutes\s+les|keine\s+der|alle\s+genannten"
)
_CURRENCY = re.compile(r"^(?:rs\.?|re\.?|inr|usd|us|eur|gbp|cny|rmb|£|€|¥|\\?\$|hk\\?\$|s\\?\$)\s*", re.IGNORECASE)
_FORMULA = re.compile(r"\$\$[^$]*\$\$|\$[^$]*\$|\\\([\s\S]*?\\\)|\\\[[\s\S]*?\\\]")
_LABEL_LIKE = re.compile(r"^[\s$(（]*(?:\$*[1-9]\$*|[①-⑧]+|[IVX]{1,4}|[a-e])[\s$)）]*$")
_WORDS = re.compile(r"[A-Za-zÀ-ÿЀ-ӿ]{2,}")
_YES_NO = re.compile(r"(?i)^\W*(?:yes|no|true|false|是|否|对|错|正确|错误|不正确|能|不能|да|нет|oui|non|sí|ja|nein|vrai|faux)\W*$")


def open_question(question: str, options: Sequence[str], index: int, lang: str | None) -> Opened | Refused:
    """The question opened, with ``options[index]`` as its answer; or why it makes no sense without the options."""
    answer = tidy_answer(options[index])
    wrong = _answer_trouble(answer, question, options)
    if wrong:
        return Refused(DropReason.CHOICES_NEEDED, wrong)
    text = _tidied(question)
    text = _EQUAL_WHICH.sub("What is the value of ", text) if _is_number(answer) else text
    text = _OPEN_WHICH.sub("What is ", text)
    text = re.sub(r"(?<=[a-z,;] )What is (?=the )", "what is ", text)
    points = _pointing(text, lang)
    if points:
        return Refused(DropReason.CHOICES_NEEDED, points)
    filled = _filled(text, lang)
    bare = _BARE_BLANK.search(filled) or _BARE_END.search(filled)
    if bare:
        return Refused(DropReason.CHOICES_NEEDED, bare.group().strip())
    return Opened(filled, answer)


def tidy_answer(option: str) -> str:
    """The option's text as an answer: no layout, no final stop."""
    text = option.strip().strip("~").strip()
    return re.sub(r"(?<=[\w})$%])\s*[.。．;；]$", "", text)


def _answer_trouble(answer: str, question: str, options: Sequence[str]) -> str | None:
    """The answer, if it cannot stand without the other options: another's mention, yes/no, a label, a phrase."""
    meta = _META_OPTION.search(_FORMULA.sub(" ¦ ", answer))
    if meta or _YES_NO.match(answer):
        return answer
    if re.match(r"^[\s$]*[(（]\$*\d\$*[)）][\s$]*$|^[\s$①-⑧、,，和]+$", answer) or (
        _LABEL_LIKE.match(answer) and re.search(rf"[(（]\s*\$*{re.escape(answer.strip('$ ()（）'))}\$*\s*[)）]|\b{re.escape(answer.strip('$ ()（）'))}\s*[.)]\s", question) and not answer.strip("$ ").isdigit()
    ):
        return answer
    if mathematical(answer):
        return None
    if len(options) > 1 and all(_named_in(option, question) for option in options):
        return None
    return answer


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
        return bool(re.match(r"^[^\u4e00-\u9fff]*[\d)\]}](?:[^\u4e00-\u9fff]*[\u4e00-\u9fff]{1,4})*[^\u4e00-\u9fff]*$", prose)) and (
            len(re.findall(r"[\u4e00-\u9fff]+", prose)) <= 3
        )
    words = [word for word in _WORDS.findall(prose) if word.lower() not in _FUNCTIONS]
    first = re.search(r"[\d$\\(\[{|√π−-]|\b[A-Za-z]\b", text)
    leads = _WORDS.search(prose)
    starts_with_word = bool(leads and first and leads.start() < (re.search(r"\d|\b[A-Za-z]\b", prose) or leads).start())
    return len(words) <= 3 and not (starts_with_word and leads and leads.group().lower() not in _FUNCTIONS)


_FUNCTIONS = frozenset(
    ["sin", "cos", "tan", "cot", "sec", "csc", "log", "ln", "lg", "exp", "sqrt", "pi", "mod", "arcsin", "arccos", "arctan", "max", "min", "gcd", "lcm", "or", "and", "am", "pm"]
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
    if re.search(r"[\u4e00-\u9fff]", text):
        if _COUNTS_ZH.search(text.rstrip(" 。．.?？_（）()~")) and _LISTS.search(text):
            return None
        match = _POINTS["zh"].search(text)
        return match.group() if match else None
    last = _question_part(text)
    if lang in _POINTS and lang != "zh":
        match = _POINTS[lang].search(last)
        if match:
            return match.group().strip()
    match = _POINTS_EN.search(_POINTS_EN_HARMLESS.sub(" ¦ ", last))
    return match.group().strip() if match else None


def _question_part(text: str) -> str:
    """The sentences that ask: those with a question mark, and the last one."""
    sentences = re.split(r"(?<=[.!?;])\s+(?=[A-ZÀ-ÝА-Я\"$(\[])|\n+", _FORMULA.sub(lambda found: found.group().replace(". ", ", "), text))
    asking = [sentence for sentence in sentences[:-1] if "?" in sentence]
    return " ".join([*asking, sentences[-1]]) if sentences else text


# Places where an answer was to be written: （ ）, (    ), ＿＿
# and in LaTeX $(\quad)$, (\quad$ ）, （ $)$; the dollars around or inside are weighed in `_blank`.
_EMPTY_BRACKETS = re.compile(r"\$?\s*[（(](?:[\s~　]|\\q?quad|\\ |\\hspace\{[^{}]*\})*\$?(?:[\s~　]|\\q?quad|\\ )*[)）]\s*\$?")
# A sentence that ends in "then ____": nothing says what the blank stands for.
_BARE_BLANK = re.compile(r"(?i)(?:^|[，,。．；;:：]|\$)\s*(?:则|那么|则有|有|故|所以|可得|可知|必有|必|总有|都有|then|we\s+have|so|hence)[\s,，]*____[\s．。.]*$")
_BARE_END = re.compile(r"(?i)(?:，|,|。|．|；|;)\s*(?:则|那么|则有|有)\s*$|\b(?:then|we\s+have)\s*[:.]?$")
_BLANKS = re.compile(r"[_＿]{2,}")
_ZH_END = re.compile(r"(是|为|=|＝|等于|有|共|得|需|需要|：|:|至少|最多|最大|最小|至多|应是|应为)\s*(\$*)\s*[．。.]?\s*$")
# A measure word with nothing to measure, near the end: 则共有种不同的方法．
_ZH_UNIT_END = re.compile(
    r"(共|有|需|要|是|为|得|剩|少|多|了|走|花|用|排|开|成|到|第|达|余|约|卖|买|坐|分|装|付|拿|给|差|吃|跑|于|在|出|今年|明年|去年)\s?"
    r"(种|个|条|对|组|名|人|米|千米|厘米|平方厘米|平方米|立方厘米|元|岁|天|分钟|小时|次|只|块|页|本|棵|分|秒|位|颗|支|张|件|倍|辆|间|千克|克|吨|升|毫升|％|%|项|级|层|场|盏|段|根|头|桌|瓶|袋|盒|杯|粒|片|把|朵|株|步|道题|道|周)"
    r"(?=\s*(?:$|[．。.]|的|不同|就|才|能|[^，。．,.？?位数别钟母子解度积形]{1,8}[．。.]?\s*$))"
)
_EN_GAP = re.compile(r"(?<=[a-z,=$])(?:  (?=[a-z.%]|$)|\s+(?=[．.]$))")


def _tidied(question: str) -> str:
    """Brackets left for a letter become a blank; instructions about choosing go."""
    text = _EMPTY_BRACKETS.sub(_blank, question.strip())
    text = re.sub(r"[（(]\s*\$\s*(?:____)?\s*$", "$ ____", _BLANKS.sub("____", text))
    text = re.sub(r"(?i)\s*\(?(?:choose|select|pick|circle)\s+(?:the\s+)?(?:one\s+)?(?:correct|right|best)\s+(?:answer|option|choice)s?[^.?]{0,30}[.:)]?\s*$", "", text)
    text = re.sub(r"[（(]\s*(?:单选|多选|选择题|单项选择)\s*[)）]", "", text)
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
    if re.search(r"[\u4e00-\u9fff]", text):
        if _ZH_END.search(text):
            return _ZH_END.sub(r"\1\2____．", text)
        return _ZH_UNIT_END.sub(r"\1____\2", text)
    if lang in (None, "en") and _EN_GAP.search(text):
        head, tail = text[: _EN_GAP.search(text).start()], text[_EN_GAP.search(text).end() :]  # type: ignore[union-attr]
        return f"{head} ____ {tail}".rstrip()
    if re.search(r"[:=]\s*\$*$", text) and not text.endswith("$"):
        return f"{text.rstrip(' :')} ____." if text.endswith(":") else f"{text} ____."
    if re.search(r"(?i)\b(?:is|are|was|be|equals?|by|of|to|has|in|for)\s*[．.]?$", text):
        return f"{text.rstrip(' ．.')} ____."
    return text
