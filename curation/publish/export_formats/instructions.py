"""The README of an exported set."""

from __future__ import annotations

from collections.abc import Mapping

from curation.prompts.asked import Asked
from curation.publish.export_formats.modules import nemo_gym_license
from curation.response_formats import ANY
from curation.thinking import OPEN
from curation.verify.own_judges import VARIABLE

_ASK = """Start the judge where programs may be run, and let the trainer ask it at the address that it prints:

    goldilocks serve --reward --host 0.0.0.0 --port 8765
"""

_INSTRUCTIONS: Mapping[str, str] = {
    "verl": """Every row's `extra_info.goldilocks` is the record by which it is judged. verl reads it with

    data.train_files={folder}/train.parquet
    reward.custom_reward_function.path={folder}/goldilocks_reward.py
    reward.custom_reward_function.name=verl_score

Before verl 0.7 both begin with `custom_reward_function`, without `reward.`; newer ones still read that. Settings follow
as `+reward.custom_reward_function.reward_kwargs.thinking="[THINK]"`. Without the two lines verl stops: it knows no
scorer of the name `goldilocks`, and none of its own judges as this set was measured.
""",
    "trl": """Every row's column `goldilocks` is the record by which it is judged, and reaches the reward function:

    from curation.scoring.trainers import trl_reward
    problems = load_dataset("parquet", data_files="{folder}/train.parquet", split="train")
    trainer = GRPOTrainer(..., reward_funcs=trl_reward, train_dataset=problems)

Keep `remove_unused_columns=False`, which is TRL's default for GRPO. A response on which the verifier failed is worth
None, which TRL leaves out. `solution` is for TRL's own `accuracy_reward`, which compares otherwise.
""",
    "open-r1": """Every row's column `goldilocks` is the record by which it is judged. Register the reward function:

    from curation.scoring.trainers import trl_reward
    REWARD_FUNCS_REGISTRY["goldilocks"] = trl_reward        # open_r1/rewards.py; then reward_funcs: [goldilocks]

`verification_info`, `official_tests` and `generated_checker` are for its own code rewards.
""",
    "verifiers": """The folder is a taskset of verifiers 0.4, which scores by the record in a row's `info.goldilocks`:

    PYTHONPATH={folder} eval goldilocks-taskset -m MODEL

prime-rl trains on it, its environment servers with the same PYTHONPATH:

    [orchestrator.train.source.env.taskset]
    id = "goldilocks-taskset"
    [orchestrator.train.source.env.agent.harness]
    id = "null"

`taskset.file` names another exported `train.parquet`. Before 0.4: `vf.Rubric(funcs=[verifiers_reward])` of
`curation.scoring.trainers`; hand `info` on as an object (`row["info"] = json.loads(row["info"])`).
""",
    "areal": """`datasets.load_from_disk` reads the folder `train`, and this one. Every row's column `goldilocks`
is the record by which it is judged, and reaches the reward function of the workflow:

    from curation.scoring.trainers import areal_reward
    workflow = RLVRWorkflow(reward_fn=areal_reward, ...)
""",
    "openrlhf": _ASK
    + """
    --prompt_data {folder}/train.jsonl --input_key input --label_key label --apply_chat_template
    --remote_rm_url http://goldilocks:KEY@HOST:8765/get_reward

The label is what a row is judged by. A response on which the verifier failed gets 0, and 1 in `extra_logs.excluded`.
""",
    "slime": """Every row's `metadata.goldilocks` is the record by which it is judged:

    --prompt-data {folder}/train.jsonl --input-key prompt --label-key label --metadata-key metadata
    --apply-chat-template --custom-rm-path curation.scoring.trainers.slime_reward
""",
    "nemo-rl": """`output` is the record by which a row is judged; NeMo RL hands it to its environment as ground truth.
Run its script through the one next to the set, which registers the environment `goldilocks` first:

    uv run python {folder}/goldilocks_run.py examples/run_grpo.py --config CONFIG.yaml

    data:                                           # in CONFIG.yaml
      train: {dataset_name: ResponseDataset, data_path: {folder}/train.jsonl}
      default:
        system_prompt_file: {folder}/system_prompt.txt
        processor: math_hf_data_processor
        env_name: goldilocks
    env: {goldilocks: {}}                           # or how responses are read: {thinking: "[THINK]"}
""",
    "nemo-gym": """Rows are tasks of the resources server next to them. Copy it into NeMo Gym, with the rows:

    cp -r {folder}/resources_servers/goldilocks NEMO_GYM/resources_servers/
    mkdir -p NEMO_GYM/resources_servers/goldilocks/data
    cp {folder}/train.jsonl NEMO_GYM/resources_servers/goldilocks/data/
    ng_run "+config_paths=[resources_servers/goldilocks/configs/goldilocks.yaml,responses_api_models/MODEL.yaml]"

Every row's `goldilocks` is the record by which it is judged. A failed verifier is worth 0, and `verifier_failed` is 1.
""",
    "skyrl": """Every row's `env_class` is `goldilocks`, an environment of skyrl_gym, and its `reward_spec.ground_truth`
is the record by which it is judged. The script next to the set registers it where environments are made:

    uv run --with goldilocks-rl python {folder}/goldilocks_main.py \\
      data.train_data="['{folder}/train.parquet']" environment.env_class=goldilocks ...
""",
    "roll": """Every row's `ground_truth` is the record by which it is judged. In the RLVR pipeline's configuration:

    actor_train:
      data_args:
        file_name: [{folder}/train.jsonl]
        messages: messages
        domain_interleave_probs: {goldilocks: 1.0}
    rewards:
      goldilocks:
        worker_cls: curation.scoring.consumers.roll.GoldilocksRewardWorker
        model_args: {model_name_or_path: ${reward_pretrain}}
        data_args: {template: TEMPLATE}
        tag_included: [goldilocks]
        world_size: 1
        infer_batch_size: 64
""",
    "tinker": """Every row's `goldilocks` is the record by which it is judged. As tinker-cookbook's data set:

    from curation.scoring.consumers.tinker import GoldilocksDatasetBuilder
    from tinker_cookbook.rl import train
    problems = GoldilocksDatasetBuilder(
        file="{folder}/train.jsonl", model_name_for_tokenizer=MODEL, renderer_name=RENDERER, group_size=16
    )
    config = train.Config(dataset_builder=problems, ...)
""",
    "art": """Every row's `goldilocks` is the record by which it is judged. In your rollout:

    from curation.scoring.trainers import art_reward
    trajectory = art.Trajectory(messages_and_choices=list(row["messages"]))
    ...                                             # the model's choice is appended
    trajectory.reward = await art_reward(row, trajectory)
""",
    "open-instruct": """Every row's `dataset` is `goldilocks`, a verifier of ours, and its `ground_truth` is the
record by which it is judged. open-instruct finds the verifier once the script next to the set has imported it:

    python {folder}/goldilocks_run.py open_instruct/grpo_fast.py \\
      --dataset_mixer_list {folder}/train.parquet 1.0 --apply_verifiable_reward True ...

Its own verifiers (`math`, `code`) judge otherwise than this set was measured.
""",
}

_INSTALL = """
The judge is in the package `goldilocks-rl`. In the trainer's environment it needs four packages, and neither torch nor
Prefect:

    pip install --no-deps goldilocks-rl
    pip install polars orjson python-flint sympy
"""


def instructions(form: str, name: str, folder: str, license: str, asked: Asked) -> str:
    """Return an exported set's README."""
    text = _INSTRUCTIONS[form].replace("{folder}", folder)
    if not asked.prompt.system:
        text = text.replace(f"        system_prompt_file: {folder}/system_prompt.txt\n", "")
    if form == "nemo-gym":
        text += (
            f"\nThe set's licence is `{license}`; its configuration has `{nemo_gym_license(license)}`, in NeMo Gym's "
            "own words, or TBD where it has none for it.\n"
        )
    return f"# {name}, for {form}\n\n{text}{_how_asked(asked)}{_INSTALL}"


def _how_asked(asked: Asked) -> str:
    examples = f", with {len(asked.prompt.examples)} worked examples before it" if asked.prompt.examples else ""
    said = f"\nRows ask as the problems were measured: by the prompt `{asked.prompt.version}`{examples}."
    read = {"thinking": (asked.thinking, OPEN), "response_format": (asked.response_format, ANY)}
    other = [f"`{name} = {value!r}`" for name, (value, usual) in read.items() if value != usual]
    text = f"{said} Their records have responses read by {' and '.join(other)}.\n" if other else f"{said}\n"
    return text + _judges(asked) if asked.judges else text


def _judges(asked: Asked) -> str:
    names = [label.partition("@")[0] for label in asked.judges]
    return (
        f"\nThey were measured with judges of its maker's own, and are not judged without: {', '.join(names)}. Get "
        "these files from the maker, read them, for they run with your rights, and name them to the trainer's "
        f"processes:\n\n    export {VARIABLE}={','.join('path/to/' + name for name in names)}\n\n"
        f"The records name the digests that the files must have: {', '.join(asked.judges)}.\n"
    )
