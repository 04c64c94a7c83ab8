"""Translations broken on purpose, so that what is refused of them can be counted.

Each corruption changes what the problem asks or states, or does not happen: a number takes another value, goes or
changes places with another, a formula or a sentence goes, a text is another language's, an answer is added, or every
number, formula and language is right and a word is not. None depends on how the invariants look for it; words of a
language are those of `corruptions.toml` and `curation.planting`.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from curation.languages.stripping import parts
from curation.planting import ANSWERS, UNSPACED

WORDS: Mapping[str, Mapping[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
Place = tuple[int, int, str]
"""Where a text is changed, and what is put there."""


class Pair(NamedTuple):
    """A problem, its translation, and the same problem in every language."""

    id: str
    original: str
    translated: str
    target: str
    answer: str | None
    others: Mapping[str, str]


_NUMBER = re.compile(r"(?<![\w.,/])\d+(?:[.,]\d+)?(?![\w/]|[.,]\d)")
_FREE_NUMBER = re.compile(r"(?<![A-Za-z\d.,/\\{^_-])\d+(?:[.,]\d+)?(?![A-Za-z\d/]|[.,]\d)")
_GROUPED = re.compile(r"(?<![\d.,])(\d{1,3})[.,\u00a0\u202f\u2009 ](\d{3})(?![\d.,]\d|\d)")
_FRACTION = re.compile(r"(?<![\d/.,])(\d{1,2})/(\d{1,2})(?![\d/])|\\d?frac\{(\d{1,3})\}\{(\d{1,3})\}")
_FORMULA = re.compile(r"(?<!\$)\$(?!\$)[^$\n]{1,200}\$(?!\$)|\\\([^$]{1,200}?\\\)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_SENTENCE_BORDER = re.compile(r"(?<=[.!?])\s+(?=[^\Wa-zа-я\d_]|[¿«„\"])|(?<=[。！？])\s*")
_DENIES_NOTHING = re.compile(r"(?<![а-яё])пока(?![а-яё])[^.,;!?]*$")
"""What comes before such a negation."""
_ZH_BETWEEN = re.compile(
    r"比(?!赛|萨|例|分|率)[^，。？！]{1,20}?(多(?!少|数)|(?<!多)少(?!年|女)|大(?!小|约|儿|家|概|学|型)|小(?!时|吃|儿|组|型|学|说|狗|猫|镇))"
    r"|(多于|少于|大于|小于|高于|低于|至少|至多|更多|更少|更大|更小)"
)
_ZH_COUNTED = "[个只名位本张件天年条块支辆袋盒箱朵棵把双份瓶杯次倍组盘套台部次人篮架顶头磅小]"
_NAME = re.compile(r"(?<![\w.-])[A-Z][a-zé]{2,}(?:[A-Z][a-z]+)?(?![\w-])")
_RU_HOLIDAYS = re.compile("Рождеств|Хэллоуин|Пасх|День$|Дн[яюе]|Свят")
_STILL_EACH = re.compile(r"(?<!\w)(?:по|zu|à|a)(?:\s[$€£]?\s?\d[\d.,]*(?:\s?[$€£]|\s\w+)?)?\Z")
"""What makes a number each one's as well, where it is left before the word that goes: zu 4 $, по $8, à 20 $."""
_THAN = {"de": "als", "fr": r"que|qu['’]", "es": "que|de", "it": "di|del|della|che"}


def _word(word: str, target: str) -> str:
    """Return the pattern of a word: a whole one, in Chinese anywhere."""
    return re.escape(word) if target == "zh" else rf"(?<!\w){re.escape(word)}(?!\w)"


# Places of which one is changed


def units(pair: Pair) -> Iterable[Place]:
    """Find numbers with a unit after them, or a currency in front of them."""
    text = pair.translated
    has_formulas = "\\" in text or any(is_formula for _, is_formula in parts(text))
    for word, other in WORDS["units"][pair.target]:
        bounded = re.escape(word) + ("" if not word[-1].isalpha() or "\u3400" <= word[0] <= "\u9fff" else r"(?!\w)")
        after = r"(?<![\d^_{\\])\d[\d.,]*[\s\u00a0\u202f]?个?(" + bounded + r")(?!\d)"
        if word != "$" or not has_formulas:
            yield from ((match.start(1), match.end(1), other) for match in re.finditer(after, text))
        if word == "$" and not has_formulas:
            yield from ((match.start(), match.end(), other) for match in re.finditer(r"\$(?=\d)", text))


def negations(pair: Pair) -> Iterable[Place]:
    """Find negations."""
    for pattern, left in WORDS["negations"][pair.target]:
        for match in re.finditer(pattern, pair.translated):
            if not _DENIES_NOTHING.search(pair.translated[: match.start()]):
                yield match.start(), match.end(), match.expand(left)


def comparisons(pair: Pair) -> Iterable[Place]:
    """Find more and less, older and younger, and their opposites, that compare or bound a number."""
    text, target = pair.translated, pair.target
    turned = [(one, other) for two in WORDS["comparisons"][target] for one, other in (two, two[::-1])]
    if target == "zh":
        for match in _ZH_BETWEEN.finditer(text):
            group = 1 if match[1] else 2
            yield match.start(group), match.end(group), dict(turned)[match[group]]
        return
    for one, other in turned:
        for match in re.finditer(_word(one, target), text):
            rest = re.split(r"[.?!]", text[match.end() :], maxsplit=1)[0][:60]
            than = "чем" if target == "ru" else rf"(?<!\w)(?:{_THAN[target]})(?!\w)"
            bounds = " " in match[0] or match[0] in ("mindestens", "höchstens", "almeno")
            if re.search(than, rest) or bounds:
                yield match.start(), match.end(), other


def grouped_numbers(pair: Pair) -> Iterable[Place]:
    """Find numbers of four to six digits, for the other notation of thousands: 1,000 in German."""
    sign = "." if pair.target == "zh" else ","
    for match in _GROUPED.finditer(pair.translated):
        if f"{match[1]},{match[2]}" in pair.original or match[1] + match[2] in pair.original:
            yield match.start(), match.end(), match[1] + sign + match[2]


def number_words(pair: Pair) -> Iterable[Place]:
    """Find numbers in words, for their neighbours."""
    words = WORDS["number_words"][pair.target]
    bounded = (
        rf"(?<![第周期一二三四五六七八九十百千万点分之几])({'|'.join(words)})(?={_ZH_COUNTED})"
        if pair.target == "zh"
        else rf"(?<![\w-])({'|'.join(words)})(?![\w-])"
    )
    for match in re.finditer(bounded, pair.translated):
        at = words.index(match[1])
        yield match.start(1), match.end(1), words[at + 1] if at + 1 < len(words) else words[at - 1]


def fractions(pair: Pair) -> Iterable[Place]:
    """Find fractions in digits, to be turned over."""
    for match in _FRACTION.finditer(pair.translated):
        above, below = match[1] or match[3], match[2] or match[4]
        if above != below:
            yield match.start(), match.end(), f"{below}/{above}" if match[1] else rf"\frac{{{below}}}{{{above}}}"


def listed(pair: Pair, table: str, *, both: bool = False) -> Iterable[Place]:
    """Find the words of a table."""
    for one, other in WORDS[table].get(pair.target, ()):
        if table == "ranks" and other in pair.translated:
            continue
        for old, new in ((one, other), (other, one)) if both else ((one, other),):
            for match in re.finditer(_word(old, pair.target), pair.translated):
                yield match.start(), match.end(), new


def percents(pair: Pair) -> Iterable[Place]:
    """Find percentages, to be left without their sign."""
    for match in re.finditer(WORDS["percent"][pair.target], pair.translated):
        yield match.start(1), match.end(1), ""


def each(pair: Pair) -> Iterable[Place]:
    """Find the one word that makes a number each one's: what six books cost each is what they cost together."""
    if pair.target not in WORDS["each"] or not re.search(r"\d[^.?!]{0,30}\b(?:each|apiece)\s*[.,;?!]", pair.original):
        return
    matches = list(re.finditer(WORDS["each"][pair.target], pair.translated))
    if len(matches) == 1 and not _STILL_EACH.search(pair.translated[: matches[0].start()]):
        yield matches[0].start(), matches[0].end(), ""


def numbers(pair: Pair) -> Iterable[Place]:
    """Find numbers in digits, to be dropped."""
    return ((match.start(), match.end(), "") for match in _NUMBER.finditer(pair.translated))


def formulas(pair: Pair) -> Iterable[Place]:
    """Find formulas between dollars, to be dropped."""
    for match in _FORMULA.finditer(pair.translated):
        if re.search(r"[A-Za-z=+\\^]", match[0][1:-1]):
            yield match.start(), match.end(), ""


# Changes of another kind


def names_swapped(pair: Pair, chance: random.Random) -> str | None:
    """Exchange two names in one sentence that has both, and more than an "and" between them."""
    target, pieces = pair.target, [part for part in _SENTENCE_BORDER.split(pair.translated) if part]
    chances: list[tuple[int, str, str]] = []
    letter = "[а-яё]" if target == "ru" else r"[^\s\S]"  # Китом is another word than Кит
    for at, sentence in enumerate(pieces):
        here = [name for name in _names(pair) if re.search(f"{re.escape(name)}(?!{letter})", sentence)]
        for first in here:
            for second in here:
                other = first[:3] != second[:3] if target == "ru" else first not in second and second not in first
                if first < second and other and _apart(sentence, first, second):
                    chances.append((at, first, second))
    if not chances:
        return None
    at, first, second = chance.choice(chances)
    pieces[at] = re.sub(
        f"(?:{re.escape(first)}|{re.escape(second)})(?!{letter})",
        lambda match: second if match[0] == first else first,
        pieces[at],
    )
    return ("" if target == "zh" else " ").join(pieces)


def _names(pair: Pair) -> list[str]:
    """Return the names in a translation: those written as in the original; the commonest Chinese ones; in Russian,
    capitalised words inside sentences.
    """
    if pair.target == "zh":
        return [name for name in WORDS["names"]["zh"].split() if len(name) > 1 and name in pair.translated]
    if pair.target == "ru":
        inside = set(re.findall(r"(?<=[а-яё,] )[А-ЯЁ][а-яё]{2,}(?![а-яё-])", pair.translated))
        return sorted(name for name in inside if not _RU_HOLIDAYS.match(name))
    common = set(_NAME.findall(pair.original)) & set(_NAME.findall(pair.translated))
    common -= set(WORDS["names"]["none"].split())
    return sorted(name for name in common if name.lower() not in pair.original.split())


def _apart(sentence: str, first: str, second: str) -> bool:
    """Return whether two names come once each, with more than a conjunction or comma between them."""
    if sentence.count(first) != 1 or sentence.count(second) != 1:
        return False
    start, end = sorted((sentence.index(first), sentence.index(second)))
    between = (
        sentence[start + len(sentence[start:].split()[0]) : end]
        if " " in sentence[start:end]
        else sentence[start + len(first) : end]
    )
    if sentence[:1] >= "\u3400":
        return bool(re.search(r"[^和、与，\s]", between))
    joined = {"und", "et", "y", "e", "и", "and", "oder", "ou", "o"}
    return not all(word in joined or word[:1].isupper() for word in re.findall(r"[^\W\d_]+", between))


def number_changed(pair: Pair, chance: random.Random) -> str | None:
    """Give one number in digits another value that is not in the problem."""
    found = list(_NUMBER.finditer(pair.translated))
    if not found:
        return None
    number = chance.choice(found)
    there = {int(run) for run in re.findall(r"\d+", pair.translated)}
    whole = int(re.split("[.,]", number[0])[0])
    shifts = [whole + step for step in (1, 2, 3, 5, 10, 17) if whole + step not in there]
    changed = number[0].replace(str(whole), str(chance.choice(shifts)), 1) if shifts else number[0]
    return pair.translated[: number.start()] + changed + pair.translated[number.end() :]


def sentence_left(pair: Pair, chance: random.Random) -> str | None:
    """Put one sentence of the original in; texts whose sentences do not pair are not used."""
    before = _SENTENCE.split(pair.original.strip())
    after = [part for part in _SENTENCE.split(pair.translated.strip()) if part]
    if len(before) != len(after) or len(after) < 2:
        return None
    worded = [at for at, sentence in enumerate(before) if len(re.findall(r"(?<![\\\w])[a-z]{2,}", sentence)) >= 3]
    if not worded:
        return None
    at = chance.choice(worded)
    after[at] = before[at]
    return " ".join(after)


def wrong_language(pair: Pair, chance: random.Random) -> str | None:
    """Return the same problem in another of the languages."""
    choices = sorted(lang for lang in pair.others if lang != pair.target)
    return pair.others[chance.choice(choices)] if choices else None


def answer_appended(pair: Pair, chance: random.Random) -> str | None:
    """Append the answer: bare, marked in English, or marked in the target's language."""
    bare = ("{} {answer}", "{} ({answer})", "{} = {answer}")
    form = chance.choice((*bare, *ANSWERS[pair.target], *ANSWERS["en"]))
    return form.replace("{answer}", pair.answer or "0").replace("{}", pair.translated)


def numbers_exchanged(pair: Pair, chance: random.Random) -> str | None:
    """Exchange two numbers in digits of different value."""
    found, text = list(_FREE_NUMBER.finditer(pair.translated)), pair.translated
    values = [float(number[0].replace(",", ".")) for number in found]
    pairs = [(a, b) for at, a in enumerate(found) for to, b in enumerate(found) if at < to and values[at] != values[to]]
    if not pairs:
        return None
    a, b = chance.choice(pairs)
    return text[: a.start()] + b[0] + text[a.end() : b.start()] + a[0] + text[b.end() :]


def sentence_dropped(pair: Pair, chance: random.Random) -> str | None:
    """Drop one sentence of two words or more."""
    pieces = [part for part in _SENTENCE_BORDER.split(pair.translated.strip()) if part]
    letters = 5 if pair.target in UNSPACED else 10
    whole = [at for at, part in enumerate(pieces) if len(re.findall(r"[^\W\d_]", part)) >= letters]
    if (
        len(pieces) < 2
        or not whole
        or (pair.translated.count("$") > 1 and re.search(r"\$[^$]*[.?!]\s[A-Z][^$]*\$", pair.translated))
    ):
        return None
    dropped = chance.choice(whole)
    return ("" if pair.target in UNSPACED else " ").join(part for at, part in enumerate(pieces) if at != dropped)


def changed(places: Callable[[Pair], Iterable[Place]], pair: Pair, chance: random.Random) -> str | None:
    """Change one of the places, drawn by chance."""
    found = list(places(pair))
    if not found:
        return None
    start, end, other = chance.choice(found)
    return pair.translated[:start] + other + pair.translated[end:]


CORRUPTIONS: Mapping[str, Callable[[Pair, random.Random], str | None]] = {
    "unit changed": partial(changed, units),
    "negation lost": partial(changed, negations),
    "more and less turned": partial(changed, comparisons),
    "names swapped": names_swapped,
    "notation left": partial(changed, grouped_numbers),
    "number word changed": partial(changed, number_words),
    "fraction inverted": partial(changed, fractions),
    "fraction word changed": partial(changed, partial(listed, table="fractions")),
    "half and double": partial(changed, partial(listed, table="halves")),
    "at least, at most": partial(changed, partial(listed, table="bounds", both=True)),
    "percent dropped": partial(changed, percents),
    "each dropped": partial(changed, each),
    "ordinal changed": partial(changed, partial(listed, table="ranks")),
    "number changed": number_changed,
    "number dropped": partial(changed, numbers),
    "formula dropped": partial(changed, formulas),
    "sentence left": sentence_left,
    "wrong language": wrong_language,
    "answer appended": answer_appended,
    "numbers exchanged": numbers_exchanged,
    "sentence dropped": sentence_dropped,
}
"""By kind: what breaks a translation; it returns nothing where it cannot."""
