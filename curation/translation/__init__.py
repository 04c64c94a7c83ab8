"""A share of the problems, translated and checked.

selection        which problems, into what
translate        the tries, through any policy
asking           a live policy as a translator
replies          its replies, kept as they come
invariants       what a translation must keep: `check`
    written_alike, readings                       what is written in two ways, read in one
    quantities, numerals, number_words, units     numbers and units
    formulas                                      formulas, variables, code
    prose                                         language, length, leftovers, added solutions
    answers                                       the reference
    equivalence, sentences, names                 what aligned sentences say
    order, tied_numbers, comparisons              numbers in their places; more, less and not
reader           a policy that reads both texts
back_solving     one policy's answers to both texts
"""

from __future__ import annotations

from curation.translation.asking import RenderedPrompt
from curation.translation.invariants import INVARIANTS, VERSION, CheckedText, check_translation, reasons
from curation.translation.replies import StoredReplies
from curation.translation.selection import choose_problems
from curation.translation.translate import FailedTranslation, Translations, translate
from curation.translation.violations import Violation

__all__ = [
    "INVARIANTS",
    "VERSION",
    "CheckedText",
    "FailedTranslation",
    "RenderedPrompt",
    "StoredReplies",
    "Translations",
    "Violation",
    "check_translation",
    "choose_problems",
    "reasons",
    "translate",
]
