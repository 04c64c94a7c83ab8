"""Loads a user's objects: `my_file.py:name` or `package.module:name`.

Invariant: a fingerprint includes the plug-in's digest, which omits imported files.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from curation.records import ConfigError


@dataclass(frozen=True, slots=True)
class Plugin:
    """An object, its file's path and digest."""

    value: Any
    digest: str
    path: Path

    def failure(self, error: Exception) -> str:
        """Return its error with file and line."""
        return f"{_location(error, self.path)}: {type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True)
class PluginRef:
    """A picklable reference to a plug-in."""

    name: str
    folder: str
    digest: str

    @property
    def label(self) -> str:
        """Return `chem.py:FORMULA@5e1c…`."""
        return f"{self.name.rpartition('/')[2]}@{self.digest}"

    def load(self) -> Plugin:
        """Load the plug-in, once per process.

        Raises:
            ConfigError: its file has changed.
        """
        return _loaded(self)


@cache
def _loaded(ref: PluginRef) -> Plugin:
    plugin = load_plugin(ref.name, Path(ref.folder))
    if plugin.digest != ref.digest:
        raise ConfigError(f"the file of {ref.name} has changed since this run started; start again.")
    return plugin


def load_plugin(name: str, folder: Path) -> Plugin:
    """Return the object that a recipe in this folder names.

    Raises:
        ConfigError: it cannot be loaded.
    """
    origin, _, attribute = name.rpartition(":")
    if not origin or not attribute.isidentifier():
        raise ConfigError(f"{name!r} is not a plug-in; write my_file.py:name or package.module:name")
    module, path = _from_file(name, origin, folder) if origin.endswith(".py") else _from_module(name, origin)
    if not hasattr(module, attribute):
        near = get_close_matches(attribute, [known for known in vars(module) if not known.startswith("_")], 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(f"{name}: {path} does not define {attribute}{hint}")
    return Plugin(getattr(module, attribute), hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest(), path)


def find_plugin(name: str, folder: Path, setting: str, protocol: type, needed: str) -> PluginRef:
    """Return the plug-in that a setting names.

    Args:
        protocol: a runtime-checkable Protocol.
        needed: the protocol in words.

    Raises:
        ConfigError: it cannot be loaded, is a class, or lacks a method.
    """
    plugin = load_plugin(name, folder)
    if isinstance(plugin.value, type) or not isinstance(plugin.value, protocol):
        kind = "a class" if isinstance(plugin.value, type) else f"a {type(plugin.value).__name__}"
        raise ConfigError(f"{setting}: {name} is {kind}; it must be {needed}.")
    return PluginRef(name, str(folder.resolve()), plugin.digest)


def _from_file(name: str, origin: str, folder: Path) -> tuple[ModuleType, Path]:
    path = (folder / origin).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ConfigError(f"{name}: {path} is outside of the recipe's folder; move it there")
    if not path.is_file():
        raise ConfigError(f"{name}: there is no file {path}")
    module_name = f"goldilocks_plugin_{hashlib.blake2b(str(path).encode(), digest_size=8).hexdigest()}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and pickle look it up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        raise ConfigError(f"{name}: {_location(error, path)}: {type(error).__name__}: {error}") from error
    return module, path


def _from_module(name: str, origin: str) -> tuple[ModuleType, Path]:
    try:
        module = importlib.import_module(origin)
    except Exception as error:
        raise ConfigError(f"{name}: {_location(error, None)}: {type(error).__name__}: {error}") from error
    file = getattr(module, "__file__", None)
    if file is None:
        raise ConfigError(f"{name}: {origin} has no file, so its content cannot be part of a fingerprint")
    return module, Path(file)


def _location(error: Exception, path: Path | None) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if path is not None and frame.filename == str(path)] or frames
    return f"{own[-1].filename}:{own[-1].lineno}"
