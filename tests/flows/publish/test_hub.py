"""A set pushed to a double of a hub: what is there after it is what the folder holds, under a tag of its version."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from huggingface_hub import constants

from curation.records import SourceError
from curation.storage.stages import write_parquet
from flows.pipelines.evaluate import trained_sets
from flows.publish.curated_set import renew_mark
from flows.publish.receipts import renew_contents
from flows.run.recipe import load_recipe
from tests.flows.conftest import ROOT, Tiny, goldilocks, published, refusal
from tests.flows.publish.hub_double import TOKEN, HubDouble
from tests.flows.run.folders import contents
from tests.flows.run.folders import run as finish
from training.embedded_model.problems import Split
from training.recipe import CuratedData
from training.rollouts.tasks import load_tasks

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
    finish(tiny_copy.recipe, tiny_copy.folder)
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
    for place, name, words in [(tmp_path, "me/x", "no published set"), (tiny_run.folder, "tiny", "is OWNER/NAME")]:
        assert words in refusal("publish", place, "--to", name)


# --- texts whose licence does not let them be handed on: not sent, put back from the source, and checked -------------

RECIPE = Path(__file__).with_name("withheld.toml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, and its inputs next to it; they are not to be changed."""
    home = tmp_path_factory.mktemp("withheld")
    for name in ("problems.jsonl", "attempts.jsonl"):  # number 16 is never solved; the last row is a copy of 15
        shutil.copy(Path(__file__).with_name(f"withheld_{name}"), home / name)
    (home / "withheld.toml").write_text(RECIPE)
    finish(home / "withheld.toml", home / "run")
    return home


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """The folder of a copy of the run."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run"


def rows(folder: Path, table: str) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted((folder / table).glob("*.parquet"))])


def texts(folder: Path) -> Iterator[str]:
    """The text of each file of a set."""
    for path in filter(Path.is_file, folder.rglob("*")):
        is_table = path.suffix == ".parquet"
        yield pl.read_parquet(path).write_ndjson() if is_table else path.read_bytes().decode("utf-8", "replace")


def send(run: Path) -> Path:
    sent = goldilocks("publish", run, "--to", "me/withheld")
    assert sent.status == 0, sent.err
    assert sent.out.startswith(f"{run / 'public'} → me/withheld, tag v1")
    return run / "public"


def restore(public: Path, *options: str | Path) -> None:
    restored = goldilocks("publish", "--restore", public, *options)
    assert restored.status == 0, restored.err


@pytest.mark.slow
def test_what_is_sent_has_no_withheld_text_in_any_file(run: Path) -> None:
    public = send(run)
    sent = rows(public, "data").sort("row")
    assert sent["row"].to_list() == [0, 1, 2, 3, 4, 6, 7]
    hidden = sent.filter(pl.col("statement").is_null())
    assert hidden["row"].to_list() == [1, 3, 4]  # the last for the sake of its copy
    assert hidden["answer"].null_count() == hidden["solution"].null_count() == hidden["meta"].null_count() == 3
    assert hidden["pass_rate"].to_list() == [0.5, 0.5, 0.5]
    assert hidden["source"].to_list() == ["school"] * 3
    dropped = rows(public, "dropped").sort("row")
    assert dropped.select("row", "reason").rows() == [(5, "never_solved"), (8, "duplicate")]
    assert dropped["statement"].null_count() == 2
    for text in texts(public):
        for number in (12, 14, 15, 16):
            assert f"What is {number} plus" not in text
            assert f"Because of {number}" not in text
    assert "3 problems and 2 dropped rows are here" in (public / "README.md").read_text()
    assert published(run, "data")["statement"].null_count() == 0


@pytest.mark.slow
def test_what_was_withheld_comes_back_as_it_was(run: Path, tmp_path: Path) -> None:
    public, elsewhere = send(run), tmp_path / "elsewhere.jsonl"
    refused = refusal("export", public, "--format", "trl", "--out", tmp_path / "trl")
    assert "has no statement; withheld texts are put back by `goldilocks publish DIR --restore`" in refused
    (tmp_path / "problems.jsonl").rename(elsewhere)
    for _ in range(2):  # again, nothing changes
        restore(public, "--source", f"school={elsewhere}")
        assert rows(public, "data").equals(published(run, "data"))
    dropped = published(run, "dropped")
    assert rows(public, "dropped").drop("evidence").equals(dropped.drop("evidence"))
    for options, message in (
        ((public, "--to", "me/withheld"), "give the folder of the run"),
        (("--restore", run / "curated"), "nothing is withheld there"),
        (("--restore", public, "--source", "web=x"), "the set has no such source; it has school"),
        (("--restore", public, "--source", "school"), "--source school: write NAME=PATH"),
    ):
        assert message in refusal("publish", *options)


def test_a_source_that_changed_is_named_and_its_texts_stay_away(run: Path, tmp_path: Path) -> None:
    public, source = send(run), tmp_path / "problems.jsonl"
    source.write_text(source.read_text().replace('"Because of 14', '"As 14'))
    ended = goldilocks("publish", "--restore", public, "--from", tmp_path)
    assert ended.status == 1
    assert "the texts of 1 rows are not what the set was made from" in ended.err
    assert "source school: row 3" in ended.err
    restored = rows(public, "data").filter(row=3)
    assert (restored["statement"].null_count(), restored["solution"].null_count()) == (0, 1)


@pytest.mark.slow
def test_a_code_set_is_sent_without_statements_and_given_tests_and_restored_whole(tmp_path: Path) -> None:
    """A few of the demo's programs, whose licence is withheld."""
    folder, public, recipes = tmp_path / "run", tmp_path / "run" / "public", ROOT / "flows" / "recipes"
    few = ("sources.0.limit=4", 'export.withhold=["Apache-2.0"]', "code.make_tests=false")
    finish(recipes / "demo_code.toml", folder, *few)
    send(folder)
    whole = published(folder, "data")
    assert not any(json.dumps(whole["raw_statement"][0])[1:60] in text for text in texts(public))
    assert rows(public, "data")["statement"].null_count() == whole.height
    given = rows(public, "tests").filter(origin="given")
    assert given["input"].null_count() == given.height > 0
    assert "Their given tests and checkers are withheld, too" in (public / "README.md").read_text()
    data = CuratedData(kind="curated", folders=(str(public),))
    with pytest.raises(SourceError, match="has no statement; withheld texts are put back by"):
        load_tasks(data, Split.TRAIN, tmp_path)
    assert "has no statement; withheld texts" in refusal("export", public, "--format", "verl", "--out", tmp_path / "v")
    with pytest.raises(SourceError, match="has no statement; withheld texts"):
        trained_sets(load_recipe(recipes / "demo_code.toml").models["coder"], tmp_path, [public])
    restore(public, "--from", recipes)
    assert rows(public, "data").equals(whole)
    for table in ("tests", "judging"):
        assert rows(public, table).equals(rows(folder / "curated", table))
    assert len(load_tasks(data, Split.TRAIN, tmp_path)) == whole.height


def test_training_never_passes_over_what_is_withheld(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.rollouts.tasks.LATENT_REASONS", ("never_solved",))
    public, kept = send(run), tmp_path / "kept"
    shutil.copytree(public, tmp_path / "public")
    shutil.copytree(run / "curated", kept)
    shutil.copytree(public / "dropped", kept / "dropped", dirs_exist_ok=True)
    (kept / ".published.json").unlink()  # a set that was put together by hand
    for data in (
        CuratedData(kind="curated", folders=("public",)),
        CuratedData(kind="curated", folders=("kept",), hard=True),
        CuratedData(kind="latent", folders=("public",)),
    ):
        with pytest.raises(SourceError, match="has no statement; withheld texts are put back by"):
            load_tasks(data, Split.TRAIN, tmp_path)
