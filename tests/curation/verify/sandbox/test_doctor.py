"""The doctor finds the isolation of each rung, and finds it missing where there is none."""

from __future__ import annotations

from curation.verify.sandbox import Sandbox
from curation.verify.sandbox.doctor import diagnose


def test_every_property_holds_on_each_rung(box: Sandbox) -> None:
    found = diagnose(box.rung)
    assert len(found) > 20
    assert [entry for entry in found if not entry.ok] == []


def test_without_isolation_the_doctor_says_so() -> None:
    bad = {entry.name for entry in diagnose("none") if not entry.ok}
    assert {"isolation", "network: TCP", "host files: reading", "processes: fork", "signals"} <= bad
    assert not {"limit: CPU time", "limit: memory", "limit: output"} & bad
