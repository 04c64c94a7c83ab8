"""Modules that give a trainer our judge (`curation.scoring`)."""

from __future__ import annotations

from collections.abc import Mapping, Set

_VERL = '''"""The judge of this set, as verl calls it."""

from curation.scoring.trainers import verl_score

__all__ = ["verl_score"]
'''

_VERIFIERS = '''"""This set as a taskset of verifiers, named goldilocks-taskset where this folder is on PYTHONPATH."""

from pathlib import Path

from curation.scoring.consumers import verifiers


class GoldilocksTaskset(verifiers.GoldilocksTaskset):
    FILE = Path(__file__).with_name("train.parquet")


__all__ = ["GoldilocksTaskset"]
'''

_SKYRL = '''"""SkyRL's training on this set: its base entry point, with the environment registered where it is made."""

import sys

import ray
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.entrypoints.main_base import BasePPOExp
from skyrl.train.utils import validate_cfg
from skyrl.train.utils.utils import initialize_ray

from curation.scoring.consumers.skyrl import register_goldilocks


@ray.remote(num_cpus=1)
def train(config):
    register_goldilocks()
    BasePPOExp(config).run()


if __name__ == "__main__":
    config = SkyRLTrainConfig.from_cli_overrides(sys.argv[1:])
    validate_cfg(config)
    initialize_ray(config)
    ray.get(train.remote(config))
'''

_NEMO_RL = '''"""A script of NeMo RL (the first argument), run with the environment `goldilocks` registered."""

import runpy
import sys

from curation.scoring.consumers.nemo_rl import register_goldilocks

if __name__ == "__main__":
    register_goldilocks()
    sys.argv.pop(0)
    runpy.run_path(sys.argv[0], run_name="__main__")
'''

_NEMO_GYM = '''"""The resources server of this set."""

from curation.scoring.consumers.nemo_gym import GoldilocksResourcesServer

if __name__ == "__main__":
    GoldilocksResourcesServer.run_webserver()
'''

_NEMO_GYM_CONFIG = """goldilocks:
  resources_servers:
    goldilocks:
      entrypoint: app.py
      domain: {domain}
      verified: false
goldilocks_simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server:
        type: resources_servers
        name: goldilocks
      model_server:
        type: responses_api_models
        name: policy_model
      datasets:
      - name: train
        type: train
        license: {license}
        jsonl_fpath: resources_servers/goldilocks/data/train.jsonl
"""

_OPEN_INSTRUCT = '''"""A program of open-instruct (the first argument), with the verifier `goldilocks` among its own."""

import runpy
import sys

import curation.scoring.consumers.open_instruct  # noqa: F401 - open-instruct finds the class by itself

if __name__ == "__main__":
    sys.argv.pop(0)
    runpy.run_path(sys.argv[0], run_name="__main__")
'''

_NEMO_GYM_LICENSES = {
    "apache-2.0": "Apache 2.0",
    "mit": "MIT",
    "cc-by-4.0": "Creative Commons Attribution 4.0 International",
    "cc-by-sa-4.0": "Creative Commons Attribution-ShareAlike 4.0 International",
    "cc-by-nc-3.0": "CC BY-NC 3.0",
    "gpl-3.0": "GNU General Public License v3.0",
    "gpl-3.0-only": "GNU General Public License v3.0",
}
"""NeMo Gym's licence names (`DatasetConfig.license`) by SPDX name."""

_MODULES: Mapping[str, Mapping[str, str]] = {
    "verl": {"goldilocks_reward.py": _VERL},
    "verifiers": {"goldilocks_taskset.py": _VERIFIERS},
    "skyrl": {"goldilocks_main.py": _SKYRL},
    "nemo-rl": {"goldilocks_run.py": _NEMO_RL},
    "nemo-gym": {
        "resources_servers/goldilocks/app.py": _NEMO_GYM,
        "resources_servers/goldilocks/configs/goldilocks.yaml": _NEMO_GYM_CONFIG,
        "resources_servers/goldilocks/requirements.txt": "-e nemo-gym[dev] @ ../../\ngoldilocks-rl\n",
    },
    "open-instruct": {"goldilocks_run.py": _OPEN_INSTRUCT},
}


def nemo_gym_license(license: str) -> str:
    """Return NeMo Gym's name of an SPDX licence, or `TBD`."""
    return _NEMO_GYM_LICENSES.get(license.lower(), "TBD")


def modules_beside(form: str, domains: Set[str] = frozenset({"math"}), license: str = "unknown") -> Mapping[str, str]:
    """Return the files next to a format's rows, by relative path."""
    domain = {"math": "math", "code": "coding"}[next(iter(domains))] if len(domains) == 1 else "other"
    files = _MODULES.get(form, {}).items()
    return {
        name: text.replace("{domain}", domain).replace("{license}", nemo_gym_license(license)) for name, text in files
    }
