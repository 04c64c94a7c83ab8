"""A recipe's models: attempts of a file, vLLM in this run, or servers; and decoding."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeFloat,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from curation.config.base import Settings, Url
from curation.config.mistakes import did_you_mean
from curation.public_urls import public_url
from curation.thinking import OPEN, ThinkingTags


def _check_tags(thinking: str | tuple[str, str]) -> str | tuple[str, str]:
    ThinkingTags.of(thinking)
    return thinking


Thinking = Annotated[
    str | tuple[str, str],
    AfterValidator(_check_tags),
    Field(description="Tags of the model's thoughts: the opening one, as `[THINK]`, both as a list, or `none`."),
]
"""A setting that `ThinkingTags.of` takes."""


class PromptFile(Settings):
    """A system prompt in a file of its own."""

    file: str = Field(min_length=1)
    """Its file, relative to the recipe's folder."""
    text: SkipJsonSchema[str] = Field(min_length=1)
    """Its content, read with the recipe."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, table: Any, info: ValidationInfo) -> Any:
        if not isinstance(table, Mapping) or "text" in table or not isinstance(file := table.get("file"), str):
            return table
        path = (info.context or {}).get("folder", Path()) / Path(file).expanduser()
        try:
            return {**table, "text": path.read_text(encoding="utf-8").strip()}
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} cannot be read ({error}); name a text file") from error


SolvingPrompt = Annotated[Literal["solve", "plain"] | PromptFile, Field(union_mode="left_to_right")]
"""A prompt's name, or a user's system prompt, for `prompt_of`."""


class WorkedExample(Settings):
    """A problem and an exemplary response."""

    statement: str = Field(min_length=1)
    """The problem."""
    response: str = Field(min_length=1)
    """The whole response with its final answer."""


class AttemptColumns(Settings):
    """The columns of a file of recorded attempts."""

    problem: str = "problem"
    """Path of the problem's text."""
    choices: str | None = None
    """Path of the list of options, if they are not in the text."""
    attempts: str | None = None
    """Path of the list of attempts; the row itself if missing."""
    text: str | None = None
    """Path of the response inside the attempt; `text` if `answer` is missing too."""
    answer: str | None = None
    """Path of an extracted final answer inside the attempt."""
    model: str | None = None
    """Path of the model's name, in the attempt or its row."""
    label: str | None = None
    """Path of a true/false label, which is compared with our verdicts but never used."""

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if self.text is None and self.answer is None:
            self.__dict__["text"] = "text"
        return self


class RecordedModel(Settings):
    """Attempts made elsewhere, read from a file."""

    kind: Literal["recorded"]
    """`recorded`: attempts of a file."""
    path: str
    """File (.jsonl, .parquet, also compressed), relative to the recipe's folder."""
    name: str = Field("", pattern=r"^([^@\s]+@[^@\s]+)?$")
    """`model@revision` of the attempts; by the file's name if missing."""
    columns: AttemptColumns = AttemptColumns()
    """The column map."""
    thinking: Thinking = OPEN
    _domain: str = PrivateAttr("math")

    @property
    def domain(self) -> str:
        """Return the recipe's or bench's domain, which problem ids depend on."""
        return self._domain

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if not self.name:  # set despite the frozen model, as the file determines it
            stem = re.sub(r"[@\s]", "-", Path(self.path).name.partition(".")[0])
            self.__dict__["name"] = f"{stem or 'attempts'}@recorded"
        return self


class Decoding(Settings):
    """How a live policy draws its tokens. Attempts are filed under a digest of these values."""

    temperature: float = Field(0.7, ge=0)
    """Sampling temperature. Paper: 0.7 in evaluations, 1.0 in training."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Nucleus sampling. Paper: 1.0 for math, 0.95 for code."""
    max_tokens: int = Field(16384, ge=1)
    """Max tokens of one attempt. Paper: 32k to 40k in evaluations."""


class LiveModel(Settings):
    """Settings of every policy that generates."""

    loads_folder: ClassVar[bool] = False
    """Whether ``model`` may be a folder with weights, relative to the recipe's."""

    model: str = Field(min_length=1)
    """Folder relative to the recipe's, or `embedded`, the shipped model (`vllm`, `torch`); name on the hub (`vllm`) or
    on the servers (`endpoint`)."""
    prompt: SolvingPrompt = "solve"
    """`solve`: the reasoning prompt; `plain`: the statement alone; `{ file = "prompt.txt" }`: a system prompt of
    yours."""
    thinking: Thinking = OPEN
    examples: tuple[WorkedExample, ...] = ()
    """Few-shot examples, as earlier turns of the chat."""
    decoding: Decoding = Decoding()
    """Sampling of tokens."""

    @property
    def name(self) -> str:
        """Return the displayed name; attempts of a folder's model are filed by the weights' hash."""
        return f"{self.model}@{getattr(self, 'revision', None) or 'folder'}"


class EngineSettings(Settings):
    """vLLM's engine on this machine."""

    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    """Type of weights and activations; `auto`: the checkpoint's."""
    max_model_len: int | None = Field(None, ge=2)
    """Max tokens of prompt and answer together; the model's limit if missing."""
    gpu_memory: float = Field(0.9, gt=0, le=1)
    """Share of the GPU's memory for the engine."""
    kv_cache_mb: int | None = Field(None, ge=16)
    """MiB of the KV cache; the rest of `gpu_memory` if missing, 1024 on a CPU."""
    tensor_parallel: int = Field(1, ge=1)
    """GPUs that share the model's layers."""


class ServerSettings(Settings):
    """Servers that hold one model."""

    urls: tuple[Url, ...] = Field(min_length=1)
    """Base addresses, as `http://localhost:8000/v1`. Start `vllm serve` with `--generation-config vllm`."""
    api_key_env: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Environment variable with the key."""
    in_flight: int = Field(64, ge=1)
    """Max requests in flight per server; fewer after many 429 or 503."""

    @field_validator("urls")
    @classmethod
    def _addresses(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [url for url in urls if not url.startswith(("http://", "https://"))]
        if wrong:
            raise ValueError(f"{public_url(wrong[0])!r} is no address; write http://host:port/v1")
        if len({url.rstrip("/").removesuffix("/v1") for url in urls}) < len(urls):
            raise ValueError("it names one server twice")
        return urls


class VllmModel(EngineSettings, LiveModel):
    """A model that vLLM runs on this machine, in an engine that belongs to the run."""

    loads_folder = True

    kind: Literal["vllm"]
    """`vllm`: an engine on this machine."""
    revision: str | None = None
    """Commit or tag; required for a model on the hub."""
    in_flight: int = Field(256, ge=1)
    """Requests in flight per copy."""
    data_parallel: Annotated[int, Field(ge=1)] | Literal["auto"] = 1
    """Copies of the model, each on `tensor_parallel` GPUs; `auto`: as many as fit."""

    def copies(self, gpus: int) -> int:
        """Return the number of copies on `gpus` GPUs; `auto` is one without GPUs."""
        return max(1, gpus // self.tensor_parallel) if self.data_parallel == "auto" else self.data_parallel


class EndpointModel(ServerSettings, LiveModel):
    """A model on OpenAI-compatible servers: `vllm serve`, or any other."""

    kind: Literal["endpoint"]
    """`endpoint`: OpenAI-compatible servers."""
    revision: str = Field(pattern=r"^[^@\s]+$")
    """Version of the model on the servers."""
    prices: tuple[NonNegativeFloat, NonNegativeFloat] | None = None
    """Prices of a million prompt and generated tokens, for `plan`."""


class TorchModel(LiveModel):
    """A local model that torch runs in this process; ``model`` is its folder, relative to the recipe's."""

    loads_folder = True

    kind: Literal["torch"] = "torch"
    """`torch`: a small model in this process, without vLLM."""


ModelSettings = Annotated[RecordedModel | VllmModel | EndpointModel | TorchModel, Field(discriminator="kind")]
"""A model that answers, chosen by `kind`."""


def of_domain(model: ModelSettings, domain: str) -> ModelSettings:
    """Return a model; recorded attempts become those of a domain's problems."""
    if isinstance(model, RecordedModel):
        model = model.model_copy()
        model._domain = domain
    return model


ModelName = Annotated[str, Field(min_length=1)]
"""A setting that names a table `[models.NAME]`."""


class NamedModels(Settings):
    """A file with tables `[models.NAME]`, and settings that name one of them."""

    models: dict[str, ModelSettings] = Field({})
    """Models, which other settings name."""

    @property
    def asked(self) -> dict[str, str]:
        """Return the models' names by the setting that refers to them."""
        return {}

    @property
    def domain(self) -> str:
        """Return the domain of the problems."""
        return "math"

    @property
    def unused_models(self) -> list[str]:
        """Return names of models that no setting refers to."""
        return [name for name in self.models if name not in self.asked.values()]

    @model_validator(mode="after")
    def _models_are_defined(self) -> Self:
        for key, name in self.asked.items():
            if name not in self.models:
                defined = f"defined: {', '.join(self.models)}" if self.models else "no model is defined"
                near = did_you_mean(name, self.models)
                raise ValueError(f"{key} = {name!r}: there is no table [models.{name}]{near or ';'} {defined}")
        models = {name: of_domain(model, self.domain) for name, model in self.models.items()}
        self.__dict__["models"] = models  # set despite the frozen model
        return self


class ModelFile(NamedModels):
    """The tables `[models.NAME]` of any file."""

    models: dict[str, ModelSettings] = Field(min_length=1)
    """Models by name."""
