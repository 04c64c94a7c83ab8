"""Record how a set's problems and a trained model are asked.

Recorded attempts have no `asked.json`; their problems are asked by `SOLVE`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.config.loading import parse_settings
from curation.config.policies import LiveModel, PromptFile
from curation.prompts.base import Prompt
from curation.prompts.solving import SOLVE, prompt_of
from curation.records import ConfigError, SourceError
from curation.response_formats import ANY, checked_format
from curation.thinking import OPEN
from curation.verify.own_judges import needed_judges

FILE = "asked.json"

_TEMPLATE, _TOKENIZER = "chat_template.jinja", "tokenizer_config.json"

ADD_SYSTEM = "add_system_message"
"""The chat template's argument that, if false, adds no system message."""

_ADDED = re.compile(r"{#- system message of the training -#}.*?{#- end -#}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Asked:
    """A set's prompt, its policy's thinking tags, and the form of its answers.

    ``judges`` are labels of the user's own judges that measured it.
    """

    prompt: Prompt = SOLVE
    thinking: str | tuple[str, str] = OPEN
    response_format: str = ANY
    judges: tuple[str, ...] = ()


def asked_by(policy: LiveModel, response_format: str) -> str:
    """Return a live policy's prompt and settings as JSON for `FILE`."""
    prompt = {"text": policy.prompt.text} if isinstance(policy.prompt, PromptFile) else policy.prompt
    examples = [[example.statement, example.response] for example in policy.examples]
    asked = {"prompt": prompt, "thinking": policy.thinking, "examples": examples, "response_format": response_format}
    return json.dumps(asked, indent=1, ensure_ascii=False) + "\n"


def read_asked(folder: Path) -> Asked:
    """Return how a published set's problems were asked; defaults without `asked.json`.

    Raises:
        SourceError: the file is damaged.
    """
    path, judges = folder / FILE, needed_judges(folder)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        policy = parse_settings(LiveModel, {"model": FILE, **_settings(content)}, "its prompt")
        return Asked(prompt_of(policy), policy.thinking, checked_format(content["response_format"]), judges)
    except FileNotFoundError:
        return Asked(judges=judges)
    except (ConfigError, KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{path} does not state how problems were asked ({error}); publish it again.") from error


def write_asked(folder: Path, policy: LiveModel, response_format: str) -> None:
    """Write into a model's folder how it is asked; its chat template adds the system message."""
    (folder / FILE).write_text(asked_by(policy, response_format), encoding="utf-8")
    system = prompt_of(policy).system
    if (path := folder / _TEMPLATE).is_file():
        path.write_text(with_system_message(path.read_text(encoding="utf-8"), system), encoding="utf-8")
    elif (path := folder / _TOKENIZER).is_file():
        table = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(table.get("chat_template"), str):
            table["chat_template"] = with_system_message(table["chat_template"], system)
            path.write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def with_system_message(template: str, system: str) -> str:
    """Return a chat template that adds this system message to chats without, replacing an earlier one."""
    template = _ADDED.sub("", template, count=1)
    if not system:
        return template
    text = system.encode("unicode-escape").decode().replace('"', '\\"')
    return (
        "{#- system message of the training -#}"
        f"{{%- if {ADD_SYSTEM} | default(true) and (not messages or messages[0]['role'] != 'system') -%}}"
        f"{{%- set messages = [{{'role': 'system', 'content': \"{text}\"}}] + messages -%}}"
        "{%- endif -%}{#- end -#}" + template
    )


def asked_settings(folder: Path) -> dict[str, Any]:
    """Return a trained model's prompt, tags and examples as settings, if any.

    Raises:
        SourceError: the file is damaged.
    """
    path = folder / FILE
    if not path.is_file():
        return {}
    read_asked(folder)
    return _settings(json.loads(path.read_text(encoding="utf-8")))


def _settings(content: Mapping[str, Any]) -> dict[str, Any]:
    prompt = content["prompt"]
    return {
        "prompt": {"file": FILE, "text": prompt["text"]} if isinstance(prompt, dict) else prompt,
        "thinking": content["thinking"],
        "examples": [{"statement": statement, "response": response} for statement, response in content["examples"]],
    }
