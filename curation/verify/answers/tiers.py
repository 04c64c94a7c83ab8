"""Compares a pair by all tiers: strings, choices, words and times, then pairs of readings, the likeliest first."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from functools import lru_cache

from curation.languages.vocabulary import one_of
from curation.records import Outcome
from curation.verify.answers.asked import compare_as_asked
from curation.verify.answers.expr import BINDERS
from curation.verify.answers.forms import Form, Reading, Relation, Words, describe, names_in, parts
from curation.verify.answers.grammar import GREEK
from curation.verify.answers.labels import NO_NAME
from curation.verify.answers.matching import Matcher
from curation.verify.answers.plain import quick_compare
from curation.verify.answers.policy import AnswerComparison, ApproximationPolicy
from curation.verify.answers.question import NOTHING_ASKED, QuestionForm
from curation.verify.answers.reading import parse_readings
from curation.verify.answers.text import normalise_latex, strip_wrappers
from curation.verify.answers.tokens import FUNCTIONS
from curation.verify.answers.words import (
    NAMES_OF_NUMBERS,
    is_remark,
    parse_choice,
    parse_choice_letters,
    parse_date,
    parse_time,
    parse_word_list,
    split_boolean,
)
from curation.verify.boxes import strip_boxes
from curation.verify.prose import has_words, is_prose

MAX_SHOWN_CHARS = 300
MAX_READ_CHARS = 4000
"""Characters of an answer that is read at all; longer ones are only compared as strings."""

MAX_SENTENCE_CHARS = 400
"""Characters of a text in which the letter of an option is looked for."""

_DECIDED_BY_WORDS = ("truth", "choice", "choices", "time", "date")
"""Methods that read a sentence for what they need."""

_COPULAS = one_of(lambda vocab: vocab.answers.copulas)
_TAKEN_BACK = re.compile(
    rf"(?<![A-Za-z])[A-J]\)?\**\s+(?:{_COPULAS})\s+(?:not\b|{one_of(lambda vocab: vocab.answers.no)})", re.IGNORECASE
)
_NEGATED = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.negations)})\s*\(?[A-J](?![A-Za-z])")
_ALTERNATIVE = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.or_words)})\b", re.IGNORECASE)
_ARTICLE = re.compile(r"(^|[.!?:]\s+)A(?=\s+[a-z])")
_LETTER = re.compile(r"(?<![A-Za-z'\\])([A-HJ])(?![A-Za-z'])")


def compare_answers(
    reference: str,
    answer: str,
    lang: str,
    policy: ApproximationPolicy,
    question: QuestionForm = NOTHING_ASKED,
) -> AnswerComparison:
    """Return the verdict on two final answers to a question."""
    if question is NOTHING_ASKED:
        return _compare_answers(reference, answer, lang, policy, question)
    return compare_as_asked(reference, answer, lang, policy, question, _compare_answers)


def _compare_answers(
    reference: str, answer: str, lang: str, policy: ApproximationPolicy, question: QuestionForm
) -> AnswerComparison:
    left, right = reference.strip(), answer.strip()
    if not left or not right:
        return _verdict(False, "empty", left, right)
    if left == right:
        return _verdict(True, "identical", left, right)
    if max(len(left), len(right)) > MAX_READ_CHARS:
        verdict = _verdict(_is_same_digit_string(left, right), "string", left, right)
        return replace(verdict, doubtful=verdict.outcome is Outcome.WRONG and not (left + right).isdigit())
    left, right = clean_answer(left), clean_answer(right)
    if left == right and left:
        return _verdict(True, "identical", left, right)
    comparison = quick_compare(left, right, lang=lang, policy=policy) or _compare_as_words(left, right, lang, policy)
    return comparison or compare_readings(parse_readings(left, lang), parse_readings(right, lang), policy, question)


@lru_cache(maxsize=4096)
def clean_answer(text: str) -> str:
    """Return a text in the spelling that is parsed."""
    return strip_wrappers(strip_boxes(normalise_latex(text)))


def _is_same_digit_string(left: str, right: str) -> bool:
    """Return whether two long texts are the same digits without leading zeros and separators."""
    left, right = (text.replace(",", "").replace(" ", "").strip("$") for text in (left, right))
    return left.lstrip("0") == right.lstrip("0") and left.isdigit() and right.isdigit()


def compare_readings(
    references: tuple[Reading, ...],
    answers: tuple[Reading, ...],
    policy: ApproximationPolicy,
    question: QuestionForm = NOTHING_ASKED,
) -> AnswerComparison:
    """Return CORRECT if any pair of readings is the same answer and left out the same text."""
    doubtful = False
    method = ""
    reference_words, answer_words = references[-1].form, answers[-1].form
    if isinstance(reference_words, Words) and isinstance(answer_words, Words):
        only_words = len(references) == len(answers) == 1 and bool(reference_words.text)
        if reference_words.text == answer_words.text and (only_words or _is_wordy(reference_words)):
            return AnswerComparison(Outcome.CORRECT, "words", describe(reference_words), describe(answer_words), False)
    fallbacks = (references[-1] if len(references) > 1 else None, answers[-1] if len(answers) > 1 else None)
    for reference, answer in itertools.product(references, answers):
        both_words = isinstance(reference.form, Words) and isinstance(answer.form, Words)
        if both_words and (reference is fallbacks[0] or answer is fallbacks[1]):
            continue
        arbitrary = frozenset(name for name, _ in (*reference.declared, *answer.declared))
        matcher = Matcher(policy, arbitrary, question)
        if matcher.match(reference.form, answer.form):
            if _say_the_same_beside(reference, answer):
                forms = _short_description(reference.form), _short_description(answer.form)
                return AnswerComparison(Outcome.CORRECT, matcher.method, *forms, False)
            matcher.doubtful, matcher.method = True, "partly read"
        doubtful |= matcher.doubtful
        method = method or matcher.method
    forms = _short_description(references[0].form), _short_description(answers[0].form)
    doubtful |= _unread(references, answers) != _unread(answers, references)
    return AnswerComparison(Outcome.WRONG, method or "words", *forms, doubtful)


def _unread(readings: tuple[Reading, ...], others: tuple[Reading, ...]) -> frozenset[str]:
    """Return the text not understood: left out, or read as letters or words."""
    form, words = readings[0].form, readings[-1].form
    names, foreign = names_in(form), frozenset("".join(names_in(others[0].form)))
    unread = {readings[0].unread, *(name for name in names if len(name) > 2 and name.isalpha() and name not in _NAMES)}
    unread |= {part.text for part in _words_in(form) if not isinstance(form, Relation) or NO_NAME.search(part.raw)}
    if isinstance(words, Words):
        unread |= {word for word in _RUN.findall(words.raw) if names.issuperset(word) and foreign.isdisjoint(word)}
        if words is form and _FORMULA_SIGN.search(words.raw):
            unread.add(words.text)
    return frozenset(filter(None, unread))


def _words_in(form: Form) -> list[Words]:
    return [found for part in parts(form) for found in ([part] if isinstance(part, Words) else _words_in(part))]


_NAMES = GREEK | FUNCTIONS | BINDERS
_RUN = re.compile(r"(?<![A-Za-z\\])[a-z]{3,}(?![A-Za-z])")
_FORMULA_SIGN = re.compile(rf"[\d=<>^+*/|\\_()\[\]]|\b(?:{'|'.join(NAMES_OF_NUMBERS)})\b", re.IGNORECASE)


def _say_the_same_beside(reference: Reading, answer: Reading) -> bool:
    """Return whether two readings left out the same and have compatible declarations."""
    ours, theirs = ([pair for pair in side.declared if pair[1]] for side in (reference, answer))
    if names_in(reference.form) != names_in(answer.form):
        ours, theirs = (sorted(("", kind) for _, kind in side) for side in (ours, theirs))
    return reference.unread == answer.unread and (not ours or not theirs or ours == theirs)


def _short_description(form: Form) -> str:
    return describe(form)[:MAX_SHOWN_CHARS]


def _is_wordy(words: Words) -> bool:
    is_text = bool(words.text) and all(char.isalpha() or char == " " for char in words.text)
    return is_text and any(len(word) > 2 for word in words.text.split())


def _compare_as_words(reference: str, answer: str, lang: str, policy: ApproximationPolicy) -> AnswerComparison | None:
    """Compare yes and no, times, dates, reversed sums, lists of words and lettered options; None for anything else."""
    if len(reference) > 1 or len(answer) > 1:
        truth = _compare_truths(reference, answer, lang, policy)
        if truth is not None:
            return truth
    clocks = parse_time(reference), parse_time(answer)
    if clocks[0] and clocks[1]:
        return _verdict(bool(clocks[0] & clocks[1]), "time", reference, answer)
    dates = parse_date(reference), parse_date(answer)
    if dates[0] and dates[1]:
        return _verdict(dates[0] == dates[1], "date", reference, answer)
    if "dots" in reference and "dots" in answer and _terms(reference) in (_terms(answer), _terms(answer)[::-1]):
        return _verdict(True, "sum in reverse order", reference, answer)
    parts = parse_word_list(reference), parse_word_list(answer)
    if parts[0] and parts[1]:
        return _verdict(parts[0] == parts[1], "words", ", ".join(parts[0]), ", ".join(parts[1]))
    return _compare_as_choice(reference, answer, lang, policy)


_TERM = re.compile(r"[-+]?(?:\{[^{}]*\}|\([^()]*\)|\\[A-Za-z]+|[^-+{}()\\,;=<>&|\[\]])+")


def _terms(text: str) -> list[str]:
    """Return a sum's terms with their signs, or the text if it is no sum."""
    flat = "".join(text.replace("\\cdots", "\\dots").replace("\\ldots", "\\dots").split())
    terms = _TERM.findall(flat)
    signed = [term if term[0] in "+-" else f"+{term}" for term in terms]
    return signed if "".join(terms) == flat and len(terms) > 2 else [text]


def _compare_truths(reference: str, answer: str, lang: str, policy: ApproximationPolicy) -> AnswerComparison | None:
    """Compare yes and no, and the text after them; None for anything else."""
    left, right = split_boolean(reference), split_boolean(answer)
    if left is None or right is None:
        return None
    (truth, other), (more, more_there) = (left[0], right[0]), (clean_answer(left[1]), clean_answer(right[1]))
    remark = (not more and is_remark(more_there)) or (not more_there and is_remark(more))
    if truth != other or more == more_there or remark:
        return _verdict(truth == other, "truth", truth, other)
    if more and more_there and compare_answers(more, more_there, lang, policy).outcome is Outcome.CORRECT:
        return _verdict(True, "truth", reference, answer)
    return replace(_verdict(False, "partly read", reference, answer), doubtful=True)


def _compare_as_choice(reference: str, answer: str, lang: str, policy: ApproximationPolicy) -> AnswerComparison | None:
    """Compare a lettered option with a letter or its text; None if undecided."""
    letters = parse_choice_letters(reference), parse_choice_letters(answer)
    reference_choice, answer_choice = parse_choice(reference), parse_choice(answer)
    if letters[0] and (letters[1] or answer_choice):
        return _verdict(letters[0] == (letters[1] or ""), "choices", reference, answer)
    if reference_choice is None:
        if answer_choice is None or not answer_choice[1] or reference.isalpha():
            return None
        comparison = compare_answers(reference, answer_choice[1], lang, policy)
        return comparison if comparison.outcome is Outcome.CORRECT else None
    if letters[1] and not reference_choice[1]:
        return _verdict(False, "choices", reference, answer)
    if answer_choice is not None:
        same = reference_choice[0] == answer_choice[0]
        if same and reference_choice[1] and answer_choice[1]:
            contents = compare_answers(reference_choice[1], answer_choice[1], lang, policy)
            if contents.outcome is Outcome.WRONG:
                return replace(contents, method="the letter's content", doubtful=True)
        return _verdict(same, "choice", reference_choice[0], answer_choice[0])
    if reference_choice[1]:
        comparison = compare_answers(reference_choice[1], answer, lang, policy)
        if comparison.outcome is Outcome.CORRECT:
            return comparison
    return None


def _verdict(equal: bool, method: str, left: str, right: str) -> AnswerComparison:
    outcome = Outcome.CORRECT if equal else Outcome.WRONG
    return AnswerComparison(outcome, method, left[:MAX_SHOWN_CHARS], right[:MAX_SHOWN_CHARS], False)


def compare_with_sentence(reference: str, answer: str, comparison: AnswerComparison) -> AnswerComparison:
    """Return a comparison; a refused sentence is judged by the only option it names, or is doubtful."""
    if comparison.outcome is not Outcome.WRONG:
        return comparison
    choice = parse_choice(reference)
    if choice is not None and not choice[1] and parse_choice(answer) is None:
        letter = named_option(answer)
        if letter is not None:
            outcome = Outcome.CORRECT if letter == choice[0] else Outcome.WRONG
            return AnswerComparison(outcome, "choice", choice[0], letter, letter != choice[0])
    may_hold_it = any(char.isdigit() for char in answer) or not any(char.isdigit() for char in reference)
    is_unread = comparison.method not in _DECIDED_BY_WORDS and may_hold_it and is_prose(answer)
    return replace(comparison, doubtful=True) if is_unread else comparison


def named_option(text: str) -> str | None:
    """Return the letter of the only option that a sentence names and does not retract, or None."""
    if len(text) > MAX_SENTENCE_CHARS or not has_words(text):
        return None
    negated = [match.group() for match in _NEGATED.finditer(text)]
    if negated and all(_ALTERNATIVE.match(words) for words in negated):
        return None  # "C or D" takes nothing back
    letters = set(_LETTER.findall(_ARTICLE.sub(r"\1", _NEGATED.sub(" ", _TAKEN_BACK.sub(" ", text)))))
    return letters.pop() if len(letters) == 1 else None
