"""Words of the human languages, one file each: ``curation/languages/data/<ISO 639-1 code>.toml``.

`Language` is the schema. Expressions for statements are in Rust's syntax, others in Python's.

Invariants:
  - every file has every field; an unknown field is an error;
  - files are read once per process;
  - only `curation.records` is imported here, so that the verifier's workers start quickly.
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
