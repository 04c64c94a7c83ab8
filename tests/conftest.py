"""What all tests share: no network, no cache outside the tests' own folders, the same random examples each time."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

from curation.storage.scratch import ScratchFolder
from tests.vllm_servers import VllmServers

pytest_plugins = ["tests.cpu_durations"]

# The data-set library reads its environment once, when it is imported: hence here, and not in a fixture.
TEMPORARY = tempfile.gettempdir()
SCRATCH = ScratchFolder("tests")
atexit.register(SCRATCH.remove)
os.environ["HF_DATASETS_CACHE"] = SCRATCH.path
os.environ["HF_HUB_OFFLINE"] = "1"

# What processes that tests kill leave behind goes with the tests. Folders of tests themselves stay, to be looked at.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", TEMPORARY)
os.environ.setdefault("RAY_TMPDIR", TEMPORARY)  # names of its sockets are long
os.environ["TMPDIR"] = tempfile.tempdir = SCRATCH.path

settings.register_profile("house", deadline=None, max_examples=100, derandomize=True)
settings.load_profile("house")


@pytest.fixture(scope="session")
def vllm_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServers]:
    """Real vLLM servers for all tests that ask some; none is started before the first of them."""
    servers = VllmServers(tmp_path_factory.mktemp("servers"))
    yield servers
    servers.close()
