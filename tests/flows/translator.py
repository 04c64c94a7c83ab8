"""A small OpenAI-compatible server that solves word problems, translates them and reads translations, by a script.

Its first translation of a problem errs as `MISTAKES` say; told what was wrong, it translates rightly but for `NEVER`.
"""

from __future__ import annotations

import re
import time

from tests.flows.conftest import recipe_with
from tests.flows.solver import Solver, uniform

ENGLISH = "Anna has {} apples and buys {} more. How many apples does Anna have now?"
TEXTS = {
    "French": "Anna a {} pommes et en achète encore {}. Combien de pommes Anna a-t-elle maintenant ?",
    "Spanish": "Ana tiene {} manzanas y compra otras {}. ¿Cuántas manzanas tiene Ana ahora?",
    "Italian": "Anna ha {} mele e ne compra altre {}. Quante mele ha adesso Anna?",
    "German": "Anna hat {} Äpfel und kauft noch {} dazu. Wie viele Äpfel hat Anna jetzt?",
    "Russian": "У Анны есть {} яблок, и она покупает ещё {}. Сколько яблок теперь у Анны?",
    "Chinese (simplified characters)": "安娜有{}个苹果，又买了{}个。安娜现在有多少个苹果？",
    "Portuguese": "A Ana tem {} maçãs e compra mais {}. Quantas maçãs tem a Ana agora?",
    "Japanese": "アンナはりんごを{}個持っていて、さらに{}個買います。アンナは今りんごを何個持っていますか。",
}
SOLD = {
    "French": "Anna a {} pommes et en vend {}. Combien de pommes Anna a-t-elle maintenant ?",
    "German": "Anna hat {} Äpfel und verkauft {} davon. Wie viele Äpfel hat Anna jetzt?",
}
"""Mistakes that a reader alone sees."""

NEVER = 9
"""The number of a problem that it never translates rightly."""


def numbers(number: int) -> tuple[int, int]:
    return 120 + 37 * number, 45 + 8 * number


def statement(number: int) -> str:
    return ENGLISH.format(*numbers(number))


def translation(language: str, number: int) -> str:
    return TEXTS[language].format(*numbers(number))


class Translator(Solver):
    """The server; ``prompts`` are the messages it was asked to translate or to read, in order."""

    def __init__(self, pause_s: float = 0.0) -> None:
        super().__init__(0.0)
        self.prompts: list[str] = []
        self.pause_s = pause_s

    def solve(self, prompt: str, seed: int) -> str:
        if prompt.startswith(("Translate this problem", "<original")):
            self.prompts.append(prompt)
            return self._read(prompt) if prompt.startswith("<") else self._translated(prompt)
        right = sum(int(found) for found in re.findall(r"\d+", prompt)[:2])
        return f"\\boxed{{{right if uniform(prompt, seed) < 0.5 else right + 1 + seed % 7}}}"

    def _translated(self, prompt: str) -> str:
        time.sleep(self.pause_s)
        language = re.search(r"into (.+)\.\n", prompt)
        assert language is not None
        first, second = (int(found) for found in re.findall(r"\d+", prompt)[:2])
        number = (first - 120) // 37
        text = TEXTS[language[1]].format(first, second)
        is_first = "An earlier translation was refused" not in prompt
        if number == NEVER or (is_first and number % 4 == 1):
            text = text.replace(str(second), str(second + 1))
        elif is_first and number % 4 == 2 and language[1] in SOLD:
            text = SOLD[language[1]].format(first, second)
        return f"<translation>\n{text}\n</translation>"

    def _read(self, prompt: str) -> str:
        is_other = any(word in prompt for word in (" vend ", "verkauft"))
        verdict = "Anna sells apples instead of buying them\nVERDICT: DIFFERENT" if is_other else "none\nVERDICT: SAME"
        return f"One line a sentence.\n\nDIFFERENCE: {verdict}"


def recipe(url: str, translation: str) -> str:
    """Return the recipe's text; its problems are written by the tests."""
    model = f'kind="endpoint", revision="1", urls=["{url}"], prompt="plain"'
    models = ", ".join(f'{name}={{model="{name}", {model}}}' for name in ("weak", "strong"))
    settings = ('name="apples"', "shard_rows=5", "near_dedup.enabled=false", f"models={{{models}}}")
    stage = ("stage1.model=weak", "stage1.sampling.early_stopping=false")
    return recipe_with(*settings, *stage) + f"\n[translation]\n{translation}\n"
