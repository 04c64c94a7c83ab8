"""Shapes of inputs: how large their counts are, and how their values are spread.

Sizes: all counts least, tiny, small, medium or as great as fits; each its own (``mixed``); near a number that programs
turn on, or half of the greatest (``hinted``); as many tiny cases as fit (``many``), or one as great as fits (``one``),
where inputs hold several cases.
Values (`spreads`): from a narrow range, the whole range, its ends, one value (``low``, ``high``, ``zero``, ``same``),
two or three (``few``, ``skewed``), a few that all columns have in common (``shared``), in patterns (``patterned``),
lists and words that repeat one another, changed a little (``echoed``), numbers of special kinds (``special``), or near
numbers and words that programs turn on (``hinted``).
"""

from __future__ import annotations

from collections.abc import Mapping

SIZES = {"least": 0, "tiny": 2, "small": 7, "medium": 60}
"""How far above its least value a count may lie; ``most`` is the greatest that fits."""
MIXED = ("least", "tiny", "small", "medium", "most", "most")
"""The sizes of which each count of a mixed input draws its own."""
PROFILES = (
    *[("small", "narrow")] * 4,
    *[("tiny", "narrow")] * 3,
    ("small", "whole"),
    ("tiny", "whole"),
    ("least", "low"),
    ("least", "high"),
    ("small", "ends"),
    ("medium", "narrow"),
    ("medium", "whole"),
    ("most", "whole"),
    ("most", "high"),
    ("most", "low"),
    ("most", "same"),
    ("most", "narrow"),
    ("medium", "special"),
    ("small", "special"),
    ("least", "special"),
    ("small", "hinted"),
    ("medium", "hinted"),
    ("small", "few"),
    ("small", "patterned"),
    ("medium", "patterned"),
    ("most", "patterned"),
    ("most", "few"),
    ("most", "skewed"),
    *[("mixed", "narrow")] * 2,
    ("mixed", "whole"),
    ("mixed", "few"),
    ("many", "narrow"),
    ("many", "narrow"),
    ("many", "whole"),
    ("one", "whole"),
    ("one", "narrow"),
    ("tiny", "echoed"),
    *[("small", "echoed")] * 2,
    ("medium", "echoed"),
    ("most", "echoed"),
    ("mixed", "echoed"),
    ("tiny", "shared"),
    *[("small", "shared")] * 2,
    ("medium", "shared"),
    ("least", "zero"),
    ("medium", "zero"),
    ("hinted", "whole"),
    ("hinted", "narrow"),
)
FIRST_SHAPES = (
    ("most", "whole"),
    ("least", "low"),
    ("small", "narrow"),
    ("most", "high"),
    ("least", "high"),
    ("least", "zero"),
    ("hinted", "whole"),
)
"""What is made first of all, with all relations kept and with those alone that are likely."""


def shape_name(profile: tuple[str, str]) -> str:
    """Return the name of a profile: ``most high``."""
    return " ".join(profile)


SHAPE_PRIORS: Mapping[str, float] = {
    shape_name(profile): 0.15 + 0.1 * min(4, PROFILES.count(profile)) for profile in dict.fromkeys(PROFILES)
}
"""How often a shape is expected to tell wrong programs apart, before any was seen. Chosen by hand: small inputs do so
most often."""
