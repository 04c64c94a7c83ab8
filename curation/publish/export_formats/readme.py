"""The README and the modules next to an exported set's rows."""

from __future__ import annotations

from collections.abc import Mapping, Set

from curation.prompts.asked import Asked
from curation.publish.export_formats.rows import FORMATS
from curation.response_formats import ANY
from curation.thinking import OPEN
from curation.verify.own_judges import VARIABLE

_INSTALL = """
The judge is in the package `goldilocks-rl`. In the trainer's environment it needs four packages, and neither torch nor
Prefect:

    pip install --no-deps goldilocks-rl
    pip install polars orjson python-flint sympy
"""


def readme(form: str, name: str, folder: str, license: str, asked: Asked) -> str:
    """Return an exported set's README."""
    text = FORMATS[form]["readme"].replace("{folder}", folder)
    if not asked.prompt.system:
        text = text.replace(f"        system_prompt_file: {folder}/system_prompt.txt\n", "")
    if form == "nemo-gym":
        text += (
            f"\nThe set's licence is `{license}`; its configuration has `{_of_nemo_gym(license)}`, in NeMo Gym's "
            "own words, or TBD where it has none for it.\n"
        )
    return f"# {name}, for {form}\n\n{text}{_how_asked(asked)}{_INSTALL}"


def modules(form: str, domains: Set[str], license: str) -> Mapping[str, str]:
    """Return the files next to a format's rows, by relative path."""
    domain = {"math": "math", "code": "coding"}[next(iter(domains))] if len(domains) == 1 else "other"
    return {
        name: text.replace("{domain}", domain).replace("{license}", _of_nemo_gym(license))
        for name, text in FORMATS[form].get("modules", {}).items()
    }


def _of_nemo_gym(license: str) -> str:
    names: Mapping[str, str] = FORMATS["nemo-gym"]["licenses"]
    return names.get(license.lower(), "TBD")


def _how_asked(asked: Asked) -> str:
    examples = f", with {len(asked.prompt.examples)} worked examples before it" if asked.prompt.examples else ""
    text = f"\nRows ask as the problems were measured: by the prompt `{asked.prompt.version}`{examples}."
    read = {"thinking": (asked.thinking, OPEN), "response_format": (asked.response_format, ANY)}
    other = [f"`{name} = {value!r}`" for name, (value, usual) in read.items() if value != usual]
    text += f" Their records have responses read by {' and '.join(other)}.\n" if other else "\n"
    if not asked.judges:
        return text
    names = [label.partition("@")[0] for label in asked.judges]
    return text + (
        f"\nThey were measured with judges of its maker's own, and are not judged without: {', '.join(names)}. Get "
        "these files from the maker, read them, for they run with your rights, and name them to the trainer's "
        f"processes:\n\n    export {VARIABLE}={','.join('path/to/' + name for name in names)}\n\n"
        f"The records name the digests that the files must have: {', '.join(asked.judges)}.\n"
    )
