"""The flows as a Prefect user finds them: by file and name, with typed parameters, and named runs."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from curation.records import ConfigError
from tests.flows.conftest import Tiny


def served_copy(module: str, name: str) -> Any:
    """The flow as the process of `flow.serve` has it, which gets it pickled by value."""
    import cloudpickle

    found = import_module(module)
    cloudpickle.register_pickle_by_value(found)
    try:
        return cloudpickle.loads(cloudpickle.dumps(getattr(found, name)))
    finally:
        cloudpickle.unregister_pickle_by_value(found)


FLOWS = ["curate_math", "curate_code", "train", "refresh", "loop"]


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOWS)
def test_a_flow_is_deployed_by_its_file_and_name(name: str) -> None:
    from prefect.flows import load_flow_from_entrypoint

    import flows

    path = Path(flows.__file__).parent / f"{name}.py"
    found = load_flow_from_entrypoint(f"{path}:{name}")
    assert found.name == name.replace("_", "-")
    properties = found.parameters.properties
    copied = served_copy(f"flows.{name}", name)
    assert copied.validate_parameters(dict.fromkeys(copied.parameters.required, "somewhere"))
    assert {"folder", "policy"} <= set(properties) or {"recipe", "out", "overrides"} <= set(properties)


@pytest.mark.slow
def test_a_flow_run_is_named_after_recipe_and_version(tiny_copy: Tiny, under_prefect: str) -> None:
    from prefect.client.orchestration import get_client

    from flows.curate_math import curate_math

    state = curate_math(tiny_copy.recipe, tiny_copy.folder, return_state=True)
    assert state.is_completed()
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(state.state_details.flow_run_id)
    assert run.name == "tiny v1"


@pytest.mark.slow
def test_the_loop_needs_a_trainer_and_resumes_where_it_was(tiny_copy: Tiny, under_prefect: str) -> None:
    from flows.loop import loop
    from flows.serve.unfinished import REFRESHED, training_folder

    once = loop.with_options(retries=0)
    with pytest.raises(ConfigError, match=r"name its recipe in schedule\.train"):
        once(tiny_copy.recipe, tiny_copy.folder)
    stage = training_folder(tiny_copy.folder, 1)
    (stage / "model").mkdir(parents=True)
    (stage / "model" / "config.json").write_text("{}")
    (stage / REFRESHED).write_text("1\n")  # version 1 was trained on, and its model changed nothing
    assert once(tiny_copy.recipe, tiny_copy.folder, ['schedule.train="train.toml"']) == tiny_copy.folder / "curated"
