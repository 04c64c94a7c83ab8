"""`goldilocks publish DIR --receipt`: measure the figures of a receipt that take more than publishing, and write them.

Planted defects are planted once for a recipe and its rows; what an ablation said is taken from its folder, which must
have trained an arm on this very set.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from curation.publish.receipts import Figure, Needs, Receipt, read_receipt
from curation.records import ConfigError, SourceError
from curation.storage.locks import lock_folder
from flows.pipelines.planted_defects import planted_figures
from flows.pipelines.receipts import PublishedRun, read_published
from flows.publish import receipt_figures, receipts
from flows.publish.curated_set import published_folder, renew_receipt
from flows.run.training import read_run


def measure_receipt(folder: Path, ablation: Path | None = None) -> Receipt:
    """Plant defects where none were planted yet, take an ablation's figures, and return the receipt as written.

    Raises:
        StoreError: there is no published set, or it is not as it was published.
        ConfigError: the ablation did not train on this set.
    """
    with lock_folder(folder.absolute()):
        published = read_published(folder)
        run, version, results = published.run, published.version, published.results
        if others := receipts.differing_files(run.folder / "curated"):
            renew_receipt(run, version, results)  # refuses, and says why
            raise AssertionError(others)
        if ablation is not None:
            figures = ablation_figures(ablation, published)
            about = {"version": version.number, "decisions": version.digest}
            receipts.keep_figures(run.folder, receipts.COUNTERFACTUAL, figures, **about)
        if not receipts.planted_figures(run, results):
            made_from = receipt_figures.made_from(run, results)
            found = planted_figures(run, results)
            receipts.keep_figures(run.folder, receipts.PLANTED, found, made_from=made_from)
        renew_receipt(run, version, results)
        return read_receipt(run.folder / "curated")[0]


def ablation_figures(folder: Path, published: PublishedRun) -> list[Figure]:
    """Return how a model that was trained on the set differs from one trained on other rows, bench by bench.

    Args:
        folder: of a finished `goldilocks ablate`, in which one arm was trained on the set, and one on other rows.
    """
    table = _read(folder)
    curated = (published.run.folder / "curated").resolve()
    data = _data_of_arms(folder)
    own = sorted(arm for arm, places in data.items() if curated in places)
    others = sorted(arm for arm, places in data.items() if curated not in places)
    if len(own) != 1 or not others:
        raise ConfigError(
            f"--ablation {folder}: of its arms {', '.join(sorted(data)) or '(none)'} exactly one must be trained on "
            f"{curated}, and another on other rows; {', '.join(own) or 'none'} was trained on it."
        )
    other = "random" if "random" in others else others[0]
    if len(others) > 1 and other != "random":
        raise ConfigError(f"--ablation {folder}: arms {', '.join(others)}: name the one of random rows `random`.")
    rows = {(row["bench"], row["arm"]): row for row in table["results"]}
    benches = sorted({bench for bench, arm in rows if arm == own[0]} & {bench for bench, arm in rows if arm == other})
    return [_counterfactual(bench, rows[bench, own[0]], rows[bench, other]) for bench in benches]


def _counterfactual(bench: str, own: dict[str, Any], other: dict[str, Any]) -> Figure:
    """Return the figure of one bench; the base of the ablation may be either arm, and must be one of them."""
    sign, told = (1, own["difference"]) if other["difference"] is None else (-1, other["difference"])
    if told is None or (own["difference"] is not None and other["difference"] is not None):
        raise ConfigError(
            f"--ablation: neither {own['arm']} nor {other['arm']} is the base, the first value of its axes."
        )
    ends = [told["low"], told["high"]]
    interval = None if None in ends else tuple(sorted(round(sign * end, 4) for end in ends))
    how = (
        f"`goldilocks ablate`: held-out pass@1 of models trained on the set (arm `{own['arm']}`) less that of models "
        f"trained on other rows (arm `{other['arm']}`), {own['seeds']} seeds, paired over seeds and problems; "
        f"{own['sampled_tokens']:,.0f} and {other['sampled_tokens']:,.0f} tokens sampled a seed"
    )
    return Figure(
        f"worth.counterfactual.{bench}",
        f"Held-out pass@1 on {bench}, the set less other rows",
        round(sign * float(told["mean"]), 4),
        None if interval is None else (interval[0], interval[1]),
        int(told["count"]),
        how,
        Needs.TRAINING,
    )


def _read(folder: Path) -> dict[str, Any]:
    path = folder / "ablation.json"
    try:
        table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(table["results"], list):
            raise TypeError("results")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceError(f"--ablation {folder}: holds no ablation (no ablation.json); `goldilocks ablate`.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{path} is damaged ({error}); the same `goldilocks ablate` writes it again.") from error
    return table


def _data_of_arms(folder: Path) -> dict[str, set[Path]]:
    """Return the folders of sets that each arm of an ablation was trained on."""
    places: dict[str, set[Path]] = {}
    for run in sorted((folder / "runs").glob("*-seed-*")):
        found = re.fullmatch(r"(.+)-seed-\d+", run.name)
        if found is None or not (run / "run.json").is_file():
            continue
        recipe, home = read_run(run)
        folders = getattr(recipe.data, "folders", ())
        places.setdefault(found[1], set()).update(published_folder(home / place).resolve() for place in folders)
    return places
