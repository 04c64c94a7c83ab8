"""An environment over verl's own, in which verl finds the parts of `tests.training.engines.verl.on_cpu`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from training.engines.verl.environment import require_interpreter

_ENTRY = "[verl.plugins]\non_cpu = tests.training.engines.verl.on_cpu\n"
_METADATA = "Metadata-Version: 2.1\nName: verl-on-cpu\nVersion: 1\n"


def make_environment(folder: Path) -> Path:
    """Make it in ``folder`` and return its interpreter, for `verl.python`."""
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
    return folder / "bin" / "python"
