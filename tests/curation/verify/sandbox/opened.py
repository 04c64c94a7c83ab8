"""A plugin of pytest for `test_landlock_with_user`: other users may pass the folder of the tests."""

from __future__ import annotations

import os


def pytest_sessionstart() -> None:
    """Open the folder, and see that slots get a user id of their own by it."""
    from curation.verify.sandbox import Sandbox

    os.chmod(os.environ["TMPDIR"], 0o711)
    with Sandbox(workers=1, rung="landlock") as box:
        assert box.owns, f"no user id of its own: {box.description}"
        assert box.forks, f"no processes of its own: {box.description}"
