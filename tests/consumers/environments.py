"""Environments of other trainers: their own packages or sources, in folders in front of this project's packages.

    .venv/bin/python -m tests.consumers.environments [--list] [TRAINER …]

Neither `make setup`, tests nor CI installs this; the gate `exports/trainers` leaves out what is missing. Packages
are installed without what they depend on (torch, transformers and datasets are this project's own) into
`GOLDILOCKS_CONSUMERS`. Trainers that no registry has are read from a clone that you make in FOLDER/src/NAME.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.places import ROOT
from training.engines.verl import environment as verl_environment

FOLDER = Path(os.environ.get("GOLDILOCKS_CONSUMERS", "~/.cache/goldilocks/consumers")).expanduser()


LIMIT_S = 1200
"""Of one trainer's process."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What a trainer is read from, a table of `environments.toml`."""

    folder: str = ""
    packages: str = ""
    repository: str = ""
    commit: str = ""
    shared: bool = False
    also: Sequence[str] = ()


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
TRAINERS = {name: Environment(**table) for name, table in _TABLES["trainers"].items()}


def folders_of(name: str) -> list[Path]:
    """The folders that a trainer's process puts in front of this project's packages."""
    environment = TRAINERS[name]
    if not environment.folder:
        return []
    names = [environment.folder, *environment.also, *(["shared"] if environment.shared else [])]
    return [FOLDER / folder for folder in names]


def missing(name: str) -> str:
    """Why a trainer cannot be tried here; empty where it can."""
    if name == "verl":
        return verl_environment.missing()
    absent = ", ".join(str(folder) for folder in folders_of(name) if not folder.is_dir())
    return absent and f"{absent} is not there; make it with python -m tests.consumers.environments {name}"


def python_of(name: str) -> str:
    """The interpreter that a trainer runs under."""
    return str(verl_environment.require_interpreter()) if name == "verl" else sys.executable


def environment_of(name: str) -> dict[str, str]:
    """The variables of a process that runs inside a trainer's environment."""
    path = os.pathsep.join(map(str, [ROOT, *folders_of(name)]))  # some trainers ship a package `tests` of their own
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


def install(folder: Path, packages: Sequence[str]) -> None:
    """Install packages without what they depend on; the folder appears when all are there."""
    aside = folder.with_name(folder.name + ".unfinished")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--upgrade"]
    subprocess.run([*command, "--target", str(aside), *packages], check=True)
    aside.rename(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trainers", nargs="*", metavar="TRAINER")
    parser.add_argument("--list", action="store_true", help="only report what is there")
    options = parser.parse_args()
    for name in options.trainers or TRAINERS:
        environment = TRAINERS[name]
        if name == "verl" and missing(name) and not options.list:
            verl_environment.make(verl_environment.verl_folder(), gpu=False)
        packages = {FOLDER / environment.folder: environment.packages}
        packages |= {FOLDER / other: TRAINERS[other].packages for other in environment.also}
        packages |= {FOLDER / "shared": _TABLES["shared"]} if environment.shared else {}
        for folder, words in packages.items():
            if words and not folder.is_dir() and not options.list:
                install(folder, words.split())
        clone = f"; clone {environment.repository} there at {environment.commit}" if environment.repository else ""
        print(f"{name}: " + (f"{missing(name)}{clone}" if missing(name) else "there"))


if __name__ == "__main__":
    main()
