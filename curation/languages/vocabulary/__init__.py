"""Words of the human languages: ``curation/languages/data/<ISO 639-1 code>.toml``, with the schema `Language`.

Expressions for statements are in Rust's syntax, others in Python's.

Invariants: every file has every field and no other; only `curation.records` is imported here, so that the verifier's
workers start quickly.
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
