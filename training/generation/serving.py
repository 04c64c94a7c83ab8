"""Start vLLM's server for a training run: ``python -m training.generation.serving MODEL --port N``.

It takes new weights while it generates (`training.generation.vllm_worker`).

This needs vLLM's development mode, which vLLM's key does not protect. So `ServerGuard` wraps the server: with a key in
VLLM_API_KEY, or ``--api-key``, all requests but ``/health`` need it; without one only this machine is served.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from curation.policies.checkpoints import folder_carries_state
from curation.policies.vllm.engine import CPU_ENVIRONMENT, DRAWING, require_vllm
from curation.records import PolicyError
from curation.server_guard import LOCAL, App, KeyGuard
from training.generation.weight_transfer import FOLDER_TRANSFER, WORKER

KEY = "VLLM_API_KEY"

ENVIRONMENT = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1"}


class ServerGuard(KeyGuard):
    """Refuses requests without the key or, if there is none, from other machines."""

    def __init__(self, app: App) -> None:
        super().__init__(app, os.environ.get(KEY))


def arguments(model: str, further: Sequence[str] = (), *, on_cpu: bool) -> list[str]:
    """Return the arguments for `vllm serve`'s module; ``further`` win."""
    options = {
        "--model": model,
        "--host": "127.0.0.1",
        **{f"--{name.replace('_', '-')}": value for name, value in DRAWING.items()},
        "--middleware": "training.generation.serving.ServerGuard",
        "--worker-extension-cls": WORKER,
        "--weight-transfer-config": json.dumps({"backend": FOLDER_TRANSFER}),
    }
    # on a CPU without chunked prefill: vLLM 0.32.0 crashes on a chunk of a request with a seed
    flags = ["--enable-scale-out", *(["--enforce-eager", "--no-enable-chunked-prefill"] if on_cpu else [])]
    if on_cpu and folder_carries_state(Path(model)):
        flags.append("--no-enable-prefix-caching")  # for a state it needs chunked prefill
    pairs = [word for pair in options.items() for word in pair]
    return ["-m", "vllm.entrypoints.openai.api_server", *flags, *pairs, *further]


def main(command_line: Sequence[str]) -> int:
    """Replace this process by the server; return an exit status only for wrong arguments."""
    if not command_line or command_line[0].startswith("-"):
        print("usage: python -m training.generation.serving MODEL [--port N] [vLLM's options]", file=sys.stderr)
        return 2
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument("--api-key", "--api_key")
    options.add_argument("--host", default="127.0.0.1")
    known, further = options.parse_known_args(command_line[1:])
    if known.api_key is not None:
        os.environ[KEY] = known.api_key  # not in the arguments, which other users can read
    if known.host not in LOCAL and not os.environ.get(KEY):
        raise PolicyError(
            f"--host {known.host}: anyone who reaches this port may change the weights; set {KEY} to a key here, and "
            "its model's api_key_env in the training recipe to that variable."
        )
    on_cpu = "cpu" in require_vllm()
    environment = {**(CPU_ENVIRONMENT if on_cpu else {}), **ENVIRONMENT}
    os.environ.update({name: value for name, value in environment.items() if name not in os.environ})
    os.execv(
        sys.executable,
        [sys.executable, *arguments(command_line[0], ["--host", known.host, *further], on_cpu=on_cpu)],
    )


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except PolicyError as error:
        sys.exit(str(error))
