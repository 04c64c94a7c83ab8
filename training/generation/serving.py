"""Start vLLM's server for a training run: ``python -m training.generation.serving MODEL --port N``.

It takes new weights while it generates (`training.generation.vllm_worker`, so Goldilocks must be installed there).

vLLM takes weights in its development mode only, which its own key does not protect. So `ServerGuard` wraps the server:
with a key in VLLM_API_KEY, or ``--api-key``, every request but ``/health`` needs it; without one only this machine is
answered, and ``--host`` must not name another.
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
    """Refuse requests without the key or, if there is no key, from other machines."""

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
    # on a CPU no prompt is read in pieces: vLLM 0.32.0 dies of a piece of a request that has a seed
    flags = ["--enable-scale-out", *(["--enforce-eager", "--no-enable-chunked-prefill"] if on_cpu else [])]
    if on_cpu and folder_carries_state(Path(model)):
        flags.append("--no-enable-prefix-caching")  # of a state, it needs prompts in pieces
    pairs = [word for pair in options.items() for word in pair]
    return ["-m", "vllm.entrypoints.openai.api_server", *flags, *pairs, *further]


def main(arguments_given: Sequence[str]) -> int:
    """Become the server; return an exit status only for wrong arguments."""
    if not arguments_given or arguments_given[0].startswith("-"):
        print("usage: python -m training.generation.serving MODEL [--port N] [vLLM's options]", file=sys.stderr)
        return 2
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument("--api-key", "--api_key")
    options.add_argument("--host", default="127.0.0.1")
    known, further = options.parse_known_args(arguments_given[1:])
    if known.api_key is not None:
        os.environ[KEY] = known.api_key  # not among the arguments, which other accounts could read
    if known.host not in LOCAL and not os.environ.get(KEY):
        raise PolicyError(
            f"--host {known.host}: anyone who reaches this port may change the weights; set {KEY} to a key here, and "
            "api_key_env of its model in the training recipe to the variable."
        )
    on_cpu = "cpu" in require_vllm()
    environment = {**(CPU_ENVIRONMENT if on_cpu else {}), **ENVIRONMENT}
    os.environ.update({name: value for name, value in environment.items() if name not in os.environ})
    os.execv(
        sys.executable,
        [sys.executable, *arguments(arguments_given[0], ["--host", known.host, *further], on_cpu=on_cpu)],
    )


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except PolicyError as error:
        sys.exit(str(error))
