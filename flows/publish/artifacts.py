"""Show a published set as Prefect artifacts."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from curation.publish.cards.facts import FunnelRow
from flows.publish.versions import CHANGELOG
from flows.run.pipeline import in_flow_run

PAGES = {"card": ("README.md", "Data card"), "changelog": (CHANGELOG, "Changelog")}
PLOTS = {"funnel": "Funnel", "pass_rates": "Pass rates"}


def show_in_prefect(name: str, curated: Path, funnel: Sequence[FunnelRow]) -> None:
    """Create a published set's artifacts, within a Prefect flow run."""
    if not in_flow_run():
        return
    from prefect.artifacts import create_image_artifact, create_markdown_artifact, create_table_artifact

    def about(subject: str, title: str) -> dict[str, Any]:
        key = f"{subject}-{name}".lower().replace(".", "-").replace("_", "-")  # Prefect's alphabet
        return {"key": key, "description": f"{title} of {name}"}

    rows = [{"stage": row.title, "in": row.rows_in, "kept": row.kept, "dropped": row.dropped} for row in funnel]
    create_table_artifact(table=rows, **about("funnel", "Funnel"))
    for subject, (file, title) in PAGES.items():
        if (path := curated / file).exists():
            text = path.read_text(encoding="utf-8").split("\n---\n", 1)[-1]  # without the YAML header and pictures
            shown = "\n".join(line for line in text.splitlines() if not line.startswith("!["))
            create_markdown_artifact(markdown=shown, **about(subject, title))
    for plot, title in PLOTS.items():
        if (path := curated / "plots" / f"{plot}.png").exists():
            image = "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
            create_image_artifact(image_url=image, **about(f"plot-{plot}", title))
