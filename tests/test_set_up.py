"""The set-up: uv reads what pip is configured to read, and pip does what uv cannot."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / ".ci" / "setup"


@pytest.fixture
def set_up(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = spec_from_loader("set_up", SourceFileLoader("set_up", str(SCRIPT)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tools(set_up: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Stand-ins for uv and pip that write down what they are told; uv does what the file ``uv_does`` says."""
    said = tmp_path / "said"
    monkeypatch.setattr(set_up, "UV", _script(tmp_path / "uv", f'echo uv "$@" >> {said}\n. {tmp_path}/uv_does'))
    monkeypatch.setattr(set_up, "PYTHON", _script(tmp_path / "python", f'[ "$4" = config ] || echo "$@" >> {said}'))
    return said


def _script(file: Path, text: str) -> Path:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def test_pips_files_and_variables_are_read_as_pip_reads_them(
    set_up: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\nindex-url = https://a.test/simple\nfind-links = /one\ntimeout = 3\n"
        "[install]\nextra-index-url = https://me:secret@b.test/simple\n    https://c.test/simple\n[freeze]\nall = 1\n"
    )
    monkeypatch.setattr(set_up, "PYTHON", Path(sys.executable))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_FIND_LINKS", "/two /three")
    settings = set_up.pip_settings()
    assert settings["index-url"] == "https://a.test/simple"
    assert settings["find-links"] == "/two /three"
    assert "all" not in settings

    kept = ("index-url", "find-links", "timeout", "extra-index-url")
    options, variables = set_up.as_uv_reads({name: settings[name] for name in kept})
    assert sorted(options) == ["--find-links=/three", "--find-links=/two"]
    assert variables == {
        "UV_DEFAULT_INDEX": "https://a.test/simple",
        "UV_INDEX": "https://me:secret@b.test/simple https://c.test/simple",
        "UV_HTTP_TIMEOUT": "3",
    }


def test_a_setting_that_uv_might_not_honour_leaves_the_work_to_pip(set_up: Any) -> None:
    assert set_up.as_uv_reads({"quiet": "1", "no-index": "false"}) == ([], {})
    assert set_up.as_uv_reads({"no-index": "1"}) == (["--no-index"], {})
    with pytest.raises(set_up.SetupError, match="only-binary"):
        set_up.as_uv_reads({"only-binary": ":all:"})


@pytest.mark.parametrize(
    ("uv_does", "installers"), [("exit 0", ["uv"]), ("exit 1", ["uv", "-m"])], ids=["uv installs", "uv fails"]
)
def test_pip_has_the_last_word(set_up: Any, tools: Path, uv_does: str, installers: list[str]) -> None:
    (tools.parent / "uv_does").write_text(uv_does)
    set_up.install("--no-deps", "something==1")
    lines = tools.read_text().splitlines()
    assert [line.split()[0] for line in lines] == installers
    assert all(" install " in line and "--no-deps something==1" in line for line in lines)
    assert all(f"--constraint {set_up.CONSTRAINTS}" in line for line in lines)


def test_a_killed_uv_leaves_no_half_to_pip(set_up: Any, tools: Path) -> None:
    (tools.parent / "uv_does").write_text("kill -9 $$")
    with pytest.raises(set_up.SetupError) as error:
        set_up.install("something==1")
    assert error.value.killed
    assert tools.read_text().count("\n") == 1


def test_without_uv_pip_installs(set_up: Any, tools: Path) -> None:
    set_up.UV.unlink()
    set_up.install("something==1")
    assert tools.read_text().startswith("-m pip -qq")
