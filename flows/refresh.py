"""The refresh flow: a new checkpoint judges again what has become uncertain, and the set gets its next version.

prefect deploy flows/refresh.py:refresh
"""

from contextlib import nullcontext
from pathlib import Path

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import State
from prefect.runtime import deployment
from prefect.states import Failed

from curation.storage.stages import atomic_write
from flows.pipelines.refresh import EmptySetError, NotPublishedError, RefreshResult, summarise_refresh
from flows.pipelines.refresh import refresh as refresh_set
from flows.publish.versions import latest
from flows.run.run_folder import open_run
from flows.serve.flow_runs import PATIENT, RETRY_S, announce_exhausted, announce_version, gpus, run_name
from flows.serve.unfinished import REFRESHED, announced_version


@flow(name="refresh", flow_run_name=run_name, retries=PATIENT, retry_delay_seconds=RETRY_S, persist_result=False)
def refresh(
    folder: Path, policy: Path, attempts: Path | None = None, accept: bool = False
) -> RefreshResult | State[None] | None:
    """Judge again what a new checkpoint made uncertain; announce a new version of the set, and an exhausted set.

    Args:
        folder: the run folder of the set.
        policy: the checkpoint's folder, or a TOML file with a policy.
        attempts: the trainer's attempts, as evidence of what changed.
        accept: publish also by a policy that is far weaker than the one before, and an empty set.
    """
    folder, policy = folder.absolute(), policy.absolute()
    log, mark = get_run_logger(), policy.parent / REFRESHED
    if mark.exists():
        log.info("the set was judged again by %s before", policy)
        return None
    with gpus(open_run(folder)) if policy.is_dir() else nullcontext():
        try:
            result = refresh_set(folder, policy, attempts, accept=accept)
        except NotPublishedError as error:
            newest = latest(folder)
            if isinstance(error, EmptySetError) and newest is not None:
                announce_exhausted(open_run(folder), newest.number, rows=0)
            if deployment.id is None:
                raise
            return Failed(message=str(error))  # an exception would be tried again
    for line in summarise_refresh(result):
        log.info(line)
    if result.is_new or result.is_repeated:  # the refresh that made it may have been killed before it announced it
        if announced_version(folder) < result.version.number:  # first, so that a kill between the two repeats it
            announce_exhausted(open_run(folder), result.version.number)
        announce_version(open_run(folder), result.version)
    if policy.parent.parent == folder / "training":
        atomic_write(mark, f"{result.version.number}\n")
    return result
