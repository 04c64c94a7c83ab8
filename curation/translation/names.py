"""The names of a problem and of its translation, in whatever script, and whether they stand in the same order.

A name is a capitalised word of the original that the translation has too: as it is, with an ending of its own, or
transcribed. Names are compared by the consonants of their transcription into Latin letters, since vowels and endings
differ most (Джанет, 珍妮特, Janet).

Invariants: pure functions. A name that is not found again says nothing here. Not here: whether names must be kept.
"""

from __future__ import annotations
def name_order(before, after, source):
    return None
