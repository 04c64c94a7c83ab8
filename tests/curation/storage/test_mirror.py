"""Copies at a mirror: whole or not marked, completed by whoever goes on, and never another run's."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from curation.records import StoreError
from curation.storage.mirror import Mirror
from curation.storage.stages import file_digest


@pytest.fixture(params=["memory", "local"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A mirror in memory, where a put is atomic as in an object store, and one in a folder, where it is not."""
    if request.param == "local":
        yield str(tmp_path / "there" / "run")
        return
    yield "memory://mirror/run"
    fsspec.filesystem("memory").rm("/mirror", recursive=True)


def folder(place: Path, **files: str) -> dict[str, Path]:
    for name, text in files.items():
        file = place / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return {place.name: place}


def whole(url: str, kind: str) -> dict[str, dict[str, str]]:
    """What a reader finds who goes by the marks, and whether it is what the marks say."""
    fs, root = fsspec.core.url_to_fs(url)
    fs.invalidate_cache()
    sets: dict[str, dict[str, str]] = {}
    for path in fs.ls(f"{root}/{kind}", detail=False):
        if not str(path).endswith(".json"):
            continue
        mark, place = json.loads(fs.cat_file(path)), str(path).removesuffix(".json")
        texts = {name: fs.cat_file(f"{place}/{name}").decode() for name in mark["files"]}
        assert {name: len(text) for name, text in texts.items()} == {n: s for n, (s, _) in mark["files"].items()}
        sets[place.rpartition("/")[2]] = texts
    return sets


def newest(url: str, kind: str) -> str:
    fs, root = fsspec.core.url_to_fs(url)
    return str(json.loads(fs.cat_file(f"{root}/{kind}.json"))["newest"])


def test_a_folder_is_copied_once_and_again_when_it_was_made_anew(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = folder(tmp_path / "step-1", state="one")
    Mirror(url, "r").copy_folders("checkpoints", one)
    with monkeypatch.context() as patch:
        for kind in (LocalFileSystem, MemoryFileSystem):
            patch.setattr(kind, "put_file", None)  # nothing is put again
        Mirror(url, "r").copy_folders("checkpoints", one)
    folder(tmp_path / "step-1", state="ONE")  # as long as before
    Mirror(url, "r").copy_folders("checkpoints", one)
    assert whole(url, "checkpoints") == {"step-1": {"state": "ONE"}}


class Killed(BaseException):
    """What a kill is to the code that it hits: nothing behind it runs."""


@pytest.mark.parametrize("after", [0, 2, 4, 7])
def test_wherever_it_is_killed_nothing_half_written_counts_and_the_next_copy_completes_it(
    url: str, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = folder(tmp_path / "a" / "step-1", state="one", weights="old")
    Mirror(url, "r").copy_folders("checkpoints", old)
    new = folder(tmp_path / "a" / "step-2", state="two", weights="new", more="more")
    calls = 0

    def counted(own: Any, halves: bool) -> Any:
        def call(fs: Any, *arguments: Any, **more: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > after:
                if halves:  # a file of which the beginning was written
                    fs.pipe_file(arguments[1], Path(arguments[0]).read_bytes()[:1])
                raise Killed
            return own(fs, *arguments, **more)

        return call

    with monkeypatch.context() as patch:
        for kind in (LocalFileSystem, MemoryFileSystem):
            for name in ("put_file", "rm"):
                patch.setattr(kind, name, counted(getattr(kind, name), name == "put_file"))
        try:
            Mirror(url, "r").copy_folders("checkpoints", new)
        except Killed:
            found = whole(url, "checkpoints")
            assert found.get("step-1", {"state": "one", "weights": "old"}) == {"state": "one", "weights": "old"}
            assert found.get("step-2", {}) in ({}, {"state": "two", "weights": "new", "more": "more"})
            assert found
    Mirror(url, "r").copy_folders("checkpoints", new)
    assert whole(url, "checkpoints") == {"step-2": {"state": "two", "weights": "new", "more": "more"}}
    assert newest(url, "checkpoints") == "step-2"
    fs, root = fsspec.core.url_to_fs(url)
    mark = json.loads(fs.cat_file(f"{root}/checkpoints/step-2.json"))
    assert mark["digests"]["state"] == file_digest(new["step-2"] / "state")


def test_a_place_of_another_run_or_none_at_all_is_a_sentence(url: str, tmp_path: Path) -> None:
    Mirror(url, "mine").claim()
    Mirror(url, "mine").claim()
    with pytest.raises(StoreError, match="holds a run of recipe `mine`, not `yours`"):
        Mirror(url, "yours").claim()
    with pytest.raises(StoreError, match=r"storage\.mirror = 'nowhere://x' has a scheme that fsspec does not know"):
        Mirror("nowhere://x", "r")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"storage\.mirror = "):
        Mirror(str(tmp_path / "file" / "under"), "r").claim()
