"""`goldilocks detect-language` and `goldilocks translate`: the language stages on a file, and on a curated set.

A translated set gets, beside what is there::

    data/translated-00000-of-00001.parquet   the translations, in the columns of data/train-*.parquet
    translations/failed.jsonl                what was chosen and stays in English, with the reason
    translations/replies.jsonl               every reply as it came; a command that broke off takes them up again
    translations/attempts.jsonl              the solver's attempts, where translations are solved back; kept likewise
    translations/votes.jsonl                 the reader's votes, where one reads them; kept likewise
    translations/made.json                   versions, settings, counts, and the digest of what was translated
    README.md                                a section on translations, replaced when it is made again

Invariants: data/train-*.parquet is never touched; every chosen problem is in one of the two files; a file appears
under its name only when it is whole. A translation has no pass rate: nobody has attempted it yet.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from curation.config import EndpointPolicy, ModelSettings, VllmPolicy
from curation.config.languages import LanguageSettings, TranslationSettings
from curation.languages.identification import UNDETERMINED, identify_many
from curation.languages.identification import VERSION as LANGUAGES_VERSION
from curation.policies.recorded_translations import RecordedTranslations
from curation.prompts.reading import READING
from curation.publish import cards
from curation.records import ConfigError, Policy, SourceError
from curation.sources.files import read_rows
from curation.sources.rows import require_path
from curation.storage.stages import atomic_replace, atomic_write, file_digest, require_other_place, write_parquet
from curation.translation import VERSION, RenderedPrompt, StoredReplies, Translations, choose_problems, translate
from flows.publish.curated_set import published_folder
from flows.publish.receipts import renew_contents
from flows.run.model_files import load_model
from flows.run.policies import open_policy
from flows.run.progress import bar

BATCH = 20_000
DATA_FILE = "data/translated-00000-of-00001.parquet"
FAILED_FILE = "translations/failed.jsonl"
MADE_FILE = "translations/made.json"
ATTEMPTS_FILE = "translations/attempts.jsonl"
REPLIES_FILE = "translations/replies.jsonl"
VOTES_FILE = "translations/votes.jsonl"
MARK = ".published.json"
_BEGIN, _END = "<!-- translations -->", "<!-- /translations -->"
_NOT_MEASURED = (
    "policy", "attempts", "judged", "correct", "pass_rate", "pass_rate_low", "pass_rate_high", "decided_by",
    "informed_by", "first_policy", "first_pass_rate",
)  # fmt: skip
_FILES = (".jsonl", ".gz", ".zst", ".parquet", ".csv", ".json", ".ndjson")


def detect_language_file(
    path: Path, out: Path, *, field: str = "text", among: tuple[str, ...] = (), model: str | None = None
) -> dict[str, int]:
    """Write the rows of a file with ``lang`` and ``confidence``, and return the number of rows per language.

    Args:
        path: .jsonl, .jsonl.gz, .jsonl.zst, .parquet or .csv, with texts in ``field``.
        out: JSON lines, one per row, in order. ``lang`` is an ISO 639-1 code or ``undetermined``; a row without text
            is undetermined.
        among: codes that a text can only be in; empty for all that the model knows.
        model: another fastText model's file.

    Raises:
        SourceError: the file is missing, unreadable, or no row has the field.
    """
    require_other_place(out, path)
    settings = LanguageSettings(model=model)
    rows = read_rows(path)
    counts: Counter[str] = Counter()
    first = True
    with atomic_replace(out) as handle, bar("detect-language", None) as advance:
        while batch := list(itertools.islice(rows, BATCH)):
            if first:
                require_path(batch, field, str(path))
                first = False
            texts = [row.get(field) for row in batch]
            identified = identify_many(
                [text if isinstance(text, str) else "" for text in texts], among or None, settings
            )
            for row, identification in zip(batch, identified, strict=True):
                lang = identification.lang or UNDETERMINED
                counts[lang] += 1
                line = {**row, "lang": lang, "confidence": round(identification.confidence, 4)}
                handle.write(json.dumps(line, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass") + b"\n")
            advance(len(batch))
    return dict(counts.most_common())


def open_translator(spec: str) -> Policy:
    """Return the translating policy that ``--policy`` names.

    Args:
        spec: a file of recorded translations, or a TOML file with the table `[models.NAME]` of a live model (kind
            `endpoint` or `vllm`), whose prompt is replaced by the translating one.

    Raises:
        ConfigError: it is neither.
    """
    path = Path(spec).expanduser()
    if path.suffix in _FILES:
        if not path.is_file():
            raise ConfigError(f"--policy {spec}: there is no such file of translations.")
        return RecordedTranslations(path)
    path, settings = _model("--policy", spec, "give a file of translations (.jsonl, .parquet) or a model's .toml file")
    if not isinstance(settings, EndpointPolicy | VllmPolicy):
        raise ConfigError(
            f"--policy {spec}: a model of kind `{settings.kind}` cannot translate; name `endpoint` or `vllm`."
        )
    return RenderedPrompt(open_policy(settings.model_copy(update={"prompt": "plain"}), path))


def open_solver(spec: str) -> Policy:
    """Return the policy that ``--solver`` names: any live one, with its own solving prompt.

    Raises:
        ConfigError: it is no TOML file with a policy's table, or its policy is recorded.
    """
    path, settings = _model("--solver", spec, "translations are solved by a live model; give its .toml file")
    if settings.kind == "recorded":
        raise ConfigError(f"--solver {spec}: a recorded policy cannot solve new texts; name one that runs.")
    return open_policy(settings, path)


def open_reader(spec: str) -> Policy:
    """Return the policy that ``--reader`` names: a live one, or recorded votes; it is asked with the reading prompt.

    Raises:
        ConfigError: it is no TOML file with a policy's table.
    """
    path, settings = _model("--reader", spec, "give the .toml file of the model that reads translations")
    return open_policy(settings, path, READING)


def _model(option: str, spec: str, otherwise: str) -> tuple[Path, ModelSettings]:
    """Return the model that an option names, and the folder of its paths; ``otherwise`` is what to do instead."""
    if ".toml" not in spec:
        raise ConfigError(f"{option} {spec}: {otherwise}.")
    settings, folder = load_model(spec, option)
    return folder, settings


def translate_set(
    folder: Path,
    policy: Policy,
    settings: TranslationSettings,
    source: str = "en",
    solver: Policy | None = None,
    reader: Policy | None = None,
) -> dict[str, int]:
    """Translate a share of a curated set, write the rows beside it, and return the counts.

    Args:
        folder: a curated set, or a run's folder that holds one in ``curated``.
        policy: from `open_translator`; entered and left here.
        solver: from `open_solver`, where ``settings.back_solving`` asks for attempts; entered and left here.
        reader: from `open_reader`; entered and left here.

    Raises:
        SourceError: there is no curated set.
        PolicyError: the policy cannot answer.
    """
    home = published_folder(folder)
    files = sorted((home / "data").glob("train-*.parquet"))
    if not files:
        raise SourceError(f"{folder}: holds no curated set (data/train-*.parquet); give the folder of a run or a set.")
    table = pl.scan_parquet(files, glob=False)
    targets = choose_problems(table.select("id", "group", "lang"), settings, source)
    is_chosen = pl.col("id").is_in(list(targets))
    rows = [row for file in files for row in pl.read_parquet(file, glob=False).filter(is_chosen).iter_rows(named=True)]
    if not isinstance(policy, RecordedTranslations):
        policy = StoredReplies(policy, home / REPLIES_FILE)
    solver = StoredReplies(solver, home / ATTEMPTS_FILE) if solver is not None else None
    reader = StoredReplies(reader, home / VOTES_FILE) if reader is not None else None
    translations = asyncio.run(_run_translation(rows, targets, policy, settings, source, solver, reader))
    problems = table.select(pl.len()).collect().item()
    counts = {"problems": problems, **dict(sorted(translations.counts.items()))}
    made_by = (policy, solver, reader)
    _write(home, table.collect_schema(), translations, counts, made_by, settings, [file_digest(file) for file in files])
    return counts


async def _run_translation(
    rows: list[dict[str, Any]],
    targets: Mapping[str, str],
    policy: Policy,
    settings: TranslationSettings,
    source: str,
    solver: Policy | None,
    reader: Policy | None,
) -> Translations:
    async with AsyncExitStack() as stack:
        for opened in (policy, solver, reader):
            if opened is not None:
                await stack.enter_async_context(opened)
        with bar("translate", len(rows)) as advance:
            return await translate(rows, targets, policy, settings, source, advance, solver, reader)


def translation_summary(counts: Mapping[str, int], folder: Path) -> str:
    """Return what `goldilocks translate` prints at the end.

    Example::

        6 of 12 chosen problems translated (de 2, fr 2, it 2), 2 of them at a later try: run/curated/data/translated-…
        6 stay in English: run/curated/translations/failed.jsonl
        broken over all tries: numbers 8, language 6
        the reader, over all tries: refused 3, overruled 1
    """
    home = published_folder(folder)
    spread, broke = _counts_text("to.", counts), _counts_text("broke.", counts)
    later = f", {counts['retried']:,} of them at a later try" if counts.get("retried") else ""
    lines = [
        f"{counts.get('translated', 0):,} of {counts.get('asked', 0):,} chosen problems translated"
        f"{f' ({spread})' if spread else ''}{later}: {home / DATA_FILE}"
    ]
    if counts.get("failed"):
        lines.append(f"{counts['failed']:,} stay in English: {home / FAILED_FILE}")
    if broke:
        lines.append(f"broken over all tries: {broke}")
    if said := _counts_text("reader.", counts):
        lines.append(f"the reader, over all tries: {said}")
    return "\n".join(lines)


def _counts_text(prefix: str, counts: Mapping[str, int]) -> str:
    """Return the counts whose names begin so, the largest first."""
    matching = {key.removeprefix(prefix): count for key, count in counts.items() if key.startswith(prefix)}
    return ", ".join(
        f"{name} {count:,}" for name, count in sorted(matching.items(), key=lambda item: (-item[1], item[0]))
    )


def _write(
    home: Path,
    schema: pl.Schema,
    translations: Translations,
    counts: Mapping[str, int],
    made_by: tuple[Policy, Policy | None, Policy | None],
    settings: TranslationSettings,
    digests: list[str],
) -> None:
    """Write the translated rows first, then the failed ones, what made them, and the card."""
    policy, solver, reader = made_by
    unmeasured = [name for name in _NOT_MEASURED if name in schema]
    rows = [{**row, **dict.fromkeys(unmeasured)} for row in translations.rows]
    write_parquet(home / DATA_FILE, pl.DataFrame(rows, schema=schema))
    with atomic_replace(home / FAILED_FILE) as handle:
        for failed in translations.failed:
            handle.write(json.dumps(asdict(failed), ensure_ascii=False).encode() + b"\n")
    about = {
        "version": VERSION,
        "languages": LANGUAGES_VERSION,
        "policy": policy.key.policy,
        "prompt": policy.key.prompt,
        "sampling": policy.key.sampling,
        "solver": asdict(solver.key) if solver is not None else None,
        "reader": asdict(reader.key) if reader is not None else None,
        "settings": settings.model_dump(mode="json"),
        "counts": dict(counts),
        "made_from": digests,
    }
    atomic_write(home / MADE_FILE, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    _write_card(home, counts, policy, reader)
    cards.list_files_again(home)
    renew_contents(home)
    _register_files(home)


def _write_card(home: Path, counts: Mapping[str, int], policy: Policy, reader: Policy | None) -> None:
    """Write the card's section on translations, new or in place of the old one."""
    card = home / "README.md"
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    spread, why = _counts_text("to.", counts) or "none", _counts_text("broke.", counts)
    said = _counts_text("reader.", counts) or "nothing refused"
    read = f" and read by `{reader.key.policy}` with `{reader.key.prompt}` ({said})" if reader is not None else ""
    section = (
        f"{_BEGIN}\n## Translations\n\n"
        f"{counts.get('translated', 0):,} of {counts['problems']:,} problems are there a second time, translated by "
        f"`{policy.key.policy}` with `{policy.key.prompt}` and checked by `{VERSION}`{read}: `{DATA_FILE}` ({spread}). "
        f"A translation shares the `group` of its original, so a split by `group` keeps them together; its pass rate "
        f"is not measured. {counts.get('failed', 0):,} chosen problems failed every try and stay in English "
        f"(`{FAILED_FILE}`)" + (f"; invariants broken over all tries: {why}" if why else "") + f".\n{_END}\n"
    )
    pattern = re.compile(rf"{re.escape(_BEGIN)}.*?{re.escape(_END)}\n?", re.DOTALL)
    if pattern.search(text):
        text = pattern.sub(lambda _: section, text, count=1)
    else:
        text = f"{text.rstrip()}\n\n{section}" if text else section
    atomic_write(card, text)


def _register_files(home: Path) -> None:
    """Enter the new files into the published set's mark, so that a run that finds it unchanged leaves them there."""
    path = home / MARK
    if not path.is_file():
        return
    mark = json.loads(path.read_text(encoding="utf-8"))
    files = sorted(file for file in home.rglob("*") if file.is_file() and file.name != MARK)
    mark["files"] = {str(file.relative_to(home)): file.stat().st_size for file in files}
    atomic_write(path, json.dumps(mark, indent=1) + "\n")
