"""All tiers on one pair: strings, choices, words and times, then every pair of readings, the likeliest first."""

from __future__ import annotations

import re
from functools import lru_cache

from curation.records import Outcome
from curation.verify.answers.forms import Form, Words, describe
from curation.verify.answers.matching import Matcher
from curation.verify.answers.plain import quick_compare
from curation.verify.answers.policy import AnswerComparison, ApproximationPolicy
from curation.verify.answers.reading import parse_readings
from curation.verify.answers.responses import choice_letter_in, extract_final
from curation.verify.answers.text import normalise_latex, strip_wrappers
from curation.verify.answers.words import (
    parse_boolean,
    parse_choice,
    parse_choice_letters,
    parse_date,
    parse_time,
    parse_word_list,
)
from curation.verify.extraction import strip_boxes

MAX_SHOWN_CHARS = 300
MAX_READ_CHARS = 4000
"""Characters of an answer that is read at all; longer ones are only compared as strings."""


def compare_answers(reference: str, answer: str, lang: str, policy: ApproximationPolicy) -> AnswerComparison:
    """Return the verdict on two final answers."""
    one, two = reference.strip(), answer.strip()
    if not one or not two:
        return _verdict(False, "empty", one, two)
    if one == two:
        return _verdict(True, "identical", one, two)
    if max(len(one), len(two)) > MAX_READ_CHARS:
        return _verdict(_is_same_digit_string(one, two), "string", one, two)
    one, two = clean_answer(one), clean_answer(two)
    if one == two and one:
        return _verdict(True, "identical", one, two)
    found = quick_compare(one, two, lang=lang, policy=policy) or _compare_as_words(one, two, lang, policy)
    return found or compare_readings(
        parse_readings(one, lang), parse_readings(two, lang), policy, arbitrary_names_in(one) | arbitrary_names_in(two)
    )


_DECLARED = re.compile(
    r"(?:integers?|real numbers?|constants?|arbitrary|any|some|parameters?)\s*\}?\s*\$?([a-zA-Z])(?![a-zA-Z])"
    r"|(?<![a-zA-Z])([a-zA-Z])\s*(?:\\in|is an?(?: arbitrary)?)\s*"
    r"(?:\\mathbb\s*\{?[ZNRQ]|integer|constant|parameter|real)"
)


def arbitrary_names_in(text: str) -> frozenset[str]:
    """Return the names that a text calls arbitrary: "k \\in \\mathbb{Z}", "for some integer t"."""
    return frozenset(name for names in _DECLARED.findall(text) for name in names if name)


@lru_cache(maxsize=4096)
def clean_answer(text: str) -> str:
    """Return a text in the spelling that the readings are parsed from."""
    return strip_wrappers(strip_boxes(normalise_latex(text)))


def _is_same_digit_string(one: str, two: str) -> bool:
    """Return whether two very long texts are the same number but for zeros in front and separators."""
    one, two = (text.replace(",", "").replace(" ", "").strip("$") for text in (one, two))
    return one.lstrip("0") == two.lstrip("0") and one.isdigit() and two.isdigit()


def compare_readings(
    references: tuple[Form, ...],
    answers: tuple[Form, ...],
    policy: ApproximationPolicy,
    arbitrary: frozenset[str] = frozenset(),
) -> AnswerComparison:
    """Return the verdict on every pair of readings, the likeliest first."""
    doubtful = False
    how = ""
    words_one, words_two = references[-1], answers[-1]
    if isinstance(words_one, Words) and isinstance(words_two, Words):
        only_words = len(references) == len(answers) == 1 and bool(words_one.text)
        if words_one.text == words_two.text and (only_words or _wordy(words_one)):
            return AnswerComparison(Outcome.CORRECT, "words", describe(words_one), describe(words_two), False)
    spare = (references[-1] if len(references) > 1 else None, answers[-1] if len(answers) > 1 else None)
    for one in references:
        for two in answers:
            if isinstance(one, Words) and isinstance(two, Words) and (one is spare[0] or two is spare[1]):
                continue
            matcher = Matcher(policy, arbitrary)
            if matcher.match(one, two):
                return AnswerComparison(Outcome.CORRECT, matcher.method, _shown(one), _shown(two), False)
            doubtful |= matcher.doubtful
            how = how or matcher.method
    return AnswerComparison(Outcome.WRONG, how or "words", _shown(references[0]), _shown(answers[0]), doubtful)


def _shown(form: Form) -> str:
    return describe(form)[:MAX_SHOWN_CHARS]


def _wordy(words: Words) -> bool:
    return bool(words.text) and all(char.isalpha() or char == " " for char in words.text)


def _compare_as_words(reference: str, answer: str, lang: str, policy: ApproximationPolicy) -> AnswerComparison | None:
    """Compare yes and no, times of day, dates, lists of words and lettered options; None where the two are none of these."""
    truths = parse_boolean(reference), parse_boolean(answer)
    if truths[0] and truths[1] and (len(reference) > 1 or len(answer) > 1):
        return _verdict(truths[0] == truths[1], "truth", truths[0], truths[1])
    clocks = parse_time(reference), parse_time(answer)
    if clocks[0] and clocks[1]:
        return _verdict(bool(clocks[0] & clocks[1]), "time", reference, answer)
    dates = parse_date(reference), parse_date(answer)
    if dates[0] and dates[1]:
        return _verdict(dates[0] == dates[1], "date", reference, answer)
    parts = parse_word_list(reference), parse_word_list(answer)
    if parts[0] and parts[1]:
        return _verdict(parts[0] == parts[1], "words", ", ".join(parts[0]), ", ".join(parts[1]))
    return _compare_as_choice(reference, answer, lang, policy)


def _compare_as_choice(reference: str, answer: str, lang: str, policy: ApproximationPolicy) -> AnswerComparison | None:
    """Compare a lettered option with a letter, or with the option's text; None where neither decides."""
    several = parse_choice_letters(reference), parse_choice_letters(answer)
    one, two = parse_choice(reference), parse_choice(answer)
    if several[0] and (several[1] or two):
        return _verdict(several[0] == (several[1] or ""), "choices", reference, answer)
    if one is None:
        if two is None or not two[1] or reference.isalpha():
            return None
        found = compare_answers(reference, two[1], lang, policy)
        return found if found.outcome is Outcome.CORRECT else None
    if several[1] and not one[1]:
        return _verdict(False, "choices", reference, answer)
    if two is not None:
        if one[0] == two[0]:
            return _verdict(True, "choice", one[0], two[0])
        return _verdict(False, "choice", one[0], two[0])
    if one[1]:
        found = compare_answers(one[1], answer, lang, policy)
        if found.outcome is Outcome.CORRECT:
            return found
    return None


def compare_responses(reference: str, answer: str, lang: str, policy: ApproximationPolicy) -> AnswerComparison:
    """Return the verdict on two texts, each a final answer or a whole response that holds one."""
    reference = extract_final(reference)
    choice = parse_choice(reference)
    if choice is not None and not choice[1] and parse_choice(answer) is None:
        letter = choice_letter_in(answer)
        if letter is not None:
            return _verdict(letter == choice[0], "choice", choice[0], letter)
    truths = parse_boolean(reference), parse_boolean(answer)
    if truths[0] and truths[1] and len(reference) > 1:
        return _verdict(truths[0] == truths[1], "truth", truths[0], truths[1])
    shorter = extract_final(answer)
    found = quick_compare(reference, shorter, lang=lang, policy=policy)
    return found or compare_answers(reference, shorter, lang, policy)


def _verdict(equal: bool, how: str, one: str, two: str) -> AnswerComparison:
    outcome = Outcome.CORRECT if equal else Outcome.WRONG
    return AnswerComparison(outcome, how, one[:MAX_SHOWN_CHARS], two[:MAX_SHOWN_CHARS], False)
