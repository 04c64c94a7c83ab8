"""Programs: the sandbox's properties, foreign programs judged as outside, speed against LiveCodeBench's runner.

`GOLDILOCKS_PACKAGES` names folders of Kattis packages, `GOLDILOCKS_PEERS` a folder with a clone of LiveCodeBench.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from curation.verify.programs.tools import Runner
from curation.verify.sandbox.doctor import diagnose, working_rungs
from tests.curation.verify.programs.differential import Bare, Seen, differences, load
from tests.curation.verify.programs.foreign_styles import Style, of_data_sets, of_packages
from tests.gates.base import Limit, Measured, SkippedError, counted, gate, middle, shared
from tests.gates.program_speed import OURS, PEER, peer_runner, timed, ways_of_judging

ROUNDS, MINUTES = 25, 4.0


@gate("doctor", Limit("==", 100, "%"))
def doctor() -> Measured:
    """Return the share of the isolation's properties that hold, on every rung that works on this machine."""
    found = {rung: diagnose(rung) for rung in working_rungs()}
    if not found:
        return Measured(0, note="no rung works on this machine")
    failing = [f"{one.name} ({one.by}) on {rung}" for rung, some in found.items() for one in some if not one.ok]
    held = [f"{rung} {sum(one.ok for one in some)} of {len(some)}" for rung, some in found.items()]
    count = sum(map(len, found.values()))
    note = ", ".join(held) + "".join(f"; fails: {name}" for name in failing)
    return Measured(100 * (count - len(failing)) / count, note=note)


def _packages() -> dict[str, Style]:
    folders = os.environ.get("GOLDILOCKS_PACKAGES", "")
    return {name: style for folder in folders.split(os.pathsep) if folder for name, style in of_packages(Path(folder))}


@cache
def _programs() -> tuple[dict[str, Style], str]:
    """Return all programs, and what was left out."""
    packages = _packages()
    note = f"{len(packages)} of packages" if packages else "Kattis packages left out: GOLDILOCKS_PACKAGES names none"
    return {**of_data_sets(shared("code")), **packages}, note


def _judged_otherwise(every: int, loads: Sequence[int]) -> Measured:
    """Return how many programs have another verdict or output in a box than outside, on every rung under each load.

    Each load is a number of busy processes; a program that does not end outside is left out.
    """
    programs, packages = _programs()
    truth: dict[str, tuple[Style, Seen]] = {}
    with tempfile.TemporaryDirectory() as folder:
        bare = Bare(Path(folder))
        for name, style in list(programs.items())[::every]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                truth[name] = style, bare.run(style)
    differ, notes, rungs = set[str](), list[str](), working_rungs()
    for rung in rungs:
        with Runner(1, rung=rung) as runner:
            for busy in loads:
                with load(busy):
                    found = differences(runner, truth)
                differ |= set(found)
                notes += [f"{name} on {rung}: {words[0]}, outside {words[2]}" for name, words in found.items()]
    if not rungs:
        return Measured(len(truth), len(truth), note="no rung works on this machine")
    verdicts = {verdict: sum(seen[0] == verdict for _, seen in truth.values()) for verdict in ("AC", "RTE")}
    summary = f"{verdicts['AC']} end well outside, {verdicts['RTE']} fail; on {', '.join(rungs)}; {packages}"
    return counted(len(differ), len(truth), "; ".join([summary, *notes[:5]]))


@gate("foreign-programs", Limit("<=", 0))
def foreign() -> Measured:
    """Compare one program in 27, without other load."""
    return _judged_otherwise(27, [0])


@gate("foreign-programs-busy", Limit("<=", 0), tier="room")
def foreign_busy() -> Measured:
    """Compare one program in nine, with one busy process and with sixteen."""
    return _judged_otherwise(9, [1, 16])


@gate("foreign-programs-all", Limit("<=", 0), tier="all")
def foreign_all() -> Measured:
    """Compare every program, without other load."""
    return _judged_otherwise(1, [0])


@gate("speed", Limit(">=", 1.2, "times LiveCodeBench"), tier="room")
def speed() -> Measured:
    """Return how many times our tests per CPU second are LiveCodeBench's, of the kind of program where it is less."""
    peer = peer_runner(_peer_folder())
    with Runner(1) as runner:
        took = timed(ways_of_judging(runner, peer), ROUNDS, MINUTES)
    found = {
        kind: middle([theirs / own for own, theirs in zip(by_way[OURS], by_way[PEER], strict=True)])
        for kind, by_way in took.items()
    }
    value, interval = min(found.values())
    return Measured(value, None, interval, ", ".join(f"{kind} {ratio:.2f}" for kind, (ratio, _) in found.items()))


def _peer_folder() -> Path:
    folder = Path(os.environ.get("GOLDILOCKS_PEERS") or "peers")
    if not (folder / PEER / "lcb_runner").is_dir():
        raise SkippedError("GOLDILOCKS_PEERS names no folder with a clone of LiveCodeBench/LiveCodeBench")
    return folder
