"""Start vLLM's server so that a training run can use it: ``python -m curation.policies.vllm.serving MODEL --port N``.

It answers with tokens, log-probabilities of what was drawn from, and the version of the weights of every token, and it
takes new weights while it generates, from a folder of safetensors that it sees (`curation.policies.vllm.worker`, so
Goldilocks must be installed where it runs). Further options go to vLLM as they are: ``--api-key``,
``--tensor-parallel-size``, ``--max-model-len``; ``--hf-overrides '{"head_dtype": "float32"}'`` for a run with
`compute.head_dtype = "float32"`.

vLLM offers weight updates in its development mode only, without asking for a key: whoever reaches the port can change
the weights. So it listens on this machine alone unless ``--host`` says otherwise: let it be a private network's.

This process becomes the server. Not here: asking it (`training.generation.vllm_client`).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from curation.policies.checkpoints import folder_carries_state
from curation.policies.vllm.startup import DRAWING, FOLDER_TRANSFER, TRAINED_WORKER, vllm_version
from curation.records import PolicyError

ENVIRONMENT = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1"}
_ON_CPU = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": "1", "TORCH_COMPILE_DISABLE": "1"}
"""As quick a start as a CPU allows: compiling a server's two small functions takes longer than its start."""


def arguments(model: str, further: Sequence[str] = (), *, on_cpu: bool) -> list[str]:
    """Return the server's arguments; ``further`` come last, so that they win.

    This is the module behind `vllm serve`: with the CPU build of vLLM 0.32.0, the command itself ends with "No package
    metadata was found for vllm", for the package has another name there.
    """
    options = {
        "--model": model,
        "--host": "127.0.0.1",
        **{f"--{name.replace('_', '-')}": value for name, value in DRAWING.items()},
        "--worker-extension-cls": TRAINED_WORKER,
        "--weight-transfer-config": json.dumps({"backend": FOLDER_TRANSFER}),
    }
    # on a CPU no prompt is read in pieces: vLLM 0.32.0 dies of a piece of a request that has a seed
    flags = ["--enable-scale-out", *(["--enforce-eager", "--no-enable-chunked-prefill"] if on_cpu else [])]
    if on_cpu and folder_carries_state(Path(model)):
        flags.append("--no-enable-prefix-caching")  # of a state, it needs prompts in pieces
    pairs = [word for pair in options.items() for word in pair]
    return ["-m", "vllm.entrypoints.openai.api_server", *flags, *pairs, *further]


def main(arguments_given: Sequence[str]) -> int:
    """Become the server; return an exit status only where that cannot be."""
    version = vllm_version()
    if not arguments_given or arguments_given[0].startswith("-"):
        print("usage: python -m curation.policies.vllm.serving MODEL [--port N] [vLLM's options]", file=sys.stderr)
        return 2
    if version is None:
        raise PolicyError("vLLM is not installed; pip install 'goldilocks-rl[vllm]' on the server's machine")
    on_cpu = "cpu" in version
    environment = {**(_ON_CPU if on_cpu else {}), **ENVIRONMENT}
    os.environ.update({name: value for name, value in environment.items() if name not in os.environ})
    os.execv(sys.executable, [sys.executable, *arguments(arguments_given[0], arguments_given[1:], on_cpu=on_cpu)])


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except PolicyError as error:
        sys.exit(str(error))
