"""A run whose recipe has secrets in its URLs: they are in the requests, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import polars as pl
import pytest

from tests.curation.sources.test_remote import Files
from tests.flows.conftest import Tiny, goldilocks, published, stamps, write_jsonl, write_tiny

SECRETS = ("hunter2", "9f86d081", "a0b1c2d3", "s3cr3t")
BASIC = "Basic bWU6aHVudGVyMg=="  # me:hunter2


class Guarded(Files):
    """Hands its files to those who know a password and a signature."""

    signature = "9f86d081"

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        path, _, query = request.path.partition("?")
        if request.headers.get("Authorization") != BASIC or f"X-Amz-Signature={self.signature}" not in query:
            path = "/secret.jsonl"  # 403
        request.path = path
        super().answer(request, body)


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guarded]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with Guarded({}, {}) as server:
        yield server


def recipe_at(server: Guarded, folder: Path, signature: str) -> Path:
    """The tiny recipe, whose rows, a joined table, a benchmark and a model are at URLs with secrets."""
    place = server.address.replace("http://", "http://me:hunter2@")
    rows, more, bench = (
        f"{place}/{name}.jsonl?X-Amz-Signature={signature}&id=3" for name in ("problems", "more", "bench")
    )
    text = (folder / "tiny.toml").read_text()
    source = f"""path = "{rows}"
url = "https://me:hunter2@example.test/set?token=s3cr3t"
bad_rows = 100
join = {{ path = "{more}", on = "question", columns = ["level"], into = "more" }}
"""
    text = text.replace('path = "problems.jsonl"\n', source)
    recipe = folder / "secret.toml"
    recipe.write_text(f"""{text}
[decontamination]
against = [{{ name = "bench", kind = "jsonl", path = "{bench}", columns = {{ statement = "question" }} }}]

[models.judge]
kind = "endpoint"
model = "judge"
revision = "1"
urls = ["http://me:hunter2@127.0.0.1:9/v1?key=s3cr3t"]
""")
    return recipe


def everything_in(folder: Path) -> str:
    """The text of all files below a folder, their names included; tables as JSON."""
    texts = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        is_table = path.suffix == ".parquet"
        texts.append(f"{path}\n{pl.read_parquet(path, glob=False).to_dicts() if is_table else ''}")
        texts.append(path.read_bytes().decode("utf-8", "replace"))
    return "\n".join(texts)


@pytest.mark.slow
def test_secrets_of_urls_are_in_the_requests_alone(guarded: Guarded, tiny_run: Tiny, tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    write_tiny(folder)
    rows = (folder / "problems.jsonl").read_bytes()
    questions = [json.loads(line)["question"] for line in rows.splitlines()]
    guarded.files["/problems.jsonl"] = rows + b'{"question": NaN}\n'
    more = write_jsonl(tmp_path / "more.jsonl", [{"question": question, "level": 1} for question in questions])
    guarded.files["/more.jsonl"] = more.read_bytes()
    guarded.files["/bench.jsonl"] = b'{"question": "How many letters has the word of the day, written backwards?"}\n'
    guarded.tags = {path: f'"{path}"' for path in guarded.files}
    out, recipe = tmp_path / "run", recipe_at(guarded, folder, "9f86d081")

    said = [goldilocks("run", recipe, "--dry", "--out", out), goldilocks("run", recipe, "--out", out)]
    assert [one.status for one in said] == [0, 0], said
    kept, open_kept = (published(one, "data").drop("also_from", "measured_on") for one in (out, tiny_run.folder))
    assert kept.equals(open_kept)
    place = f"{guarded.address}/problems.jsonl?id=3"
    assert place in (out / "run.json").read_text()
    assert place in published(out, "dropped").filter(pl.col("reason") == "bad_row")["evidence"][0]
    assert "https://example.test/set" in (out / "curated" / "ATTRIBUTION.md").read_text()

    before, fetched = stamps(out / "stages"), guarded.fetched
    guarded.signature = "a0b1c2d3"
    said.append(goldilocks("run", recipe_at(guarded, folder, "a0b1c2d3"), "--out", out))  # a renewed URL
    assert said[-1].status == 0, said[-1].err
    assert (stamps(out / "stages"), guarded.fetched) == (before, fetched)

    first = published(out, "data")["id"][0]
    said += [goldilocks("status", out), goldilocks("explain", out, first)]
    said += [goldilocks("publish", out, "--to", "me/tiny")]
    assert [one.status for one in said[3:]] == [0, 0, 0], said[3:]
    guarded.signature = "none"
    for options in (("--out", tmp_path / "other"), ("--set", f"sources.0.path=[{place!r}]")):
        said.append(goldilocks("run", recipe, *options))
        assert said[-1].status == 1
    (tmp_path / "cache" / "goldilocks" / "sources").mkdir(parents=True, exist_ok=True)

    texts = "\n".join([everything_in(out), everything_in(tmp_path / "cache"), *(one.out + one.err for one in said)])
    found = [texts[max(0, at - 200) : at + 50] for secret in SECRETS if (at := texts.find(secret)) >= 0]
    assert found == []
