"""The receipt of a set: written with it, verified by computing it again, and whatever was altered is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curation.publish.receipts import read_receipt
from curation.storage.stages import atomic_write
from tests.flows.conftest import Said, Tiny, forge, goldilocks, refusal
from tests.training.students import student


def verify(folder: Path, *options: str) -> Said:
    return goldilocks("-q", "verify", "receipt", folder, "--quick", *options)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_receipt_holds_and_says_what_was_computed_again(tiny_run: Tiny) -> None:
    before = files(tiny_run.folder)
    said = verify(tiny_run.folder)
    assert (said.status, said.err) == (0, "")
    assert said.out.endswith("holds\n")
    tables = (tiny_run.folder / "verdicts").glob("*/*/verdicts/*.parquet")
    assert f"{sum(pl.read_parquet(table).height for table in tables)} verdicts" in said.out
    assert files(tiny_run.folder) == before
    card = (tiny_run.folder / "curated" / "README.md").read_text()
    assert "(RECEIPT.md)" in card
    receipt = read_receipt(tiny_run.folder / "curated")
    assert receipt.rows == tiny_run.table("data").height


def test_of_a_set_without_its_run_the_rest_is_checked_and_named(tiny_run: Tiny, tmp_path: Path) -> None:
    alone = shutil.copytree(tiny_run.folder / "curated", tmp_path / "set")
    said = verify(alone)
    assert said.status == 0, said.out
    assert "not checked: digests.decisions: it takes the run's folder" in said.out
    (alone / "ATTRIBUTION.md").write_text("nothing")
    said = verify(alone)
    assert said.status == 1
    assert "ATTRIBUTION.md is not the file in the receipt: its SHA-256 differs." in said.out


def rewrite(folder: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    (file,) = (folder / "curated" / "data").glob("*.parquet")
    change(pl.read_parquet(file)).write_parquet(file)


def first(name: str, value: str) -> Callable[[pl.DataFrame], pl.DataFrame]:
    place = pl.int_range(pl.len()) == 0
    return lambda rows: rows.with_columns(pl.when(place).then(pl.lit(value)).otherwise(name).alias(name))


def edit(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "curated" / "receipt.json"
    table = json.loads(path.read_text())
    change(table)
    path.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")


@pytest.mark.slow
def test_altered_rows_are_named_and_no_receipt_is_written_for_them(tiny_copy: Tiny) -> None:
    name = tiny_copy.table("data")["id"][0]
    rewrite(tiny_copy.folder, first("answer", "7"))
    rewrite(tiny_copy.folder, first("license", "CC0-1.0"))
    said = verify(tiny_copy.folder)
    assert said.status == 1
    assert "data/: column answer does not hold what was published." in said.out
    assert f'problem {name}: answer is "7", "' in said.out
    assert "licences.school.CC0-1.0: the receipt states nothing, 1 [changed texts" in said.out
    refused = refusal("publish", "--receipt", tiny_copy.folder)
    assert "is not what was published (its hash differs)" in refused


@pytest.mark.slow
def test_a_removed_row_an_edited_figure_and_an_edited_page_are_named(tiny_copy: Tiny) -> None:
    def flatter(table: dict[str, Any]) -> None:
        (figure,) = (row for row in table["figures"] if row["name"] == "precision.proof")
        figure["value"] = 0.5

    name, rows = tiny_copy.table("data")["id"][-1], tiny_copy.table("data").height
    rewrite(tiny_copy.folder, lambda table: table.head(-1))
    edit(tiny_copy.folder, flatter)
    page = tiny_copy.folder / "curated" / "RECEIPT.md"
    page.write_text(page.read_text().replace("| proof | 1.000", "| proof | 0.999"))
    said = verify(tiny_copy.folder)
    assert said.status == 1
    assert f"data/: {rows:,} problems are stated, {rows - 1:,} are there." in said.out
    assert f"problem {name} is missing from the set." in said.out
    assert "receipt.json: its content does not match its own digest; it was edited." in said.out
    assert "precision.proof: the receipt states 0.500" in said.out
    assert "RECEIPT.md has a line that receipt.json lacks: | proof | 0.999" in said.out


def stored(folder: Path, policy: str) -> Path:
    keys = {json.loads(path.read_text())["policy"]: path.parent for path in (folder / "attempts").glob("*/key.json")}
    return next(path for path in sorted(keys[policy].glob("part-*.parquet")) if pl.read_parquet(path).height)


@pytest.mark.slow
def test_a_flipped_attempt_and_a_flipped_verdict_are_named(tiny_copy: Tiny) -> None:
    part = stored(tiny_copy.folder, "strong@1")
    rows = pl.read_parquet(part)
    problem, index = rows["problem"][0], rows["index"][0]
    text = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(r"\boxed{987}")).otherwise("text").alias("text")
    rows.with_columns(text).write_parquet(part)
    assert f"{part} is damaged" in refusal("verify", "receipt", tiny_copy.folder, "--quick")
    forge(part, rows.with_columns(text))
    table = max((tiny_copy.folder / "verdicts" / "stage2").glob("*/verdicts/*.parquet"))
    verdicts = pl.read_parquet(table)
    place = max(at for at, outcome in enumerate(verdicts["outcome"]) if outcome == "wrong")
    is_flipped = pl.int_range(pl.len()) == place
    forge(table, verdicts.with_columns(outcome=pl.when(is_flipped).then(pl.lit("correct")).otherwise("outcome")))
    said = verify(tiny_copy.folder)
    assert said.status == 1
    assert f"problem {problem}, attempt {index}: " in said.out
    assert ', "987" comes out' in said.out
    flipped = f"problem {verdicts['problem'][place]}, attempt {verdicts['index'][place]}"
    assert f'{flipped}: outcome is "correct", "wrong" comes out' in said.out
    for figure in ("verdicts.stage2", "decisions"):
        assert f"digests.{figure}: the receipt states" in said.out


def test_a_broken_table_and_a_missing_receipt_are_told(tiny_copy: Tiny) -> None:
    (file,) = (tiny_copy.folder / "curated" / "data").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:100])
    said = verify(tiny_copy.folder)
    assert (said.status, said.err) == (1, "")
    assert "data/ cannot be read" in said.out
    (tiny_copy.folder / "curated" / "receipt.json").write_text("{")
    assert "is damaged" in refusal("verify", "receipt", tiny_copy.folder)
    (tiny_copy.folder / "curated" / "receipt.json").unlink()
    assert "no receipt.json there" in refusal("verify", "receipt", tiny_copy.folder)


@pytest.mark.slow
def test_planted_defects_are_measured_once_and_stay(tiny_copy: Tiny) -> None:
    curated = tiny_copy.folder / "curated"
    tables = files(curated / "data")
    assert "planted.wrong_reference" in goldilocks("-q", "publish", "--receipt", tiny_copy.folder).out
    receipt = read_receipt(curated)
    assert receipt.figure("planted.defects") is None
    copies = receipt.figure("planted.refers_elsewhere")
    assert copies is not None
    assert (copies.value, copies.n, dict(copies.counts)) == (0.0, 1, {"stayed": 1})  # no model is asked
    written, kept = files(curated), tiny_copy.folder / "receipt" / "planted.json"
    assert {name: written[f"data/{name}"] for name in tables} == tables
    before = kept.stat().st_mtime_ns
    assert goldilocks("-q", "publish", "--receipt", tiny_copy.folder).status == 0
    assert tiny_copy.run().status == 0
    assert (files(curated), kept.stat().st_mtime_ns) == (written, before)
    said = goldilocks("-q", "verify", "receipt", tiny_copy.folder)
    assert said.status == 0, said.out
    kept.write_text(kept.read_text().replace('stayed": 1', 'stayed": 3'))
    assert "planted.refers_elsewhere: the receipt states 0.000" in verify(tiny_copy.folder).out


@pytest.mark.slow
def test_an_audits_share_is_of_what_is_left(tiny_copy: Tiny) -> None:
    rows = tiny_copy.table("data").select("id", "answer").rows()
    assert goldilocks("review", tiny_copy.folder, "--audit", str(len(rows))).status == 0
    rejected = rows[0][0]
    assert goldilocks("review", tiny_copy.folder, "--reject", rejected).status == 0
    assert "not checked: people's verdicts since the set was published" in verify(tiny_copy.folder).out
    for name, answer in rows[1:]:
        assert goldilocks("review", tiny_copy.folder, "--accept", name, "--answer", answer).status == 0
    assert tiny_copy.run().status == 0
    receipt = read_receipt(tiny_copy.folder / "curated")
    assert (receipt.version, receipt.rows) == (2, len(rows) - 1)
    figure = receipt.figure("labels.audited")
    assert figure is not None
    assert (figure.value, figure.interval, figure.n) == (0.0, (0.0, 0.0), len(rows))
    assert dict(figure.counts) == {"found wrong": 1, "drawn": len(rows)}
    said = verify(tiny_copy.folder)
    assert said.status == 0, said.out


def ablation(folder: Path, curated: Path) -> Path:
    """What an ablation leaves of two arms, one trained on the set and one on other rows."""
    for arm, place in (("curated", curated), ("random", curated.parent / "elsewhere")):
        table = {
            "name": "trained", **student(prompt="solve"),
            "data": {"kind": "curated", "folders": [str(place)]}, "steps": 1,
        }  # fmt: skip
        run = folder / "runs" / f"{arm}-seed-1"
        run.mkdir(parents=True)
        about = {"kind": "training", "recipe": table, "recipe_folder": str(folder)}
        (run / "run.json").write_text(json.dumps(about))
    told = {"mean": 0.04, "low": 0.01, "high": 0.07, "count": 50}
    same = {"bench": "few", "seeds": 1, "sampled_tokens": 900.0}
    rows = [{"arm": "curated", "difference": told, **same}, {"arm": "random", "difference": None, **same}]
    atomic_write(folder / "ablation.json", json.dumps({"name": "counterfactual", "results": rows}))
    return folder


@pytest.mark.slow
def test_an_ablation_of_the_set_tells_what_it_was_worth(tiny_copy: Tiny, tmp_path: Path) -> None:
    place = ablation(tmp_path / "ablation", tiny_copy.folder / "curated")
    assert goldilocks("-q", "publish", "--receipt", tiny_copy.folder, "--ablation", place).status == 0
    figure = read_receipt(tiny_copy.folder / "curated").figure("worth.counterfactual.few")
    assert figure is not None
    assert (figure.value, figure.n) == (0.04, 50)
    assert figure.interval == (0.01, 0.07)
    said = verify(tiny_copy.folder)
    assert said.status == 0, said.out
    assert "worth.counterfactual.few: compared with the run's copy; computing it needs training" in said.out
    place = ablation(tmp_path / "of another", tmp_path / "other" / "curated")
    refused = refusal("publish", "--receipt", tiny_copy.folder, "--ablation", place)
    assert "its arm `curated` must be trained on" in refused
    assert "holds no ablation" in refusal("publish", "--receipt", tiny_copy.folder, "--ablation", tmp_path)
