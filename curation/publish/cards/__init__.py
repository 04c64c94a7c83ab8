"""The data card of a curated set: README.md in the Hugging Face card format, with its plots.

facts.py is what a card is made from, card.py writes it, words.py has its words, plots.py draws the plots, and
attribution.py names the sources.
"""

from curation.publish.cards.attribution import Origin, attribution, license_counts
from curation.publish.cards.card import VERSION, write_card
from curation.publish.cards.facts import (
    CardFacts,
    FunnelRow,
    SourceFacts,
    StageComparison,
    StageFacts,
    add_comparisons,
    add_rates,
    as_rates,
    compare_stages,
)

__all__ = [
    "VERSION",
    "CardFacts",
    "FunnelRow",
    "Origin",
    "SourceFacts",
    "StageComparison",
    "StageFacts",
    "add_comparisons",
    "add_rates",
    "as_rates",
    "attribution",
    "compare_stages",
    "license_counts",
    "write_card",
]
