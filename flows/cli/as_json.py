"""Print the result of a command as one JSON object (``--json``)."""

from __future__ import annotations

import json
import re


def print_json(table: object) -> None:
    """Print one JSON object; control characters are escaped, those that JSON allows too."""
    text = json.dumps(table, ensure_ascii=False, indent=1, default=str)
    print(re.sub("[\x7f-\x9f]", lambda sign: f"\\u{ord(sign[0]):04x}", text))
