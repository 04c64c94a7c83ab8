"""Renders templates; addresses are relative, so that any prefix works."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from flows.page.formulas import rendered, rendered_answer
from flows.page.security import route_of

HERE = Path(__file__).parent
STATIC = HERE / "static"

_ALIGNED = re.compile(r' style="text-align:(left|right|center)"')


def show(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a template's page."""
    base = "../" * (route_of(request).count("/") - 1) or "./"  # the page's root, as ../../ for /r/demo/rows
    known = {"base": base, "csrf": request.state.csrf}
    return HTMLResponse(_environment().get_template(template).render(known | values), status)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "maths": rendered,
        "answer": rendered_answer,
        "count": lambda value: "–" if value is None else f"{value:,.0f}",
        "seconds": seconds,
        "words": lambda name: name.replace("_", " "),
        "query": lambda values: urlencode({name: value for name, value in values.items() if value not in (None, "")}),
        "card": card,
    }
    return environment


def seconds(value: float | None) -> str:
    """Return a duration in words.

    >>> seconds(3700)
    '1 h 02 min'
    """
    if value is None:
        return "–"
    if value < 60:
        return f"{value:.1f} s"
    minutes = round(value / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def card(text: str, pictures: str) -> Markup:
    """Return Markdown as HTML, without raw HTML.

    Args:
        pictures: their folder's relative address.
    """
    body = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    made = MarkdownIt("commonmark", {"html": False}).enable("table").render(body)
    made = _ALIGNED.sub(r' class="to-\1"', made)
    made = re.sub(r'<img src="(?:\./)?plots/([\w.-]+)"', rf'<img src="{pictures}\1"', made)
    return Markup(made)
