"""Licences: SPDX expressions, the nearest to a mistaken one, and what they forbid under another."""

from __future__ import annotations

import pytest

from curation.licenses import checked_license, conflict, nearest_license


@pytest.mark.parametrize("text", ["Apache-2.0", "apache-2.0", "MIT OR CC-BY-4.0", "unknown", "other", "LicenseRef-a"])
def test_spdx_expressions_stay_as_they_are_written(text: str) -> None:
    assert checked_license(text) == text


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("apache 2", "Apache-2.0"),
        ("CC0", "CC0-1.0"),
        ("cc-by-nc", "CC-BY-NC-4.0"),
        ("MIT License", "MIT"),
        ("GPL-3", "GPL-3.0-only"),
        ("NOT-A-LICENCE-!!", None),
    ],
)
def test_anything_else_is_refused_with_the_nearest(text: str, nearest: str | None) -> None:
    assert nearest_license(text) == nearest
    with pytest.raises(ValueError, match="is no SPDX licence") as error:
        checked_license(text)
    assert (f"perhaps {nearest!r} is meant" in str(error.value)) == (nearest is not None)


@pytest.mark.parametrize(
    ("row", "card", "why"),
    [
        ("CC-BY-NC-4.0", "apache-2.0", "non-commercial"),
        ("CC-BY-NC-4.0", "CC-BY-NC-SA-4.0", None),
        ("CC-BY-ND-4.0", "MIT", "no derivatives"),
        ("CC-BY-SA-3.0", "CC-BY-SA-4.0", None),
        ("CC-BY-SA-4.0", "mit", "shared alike"),
        ("CC-BY-NC-SA-4.0", "CC-BY-SA-4.0", "non-commercial"),
        ("GPL-3.0-only", "MIT", "shared alike"),
        ("unknown", "mit", "not known"),
        ("educational", "mit", "not known"),
        ("unknown", "other", None),
        ("CC-BY-4.0", "apache-2.0", None),
        ("CC0-1.0", "mit", None),
        ("MIT OR CC-BY-NC-4.0", "mit", None),
        ("MIT AND CC-BY-NC-4.0", "mit", "non-commercial"),
    ],
)
def test_what_a_licence_forbids_under_another(row: str, card: str, why: str | None) -> None:
    found = conflict(row, card)
    assert found is None if why is None else found is not None and why in found
