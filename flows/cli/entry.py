"""The `goldilocks` command. Each command reads its arguments, calls one function and prints what it returns.

Here are the commands of a run; `flows.cli.tools` holds those that work on files.
Whatever a user can mend ends as one sentence on standard error and exit status 1; nothing else is caught.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from curation.records import GoldilocksError
from flows.cli.tools import tools

INTERRUPTED = 130
"""Exit status of a command that Ctrl-C ended."""

app = typer.Typer(
    name="goldilocks",
    help="Turn raw math and code problems into RL training sets that are neither too easy nor too hard.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the recipe, as in stage1.band.attempts=8."),
]
RunFolder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")]


@app.command()
def run(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE.toml", help="What to run.")],
    overrides: Overrides = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Run folder; runs/NAME by default.")] = None,
    dry: Annotated[bool, typer.Option("--dry", help="Print what would be done, and do nothing.")] = False,
) -> None:
    """Run a recipe from raw rows to a curated set; a run that was killed goes on where it was."""
    from flows.cli.commands import run_recipe

    run_recipe(recipe, overrides or [], out, dry=dry)


@app.command()
def plan(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE.toml", help="What would be run.")],
    overrides: Overrides = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Run folder; runs/NAME by default.")] = None,
    pilot: Annotated[int, typer.Option(min=1, help="Problems of the pilot.")] = 64,
    stated: Annotated[bool, typer.Option("--stated", help="Run nothing: by the costs that the recipe states.")] = False,
) -> None:
    """Say what a run will cost, before it runs: its filters, then a pilot through each stage's policy."""
    if stated:
        from flows.cli.plan_stated import print_stated

        print_stated(recipe, overrides or [])
        return
    from flows.cli.plan import plan_recipe, print_plan

    print_plan(plan_recipe(recipe, out, overrides or [], pilot))


@app.command()
def status(folder: RunFolder) -> None:
    """Show the funnel so far."""
    from flows.cli.commands import show_status

    show_status(folder)


@app.command()
def explain(
    folder: RunFolder,
    problem: Annotated[str, typer.Argument(metavar="PROBLEM_ID", help="A problem's id, or the beginning of one.")],
) -> None:
    """Show one problem's whole way, with the evidence of every decision."""
    from flows.cli.explain import explain_problem

    explain_problem(folder, problem)


@app.command()
def rejudge(folder: RunFolder, overrides: Overrides = None) -> None:
    """Judge the recorded attempts again with today's verifier; print which decisions changed, and why."""
    from flows.cli.rejudge import rejudge_run

    rejudge_run(folder, overrides or [])


@app.command()
def review(
    folder: RunFolder,
    accept: Annotated[
        str | None, typer.Option("--accept", metavar="ID", help="This problem goes on, with the reference of --answer.")
    ] = None,
    answer: Annotated[str | None, typer.Option("--answer", metavar="X", help="The right reference.")] = None,
    reject: Annotated[str | None, typer.Option("--reject", metavar="ID", help="This problem is not used.")] = None,
    audit: Annotated[
        int | None, typer.Option("--audit", metavar="N", help="Draw N rows of the set, and estimate its wrong labels.")
    ] = None,
) -> None:
    """Show the disputed labels, or settle one of them; the next run applies what was settled."""
    from flows.cli.review import review_run

    review_run(folder, accept, reject, answer, audit)


@app.command()
def train(
    recipe: Annotated[Path | None, typer.Argument(metavar="RECIPE.toml", help="A training recipe.")] = None,
    overrides: Overrides = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Run folder; runs/NAME by default.")] = None,
    resume: Annotated[Path | None, typer.Option("--resume", metavar="DIR", help="Go on from its checkpoint.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only try whether the model can be trained as the recipe says: seconds.")
    ] = False,
) -> None:
    """Train a model on curated sets by reinforcement, or go on training one."""
    from flows.run.training import check as check_by
    from flows.run.training import train as train_by

    if check:
        typer.echo("\n".join(check_by(recipe, resume or out, overrides or [], resume=resume is not None)))
        return
    typer.echo(train_by(recipe, resume or out, overrides or [], resume=resume is not None))


@app.command()
def refresh(
    folder: RunFolder,
    policy: Annotated[Path, typer.Option("--policy", metavar="CHECKPOINT", help="A model's folder, or a .toml table.")],
    attempts: Annotated[
        Path | None, typer.Option("--attempts", metavar="FILE", help="Attempts that training made since.")
    ] = None,
) -> None:
    """Judge again, with a new checkpoint, what has become uncertain, and publish the set's next version."""
    from flows.cli.refresh import refresh_run

    refresh_run(folder, policy, attempts)


@app.command()
def serve(
    recipes: Annotated[list[Path], typer.Argument(metavar="RECIPE.toml…", help="Recipes with a schedule.")],
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Run folder, for one recipe.")] = None,
    port: Annotated[int | None, typer.Option(help="Port of the Prefect page.")] = None,
) -> None:
    """Run recipes on their schedules, training after new sets, refreshes after new checkpoints, until interrupted."""
    from flows.serve.serving import serve_recipes

    serve_recipes(recipes, out, port)


@app.command()
def settings(
    prefix: Annotated[str, typer.Argument(metavar="KEY", help="Only settings below this key.")] = "",
    train: Annotated[bool, typer.Option("--train", help="Those of a trainer's recipe.")] = False,
) -> None:
    """List every setting of a recipe, with its default and what it means."""
    from flows.cli.settings import print_settings

    print_settings(prefix, train=train)


app.add_typer(tools)


def main() -> None:
    """Run the `goldilocks` command: the entry point of the console script."""
    try:
        app()
    except GoldilocksError as error:
        print(f"goldilocks: {error}", file=sys.stderr)
        sys.exit(1)
    except SystemExit as end:  # typer ends an interrupted command so
        if end.code == INTERRUPTED:
            print("goldilocks: interrupted; run the same command again to go on.", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
