"""Data sets of the hub, by a double of its API: one commit, fetched once; gone, gated and script sets are sentences."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.curation.sources.hub_of_files import HubOfFiles, HubSet

OLD, NEW, CONVERTED = ("0" * 39 + "1", "0" * 39 + "2", "0" * 39 + "3")

READ = """
import json, sys
from pathlib import Path
from curation.config import Source, to_plain
from curation.records import GoldilocksError
from curation.sources.reading import read_source, source_state
for settings in json.loads(sys.argv[1]):
    source = Source.model_validate(to_plain({"name": "s", "kind": "dataset", **settings}))
    try:
        rows = [row for frame in read_source(source, Path(), 10) for row in frame["statement"]]
        state = source_state(source, Path())
    except GoldilocksError as error:
        print(json.dumps({"error": str(error)}))
    else:
        print(json.dumps({"rows": rows, "commit": state.commit, "digest": state.digest}))
"""


def parquet(*statements: str) -> bytes:
    with io.BytesIO() as out:
        pl.DataFrame({"problem": statements}).write_parquet(out)
        return out.getvalue()


def a_set() -> HubSet:
    return HubSet(
        commits={
            OLD: {"data/train-0.parquet": parquet("old")},
            NEW: {"data/train-0.parquet": parquet("new", "newer"), "data/test-0.parquet": parquet("test")},
            CONVERTED: {"all/train/0000.parquet": parquet("all"), "easy/train/0000.parquet": parquet("easy")},
        },
        branches={"main": NEW, "refs/convert/parquet": CONVERTED},
    )


def read_each(hub: HubOfFiles, home: Path, sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Read sources in a process of their own."""
    environment = {**os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", READ, json.dumps(sources)],
        capture_output=True,
        text=True,
        env={**environment, "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()[-len(sources) :]]


@pytest.mark.slow
def test_a_commit_is_fetched_once_and_then_read_without_the_hub(tmp_path: Path) -> None:
    converted = {"path": "owner/name", "revision": "refs/convert/parquet", "files": "all/train/*.parquet"}
    pinned, branch = {"path": "owner/name", "revision": OLD}, {"path": "owner/name"}
    with HubOfFiles({"owner/name": a_set()}) as hub:
        old, newest, _, files = first = read_each(
            hub, tmp_path, [pinned, branch, {"path": "owner/name", "split": "test"}, converted]
        )
        assert [one["rows"] for one in first] == [["old"], ["new", "newer"], ["test"], ["all"]]
        assert [one["commit"] for one in (old, newest, files)] == [OLD, NEW, CONVERTED]
        asked = len(hub.asked)
        assert read_each(hub, tmp_path, [pinned, branch]) == [old, newest]
        assert asked > 0
        assert all("/revision/" in one or one.endswith("/owner/name") for one in hub.asked[asked:])  # looked up only
        assert not any(OLD in one for one in hub.asked[asked:])
        for kept in tmp_path.rglob("*.arrow"):
            kept.unlink()
        hub.sets["owner/name"].branches["main"] = OLD
        again, moved = read_each(hub, tmp_path, [pinned, branch])
        assert again == old  # whole or not at all
        assert (moved["rows"], moved["commit"]) == (["old"], OLD)


@pytest.mark.slow
def test_what_cannot_be_had_is_one_sentence(tmp_path: Path) -> None:
    script = HubSet({NEW: {"script.py": b"import datasets\n", "train.jsonl": b'{"problem": "x"}\n'}}, {"main": NEW})
    gated = HubSet({NEW: {"data/train-0.parquet": parquet("x")}}, {"main": NEW}, gated=True)
    refused = (
        ({"path": "owner/gone"}, "the hub has no such data set, or it is private"),
        ({"path": "owner/gated"}, "is gated: its owners grant access on request. Log in at https://"),
        ({"path": "owner/gated", "revision": NEW}, "request access, then run `hf auth login`"),
        ({"path": "owner/name", "revision": "v9"}, "it has no revision `v9`"),
        ({"path": "owner/name", "split": "dev"}, "has no split `dev`; it has: "),
        ({"path": "owner/script"}, "it is a script, which `datasets` does not run any more; read the hub's"),
    )
    more = {"path": "owner/script", "files": "train.jsonl"}, {"path": "owner/name", "files": ["a.parquet", "b.jsonl"]}
    with HubOfFiles({"owner/name": a_set(), "owner/script": script, "owner/gated": gated}) as hub:
        *errors, of_files, of_two_kinds = read_each(hub, tmp_path, [*(settings for settings, _ in refused), *more])
    for (settings, said), row in zip(refused, errors, strict=True):
        error = row["error"]
        assert error.startswith(f"source s: data set {settings['path']} "), error
        assert said in error, error
        assert "`files`" in error or "script" not in said
    assert of_files["rows"] == ["x"]
    assert "`files` are of one kind" in of_two_kinds["error"]
