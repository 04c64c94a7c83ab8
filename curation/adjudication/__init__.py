"""Two answers argued before a judge: evidence on a disputed label, which decides nothing by itself."""

from curation.adjudication.debates import (
    ADJUDICATION,
    VERSION,
    VIEWS,
    Debate,
    Protocol,
    Speech,
    State,
    View,
    argued_by,
    judged_row,
    open_debates,
    reading,
    rounds_of,
    score_by,
    speech_of,
    unjudged_row,
)

__all__ = [
    "ADJUDICATION",
    "VERSION",
    "VIEWS",
    "Debate",
    "Protocol",
    "Speech",
    "State",
    "View",
    "argued_by",
    "judged_row",
    "open_debates",
    "reading",
    "rounds_of",
    "score_by",
    "speech_of",
    "unjudged_row",
]
