"""A Ray cluster that asks for a token: what is sent to it, and what is said where it refuses."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from curation.records import StoreError
from tests.flows.conftest import free_port
from tests.training.engines.verl.test_stages import recipe
from tests.waiting import wait_until
from training.engines.processes import EngineError
from training.engines.verl.environment import missing, require_interpreter
from training.engines.verl.ray_access import token_variables
from training.engines.verl.run import train

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


JOINS = """#!/bin/sh
case "$*" in *--check) exit 0;; esac
exec "PYTHON" -c "from ray._raylet import GcsClient; print('joined', GcsClient(address='HEAD').get_all_node_info())"
"""


@pytest.fixture
def head(tmp_path: Path) -> Iterator[str]:
    """The address of a real Ray cluster's head, as far as it asks for `TOKEN`: its server of addresses, no node."""
    code = "import ray; print(ray.__path__[0])"
    asked = [str(require_interpreter()), "-c", code]
    program = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    port = free_port()
    told = {"gcs_server_port": port, "log_dir": tmp_path, "config_list": "e30=", "node-ip-address": "127.0.0.1"}
    command = [str(program / "core/src/ray/gcs/gcs_server"), *(f"--{name}={value}" for name, value in told.items())]
    environment = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_until(lambda: is_listened_on(port), server)
            yield f"127.0.0.1:{port}"
        finally:
            server.kill()


def is_listened_on(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_real_cluster_that_asks_for_a_token_takes_that_of_the_environment(
    head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joins, out = JOINS.replace("PYTHON", str(require_interpreter())).replace("HEAD", head), tmp_path / "run"
    monkeypatch.setenv("HOME", str(tmp_path))  # where Ray looks for a token of its own
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    made = recipe(tmp_path, verl={"gpus_per_node": 8, "ray_address": head})
    (tmp_path / "bin" / "python").write_text(joins)
    with pytest.raises(EngineError, match="asks for a token, and this run sent none or another"):
        train(made, tmp_path, out)
    (tmp_path / "token").write_text(TOKEN)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    with pytest.raises(StoreError, match="left no model"):  # it joined, and trained nothing
        train(made, tmp_path, out, resume=True)
    assert (out / "verl" / "log.txt").read_text().splitlines()[-1] == "joined {}"
