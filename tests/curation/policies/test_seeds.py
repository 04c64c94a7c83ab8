"""Under which key attempts are filed: what changes a text changes the key, and what does not leaves it."""

from __future__ import annotations

from curation.config.policies import TorchModel
from curation.policies.seeds import LivePolicy


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
