"""One way to open any policy, and the names of folders with weights."""

import shutil
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from curation.config import ModelSettings
from curation.config.policies import TorchModel
from curation.policies.checkpoints import folder_revision
from curation.policies.seeds import LivePolicy, seed_of
from flows.run.policies import POLICIES, open_policy
from training.embedded_model import WEIGHTS, resolve_model


def test_every_kind_of_settings_has_its_class() -> None:
    union, _ = get_args(ModelSettings)
    kinds = {name for one in get_args(union) for name in get_args(one.model_fields["kind"].annotation)}
    assert kinds == set(POLICIES)
    for place in POLICIES.values():
        module, _, name = place.partition(":")
        assert isinstance(getattr(import_module(module), name), type)


@pytest.mark.parametrize("kind", ["vllm", "torch"])
def test_the_shipped_model_has_its_name(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")

    def opened_by_flows(model: str) -> Any:
        settings: Any = TypeAdapter(ModelSettings).validate_python({"kind": kind, "model": model})
        return open_policy(settings, tmp_path)

    by_name, by_folder = opened_by_flows("embedded"), opened_by_flows(str(WEIGHTS))
    assert by_name.key == by_folder.key
    assert by_name.about["model"] == WEIGHTS.name  # no path of this machine
    assert resolve_model("embedded", tmp_path) == WEIGHTS
    assert resolve_model("mine", tmp_path) == tmp_path / "mine"


def test_a_folder_is_named_by_what_it_holds(models: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(models / "first", tmp_path / "elsewhere")
    named = folder_revision(copy)
    assert named == folder_revision(models / "first") != folder_revision(models / "second")
    (copy / "optimizer.pt").write_bytes(b"state")
    (copy / "README.md").write_text("words")
    assert folder_revision(copy) == named
    (copy / "chat_template.jinja").write_text("another template")
    assert folder_revision(copy) != named


def test_seeds_are_the_same_everywhere_and_differ() -> None:
    assert seed_of("p", 0) == 1326097160  # pinned: other seeds would be other attempts
    drawn = {seed_of(problem, index) for problem in ("p", "q") for index in range(1000)}
    assert len(drawn) == 2000
    assert all(0 <= seed < 2**31 for seed in drawn)


def policy(**settings: object) -> TorchModel:
    return TorchModel.model_validate({"model": "m", **settings})


def test_worked_examples_change_the_key_and_are_noted() -> None:
    plain = policy()
    shown = policy(examples=({"statement": "What is 1 + 1?", "response": "2"},))
    other = policy(examples=({"statement": "What is 1 + 1?", "response": "two"},))
    keys = [LivePolicy(settings, "m@1", None).key for settings in (plain, shown, other)]
    assert len({key.prompt for key in keys}) == 3
    assert len({key.sampling for key in keys}) == 1
    assert LivePolicy(shown, "m@1", None).about["examples"] == [{"statement": "What is 1 + 1?", "response": "2"}]
