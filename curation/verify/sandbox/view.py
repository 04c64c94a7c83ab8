"""Defines what a box sees of the host: the toolchain, read only."""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/etc/ld.so.cache")
ZONES = "/usr/share/zoneinfo"
COMPILERS = ("/bin", "/usr/bin", "/usr/libexec", "/usr/include", "/usr/local/bin", "/usr/local/include")
LINKS = ("/etc/alternatives",)
TASKS = "reasoning_gym"
"""Package whose scorers import others; ``tasks`` slots see its whole parent folder."""


@dataclass(frozen=True, slots=True)
class SandboxView:
    """Visible paths, hidden ones within them, and a folder for ``sys.path``."""

    binds: tuple[str, ...]
    hidden: tuple[str, ...]
    packages: str


def interpreter() -> str:
    """Return the bare interpreter below a virtual environment."""
    return str(getattr(sys, "_base_executable", None) or sys.executable)


def numpy_site_packages() -> Path | None:
    """Return the packages folder with numpy, without importing it."""
    return _site_packages("numpy")


def _site_packages(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent.parent if spec and spec.origin else None


def _without_nested(paths: list[str]) -> tuple[str, ...]:
    outermost: list[str] = []
    for path in paths:
        here = Path(path)
        inside = any(here != Path(other) and here.is_relative_to(other) for other in paths)
        if here.exists() and not inside and path not in outermost:
            outermost.append(path)
    return tuple(outermost)


def build_view(kind: str, tools: Path | None) -> SandboxView:
    """Return the view for a kind of slot: ``std``, ``numpy``, ``tasks`` or ``compile``."""
    base = Path(sys.base_prefix)
    names = {name: str(base) for name in ("base", "platbase", "installed_base", "installed_platbase")}
    stdlib = [sysconfig.get_path(name, vars=names) for name in ("stdlib", "platstdlib")]
    paths = [*LIBRARIES, ZONES, *stdlib]
    if base != Path("/usr"):
        paths.append(str(base / "lib"))
    packages = numpy_site_packages() if kind == "numpy" else _site_packages(TASKS) if kind == "tasks" else None
    if packages is not None:
        paths += [str(packages)] if kind == "tasks" else [str(packages / "numpy"), str(packages / "numpy.libs")]
    if kind == "compile":
        paths += [*COMPILERS, *LINKS, *([str(tools.resolve())] if tools else [])]
    places = [*(f"{folder}/site-packages" for folder in dict.fromkeys(stdlib)), "/usr/lib/python3/dist-packages"]
    hidden = [place for place in places if Path(place).is_dir() and packages != Path(place)]
    return SandboxView(_without_nested(paths), tuple(hidden), str(packages or ""))
