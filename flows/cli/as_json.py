"""``--json``: what a command says, for programs, as one JSON object; `flows.pipelines.run_tables` holds the tables."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from curation.difficulty.planning import StagePlan


def print_json(table: object) -> None:
    """Print one JSON object; control characters are escaped, those that JSON allows too."""
    text = json.dumps(table, ensure_ascii=False, indent=1, default=str)
    print(re.sub("[\x7f-\x9f]", lambda sign: f"\\u{ord(sign[0]):04x}", text))


def plan_table(plans: Sequence[StagePlan]) -> dict[str, Any]:
    """Return the plans of the stages."""
    return {"stages": [plan.row() for plan in plans]}
