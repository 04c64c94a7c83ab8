"""Words as answers: yes and no in seven languages and more, choice letters, names and short texts."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

from curation.verify.answers.forms import Words

_BOOLEANS = {
    "yes": "yes", "true": "yes", "correct": "yes", "right": "yes", "no": "no", "false": "no",
    "incorrect": "no", "wrong": "no",
    "oui": "yes", "vrai": "yes", "non": "no", "faux": "no", "ja": "yes", "wahr": "yes",
    "richtig": "yes", "nein": "no", "falsch": "no",
    "sí": "yes", "si": "yes", "sì": "yes", "verdadero": "yes", "vero": "yes", "falso": "no",
    "verdadeiro": "yes", "sim": "yes",
    "não": "no", "да": "yes", "верно": "yes", "истина": "yes", "нет": "no", "неверно": "no", "ложь": "no", "是": "yes",
    "对": "yes", "正确": "yes", "是的": "yes", "否": "no", "不是": "no", "错": "no", "错误": "no",
    "不正确": "no", "不对": "no",
    "はい": "yes", "いいえ": "no", "نعم": "yes", "لا": "no", "हाँ": "yes", "नहीं": "no",
}  # fmt: skip
_SAME_WORDS = {
    "infinite": "infinity", "infinitely many": "infinity", "infinitely many solutions": "infinity", "∞": "infinity",
    "no solutions": "no solution", "none": "no solution", "no real solution": "no solution",
    "no real solutions": "no solution", "does not exist": "dne", "doesnt exist": "dne", "do not exist": "dne",
    "undefined": "dne", "empty set": "no solution", "diverges": "divergent", "converges": "convergent",
    "the empty set": "no solution", "all real numbers": "reals", "r": "reals", "impossible": "no solution",
    "there is no solution": "no solution", "there are no solutions": "no solution",
    "无解": "no solution", "不存在": "dne", "无实数解": "no solution", "无数": "infinity", "无穷多": "infinity",
    "无限多": "infinity", "空集": "no solution", "pas de solution": "no solution", "aucune solution": "no solution",
    "aucune": "no solution", "ensemble vide": "no solution", "keine lösung": "no solution",
    "keine lösungen": "no solution", "unlösbar": "no solution", "keine": "no solution", "leere menge": "no solution",
    "no hay solución": "no solution", "no hay soluciones": "no solution", "sin solución": "no solution",
    "no tiene solución": "no solution", "ninguna": "no solution", "conjunto vacío": "no solution",
    "nessuna soluzione": "no solution", "nessuna": "no solution", "insieme vuoto": "no solution",
    "нет решений": "no solution", "решений нет": "no solution", "пустое множество": "no solution",
    "не существует": "dne", "nexiste pas": "dne", "existiert nicht": "dne", "no existe": "dne", "non esiste": "dne",
    "бесконечность": "infinity", "бесконечно много": "infinity", "infinité": "infinity", "unendlich": "infinity",
    "infinito": "infinity", "infiniti": "infinity", "infini": "infinity", "unendlich viele": "infinity",
}  # fmt: skip
NUMBER_WORDS = {
    word: number
    for number, words in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
    for word in [words]
}
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80,
         "ninety": 90}  # fmt: skip
_PARTS = {"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4,
          "fifth": 5, "fifths": 5,
          "sixth": 6, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10, "tenths": 10}  # fmt: skip
_NOTHING = re.compile(
    r"(?:there (?:is|are) )?no (?:(?:real|integer|positive|valid|such|possible|rational) )*"
    r"(?:solutions?|roots?|values?|integers?|numbers?|pairs?|triples?)(?: exists?)?"
)


def number_in_words(text: str) -> Fraction | None:
    """Twenty-five, one hundred and five, two thirds; None for anything else."""
    if len(text) > 60:
        return None
    names = [name for name in text.lower().replace("-", " ").split() if name != "and"]
    if len(names) == 2 and names[1] in _PARTS and names[0] in NUMBER_WORDS and NUMBER_WORDS[names[0]]:
        return Fraction(NUMBER_WORDS[names[0]], _PARTS[names[1]])
    total, last = 0, 10**9
    for name in names:
        if name in ("hundred", "thousand", "million") and total > 0:
            scale = {"hundred": 100, "thousand": 1000, "million": 10**6}[name]
            if total >= scale:
                return None
            total, last = total * scale, scale
        elif name in _TENS and last > 10:
            total, last = total + _TENS[name], 10
        elif name in NUMBER_WORDS and (last > 10 or (last == 10 and 0 < NUMBER_WORDS[name] < 10)):
            total, last = total + NUMBER_WORDS[name], 0
        else:
            return None
    return Fraction(total) if names else None


_LATEX_TEXT = re.compile(
    r"\\(?:text(?:bf|it|rm|normal|sf|tt)?|mbox|hbox|mathrm|mathbf|mathit|operatorname|emph|underline)\s*"
)
_COMMAND = re.compile(r"\\[a-zA-Z]+\s?|\\.")
_FORMULA = re.compile(r"[\d=<>^+*/|\\_]|(?<!\w)-\w")
_COMMAND_SPACE = re.compile(r"\\(?:left|right|displaystyle|[,;:! ])|[{}$]")
_PUNCTUATION = re.compile(r"[{}$\"'`.,;:!?。，；：！？*_~()\[\]\s\\-]+")
_ARTICLE = re.compile(r"\b(?:the|a|an|it is|its|only|answer is|is)\b\s*")
_CHOICE = re.compile(
    r"[\s$({\[]*(?:(?i:option|choice|answer)\s*:?\s+)?\(?\s*([A-Ja-j])\s*(?:\)\}?|[\]}]+$|$|[.:,]\s|[.:]$|\s+(?=[A-Z][a-z]|\$))(.*)",
    re.DOTALL,
)


def words(text: str) -> Words:
    """The form of a text."""
    raw = _LATEX_TEXT.sub("", text)
    raw = raw.replace("\\%", "%").replace("\\$", "$").replace("\\ ", " ").replace("\\,", " ").replace("\\quad", " ")
    raw = " ".join(raw.split()).strip(" .。,;:$")
    if _FORMULA.search(raw):
        return Words("".join(_COMMAND_SPACE.sub("", raw).casefold().split()), raw)
    flat = _PUNCTUATION.sub(" ", unicodedata.normalize("NFC", _COMMAND.sub(_bare_command, raw)).casefold())
    flat = " ".join(_ARTICLE.sub("", flat + " ").split()) or " ".join(flat.split())
    flat = "no solution" if _NOTHING.fullmatch(flat) else _BOOLEANS.get(flat, _SAME_WORDS.get(flat, flat))
    return Words(flat, raw)


def _bare_command(match: re.Match[str]) -> str:
    return match.group().strip("\\ ") + " "


def choice_of(raw: str) -> tuple[str, str] | None:
    """The letter and the rest, where a text is a choice: "C", "(C)", "C. Cecile", "(d) 5"."""
    text = _LATEX_TEXT.sub("", raw).strip().strip("$").strip()
    if len(text) > 400:
        return None
    match = _CHOICE.fullmatch(text)
    if match is None:
        return None
    letter, rest = match.group(1), match.group(2).lstrip(" )}.:$*\n").rstrip(" .:$*\n")
    while rest[-1:] in (")", "}") and rest.count(rest[-1]) > rest.count("(" if rest[-1] == ")" else "{"):
        rest = rest[:-1].rstrip(" .:$*\n")
    if letter.islower() and text != letter and text[:1] not in "([" and text[1:2] != ")":
        return None
    return letter.upper(), rest


def truth_of(text: str) -> str | None:
    """ "yes" or "no" in any of the languages, also as Y, N, T, F; None for anything else."""
    head = _FIRST_WORD.match(text)
    if head is not None and head.group(1).casefold() in _BOOLEANS and len(text) <= 400:
        return _BOOLEANS[head.group(1).casefold()]
    if len(text) > 40:
        return None
    flat = words(text).text
    return _BOOLEANS.get(flat, {"y": "yes", "n": "no", "t": "yes", "f": "no"}.get(flat))


_FIRST_WORD = re.compile(r"\s*([^\W\d_]+)\s*[,.;:，。]\s*(?=\S)")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*(?:([ap])\.?\s*\.?m\.?)?", re.IGNORECASE)


def clock_of(text: str) -> frozenset[int] | None:
    """The seconds of the day that a time may mean: 3:30 p.m. is one, 3:30 is itself; None where it is no time."""
    text = re.sub(r"(12:00)\s+(noon|midnight)\.?", r"\2", text)
    match = _CLOCK.fullmatch(_LATEX_TEXT.sub("", text).replace("{", "").replace("}", "").replace("\\", "").strip())
    if match is None or (match.group(2) is None and match.group(4) is None):
        return {"noon": frozenset((43200,)), "midnight": frozenset((0,))}.get(text.strip(" .").lower())
    hour, minute, second = (int(group or 0) for group in match.group(1, 2, 3))
    if hour > 24 or minute > 59 or second > 59:
        return None
    half = (match.group(4) or "").lower()
    hours = {hour} if not half else {hour % 12 + (12 if half == "p" else 0)}
    return frozenset(value * 3600 + minute * 60 + second for value in hours)


_MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan janvier enero gennaio januar января|february feb février febrero febbraio februar февраля|"
        "march mar mars marzo märz марта|april apr avril abril aprile апреля|may mai mayo maggio мая|"
        "june jun juin junio giugno juni июня|july jul juillet julio luglio juli июля|"
        "august aug août agosto августа|september sept sep septembre septiembre settembre сентября|"
        "october oct octobre octubre ottobre oktober октября|november nov novembre noviembre ноября|"
        "december dec décembre diciembre dicembre dezember декабря".split("|"),
        1,
    )
    for name in names.split()
}
_MONTH_FIRST = re.compile(r"([^\W\d_]{3,10})\.? (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?")
_DAY_FIRST = re.compile(
    r"(\d{1,2})(?:st|nd|rd|th|er|\.|º)?(?: of| de| di)? ([^\W\d_]{3,10})\.?(?:,?(?: de)? (\d{4})(?: года)?)?"
)
_YEAR_FIRST = re.compile(r"(?:(\d{4})\s*年)?\s*(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]")
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})")


def date_of(text: str) -> tuple[int, int, int] | None:
    """(year or 0, month, day), where a text is a date written out; None where it is none."""
    if len(text) > 60:
        return None
    flat = " ".join(re.sub(r"[\\{}~$]", " ", _LATEX_TEXT.sub("", text)).casefold().split()).strip(" .")
    numbered = _YEAR_FIRST.fullmatch(flat) or _ISO.fullmatch(flat)
    if numbered:
        return int(numbered.group(1) or 0), int(numbered.group(2)), int(numbered.group(3))
    for pattern, month, day in ((_MONTH_FIRST, 1, 2), (_DAY_FIRST, 2, 1)):
        match = pattern.fullmatch(flat)
        if match and match.group(month) in _MONTHS:
            return int(match.group(3) or 0), _MONTHS[match.group(month)], int(match.group(day))
    return None


def parts_of(text: str) -> tuple[str, ...] | None:
    """The sorted words of a list of words without mathematics: "line segment and circle"; None for anything else."""
    if len(text) > 200 or any(char.isdigit() or char in "=<>^_+*/|$()[]" for char in text):
        return None
    parts = [words(part).text for part in _LIST.split(_LATEX_TEXT.sub("", text))]
    if len(parts) < 2 or not all(len(part) > 1 and part.replace(" ", "").isalpha() for part in parts):
        return None
    return tuple(sorted(parts))


_LIST = re.compile(r"\s*(?:[,;，、；]\s*(?:and|or)?|\band\b|和)\s*")
_LETTERS = re.compile(r"[A-J](?:\s*(?:,|;|and|&|和|、)?\s*[A-J])+")


def letters_of(raw: str) -> str | None:
    """Several choice letters, sorted: "B, F", "AC"."""
    text = _LATEX_TEXT.sub("", raw).strip(" .$(){}[]")
    if len(text) > 60 or not _LETTERS.fullmatch(text):
        return None
    found = [char for char in text.replace("and", ",") if char.isupper()]
    return "".join(sorted(found)) if len(set(found)) == len(found) else None
