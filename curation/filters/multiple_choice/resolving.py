"""Which option the reference names: by letter, by number, or by its text.

An answer that names none, or more than one, resolves to nothing: a multiple choice is never guessed at.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from curation.languages.vocabulary import one_of
from curation.option_letters import is_only_letter, named_letter, without_lead
from curation.options import tidy_option

_MARKUP = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|boxed|bf|rm)\b\s*|[{}$*\s]|\\[ ,;:!]|\\\\")
_JOINERS = one_of(lambda lang: lang.choices.letter_joiners)
_LETTERS = re.compile(rf"^[(（]?[A-J](?:(?:[)）,，、;/&\s]|{_JOINERS})*[(（]?[A-J])+[)）.]?$")
_NUMBER = re.compile(r"^[(（\[]?([0-9])[)）\].、]?$")
_NUMBERED = re.compile(r"^[(（]?([1-8])[)）.、](.+)$")
_CIRCLED = "①②③④⑤⑥⑦⑧"


@lru_cache(maxsize=4096)
def strip_markup(text: str) -> str:
    """Return a text for comparing: one Unicode form, no markup, no spaces, no final stop, lower case."""
    plain = _MARKUP.sub("", unicodedata.normalize("NFKC", text))
    return plain.replace("\\left", "").replace("\\right", "").replace("\\dfrac", "\\frac").rstrip(".。;").lower()


@lru_cache(maxsize=4096)
def names_several(answer: str, count: int) -> bool:
    """Return whether the answer names more than one of ``count`` lettered options ("A, C", "ABD")."""
    plain = without_lead(answer).strip("$ .。").upper()
    plain = re.sub(r"\\(?:TEXT|MATHRM|TEXTBF|BOXED)\{([^{}]*)\}", r"\1", plain)
    if not _LETTERS.match(plain):
        return False
    letters = re.findall(r"[A-J]", plain.replace("AND", " "))
    return len(letters) > 1 and letters == sorted(set(letters)) and all(ord(letter) - 65 < count for letter in letters)


def resolve_option(answer: str, options: Sequence[str], kind: str = "upper", first: int | None = None) -> int | None:
    """Return the index of the option that ``answer`` names, or None.

    ``kind`` is the kind of labels. ``first`` is the number of the first option where answers are numbers: 0 or 1 as
    the source counts, None where unknown; then a bare number that is no option's text resolves to nothing, unless
    the options themselves are numbered.

    >>> resolve_option("B", ["6", "7"]), resolve_option("7", ["6", "7"]), resolve_option("9", ["6", "7"])
    (1, 1, None)
    """
    lone = named_letter(answer) if is_only_letter(answer) else None
    if (
        lone
        and kind in ("upper", "lower")
        and not any(len(option) < 6 and strip_markup(option) == lone.lower() for option in options)
    ):
        return _within(ord(lone) - 65, options)
    texts = [strip_markup(option) for option in options]
    bare_answer = strip_markup(without_lead(answer))
    same = [index for index, text in enumerate(texts) if text == bare_answer]
    circled = _CIRCLED.find(answer.strip()) if len(answer.strip()) == 1 else -1
    if kind == "circled" and 0 <= circled < len(options):
        return circled
    number, labelled = _NUMBER.match(bare_answer), _NUMBERED.match(bare_answer)
    if kind == "digit" and labelled:
        index = int(labelled.group(1)) - 1
        if _within(index, options) is not None and texts[index] == labelled.group(2):
            return index
    if kind == "digit" and number and re.match(r"\W*[(（]", answer.strip()):
        return _within(int(number.group(1)) - 1, options)
    if len(same) == 1:
        start = 1 if first is None and kind == "digit" else first
        counted = _within(int(number.group(1)) - start, options) if number and start is not None else same[0]
        return same[0] if counted in (None, same[0]) else None
    if len(same) > 1:
        letter = named_letter(answer)
        return same[0] if letter is None else _within(ord(letter) - 65, options)
    letter = named_letter(answer)
    lettered = is_only_letter(answer) and kind not in ("digit", "circled")
    if letter is not None and (lettered or _agrees(answer, letter, texts)):
        return _within(ord(letter) - 65, options)
    if number:
        if first is not None:
            return _within(int(number.group(1)) - first, options)
        if kind in ("digit", "circled"):
            return _within(int(number.group(1)) - 1, options)
    return None


def holds_options(text: str, options: Sequence[str]) -> bool:
    """Return whether a question holds at least three options and lacks at most one: "Which of 3, 8 and 9 is even?"."""
    names = {tidy_option(option).strip("$ ") for option in options if re.search(r"\d", option)}
    held = [name for name in names if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w|\.\d)", text)]
    return len(held) >= max(3, len(options) - 1)


def _agrees(answer: str, letter: str, texts: Sequence[str]) -> bool:
    """Return whether what follows the letter in the answer is that option's text."""
    index = ord(letter) - 65
    if index >= len(texts):
        return False
    rest = re.sub(r"^[(（\[]?[a-j][)）\].:、,;]*", "", strip_markup(without_lead(answer)))
    return rest == texts[index] or (bool(rest) and (texts[index].startswith(rest) or rest.startswith(texts[index])))


def _within(index: int, options: Sequence[str]) -> int | None:
    return index if 0 <= index < len(options) else None
