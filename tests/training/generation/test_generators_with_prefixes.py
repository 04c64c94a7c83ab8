"""A set's column `prefix` on its way into a batch, by every kind of generator: continued, and without loss."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.embedded_model.solutions import worked_solution
from tests.vllm_servers import VllmServers
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split, exercise_table, generate_exercises
from training.engines.embedded import loop
from training.engines.embedded.run import train
from training.evaluation.metrics import read_metrics
from training.optimisation.model import load_tokenizer
from training.optimisation.packing import TrainingSample
from training.recipe import TrainRecipe
from training.rollouts.attempt_log import read_attempts
from training.rollouts.batches import build_minibatches

TOKENIZER = load_tokenizer(WEIGHTS)


@dataclass(frozen=True, slots=True)
class Made:
    """A set of which three rows of four have a prefix: its folder, and the prefix of each problem."""

    folder: Path
    prefixes: Mapping[str, str | None]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("begun") / "curated"
    hard = (item for item in generate_exercises(5, Split.TRAIN) if item.kind == "multiply" and item.level == 3)
    items = list(islice(hard, 24))
    half = [worked_solution(item)[:6] if n % 4 else None for n, item in enumerate(items)]
    prefixes = [None if text is None else f"<think>{text}" for text in half]
    table = exercise_table(items).with_columns(prefix=pl.Series(prefixes, dtype=pl.String))
    (folder / "data").mkdir(parents=True)
    table.write_parquet(folder / "data" / "train-00000-of-00001.parquet")
    return Made(folder, dict(zip(table["id"], prefixes, strict=True)))


@pytest.fixture
def samples(monkeypatch: pytest.MonkeyPatch) -> list[TrainingSample]:
    """What the trainer is handed."""
    seen: list[TrainingSample] = []

    def noted(*values: Any) -> Any:
        made = build_minibatches(*values)
        seen.extend(sample for minibatch in made for sample in minibatch)
        return made

    monkeypatch.setattr(loop, "build_minibatches", noted)
    return seen


def trained(begun: Made, out: Path, generator: Mapping[str, Any]) -> None:
    table = {
        "name": "begun",
        "steps": 1,
        "model": "embedded",
        "prompt": "plain",
        "max_tokens": 80,
        "data": {"kind": "curated", "folders": (str(begun.folder),)},
        "generator": dict(generator),
        "collector": {"max_staleness": 0, "group_size": 4, "n_async": 48, "n_batch": 16},
        "rewards": {"max_length": 80, "language": 0.0},
        "packing": {"micro_batch_tokens": 512},
        "attempt_store": {"tokens": True},
        "checks": False,
    }
    train(TrainRecipe.model_validate(table), Path(), out)


def check(begun: Made, out: Path, samples: list[TrainingSample]) -> None:
    kept = read_attempts(out, ["problem", "text", "token_ids"], purpose="training")
    theirs = [row for row in kept.iter_rows() if begun.prefixes[row[0]] is not None]
    assert len(theirs) >= 4
    for problem, text, ids in theirs:
        prefix = begun.prefixes[problem]
        assert prefix is not None
        assert text.startswith(prefix)
        assert TOKENIZER.decode(ids, skip_special_tokens=True) == text[len(prefix) :]  # it went on, and only that
    assert read_metrics(out)[-1]["policy/mismatch_max"] < 1e-3  # the trainer scores what was drawn, behind the prefix
    texts = {prefix for prefix in begun.prefixes.values() if prefix is not None}
    with_prefix = [
        (one, prefix) for one in samples for prefix in texts if TOKENIZER.decode(list(one.prompt_ids)).endswith(prefix)
    ]
    assert with_prefix
    for one, prefix in with_prefix:  # tokens of the prefix are prompt: a sample scores its response alone
        assert not TOKENIZER.decode(list(one.response_ids)).startswith(prefix)
        assert one.mask is None
        assert one.generator_logprobs is not None
        assert len(one.generator_logprobs) == len(one.response_ids)
    drawn = {tuple(ids) for _, _, ids in kept.iter_rows()}
    assert {tuple(one.response_ids) for one, _ in with_prefix} <= drawn
    summary = json.loads((out / "summary.json").read_text())["ledger"]
    assert summary["trained"] == 16


def test_torch(begun: Made, tmp_path: Path, samples: list[TrainingSample]) -> None:
    trained(begun, tmp_path / "run", {"kind": "torch"})
    check(begun, tmp_path / "run", samples)


@pytest.mark.vllm
@pytest.mark.slow
def test_vllm(begun: Made, tmp_path: Path, samples: list[TrainingSample]) -> None:
    pytest.importorskip("vllm")
    trained(begun, tmp_path / "run", {"kind": "vllm", "dtype": "float32", "kv_cache_mb": 64, "capacity": 32})
    check(begun, tmp_path / "run", samples)


@pytest.mark.vllm
@pytest.mark.slow
def test_endpoint(begun: Made, tmp_path: Path, samples: list[TrainingSample], vllm_servers: VllmServers) -> None:
    url = vllm_servers.one().url
    trained(begun, tmp_path / "run", {"kind": "endpoint", "urls": (url,), "model": "tiny", "per_server": 16})
    check(begun, tmp_path / "run", samples)
