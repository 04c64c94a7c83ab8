"""A small Ray cluster on this machine, and a node of it that dies."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@pytest.fixture(scope="package")
def cluster() -> Iterator[Any]:
    """Two nodes of Ray on this machine, one core each."""
    ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_worker_niceness", "0")  # else a busy machine starves the workers
    memory = {"object_store_memory": 100_000_000}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, **memory})
    ray.init(address=made.address, log_to_driver=False, configure_logging=False)
    yield made
    ray.shutdown()
    made.shutdown()


@contextmanager
def losing_a_node(cluster: Any, is_time: Callable[[], bool]) -> Iterator[None]:
    """A second node that is there for the block, until it is time."""
    node = cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
    cluster.wait_for_nodes()
    left = threading.Event()

    def kill() -> None:
        while not left.wait(0.005) and not is_time():
            pass
        cluster.remove_node(node, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        left.set()
        killer.join()
