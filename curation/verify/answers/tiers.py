r"""Compares a pair by all tiers: strings, choices, words and times, then pairs of readings, the likeliest first.

What the question asks for (`question.QuestionForm`) is applied before and after:

    options     the letter of an option is its text, and the reverse
    quantity    "m+n = 113" is 113 if m+n is asked for; "m = 113" and the unworked "\\binom{8}{4}" are doubtful

A refusal by the form is doubtful.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile

from curation.languages.vocabulary import one_of
from curation.records import Outcome
from curation.verify.answers.expr import BINDERS
from curation.verify.answers.forms import Form, Reading, Relation, Words, describe, names_in, subforms
from curation.verify.answers.grammar import GREEK
from curation.verify.answers.labels import NO_NAME
from curation.verify.answers.matching import Matcher
from curation.verify.answers.plain import quick_compare
from curation.verify.answers.policy import AnswerComparison
from curation.verify.answers.question import NOTHING_ASKED, WORDS, QuestionForm, compact, stem
from curation.verify.answers.reading import parse_readings
from curation.verify.answers.text import normalise_latex, strip_wrappers
from curation.verify.answers.tokens import FUNCTIONS
from curation.verify.answers.units import is_known, is_unit, normalise_unit
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
from curation.verify.prose import QUALIFIERS, has_words, is_prose

MAX_SHOWN_CHARS = 300
MAX_READ_CHARS = 4000
"""Max characters of an answer to parse; longer ones are compared as strings."""

MAX_FORMULA_CHARS = 400
"""Max characters of an answer to match with the question."""

MAX_SENTENCE_CHARS = 400
"""Max characters to search for an option's letter."""

_DECIDED_BY_WORDS = ("truth", "choice", "choices", "time", "date")
"""Methods that read whole sentences."""

_COPULAS = one_of(lambda vocab: vocab.answers.copulas)
_RETRACTED = re.compile(
    rf"(?<![A-Za-z])[A-J]\)?\**\s+(?:{_COPULAS})\s+(?:not\b|{one_of(lambda vocab: vocab.answers.no)})", re.IGNORECASE
)
_NEGATED = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.negations)})\s*\(?[A-J](?![A-Za-z])")
_ALTERNATIVE = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.or_words)})\b", re.IGNORECASE)
_ARTICLE = re.compile(r"(^|[.!?:]\s+)A(?=\s+[a-z])")
_LETTER = re.compile(r"(?<![A-Za-z'\\])([A-HJ])(?![A-Za-z'])")


def compare_answers(reference: str, answer: str, lang: str, question: QuestionForm = NOTHING_ASKED) -> AnswerComparison:
    """Return the verdict on two final answers to a question."""
    if question is NOTHING_ASKED:
        return _compare(reference, answer, lang, question)
    left, right = without_quantity(reference, question), without_quantity(answer, question)
    comparison = _compare_by_option(left, right, lang, question)
    if comparison is None:
        comparison = _compare(left, right, lang, question)
    if comparison.outcome is not Outcome.CORRECT:
        bare = without_words(left, question), without_words(right, question)
        comparison = _compare(*bare, lang, question) if bare != (left, right) else comparison
    if comparison.outcome is not Outcome.CORRECT and (value := stated_value(right, question)) is not None:
        stated = _compare(left, value, lang, question)
        comparison = stated if stated.outcome is Outcome.CORRECT else comparison
    if comparison.outcome is Outcome.CORRECT and question.quantity is not None:
        objection = _objection(reference, answer, question.quantity)
        if objection is not None:
            return replace(comparison, outcome=Outcome.WRONG, method=objection, doubtful=True)
    return comparison


def _compare(reference: str, answer: str, lang: str, question: QuestionForm) -> AnswerComparison:
    left, right = reference.strip(), answer.strip()
    if not left or not right:
        return _verdict(False, "empty", left, right)
    if left == right:
        return _verdict(True, "identical", left, right)
    if max(len(left), len(right)) > MAX_READ_CHARS:
        return replace(_verdict(False, "string", left, right), doubtful=True)
    left, right = clean_answer(left), clean_answer(right)
    if left == right and left:
        return _verdict(True, "identical", left, right)
    comparison = quick_compare(left, right, lang=lang, rounding=question.rounding)
    comparison = comparison or _compare_as_words(left, right, lang, question)
    return comparison or compare_readings(parse_readings(left, lang), parse_readings(right, lang), question)


@lru_cache(maxsize=4096)
def clean_answer(text: str) -> str:
    """Return a text in the spelling that is parsed."""
    return strip_wrappers(strip_boxes(normalise_latex(text)))


def compare_readings(
    references: tuple[Reading, ...], answers: tuple[Reading, ...], question: QuestionForm = NOTHING_ASKED
) -> AnswerComparison:
    """Return CORRECT if any readings are the same answer with the same unread text."""
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
        matcher = Matcher(arbitrary, question)
        if matcher.match(reference.form, answer.form):
            if _have_equal_rests(reference, answer):
                forms = _short_description(reference.form), _short_description(answer.form)
                return AnswerComparison(Outcome.CORRECT, matcher.method, *forms, False)
            matcher.doubtful, matcher.method = True, "partly read"
        doubtful |= matcher.doubtful
        method = method or matcher.method
    forms = _short_description(references[0].form), _short_description(answers[0].form)
    doubtful |= _unread(references, answers) != _unread(answers, references)
    return AnswerComparison(Outcome.WRONG, method or "words", *forms, doubtful)


def _unread(readings: tuple[Reading, ...], other_readings: tuple[Reading, ...]) -> frozenset[str]:
    """Return the text not understood: unread, or read as letters or words."""
    form, words = readings[0].form, readings[-1].form
    names, foreign = names_in(form), frozenset("".join(names_in(other_readings[0].form)))
    unread = {readings[0].unread, *(name for name in names if len(name) > 2 and name.isalpha() and name not in _NAMES)}
    unread |= {part.text for part in _words_in(form) if not isinstance(form, Relation) or NO_NAME.search(part.raw)}
    if isinstance(words, Words):
        unread |= {word for word in _RUN.findall(words.raw) if names.issuperset(word) and foreign.isdisjoint(word)}
        if words is form and _FORMULA_SIGN.search(words.raw):
            unread.add(words.text)
    return frozenset(filter(None, unread))


def _words_in(form: Form) -> list[Words]:
    return [words for part in subforms(form) for words in ([part] if isinstance(part, Words) else _words_in(part))]


_NAMES = GREEK | FUNCTIONS | BINDERS
_RUN = re.compile(r"(?<![A-Za-z\\])[a-z]{3,}(?![A-Za-z])")
_FORMULA_SIGN = re.compile(rf"[\d=<>^+*/|\\_()\[\]]|\b(?:{'|'.join(NAMES_OF_NUMBERS)})\b", re.IGNORECASE)


def _have_equal_rests(reference: Reading, answer: Reading) -> bool:
    """Return whether readings have the same unread text and compatible declarations."""
    reference_names, answer_names = ([pair for pair in side.declared if pair[1]] for side in (reference, answer))
    if names_in(reference.form) != names_in(answer.form):
        reference_names, answer_names = (
            sorted(("", kind) for _, kind in side) for side in (reference_names, answer_names)
        )
    return reference.unread == answer.unread and (
        not reference_names or not answer_names or reference_names == answer_names
    )


def _short_description(form: Form) -> str:
    return describe(form)[:MAX_SHOWN_CHARS]


def _is_wordy(words: Words) -> bool:
    is_text = bool(words.text) and all(char.isalpha() or char == " " for char in words.text)
    return is_text and any(len(word) > 2 for word in words.text.split())


def _compare_as_words(reference: str, answer: str, lang: str, question: QuestionForm) -> AnswerComparison | None:
    if len(reference) > 1 or len(answer) > 1:
        truth = _compare_truths(reference, answer)
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
    lists = parse_word_list(reference), parse_word_list(answer)
    if lists[0] and lists[1]:
        return _verdict(lists[0] == lists[1], "words", ", ".join(lists[0]), ", ".join(lists[1]))
    return _compare_as_choice(reference, answer, lang, question)


_TERM = re.compile(r"[-+]?(?:\{[^{}]*\}|\([^()]*\)|\\[A-Za-z]+|[^-+{}()\\,;=<>&|\[\]])+")


def _terms(text: str) -> list[str]:
    """Return a sum's signed terms, else the text."""
    flat = "".join(text.replace("\\cdots", "\\dots").replace("\\ldots", "\\dots").split())
    terms = _TERM.findall(flat)
    signed = [term if term[0] in "+-" else f"+{term}" for term in terms]
    return signed if "".join(terms) == flat and len(terms) > 2 else [text]


def _compare_truths(reference: str, answer: str) -> AnswerComparison | None:
    left, right = split_boolean(reference), split_boolean(answer)
    if left is None or right is None:
        return None
    left_rest, right_rest = clean_answer(left[1]), clean_answer(right[1])
    remark = (not left_rest and is_remark(right_rest)) or (not right_rest and is_remark(left_rest))
    if left[0] != right[0] or left_rest == right_rest or remark:
        return _verdict(left[0] == right[0], "truth", left[0], right[0])
    return replace(_verdict(False, "partly read", reference, answer), doubtful=True)


def _compare_as_choice(reference: str, answer: str, lang: str, question: QuestionForm) -> AnswerComparison | None:
    letters = parse_choice_letters(reference), parse_choice_letters(answer)
    reference_choice, answer_choice = parse_choice(reference), parse_choice(answer)
    if letters[0] and (letters[1] or answer_choice):
        return _verdict(letters[0] == (letters[1] or ""), "choices", reference, answer)
    if reference_choice is None:
        if answer_choice is None or not answer_choice[1] or reference.isalpha():
            return None
        comparison = _compare(reference, answer_choice[1], lang, question)
        return comparison if comparison.outcome is Outcome.CORRECT else None
    if letters[1] and not reference_choice[1]:
        return _verdict(False, "choices", reference, answer)
    if answer_choice is not None:
        same = reference_choice[0] == answer_choice[0]
        if same and reference_choice[1] and answer_choice[1]:
            contents = _compare(reference_choice[1], answer_choice[1], lang, question)
            if contents.outcome is Outcome.WRONG:
                return replace(contents, method="the letter's content", doubtful=True)
        return _verdict(same, "choice", reference_choice[0], answer_choice[0])
    if reference_choice[1]:
        comparison = _compare(reference_choice[1], answer, lang, question)
        if comparison.outcome is Outcome.CORRECT:
            return comparison
    return None


def _verdict(equal: bool, method: str, left: str, right: str) -> AnswerComparison:
    outcome = Outcome.CORRECT if equal else Outcome.WRONG
    return AnswerComparison(outcome, method, left[:MAX_SHOWN_CHARS], right[:MAX_SHOWN_CHARS], False)


def compare_with_sentence(reference: str, answer: str, comparison: AnswerComparison) -> AnswerComparison:
    """Return a comparison; a refused sentence is judged by its only option, or is doubtful."""
    if comparison.outcome is not Outcome.WRONG:
        return comparison
    choice = parse_choice(reference)
    if choice is not None and not choice[1] and parse_choice(answer) is None:
        letter = named_option(answer)
        if letter is not None:
            outcome = Outcome.CORRECT if letter == choice[0] else Outcome.WRONG
            return AnswerComparison(outcome, "choice", choice[0], letter, letter != choice[0])
    may_contain_it = any(char.isdigit() for char in answer) or not any(char.isdigit() for char in reference)
    is_unread = comparison.method not in _DECIDED_BY_WORDS and may_contain_it and is_prose(answer)
    return replace(comparison, doubtful=True) if is_unread else comparison


def named_option(text: str) -> str | None:
    """Return the letter of the only option that a sentence names and does not retract."""
    if len(text) > MAX_SENTENCE_CHARS or not has_words(text):
        return None
    negated = [match.group() for match in _NEGATED.finditer(text)]
    if negated and all(_ALTERNATIVE.match(words) for words in negated):
        return None  # "C or D" retracts nothing
    letters = set(_LETTER.findall(_ARTICLE.sub(r"\1", _NEGATED.sub(" ", _RETRACTED.sub(" ", text)))))
    return letters.pop() if len(letters) == 1 else None


def without_quantity(text: str, question: QuestionForm) -> str:
    """Return an answer without "quantity asked for =" in front."""
    if question.quantity is None or "=" not in text or len(text) > MAX_FORMULA_CHARS:
        return text
    clean = clean_answer(text)
    for match in _EQUALS.finditer(clean):
        value = clean[match.end() :].strip()
        if value and _is_same_formula(compact(clean[: match.start()]), question.quantity):
            return value
    return text


def without_words(text: str, question: QuestionForm) -> str:
    """Return an answer's value and unit if its other words change nothing."""
    if len(text) > MAX_FORMULA_CHARS:
        return text
    clean = _TEXT.sub(r" \1 ", clean_answer(text)).replace("**", " ").replace("\\ ", " ").strip()
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

    None if arithmetic, a negation or a nearby word may change it.
    """
    clean = _TEXT.sub(r" \1 ", clean_answer(text)).replace("**", " ") if len(text) <= MAX_FORMULA_CHARS else ""
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
    before, after = WORDS.findall(clean[: value.start()]), WORDS.findall(clean[value.end() :])
    near = map(str.lower, (*before[-3:], *after[:2]))
    qualifiers = [word for word in near if word in _COMPARING or (word in QUALIFIERS and not is_unit(word))]
    if not all(
        stem(word) in (question.words if word in NAMES_OF_NUMBERS else question.asking_words) for word in qualifiers
    ):
        return None
    units = takewhile(lambda word: is_unit(word) and word not in _FILLERS, after)
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
    if word in QUALIFIERS or word in _COMPARING:
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


_EQUALS = re.compile(r"(?<![<>!=\\:])=(?!=)")
_SUM = re.compile(r"[A-Za-z0-9+]+")


def _is_same_formula(left: str, right: str) -> bool:
    if left == right or left == f"({right})":
        return bool(left)
    sums = _SUM.fullmatch(left) and _SUM.fullmatch(right)
    return bool(sums) and sorted(left.split("+")) == sorted(right.split("+"))


_OPERATION = re.compile(r"[+*/^!]|(?<=.)-|\\[a-zA-Z]{2,}|\d[A-Za-z(]|[a-z]{2}")
_NAME = re.compile(r"[A-Za-z](?:_\{?\w\}?)?")
_COMBINATION = re.compile(r"\d*[A-Za-z](?:_\{?\w\}?)?(?:[+*-]?\d*[A-Za-z](?:_\{?\w\}?)?)+")


def _objection(reference: str, answer: str, quantity: str) -> str | None:
    """Return why an answer of the right value has the wrong form."""
    if len(answer) > MAX_FORMULA_CHARS:
        return None
    formula = compact(clean_answer(answer))
    if formula == quantity and _OPERATION.search(quantity) and compact(clean_answer(reference)) != formula:
        return "repeats the question"
    label, equals, _ = formula.partition("=")
    if not equals or not _COMBINATION.fullmatch(quantity) or _is_same_formula(label, quantity):
        return None
    is_part = _NAME.fullmatch(label) is not None and label in quantity
    return "not the quantity asked for" if is_part or _COMBINATION.fullmatch(label) else None


def _compare_by_option(reference: str, answer: str, lang: str, question: QuestionForm) -> AnswerComparison | None:
    """Compare an option's letter with a text by the option's text; None unless equal."""
    if not question.options or reference.strip() == answer.strip():
        return None
    texts = _option_text(reference, question.options), _option_text(answer, question.options)
    if (texts[0] is None) == (texts[1] is None) or parse_choice(
        clean_answer(answer if texts[1] is None else reference)
    ):
        return None  # two letters, none, or a letter and a letter with its text
    comparison = _compare(texts[0] or reference, texts[1] or answer, lang, question)
    if comparison.outcome is not Outcome.CORRECT:
        return None
    chosen, text = (texts[0], answer) if texts[0] is not None else (texts[1] or "", reference)
    rivals = [option for option in question.options if option != chosen]
    if compact(clean_answer(chosen)) == compact(clean_answer(text)):
        return replace(comparison, method="the option's text")
    names = {compact(option.partition("=")[0]) for option in question.options}
    is_part = "=" in chosen and "=" not in text and len(names) > 1  # -5, where f(5) = -5 is one of several statements
    if is_part or any(_compare(rival, text, lang, question).outcome is Outcome.CORRECT for rival in rivals):
        return replace(comparison, outcome=Outcome.WRONG, method="options", doubtful=True)
    return replace(comparison, method=f"the option's text, {comparison.method}")


def _option_text(text: str, options: tuple[str, ...]) -> str | None:
    if len(text) > MAX_FORMULA_CHARS:
        return None
    text = clean_answer(text)
    letters = parse_choice_letters(text)
    if letters is None:
        choice = parse_choice(text)
        if choice is None or choice[1] or choice[0] not in text:
            return None
        letters = choice[0]
    indices = [ord(letter) - ord("A") for letter in letters]
    return ", ".join(options[index] for index in indices) if max(indices) < len(options) else None
