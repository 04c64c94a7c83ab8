"""Checks whether a card may publish a licence's rows; no legal advice."""

from __future__ import annotations

import difflib
import re

UNKNOWN, OTHER = "unknown", "other"

_COPYLEFT = re.compile(r"(?:A|L)?GPL|ODBL|MPL|EPL|EUPL|CDLA-SHARING")
_WITHOUT_PERMISSION = frozenset({"", UNKNOWN, OTHER, "educational", "permission"})
"""Licences that allow nothing; the last two are of problem packages."""


def checked_license(text: str) -> str:
    """Return a valid licence unchanged.

    Raises:
        ValueError: it is no SPDX expression, `unknown` or `other`.
    """
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    if text.lower() in (UNKNOWN, OTHER):
        return text
    try:
        canonicalize_license_expression(text)
    except InvalidLicenseExpression as error:
        near = nearest_license(text)
        meant = f", perhaps {near!r} is meant" if near is not None else ""
        raise ValueError(
            f"{text!r} is no SPDX licence{meant}; write an SPDX expression, as in 'CC-BY-4.0' or 'MIT OR Apache-2.0', "
            "or 'unknown'"
        ) from error
    return text


def canonical_license(license: str) -> str:
    """Return a valid licence in SPDX's spelling."""
    from packaging.licenses import canonicalize_license_expression

    is_stated = license.lower() not in (UNKNOWN, OTHER)
    return str(canonicalize_license_expression(license)) if is_stated else license.lower()


def nearest_license(text: str) -> str | None:
    """Return the most similar SPDX licence."""
    from packaging.licenses._spdx import LICENSES

    names = {name: spdx["id"] for name, spdx in LICENSES.items() if not spdx["deprecated"]}
    asked = re.sub(r"-licen[cs]e$", "", re.sub(r"[\s_]+", "-", text.strip().lower()))
    versions = [name for name in names if re.fullmatch(rf"{re.escape(asked)}[-.0-9]*(?:-only)?", name)]
    close = difflib.get_close_matches(asked, names, n=1, cutoff=0.7)
    nearest = asked if asked in names else max(versions) if versions else next(iter(close), None)
    return names[nearest] if nearest is not None else None


def conflict(row: str, card: str) -> str | None:
    """Return why rows of one licence may not be in a card's, or None.

    One alternative (`OR`) and all its joint licences (`AND`) must allow it.

    Example: ``conflict("CC-BY-NC-4.0", "Apache-2.0") == "allows non-commercial use only"``
    """
    if card.lower() in (UNKNOWN, OTHER):
        return None
    reasons = []
    for alternative in re.split(r"\s+OR\s+", row.strip("() "), flags=re.IGNORECASE):
        licenses = [license.strip("() ") for license in re.split(r"\s+AND\s+", alternative, flags=re.IGNORECASE)]
        against = next((why for license in licenses if (why := _forbidden(license, card)) is not None), None)
        if against is None:
            return None
        reasons.append(against)
    return reasons[0]


def _forbidden(row: str, card: str) -> str | None:
    if row.lower() in _WITHOUT_PERMISSION:
        return "is not known to allow anything"
    if _name(row) == _name(card):
        return None
    ours, theirs = _terms(row), _terms(card)
    if "ND" in ours:
        return "allows no derivatives"
    if "NC" in ours and "NC" not in theirs:
        return "allows non-commercial use only"
    if "SA" in ours and not ("SA" in theirs and _name(row).partition("-SA")[0] == _name(card).partition("-SA")[0]):
        return "must be shared alike"
    return None


def _name(license: str) -> str:
    return license.upper().replace(" ", "-")


def _terms(license: str) -> frozenset[str]:
    name = _name(license)
    terms = set(re.split(r"[-.]", name)) & {"NC", "ND", "SA"}
    return frozenset(terms | ({"SA"} if _COPYLEFT.search(name) else set()))
