"""The commands on files: `verify`, `doctor`, `export`, `diff` and `publish`."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

tools = typer.Typer()
verify_app = typer.Typer(
    help="Judge answers, programs, rows and receipts outside a run.", no_args_is_help=True, rich_markup_mode=None
)
tools.add_typer(verify_app, name="verify")

Rows = Annotated[Path, Argument(metavar="IN", help="Rows: .jsonl (also .gz, .zst, .bz2, .xz), .parquet or .csv.")]
Thinking = Annotated[str, Option("--thinking", metavar="TAG", help="Tag of thoughts, as [THINK], or none.")]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
SetFolder = Annotated[Path, Argument(metavar="DIR", help="Folder of a run, or of a curated set.")]
Workers = Annotated[int | None, Option(min=1, help="Verifier processes; one per core by default.")]


@verify_app.command()
def statements(
    rows: Rows,
    out: Annotated[Path, Option(metavar="OUT.jsonl", help="One line per row, in order.")],
    columns: Annotated[
        list[str] | None,
        Option("--map", metavar="FIELD=COLUMN", help="Column of a field, as statement=question."),
    ] = None,
    bad_rows: Annotated[int, Option(min=0, help="Max unreadable rows, set aside in OUT.jsonl.quarantine.parquet.")] = 0,
) -> None:
    """Run the format filter alone, with the reason and evidence for each row."""
    from flows.cli.files import classify_file

    classify_file(rows, out, columns or [], bad_rows)


@verify_app.command()
def overlap(
    rows: Rows,
    against: Annotated[list[Path], Option(metavar="BENCH", help="A benchmark's file; repeatable.")],
    out: Annotated[Path, Option(metavar="OUT.jsonl", help="One line per row, in order, with its hits.")],
    methods: Annotated[
        list[str] | None,
        Option("--method", help="ngram, words (both by default), embedding (an extra); repeatable."),
    ] = None,
    field: Annotated[str | None, Option(help="Column of the statement.")] = None,
    benchmark_field: Annotated[str | None, Option(help="Column of the benchmarks' statement.")] = None,
) -> None:
    """Find rows that overlap with benchmarks, with row, method and score."""
    from flows.cli.files import decontaminate_file

    decontaminate_file(rows, against, out, methods or [], field, benchmark_field)


@verify_app.command()
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
    from flows.cli.files import verify_file

    verify_file(pairs, out, workers, thinking, response_format, judges or [])


@verify_app.command()
def code(
    problems: Annotated[
        Path, Option(metavar="P.jsonl", help="`id`, `tests`, `language`, limits, `checker`, `function`.")
    ],
    submissions: Annotated[Path, Option(metavar="S.jsonl", help="`id`, `problem`, `lang`, `code`; or `response`.")],
    out: Annotated[Path, Option(metavar="OUT.jsonl", help="One verdict per submission, in order.")],
    workers: Workers = None,
    every: Annotated[bool, Option("--every", help="Run every test, also after the first that fails.")] = False,
    isolation: Annotated[str | None, Option(metavar="RUNG", help="Use only this isolation; see doctor.")] = None,
    no_isolation: Annotated[
        bool, Option("--no-isolation", help="Run programs unprotected if there is no isolation. Dangerous.")
    ] = False,
    thinking: Thinking = "<think>",
) -> None:
    """Run programs on tests in the sandbox, and write the verdict on each."""
    from flows.cli.files import verify_code_file

    verify_code_file(
        problems,
        submissions,
        out,
        workers,
        thinking=thinking,
        every=every,
        rung=isolation,
        allow_none=no_isolation,
    )


@tools.command(epilog="Example: goldilocks doctor")
def doctor() -> None:
    """Show how this machine isolates foreign code. Each property is tried."""
    from flows.cli.doctor import print_diagnosis

    print_diagnosis()


@verify_app.command()
def language(
    rows: Rows,
    out: Annotated[Path, Option(metavar="OUT.jsonl", help="The rows with `lang` and `confidence`.")],
    field: Annotated[str, Option(help="Column of the text.")] = "text",
    among: Annotated[list[str] | None, Option(metavar="LANG", help="A possible language; repeatable.")] = None,
) -> None:
    """Identify the language of texts."""
    from flows.cli.files import detect_language_file
    from flows.run.terminal import echo

    counts = detect_language_file(rows, out, field=field, among=tuple(among or ()))
    echo(", ".join(f"{lang} {count:,}" for lang, count in counts.items()) + f": {out}")


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
    from flows.cli.files import export_folder

    export_folder(folder, form, out, check=check)


@tools.command(epilog="Example: goldilocks diff runs/my-set@1 runs/my-set@2")
def diff(
    old: Annotated[str, Argument(metavar="A", help="A run, a curated set, or a version of a run's set: RUN@2.")],
    new: Annotated[str, Argument(metavar="B", help="The same, to compare with A.")],
    out: Annotated[Path | None, Option(metavar="FILE", help="Write a row per problem, as .parquet or .jsonl.")] = None,
    json: Json = False,
) -> None:
    """Compare two curated sets, or two versions of one. Shows problems, pass rates, contents and verdicts."""
    from flows.cli.diff import show_diff

    show_diff(old, new, out, as_json=json)


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
        from flows.cli.publish import write_receipt

        write_receipt(folder, ablation)
    elif restore:
        from flows.cli.publish import restore_set

        restore_set(folder, home, places or ())
    elif name is not None:
        from flows.cli.publish import publish_set

        publish_set(folder, name, push=push, public=public)


@verify_app.command("receipt")
def verify_receipt(
    folder: SetFolder,
    quick: Annotated[bool, Option("--quick", help="Plant no defects again.")] = False,
    json: Json = False,
) -> None:
    """Compute the figures of a set's receipt again; status 1 if one differs."""
    from flows.cli.publish import print_verification

    print_verification(folder, quick=quick, as_json=json)
