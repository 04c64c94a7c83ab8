"""The data card of a curated set."""

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
