"""The published folder: read as it is, made again in the same bytes, and its receipt."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tomllib
from pathlib import Path

import polars as pl
import pytest
import yaml

from curation.publish.cards.card import rows_digest
from curation.publish.export import CURATED
from curation.publish.receipts import read_receipt
from curation.records import DROPPED
from curation.storage import sorted_parts
from curation.storage.stages import atomic_write
from flows.publish import curated_set
from flows.publish.versions import digest_of
from flows.run.recipe import parse_recipe
from flows.run.run_folder import new_run
from tests.benchmarks.bench_crash import write_recipe
from tests.flows.conftest import OPTIONAL, ROOT, STAGES, TINY, Said, Tiny, forge, goldilocks, refusal
from tests.flows.run.folders import card, contents, run
from tests.training.students import student


def test_polars_and_datasets_read_the_folder_as_it_is(tiny_run: Tiny, tmp_path: Path) -> None:
    import datasets

    data = tiny_run.table("data")
    assert data.schema == CURATED
    assert tiny_run.table("dropped").schema == DROPPED
    assert data["row"].is_sorted()
    assert pl.read_parquet(tiny_run.folder / "curated" / "data").equals(data)
    found = datasets.load_dataset(str(tiny_run.folder / "curated"), cache_dir=str(tmp_path))
    assert list(found) == ["train"]
    assert found["train"].column_names == CURATED.names()
    assert found["train"]["id"][:] == data["id"].to_list()
    for name, content in contents(tiny_run.folder / "curated").items():
        assert str(tiny_run.folder.parent).encode() not in content, name
    other = shutil.copytree(tiny_run.folder / "curated", tmp_path / "other" / "curated")
    table = data.head(2)  # another set in a folder of the same name
    (path,) = (other / "data").glob("*.parquet")
    table.write_parquet(path)
    text = (other / "README.md").read_text()
    was = yaml.safe_load(text.split("---\n")[1])["configs"][0]["description"]
    (other / "README.md").write_text(text.replace(was, f"rows {rows_digest(table.lazy())}"))
    assert datasets.load_dataset(str(other), cache_dir=str(tmp_path))["train"].num_rows == 2


def test_the_card_agrees_with_the_tables(tiny_run: Tiny) -> None:
    text = card(tiny_run.folder)
    assert yaml.safe_load(text.split("---\n")[1])["configs"][0]["data_files"]
    for name, title in ((stage.name, stage.title) for stage in STAGES.values()):
        if not name.endswith((".attempts", ".verdicts", ".label_trust")) and name not in OPTIONAL:
            assert f"| {title[0]}{title[1:]} |" in text
    for part in ("weak@1", "strong@1", "shard_rows = 3"):
        assert part in text
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (tiny_run.folder / "curated" / link).exists()


@pytest.mark.slow
def test_a_set_that_was_cut_short_is_published_again_in_the_same_bytes(tiny_copy: Tiny) -> None:
    curated, aside = tiny_copy.folder / "curated", tiny_copy.folder / ".aside-curated"
    before = contents(curated)
    curated.rename(aside)
    (aside / "data" / "left-over.parquet").write_bytes(b"half")
    (kept,) = (tiny_copy.folder / "stages").glob("*-export/kept/00000.parquet")
    assert "in the curated set" in goldilocks("explain", tiny_copy.folder, pl.read_parquet(kept)["id"][0]).out
    run(tiny_copy.recipe, tiny_copy.folder)
    assert contents(curated) == before
    assert not aside.exists()
    for name in ("data/*.parquet", "dropped/*.parquet", "README.md"):
        (damaged,) = curated.glob(name)
        damaged.write_bytes(damaged.read_bytes()[:100])
    assert goldilocks("status", tiny_copy.folder).status == 0
    run(tiny_copy.recipe, tiny_copy.folder)
    assert contents(curated) == before


def test_a_digest_is_that_of_the_whole_table_however_few_rows_are_written_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [(f"p{number % 4}{number}", None if number % 3 else 'a "b",\n', "today") for number in range(9)]
    table = pl.DataFrame(rows, ["problem", "reason", "measured_on"], orient="row")
    monkeypatch.setattr(sorted_parts, "ROWS_AT_ONCE", 2)
    for part in (table, table.clear()):
        text = part.drop("measured_on").sort("problem").write_csv()
        assert digest_of(part.lazy()) == hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    assert digest_of(table.reverse().lazy()) == digest_of(table.lazy()) != digest_of(table[1:].lazy())


@pytest.mark.slow
def test_large_shards_and_small_ones_publish_the_same_rows(tiny_run: Tiny, tmp_path: Path) -> None:
    other = Tiny(tiny_run.recipe, tmp_path / "run")
    run(other.recipe, other.folder, "shard_rows=1000")
    for table in ("data", "dropped"):
        assert other.table(table).sort("row").equals(tiny_run.table(table).sort("row"))
    assert other.table("data").height + other.table("dropped").height == len(TINY)


def test_a_grader_in_the_run_folder_leaves_no_trace_of_it_in_the_card(tmp_path: Path) -> None:
    path = write_recipe(tmp_path / "inputs", problems=2)
    shipped = ROOT / "flows" / "recipes" / "train_demo_grader.toml"
    path.write_text(path.read_text().replace('"grader.toml"', json.dumps(str(shipped))))
    one, other = (new_run(path, [], tmp_path / name / "run") for name in ("a", "b"))
    assert one.recipe != other.recipe  # each has its own model in stage 2
    assert curated_set.recipe_text(one) == curated_set.recipe_text(other)
    assert curated_set.settled_digest(one.recipe) == curated_set.settled_digest(other.recipe)
    assert str(tmp_path) not in curated_set.recipe_text(one)
    again = parse_recipe(tomllib.loads(curated_set.recipe_text(one)), "the card")  # with one grader, and no stage 2
    assert again.grader is not None
    assert again.grader.recipe == "…/train_demo_grader.toml"


# --- the receipt: verified by computing it again, and whatever was altered is named ----------------------------------


def verify(folder: Path, *options: str) -> Said:
    return goldilocks("-q", "verify", "receipt", folder, "--quick", *options)


def holds(folder: Path) -> str:
    """Verify a receipt, and return what is printed."""
    verified = verify(folder)
    assert (verified.status, verified.err) == (0, ""), verified.out
    return verified.out


def differences(folder: Path) -> str:
    verified = verify(folder)
    assert verified.status == 1
    return verified.out


def rewrite(folder: Path, *changes: pl.Expr, drop_last: bool = False) -> None:
    (file,) = (folder / "curated" / "data").glob("*.parquet")
    rows = pl.read_parquet(file).with_columns(*changes)
    rows.head(rows.height - drop_last).write_parquet(file)


def changed(name: str, value: str, at: int = 0) -> pl.Expr:
    return pl.when(pl.int_range(pl.len()) == at).then(pl.lit(value)).otherwise(name).alias(name)


def test_a_receipt_holds_and_states_what_was_computed_again(tiny_run: Tiny) -> None:
    before, out = contents(tiny_run.folder), holds(tiny_run.folder)
    assert out.endswith("holds\n")
    tables = (tiny_run.folder / "verdicts").glob("*/*/verdicts/*.parquet")
    assert f"{sum(pl.read_parquet(table).height for table in tables)} verdicts" in out
    assert contents(tiny_run.folder) == before
    assert "(RECEIPT.md)" in card(tiny_run.folder)
    assert read_receipt(tiny_run.folder / "curated").rows == tiny_run.table("data").height


def test_of_a_set_without_its_run_the_rest_is_checked_and_named(tiny_run: Tiny, tmp_path: Path) -> None:
    alone = shutil.copytree(tiny_run.folder / "curated", tmp_path / "set")
    assert "not checked: digests.decisions: it takes the run's folder" in holds(alone)
    (alone / "ATTRIBUTION.md").write_text("nothing")
    assert "ATTRIBUTION.md is not the file in the receipt: its SHA-256 differs." in differences(alone)


@pytest.mark.slow
def test_altered_rows_are_named_and_no_receipt_is_written_for_them(tiny_copy: Tiny) -> None:
    name = tiny_copy.table("data")["id"][0]
    rewrite(tiny_copy.folder, changed("answer", "7"), changed("license", "CC0-1.0"))
    out = differences(tiny_copy.folder)
    assert "data/: column answer does not hold what was published." in out
    assert f'problem {name}: answer is "7", "' in out
    assert "licences.school.CC0-1.0: the receipt states nothing, 1 [changed texts" in out
    refused = refusal("publish", "--receipt", tiny_copy.folder)
    assert "is not what was published (its hash differs)" in refused


@pytest.mark.slow
def test_a_removed_row_an_edited_figure_and_an_edited_page_are_named(tiny_copy: Tiny) -> None:
    curated = tiny_copy.folder / "curated"
    name, rows = tiny_copy.table("data")["id"][-1], tiny_copy.table("data").height
    rewrite(tiny_copy.folder, drop_last=True)
    receipt = json.loads((curated / "receipt.json").read_text())
    (figure,) = (row for row in receipt["figures"] if row["name"] == "precision.proof")
    figure["value"] = 0.5
    (curated / "receipt.json").write_text(json.dumps(receipt, indent=1, ensure_ascii=False) + "\n")
    page = curated / "RECEIPT.md"
    page.write_text(page.read_text().replace("| proof | 1.000", "| proof | 0.999"))
    out = differences(tiny_copy.folder)
    for sentence in (
        f"data/: {rows:,} problems are stated, {rows - 1:,} are in the set.",
        f"problem {name} is missing from the set.",
        "receipt.json: its content does not match its own digest; it was edited.",
        "precision.proof: the receipt states 0.500",
        "RECEIPT.md has a line that receipt.json lacks: | proof | 0.999",
    ):
        assert sentence in out


@pytest.mark.slow
def test_a_flipped_attempt_and_a_flipped_verdict_are_named(tiny_copy: Tiny) -> None:
    (key,) = (one for one in (tiny_copy.folder / "attempts").glob("*/key.json") if "strong@1" in one.read_text())
    part = next(one for one in sorted(key.parent.glob("part-*.parquet")) if pl.read_parquet(one).height)
    attempts = pl.read_parquet(part)
    altered = attempts.with_columns(changed("text", r"\boxed{987}"))
    altered.write_parquet(part)
    assert f"{part} is damaged" in refusal("verify", "receipt", tiny_copy.folder, "--quick")
    forge(part, altered)
    table = max((tiny_copy.folder / "verdicts" / "stage2").glob("*/verdicts/*.parquet"))
    verdicts = pl.read_parquet(table)
    at = max(at for at, outcome in enumerate(verdicts["outcome"]) if outcome == "wrong")
    forge(table, verdicts.with_columns(changed("outcome", "correct", at)))
    out = differences(tiny_copy.folder)
    assert f"problem {attempts['problem'][0]}, attempt {attempts['index'][0]}: " in out
    assert ', "987" comes out' in out
    flipped = f"problem {verdicts['problem'][at]}, attempt {verdicts['index'][at]}"
    assert f'{flipped}: outcome is "correct", "wrong" comes out' in out
    for figure in ("verdicts.stage2", "decisions"):
        assert f"digests.{figure}: the receipt states" in out


def test_a_broken_table_and_a_missing_receipt_are_named(tiny_copy: Tiny) -> None:
    curated = tiny_copy.folder / "curated"
    (file,) = (curated / "data").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:100])
    assert "data/ cannot be read" in differences(tiny_copy.folder)
    (curated / "receipt.json").write_text("{")
    assert "is damaged" in refusal("verify", "receipt", tiny_copy.folder)
    (curated / "receipt.json").unlink()
    assert "no receipt.json there" in refusal("verify", "receipt", tiny_copy.folder)


@pytest.mark.slow
def test_planted_defects_are_measured_once_and_stay(tiny_copy: Tiny) -> None:
    curated, planted = tiny_copy.folder / "curated", tiny_copy.folder / "receipt" / "planted.json"
    tables = contents(curated / "data")
    assert "planted.wrong_reference" in goldilocks("-q", "publish", "--receipt", tiny_copy.folder).out
    receipt = read_receipt(curated)
    assert receipt.figure("planted.defects") is None
    copies = receipt.figure("planted.refers_elsewhere")
    assert copies is not None
    assert (copies.value, copies.n, dict(copies.counts)) == (0.0, 1, {"stayed": 1})  # no model is asked
    assert contents(curated / "data") == tables
    written, measured = contents(curated), planted.stat().st_mtime_ns
    assert goldilocks("-q", "publish", "--receipt", tiny_copy.folder).status == 0
    run(tiny_copy.recipe, tiny_copy.folder)
    assert (contents(curated), planted.stat().st_mtime_ns) == (written, measured)
    whole = goldilocks("-q", "verify", "receipt", tiny_copy.folder)
    assert whole.status == 0, whole.out
    planted.write_text(planted.read_text().replace('stayed": 1', 'stayed": 3'))
    assert "planted.refers_elsewhere: the receipt states 0.000" in verify(tiny_copy.folder).out


@pytest.mark.slow
def test_an_audits_share_is_of_what_is_left(tiny_copy: Tiny) -> None:
    (rejected, _), *others = rows = tiny_copy.table("data").select("id", "answer").rows()
    assert goldilocks("review", tiny_copy.folder, "--audit", str(len(rows))).status == 0
    assert goldilocks("review", tiny_copy.folder, "--reject", rejected).status == 0
    assert "not checked: people's verdicts since the set was published" in verify(tiny_copy.folder).out
    for name, answer in others:
        assert goldilocks("review", tiny_copy.folder, "--accept", name, "--answer", answer).status == 0
    run(tiny_copy.recipe, tiny_copy.folder)
    receipt = read_receipt(tiny_copy.folder / "curated")
    assert (receipt.version, receipt.rows) == (2, len(others))
    figure = receipt.figure("labels.audited")
    assert figure is not None
    assert (figure.value, figure.interval, figure.n) == (0.0, (0.0, 0.0), len(rows))
    assert dict(figure.counts) == {"found wrong": 1, "drawn": len(rows)}
    holds(tiny_copy.folder)


def ablation(folder: Path, curated: Path) -> Path:
    """What an ablation leaves of two arms, one trained on the set and one on other rows."""
    for arm, place in (("curated", curated), ("random", curated.parent / "elsewhere")):
        data = {"kind": "curated", "folders": [str(place)]}
        recipe = {"name": "trained", **student(prompt="solve"), "data": data, "steps": 1}
        about = {"kind": "training", "recipe": recipe, "recipe_folder": str(folder)}
        run = folder / "runs" / f"{arm}-seed-1"
        run.mkdir(parents=True)
        (run / "run.json").write_text(json.dumps(about))
    difference = {"mean": 0.04, "low": 0.01, "high": 0.07, "count": 50}
    same = {"bench": "few", "seeds": 1, "sampled_tokens": 900.0}
    rows = [{"arm": "curated", "difference": difference, **same}, {"arm": "random", "difference": None, **same}]
    atomic_write(folder / "ablation.json", json.dumps({"name": "counterfactual", "results": rows}))
    return folder


@pytest.mark.slow
def test_an_ablation_of_the_set_states_what_it_was_worth(tiny_copy: Tiny, tmp_path: Path) -> None:
    place = ablation(tmp_path / "ablation", tiny_copy.folder / "curated")
    assert goldilocks("-q", "publish", "--receipt", tiny_copy.folder, "--ablation", place).status == 0
    figure = read_receipt(tiny_copy.folder / "curated").figure("worth.counterfactual.few")
    assert figure is not None
    assert (figure.value, figure.n, figure.interval) == (0.04, 50, (0.01, 0.07))
    out = holds(tiny_copy.folder)
    assert "worth.counterfactual.few: compared with the run's copy; computing it needs training" in out
    other = ablation(tmp_path / "of another", tmp_path / "other" / "curated")
    for place, message in ((other, "its arm `curated` must be trained on"), (tmp_path, "holds no ablation")):
        assert message in refusal("publish", "--receipt", tiny_copy.folder, "--ablation", place)
