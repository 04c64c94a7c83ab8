"""In verl's environment, compose a run's configuration, have verl check it, and start its trainer.

    PYTHON -m training.engines.verl.inside RUN/verl/job.json            train
    PYTHON -m training.engines.verl.inside RUN/verl/job.json --check    only compose and check; print the file

The job is from `configuration.compile_recipe`. The exit status is 2 if verl refuses the configuration.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any


def compose(job: dict[str, Any]) -> Any:
    """Return verl's configuration with the job's values; raise for unknown keys."""
    import verl
    import yaml
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from omegaconf import OmegaConf, open_dict

    folder = Path(verl.__file__).parent / "trainer" / "config"
    with initialize_config_dir(str(folder), version_base=None):
        config = hydra_compose("ppo_trainer", overrides=list(job["groups"]))
    OmegaConf.set_struct(config, True)
    config.merge_with(OmegaConf.load(Path(__file__).with_name("fixed.yaml")))
    for key, value in job["values"].items():
        OmegaConf.update(config, key, value)
    with open_dict(config):
        for key, value in job["added"].items():
            OmegaConf.update(config, key, value)
    for override in job["overrides"]:
        key, _, value = override.partition("=")
        OmegaConf.update(config, key, yaml.safe_load(value))
    _choose_attention(config)
    return config


def _choose_attention(config: Any) -> None:
    """Use torch's attention without flash-attn; raise ValueError if sequence parallelism needs it."""
    from omegaconf import open_dict

    actor, model = config.actor_rollout_ref.actor, config.actor_rollout_ref.model
    has_flash = importlib.util.find_spec("flash_attn") is not None
    if actor.strategy == "megatron" or has_flash or "attn_implementation" in model.override_config:
        return
    if actor.ulysses_sequence_parallel_size > 1:
        raise ValueError(
            "verl.sequence_parallel > 1 needs flash-attn in verl's environment; install it there, or set 1"
        )
    with open_dict(config):
        model.override_config.attn_implementation = "sdpa"


def check(config: Any) -> None:
    from omegaconf import OmegaConf
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    OmegaConf.resolve(OmegaConf.create(OmegaConf.to_container(config)))
    validate_config(config, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config))
    actor = config.actor_rollout_ref
    for section in (actor.actor, actor.rollout, actor.model, config.algorithm):
        omega_conf_to_dataclass(section)


def main() -> int:
    """Compose, check, and train unless ``--check`` is given; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("job", type=Path)
    parser.add_argument("--check", action="store_true", help="only compose and check")
    options = parser.parse_args()
    job = json.loads(options.job.read_text(encoding="utf-8"))
    os.environ.update(job["environment"])
    from omegaconf import OmegaConf

    try:
        config = compose(job)
        check(config)
    except Exception as error:  # noqa: BLE001 - any error of verl is about the configuration
        reason = " ".join(str(error).split())
        print(f"verl refuses the configuration: {type(error).__name__}: {reason}", file=sys.stderr)
        return 2
    composed = options.job.with_name("config.yaml")
    OmegaConf.save(config, composed)
    if options.check:
        print(composed)
        return 0
    from verl.trainer.main_ppo import TaskRunnerV1, run_ppo
    from verl.utils.device import auto_set_device

    auto_set_device(config)
    run_ppo(config, task_runner_class=TaskRunnerV1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
