"""What is asked and what is answered: the expressions about questions, their parts and their answers.

The companion of `words`, with the same conventions: Rust syntax, seven languages, all tried on every row.
"""

from __future__ import annotations

from curation.statements.words import either

# A verb or a question word that asks for something, right after the mark of a part.
_ASKS = (
    r"(?:find|what|how|determine|calculate|compute|show|prove|is|are|does|do|can|evaluate|solve|express|write"
    r"|state|give"
    r"|sketch|draw|graph|plot|explain|which|who|when|where|why|use|using|estimate|describe|verify|deduce|hence|list"
    r"|simplify|factor|expand|differentiate|integrate|identify|name|construct|derive|approximate|interpret"
    r"|trouver|trouvez|calculer|calculez|déterminer|déterminez|montrer|montrez|quel(?:le)?s?|combien|résoudre"
    r"|calcul[ae]r?|hall[ae]r?|encontrar|encuentr[ae]|determin[ae]r?|cuál(?:es)?|cuánt[oa]s?|demuestr[ae]|resuelv[ae]"
    r"|calcola(?:re)?|trova(?:re)?|determina(?:re)?|quant[oaie]|qual[ei]?|dimostra(?:re)?"
    r"|berechnen?|bestimmen?|finden?|wie|welche[rs]?|zeigen?|löse[n]?|geben?"
    r"|найдите|найти|вычислите|определите|сколько|докажите|какова?|какой|какие|решите)\b"
)
# The same for parts that stand after a condition of their own ("(b) …" with a condition before the mark).
_ORDERS = (
    r"(?:find|what|how|determine|calculate|compute|show|prove|evaluate|solve|sketch|explain|deduce|hence|trouver"
    r"|calculer"
    r"|déterminer|montrer|calcular?|hallar?|determinar?|demuestr[ae]|calcolare?|trovare?|determinare?|berechnen?"
    r"|bestimmen?"
    r"|zeigen?|найдите|вычислите|определите|сколько|докажите)\b"
)
_ZH_ASKS = (
    r"(?:求|证明|计算|判断|写出|画出|解方程|解不等式|化简|是否|为什么|多少|[?？]|说明|试[求写问]|讨论|估计"
    r"|化为|化成|何值|____)"
)
# Anything between the first part and the second: no bracket that opens the second.
_UNTIL_2 = r"(?:[^（(]|[（(]\s*[^\s2２Ⅱi二])*?"

# (a) … (b) …, each of them asking; a. … b. …; i) … ii) …; Part A … Part B; numbered questions; （1）求…（2）求…
MULTI_PART = either(
    rf"\(\s*a\s*\)[\s,:$]*{_ASKS}[\s\S]*\(\s*b\s*\)",
    rf"\(\s*a\s*\)[\s\S]*\(\s*b\s*\)[\s,:$]*{_ORDERS}",
    rf"(?:^|\n|[.?:;]\s+)\**a\s*[.)]\**\s+{_ASKS}[\s\S]*(?:\n|[.?;]\s*)\**b\s*[.)]\**\s+",
    rf"\(\s*(?:i|1)\s*\)[\s,:$]*{_ASKS}[\s\S]*\(\s*(?:ii|2)\s*\)",
    rf"\(\s*(?:i|1)\s*\)[\s\S]*\(\s*(?:ii|2)\s*\)[\s,:$]*{_ORDERS}",
    rf"(?:^|\n|[.?:;]\s+)(?:i|1)\s*[.)]\s+{_ASKS}[\s\S]*(?:\n|[.?;]\s*)(?:ii|2)\s*[.)]\s+{_ASKS}",
    rf"\bpart\s+\(?(?:a|1|i|one)\b\)?\s*[:.)\-]?\s*{_ASKS}?[\s\S]*\bpart\s+\(?(?:b|2|ii|two)\b",
    rf"[（(]\s*\$*(?:[1１]|Ⅰ|i|I|一)\$*\s*[)）]{_UNTIL_2}{_ZH_ASKS}{_UNTIL_2}[（(]\s*\$*(?:[2２]|Ⅱ|ii|II|二)\$*\s*[)）]",
    r"(?:^|\n|[。．；;])\s*(?:1|１|一)[、.．]\s*[^\n]*?(?:求|证明|计算|多少|[?？])[\s\S]*(?:\n|[。．；;?？])\s*(?:2|２"
    r"|二)[、.．]\s*[^\n]*?(?:求|证明|计算|多少|[?？])",
    r"①\s*[^②]*?(?:求|证明|计算|多少|[?？])[\s\S]*②[\s\S]*?(?:求|证明|计算|多少|[?？])",
)  # fmt: skip

MULTI_PART_NEEDLES = [
    "(i", "( i", "（i", "（ i", "(2", "（2", "( 2", "（ 2",
    "(a)", "( a )", "(i)", "(1)", "( 1 )", "a)", "a.", "1.", "1)", "i)", "part a", "part (", "part 1", "part i",
    "part one",
    "（1）", "(１)", "（１）", "（Ⅰ）", "(Ⅰ)", "（一）", "(一)", "（$", "($1$", "($$1", "(2)",
    "（２）", "（Ⅱ）", "(Ⅱ)",
    "一、", "1、", "１、", "1．", "①",
]  # fmt: skip

# "find also", two asked quantities in two sentences
ALSO_ASKED = either(
    r"\b(?:find|determine|compute|calculate)\s+also\b|\balso\s*,?\s+(?:find|determine|compute|calculate)\b"
    r"|(?:^|[.;?!]\s+)(?:and\s+)?also\s*,?\s+(?:prove|show|give|state|write)\b",
    r"\bhow\s+(?:many|much|long|far|old|fast)\b[^?]{3,}\?[^?]*\b(?:how\s+(?:many|much|long|far|old|fast)"
    r"|what\s+(?:is|are|was|percent))\b[^?]*\?",
    r"\bwhat\s+(?:is|are|was|percent)\b[^?]{3,}\?[^?]*\b(?:how\s+(?:many|much|long|far|old|fast)"
    r"|what\s+(?:is|are|was|percent|does))\b[^?]*\?",
    r"(?:多少|几)[^?？]{0,20}[?？][^?？]*(?:多少|几)[^?？]{0,20}[?？]",
    r"\bcombien\b[^?]{3,}\?[^?]*\b(?:combien|quel(?:le)?)\b[^?]*\?"
    r"|\bcuánt[oa]s?\b[^?]{3,}\?[^?]*\bcuánt[oa]s?\b[^?]*\?",
    r"\bquant[oiea]\b[^?]{3,}\?[^?]*\bquant[oiea]\b[^?]*\?"
    r"|\bwie\s?viele?\b[^?]{3,}\?[^?]*\bwie\s?viele?\b[^?]*\?"
    r"|\bсколько\b[^?]{3,}\?[^?]*\bсколько\b[^?]*\?",
)

# Several answers in the reference, by their marks: "(a) 3 (b) 5", "（1）2；（2）3", "① 4 ② 5", "a) 1; b) 2"
MARKED_ANSWERS = either(
    r"^[\s$*\\({\[（【:：.]{0,6}a\s*[).:]\s*\S[\s\S]*[\s,;.]\(?\s*b\s*[).:]\s*\S",
    r"^[\s$*:：.]{0,4}[（(]\s*(?:[1１]|Ⅰ|i|一)\s*[)）]\s*\S[\s\S]*[（(]\s*(?:[2２]|Ⅱ|ii|二)\s*[)）]\s*\S",
    r"①\s*\S[\s\S]*②\s*\S|^\s*\(?i\)\s*\S[\s\S]*\(?ii\)\s*\S",
    r"^\s*1\s*[).、．]\s*\S[\s\S]*[\s,;；]2\s*[).、．]\s*\S",
)

# What separates answers, and statements that ask for more than one of them.
SEVERAL = r"[^,;，；]\s*(?:[;；]|,\s|，|、|\band\b|\bund\b|\bet\b|\by\b|\be\b|(?:^|[^a-z])и\b|和)\s*[^,;，；\s]"
ASKS_SEVERAL = either(
    r"____[\s\S]*____",
    r"\b(?:find|determine|compute|calculate|need\s+to\s+find)\s+(?:the\s+)?(?:values?\s+(?:of"
    r"|for)\s+)?(?:both\s+)?(?:\$|\\\()?\\?[a-z]\w{0,5}(?:\$|\\\))?\s*(?:,\s*(?:\$|\\\()?\\?[a-z]\w{0,5}(?:\$"
    r"|\\\))?\s*)*,?\s*and\s+(?:\$|\\\()?\\?[a-z]\w{0,5}(?:\$|\\\))?\s*(?:[.?]|$|such|so|if|that|for|where|when)",
    r"\bfind\s+the\s+(?:\w+\s+){1,4}and\s+the\s+(?:\w+\s+){1,3}of\b",
    r"\brespectively\s*\?|分别(?:是|为|等于|有)?(?:多少|____|几|[（(]\s*[)）])|各(?:是|为|有)?(?:多少|几)",
    r"\?[^?]{8,}\?",
)

# --- yes/no ----------------------------------------------------------------------------------------------------------

YES_NO_ANSWER = (
    r"(?i)^[\s$(\[*\"'“「]*(?:\\(?:text|mathrm|textbf|boxed|operatorname)\s*\{\s*)*(?:yes|no|true|false|correct"
    r"|incorrect|right|wrong|oui|non|vrai|faux|vraie"
    r"|fausse|s[iíì]|verdader[oa]|fals[oa]|ver[oa]|ja|nein|wahr|falsch|richtig|да|нет|верно|неверно|истина|ложь|правда"
    r"|是的?|否|不是|对的?|不对|错误?的?|正确|不正确|不能|能|可以|不可以|会|不会|存在|不存在|√|×|✓|✗)"
    r"[\s}$)\]*.。．\"'”」]*(?:$|[,，;；:：—–-]\s*\D|\.\s+\D)"
)
TRUE_FALSE_NEEDLES = [
    "true", "yes", "t/f", "vrai", "verdader", "vero", "wahr", "richtig", "верно", "判断", "对的打", "对错",
]  # fmt: skip
TRUE_FALSE = either(
    r"\b(?:true\s*(?:or|/)\s*false|yes\s*(?:or|/)\s*no|t/f)\b\s*\)?\s*(?:[?:.]|\z)|\b(?:is|are|whether|state|say"
    r"|decide|determine|statements?)\b[^.?]{0,80}\b(?:true\s+or\s+false|yes\s+or\s+no)\b|\bvrai\s+ou\s+faux\b"
    r"|\bverdadero\s+o\s+falso\b"
    r"|\bvero\s+o\s+falso\b|\b(?:wahr|richtig)\s+oder\s+falsch\b|верно\s+или\s+неверно|判断(?:题|对错|正误)|对的打"
    r"|[（(]\s*(?:判断|对错)\s*[)）]"
)

# --- answers ---------------------------------------------------------------------------------------------------------

NO_ANSWER = (
    r"(?i)^[\s$.*(\[]*(?:n/?a|none|null|nan|nil|tbd|todo|unknown|undefined answer|-+|\?+|no answer|not (?:given"
    r"|available|provided)"
    r"|(?:answer|solution)s? (?:not|un)\s*(?:given|available|known|provided)|see (?:the )?(?:solution|explanation"
    r"|below|proof|figure).*"
    r"|omitted|略|见解析|见详解|见解答|解析略|答案略|证明略|详见解析|无答案|暂无|without answer|proof)[\s$.。)\]]*$"
)
HEDGED = either(
    r"^[\s$]*(?:\\approx|≈|~\s*[0-9]|\\sim\b)|^[\s$]*(?:about|approximately|approx\.?|roughly|around|maybe|perhaps|probably|possibly|almost|nearly|some"
    r"|circa|ca\.|more\s+or\s+less"
    r"|environ|à\s+peu\s+près|aproximadamente|alrededor\s+de|unos|circa|quasi|etwa|ungefähr|rund|около|примерно"
    r"|приблизительно"
    r"|大约|大概|约|约为|可能|左右)\s*[\d$\\−-]",
    r"\d\s*(?:左右|上下|or\s+so|or\s+thereabouts|approximately)\s*\S{0,10}$",
    r"\b(?:answers?\s+(?:will|may|can)?\s*var(?:y|ies)|sample\s+answer|possible\s+answers?|many\s+answers"
    r"|for\s+example|e\.g\.|one\s+(?:possible\s+)?answer)\b|答案不唯一|(?:例如|比如)[:：]?|不唯一",
    r"\b(?:i\s+think|i\s+believe|not\s+sure|it\s+depends|hard\s+to\s+say|could\s+be)\b|不确定",
    r"^\W*between\s+[\d$.\\]+\s+and\s+[\d$.\\]+",
)
EITHER_NUMBER = r"(?i)^\W*\d[\d.,]*\s*(?:or|ou|o|oder|или|或者?|to|-|–|~)\s*\d[\d.,]*\s*\w*\W*$"
ASKS_A_NUMBER = either(
    r"\bhow\s+(?:many|much|long|far|old)\b|\bcombien\b|\bcuánt[oa]s?\b|\bquant[oaie]\b|\bwie\s?viele?\b"
    r"|\bсколько\b|多少|几"
)

# A worked solution where the answer should be.
WORKED = (
    r"^\s*(?:解(?:答|析)?\s*[:：（( ]|【(?:解析|详解|分析|解答|小问|答案解析)|证明\s*[:：]|分析\s*[:：]"
    r"|(?i:solution|proof)\s*[:.])"
)
LONGEST_ANSWER = 400
"""Characters; a final answer in words is shorter than this, a worked solution rarely is."""

PROSE = r"(?:[A-Za-zÀ-ɏЀ-ӿ]{2,}[\s,]+){3,}|\p{Han}{4}"

# A sentence instead of an answer: six words of prose in a row, or three and no mathematics at all, or nine hanzi.
_WORD = r"[A-Za-zÀ-ɏЀ-ӿ'’]{2,}"
SENTENCE = rf"(?:{_WORD}[\s,]+){{5,}}{_WORD}"
PHRASE = rf"^\W*(?:[A-Za-zÀ-ɏЀ-ӿ'’]+[\s,]+){{3,}}{_WORD}\W*$"
HAN_SENTENCE = r"\p{Han}{6,}|\p{Han}[\p{Han}，、]{8,}"
FORMULA = r"\$[^$]*\$|\\\([\s\S]*?\\\)|\\\[[\s\S]*?\\\]|\\[a-zA-Z]+"

# A letter for an answer to a statement that still holds lettered options: their style was not understood.
ONLY_LETTER = r"^[\s$(（]*(?:\\(?:text|mathrm|textbf|boxed)\{)?[\s(]*[A-H][\s)}）.$]*$"
LETTERED = r"(?:^|[\s(（])A\s*[.)．、：:）][\s\S]*[\s(（]B\s*[.)．、：:）]"

# An answer in words only, less those that a verifier reads as mathematics: names, days, colours, shapes.
NOT_WORDS = r"[0-9$=<>^_+*/|∞π√\\]"
TEXT_MARKS = r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox|operatorname)\s*|\\[ ,;!]|[{}$]"
MATH_WORDS = either(
    r"\b(?:no|not|non|none|never|any|all|every|each|only|such|the|an?|of|is|are|for|and|or|if|does|do|doesn't|don't|there"
    r"|solutions?|real|reals|numbers?|integers?|positive|negative|non-?negative|non-?zero|natural|rational|irrational"
    r"|complex|imaginary|primes?|even|odd|infinite|infinitely|infinity|many|undefined|indeterminate|exists?|empty|set"
    r"|impossible|diverges?|divergent|converges?|convergent|limit|dne|values?|squares?|perfect|roots?|identity)\b",
    r"\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred|thousand|million|billion|dozen|half|halves|thirds?|fourths?"
    r"|quarters?|fifths?|hours?|minutes?|seconds?|days?|weeks?|months?|years?|percent|degrees?|cents?|dollars?|times?)\b",
    r"\b(?:arc)?(?:sinh?|cosh?|tanh?|cot|sec|csc|log|ln|exp|sqrt|max|min|gcd|lcm|mod|det|deg|pi)[a-z]{0,2}\b|\b(?:abcde?|[b-df-hj-np-tv-xz]{2,6})\b"
    r"|\b(?:alpha|beta|gamma|delta|epsilon|zeta|eta|theta|lambda|sigma|omega|phi|psi|rho|tau)\b",
    r"\b(?:aucune?|pas|solutions?|infini(?:té)?|impossible|ninguna?|sin|solución|soluciones|infinit[oaie]s?|nessuna"
    r"|soluzion[ei]|impossibile|imposible|keine|lösung(?:en)?|unendlich|unmöglich)\b",
    r"нет|решени[йея]|бесконечн\w+|невозможно|не\s+существует|пустое|множество",
    r"[零〇一二三四五六七八九十百千万亿两半分之点负个]+|无(?:实数)?解|无穷(?:多|大)?(?:个|解)?|不存在|空集|任意|所有|一切|实数|整数|正整数|自然数|质数|素数|奇数|偶数|有理数|无理数|全体",
)
WORDY = r"[A-ZÀ-Þ]?[a-zß-ÿ’']{4,}|[A-ZÀ-Þ][a-zß-ÿ]{2}|[A-Z]{6,}|[Ѐ-ӿ]{3,}|\p{Han}\p{Han}"
LONGEST_WORDS = 120
LONE_LETTER = r"(?:^|[\s,(])[b-zB-Z](?:$|[\s,)])"
