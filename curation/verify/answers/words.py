"""Reads words as answers: yes and no, choice letters, numbers, times, dates, short texts."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

from curation.languages.vocabulary import every, language, languages, neighbours, one_of
from curation.verify.answers.forms import Words

_YES_NO_WORDS = (
    *((vocab.answers.yes, vocab.answers.no) for vocab in languages()),
    *((vocab.yes, vocab.no) for vocab in neighbours()),
)
_BOOLEANS = {word: "yes" for yes, _ in _YES_NO_WORDS for word in yes} | {
    word: "no" for _, no in _YES_NO_WORDS for word in no
}
_SAME_WORDS = {"∞": "infinity", "r": "reals"} | {
    phrase: meaning for vocab in languages() for meaning, phrases in vocab.answers.same.items() for phrase in phrases
}
# Numbers in words are read in English only.
_ENGLISH = language("en").numerals
NUMBER_WORDS = {word: value for value, word in enumerate((*_ENGLISH.units, _ENGLISH.tens[0]))}
BASE_NAMES = {**NUMBER_WORDS, "binary": 2, "octal": 8, "decimal": 10, "hexadecimal": 16, "bin": 2, "hex": 16}
_TENS = {word: 10 * value for value, word in enumerate(_ENGLISH.tens, 2)}
_PARTS = {word: Fraction(value).denominator for value, words in _ENGLISH.parts.items() for word in words}
_MULTIPLES = {word: int(value) for value, words in _ENGLISH.scales.items() for word in words}
NAMES_OF_NUMBERS = frozenset((*NUMBER_WORDS, *_TENS, *_PARTS, *_MULTIPLES, *_ENGLISH.more.get("12", ())))
_NOTHING = re.compile("|".join(vocab.answers.nothing for vocab in languages() if vocab.answers.nothing))


def parse_number_words(text: str) -> Fraction | None:
    """Read "twenty-five", "one hundred and five" or "two thirds"."""
    if len(text) > 60:
        return None
    names = [name for name in text.lower().replace("-", " ").split() if name not in _ENGLISH.joiners]
    if len(names) == 2 and names[1] in _PARTS and names[0] in NUMBER_WORDS and NUMBER_WORDS[names[0]]:
        return Fraction(NUMBER_WORDS[names[0]], _PARTS[names[1]])
    total, last = 0, 10**9
    for name in names:
        if name in _MULTIPLES and total > 0:
            scale = _MULTIPLES[name]
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
_FORMULA = re.compile(r"[\d=<>^+*/|\\_]|(?<!\w)-\s*\w")
_COMMAND_SPACE = re.compile(r"\\(?:left|right|displaystyle|[,;:! ])|[{}$]")
_PUNCTUATION = re.compile(r"[{}$\"'`.,;:!?。，；：！？*_~()\[\]\s\\-]+")
_ARTICLE = re.compile(rf"\b(?:{one_of(lambda vocab: vocab.answers.articles)})\b\s*")
_CHOICE = re.compile(
    rf"[\s$({{\[]*(?:(?i:{one_of(lambda vocab: vocab.answers.choice_words)})\s*:?\s+)?"
    r"\(?\s*([A-Ja-j])\s*(?:\)\}?|[\]}]+$|$|[.:,]\s|[.:]$|\s+(?=[A-Z][a-z]|\$))(.*)",
    re.DOTALL,
)


def words(text: str) -> Words:
    """Return a text as `Words` with normalised case, spaces and punctuation."""
    raw = _LATEX_TEXT.sub("", text)
    raw = raw.replace("\\%", "%").replace("\\$", "$").replace("\\ ", " ").replace("\\,", " ").replace("\\quad", " ")
    raw = " ".join(raw.split()).strip(" .。,;:$")
    if _FORMULA.search(raw):
        return Words("".join(_COMMAND_SPACE.sub("", raw).casefold().split()), raw)
    bare = _COMMAND.sub(lambda command: command[0].strip("\\ ") + " ", raw)
    flat = _PUNCTUATION.sub(" ", unicodedata.normalize("NFC", bare).casefold())
    flat = " ".join(_ARTICLE.sub("", flat + " ").split()) or " ".join(flat.split())
    flat = "no solution" if _NOTHING.fullmatch(flat) else _BOOLEANS.get(flat, _SAME_WORDS.get(flat, flat))
    return Words(flat, raw)


def parse_choice(raw: str) -> tuple[str, str] | None:
    """Return the letter and the rest of a choice: "C", "(C)", "C. Cecile", "(d) 5"."""
    text = _LATEX_TEXT.sub("", raw).strip().strip("$").strip()
    if len(text) > 400:
        return None
    match = _CHOICE.fullmatch(text)
    if match is None:
        return None
    if text[:1] in "([" and text[match.end(1) :].lstrip()[:1] not in (")", "]"):
        return None  # a pair such as (e, 5)
    if _ANOTHER_CHOICE.match(match.group(2)):
        return None
    letter, rest = match.group(1), match.group(2).lstrip(" )}.:$*\n").rstrip(" .:$*\n")
    while rest[-1:] in (")", "}") and rest.count(rest[-1]) > sum(map(rest.count, "([" if rest[-1] == ")" else "{")):
        rest = rest[:-1].rstrip(" .:$*\n")
    if letter.islower() and text != letter and text[:1] not in "([" and text[1:2] != ")":
        return None
    return letter.upper(), rest


def parse_boolean(text: str) -> str | None:
    """Return "yes" or "no" for such words in any known language, or Y, N, T, F."""
    split = split_boolean(text)
    return split[0] if split is not None else None


def split_boolean(text: str) -> tuple[str, str] | None:
    """Return `parse_boolean` and the text after the word."""
    head = _FIRST_WORD.match(text)
    if head is not None and head.group(1).casefold() in _BOOLEANS and len(text) <= 400:
        return _BOOLEANS[head.group(1).casefold()], text[head.end() :]
    if len(text) > 40:
        return None
    flat = words(text).text
    truth = _BOOLEANS.get(flat) or (_INITIALS.get(flat) if _LONE_LETTER.fullmatch(_LATEX_TEXT.sub("", text)) else None)
    return (truth, "") if truth is not None else None


_LONE_LETTER = re.compile(r"[\s$({\[]*[A-Za-z][\s$)}\].]*")
_INITIALS = {"y": "yes", "n": "no", "t": "yes", "f": "no"}
_FIRST_WORD = re.compile(r"\s*([^\W\d_]+)\s*[,.;:，。]\s*(?=\S)")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*(?:([ap])\.?\s*\.?m\.?)?", re.IGNORECASE)


def is_remark(text: str) -> bool:
    """Return whether text after yes or no only comments."""
    tokens = re.findall(r"[^\W_]+", text.casefold())
    bare = any(word.isdigit() for word in tokens) and len(tokens) < MIN_WORDS_AROUND_A_NUMBER
    return not bare and not _SIGNS.search(text) and _NO_REMARK.isdisjoint(tokens)


MIN_WORDS_AROUND_A_NUMBER = 4
_SIGNS = re.compile(r"[=<>^+*/|\\_]")
_NO_REMARK = frozenset(
    every(lambda vocab: (*vocab.answers.tail_words, *vocab.answers.condition_words, *vocab.answers.or_words))
) - frozenset(every(lambda vocab: vocab.answers.copulas)) | frozenset(_BOOLEANS)


def parse_time(text: str) -> frozenset[int] | None:
    """Return a time in seconds of the day: 3:30 is 12600, 3:30 p.m. is 55800."""
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


_DATES = tuple(vocab.dates for vocab in languages())
_MONTHS = {name: number for dates in _DATES for number, forms in enumerate(dates.months, 1) for name in forms.split()}
_ENGLISH_SUFFIXES = "|".join(language("en").dates.day_suffixes)
_SUFFIXES = one_of(lambda vocab: vocab.dates.day_suffixes)
_BEFORE_MONTH = one_of(lambda vocab: vocab.dates.before_month)
_BEFORE_YEAR = one_of(lambda vocab: vocab.dates.before_year)
_AFTER_YEAR = one_of(lambda vocab: vocab.dates.after_year)
_MONTH_FIRST = re.compile(rf"([^\W\d_]{{3,10}})\.? (\d{{1,2}})(?:{_ENGLISH_SUFFIXES})?(?:,? (\d{{4}}))?")
_DAY_FIRST = re.compile(
    rf"(\d{{1,2}})(?:{_SUFFIXES})?(?: (?:{_BEFORE_MONTH}))? ([^\W\d_]{{3,10}})\.?"
    rf"(?:,?(?: (?:{_BEFORE_YEAR}))? (\d{{4}})(?: (?:{_AFTER_YEAR}))?)?"
)
_YEAR_FIRST = tuple(re.compile(dates.in_digits) for dates in _DATES if dates.in_digits)
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})")


def parse_date(text: str) -> tuple[int, int, int] | None:
    """Return (year or 0, month, day) of a written date."""
    if len(text) > 60:
        return None
    flat = " ".join(re.sub(r"[\\{}~$]", " ", _LATEX_TEXT.sub("", text)).casefold().split()).strip(" .")
    numbered = next(filter(None, (pattern.fullmatch(flat) for pattern in (*_YEAR_FIRST, _ISO))), None)
    if numbered:
        return int(numbered.group(1) or 0), int(numbered.group(2)), int(numbered.group(3))
    for pattern, month, day in ((_MONTH_FIRST, 1, 2), (_DAY_FIRST, 2, 1)):
        match = pattern.fullmatch(flat)
        if match and match.group(month) in _MONTHS:
            return int(match.group(3) or 0), _MONTHS[match.group(month)], int(match.group(day))
    return None


def parse_word_list(text: str) -> tuple[str, ...] | None:
    """Return the sorted words of a list without mathematics ("line segment and circle")."""
    if len(text) > 200 or any(char.isdigit() or char in "=<>^_+*/|$()[]" for char in text):
        return None
    items = [words(item).text for item in _LIST.split(_LATEX_TEXT.sub("", text))]
    if len(items) < 2 or not all(len(item) > 1 and item.replace(" ", "").isalpha() for item in items):
        return None
    return tuple(sorted(items))


_LIST = re.compile(
    rf"\s*(?:[,;，、；]\s*(?:{one_of(lambda vocab: vocab.answers.list_leads)})?"
    rf"|\b(?:{one_of(lambda vocab: vocab.answers.list_joiners, spaced=True)})\b"
    rf"|{one_of(lambda vocab: vocab.answers.list_joiners, spaced=False)})\s*"
)
_JOINERS = one_of(lambda vocab: vocab.answers.list_joiners)
_ANOTHER_CHOICE = re.compile(
    rf"\s*(?:{one_of(lambda vocab: (*vocab.answers.or_words, *vocab.answers.and_words))})\s*[$(]*[A-Ja-j][)$]*\s*$"
)
_BRACKETS = re.compile(r"[$(){}\[\]]")
_LETTERS = re.compile(rf"[A-J](?:\s*(?:,|;|&|、|{_JOINERS})?\s*[A-J])+")


def parse_choice_letters(raw: str) -> str | None:
    """Return several choice letters, sorted: "B, F", "AC"."""
    text = _BRACKETS.sub(" ", _LATEX_TEXT.sub("", raw)).strip(" .")
    if len(text) > 60 or not _LETTERS.fullmatch(text):
        return None
    letters = [char for char in text if char.isupper()]
    return "".join(sorted(letters)) if len(set(letters)) == len(letters) else None
