"""Answers that are still sentences: the letter of an option that one names, and doubt about all others.

`curation.verify.extraction` reads values out of sentences; what it leaves whole comes here.
"""

from __future__ import annotations

import re
from dataclasses import replace

from curation.languages.vocabulary import one_of
from curation.records import Outcome
from curation.verify.answers.policy import AnswerComparison
from curation.verify.answers.words import parse_choice
from curation.verify.prose import has_words, is_prose

MAX_SENTENCE_CHARS = 400
"""Characters of a text in which the letter of an option is looked for."""

_DECIDED_BY_WORDS = ("truth", "choice", "choices", "time", "date")
"""Methods that read a sentence for what they need."""

_NEGATED = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.negations)})\s*\(?[A-J](?![A-Za-z])")
_ALTERNATIVE = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.or_words)})\b", re.IGNORECASE)
_ARTICLE = re.compile(r"(^|[.!?:]\s+)A(?=\s+[a-z])")
_LETTER = re.compile(r"(?<![A-Za-z'\\])([A-HJ])(?![A-Za-z'])")


def compare_with_sentence(reference: str, answer: str, comparison: AnswerComparison) -> AnswerComparison:
    """Return a comparison, looked at again where it refuses a sentence.

    Against a lettered option the option counts that the sentence names and does not take back; else the verdict is
    doubtful.
    """
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
    """Return the letter of the one option that a sentence names without taking it back; None for none or several."""
    if len(text) > MAX_SENTENCE_CHARS or not has_words(text):
        return None
    negated = [match.group() for match in _NEGATED.finditer(text)]
    if negated and all(_ALTERNATIVE.match(words) for words in negated):
        return None  # "C or D" takes nothing back
    letters = set(_LETTER.findall(_ARTICLE.sub(r"\1", _NEGATED.sub(" ", text))))
    return letters.pop() if len(letters) == 1 else None
