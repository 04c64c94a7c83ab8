"""How quick training is on this machine's device, and what it takes: tokens/s, MFU, memory, a hand-over, ingest."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from curation.storage.scratch import memory_folder
from tests.benchmarks.gpu.models import batch, step_flops, token_answer, trainer_of
from tests.training.optimisation.packed import pack_samples
from training.generation.checkpoint_tensors import write_weights
from training.objectives.grpo import GrpoSettings
from training.optimisation.memory import GIB, ModelShape, estimate_memory
from training.optimisation.packing import TrainingSample

PEAKS = {"H200": 989.4, "H100": 989.4, "GH200": 989.4, "B200": 2250.0, "A100": 312.0, "L40S": 362.0, "A10": 125.0}
"""TFLOP/s of dense bf16 matrices, from NVIDIA's data sheets, by a part of the device's name; the first that fits."""

MICRO_BATCHES, STEPS = 2, 3
LARGEST_WRITTEN = 8 * GIB
"""Weights beyond this are handed over in memory only: writing them would take the time of another figure."""


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(device: torch.device, work: Callable[[], Any]) -> tuple[float, Any]:
    synchronise(device)
    begun = time.perf_counter()
    result = work()
    synchronise(device)
    return time.perf_counter() - begun, result


def matrix_peak(device: torch.device) -> dict[str, Any]:
    """Return TFLOP/s of a product of large bf16 matrices, and the data sheet's where the device is known."""
    size = 8192 if device.type == "cuda" else 256
    one, other = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    torch.matmul(one, other)
    repeats = 20 if device.type == "cuda" else 2
    seconds, _ = timed(device, lambda: [torch.matmul(one, other) for _ in range(repeats)])
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    sheet = next((peak for part, peak in PEAKS.items() if part in name), None)
    return {"measured_tflops": 2e-12 * size**3 * repeats / seconds, "sheet_tflops": sheet}


def training_figures(name: str, shape: ModelShape, tokens: int, device: torch.device, peak: float) -> dict[str, Any]:
    """Return the figures of one model and one length of micro-batch, or ``error`` if memory is short.

    Args:
        peak: TFLOP/s that count as 1.
    """
    row: dict[str, Any] = {"model": name, "tokens": tokens, "parameters": shape.num_parameters}
    row["estimated_gib"] = estimate_memory(shape, 1, tokens).total / GIB
    try:
        row |= _measured(shape, tokens, device, peak)
        if "peak_gib" in row:
            row["estimate_error"] = row["estimated_gib"] / row["peak_gib"] - 1
    except torch.OutOfMemoryError as error:
        row["error"] = f"out of memory: {str(error).splitlines()[0]:.120}"
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return row


def _measured(shape: ModelShape, tokens: int, device: torch.device, peak: float) -> dict[str, Any]:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    trainer = trainer_of(shape, tokens, device, "bfloat16", checkpointing=True)
    try:
        samples, settings = batch(shape, tokens, MICRO_BATCHES), GrpoSettings()
        collation, _ = timed(device, lambda: pack_samples(samples, trainer.packing))
        trainer.step(samples, settings)  # the first makes the optimiser's state and picks kernels
        seconds, _ = timed(device, lambda: [trainer.step(samples, settings) for _ in range(STEPS)])
        read = STEPS * sum(sample.length for sample in samples)
        tflops = 1e-12 * STEPS * step_flops(shape, samples) / seconds
        row: dict[str, Any] = {"tokens_per_s": read / seconds, "tflops": tflops, "mfu": tflops / peak}
        row |= {"step_s": seconds / STEPS, "collation_us_per_token": 1e6 * collation / (read / STEPS)}
        if device.type == "cuda":
            row["peak_gib"] = torch.cuda.max_memory_allocated(device) / GIB
        return row | _ingest(samples) | _hand_over(trainer, device)
    finally:
        trainer.ranks.close()


def _ingest(samples: Sequence[TrainingSample]) -> dict[str, Any]:
    """Return the CPU time in which a vLLM server's answers become tokens; nothing where orjson is missing."""
    from training.generation.endpoint_generators import read_answer

    answers = [token_answer(sample) for sample in samples]
    begun = time.process_time()
    read = [read_answer(answer) for answer in answers]
    spent = time.process_time() - begun
    tokens = sum(len(token_ids) for token_ids, *_ in read)
    return {"ingest_us_per_token": 1e6 * spent / tokens} if tokens else {}  # its stand-in reads none


def _hand_over(trainer: Any, device: torch.device) -> dict[str, Any]:
    """Return the seconds to gather the weights for generators, and to write and read them as a folder in memory."""
    from safetensors.torch import load_file

    gathering, state = timed(device, trainer.full_state_dict)
    once = {value.data_ptr(): value.numel() * value.element_size() for value in state.values()}  # some are tied
    size = sum(once.values())
    row = {"gather_s": gathering, "weights_gib": size / GIB}
    if size <= LARGEST_WRITTEN:
        with tempfile.TemporaryDirectory(dir=memory_folder()) as place:
            folder = Path(place) / "weights"
            row["write_s"], _ = timed(device, lambda: write_weights(state, folder))
            row["read_s"], _ = timed(device, lambda: load_file(folder / "model.safetensors", device=str(device)))
    return row
