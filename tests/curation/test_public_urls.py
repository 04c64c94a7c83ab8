"""URLs without their secrets: what goes, what stays, and texts that hold some."""

from __future__ import annotations

import pytest

from curation.config import EndpointModel, Source
from curation.public_urls import public_text, public_url
from curation.records import RequestRefused, SourceError
from curation.sources.rows import BadRowError

PRESIGNED = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA&X-Amz-Expires=60&X-Amz-Signature=9f"


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://me:pw@host/rows.jsonl", "https://host/rows.jsonl"),
        ("https://TOKEN@host:8000/rows.jsonl", "https://host:8000/rows.jsonl"),
        ("https://me:p/w@host/rows.jsonl", "https://host/rows.jsonl"),
        ("https://me:p@w@host/rows.jsonl", "https://host/rows.jsonl"),
        ("http://me:pw@[fe80::abcd]:8000/v1?key=1", "http://[fe80::abcd]:8000/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        (f"https://bucket.s3.test/rows.jsonl?{PRESIGNED}", "https://bucket.s3.test/rows.jsonl"),
        ("https://host/get?id=3&sig=a%2Fb%3D&sv=2022", "https://host/get?id=3"),
        ("https://host/get?file=data/a.parquet;AWSAccessKeyId=A;Signature=B", "https://host/get?file=data/a.parquet"),
        ("https://host/get?id=https%3A%2F%2Fme:pw@host", "https://host/get"),
        ("https://host/rows.jsonl?9f86d081", "https://host/rows.jsonl"),
        ("https://host/rows.jsonl#access_token=9f", "https://host/rows.jsonl"),
        ("zip://in/a.jsonl::https://me:pw@host/a.zip?sig=9f", "zip://in/a.jsonl::https://host/a.zip"),
        ("zip://in/a.jsonl::/data/a.zip", "zip://in/a.jsonl::/data/a.zip"),
        ("simplecache::s3://KEY:SECRET@bucket/rows-?.jsonl", "simplecache::s3://bucket/rows-?.jsonl"),
        ("ftp://me:pw@host/a", "ftp://host/a"),
        ("hf://datasets/owner/name@main/rows-*.parquet", "hf://datasets/owner/name@main/rows-*.parquet"),
        ("abfs://container@account.dfs.core.windows.net/a", "abfs://container@account.dfs.core.windows.net/a"),
        ("https://host:8000/pkg@1.0/rows.jsonl", "https://host:8000/pkg@1.0/rows.jsonl"),
        ("rows-?.jsonl", "rows-?.jsonl"),
        ("owner/name", "owner/name"),
    ],
)
def test_secrets_go_and_the_place_stays(url: str, public: str) -> None:
    assert public_url(url) == public
    assert public_url(public) == public
    assert public_text(f"source s: '{url}' is gone; see ({url}).") == f"source s: '{public}' is gone; see ({public})."


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
