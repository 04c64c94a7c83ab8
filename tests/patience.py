"""Other patience with servers than `curation.policies.client.PATIENCE`, for tests of servers that fail."""

from __future__ import annotations

import pytest

from curation.policies import client


def patient(monkeypatch: pytest.MonkeyPatch, **changes: float) -> None:
    """Ask again after 10 ms, and wait 2 minutes for a connection to a busy machine, but for ``changes``."""
    values = {"back_off_s": 0.01, "connect_s": 120.0, **changes}
    monkeypatch.setattr(client, "PATIENCE", client.Patience(**values))  # type: ignore[arg-type]
