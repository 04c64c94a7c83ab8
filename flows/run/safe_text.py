"""Make texts of rows and files safe to print; imports nothing heavy."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def written_out(text: str) -> str:
    r"""Return a text with escaped control characters (``\x1b``), except tabs and line ends."""
    return _CONTROL.sub(lambda sign: f"\\x{ord(sign[0]):02x}", text)
