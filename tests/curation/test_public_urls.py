"""URLs without their secrets: what goes, what stays, and texts that hold some."""

import pytest

from curation.config import EndpointModel, Source
from curation.public_urls import public_text, public_url
from curation.records import RequestRefused, SourceError
from curation.sources.rows import BadRowError
from tests.curation.tables import check_table


def test_secrets_go_and_the_place_stays() -> None:
    def public(url: str) -> str:
        found = public_url(url)
        assert public_url(found) == found
        assert public_text(f"source s: '{url}' is gone; see ({url}).") == f"source s: '{found}' is gone; see ({found})."
        return found

    check_table("public urls", public)


def test_errors_are_public() -> None:
    said = "GET https://me:pw@host/a?sig=9f: 403"
    for error in (SourceError(said), RequestRefused("403", said), BadRowError(f"row 1: {said}")):
        assert str(error).endswith("GET https://host/a: 403")
    assert RequestRefused("403", said).reason == "GET https://host/a: 403"


def test_a_renewed_signature_is_the_same_source_and_settings_keep_what_they_need() -> None:
    first, second = (
        Source(name="s", kind="jsonl", path=f"https://me:pw@host/a.jsonl?sig={sig}", url=f"https://host/?t={sig}")
        for sig in ("9f", "a0")
    )
    assert first.path != second.path
    assert first.digest() == second.digest()
    assert first.model_dump_json() == second.model_dump_json()
    assert Source.model_validate(first.model_dump()) == first
    asked = EndpointModel(kind="endpoint", model="m", revision="1", urls=("http://me:pw@host/v1",))
    assert asked.urls == ("http://me:pw@host/v1",)
    assert asked.model_dump(mode="json")["urls"] == ["http://host/v1"]


@pytest.mark.parametrize("url", ["javascript:alert(1)", "JavaScript://host/%0aalert(1)", "data:text/html,x", " x"])
def test_what_is_no_link_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="cannot be a link on the card; write it as in https://host/page"):
        Source(name="s", kind="jsonl", path="a.jsonl", url=url)
