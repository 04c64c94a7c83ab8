"""Several processes of one program, as torchrun starts them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence

from tests.places import ROOT
from tests.waiting import PATIENCE_S


def run_on_ranks(program: Sequence[str], ranks: int = 2) -> None:
    """Run a script, or `-m` and a module, in that many processes; it must succeed.

    They are started once more if they hang: a thread of gloo may spin for ever in a buffer's destructor (torch 2.13).
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = ["--nnodes=1", "--master-addr=127.0.0.1", f"--master-port={port}", "--nproc-per-node", str(ranks)]
    launcher = ["-m", "torch.distributed.run", *meeting] if ranks > 1 else []
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHONWARNINGS": "ignore",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    command = [sys.executable, *launcher, *program]
    for patience_s in (PATIENCE_S / 3, PATIENCE_S):
        started = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            said = started.communicate(timeout=patience_s)[1]
        except subprocess.TimeoutExpired:
            started.terminate()  # torchrun ends its ranks
            started.communicate()
        else:
            assert started.returncode == 0, said[-3000:]
            return
    raise AssertionError(f"no end within {PATIENCE_S} s")
