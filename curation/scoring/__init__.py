"""The judge for other trainers: what of a problem travels with a row of a set, and the reward of a response to it."""

from curation.scoring.record import VERSION, record_of
from curation.scoring.scorer import Score, Scorer, ScoringSettings

__all__ = ["VERSION", "Score", "Scorer", "ScoringSettings", "record_of"]
