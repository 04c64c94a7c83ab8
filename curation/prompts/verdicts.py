"""The last line of a response that judges: ``VERDICT: SOUND``, read for whoever asked."""

from __future__ import annotations

import re
from collections.abc import Collection

from curation.thinking import split_response


def read_verdict(text: str | None, words: Collection[str]) -> str | None:
    """Return the last verdict of a response, one of ``words``; None where it has none that can be read.

    What stands in its thoughts does not count. A response that names two verdicts in its last line is unreadable, as is
    one that never closed its thoughts.

    Args:
        words: the verdicts that were asked for, in capitals.

    Example: ``read_verdict("So.\\nVERDICT: SAME", ("SAME", "DIFFERENT")) == "SAME"``
    """
    response = split_response(text).answer if text is not None else None
    if response is None:
        return None
    found = list(re.finditer(rf"(?i)\bVERDICT\W{{0,6}}({'|'.join(words)})\b", response))
    if not found:
        return None
    line = response[found[-1].start() :].partition("\n")[0]
    named = {word for word in re.findall(r"[A-Z]+", line.upper()) if word in words}
    return found[-1][1].upper() if len(named) == 1 else None
