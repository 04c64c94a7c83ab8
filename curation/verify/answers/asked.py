r"""Applies what the question asks for, before and after two answers are compared (`question.QuestionForm`).

    options     the letter of an option is its text, and the reverse
    quantity    "m+n = 113" is 113 if m+n is asked for; "m = 113" and the unworked "\binom{8}{4}" are doubtful
    rounding    an approximation counts as the statement rounds (`policy`)

A refusal because of the form is doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile

from curation.records import Outcome
from curation.verify.answers.policy import AnswerComparison, ApproximationPolicy
from curation.verify.answers.question import WORDS, QuestionForm, compact, stem
from curation.verify.answers.text import normalise_latex, strip_wrappers
from curation.verify.answers.units import is_known, is_unit, normalise_unit
from curation.verify.answers.words import NAMES_OF_NUMBERS, parse_choice, parse_choice_letters
from curation.verify.boxes import strip_boxes
from curation.verify.prose import TELLING

Compare = Callable[[str, str, str, ApproximationPolicy, QuestionForm], AnswerComparison]

MAX_FORMULA_CHARS = 400
"""Characters of an answer that may begin with the quantity asked for, or repeat it."""


def compare_as_asked(
    reference: str, answer: str, lang: str, policy: ApproximationPolicy, question: QuestionForm, compare: Compare
) -> AnswerComparison:
    """Return the verdict on two final answers to a question."""
    policy = with_rounding(policy, question)
    left, right = without_quantity(reference, question), without_quantity(answer, question)
    comparison = _compare_by_option(left, right, lang, policy, question, compare)
    if comparison is None:
        comparison = compare(left, right, lang, policy, question)
    if comparison.outcome is not Outcome.CORRECT:
        bare = without_words(left, question), without_words(right, question)
        comparison = compare(*bare, lang, policy, question) if bare != (left, right) else comparison
    if comparison.outcome is not Outcome.CORRECT and (value := stated_value(right, question)) is not None:
        stated = compare(left, value, lang, policy, question)
        comparison = stated if stated.outcome is Outcome.CORRECT else comparison
    if comparison.outcome is Outcome.CORRECT and question.quantity is not None:
        objection = _objection(reference, answer, question.quantity)
        if objection is not None:
            return replace(comparison, outcome=Outcome.WRONG, method=objection, doubtful=True)
    return comparison


def with_rounding(policy: ApproximationPolicy, question: QuestionForm) -> ApproximationPolicy:
    """Return a policy with the rounding that the question asks for."""
    return policy if question.rounding is None else replace(policy, rounding=question.rounding)


def without_quantity(text: str, question: QuestionForm) -> str:
    """Return an answer without "quantity asked for =" in front."""
    if question.quantity is None or "=" not in text or len(text) > MAX_FORMULA_CHARS:
        return text
    clean = _clean(text)
    for match in _EQUALS.finditer(clean):
        value = clean[match.end() :].strip()
        if value and _is_same_formula(compact(clean[: match.start()]), question.quantity):
            return value
    return text


def without_words(text: str, question: QuestionForm) -> str:
    """Return an answer's value and unit if its other words are in the statement or change nothing."""
    if len(text) > MAX_FORMULA_CHARS:
        return text
    clean = _TEXT.sub(r" \1 ", _clean(text)).replace("**", " ").replace("\\ ", " ").strip()
    value = _VALUE.match(clean)
    tail = clean[value.end() :].replace("\\money", " ") if value is not None else ""
    if value is None or not tail.strip() or _NO_WORDS.search(tail):
        return text
    words = WORDS.findall(tail)
    if not all(_is_understood(word, before, question) for before, word in zip(["", *words], words, strict=False)):
        return text
    units = " ".join(takewhile(lambda word: is_unit(word) and word not in _FILLERS, () if "&" in tail else words))
    return f"{value['money'] or ''}{value['number']} {value['unit'] or units}".rstrip()


def stated_value(text: str, question: QuestionForm) -> str | None:
    """Return the one value that a sentence adds to the statement, or its only value.

    None if arithmetic, a negation, or a word next to it may change its meaning.
    """
    clean = _TEXT.sub(r" \1 ", _clean(text)).replace("**", " ") if len(text) <= MAX_FORMULA_CHARS else ""
    clean = _THOUSANDS.sub("", clean)
    values = {match["number"].rstrip("\\%"): match for match in _STATED.finditer(clean)}
    fresh = [match for number, match in values.items() if number not in question.words] or [*values.values()]
    words = [word.lower() for word in WORDS.findall(clean.replace("\\money", " "))]
    is_sentence = sum(len(word) > 1 and word.isalpha() and not is_unit(word) for word in words) > 1
    if (
        len(fresh) != 1
        or not is_sentence
        or _NO_PROSE.search(clean)
        or not question.asking_words.issuperset(_DENYING.intersection(words))
    ):
        return None
    (value,) = fresh
    before, behind = WORDS.findall(clean[: value.start()]), WORDS.findall(clean[value.end() :])
    near = map(str.lower, (*before[-3:], *behind[:2]))
    telling = [word for word in near if word in _COMPARING or (word in TELLING and not is_unit(word))]
    if not all(
        stem(word) in (question.words if word in NAMES_OF_NUMBERS else question.asking_words) for word in telling
    ):
        return None
    units = takewhile(lambda word: is_unit(word) and word not in _FILLERS, behind)
    return f"{value['money'] or ''}{value['number']} {' '.join(units)}".rstrip()


def _is_understood(word: str, before: str, question: QuestionForm) -> bool:
    """Return whether a word after a value does not change it."""
    word = word.lower()
    if word[0].isdigit():
        return word.replace(",", "") in question.words and before.lower() not in _JOINING
    if word == "than":
        return not question.asking_words.isdisjoint(map(stem, _COMPARING))
    if word in _FILLERS or ((unit := normalise_unit(word)) and is_known(unit)):
        return True
    if word in TELLING or word in _COMPARING:
        return word not in _OPEN and stem(word) in question.asking_words
    return is_unit(word) or stem(word) in question.words


_TEXT = re.compile(r"\\(?:text|mathrm|mbox|textbf|textit|textrm)\s*\{([^{}]*)\}")
_VALUE = re.compile(
    r"(?P<money>\\money\s*)?(?P<unit>euros|pounds|yuan|rupees)?\s*"
    r"(?P<number>[-−]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:\s?/\s?\d+)?(?:\s?\\?%)?|\\[dt]?frac\{\d+\}\{\d+\}))"
    r"(?=[\s~,(]|/[A-Za-z]|$)"
)
_STATED = re.compile(rf"(?<![\w.,:/^-])(?<!\d\s){_VALUE.pattern[:-3]}|-[A-Za-z]|[.;:!?)](?!\d)|$)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NO_PROSE = re.compile(r"[<=>^_|{}\[\]+*×÷]|\\(?!money|%)|\s[-−/]\s|\d\s*(?:,|;|-|and|or|to)\s*[$]?\d")
_DENYING = frozenset("not no never cannot nor without wrong false maybe perhaps instead t".split())
_NO_WORDS = re.compile(r"[^\w\s~.,'’()/&-]|_|[-/]\s*\d|\d\s*[-/]|\.\s*\S|&(?![A-Za-z])")
_FILLERS = frozenset(
    "a all altogether an and are as at be been both by combined day during each every exactly for from had has have he "
    "her him his i in is it its just left more of on only our out over overall per person remaining she so still that "
    "the their them then there they this to together total totally was we were which who whole will with would worth "
    "after before".split()
)
_COMPARING = frozenset("more less fewer greater smaller larger bigger longer farther further older extra than".split())
_OPEN = frozenset("or either maybe perhaps wrong false instead".split())
_JOINING = frozenset(("", "or", "and", "to", "of", "out", "plus", "minus", "times", "over", "by", "not"))


def _clean(text: str) -> str:
    return strip_wrappers(strip_boxes(normalise_latex(text)))


_EQUALS = re.compile(r"(?<![<>!=\\:])=(?!=)")
_SUM = re.compile(r"[A-Za-z0-9+]+")


def _is_same_formula(left: str, right: str) -> bool:
    """Return whether two formulas are spelled alike, apart from a sum's order."""
    if left == right or left == f"({right})":
        return bool(left)
    sums = _SUM.fullmatch(left) and _SUM.fullmatch(right)
    return bool(sums) and sorted(left.split("+")) == sorted(right.split("+"))


_OPERATION = re.compile(r"[+*/^!]|(?<=.)-|\\[a-zA-Z]{2,}|\d[A-Za-z(]|[a-z]{2}")
_NAME = re.compile(r"[A-Za-z](?:_\{?\w\}?)?")
_COMBINATION = re.compile(r"\d*[A-Za-z](?:_\{?\w\}?)?(?:[+*-]?\d*[A-Za-z](?:_\{?\w\}?)?)+")


def _objection(reference: str, answer: str, quantity: str) -> str | None:
    """Return why an answer of the right value has the wrong form, or None."""
    if len(answer) > MAX_FORMULA_CHARS:
        return None
    formula = compact(_clean(answer))
    if formula == quantity and _OPERATION.search(quantity) and compact(_clean(reference)) != formula:
        return "repeats the question"
    label, equals, _ = formula.partition("=")
    if not equals or not _COMBINATION.fullmatch(quantity) or _is_same_formula(label, quantity):
        return None
    is_part = _NAME.fullmatch(label) is not None and label in quantity
    return "not the quantity asked for" if is_part or _COMBINATION.fullmatch(label) else None


def _compare_by_option(
    reference: str, answer: str, lang: str, policy: ApproximationPolicy, question: QuestionForm, compare: Compare
) -> AnswerComparison | None:
    """Compare an option's letter with a text by the option's text; None unless equal."""
    if not question.options or reference.strip() == answer.strip():
        return None
    texts = _option_text(reference, question.options), _option_text(answer, question.options)
    if (texts[0] is None) == (texts[1] is None) or parse_choice(_clean(answer if texts[1] is None else reference)):
        return None  # two letters, none, or a letter next to a letter with its text
    comparison = compare(texts[0] or reference, texts[1] or answer, lang, policy, question)
    if comparison.outcome is not Outcome.CORRECT:
        return None
    chosen, other = (texts[0], answer) if texts[0] is not None else (texts[1] or "", reference)
    rivals = [option for option in question.options if option != chosen]
    if compact(_clean(chosen)) == compact(_clean(other)):
        return replace(comparison, method="the option's text")
    names = {compact(option.partition("=")[0]) for option in question.options}
    is_part = "=" in chosen and "=" not in other and len(names) > 1  # -5, where f(5) = -5 is one of several statements
    if is_part or any(compare(rival, other, lang, policy, question).outcome is Outcome.CORRECT for rival in rivals):
        return replace(comparison, outcome=Outcome.WRONG, method="options", doubtful=True)
    return replace(comparison, method=f"the option's text, {comparison.method}")


def _option_text(text: str, options: tuple[str, ...]) -> str | None:
    """Return the texts of the options that an answer names by capital letters alone."""
    if len(text) > MAX_FORMULA_CHARS:
        return None
    text = _clean(text)
    letters = parse_choice_letters(text)
    if letters is None:
        choice = parse_choice(text)
        if choice is None or choice[1] or choice[0] not in text:
            return None
        letters = choice[0]
    places = [ord(letter) - ord("A") for letter in letters]
    return ", ".join(options[place] for place in places) if max(places) < len(options) else None
