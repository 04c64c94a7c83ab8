"""Licences: SPDX expressions, the nearest to a mistaken one, and what they forbid under another."""

import pytest

from curation.licenses import checked_license, conflict, nearest_license
from tests.curation.tables import check_table


@pytest.mark.parametrize("text", ["apache-2.0", "MIT OR CC-BY-4.0", "unknown", "LicenseRef-a"])
def test_spdx_expressions_stay_as_they_are_written(text: str) -> None:
    assert checked_license(text) == text


def test_anything_else_is_refused_with_the_nearest() -> None:
    check_table("nearest licence", nearest_license)
    with pytest.raises(ValueError, match=r"is no SPDX licence.*perhaps 'Apache-2\.0' is meant"):
        checked_license("apache 2")


def test_what_a_licence_forbids_under_another() -> None:
    words = ("non-commercial", "no derivatives", "shared alike", "not known")

    def forbidden(row: str, card: str) -> str | None:
        why = conflict(row, card)
        return None if why is None else next(word for word in words if word in why)

    check_table("licence conflicts", forbidden)
