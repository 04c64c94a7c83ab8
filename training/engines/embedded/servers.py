"""Run vLLM servers on this machine for a training run, and restart those that die or hang.

Invariants: servers end with this process; a server keeps its address, and starts at most `MAX_STARTS` times without
becoming healthy. Servers require the run's key.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from curation.config import EndpointModel, EngineSettings, LiveModel, VllmModel
from curation.policies.vllm.engine import VISIBLE, engine_arguments, engine_environment, require_vllm, vllm_version
from curation.records import PolicyError
from curation.storage.scratch import ScratchFolder
from training.embedded_model import resolve_model
from training.engines import child_process
from training.generation import serving
from training.recipe import TrainRecipe

MAX_STARTS = 3

POLL_S, HEALTH_S = 0.5, 15.0
"""Seconds between health checks, before and after the first success."""

SILENT_S = 600.0
"""Seconds without a successful health check until a server is killed."""

_ANSWER_S = 60.0
_ERROR = re.compile(r"\w*(Error|Exception)\b")
_ERRORS_SHOWN = 2
_NO_REPLY = (OSError, HTTPException)

_ARGUMENTS = (
    *("max_num_seqs", "tensor_parallel_size", "dtype", "max_model_len", "gpu_memory_utilization"),
    *("kv_cache_memory_bytes", "enforce_eager"),
)
"""Arguments passed to servers."""


@dataclass(slots=True)
class Replica:
    """A server's GPUs, address and state."""

    number: int
    gpus: tuple[str, ...]
    port: int
    log: Path
    process: subprocess.Popen[bytes] | None = None
    healthy: bool = False
    starts: int = 0
    """Since it was last healthy."""
    deaths: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def last_errors(self) -> str:
        """Return its log's last errors in max 300 characters."""
        try:
            lines = [line.strip() for line in self.log.read_text("utf-8", "replace").splitlines() if line.strip()]
        except OSError:
            lines = []
        errors = [line for line in lines if _ERROR.search(line)] or lines
        return " / ".join(dict.fromkeys(errors[-_ERRORS_SHOWN:]))[-300:] or "it printed nothing"


class ServerProcesses:
    """All servers of one model, each watched by a thread."""

    def __init__(
        self,
        model: str,
        settings: EngineSettings,
        shares: Sequence[tuple[str, ...]],
        *,
        on_cpu: bool,
        command: Callable[[int], Sequence[str]],
    ) -> None:
        self._model, self._settings, self._on_cpu, self._command = model, settings, on_cpu, command
        self._folder = ScratchFolder("vllm")
        with ExitStack() as stack:  # each port is held until all are found
            probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in shares]
            ports = [int(probe.getsockname()[1]) for probe in probes]
        self.replicas = [
            Replica(number, gpus, port, Path(self._folder.path) / f"server-{number}.log")
            for number, (gpus, port) in enumerate(zip(shares, ports, strict=True))
        ]
        self._ending = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run all servers; the block begins when one is healthy."""
        threads = [threading.Thread(target=self._watch, args=(server,), daemon=True) for server in self.replicas]
        try:
            for thread in threads:
                thread.start()
            while not any(replica.healthy for replica in self.replicas):
                if all(replica.deaths for replica in self.replicas):
                    replica = max(self.replicas, key=lambda server: server.deaths)
                    raise PolicyError(
                        f"model {self._model}: vLLM's servers do not start; server {replica.number} ended with: "
                        f"{replica.last_errors()}."
                    )
                time.sleep(POLL_S / 10)
            yield
        finally:
            self._ending.set()
            for replica in self.replicas:
                _end(replica.process)
            for thread in threads:
                thread.join()
            self._folder.remove()

    def _watch(self, replica: Replica) -> None:
        while replica.starts < MAX_STARTS:
            replica.starts += 1
            try:
                replica.process = self._start(replica)
            except OSError as error:  # a full disk, or no more processes
                replica.deaths += 1
                print(f"model {self._model}: server {replica.number} cannot be started ({error}).", file=sys.stderr)
                return
            self._follow(replica, replica.process)
            _end(replica.process)
            if self._ending.is_set():
                return
            replica.healthy = False
            replica.deaths += 1
            print(
                f"model {self._model}: server {replica.number} ended with status "
                f"{replica.process.returncode} ({replica.last_errors()}); it is "
                f"{'restarted' if replica.starts < MAX_STARTS else 'not restarted again'}.",
                file=sys.stderr,
            )

    def _follow(self, replica: Replica, process: subprocess.Popen[bytes]) -> None:
        """Return when a server ends, or no longer answers."""
        replied_at = asked_at = time.monotonic()
        while process.poll() is None and not self._ending.wait(POLL_S):
            now = time.monotonic()
            if replica.healthy and now - asked_at < HEALTH_S:
                continue
            asked_at = now
            with closing(HTTPConnection("127.0.0.1", replica.port, timeout=_ANSWER_S)) as server, suppress(*_NO_REPLY):
                server.request("GET", "/health")
                if server.getresponse().status == 200:
                    replica.healthy, replica.starts, replied_at = True, 0, time.monotonic()
            if replica.healthy and now - replied_at > SILENT_S:
                return

    def _start(self, replica: Replica) -> subprocess.Popen[bytes]:
        own = engine_environment(self._settings, self._folder.path, self._on_cpu)
        environment = {**own, **os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
        if replica.gpus:
            environment[VISIBLE] = ",".join(replica.gpus)
        command = [sys.executable, child_process.__file__, *self._command(replica.port)]
        with replica.log.open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment)


def _end(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None:
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        process.wait()


@contextmanager
def generator_servers(
    recipe: TrainRecipe, recipe_folder: Path, shares: Sequence[tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """Start a server per share of GPUs; yield the addresses."""
    settings = recipe.trained
    if not shares or not isinstance(settings, VllmModel):
        yield ()
        return
    on_cpu, model = "cpu" in require_vllm(), resolve_model(settings.model, recipe_folder)
    command = partial(server_command, recipe, settings, model)
    servers = ServerProcesses(settings.model, settings, shares, on_cpu=on_cpu, command=command)
    has_own_key = not os.environ.get(serving.KEY)
    if has_own_key:
        os.environ[serving.KEY] = secrets.token_urlsafe(16)
    try:
        with servers.running():
            yield tuple(replica.url for replica in servers.replicas)
    finally:
        if has_own_key:
            del os.environ[serving.KEY]


def served(recipe: TrainRecipe, urls: Sequence[str]) -> EndpointModel:
    """Return the trained model's settings as an endpoint of these servers."""
    shared = {name: getattr(recipe.trained, name) for name in LiveModel.model_fields}
    shared |= {"revision": "training", "urls": tuple(urls), "api_key_env": serving.KEY}
    return EndpointModel(kind="endpoint", in_flight=-(-recipe.collector.n_async // len(urls)), **shared)


def server_command(recipe: TrainRecipe, settings: VllmModel, model: Path, port: int) -> list[str]:
    on_cpu = "cpu" in (vllm_version() or "")
    arguments = engine_arguments(str(model), recipe.collector.n_async, settings, on_cpu)
    options = ["--port", str(port)]
    for name in _ARGUMENTS:
        if (value := arguments[name]) not in (None, False):
            options += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return [sys.executable, "-m", serving.__name__, str(model), *options]
