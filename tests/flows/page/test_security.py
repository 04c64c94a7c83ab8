"""No stranger reaches the page or changes anything who may not, and no text of a row is more than text."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import polars as pl
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from flows.page.app import make_app
from flows.page.security import HEADERS
from flows.serve.server import PAGE, add_page
from tests.flows.conftest import Tiny
from tests.flows.page.conftest import SIGNS, VERDICT, Visitor

TABS = ("", "rows", "review", "review/next?reviewer=Ada")


def test_only_names_of_this_machine_are_answered_without_a_token(visitor: Visitor) -> None:
    assert visitor.get("/r/run/").status_code == 200
    assert visitor.get("/r/run/", host="127.0.0.1:4300").status_code == 200
    for host in ("evil.example", "[localhost]", "[", ""):
        assert visitor.get("/r/run/", host=host).status_code == 403


def test_a_token_is_asked_for_on_every_address(tiny_run: Tiny) -> None:
    visitor = Visitor(tiny_run.folder, "secret")
    for path in ("/", *(f"/r/run/{tab}" for tab in TABS)):
        assert visitor.get(path, host="gpu-7").status_code == 401
    typed = {"headers": {"content-type": "application/x-www-form-urlencoded"}, "follow_redirects": False}
    wrong, right = (visitor.client.post("/enter", content=f"token={token}", **typed) for token in ("guess", "secret"))
    assert (wrong.status_code, right.status_code) == (403, 303)
    assert "secret" not in str(right.headers)
    assert visitor.get("/r/run/").status_code == 200
    assert Visitor(tiny_run.folder, "secret").get("/enter?token=secret").status_code == 200


def test_every_answer_forbids_foreign_scripts_and_has_none_of_its_own(visitor: Visitor) -> None:
    for path in ("/", "/nothing", "/static/page.js", *(f"/r/run/{tab}" for tab in TABS)):
        headers = visitor.get(path).headers
        assert {name: headers[name] for name in HEADERS} == HEADERS
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    for tab in TABS:
        assert re.findall(r"<script(?! src=)|<style|\son\w+=|\sstyle=", visitor.get(f"/r/run/{tab}").text) == []


def test_what_changes_something_must_come_from_the_page(planted_copy: Path) -> None:
    visitor = Visitor(planted_copy)
    message = {"problem": visitor.next("Ada"), "verdict": "reject", "answer": None, "reviewer": "Ada"}
    assert visitor.client.post(VERDICT, json=message).status_code == 403
    assert visitor.decide(message, **{"x-goldilocks-csrf": "0" * 64}).status_code == 403
    assert visitor.decide(message, **{"sec-fetch-site": "cross-site"}).status_code == 403
    assert visitor.decide({**message, "note": "x" * 70_000}).status_code == 413
    assert not (planted_copy / "review.jsonl").exists()
    assert visitor.decide(message).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/r/..%2f..%2fetc/",
        "/r/../rows",
        "/r/%2e%2e/",
        "/r/run/plots/..%2frun.json",
        "/r/run/plots/funnel.png%2f..%2f..%2f..%2frun.json",
        "/r/run/plots/.hidden.png",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
    ],
)
def test_no_address_leads_out_of_the_run(visitor: Visitor, path: str) -> None:
    assert visitor.client.get(path, follow_redirects=False).status_code == 404


def test_a_picture_that_leads_elsewhere_is_not_shown(tiny_copy: Tiny) -> None:
    secret = tiny_copy.folder.parent / "secret.png"
    secret.write_bytes(b"secret")
    (tiny_copy.folder / "curated" / "plots" / "link.png").symlink_to(secret)
    visitor = Visitor(tiny_copy.folder)
    assert visitor.get("/r/run/plots/funnel.png").status_code == 200
    assert visitor.get("/r/run/plots/link.png").status_code == 404


@pytest.mark.slow
def test_hostile_texts_stay_texts_on_every_tab(planted_copy: Path) -> None:
    visitor = Visitor(planted_copy)
    table = pl.read_parquet(planted_copy / "stages" / "01-sources" / "kept" / "*.parquet")
    paths = [*TABS, *(f"rows/{name}" for name in table["id"].tail(7))]
    paths += ["rows?words=%3Cscript%3E%22%3E&id=%22%3E%3Cscript%3E", "rows?source=%3Cscript%3Ewindow&sort=%22%3E"]
    for path in paths:
        answer = visitor.get(f"/r/run/{path}")
        assert answer.status_code == 200
        assert SIGNS.findall(answer.text) == [], path
    shown = visitor.get("/r/run/rows").text
    assert "&lt;script&gt;window.hacked = 1" in shown
    assert "{{ 7777 * 7 }}" in shown


def test_the_page_works_behind_any_prefix(tiny_run: Tiny) -> None:
    for prefix in ("", "/goldilocks", "/a/b"):
        app = Starlette(routes=[Mount(prefix, make_app(tiny_run.folder))])
        client = TestClient(app, base_url="http://localhost")
        for path in ("/r/run/", "/r/run/rows", "/r/run/review"):
            links = re.findall(r'(?:href|src)="([^"?#]+)', client.get(prefix + path).text)
            assert [link for link in links if link.startswith(("/", "http"))] == []
            style = httpx.URL(f"http://localhost{prefix}{path}").join(links[1])
            assert client.get(str(style)).status_code == 200


@pytest.mark.anyio
async def test_the_service_shows_its_runs_beside_prefect(tiny_copy: Tiny, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.json").write_text("{}")
    app = Starlette(routes=[Route("/{path:path}", lambda _request: Response(status_code=204))])
    add_page(app, [tiny_copy.folder], "secret")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        assert (await client.get("/api/health")).status_code == 204
        assert (await client.get(f"{PAGE}x")).status_code == 204
        assert (await client.get(f"{PAGE}/r/run/")).status_code == 401
        assert (await client.get(f"{PAGE}/enter?token=secret")).status_code == 303
        assert "Format filter" in (await client.get(f"{PAGE}/r/run/")).text
        assert (await client.get(f"{PAGE}/r/other/")).status_code == 404


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
