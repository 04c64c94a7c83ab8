"""Curated sets in the schemas that other trainers read, with the judge that measured them.

    verl          data_source, prompt, ability, reward_model {style, ground_truth}, extra_info        parquet
    trl           prompt, solution (code: tests, judging), goldilocks                                 parquet
    open-r1       problem, prompt, solution (code: verification_info {language, test_cases}, and the  parquet
                  columns of its Codeforces reward: official_tests, generated_checker, limits), goldilocks
    verifiers     prompt, answer, info (JSON), task: for verifiers and prime-rl                       parquet
    nemo-rl       input, output: the record; the system prompt next to it, for ``system_prompt_file``  jsonl
    nemo-gym      responses_create_params, goldilocks, agent_ref; its resources server next to it      jsonl
    areal         messages, answer (code: tests, judging), goldilocks                                 saved by datasets
    openrlhf      input, label: the record, which goes to the remote reward model                     jsonl
    slime         prompt, label, metadata                                                             jsonl
    roll          messages, domain, tag, ground_truth: the record                                     jsonl
    skyrl         prompt, env_class, reward_spec {ground_truth: the record}, extra_info               parquet
    open-instruct messages, ground_truth: the record, dataset: goldilocks                             parquet
    tinker, art   messages, goldilocks                                                                jsonl

``goldilocks`` (in ``extra_info``, ``info`` or ``metadata`` where a format has those) is the record of
`curation.scoring`: by it, the reward functions there judge a response as its problem was measured. The README next to
the rows (`instructions.py`) states how a trainer uses them; `modules.py` has what a trainer imports.

Prompts are those that attempts are sampled with here (`curation.prompts.SOLVE`). Every row keeps the problem's id, its
source, its group, and its pass rate with its counts, ``correct`` of ``judged`` attempts, if the trainer allows
further columns.

Programs are made of the tables next to ``data/`` (`curation.verify.programs.tables`). What judging one takes beyond
comparing tokens is a `Need`. Formats whose rows are judged by our judge, or by the user's, carry all of them; open-r1
judges by itself, and carries C++ and, by its Codeforces reward, checkers in Python (`CARRIES`). What a format cannot
carry is left out and counted (`ExportResult.left_out`): to another judge it would be another problem than the one whose
pass rate was measured. The language of a program is in the problem's ``meta`` under `FENCE`; the default is python.

Invariants: rows come in the set's order; in = written + left out, or an error that names the row. Files are written
aside and renamed. ``split`` is always train.
"""

from curation.publish.export_formats.needs import CARRIES, Need
from curation.publish.export_formats.rows import FORMATS
from curation.publish.export_formats.writing import ExportResult, export_set, set_records

__all__ = ["CARRIES", "FORMATS", "ExportResult", "Need", "export_set", "set_records"]
