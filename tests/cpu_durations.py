"""`pytest --cpu-durations=N`: the N tests that took most CPU time, their processes included; wall times lie under load.

What a process that a test left running uses later counts for the test that runs then.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import psutil
import pytest

SPENT: dict[str, float] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-durations", type=int, default=0, metavar="N", help="show the N tests of most CPU time")


def cpu_s() -> float:
    """Return the CPU seconds so far of this process and of all below it, those that have ended too."""
    own = os.times()
    seconds = own.user + own.system + own.children_user + own.children_system
    for child in psutil.Process().children(recursive=True):
        try:
            seconds += sum(child.cpu_times()[:4])
        except psutil.Error:  # it has just ended
            continue
    return seconds


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    begun = cpu_s() if item.config.option.cpu_durations else 0.0
    done = yield
    if item.config.option.cpu_durations:
        SPENT[item.nodeid] = cpu_s() - begun
    return done


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    slowest = sorted(SPENT, key=lambda name: -SPENT[name])[: terminalreporter.config.option.cpu_durations]
    if slowest:
        terminalreporter.section(f"slowest by CPU, of {sum(SPENT.values()):.0f} s")
    for name in slowest:
        terminalreporter.write_line(f"{SPENT[name]:8.2f}s {name}")
