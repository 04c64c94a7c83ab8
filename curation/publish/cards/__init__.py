"""The data card of a curated set."""

from curation.publish.cards.attribution import Origin, attribution, license_counts
from curation.publish.cards.card import VERSION, write_card
from curation.publish.cards.facts import (
    FATES,
    RATES,
    CardFacts,
    FunnelRow,
    StageComparison,
    StageFacts,
    add_counts,
    as_rates,
    compare_stages,
)

__all__ = [
    "FATES",
    "RATES",
    "VERSION",
    "CardFacts",
    "FunnelRow",
    "Origin",
    "StageComparison",
    "StageFacts",
    "add_counts",
    "as_rates",
    "attribution",
    "compare_stages",
    "license_counts",
    "write_card",
]
