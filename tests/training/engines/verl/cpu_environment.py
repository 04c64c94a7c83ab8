"""An environment over verl's own, in which verl finds the parts of `tests.training.engines.verl.on_cpu`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from training.engines.verl.environment import require_interpreter

ENVIRONMENT = {
    "RAY_OVERRIDE_RESOURCES": json.dumps({"CPU": 16, "GPU": 2}),
    "RAY_USAGE_STATS_ENABLED": "0",
    "VERL_ENGINE_DEVICE": "cuda",  # verl's FSDP engine is registered for that; its tensors are where the platform says
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}
OVERRIDES = (
    "trainer.device=cpu",
    "actor_rollout_ref.actor.fsdp_config.use_torch_compile=false",
    "actor_rollout_ref.rollout.agent.num_workers=1",
    "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
)
"""Keys of verl's for `verl.overrides`: the CPU, and as few processes as do."""

_ENTRY = "[verl.plugins]\non_cpu = tests.training.engines.verl.on_cpu\n"
_METADATA = "Metadata-Version: 2.1\nName: verl-on-cpu\nVersion: 1\n"


def make_environment(folder: Path) -> Path:
    verl = require_interpreter()
    subprocess.run([str(verl), "-m", "venv", "--without-pip", str(folder)], check=True)
    asked = [str(verl), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    theirs = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    ours = folder / "lib" / Path(theirs).parent.name / "site-packages"
    (ours / "verl.pth").write_text(f"import site; site.addsitedir({theirs!r})\n")
    about = ours / "verl_on_cpu-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(_METADATA)
    (about / "entry_points.txt").write_text(_ENTRY)
    return folder
