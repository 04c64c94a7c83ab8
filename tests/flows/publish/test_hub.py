"""A set pushed to a double of a hub: what is there after it is what the folder holds, under a tag of its version."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from huggingface_hub import constants

from curation.storage.stages import write_parquet
from flows.publish.curated_set import renew_mark
from flows.publish.receipts import renew_contents
from tests.flows.conftest import Tiny, goldilocks, refusal
from tests.flows.publish.hub_double import TOKEN, HubDouble
from tests.flows.run.folders import contents, run

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of the client's own request


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubDouble]:
    """The double, at the address that the client reads from HF_ENDPOINT when it is imported."""
    with HubDouble() as double:
        monkeypatch.setattr(constants, "ENDPOINT", double.address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield double


def publish(folder: Path, *options: str, status: int = 0) -> str:
    """All that the command prints, as one line."""
    ended = goldilocks("publish", folder, "--to", "me/tiny", *options)
    assert ended.status == status, ended.err
    return " ".join((ended.out + ended.err).split())


def test_nothing_is_sent_unless_it_is_asked_for(hub: HubDouble, tiny_run: Tiny) -> None:
    printed = publish(tiny_run.folder)
    assert hub.asked == []
    assert "me/tiny, tag v1, licence " in printed
    assert "nothing was sent; --push does it (private if it is new)" in printed
    assert all(name in printed for name in contents(tiny_run.folder / "curated"))


def test_a_push_is_one_commit_of_all_files_with_the_versions_tag(hub: HubDouble, tiny_copy: Tiny) -> None:
    curated = tiny_copy.folder / "curated"
    first = publish(curated, "--push")
    there = hub.repositories["me/tiny"]
    assert there.private
    assert (there.commits[-1], len(there.commits), there.tags) == (contents(curated), 2, {"v1": 1})
    assert there.messages[-1] == "Version 1, curated by Goldilocks"
    again = publish(tiny_copy.folder, "--push")  # as after a kill between tag and end
    assert "".join(again.split())[-40:] == "".join(first.split())[-40:]
    assert len(there.commits) == 2

    for name in ("README.md", "data/train-00000-of-00001.parquet"):
        kept = there.commits[-1][name]
        there.commits[-1][name] = kept[:-1] + b"?"
        refused = publish(tiny_copy.folder, "--push", status=1)
        assert "me/tiny has v1 already, with other files; a version is never moved" in refused
        assert len(there.commits) == 2
        there.commits[-1][name] = kept

    tiny_copy.answer_all()
    run(tiny_copy.recipe, tiny_copy.folder)
    there.commits[-1]["data/left-over.parquet"] = b""  # as a set of more files left it
    publish(tiny_copy.folder, "--push")
    assert (there.commits[-1], there.tags) == (contents(curated), {"v1": 1, "v2": 2})


@pytest.mark.slow
def test_a_row_that_fails_its_proof_is_left_out_of_a_push_and_named(hub: HubDouble, tiny_copy: Tiny) -> None:
    curated = tiny_copy.folder / "curated"
    (file,) = (curated / "data").glob("*.parquet")
    rows = pl.read_parquet(file)
    bad = rows["id"][0]
    write_parquet(file, rows.with_columns(answer=pl.when(pl.col("id") == bad).then(pl.lit("")).otherwise("answer")))
    renew_contents(curated)
    renew_mark(curated)
    assert f"{bad}: its reference earns 0" in publish(tiny_copy.folder, "--push")
    there = hub.repositories["me/tiny"].commits[-1]
    assert there == contents(tiny_copy.folder / "public")
    sent = pl.read_parquet(io.BytesIO(there["data/train-00000-of-00001.parquet"]))
    assert sent["id"].to_list() == rows["id"].to_list()[1:]
    text = there["README.md"].decode()
    assert "## Rows Left Out\n\n1 problems fail their proof and are not here." in text
    assert f"- `{bad}`: its reference earns 0" in text
    assert goldilocks("verify", "receipt", tiny_copy.folder / "public").status == 0
    alone = shutil.copytree(curated, tiny_copy.folder.parent / "alone")
    assert "problems that fail their proof (1, the first is" in publish(alone, "--push", status=1)


def test_what_the_hub_refuses_is_one_sentence(
    hub: HubDouble, tiny_run: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.status = 500
    assert "me/tiny: the hub answers 500: not now" in publish(tiny_run.folder, "--push", status=1)
    hub.status = None
    monkeypatch.setenv("HF_TOKEN", "another")
    refused = publish(tiny_run.folder, "--push", status=1)
    assert "me/tiny: the hub answers 401: " in refused
    assert "an HF_TOKEN" in refused
    for place, name, words in [(tmp_path, "me/x", "no published set"), (tiny_run.folder, "tiny", "write OWNER/NAME")]:
        assert words in refusal("publish", place, "--to", name)
