"""What stands beside an exported set: how its trainer is told to use the judge that measured it."""

from __future__ import annotations

from collections.abc import Mapping

REWARD_FILE = "goldilocks_reward.py"
"""Beside a set for verl: the file that its `custom_reward_function.path` names."""

REWARD_TEXT = '''"""The judge of this set, as verl calls it."""

from curation.scoring.trainers import verl_score

__all__ = ["verl_score"]
'''

_ASK = """Start the judge where programs may be run, and let the trainer ask it:

    goldilocks serve-reward --host 0.0.0.0 --port 8765
"""

_INSTRUCTIONS: Mapping[str, str] = {
    "verl": """Every row's `extra_info.goldilocks` says what it is judged by. verl asks for it with

    data.train_files={folder}/train.parquet
    custom_reward_function.path={folder}/goldilocks_reward.py
    custom_reward_function.name=verl_score

Settings follow as `+custom_reward_function.reward_kwargs.thinking="[THINK]"`. Without the two lines verl stops: it
knows no scorer of the name `goldilocks`, and none of its own judges as this set was measured.
""",
    "trl": """Every row's column `goldilocks` says what it is judged by, and reaches the reward function:

    from curation.scoring.trainers import trl_reward
    problems = load_dataset("parquet", data_files="{folder}/train.parquet", split="train")
    trainer = GRPOTrainer(..., reward_funcs=trl_reward, train_dataset=problems)

Keep `remove_unused_columns=False`, which is TRL's default for GRPO. A response on which the verifier failed is worth
None, which TRL leaves out. `solution` is for TRL's own `accuracy_reward`, which compares otherwise.
""",
    "open-r1": """Every row's column `goldilocks` says what it is judged by. Register the reward function:

    from curation.scoring.trainers import trl_reward
    REWARD_FUNCS_REGISTRY["goldilocks"] = trl_reward        # open_r1/rewards.py; then reward_funcs: [goldilocks]

`verification_info`, `official_tests` and `generated_checker` are for its own code rewards.
""",
    "verifiers": """Every row's `info.goldilocks` says what it is judged by:

    import json, verifiers as vf
    from curation.scoring.trainers import verifiers_reward
    rubric = vf.Rubric(funcs=[verifiers_reward])

`info` is JSON: hand it on as an object (`row["info"] = json.loads(row["info"])`) where your version does not read it.
""",
    "areal": """The folder `train` is a set as `datasets.load_from_disk` reads it. Every row's column `goldilocks` says
what it is judged by, and reaches the reward function of the workflow:

    from curation.scoring.trainers import areal_reward
    workflow = RLVRWorkflow(reward_fn=areal_reward, ...)
""",
    "openrlhf": _ASK
    + """
    --prompt_data {folder}/train.jsonl --input_key input --label_key label --apply_chat_template
    --remote_rm_url http://HOST:8765/get_reward

The label is what a row is judged by. A response on which the verifier failed gets 0, and 1 in `extra_logs.excluded`.
""",
    "slime": """Every row's `metadata.goldilocks` says what it is judged by:

    --prompt-data {folder}/train.jsonl --input-key prompt --label-key label --metadata-key metadata
    --apply-chat-template --custom-rm-path curation.scoring.trainers.slime_reward
""",
    "nemo-rl": """`output` is the reference, or the tests and how they are judged. NeMo RL's own environments judge
otherwise.
"""
    + _ASK
    + """
An environment of yours posts {"items": [{"id": ID, "response": TEXT}]} to /score, where the service was started with
the set: `goldilocks serve-reward RUN`.
""",
    "open-instruct": """`dataset` names open-instruct's own verifier of each row, which judges otherwise than this set
was measured; problems whose judging it does not know are left out.
""",
}

_INSTALL = """
The judge is in the package `goldilocks-rl`: `pip install goldilocks-rl` in the trainer's environment brings it, without
torch and without vLLM.
"""


def instructions(form: str, name: str, folder: str) -> str:
    """Return the README of an exported set.

    Args:
        form: the format.
        name: of the set.
        folder: where it lies.
    """
    text = _INSTRUCTIONS[form].replace("{folder}", folder)
    return f"# {name}, for {form}\n\n{text}{'' if form == 'open-instruct' else _INSTALL}"
