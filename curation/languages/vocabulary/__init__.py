"""The words of the human languages: months, numerals, units, and what the rules and the verifier look for.

A language is a file, ``curation/languages/data/<ISO 639-1 code>.toml``; `Language` is its schema, a class a table and a
docstring a field. Further languages, of which only a little is known, have a small file in ``data/neighbours/``.

    parts        identification, numerals, dates, units, prompts, duplicates
    statements   what the format filter looks for
    choices      what multiple choice looks for
    answers      what the verifier reads
    questions    what it reads of a statement
    loading      files into these classes

Invariants:
  - every file has every field; what a language lacks is written as empty, and an unknown field is an error;
  - files are read once a process, when the first module that needs them is imported;
  - nothing of `curation` but `curation.records` is imported here, so that the verifier's workers start quickly.

Fields hold words, or regular expressions where their docstring says so. Those for statements are in Rust's syntax and
are tried on every row whatever its language; the others are in Python's. Not here: how the words are put together.
"""

from __future__ import annotations

from curation.languages.vocabulary.loading import (
    Language,
    Neighbour,
    every,
    has_decimal_comma,
    language,
    languages,
    neighbours,
    one_of,
)

__all__ = ["Language", "Neighbour", "every", "has_decimal_comma", "language", "languages", "neighbours", "one_of"]
