"""Curated sets in the schemas that other trainers read.

    verl          data_source, prompt, ability, reward_model {style, ground_truth}, extra_info        parquet
    trl           prompt, solution (code: tests, judging)                                             parquet
    open-r1       problem, prompt, solution (code: verification_info {language, test_cases}, and the  parquet
                  columns of its Codeforces reward: official_tests, generated_checker, limits)
    verifiers     prompt, answer, info (JSON), task: for verifiers and prime-rl                       parquet
    nemo-rl       input, output; the system prompt beside it, for its ``system_prompt_file``          jsonl
    areal         messages, answer (code: tests, judging)                                             parquet
    open-instruct messages, ground_truth, dataset                                                     parquet

Prompts are those that attempts are sampled with here (`curation.prompts.SOLVE`). Every row keeps the problem's id, its
source, its group and its measured pass rate, where the trainer allows further columns.

Programs are made of the tables beside ``data/`` as everywhere (`curation.verify.programs.tables`). What judging one
takes beyond comparing tokens is a `Need`, and `CARRIES` says which needs a format's own scorer knows:

    trl, areal, verifiers, nemo-rl   all: the scorer is yours. ``judging`` holds limits, comparison, checker and
                                     function as `goldilocks verify code` reads them; tests alone say only half
    open-r1                          C++, and checkers in Python by its Codeforces reward; rows without a checker suit
                                     its code reward too (``verification_info``)
    verl                             functions in Python by calls (``fn_name``)
    open-instruct                    functions in Python by calls, as assertions for its verifier ``code``

What a format cannot carry is left out and counted (`ExportResult.left_out`): to another judge it would be another
problem than the one whose pass rate was measured. Which language a program is asked for in stands in the problem's
``meta`` under `FENCE`; python where it does not.

Invariants: rows come in the set's order; in = written + left out, or an error that names the row. Files are written
aside and renamed. ``split`` is always train.
"""

from curation.publish.export_formats.needs import CARRIES, Need
from curation.publish.export_formats.rows import FORMATS
from curation.publish.export_formats.writing import ExportResult, export_set

__all__ = ["CARRIES", "FORMATS", "ExportResult", "Need", "export_set"]
