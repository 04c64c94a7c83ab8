"""A model's rewriting of a multiple-choice problem: read, and accepted only if nothing was lost or given away.

Rules refuse what they cannot open (`opening`); a policy may be asked for those, with `curation.prompts.rewriting`. Its
rewriting is accepted only if all of this holds:

  - the problem was rewritten at all, and holds no labelled options any more;
  - its numbers are those of the question, or those of the question and of all its options (a question about the options
    may list them), each as often, and no other;
  - it is written in the same script as the question;
  - it asks something, and no label or word marks the right answer;
  - the answer that the policy gave to its own rewriting is the right option, by the verifier (the caller asks it).

Invariant: pure functions; in doubt a rewriting is refused, with the reason in words. Not here: who is asked.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from curation.filters.multiple_choice.opening import OpenQuestion, Refusal
from curation.filters.multiple_choice.resolving import strip_markup
from curation.languages.vocabulary import one_of
from curation.options import split_options, tidy_option
from curation.records import DropReason
from curation.thinking import split_response

_PROBLEM = re.compile(r"<problem>(.*?)</problem>", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_MARKED = re.compile(rf"(?i){one_of(lambda lang: lang.choices.marks_an_answer)}|\\boxed")
_POINTS = re.compile(rf"(?i){one_of(lambda lang: lang.choices.names_options)}")
_ASKS = re.compile(rf"(?i)[?？]|____|{one_of(lambda lang: lang.choices.asks)}")


@dataclass(frozen=True, slots=True)
class ProposedRewriting:
    """What a response proposes: the new statement, and the text behind it, which holds the policy's own answer."""

    statement: str
    answer: str


def read_rewriting(text: str | None) -> ProposedRewriting | None:
    """Return the last rewriting in a response behind its thoughts; None where there is none, or it is NONE."""
    response = split_response(text).answer if text is not None else None
    if response is None:
        return None
    matches = list(_PROBLEM.finditer(response))
    if not matches or matches[-1][1].strip().strip(".").upper() in ("", "NONE"):
        return None
    return ProposedRewriting(matches[-1][1].strip(), response[matches[-1].end() :].strip())


def accept_rewriting(
    question: str, options: Sequence[str], index: int, rewriting: ProposedRewriting | None, *, verified: bool
) -> OpenQuestion | Refusal:
    """Return the open question, or why the rewriting is not believed.

    Args:
        question: the problem without its options. options: their texts. index: the right one.
        verified: whether the verifier accepts the answer in ``rewriting.answer`` against the right option.
    """
    if rewriting is None:
        return _refused("no rewriting")
    statement = rewriting.statement
    if split_options(statement) is not None:
        return _refused("the rewriting still has labelled options")
    if not _ASKS.search(statement):
        return _refused("the rewriting asks nothing")
    if marked := _MARKED.search(statement):
        return _refused(f"the rewriting marks the answer: {marked[0]}")
    listed = all(strip_markup(option) in strip_markup(statement) for option in options)
    if not listed and (points := _POINTS.search(statement)):
        return _refused(f"the rewriting points at options that are gone: {points[0]}")
    answer = tidy_option(options[index])
    gives_away = strip_markup(answer) in strip_markup(statement) and strip_markup(answer) not in strip_markup(question)
    if gives_away and not listed:
        return _refused(f"the rewriting gives the answer away: {answer}")
    numbers_before, numbers_after = _numbers(question), _numbers(statement)
    with_options = numbers_before + sum((_numbers(option) for option in options), Counter())
    if numbers_after not in (numbers_before, with_options):
        return _refused(f"the numbers changed: {_list_numbers(numbers_before)} became {_list_numbers(numbers_after)}")
    if _script(statement) != _script(question):
        return _refused(f"the language changed: {_script(question)} became {_script(statement)}")
    if not verified:
        return _refused("the policy's answer to its rewriting is not the right option")
    return OpenQuestion(statement, answer)


def _refused(why: str) -> Refusal:
    return Refusal(DropReason.CHOICES_NEEDED, why)


def _numbers(text: str) -> Counter[str]:
    """Return the numbers of a text, as they are written but for thousands commas."""
    return Counter(number.replace(",", "") for number in _NUMBER.findall(unicodedata.normalize("NFKC", text)))


def _list_numbers(numbers: Counter[str]) -> str:
    return " ".join(sorted(numbers.elements())) or "none"


def _script(text: str) -> str:
    """Return the script of most letters outside formulas."""
    plain = re.sub(r"\$[^$]*\$|\\[A-Za-z]+", " ", text)
    counts: Counter[str] = Counter()
    for letter in plain:
        if letter.isalpha():
            name = unicodedata.name(letter, "").split(" ")[0]
            counts["CJK" if name in ("CJK", "HIRAGANA", "KATAKANA") else name] += 1
    return counts.most_common(1)[0][0] if counts else "none"
