"""The `goldilocks` command and its commands of a run; see also `flows.cli.tools`."""

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option
from typer.core import TyperGroup

from flows.cli import errors
from flows.cli.tools import Thinking, Workers, tools

GROUPS: Mapping[str, Sequence[str]] = {
    "Make a set": ("init", "plan", "run", "status"),
    "Look at it and decide": ("explain", "diff", "review", "page"),
    "Train on it": ("train", "evaluate", "ablate", "refresh", "serve"),
    "Pass it on": ("export", "publish"),
    "Check and look up": ("verify", "doctor", "settings"),
}
"""Every command is in one group."""


class Commands(TyperGroup):
    """The commands of `goldilocks`, listed by group, with errors instead of click's "Aborted!"."""

    def invoke(self, ctx: Any) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except EOFError as error:
            raise SystemExit(errors.failed(error)) from error

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each group's commands."""
        width = max(map(len, self.list_commands(ctx)))
        limit = formatter.width - 6 - width
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(limit)) for name in names])


app = typer.Typer(
    name="goldilocks",
    cls=Commands,
    help="Turn raw math and code problems into RL training sets that are neither too easy nor too hard.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Overrides = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Change a setting, as stage1.band.attempts=8."),
]
RunOut = Annotated[Path | None, Option("--out", metavar="DIR", help="Run folder; runs/NAME by default.")]
RunFolder = Annotated[Path, Argument(metavar="DIR", help="Folder of a run.")]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
Gpus = Annotated[int | None, Option("--gpus", metavar="N", min=0, help="GPUs to use, an engine on each.")]
Batch = Annotated[
    str | None,
    Option("--batch", metavar="KIND", help="Only print the job file of slurm or kubernetes."),
]


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"goldilocks {version('goldilocks-rl')}")
        raise typer.Exit


@app.callback()
def goldilocks(
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print no progress, only warnings.")] = False,
    debug: Annotated[bool, Option("--debug", help="Print the trace of an error.")] = False,
    _version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Turn raw math and code problems into RL training sets that are neither too easy nor too hard."""
    from flows.run import progress

    progress.set_quiet(quiet)
    errors.debug = debug


@app.command(epilog="Example: goldilocks init problems.jsonl")
def init(
    rows: Annotated[Path, Argument(metavar="ROWS", help="Problems: .jsonl (also .gz, .zst), .parquet or .csv.")],
    out: Annotated[Path, Option(metavar="RECIPE.toml", help="The recipe to write.")] = Path("recipe.toml"),
    model: Annotated[
        str, Option(metavar="MODEL", help="The model to curate for: hub name or folder.")
    ] = "Qwen/Qwen2.5-7B-Instruct",
) -> None:
    """Write a recipe for a file of problems. Its columns are found by name."""
    from flows.cli.init import write_recipe

    typer.echo("\n".join(write_recipe(rows, out, model)))


@app.command(epilog="Example: goldilocks run recipe.toml --dry")
def run(
    recipe: Annotated[Path, Argument(metavar="RECIPE.toml", help="The recipe.")],
    overrides: Overrides = None,
    out: RunOut = None,
    dry: Annotated[bool, Option("--dry", help="Only print what would be done.")] = False,
    offline: Annotated[bool, Option("--offline", help="Ask no model; decide from stored attempts.")] = False,
    rehearse: Annotated[
        float | None,
        Option(metavar="SHARE", help="Try the whole recipe on a share of the rows, as 0.01, with small models."),
    ] = None,
    limit: Annotated[int | None, Option(metavar="N", min=1, help="Read only the first N rows of each source.")] = None,
    only: Annotated[
        str | None, Option(metavar="STAGE", help="Compute only this stage, as translation; others must be finished.")
    ] = None,
    gpus: Gpus = None,
    batch: Batch = None,
) -> None:
    """Run a recipe from raw rows to a curated set. The same command continues a killed run."""
    from curation.records import ConfigError
    from flows.cli.commands import run_recipe

    if only is not None and (dry or rehearse is not None or batch is not None):
        raise ConfigError("--only runs a stage; it does not go with --dry, --rehearse or --batch.")
    changes = overrides or []
    if limit is not None:
        from flows.run.recipe import load_recipe

        count = len(load_recipe(recipe, changes).sources)
        changes = [*changes, *(f"sources.{number}.limit={limit}" for number in range(count))]
    if batch is not None:
        from flows.cli.gpus import batch_file

        typer.echo(batch_file(batch, recipe, changes, out, gpus, None), nl=False)
        return
    if gpus is not None:
        from flows.cli.gpus import copies_overrides, take_gpus
        from flows.run.recipe import load_recipe

        changes = [*changes, *copies_overrides(load_recipe(recipe, changes), len(take_gpus(gpus)))]
    if rehearse is not None:
        from flows.cli.rehearse import show_rehearsal

        raise typer.Exit(show_rehearsal(recipe, rehearse, changes, out))
    run_recipe(recipe, changes, out, dry=dry, no_model=offline, only=only)


@app.command(epilog="Example: goldilocks plan recipe.toml --stated")
def plan(
    recipe: Annotated[Path, Argument(metavar="RECIPE.toml", help="A curation or training recipe.")],
    overrides: Overrides = None,
    out: RunOut = None,
    pilot: Annotated[int, Option(min=1, help="Problems in the pilot.")] = 64,
    stated: Annotated[bool, Option("--stated", help="Run nothing; use the recipe's [costs].")] = False,
    json: Json = False,
) -> None:
    """Show the cost of a run before it starts. It runs the filters and a pilot of each stage."""
    from flows.cli.gpus import is_training_recipe
    from flows.cli.plan import show_plan, show_training_plan

    if is_training_recipe(recipe):
        show_training_plan(recipe, overrides or [], stated=stated, as_json=json)
    else:
        show_plan(recipe, overrides or [], out, pilot, stated=stated, as_json=json)


@app.command(epilog="Example: goldilocks status runs/my-set")
def status(folder: RunFolder, json: Json = False) -> None:
    """Show the funnel so far."""
    from flows.cli.status import show_status

    show_status(folder, as_json=json)


@app.command(epilog="Example: goldilocks explain runs/my-set 5f0c2a")
def explain(
    folder: RunFolder,
    problem: Annotated[
        str,
        Argument(metavar="PROBLEM_ID", help="A problem's id, its beginning, or a drop reason, whose rows are listed."),
    ],
    json: Json = False,
) -> None:
    """Show what became of one problem, with the evidence."""
    from flows.cli.explain import explain_problem

    explain_problem(folder, problem, as_json=json)


@app.command(epilog="Example: goldilocks review runs/my-set --reject 5f0c2a")
def review(
    folder: RunFolder,
    accept: Annotated[
        str | None, Option(metavar="ID", help="Keep this problem, with the reference of --answer.")
    ] = None,
    answer: Annotated[str | None, Option(metavar="X", help="The right reference.")] = None,
    reject: Annotated[str | None, Option(metavar="ID", help="Drop this problem.")] = None,
    audit: Annotated[
        int | None, Option(metavar="N", min=1, help="Draw N rows of the set, and estimate its wrong labels.")
    ] = None,
    debate: Annotated[str | None, Option(metavar="MODEL", help="Have this model judge a debate on each label.")] = None,
    debater: Annotated[str | None, Option(metavar="MODEL", help="The model that argues; the judge if missing.")] = None,
    decide_at: Annotated[
        float | None, Option(metavar="P", min=0.51, max=1, help="Accept answers of at least this probability.")
    ] = None,
    limit: Annotated[int | None, Option(metavar="N", min=1, help="Debate at most N problems.")] = None,
    overrides: Annotated[
        list[str] | None, Option("--set", metavar="KEY=VALUE", help="With --debate: change a model's setting.")
    ] = None,
) -> None:
    """Show disputed labels, and settle them. Models can debate them; the next run applies the decisions."""
    from curation.records import ConfigError
    from flows.cli.review import debate_labels, review_run

    if sum(value is not None for value in (accept, reject, audit, debate)) > 1:
        raise ConfigError("--accept, --reject, --audit and --debate: give one of them; each is a command of its own.")
    if (accept is None) != (answer is None):
        raise ConfigError("--accept ID and --answer X belong together: which problem, and its right reference.")
    if debate is not None:
        debate_labels(folder, debate, debater or debate, decide_at, limit, overrides or [])
    elif any((debater, decide_at, limit, overrides)):
        raise ConfigError("--debater, --decide-at, --limit and --set need --debate MODEL.")
    else:
        review_run(folder, accept if accept is not None else reject, answer, audit)


@app.command(epilog="Example: goldilocks page runs")
def page(
    folder: Annotated[Path, Argument(metavar="DIR", help="Folder of a run, or of several.")],
    host: Annotated[str, Option(help="Address to listen on; other machines need a token.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 4300,
) -> None:
    """Look at a run in a browser, and judge its disputed labels."""
    from curation.extras import require_extra

    require_extra("page", "the page")
    from flows.page.app import serve_page

    serve_page(folder, host, port)


@app.command(epilog="Example: goldilocks train train.toml --check")
def train(
    recipe: Annotated[Path | None, Argument(metavar="RECIPE.toml", help="A training recipe.")] = None,
    overrides: Overrides = None,
    out: RunOut = None,
    resume: Annotated[Path | None, Option(metavar="DIR", help="Continue this run.")] = None,
    check: Annotated[bool, Option("--check", help="Only check whether the model can be trained.")] = False,
    data: Annotated[str | None, Option(metavar="attempts", help="Start from the attempts of curation.")] = None,
    gpus: Gpus = None,
    trainer_gpus: Annotated[
        int | None, Option(metavar="N", min=1, help="GPUs that train; the others generate.")
    ] = None,
    batch: Batch = None,
) -> None:
    """Train a model on curated sets, or continue a training run."""
    from curation.records import ConfigError
    from flows.run import training
    from flows.serve.server import user_api

    changes, resumes = overrides or [], resume is not None
    if data is not None:
        changes = training.from_attempts(None if resumes else recipe, changes, data)
    if check:
        typer.echo("\n".join(training.check(recipe, resume or out, changes, resume=resumes)))
        return
    if batch is not None:
        from flows.cli.gpus import batch_file

        if recipe is None:
            raise ConfigError("--batch needs the recipe; the job that it starts continues its own run.")
        typer.echo(batch_file(batch, recipe, changes, resume or out, gpus, trainer_gpus), nl=False)
        return
    folder = resume or out or training.default_folder(recipe, changes)
    errors.training = folder
    if gpus is not None or trainer_gpus is not None:
        from flows.cli.gpus import take_gpus

        resumes, named = (folder / "run.json").exists(), take_gpus(gpus)
        typer.echo(training.train_apart(recipe, folder, changes, resume=resumes, gpus=named, trainers=trainer_gpus))
    elif recipe is not None and not resumes and user_api() is not None:
        from flows.train import train as train_flow

        typer.echo(train_flow.with_options(retries=0)(recipe.absolute(), folder, changes))
    else:
        apart = training.needs_ranks(recipe, folder, changes, resume=resumes)
        work = training.train_apart if apart else training.train
        typer.echo(work(recipe, folder, changes, resume=resumes))


@app.command("evaluate", epilog="Example: goldilocks evaluate aime24 --policy models/student")
def evaluate_command(
    bench: Annotated[str, Argument(metavar="BENCH", help="A .toml file, the name of a ready bench, or list.")],
    policy: Annotated[
        Path | None,
        Option(metavar="SPEC", help="A model's folder, or FILE.toml[:NAME] with a table [models.NAME]."),
    ] = None,
    attempts: Annotated[
        Path | None, Option(metavar="FILE", help="Attempts made elsewhere, instead of a policy.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        Option("--map", metavar="FIELD=COLUMN", help="Column of a field of --attempts, as text=response."),
    ] = None,
    out: Annotated[Path | None, Option(metavar="DIR", help="Folder; runs/evaluate-BENCH-POLICY by default.")] = None,
    overrides: Overrides = None,
    against: Annotated[Path | None, Option(metavar="DIR", help="Another evaluation, to compare with.")] = None,
    trained_on: Annotated[
        list[Path] | None, Option(metavar="DIR", help="A set or training run that the policy was trained on.")
    ] = None,
) -> None:
    """Evaluate a policy on a benchmark. Pass rates, lengths, format and languages have intervals."""
    from flows.cli.evaluate import chosen_policy, list_benches
    from flows.pipelines.evaluate import FOLDER, default_folder, evaluate
    from flows.run.benches import load_bench
    from flows.run.terminal import echo
    from training.evaluation.report import report_lines

    if bench == "list":
        list_benches()
        return
    settings, home = load_bench(bench, overrides or [])
    model, model_home = chosen_policy(settings, home, policy, attempts, columns or [])
    folder = out or default_folder(settings, model)
    report = evaluate(settings, model, folder, home, model_home, against=against, trained_on=trained_on or [])
    echo("\n".join(report_lines(report)))
    echo(f"\nthe page: {folder.absolute() / FOLDER / 'report.html'}")


@app.command("ablate", epilog="Example: goldilocks ablate staleness")
def ablate_command(
    ablation: Annotated[str | None, Argument(metavar="ABLATION", help="A .toml file, or a ready ablation.")] = None,
    overrides: Overrides = None,
    out: Annotated[Path | None, Option(metavar="DIR", help="Folder; runs/ablate-NAME by default.")] = None,
    analyse: Annotated[Path | None, Option(metavar="RUN", help="Analyse a training run's weights instead.")] = None,
    grid: Annotated[int, Option(min=3, help="With --analyse: points per direction.")] = 9,
    problems: Annotated[int, Option(min=1, help="With --analyse: problems per point.")] = 512,
    attempts: Annotated[int, Option(min=1, help="With --analyse: attempts per problem.")] = 16,
) -> None:
    """Train and evaluate the arms of an ablation. Every seed is compared with the base."""
    from curation.records import ConfigError

    if (ablation is None) == (analyse is None):
        raise ConfigError("Give an ablation to run, or --analyse RUN.")
    from flows.pipelines import ablate  # imports torch
    from flows.run.terminal import echo

    if analyse is not None:
        analysis = ablate.analyse(analyse, grid, problems, attempts)
        states, (first, second) = len(analysis.directions.states), analysis.directions.explained
        echo(f"{states} checkpoints; two directions explain {first:.1%} and {second:.1%} of the path")
        if analysis.fit is not None:
            echo(analysis.fit.phrase)
        echo(str(analysis.plots))
    elif ablation is not None:
        from flows.run.benches import find_file

        report = ablate.ablate(find_file("ablation", ablation).absolute(), out, overrides or []) / "report.md"
        echo(f"{report.read_text(encoding='utf-8')}\nthe report: {report}")


@app.command(epilog="Example: goldilocks refresh runs/my-set --policy runs/train/model")
def refresh(
    folder: RunFolder,
    policy: Annotated[Path, Option(metavar="CHECKPOINT", help="A model's folder, or FILE.toml[:NAME].")],
    attempts: Annotated[Path | None, Option(metavar="FILE", help="Attempts of training since then.")] = None,
    accept: Annotated[
        bool, Option("--accept", help="Publish even with a far weaker checkpoint or an empty set.")
    ] = False,
) -> None:
    """Judge a set again with a new checkpoint. Only uncertain problems are measured; a next version is published."""
    from flows.cli.commands import refresh_run

    refresh_run(folder, policy, attempts, accept=accept)


@app.command(epilog="Example: goldilocks serve recipe.toml --out runs/my-set")
def serve(
    places: Annotated[
        list[Path] | None,
        Argument(metavar="RECIPE.toml…", help="Recipes with [schedule]; with --reward: runs or sets."),
    ] = None,
    out: Annotated[Path | None, Option(metavar="DIR", help="Run folder, for one recipe.")] = None,
    port: Annotated[int | None, Option(help="Port of Prefect's page, or of the judge (8765).")] = None,
    reward: Annotated[bool, Option("--reward", help="Serve rewards of responses, for any trainer.")] = False,
    host: Annotated[str, Option(help="With --reward: address to listen on; other machines need a key.")] = "127.0.0.1",
    workers: Workers = None,
    thinking: Thinking = "<think>",
    response_format: Annotated[str, Option("--format", help="With --reward: as `verify.response_format`.")] = "any",
) -> None:
    """Run recipes on their schedules, or serve rewards. New sets are trained on, new checkpoints refresh."""
    from curation.records import ConfigError

    if reward:
        from curation.extras import require_extra

        require_extra("page", "the reward service")
        from curation.http_server import address_of, listen, server_of
        from curation.publish.export_formats import set_records
        from curation.scoring import Scorer, ScoringSettings
        from curation.scoring.service import KEY, reward_app
        from curation.server_guard import LOCAL
        from flows.publish.curated_set import published_folder

        api_key = os.environ.get(KEY) or (None if host in LOCAL else secrets.token_urlsafe(18))
        records: dict[str, str] = {}
        for folder in places or ():
            records |= set_records(published_folder(folder))
        settings = ScoringSettings(thinking=thinking, response_format=response_format, workers=workers)
        with Scorer(settings) as scorer, listen(host, 8765 if port is None else port) as listening:
            known = f"; {len(records):,} problems by their ids" if records else ""
            address = address_of(listening, api_key)
            typer.echo(f"judging at {address}/score and /get_reward{known}; Ctrl-C ends it")
            server_of(reward_app(scorer, records, api_key)).run(sockets=[listening])
        return
    if not places:
        raise ConfigError("goldilocks serve needs a recipe with a schedule, or --reward.")
    from flows.serve.serving import serve_recipes

    serve_recipes(places, out, port)


@app.command(epilog="Example: goldilocks settings stage1.band")
def settings(
    key: Annotated[str, Argument(metavar="KEY", help="Only settings with this key or word.")] = "",
    train: Annotated[bool, Option("--train", help="Settings of a training recipe.")] = False,
    schema: Annotated[bool, Option("--schema", help="Print the JSON Schema, for editors.")] = False,
) -> None:
    """List the settings of a recipe, with defaults and meanings."""
    from flows.cli.settings import show_settings

    show_settings(key, train=train, schema=schema)


app.add_typer(tools)


def main() -> None:
    """Run the console script `goldilocks`."""
    sys.exit(errors.ended(app))
