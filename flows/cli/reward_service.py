"""`goldilocks serve-reward`: the judge as a service, with the problems of the sets that it is started with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from curation.publish.export_formats import set_records
from curation.records import GoldilocksError
from curation.scoring import Scorer, ScoringSettings
from curation.scoring.service import RewardServer
from flows.publish.curated_set import published_folder


def serve_rewards(folders: Sequence[Path], host: str, port: int, settings: ScoringSettings) -> None:
    """Serve until interrupted.

    Raises:
        GoldilocksError: a folder holds no set, or the port cannot be had.
    """
    records: dict[str, str] = {}
    for folder in folders:
        records |= set_records(published_folder(folder))
    with Scorer(settings) as scorer:
        try:
            server = RewardServer(host, port, scorer, records)
        except OSError as error:
            raise GoldilocksError(
                f"{host}:{port} cannot be listened on ({error.strerror}); give another --port."
            ) from error
        with server:
            known = f"; {len(records):,} problems by their ids" if records else ""
            print(f"judging at {server.address}/score and /get_reward{known}; Ctrl-C ends it", flush=True)
            server.serve_forever()
