"""A set pushed to a double of a hub: what is there after it is what the folder holds, under a tag of its version."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from curation.storage.stages import write_parquet
from flows.publish.mark import renew_mark
from flows.publish.receipts import renew_contents
from tests.flows.conftest import Tiny, goldilocks
from tests.flows.publish.hub_double import TOKEN, HubDouble


@pytest.fixture
def hub() -> Iterator[HubDouble]:
    with HubDouble() as double:
        yield double


def publish(hub: HubDouble, folder: Path, *options: str, token: str = TOKEN) -> tuple[int, str]:
    """The command in a process of its own, whose hub is the double; its status and all that it says."""
    variables = {"HF_ENDPOINT": hub.address, "HF_TOKEN": token, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-m", "flows.cli", "publish", str(folder), "--to", "me/tiny", *options]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})
    return done.returncode, done.stdout + done.stderr


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_nothing_is_sent_unless_it_is_asked_for(hub: HubDouble, tiny_run: Tiny) -> None:
    status, said = publish(hub, tiny_run.folder)
    assert (status, hub.asked) == (0, [])
    assert "me/tiny, tag v1, licence " in said
    assert "nothing was sent; --push does it (private where it is new)" in said
    for name in contents(tiny_run.folder / "curated"):
        assert name in said


def test_a_push_is_one_commit_of_all_files_with_the_versions_tag(hub: HubDouble, tiny_copy: Tiny) -> None:
    curated = tiny_copy.folder / "curated"
    status, said = publish(hub, curated, "--push")
    assert status == 0, said
    there = hub.repositories["me/tiny"]
    assert there.private
    assert (there.commits[-1], len(there.commits), there.tags) == (contents(curated), 2, {"v1": 1})
    assert there.messages[-1] == "Version 1, curated by Goldilocks"

    status, again = publish(hub, tiny_copy.folder, "--push")  # as after a kill between tag and end
    assert (status, len(there.commits)) == (0, 2)
    assert again.splitlines()[-1] == said.splitlines()[-1].replace("/x/y/", "/me/tiny/")

    for name in ("README.md", "data/train-00000-of-00001.parquet"):
        kept = there.commits[-1][name]
        for other in (kept[:-1] + b"?", None):
            there.commits[-1] |= {name: other} if other is not None else {}
            if other is None:
                del there.commits[-1][name]
            status, said = publish(hub, tiny_copy.folder, "--push")
            assert (status, len(there.commits)) == (1, 2)
            assert "me/tiny has v1 already, with other files; a version is never moved" in said
        there.commits[-1][name] = kept

    tiny_copy.answer_all()
    assert tiny_copy.run().status == 0
    there.commits[-1]["data/left-over.parquet"] = b""  # as a set of more files left it
    status, said = publish(hub, tiny_copy.folder, "--push")
    assert status == 0, said
    assert (there.commits[-1], there.tags) == (contents(curated), {"v1": 1, "v2": 2})


def test_a_row_that_fails_its_proof_is_left_out_of_a_push_and_named(hub: HubDouble, tiny_copy: Tiny) -> None:
    curated = tiny_copy.folder / "curated"
    (file,) = (curated / "data").glob("*.parquet")
    rows = pl.read_parquet(file)
    bad = rows["id"][0]
    write_parquet(file, rows.with_columns(answer=pl.when(pl.col("id") == bad).then(pl.lit("")).otherwise("answer")))
    renew_contents(curated)
    renew_mark(curated)
    status, said = publish(hub, tiny_copy.folder, "--push")
    assert status == 0, said
    assert f"{bad}: its reference earns 0" in " ".join(said.split())
    there = hub.repositories["me/tiny"].commits[-1]
    assert there == contents(tiny_copy.folder / "public")
    sent = pl.read_parquet(io.BytesIO(there["data/train-00000-of-00001.parquet"]))
    assert sent["id"].to_list() == rows["id"].to_list()[1:]
    card = there["README.md"].decode()
    assert "## Rows Left Out\n\n1 problems fail their proof and are not here." in card
    assert f"- `{bad}`: its reference earns 0" in card
    assert goldilocks("verify", "receipt", tiny_copy.folder / "public").status == 0
    shutil.copytree(curated, alone := tiny_copy.folder.parent / "alone")
    status, said = publish(hub, alone, "--push")
    assert status == 1
    assert "problems that fail their proof (1, the first is" in " ".join(said.split())


def test_what_the_hub_says_against_it_is_one_sentence(hub: HubDouble, tiny_run: Tiny, tmp_path: Path) -> None:
    status, said = publish(hub, tiny_run.folder, "--push", token="another")
    assert status == 1
    assert "the hub refuses (401)" in said
    hub.status = 500
    status, said = publish(hub, tiny_run.folder, "--push")
    assert status == 1
    assert "me/tiny: the hub answers 500: not now" in said
    assert "Traceback" not in said
    for place, name, words in [(tmp_path, "me/x", "no published set"), (tiny_run.folder, "tiny", "write OWNER/NAME")]:
        ended = goldilocks("publish", place, "--to", name)
        assert ended.status == 1
        assert words in ended.err
