"""Expressions that point at options, put together from the words of the languages: why a question does not stand alone.

Python expressions, searched in the sentences that ask. The words are `curation.languages.vocabulary`'s.
"""

from __future__ import annotations

import re

from curation.languages.vocabulary import every, languages, one_of

WHICH_NEEDLES = every(lambda lang: lang.choices.which_needles)


OPEN_WHICH = tuple(
    (re.compile("(?i)" + lang.choices.open_which.replace("<which>", lang.choices.which)), lang.choices.asks_for)
    for lang in languages()
    if lang.choices.open_which
)
"""A question that only repeats its options, and what it becomes: "which of the following is the value" → "What is"."""

EQUAL_WHICH = tuple(
    (
        re.compile("(?i)" + lang.choices.equal_which.replace("<which>", lang.choices.which)),
        lang.choices.asks_for_value,
    )
    for lang in languages()
    if lang.choices.equal_which
)
"""The same where the answer is a number: "which of the following is equal to" → "What is the value of"."""

POINTS = {lang.code: re.compile("(?i)" + "|".join(lang.choices.points)) for lang in languages()}
"""By language, words that point at options; whatever matches in the question is the evidence for refusing."""

POINTS_WHEN_ASKED = {
    lang.code: re.compile("|".join(lang.choices.points_when_asked))
    for lang in languages()
    if lang.choices.points_when_asked
}
"""By language whose whole text is searched, words that point at options only in the sentence that asks."""

POINTS_DOUBTFUL = {
    lang.code: re.compile("(?i)" + "|".join(lang.choices.points_doubtful))
    for lang in languages()
    if lang.choices.points_doubtful
}
"""By language, words that only make it doubtful, in the sentence that asks, that a question stands alone."""

POINTS_HARMLESS = {
    lang.code: re.compile("(?i)" + "|".join(lang.choices.points_harmless))
    for lang in languages()
    if lang.choices.points_harmless
}
"""By language, the same words in company in which they point at nothing."""

TRIGGERS = {lang.code: lang.choices.triggers for lang in languages() if lang.choices.triggers}
"""By language, literals of which one must be there for `POINTS` or `POINTS_DOUBTFUL` to match: most questions hold
none."""

# 下列三个命题…其中真命题的个数是: a count of things that the question itself lists
COUNTS = re.compile(
    rf"(?:{one_of(lambda lang: lang.choices.counts)})[^，。．]{{0,10}}"
    r"(?=[\s．。.?？_（）()~]*(?:$|\n|[（(]\s*\$*[1１]|①))"
)
LISTS = re.compile(rf"[①②]|[（(]\s*\$*[1２2]\$*\s*[)）]|(?:{one_of(lambda lang: lang.choices.numbering)})[）)、]")

_JOINERS = one_of(lambda lang: lang.choices.option_joiners)
_LABELS = rf"^\W*(?:[A-E]|[IVX]{{1,4}})(?:\s*(?:,|&|、|{_JOINERS})\s*(?:[A-E]|[IVX]{{1,4}}))+"

# Options that speak of other options.
META_OPTION = re.compile(
    rf"(?i){one_of(lambda lang: lang.choices.meta_options)}"
    rf"|{_LABELS}(?:\s+(?:{one_of(lambda lang: lang.choices.only_words)}))?\W*$"
)
