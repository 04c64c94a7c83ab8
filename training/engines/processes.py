"""Run an engine in processes that end with their parent and share one log."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from curation.policies.vllm.engine import VISIBLE
from curation.records import GoldilocksError
from training.engines import child_process
from training.engines.placement import EmbeddedPlacement

LAST_LINES = 12
"""Lines shown of a failed process."""

GRACE_S = 20.0
"""Seconds between SIGTERM and SIGKILL."""

PATIENCE_S = GRACE_S + 5.0
"""Max seconds to wait for an earlier start's processes."""

POLL_S = 1.0
"""Seconds between calls of ``watch``."""

_RANK_LINE = re.compile(r"^\[default(\d+)\]:\s?(.*)$")
"""A rank's line: ``[default1]:text``."""

_ROOT_CAUSE = re.compile(r"Root Cause.*?rank\s*:\s*(\d+)", re.DOTALL)
"""The rank that failed first, by torchrun."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


RANKS_LOG = "ranks.txt"
"""Output of the embedded engine's processes."""


class EngineError(GoldilocksError):
    """A training engine's processes failed."""


def run_processes(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    *,
    watch: Callable[[], None] = lambda: None,
    say: Callable[[str], None] | None = None,
    folder: Path | None = None,
) -> int:
    """Run a command, append its output to ``log``, and return the exit status."""
    log.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, child_process.__file__, f"--grace={GRACE_S:g}", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**environment, "PYTHONUNBUFFERED": "1"},
        cwd=folder,
    )
    reader = threading.Thread(target=_copy, args=(process, log, say), daemon=True)
    reader.start()
    try:
        while True:
            try:
                status = process.wait(POLL_S)
            except subprocess.TimeoutExpired:
                watch()
                continue
            reader.join()
            watch()
            return status
    finally:
        assert process.stdin is not None
        process.stdin.close()  # ends the command
        process.wait()


def failure(what: str, status: int, log: Path, begun: int = 0) -> EngineError:
    """Return the error of failed processes, whose output begins at byte ``begun`` of the log."""
    output = log.read_bytes()[begun:].decode("utf-8", "replace") if log.exists() else ""
    process, lines = first_failure(_COLOURS.sub("", output))
    shown = "\n".join(f"  {line}" for line in lines)
    ended = f"by signal {status - 128}" if status > 128 else f"with status {status}"
    return EngineError(f"{what} ended {ended}: {process} failed. Its last lines (all: {log}):\n{shown}")


def first_failure(text: str) -> tuple[str, list[str]]:
    """Return the rank that failed first, and its last lines."""
    lines = [line for line in text.splitlines() if line.strip()]
    cause = _ROOT_CAUSE.search(text)
    if cause is not None:
        own = [match[2] for line in lines if (match := _RANK_LINE.match(line)) and match[1] == cause[1]]
        return f"rank {cause[1]}", (own or lines)[-LAST_LINES:]
    return "a process", [_RANK_LINE.sub(r"\2", line) for line in lines][-LAST_LINES:]


def _copy(process: subprocess.Popen[bytes], log: Path, say: Callable[[str], None] | None) -> None:
    assert process.stdout is not None
    with process.stdout, log.open("ab") as file:
        for line in process.stdout:
            file.write(line)
            file.flush()
            if say is not None:
                say(line.decode(errors="replace").rstrip("\n"))


def rank_command(placement: EmbeddedPlacement, module: str, arguments: Sequence[str]) -> list[str]:
    """Return the training command, with torchrun for several processes."""
    if placement.processes == 1:
        return [sys.executable, "-m", module, *arguments]
    ranks = ["--standalone", "--local-addr=127.0.0.1", f"--nproc-per-node={placement.processes}", "--tee=3"]
    return [sys.executable, "-m", "torch.distributed.run", *ranks, "-m", module, *arguments]


def rank_environment(placement: EmbeddedPlacement, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with the visible GPUs, without another torchrun's."""
    foreign = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")
    kept = {name: value for name, value in variables.items() if name not in foreign}
    if placement.visible:
        kept[VISIBLE] = ",".join(placement.visible)
    return kept


def train_in_ranks(
    placement: EmbeddedPlacement,
    module: str,
    arguments: Sequence[str],
    out: Path,
    say: Callable[[str], None] | None = None,
) -> None:
    """Train in separate processes, which write the folder's `RANKS_LOG`."""
    log = out / RANKS_LOG
    log.unlink(missing_ok=True)  # else `failure` shows an earlier start's lines
    status = run_processes(
        rank_command(placement, module, arguments), rank_environment(placement, os.environ), log, say=say
    )
    if status:
        raise failure(f"training in {out}", status, log)
