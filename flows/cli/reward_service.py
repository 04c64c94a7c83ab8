"""`goldilocks serve --reward`: serves the judge."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from curation.http_server import address_of, listen, server_of
from curation.publish.export_formats import set_records
from curation.scoring import Scorer, ScoringSettings
from curation.scoring.service import KEY, reward_app
from curation.server_guard import LOCAL
from flows.publish.curated_set import published_folder


def serve_rewards(folders: Sequence[Path], host: str, port: int, settings: ScoringSettings) -> None:
    """Serve until interrupted; other hosts require a key, that of `KEY` or a new one.

    Raises:
        GoldilocksError: a folder has no set, or the port cannot be used.
    """
    key = os.environ.get(KEY) or (None if host in LOCAL else secrets.token_urlsafe(18))
    records: dict[str, str] = {}
    for folder in folders:
        records |= set_records(published_folder(folder))
    with Scorer(settings) as scorer, listen(host, port) as listening:
        known = f"; {len(records):,} problems by their ids" if records else ""
        print(f"judging at {address_of(listening, key)}/score and /get_reward{known}; Ctrl-C ends it", flush=True)
        server_of(reward_app(scorer, records, key)).run(sockets=[listening])
