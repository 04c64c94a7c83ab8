"""Identify the languages of a file's texts."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path

from curation.languages.identification import UNDETERMINED, identify_many
from curation.sources.files import read_rows
from curation.sources.rows import require_path
from curation.storage.stages import atomic_replace, require_outside
from flows.run.progress import bar

BATCH = 20_000


def detect_language_file(path: Path, out: Path, *, field: str = "text", among: tuple[str, ...] = ()) -> dict[str, int]:
    """Write a file's rows with ``lang`` and ``confidence``; return the number of rows per language.

    Args:
        path: .jsonl, .jsonl.gz, .jsonl.zst, .parquet or .csv, with texts in ``field``.
        out: JSON lines, in order; ``lang`` is an ISO 639-1 code or ``undetermined``.
        among: possible codes; empty for all.

    Raises:
        SourceError: the file is missing or unreadable, or lacks the field.
    """
    require_outside(out, path)
    rows = read_rows(path)
    counts: Counter[str] = Counter()
    first = True
    with atomic_replace(out) as handle, bar("detect-language", None) as advance:
        while batch := list(itertools.islice(rows, BATCH)):
            if first:
                require_path(batch, field, str(path))
                first = False
            texts = [row.get(field) for row in batch]
            identified = identify_many([text if isinstance(text, str) else "" for text in texts], among or None)
            for row, identification in zip(batch, identified, strict=True):
                lang = identification.lang or UNDETERMINED
                counts[lang] += 1
                line = {**row, "lang": lang, "confidence": round(identification.confidence, 4)}
                handle.write(json.dumps(line, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass") + b"\n")
            advance(len(batch))
    return dict(counts.most_common())
