"""Environments of other trainers: their own packages or sources, in folders before this project's packages.

    .venv/bin/python -m tests.consumers.environments [TRAINER …]     lay them; all, where none is named
    .venv/bin/python -m tests.consumers.environments --list

Neither `make setup`, tests nor CI installs this; the gate `exports/trainers` leaves out what is missing. Packages
are installed without what they depend on (torch, transformers and datasets are this project's own) into
`GOLDILOCKS_CONSUMERS`, or ~/.cache/goldilocks/consumers; what their loaders and scorers import besides is named below.
Trainers that no registry has are read from a clone that you make: `git clone` of the repository to
FOLDER/src/NAME, at the commit that stands here. verl has a whole environment, the one that its engine runs in.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from training.engines.verl import environment as verl_environment

FOLDER = Path(os.environ.get("GOLDILOCKS_CONSUMERS", "~/.cache/goldilocks/consumers")).expanduser()


LIMIT_S = 1200
"""Of one trainer's process."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What a trainer is read from.

    Args:
        folder: its place under `FOLDER`.
        packages: as pip takes them; the first is the trainer's own.
        repository: on GitHub, of a trainer that is read from source, and the commit that was tried.
        shared: packages that several need, `SHARED`, too.
        also: further folders.
    """

    folder: str
    packages: Sequence[str] = ()
    repository: str = ""
    commit: str = ""
    shared: bool = False
    also: Sequence[str] = ()


SHARED = (
    "ray tensordict torchdata codetiming hydra-core omegaconf antlr4-python3-runtime==4.9.3 pylatexenc tenacity dill "
    "langdetect nltk jsonlines msgpack flask itsdangerous blinker immutabledict fastuuid distro devtools asttokens "
    "executing mlflow-skinny pandas python-dateutil accelerate wandb pyvers aiofiles more_itertools beaker-py==1.36.0 "
    "yappi pytz six litellm loguru importlib_metadata zipp cachetools platformdirs pydot pyparsing TransferQueue peft "
    "modelscope modelscope_hub func-timeout soundfile imageio scipy"
).split()

TRAINERS: Mapping[str, Environment] = {
    "verl": Environment(""),
    "trl": Environment("trl", ("trl==1.16.0",)),
    "verifiers": Environment(
        "verifiers",
        (
            *("verifiers==0.4.0 prime-pydantic-config prime-runs prime-sandboxes prime-tunnel renderers".split()),
            *("httpx2 httpcore2 pyzmq gepa mcp dirhash tenacity loguru uvloop pyqwest aiofiles".split()),
            *("connectrpc>=0.11.1,<0.12 protobuf-py==0.1.1 protobuf-py-ext==0.1.1".split()),
        ),
    ),
    "openrlhf": Environment("openrlhf", ("openrlhf==0.11.2",), shared=True),
    "areal": Environment("areal", ("areal==1.0.4",), shared=True),
    "skyrl": Environment("skyrl", ("skyrl==0.3.0",), shared=True, also=("skyrl-gym",)),
    "skyrl-gym": Environment("skyrl-gym", ("skyrl-gym==0.4.0",)),
    "tinker": Environment(
        "tinker-cookbook",
        (
            *("tinker-cookbook==0.6.1 chz blobfile pyrage termcolor tml-renderers tinker renderers".split()),
            *("cloudpickle distro".split()),
        ),
    ),
    "art": Environment(
        "openpipe-art",
        (
            *("openpipe-art==0.5.18 litellm nest-asyncio tblib weave fastuuid importlib_metadata zipp".split()),
            *("cloudpickle tenacity lazy-importer lazy_imports".split()),
        ),
    ),
    "slime": Environment("src/slime", (), "THUDM/slime", "624b824a898ab0ec1fcb4d373004c7f3852bf515", shared=True),
    "nemo-rl": Environment("src/RL", (), "NVIDIA-NeMo/RL", "7ea279abfbeb698b092856d0dab61e7cf39bc909", shared=True),
    "nemo-gym": Environment("src/Gym", (), "NVIDIA-NeMo/Gym", "07d6b0d07b22fcf530b4c211dae2ee23100428e4", shared=True),
    "open-instruct": Environment(
        "src/open-instruct", (), "allenai/open-instruct", "e6c3044aa6201c8bfa4573c1b03142af599e730d", shared=True
    ),
    "roll": Environment("src/ROLL", (), "alibaba/ROLL", "8eb27cc2dc34c4d1310b169d9b86d339004d811a", shared=True),
}
"""By the format's name; skyrl-gym is a part of SkyRL. verl has the environment that
its engine runs in."""


def folders_of(name: str) -> list[Path]:
    """The folders that a trainer's process puts before this project's packages."""
    environment = TRAINERS[name]
    if not environment.folder:
        return []
    names = [environment.folder, *environment.also, *(["shared"] if environment.shared else [])]
    return [FOLDER / folder for folder in names]


def missing(name: str) -> str:
    """Why a trainer cannot be tried here; empty where it can."""
    if name == "verl":
        return verl_environment.missing()
    absent = [str(folder) for folder in folders_of(name) if not folder.is_dir()]
    if not absent:
        return ""
    return f"{', '.join(absent)} is not there; python -m tests.consumers.environments {name} says how to lay it"


def python_of(name: str) -> str:
    """The interpreter that a trainer runs under."""
    return str(verl_environment.require_interpreter()) if name == "verl" else sys.executable


def environment_of(name: str) -> dict[str, str]:
    """The variables of a process that runs inside a trainer's environment."""
    # the root comes first: some trainers ship a package `tests` of their own
    root = Path(__file__).resolve().parent.parent.parent
    path = os.pathsep.join(map(str, [root, *folders_of(name)]))
    quiet = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return {**os.environ, **quiet, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore", "TOKENIZERS_PARALLELISM": "false"}


def rewards_inside(name: str, export: Path, responses: Sequence[tuple[str, str]], scratch: Path) -> list[float]:
    """Return the rewards of (problem, response) pairs by a trainer's own loader and call, in its environment.

    Raises:
        RuntimeError: its process failed; the text is the end of its standard error.
    """
    asked, answered = scratch / f"{name}.jsonl", scratch / f"{name}.json"
    asked.write_text("\n".join(json.dumps({"id": problem, "text": text}) for problem, text in responses))
    command = [python_of(name), "-m", "tests.consumers.inside", name, str(export), str(asked), str(answered)]
    done = subprocess.run(
        command, env=environment_of(name), cwd=scratch, capture_output=True, text=True, timeout=LIMIT_S
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-3000:]}")
    rewards: list[float] = json.loads(answered.read_text())
    return rewards


def lay(folder: Path, packages: Sequence[str]) -> None:
    """Install packages without what they depend on; the folder appears when all are there."""
    aside = folder.with_name(folder.name + ".unfinished")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--upgrade"]
    subprocess.run([*command, "--target", str(aside), *packages], check=True)
    aside.rename(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trainers", nargs="*", metavar="TRAINER")
    parser.add_argument("--list", action="store_true", help="only say what is there")
    options = parser.parse_args()
    for name in options.trainers or TRAINERS:
        environment = TRAINERS[name]
        if name == "verl" and missing(name) and not options.list:
            verl_environment.make(verl_environment.verl_folder(), gpu=False)
        places = {FOLDER / environment.folder: environment.packages} if environment.folder else {}
        places |= {FOLDER / other: TRAINERS[other].packages for other in environment.also}
        places |= {FOLDER / "shared": SHARED} if environment.shared else {}
        for folder, packages in places.items():
            if packages and not folder.is_dir() and not options.list:
                lay(folder, packages)
        clone = f"; clone {environment.repository} there at {environment.commit}" if environment.repository else ""
        print(f"{name}: " + (f"{missing(name)}{clone}" if missing(name) else "there"))


if __name__ == "__main__":
    main()
