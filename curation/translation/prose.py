"""Whether the prose of a translation is what it should be: in the target's language, whole, and nothing more.

Four checks: the language of the whole; sentences left in the original's language; the length; a solution or answer
added at the end.

Invariants: pure functions. Lengths are counted in characters of stripped prose, so formulas do not blur them.
"""

from __future__ import annotations

import re
from collections import Counter

from curation.config.languages import LANGUAGES
from curation.languages import vocabulary
from curation.languages.identification import identify, identify_prose
from curation.languages.mixing import windows
from curation.languages.stripping import letters, strip, without_formulas
from curation.languages.vocabulary import one_of
from curation.languages.words import EVIDENCE
from curation.translation.violations import Violation

_SLACK = 12
"""Characters that do not matter: short problems vary more."""
_LEAST_LETTERS, _LEAST_WORDS = 10, 2
_SHORT_LETTERS = 16
"""Letters below which a sentence is in the original's language only where a word of it is of no other."""
"""Letters and words from which a sentence in the original's language is noticed."""
_COPIED_WORDS = 4
"""Words of the original, one after the other, from which a passage is noticed that was copied inside a sentence."""
_SURE = 0.8
_OUTSIDE = 0.5
"""Confidence from which a language that is none of the seven is believed."""
_MARKS = ".!?,;:。，？！：；、"
_SENTENCE = re.compile(r"(?<=[.!?:;…])\s+|(?<=[。！？；：])\s*|\n+")
_A_SENTENCE, _LACKING, _WHOLE = 12, 0.5, 1.25
"""Characters of what may have moved behind a question; which share of them the rest must lack; how long the whole may
be, as a share of what is expected."""
_NUMBER = re.compile(r"\d+")
_LAST_QUESTION = re.compile(r"[?？][^?？]*\Z")
_COPULAS = one_of(lambda lang: lang.translation.copulas)
_MARKER = re.compile(
    rf"(?<![^\W\d_])(?:{one_of(lambda lang: lang.translation.solution_words)})\s*"
    rf"(?:{_COPULAS}|{one_of(lambda lang: lang.translation.final_words)})?\s*[:：=—]|"
    rf"(?:{one_of(lambda lang: lang.translation.answer_articles)}) (?:final |correct )?"
    rf"(?:{one_of(lambda lang: lang.translation.answer_words)}) (?:{_COPULAS})\b|"
    rf"{one_of(lambda lang: lang.translation.solution_marks)}|\\boxed|####",
    re.IGNORECASE,
)


def language(original: str, translated: str, target: str) -> list[Violation]:
    """Return a violation unless the whole is in the target's language; none where there is no prose to tell."""
    guess = identify(translated, LANGUAGES)
    if guess.anywhere not in (None, *LANGUAGES) and guess.anywhere_confidence >= _OUTSIDE:
        return [Violation("language", f"the translation is in {guess.anywhere}, not in {target}")]
    if guess.lang == target:
        return []
    if guess.lang is None:
        silent = identify(original, LANGUAGES).letters < _LEAST_LETTERS and guess.letters < _LEAST_LETTERS
        return [] if silent else [Violation("language", f"the translation is in no language for sure, not in {target}")]
    return [Violation("language", f"the translation is in {guess.lang}, not in {target}")]


def leftovers(original: str, translated: str, source: str, target: str) -> list[Violation]:
    """Return violations for sentences still in the original's language, or copied from the original word for word."""
    copied = {_letters_only(sentence) for sentence in _sentences(original)}
    untranslated: list[str] = []
    for sentence in _sentences(translated):
        prose = strip(sentence)
        words = prose.split()
        is_copied = len(words) >= _LEAST_WORDS and _letters_only(sentence) in copied
        if is_copied and (not _only_names(words) or _is_word_of(words[0], source)):
            untranslated.append(sentence)
        elif letters(prose) >= _LEAST_LETTERS and len(words) > _LEAST_WORDS:
            untranslated += [sentence] if _in_source(prose, source, target) else []
    if not untranslated and source != target:
        untranslated += _copied_passages(original, translated, source)
    return [Violation("leftovers", f"not translated: {sentence[:120]!r}") for sentence in untranslated[:3]]


def _copied_passages(original: str, translated: str, source: str) -> list[str]:
    """Return runs of words that stand in both texts, with a word of the original's language among them."""
    runs = {tuple(run) for run in _runs(original)}
    return [
        " ".join(run)
        for run in _runs(translated)
        if tuple(run) in runs and sum(map(str.islower, run)) >= _COPIED_WORDS - 1
        and any(_is_word_of(word, source) for word in run)
    ]  # fmt: skip


def _runs(text: str) -> list[list[str]]:
    words = [word for word in (token.strip(_MARKS) for token in strip(text).split()) if word]
    return [words[at : at + _COPIED_WORDS] for at in range(len(words) - _COPIED_WORDS + 1)]


def _is_word_of(word: str, lang: str) -> bool:
    """Return whether a word is known to belong to a language, and to it alone."""
    return EVIDENCE.get(word.strip(_MARKS).lower()) == lang


def _in_source(prose: str, source: str, target: str) -> bool:
    """Return whether a sentence, or a passage of it in another script, is in the original's language."""
    scripts = vocabulary.language(source).script, vocabulary.language(target).script
    if scripts != ("latin", "latin"):
        pieces = [piece for piece in windows(prose, 1) if len(piece.split()) > _LEAST_WORDS or scripts[0] == "han"]
    else:
        pieces = [prose]
    for piece in pieces:
        if letters(piece) < _LEAST_LETTERS or _only_names(piece.split()):
            continue
        if letters(piece) < _SHORT_LETTERS and scripts == ("latin", "latin"):
            if any(_is_word_of(word, source) for word in piece.split()):
                return True
            continue  # too short to be told: "Dan a 4 dollars" is French
        guess = identify_prose(piece, (source, target))
        if guess.lang == source and guess.confidence >= _SURE:
            return True
    return False


def _only_names(words: list[str]) -> bool:
    """Return whether no word begins with a small letter or a Chinese character: names stay as they are."""
    uncapitalised = [word for word in words if word[:1].islower() or "\u3400" <= word[:1] <= "\u9fff"]
    return not uncapitalised


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCE.split(without_formulas(text)) if part.strip()]


def _letters_only(text: str) -> str:
    return "".join(sign for sign in strip(text).lower() if sign.isalpha())


def length(original: str, translated: str, source: str, target: str) -> list[Violation]:
    """Return a violation unless the prose is about as long as translations between the two languages are."""
    before, after = len(strip(original)), len(strip(translated))
    left, right = vocabulary.language(source), vocabulary.language(target)
    expected = before * right.translation.relative_length / left.translation.relative_length
    low = min(left.translation.spread[0], right.translation.spread[0])
    high = max(left.translation.spread[1], right.translation.spread[1])
    if low * expected - _SLACK <= after <= high * expected + _SLACK:
        return []
    kind = "short" if after < expected else "long"
    counts = f"{after} characters of prose, {low * expected:.0f} to {high * expected:.0f} are expected"
    return [Violation("length", f"too {kind}: {counts}")]


_FORM = re.compile(
    r"\bexpress|\bwritten as\b|\brounded\b|\bnearest\b|\bin terms of\b|\bas an? (?:percent|fraction|decimal|common)",
    re.IGNORECASE,
)
"""What says in an English question in which form its answer is asked for."""
_BRIEF = 45
"""Characters of a sentence that says so by itself."""


def added_solution(original: str, translated: str, answer: str | None, source: str, target: str) -> list[Violation]:
    """Return a violation for an answer, a solution or a box that the original does not have, or for words after the
    question that ends it. In which form the answer is asked for may stand behind the question: as a percentage. So may
    what the original says before its end: a tail is no addition where the rest is too short without it.
    """
    own_markers, markers = _MARKER.findall(original), [match[0] for match in _MARKER.finditer(translated)]
    if len(markers) > len(own_markers):
        return [Violation("added_solution", f"not in the original: {markers[-1]!r}")]
    tail, own_tail = _after_question(translated), _after_question(original)
    is_own = is_form(tail, original) or _has_no_new_number(tail, original, translated)
    is_own = is_own or _takes_the_place(tail, original, translated, source, target)
    if tail and not own_tail and not is_own and re.search(r"[?？]\s*\Z", original.strip()):
        return [Violation("added_solution", f"stands after the last question: {tail[:80]!r}")]
    if answer is not None and _ends_with(translated, answer) and not _ends_with(original, answer):
        return [Violation("added_solution", f"ends with the answer {answer!r}")]
    return []


def is_form(said: str, original: str) -> bool:
    """Return whether a short sentence can say in which form the answer is asked for: expressed in terms of t."""
    return len(said) <= _BRIEF and not re.search(r"\d", said) and _FORM.search(original) is not None


def _takes_the_place(tail: str, original: str, translated: str, source: str, target: str) -> bool:
    """Return whether a tail is a sentence without new numbers, about as long as what the rest lacks."""
    lengths = [vocabulary.language(lang).translation.relative_length for lang in (source, target)]
    whole, expected = len(strip(translated)), len(strip(original)) * lengths[1] / lengths[0]
    lacking, length = expected - (whole - len(strip(tail))), len(strip(tail))
    before, after = (Counter(_NUMBER.findall(text)) for text in (original, translated))
    no_new = all(after[number] <= before[number] for number in _NUMBER.findall(tail))
    return no_new and whole <= _WHOLE * expected and length >= _A_SENTENCE and lacking >= _LACKING * length


def _has_no_new_number(tail: str, original: str, translated: str) -> bool:
    """Return whether a tail has numbers, each of which the original ends with and has as often as its translation."""
    numbers = _NUMBER.findall(tail)
    ending = _NUMBER.findall(original[-2 * len(tail) - _BRIEF :])
    counts = (Counter(_NUMBER.findall(text)) for text in (original, translated))
    before, after = counts
    return bool(numbers) and all(number in ending and after[number] <= before[number] for number in numbers)


def _after_question(text: str) -> str:
    """Return what stands behind the last question mark; empty where that has no letter and no digit."""
    match = _LAST_QUESTION.search(text)
    tail = match[0][1:] if match else ""
    return tail.strip() if re.search(r"[^\W_]", tail) else ""


def _ends_with(text: str, answer: str) -> bool:
    bare = re.sub(r"[\s.。$)\]}]+\Z", "", text)
    ending = answer.strip().strip("$.").strip()
    return bool(ending) and re.search(rf"(?<![\w.,]){re.escape(ending)}\Z", bare) is not None
