"""A Ray cluster that asks for a token: what is sent to it, and what is said where it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.engines.verl.test_stages import recipe
from training.engines.processes import EngineError
from training.engines.verl.run import token_variables, train

TOKEN = "sesame-sesame-sesame-sesame-1234"


def test_a_token_that_is_named_is_sent_and_nothing_else_changes() -> None:
    assert token_variables("10.0.0.7:6379", {"RAY_AUTH_TOKEN": TOKEN}) == {"RAY_AUTH_MODE": "token"}
    assert token_variables("auto", {"RAY_AUTH_TOKEN_PATH": "/etc/token"}) == {"RAY_AUTH_MODE": "token"}
    assert token_variables("auto", {}) == token_variables("auto", {"RAY_AUTH_TOKEN": ""}) == {}
    assert token_variables("auto", {"RAY_AUTH_TOKEN": TOKEN, "RAY_AUTH_MODE": "disabled"}) == {}
    assert token_variables(None, {"RAY_AUTH_TOKEN": TOKEN}) == {}


INSIDE = """#!/bin/sh
case "$*" in *--check) exit 0;; esac
echo "gcs_client.cc:210: Failed to get cluster ID: RPC error: InvalidAuthToken: Authentication token is missing"
echo "ConnectionError: Failed to connect to Ray cluster at 10.0.0.7:6379"
exit 1
"""


def test_a_refused_token_is_told_in_a_sentence_and_an_earlier_start_is_not_taken_for_this_one(tmp_path: Path) -> None:
    made = recipe(tmp_path, verl={"gpus_per_node": 8, "ray_address": "10.0.0.7:6379"})
    python, out = tmp_path / "bin" / "python", tmp_path / "run"
    python.write_text(INSIDE)
    with pytest.raises(EngineError, match=r"^verl\.ray_address = '10\.0\.0\.7:6379': .* asks for a token"):
        train(made, tmp_path, out)
    python.write_text(INSIDE.replace("InvalidAuthToken", "the machine is gone"))
    with pytest.raises(EngineError, match="its only process failed") as failed:
        train(made, tmp_path, out, resume=True)
    assert "InvalidAuthToken" not in str(failed.value)
