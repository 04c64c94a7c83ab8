"""Show a published set as Prefect artifacts."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

from curation.publish.cards import FunnelRow
from flows.publish.versions import CHANGELOG
from flows.run.pipeline import in_flow_run

PLOTS = ("funnel", "pass_rates")


def show_in_prefect(name: str, curated: Path, funnel: Sequence[FunnelRow]) -> None:
    """Create a published set's artifacts, within a Prefect flow run."""
    if not in_flow_run():
        return
    from prefect.artifacts import create_image_artifact, create_markdown_artifact, create_table_artifact

    rows = [{"stage": row.title, "in": row.rows_in, "kept": row.kept, "dropped": row.dropped} for row in funnel]
    create_table_artifact(table=rows, key=artifact_key("funnel", name), description=f"Funnel of {name}")
    card = (curated / "README.md").read_text(encoding="utf-8")
    create_markdown_artifact(
        markdown=for_a_page(card), key=artifact_key("card", name), description=f"Data card of {name}"
    )
    show_changelog(name, curated)
    for plot in PLOTS:
        path = curated / "plots" / f"{plot}.png"
        if path.exists():
            image = "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
            title = plot.replace("_", " ").capitalize()
            create_image_artifact(
                image_url=image, key=artifact_key(f"plot-{plot}", name), description=f"{title} of {name}"
            )


def show_changelog(name: str, curated: Path) -> None:
    """Create the changelog's artifact, if any."""
    path = curated / CHANGELOG
    if path.exists():
        from prefect.artifacts import create_markdown_artifact

        text = path.read_text(encoding="utf-8")
        create_markdown_artifact(markdown=text, key=artifact_key("changelog", name), description=f"Changelog of {name}")


def for_a_page(card: str) -> str:
    """Return the card without its YAML header and pictures."""
    text = card.split("\n---\n", 1)[-1]
    return "\n".join(line for line in text.splitlines() if not line.startswith("!["))


def artifact_key(subject: str, name: str) -> str:
    """Return an artifact's key, within Prefect's alphabet `a-z0-9-`."""
    return f"{subject}-{name}".lower().replace(".", "-").replace("_", "-")
