"""What a token of vLLM's engine costs the process that asks it: its message decoded, its text written.

    .venv/bin/python -m tests.benchmarks.bench_front_end [--requests 512] [--steps 100]

Copies of a model (`data_parallel`) compute in processes of their own; this process has this much of every token of all
of them. vLLM's own decoder and output processor are fed with steps of the engine, one token for each request, in the
vocabulary of SmolLM2-135M. Needs vLLM and the extra `real-model`.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from transformers import AutoTokenizer
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs, EngineCoreRequest
from vllm.v1.engine.output_processor import OutputProcessor, RequestOutputCollector
from vllm.v1.serial_utils import MsgpackDecoder, MsgpackEncoder

from tests.real_model.smollm import smollm_folder

TEXT = "Let us think step by step. The sum of 17 and 25 is 42, because 10 + 20 = 30 and 7 + 5 = 12. "


def main() -> None:
    """Print microseconds of CPU time a token."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--requests", type=int, default=512)
    options.add_argument("--steps", type=int, default=100)
    chosen = options.parse_args()
    tokenizer: Any = AutoTokenizer.from_pretrained(smollm_folder())
    ids = tokenizer.encode(TEXT * 40)
    processor = OutputProcessor(tokenizer, log_stats=False)
    for number in range(chosen.requests):
        name, kind = f"r{number}", RequestOutputKind.FINAL_ONLY
        sampling = SamplingParams(max_tokens=4096, seed=number, output_kind=kind)
        request = EngineCoreRequest(name, ids[:200], None, sampling, None, 0.0, None, None, None, external_req_id=name)
        processor.add_request(request, "", None, 0, RequestOutputCollector(kind, name))
    encoder, decoder = MsgpackEncoder(), MsgpackDecoder(EngineCoreOutputs)
    messages = []
    for step in range(chosen.steps):
        tokens = [ids[(number + step) % len(ids)] for number in range(chosen.requests)]
        outputs = [EngineCoreOutput(f"r{number}", [token]) for number, token in enumerate(tokens)]
        messages.append([bytes(part) for part in encoder.encode(EngineCoreOutputs(outputs=outputs))])
    began = time.process_time()
    for message in messages:
        processor.process_outputs(decoder.decode(message).outputs)
    spent = time.process_time() - began
    print(f"{1e6 * spent / chosen.requests / chosen.steps:.2f} µs CPU a token")


if __name__ == "__main__":
    main()
