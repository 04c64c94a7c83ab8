"""The dial with vLLM, in the run's process and behind a server: prefixes are continued, and come into the set."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from curation.storage.stages import read_table
from flows.stages.dial import PREFIXES
from tests.flows.conftest import goldilocks, published
from tests.flows.stages.test_dial import RECIPE, TURNED, dial_folder, recipe
from tests.vllm_servers import VllmServers
from training.embedded_model import WEIGHTS

__all__ = ["recipe"]

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


def turned_run(recipe: Path, out: Path, policy: str) -> Path:
    pytest.importorskip("vllm")
    begun, _, _ = RECIPE.partition("[stage1.policy]")
    decoding = 'prompt = "plain"\ndecoding = { temperature = 1.0, max_tokens = 112 }\n'
    path = recipe.with_name(f"{out.name}.toml")
    path.write_text(f"{begun}[stage1.policy]\n{policy}\n{decoding}")
    said = goldilocks("run", path, "--out", out, *TURNED)
    assert said.status == 0, said.err
    return out


def check(run: Path) -> None:
    table = read_table(dial_folder(run), PREFIXES)
    found = table.filter(pl.col("prefix").is_not_null())
    assert 0 < found.height == published(run, "data")["prefix"].count()
    stores = {path.parent: json.loads(path.read_text()) for path in (run / "attempts").glob("*/key.json")}
    (place,) = [folder for folder, key in stores.items() if key["prompt"].startswith("dial ")]
    attempts = pl.concat([pl.read_parquet(part) for part in sorted(place.glob("part-*.parquet"))])
    for problem, prefix in found.select("problem", "prefix").iter_rows():
        texts = attempts.filter(pl.col("problem").str.starts_with(f"{problem}~"))["text"].drop_nulls()
        theirs = texts.filter(texts.str.starts_with(prefix))
        assert theirs.len() >= 2
        assert all(text.count("<think>") == 1 for text in theirs)  # the tag is the prefix's, and not written twice
        assert (theirs.str.len_chars() > len(prefix)).all()
    assert (attempts["tokens"] > 0).all()
    assert (attempts["tokens"] < 112 + 1).all()  # new tokens alone


def test_vllm(recipe: Path, tmp_path: Path) -> None:
    engine = f'kind = "vllm"\nmodel = {json.dumps(str(WEIGHTS))}\ndtype = "float32"\nkv_cache_mb = 64\nin_flight = 16'
    check(turned_run(recipe, tmp_path / "vllm", engine))


def test_endpoint(recipe: Path, tmp_path: Path, vllm_servers: VllmServers) -> None:
    url = json.dumps(vllm_servers.one().url)
    server = f'kind = "endpoint"\nmodel = "tiny"\nrevision = "1"\nurls = [{url}]\nper_server = 16'
    check(turned_run(recipe, tmp_path / "endpoint", server))
