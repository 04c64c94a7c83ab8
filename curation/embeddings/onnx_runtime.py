"""Embeddings of a model in ONNX Runtime, on a CPU or a GPU: the folder of a sentence model as hubs publish it.

Invariant: the model is named by a hash of its files, so another export never takes the vectors of this one.

Not here: exporting models; which token vector is a text's (the model's card says it, and the settings).
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from curation.config.embeddings import OnnxEmbedder
from curation.embeddings.base import Floats, OnOutcome, batches_by_length, padded, pooled, scaled
from curation.records import ConfigError

FILES = ("model.onnx", "onnx/model.onnx")

MAX_TOKENS, BATCH = 256, 32
"""Tokens of a text that count, and texts of similar length computed together."""


class OnnxRuntime:
    """A model in ONNX Runtime, as an `Embedder`.

    Raises:
        ConfigError: ONNX Runtime is not installed, or the folder lacks a file.
    """

    def __init__(self, settings: OnnxEmbedder, folder: Path) -> None:
        missing = [name for name in ("onnxruntime", "tokenizers") if importlib.util.find_spec(name) is None]
        if missing:
            raise ConfigError(
                f"embedder of kind `onnx`: {missing[0]} is not installed: pip install 'goldilocks-rl[onnx]', or "
                "choose another `embedder.kind`."
            )
        self._settings = settings
        home = folder / settings.model
        self._model = _first_of(home, FILES)
        self._tokenizer_file = _first_of(home, ("tokenizer.json",))

    @cached_property
    def name(self) -> str:
        """Return a hash of the model's files, and how they are used."""
        total = hashlib.blake2b(digest_size=6)
        for path in [*sorted(self._model.parent.glob(self._model.name + "*")), self._tokenizer_file]:
            with path.open("rb") as handle:
                total.update(hashlib.file_digest(handle, "blake2b").digest())
        settings = self._settings
        return f"onnx {total.hexdigest()} {settings.pooling} {MAX_TOKENS} {settings.prefix!r}"

    def embed(
        self,
        texts: Sequence[str],
        on_outcome: OnOutcome | None = None,  # noqa: ARG002 - nothing is refused here
    ) -> Floats:
        """Return unit vectors, texts × width of the model.

        Raises:
            ConfigError: the model gives no vectors, or wants other inputs than tokens and their mask.
        """
        settings = self._settings
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch([settings.prefix + text for text in texts])]
        vectors: Floats | None = None
        for places in batches_by_length([len(ids) for ids in tokens], BATCH):
            ids, mask = padded([tokens[place] for place in places])
            (encoded, *_) = self._session.run(None, self._inputs(ids, mask))
            if encoded.ndim not in (2, 3):
                raise ConfigError(f"{self._model}: its first output has {encoded.ndim} axes, no vectors of texts.")
            lines = scaled(pooled(encoded, mask, settings.pooling) if encoded.ndim == 3 else encoded)
            if vectors is None:
                vectors = np.zeros((len(tokens), lines.shape[1]), dtype=np.float32)
            vectors[places] = lines
        return vectors if vectors is not None else np.zeros((0, 0), dtype=np.float32)

    def _inputs(self, ids: Any, mask: Any) -> dict[str, Any]:
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        wanted = [entry.name for entry in self._session.get_inputs()]
        if unknown := [name for name in wanted if name not in given]:
            raise ConfigError(f"{self._model}: wants the input {unknown[0]!r}; known are {', '.join(given)}.")
        return {name: given[name] for name in wanted}

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        available = onnxruntime.get_available_providers()
        wanted = [name for name in ("CUDAExecutionProvider", "CPUExecutionProvider") if name in available]
        return onnxruntime.InferenceSession(str(self._model), providers=wanted)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._tokenizer_file))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        return tokenizer


def _first_of(home: Path, names: Sequence[str]) -> Path:
    for name in names:
        if (home / name).is_file():
            return home / name
    raise ConfigError(f"embedder.model {home}: the folder holds no {' or '.join(names)}.")
