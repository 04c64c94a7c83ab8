"""Prints commands' results as JSON (``--json``)."""

from __future__ import annotations

import json
import re


def print_json(table: object) -> None:
    """Print one JSON object, with all control characters escaped."""
    text = json.dumps(table, ensure_ascii=False, indent=1, default=str)
    print(re.sub("[\x7f-\x9f]", lambda sign: f"\\u{ord(sign[0]):04x}", text))
