"""Sources at URLs: fetched once, read as files are, and refused in one sentence."""

import gzip
import io
import json
import os
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from curation.config import Source
from curation.records import SourceError
from curation.sources.reading import read_parts, read_source, source_digest
from curation.sources.rows import MissingSourceError
from tests.curation.sources.reading import source
from tests.local_server import LocalServer

ROWS = [{"problem": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(5)]
TEXT = "".join(json.dumps(row) + "\n" for row in ROWS)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def memory() -> Iterator[MemoryFileSystem]:
    fs = fsspec.filesystem("memory")
    fs.pipe("/rows/a.jsonl", TEXT.encode())
    yield fs
    fs.rm("/rows", recursive=True)


def statements(one: Source, folder: Path) -> list[str]:
    return [text for frame in read_source(one, folder, 3) for text in frame["statement"]]


class Files(LocalServer):
    """Serves files by name, each with an ETag where it has one; counts what was fetched."""

    def __init__(self, files: dict[str, bytes], tags: dict[str, str]) -> None:
        super().__init__()
        self.files, self.tags, self.fetched = files, tags, 0

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:  # noqa: ARG002
        self.asked.append(request.path)
        content = self.files.get(request.path)
        request.send_response(403 if request.path == "/secret.jsonl" else 404 if content is None else 200)
        content = content or b""
        if request.path in self.tags:
            request.send_header("ETag", self.tags[request.path])
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if request.command == "GET":
            self.fetched += 1
            request.wfile.write(content)


def test_what_lies_behind_a_url_reads_and_weighs_as_the_same_file(memory: MemoryFileSystem, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(TEXT)
    (tmp_path / "rows.zip").write_bytes(archive(TEXT))
    memory.pipe("/rows/a.jsonl.gz", gzip.compress(TEXT.encode()))
    own = source("a.jsonl")
    expected = [row["problem"] for row in ROWS]
    zipped, local = f"zip://inside/a.jsonl::{tmp_path}/rows.zip", f"file:{os.sep * 2}{tmp_path}/a.jsonl"
    for url in ("memory://rows/a.jsonl", zipped, local):
        assert statements(source(url), tmp_path / "elsewhere") == expected
        assert source_digest(source(url), tmp_path) == source_digest(own, tmp_path)
    assert statements(source("memory://rows/a.jsonl.gz"), tmp_path) == expected


def archive(text: str) -> bytes:
    """An archive as tools make them that give every file the same time."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        opened.writestr(zipfile.ZipInfo("inside/a.jsonl"), text)
    return made.getvalue()


def test_a_file_of_an_archive_is_its_archives_own_and_the_archive_is_fetched_once(tmp_path: Path) -> None:
    """Neither server hands out parts of a file, and both archives have a file of the same name, size and time."""
    other = TEXT.replace("What", "Want")
    files = {"/one.zip": archive(TEXT), "/two.zip": archive(other)}
    with Files(files, {"/one.zip": '"1"', "/two.zip": '"2"'}) as server:
        url = f"zip://inside/a.jsonl::{server.address}/{{}}.zip"
        for _ in range(2):
            assert statements(source(url.format("one")), tmp_path)[0] == "What is 0 + 1?"
            assert statements(source(url.format("two")), tmp_path)[0] == "Want is 0 + 1?"
            assert statements(source(url.format("one").replace("a.jsonl", "*.jsonl")), tmp_path)[0] == "What is 0 + 1?"
        assert server.fetched == 2
        with pytest.raises(MissingSourceError, match=rf"zip://inside/b\.jsonl::{server.address}/one\.zip is missing"):
            statements(source(url.format("one").replace("a.jsonl", "b.jsonl")), tmp_path)
        with pytest.raises(MissingSourceError, match=r"none\.zip is missing"):
            statements(source(url.format("none")), tmp_path)
    local = tmp_path / "rows.zip"
    for text, first in ((TEXT, "What is 0 + 1?"), (other, "Want is 0 + 1?")):
        local.write_bytes(archive(text))
        assert statements(source(f"zip://inside/a.jsonl::{local}"), tmp_path)[0] == first


def test_a_file_is_fetched_again_only_when_the_place_says_that_it_is_another(tmp_path: Path, cache: Path) -> None:
    with Files({"/rows.jsonl": TEXT.encode()}, {"/rows.jsonl": '"one"'}) as server:
        url = f"{server.address}/rows.jsonl"
        digest = source_digest(source(url), tmp_path)
        assert statements(source(url), tmp_path) == [row["problem"] for row in ROWS]
        assert server.fetched == 1
        server.files["/rows.jsonl"] = TEXT.replace("What", "Tell me what").encode()
        server.tags["/rows.jsonl"] = '"two"'
        assert source_digest(source(url), tmp_path) != digest
        assert server.fetched == 2
        (copy,) = cache.rglob("rows.jsonl")
        copy.write_text(TEXT[:10])  # a copy that somebody cut
        assert statements(source(url), tmp_path)[0] == "Tell me what is 0 + 1?"
        assert server.fetched == 3


def test_what_cannot_be_had_is_a_sentence(memory: MemoryFileSystem, tmp_path: Path) -> None:
    def why(path: str) -> str:
        with pytest.raises(MissingSourceError) as caught:
            statements(source(path), tmp_path)
        return str(caught.value)

    assert why("memory://rows/none.jsonl").startswith("source s: memory://rows/none.jsonl is missing")
    assert "is missing" in why("memory://rows/*.csv")
    assert "is a folder; name its files" in why("memory://rows")
    assert "a scheme that fsspec does not know" in why("nowhere://rows/a.jsonl")
    assert "cannot be reached" in why("http://127.0.0.1:9/rows.jsonl")
    with Files({}, {}) as server:
        assert "may not be used with this machine's credentials" in why(f"{server.address}/secret.jsonl")
        assert "is missing" in why(f"{server.address}/gone.jsonl")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingSourceError, match=r"s3://bucket/x\.jsonl needs a package that is not installed .*s3fs"):
        statements(source("s3://bucket/x.jsonl"), tmp_path)


def test_a_bad_row_is_named_by_its_url(memory: MemoryFileSystem, tmp_path: Path) -> None:
    memory.pipe("/rows/bad.jsonl", TEXT.encode() + b"{\n")
    with pytest.raises(SourceError, match=r"^source s: memory:///?rows/bad\.jsonl, line 6: not JSON"):
        statements(source("memory://rows/bad.jsonl"), tmp_path)
    (part,) = read_parts(source("memory://rows/bad.jsonl", bad_rows=100), tmp_path, 9, lambda rows, _: len(rows))
    assert part.quarantine["file"].to_list() == ["memory:///rows/bad.jsonl"]
    assert part.built == 5
