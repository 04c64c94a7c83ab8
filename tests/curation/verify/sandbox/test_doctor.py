"""The doctor finds the isolation of each rung, and finds it missing where there is none."""

from __future__ import annotations

import pytest

from curation.records import VerifierError
from curation.verify.sandbox import Sandbox
from curation.verify.sandbox.doctor import diagnose, require


def test_every_property_holds_on_each_rung(box: Sandbox) -> None:
    found = diagnose(box.rung)
    assert all(sum(entry.by == by for entry in found) > 20 for by in ("Python", "C++"))
    assert [entry for entry in found if not entry.ok] == []


def test_without_isolation_the_doctor_says_so() -> None:
    found = diagnose("none")
    bad = {entry.name for entry in found if not entry.ok}
    assert {"isolation", "network: TCP", "host files: reading", "processes: fork", "signals"} <= bad
    assert {entry.by for entry in found if entry.name == "processes: exec" and not entry.ok} == {"Python", "C++"}
    with pytest.raises(VerifierError, match=r"fails on: .*signals \(C\+\+\)"):
        require(found)
    assert not {"limit: CPU time", "limit: memory", "limit: output"} & bad
