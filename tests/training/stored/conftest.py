"""What the tests of stored attempts share."""

from __future__ import annotations

NO_CHECKS = {"checks": False}
