"""The commands on files: `verify`, `doctor`, `export`, `diff` and `publish`."""

import itertools
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

tools = typer.Typer()
verify_app = typer.Typer(
    help="Judge answers, programs, rows and receipts outside a run.",
    epilog="Example: goldilocks verify answers pairs.jsonl --out verdicts.jsonl",
    no_args_is_help=True,
    rich_markup_mode=None,
)
tools.add_typer(verify_app, name="verify")

Rows = Annotated[Path, Argument(metavar="IN", help="Rows: .jsonl (also .gz, .zst, .bz2, .xz), .parquet or .csv.")]
Thinking = Annotated[str, Option("--thinking", metavar="TAG", help="Tag of thoughts, as [THINK], or none.")]
SetFolder = Annotated[Path, Argument(metavar="DIR", help="Folder of a run, or of a curated set.")]
SHOWN = 40  # differences from a receipt that are printed

Workers = Annotated[int | None, Option(min=1, help="Verifier processes; one per core by default.")]


@verify_app.command(epilog="Example: goldilocks verify statements problems.jsonl --out verdicts.jsonl")
def statements(
    rows: Rows,
    out: Annotated[Path, Option(metavar="OUT.jsonl", help="One line per row, in order.")],
    columns: Annotated[
        list[str] | None,
        Option("--map", metavar="FIELD=COLUMN", help="Column of a field, as statement=question."),
    ] = None,
) -> None:
    """Run the format filter alone, with the reason and evidence for each row."""
    from curation.storage.stages import atomic_replace, require_outside
    from flows.cli.files import classified
    from flows.run.progress import bar
    from flows.run.terminal import echo

    require_outside(out, rows)
    kept = total = 0
    with atomic_replace(out) as handle, bar("classify", None) as advance:
        for verdicts in classified(rows, columns or []):
            verdicts.write_ndjson(handle)
            kept += int(verdicts["keep"].sum())
            total += verdicts.height
            advance(verdicts.height)
    echo(f"{total:,} rows, {kept:,} kept, {total - kept:,} dropped: {out}")


@verify_app.command(epilog="Example: goldilocks verify overlap problems.jsonl --against bench.jsonl --out hits.jsonl")
def overlap(
    rows: Rows,
    against: Annotated[list[Path], Option(metavar="BENCH", help="A benchmark's file; repeatable.")],
    out: Annotated[Path, Option(metavar="OUT.jsonl", help="One line per row, in order, with its hits.")],
    field: Annotated[str | None, Option(help="Column of the statement.")] = None,
    benchmark_field: Annotated[str | None, Option(help="Column of the benchmarks' statement.")] = None,
) -> None:
    """Find rows that overlap with benchmarks, with row, method and score."""
    from curation.filters.decontamination.files import contamination_file
    from curation.storage.stages import require_outside
    from flows.run.terminal import echo

    require_outside(out, rows, *against)
    read, overlapping, templates, hits = contamination_file(
        rows, against, out, field=field, benchmark_field=benchmark_field
    )
    by_method = ", ".join(f"{method} {count:,}" for method, count in hits.items())
    made = f", {templates:,} have a benchmark's wording with other numbers" if templates else ""
    echo(f"{read:,} rows, {overlapping:,} overlap ({by_method}){made}: {out}")


@verify_app.command(epilog="Example: goldilocks verify answers pairs.jsonl --out verdicts.jsonl")
def answers(
    pairs: Annotated[Path, Argument(metavar="PAIRS.jsonl", help="Rows with `gold` and `pred`.")],
    out: Annotated[Path, Option(metavar="OUT.jsonl", help="The rows with their verdicts, in order.")],
    workers: Workers = None,
    thinking: Thinking = "<think>",
    response_format: Annotated[
        str,
        Option(
            "--format",
            help="As `verify.response_format`: any, boxed, hashes, cue, choice, a tag as <answer>; "
            "loose also accepts bare answers.",
        ),
    ] = "loose",
    judges: Annotated[
        list[str] | None,
        Option("--judge", metavar="FILE.py:NAME", help="A judge of your own, with your rights; repeatable."),
    ] = None,
) -> None:
    """Compare math answers with their references, as a run judges attempts."""
    from curation.records import ConfigError
    from curation.response_formats import checked_format
    from curation.storage.stages import require_outside
    from curation.verify.own_judges import judge_at
    from curation.verify.pairs import verify_pairs
    from flows.run.progress import bar

    require_outside(out, pairs)
    tags = _tags_of(thinking)
    try:
        checked_format(response_format)
    except ValueError as error:
        raise ConfigError(f"--format {error}.") from error
    own = [judge_at(name) for name in judges or ()]
    with bar("verify answers", None) as advance:
        counts = verify_pairs(pairs, out, workers, advance, tags=tags, response_format=response_format, judges=own)
    _print_counts("pairs", counts, out)


def _tags_of(thinking: str) -> Any:
    from curation.records import ConfigError
    from curation.thinking import ThinkingTags

    try:
        return ThinkingTags.of(thinking)
    except ValueError as error:
        raise ConfigError(f"--thinking {error}.") from error


def _print_counts(what: str, counts: Mapping[str, int], out: Path) -> None:
    from flows.run.terminal import echo

    counts_text = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
    echo(f"{sum(counts.values()):,} {what}: {counts_text or 'none'}: {out}")


@verify_app.command(
    epilog="Example: goldilocks verify code --problems p.jsonl --submissions s.jsonl --out verdicts.jsonl"
)
def code(
    problems: Annotated[
        Path, Option(metavar="P.jsonl", help="`id`, `tests`, `language`, limits, `checker`, `function`.")
    ],
    submissions: Annotated[Path, Option(metavar="S.jsonl", help="`id`, `problem`, `lang`, `code`; or `response`.")],
    out: Annotated[Path, Option(metavar="OUT.jsonl", help="One verdict per submission, in order.")],
    workers: Workers = None,
    every: Annotated[bool, Option("--every", help="Run every test, also after the first that fails.")] = False,
    isolation: Annotated[
        str | None,
        Option(metavar="RUNG", help="Use only this isolation, as in doctor. With `none` programs run unprotected."),
    ] = None,
    thinking: Thinking = "<think>",
) -> None:
    """Run programs on tests in the sandbox, and write the verdict on each."""
    from curation.storage.stages import require_outside
    from curation.verify.programs.files import verify_programs
    from curation.verify.programs.tools import Runner
    from flows.run.progress import bar
    from flows.run.terminal import echo

    require_outside(out, problems, submissions)
    tags = _tags_of(thinking)
    with Runner(workers, rung=isolation) as runner:
        echo(runner.description)
        with bar("verify code", None) as advance:
            counts = verify_programs(problems, submissions, out, runner, advance, every=every, tags=tags)
    _print_counts("programs", counts, out)


@tools.command(epilog="Example: goldilocks doctor")
def doctor() -> None:
    """Show how this machine isolates foreign code. Each property is tried."""
    from rich.table import Table

    from curation.verify.sandbox import Sandbox
    from curation.verify.sandbox.doctor import diagnose, require, working_rungs
    from flows.run.terminal import SafeConsole

    console = SafeConsole()
    with Sandbox(workers=1) as box:
        console.print(box.description)
    found = []
    for rung in working_rungs():
        checks = diagnose(rung)
        table = Table(box=None, pad_edge=False, title=f"rung {rung}", title_justify="left")
        for name in ("", "property", "by", "tried", "what happened"):
            table.add_column(name, overflow="fold")
        for check in checks:
            table.add_row("holds" if check.ok else "FAILS", check.name, check.by, check.attempt, check.detail)
        console.print(table)
        found += checks
    require(found)
    console.print(f"All {len(found)} properties hold.")


@verify_app.command(epilog="Example: goldilocks verify language texts.jsonl --out languages.jsonl")
def language(
    rows: Rows,
    out: Annotated[Path, Option(metavar="OUT.jsonl", help="The rows with `lang` and `confidence`.")],
    field: Annotated[str, Option(help="Column of the text.")] = "text",
    among: Annotated[list[str] | None, Option(metavar="LANG", help="A possible language; repeatable.")] = None,
) -> None:
    """Identify the language of texts."""
    from curation.languages.identification import UNDETERMINED, identify_many
    from curation.sources.files import read_rows
    from curation.sources.rows import require_path
    from curation.storage.stages import atomic_replace, require_outside
    from flows.run.progress import bar
    from flows.run.terminal import echo

    require_outside(out, rows)
    read, counts = read_rows(rows), Counter[str]()
    with atomic_replace(out) as handle, bar("detect-language", None) as advance:
        while batch := list(itertools.islice(read, 20_000)):
            if not counts:
                require_path(batch, field, str(rows))
            texts = [row.get(field) for row in batch]
            identified = identify_many([text if isinstance(text, str) else "" for text in texts], among or None)
            for row, identification in zip(batch, identified, strict=True):
                lang = identification.lang or UNDETERMINED
                counts[lang] += 1
                line = {**row, "lang": lang, "confidence": round(identification.confidence, 4)}
                handle.write(json.dumps(line, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass") + b"\n")
            advance(len(batch))
    echo(", ".join(f"{lang} {count:,}" for lang, count in counts.most_common()) + f": {out}")


@tools.command(epilog="Example: goldilocks export runs/my-set --format verl --out verl-set")
def export(
    folder: SetFolder,
    form: Annotated[
        str,
        Option(
            "--format",
            help="verl, trl, open-r1, verifiers, nemo-rl, nemo-gym, areal, openrlhf, slime, open-instruct, roll, "
            "skyrl, tinker, art.",
        ),
    ],
    out: Annotated[Path, Option(metavar="DIR", help="Folder to write to.")],
    check: Annotated[
        bool,
        Option("--check", help="Leave out rows whose reference earns no reward, or whose near miss earns one."),
    ] = False,
) -> None:
    """Write a curated set for another trainer. `--format all` writes a folder for each."""
    from curation.publish.export_formats import FORMATS, export_set
    from curation.publish.export_formats.writing import require_format
    from curation.storage.stages import require_outside
    from flows.publish.curated_set import published_folder
    from flows.run.terminal import echo

    curated = published_folder(folder)
    require_outside(out, curated)
    formats, failing = FORMATS if form == "all" else (form,), dict[str, str]()
    for name in formats:
        require_format(name)
    if check:
        from curation.scoring.checking import failing_rows

        failing = failing_rows(curated)
    for name in formats:
        written = export_set(curated, name, out / name if form == "all" else out, failing)
        prompt_file = f", {written.system_prompt}" if written.system_prompt else ""
        echo(f"{written.rows:,} problems{' that pass their proof' if check else ''}: {written.file}{prompt_file}")
        if written.left_out:
            reasons = ", ".join(f"{reason} ({count:,})" for reason, count in written.left_out.items())
            echo(
                f"{sum(written.left_out.values()):,} problems left out, because {name} cannot represent them: {reasons}"
            )
        if written.failed:
            echo(f"{len(written.failed):,} problems left out of {name}, because they fail their proof:")
            for row, why in written.failed.items():
                echo(f"  {row}: {why}")


@tools.command(epilog="Example: goldilocks diff runs/my-set@1 runs/my-set@2")
def diff(
    old: Annotated[str, Argument(metavar="A", help="A run, a curated set, or a version of a run's set: RUN@2.")],
    new: Annotated[str, Argument(metavar="B", help="The same, to compare with A.")],
    out: Annotated[Path | None, Option(metavar="FILE", help="Write a row per problem, as Parquet.")] = None,
) -> None:
    """Compare two curated sets, or two versions of one. Shows problems, pass rates, contents and verdicts."""
    from flows.cli.diff import show_diff

    show_diff(old, new, out)


@tools.command(epilog="Example: goldilocks publish runs/my-set --to me/my-set --push")
def publish(
    folder: SetFolder,
    name: Annotated[str | None, Option("--to", metavar="NAME", help="The data set on the hub, OWNER/NAME.")] = None,
    push: Annotated[bool, Option("--push", help="Send it; otherwise list what would be sent.")] = False,
    public: Annotated[bool, Option("--public", help="Make a new data set public.")] = False,
    receipt: Annotated[
        bool, Option("--receipt", help="Measure the value of the curation, and write the receipt.")
    ] = False,
    ablation: Annotated[
        Path | None, Option(metavar="FOLDER", help="With --receipt: a finished ablation, one arm on the set.")
    ] = None,
    restore: Annotated[bool, Option("--restore", help="Put withheld texts back from the sources.")] = False,
    home: Annotated[
        Path, Option("--from", metavar="FOLDER", help="With --restore: folder of relative paths.")
    ] = Path(),
    places: Annotated[
        list[str] | None,
        Option("--source", metavar="NAME=PATH", help="With --restore: the path of a source; repeatable."),
    ] = None,
) -> None:
    """Push a set to a hub, or write its receipt. Each version is a commit with a tag; --push sends it."""
    from curation.records import ConfigError

    if (name is not None) + receipt + restore != 1:
        raise ConfigError("Give one of --to OWNER/NAME, --receipt and --restore.")
    if receipt:
        from curation.publish.receipts import MEASURED, PAGE
        from flows.pipelines.receipts import measure_receipt
        from flows.run.terminal import echo

        for figure in measure_receipt(folder, ablation).figures:
            if figure.section in MEASURED:
                of = "" if figure.n is None else f" of {figure.n:,}"
                counted = f": {figure.counted}" if figure.counts else ""
                what = f"{figure.text}{of}{counted}" if figure.value is not None else f"{figure.text}: {figure.how}"
                echo(f"{figure.name:<32} {what}")
        echo(f"the receipt: {folder / 'curated' / PAGE}")
    elif restore:
        from flows.cli.publish import restore_set

        restore_set(folder, home, places or ())
    elif name is not None:
        from flows.cli.publish import publish_set

        publish_set(folder, name, push=push, public=public)


@verify_app.command("receipt", epilog="Example: goldilocks verify receipt runs/my-set")
def verify_receipt(
    folder: SetFolder,
    quick: Annotated[bool, Option("--quick", help="Plant no defects again.")] = False,
) -> None:
    """Compute the figures of a set's receipt again; status 1 if one differs."""
    from flows.pipelines import receipts
    from flows.run.terminal import echo

    found = receipts.verify_receipt(folder, quick=quick)
    for sentence in found.differing[:SHOWN]:
        echo(sentence)
    count = len(found.differing)
    if count > SHOWN:
        echo(f"… and {count - SHOWN:,} more")
    echo(f"computed again: {'; '.join(found.checked) or 'nothing'}")
    for text in found.unchecked:
        echo(f"not checked: {text}")
    differ = f"{count:,} {'thing differs' if count == 1 else 'things differ'} from the receipt of {found.folder}"
    echo(f"the receipt of {found.folder} holds" if found.holds else differ)
    if not found.holds:
        echo("`goldilocks run` writes an altered set again, from its run's folder")
        raise typer.Exit(1)
