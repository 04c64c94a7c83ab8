"""Models are published whole or not at all, and come back as they were."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from curation.policies.checkpoints import folder_revision
from curation.records import PolicyError, StoreError
from training.optimisation.model import MARK, load_model, load_tokenizer, published_revision, save_model


def test_a_saved_model_comes_back_with_the_same_weights(random_model: Path, tmp_path: Path) -> None:
    model = load_model(random_model)
    save_model(model, load_tokenizer(random_model), tmp_path / "copy")
    again = load_model(tmp_path / "copy", training=True)
    assert again.training
    assert not model.training
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    assert published_revision(tmp_path / "copy") == folder_revision(tmp_path / "copy")
    assert load_model(random_model, dtype="bfloat16").dtype is torch.bfloat16


def test_publishing_again_replaces_the_folder_and_leaves_nothing_aside(
    random_model: Path, other_model: Path, tmp_path: Path
) -> None:
    first = save_model(load_model(random_model), load_tokenizer(random_model), tmp_path / "model")
    (tmp_path / "model" / "stray.txt").write_text("old")
    second = save_model(
        load_model(other_model), load_tokenizer(other_model), tmp_path / "model", extra_files={"README.md": "new\n"}
    )
    assert first != second == published_revision(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert not (tmp_path / "model" / "stray.txt").exists()
    assert (tmp_path / "model" / "README.md").read_text() == "new\n"


def test_what_is_not_whole_is_refused(random_model: Path, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"config\.json is missing"):
        load_model(tmp_path)
    tokenizer, folder = load_tokenizer(random_model), tmp_path / "model"
    tokenizer.chat_template = None
    save_model(load_model(random_model), tokenizer, folder)
    with pytest.raises(PolicyError, match="no chat template"):
        load_tokenizer(folder)
    (folder / MARK).unlink()
    with pytest.raises(StoreError, match="publish it again"):
        published_revision(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(PolicyError, match="cannot load this model"):
        load_model(folder)


def test_whoever_overwrites_the_file_does_not_change_a_loaded_model(random_model: Path, tmp_path: Path) -> None:
    """As ``cp`` does it: in place. Parameters mapped from the file take the new bytes, trained or not."""
    file = shutil.copytree(random_model, tmp_path / "model") / "model.safetensors"
    model = load_model(file.parent)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    before = [parameter.clone() for parameter in model.parameters()]
    file.write_bytes(file.read_bytes())
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight


def test_weights_that_are_no_numbers_are_named_before_training(random_model: Path, tmp_path: Path) -> None:
    model = load_model(random_model)
    name, value = next(iter(model.named_parameters()))
    value.data[0, 0] = float("nan")
    save_model(model, load_tokenizer(random_model), tmp_path / "nan")
    with pytest.raises(PolicyError, match=f"1 of its tensors hold NaN or infinite weights, the first is {name}"):
        load_model(tmp_path / "nan", training=True)
