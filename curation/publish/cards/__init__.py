"""The data card of a curated set: README.md in the Hugging Face card format, with its plots.

facts.py is what a card is made from, card.py renders it, words.py says things in words, plots.py draws,
attribution.py names the sources, and templates/ holds the text.
"""

from curation.publish.cards.attribution import Origin, attribution, license_counts
from curation.publish.cards.card import VERSION, write_card
from curation.publish.cards.facts import (
    BenchmarkFacts,
    CardFacts,
    CodeFacts,
    FunnelRow,
    SourceFacts,
    StageComparison,
    TranslationFacts,
    add_comparisons,
    add_rates,
    as_rates,
    compare_stages,
)

__all__ = [
    "VERSION",
    "BenchmarkFacts",
    "CardFacts",
    "CodeFacts",
    "FunnelRow",
    "Origin",
    "SourceFacts",
    "StageComparison",
    "TranslationFacts",
    "add_comparisons",
    "add_rates",
    "as_rates",
    "attribution",
    "compare_stages",
    "license_counts",
    "write_card",
]
