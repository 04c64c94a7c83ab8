"""Make verl's own environment, and find its interpreter.

    python -m training.engines.verl.environment    make it (as `make setup-verl`), or print its interpreter

verl needs Python below 3.13, transformers below 5.11 and tensordict up to 0.10. The project is installed there too, for
our plugin. Without an NVIDIA driver the environment gets torch's CPU build, which cannot train.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from curation.policies.vllm.engine import visible_gpus
from curation.records import ConfigError

VERSION = "0.9.1"
VARIABLE = "GOLDILOCKS_VERL"
"""Environment variable for another folder."""

PYTHON = "bin/python"
RAY_TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")

_ROOT = Path(__file__).resolve().parents[3]

CORE = (
    f"verl=={VERSION}",
    "transformers>=5.5.3,<5.11,!=5.6.0",
    "TransferQueue>=0.1.10,<0.2",
    *"ray[default]==2.60.0 pyzmq msgspec fastapi uvicorn cachetools nvtx".split(),
)
WITHOUT_GPU = ("torch==2.13.0+cpu",)
WITH_GPU = ("torch==2.11.0", "vllm==0.24.0", "transformers==5.9.0", "cupy-cuda13x==14.0.1")
"""verl's pins. Install its extra `megatron` (for experts) and flash-attn by hand."""


def verl_folder() -> Path:
    """Return verl's environment folder: ${GOLDILOCKS_VERL}, or one in the user's cache."""
    return Path(os.environ.get(VARIABLE) or "~/.cache/goldilocks/verl").expanduser()


def missing() -> str:
    """Return why verl cannot be used, or an empty text."""
    if (verl_folder() / PYTHON).exists():
        return ""
    return (
        f"{verl_folder()}: there is no environment of verl; make it with `python -m training.engines.verl.environment` "
        f"(`make setup-verl`), or name its folder in ${VARIABLE}."
    )


def require_interpreter() -> Path:
    if why := missing():
        raise ConfigError(why)
    return verl_folder() / PYTHON


def process_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of verl's processes."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return {**kept, "PYTHONPATH": str(_ROOT), "HYDRA_FULL_ERROR": "1", **variables}


def make(folder: Path, *, gpu: bool) -> None:
    """Make or replace the environment; remove it on failure."""
    if sys.version_info >= (3, 13):
        raise ConfigError(
            f"verl {VERSION} needs Python below 3.13 and this is {sys.version.split()[0]}; run this with another, as "
            "in `python3.12 -m training.engines.verl.environment`."
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    python = folder / PYTHON
    subprocess.run([getattr(sys, "_base_executable", sys.executable), "-m", "venv", str(folder)], check=True)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "uv"], check=True)
        ours = ["--editable", str(_ROOT)] if (_ROOT / "pyproject.toml").is_file() else ["goldilocks-rl"]
        packages = [*CORE, *(WITH_GPU if gpu else WITHOUT_GPU), *ours]
        command = [str(folder / "bin" / "uv"), "pip", "install", "--python", str(python), *_indexes(python), *packages]
        subprocess.run(command, check=True)
        stack.pop_all()


def _indexes(python: Path) -> Sequence[str]:
    """Return pip's configured indexes as uv's arguments; uv ignores pip's settings."""
    listed = subprocess.run([str(python), "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    names = {"index-url": "--index-url", "extra-index-url": "--extra-index-url", "find-links": "--find-links"}
    arguments = ["--index-strategy", "unsafe-best-match"]
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        option = names.get(key.rpartition(".")[2])
        for url in value.strip("'\"").split() if option is not None else ():
            arguments += [str(option), url]
    return arguments


def main() -> None:
    """Make a missing environment; print its interpreter."""
    if missing():
        make(verl_folder(), gpu=bool(visible_gpus()))
    print(f"verl {VERSION}: {require_interpreter()}")


if __name__ == "__main__":
    try:
        main()
    except (ConfigError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))
