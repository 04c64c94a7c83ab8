"""Tiny random models with the embedded model's kind of tokenizer, made once for all tests of generation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.embedded_model.make import make_tokenizer, new_model
from training.optimisation.model import save_model


@pytest.fixture(scope="session")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a model with random weights, scaled up so that its distributions are not flat."""
    return _random_model(tmp_path_factory.mktemp("models") / "random", seed=1)


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same architecture with other weights."""
    return _random_model(tmp_path_factory.mktemp("models") / "other", seed=2)


def _random_model(folder: Path, seed: int) -> Path:
    tokenizer = make_tokenizer(seed=5, texts=300)
    model = new_model(tokenizer, seed)
    for parameter in model.parameters():
        parameter.data *= 4 if parameter.ndim == 2 else 1
    save_model(model.eval(), tokenizer, folder)
    return folder


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Let torch use one thread, with which such small tensors are quicker, above all while other tests run."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of four steps with its attempts, and one evaluation's, in its store."""
    from tests.training.engines.embedded.test_run import small
    from training.engines.embedded.run import train

    out = tmp_path_factory.mktemp("stored") / "teacher"
    sizes = {"max_staleness": 0, "group_size": 4}
    train(small(collector=sizes, evaluation={"every": 4}, checks=False), Path(), out)
    return out
