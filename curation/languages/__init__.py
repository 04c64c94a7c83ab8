"""Which language a text is in, whether it mixes several, and whether problem, thoughts and answer share one.

    stripping       LaTeX, code, numbers and markup taken away
    words           what short tasks begin with, by language
    identification  fastText, script and words; `identify`
    mixing          windows of sentences; `mixed` and `consistent`

A shared room: filters, the trainer's reward and translation ask here.
"""

from __future__ import annotations

from curation.languages.identification import UNDETERMINED, VERSION, Identified, identify, identify_many
from curation.languages.mixing import Consistency, consistent, mixed
from curation.languages.stripping import letters, strip

__all__ = [
    "UNDETERMINED",
    "VERSION",
    "Consistency",
    "Identified",
    "consistent",
    "identify",
    "identify_many",
    "letters",
    "mixed",
    "strip",
]
