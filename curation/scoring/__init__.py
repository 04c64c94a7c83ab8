"""The judge for other trainers."""

from curation.scoring.record import VERSION, record_of
from curation.scoring.scorer import Score, Scorer, ScoringSettings

__all__ = ["VERSION", "Score", "Scorer", "ScoringSettings", "record_of"]
