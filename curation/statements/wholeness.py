"""Whether a statement is whole: that it asks something, does not stop in the middle, and is a text at all.

The companion of `words`, with the same conventions: Rust syntax, seven languages, all tried on every row.
"""

from __future__ import annotations

from curation.statements.words import cheap, either

# --- a task -----------------------------------------------------------------------------------------------------------

# Whatever asks: a question mark, a blank, a task verb, an equals sign at the end.
TASK = either(
    r"[?？]|____|_{2,}|\\_|\\boxed|\\underline|\\square|□|（\s*）|\(\s*\)|[=＝:：]\s*(?:\$*|\\[)\]])\s*[.。．]?\s*$"
    r"|\\q?quad[\s$]*\\?[)）]|[(（][\s$]*[)）]|\b(?:is|are|equals?|by|of|be|to|has|was)\s*[.:]?\s*$|\b(?:is|are"
    r"|equals?)\s+\$?\\?[_.]",
    r"\b(?:find|determine|compute|calculate|evaluate|solve|simplify|what|how|which|who|whom|whose|when|where|why"
    r"|express|factor(?:ise|ize)|give|write|estimate|approximate|choose|select|identify|expand|reduce|convert"
    r"|differentiate|integrate|maximi[sz]e|minimi[sz]e|obtain|prove|show|tell|work\s+out|arrange|compare|subtract"
    r"|multiply|divide|guess|consider|let|rationali[sz]e|decompose|nondimensionali[sz]e|describe|explain|sketch|draw"
    r"|construct|verify|derive|suppose|assume|recall|rewrite|classify|decide|discuss|predict|invert|diagonali[sz]e)\b",
    # verbs that are nouns, too: where a clause begins
    r"(?:^|[.;:!,\n$)\]}*]\s*|\b(?:and|then|to|please|must|should|also|or|you|now|first)\s+)(?:factor|state|count|list|name"
    r"|round|complete|fill|report|output|return|answer|put|order|add|sum|get|represent|develop|provide|search|look|enter"
    r"|present|perform|use|check)\b",
    r"求|计算|多少|几|何|写出|化简|解|证明|判断|确定|比较|填|选|问|哪|找|至少|最多|怎|谁|什么|是否|等于|则|[为是有][．。.]?\s*$|试|设|算|列|约分|通分|因式|展开",
    r"\b(?:trouve[zr]|calcule[zr]?|détermine[zr]?|résou|quel(?:le)?s?\b|combien|simplifie[zr]|exprime[zr]"
    r"|donne[zr]|soit|montre[zr])|évalue[zr]|écri",
    r"\b(?:halla[r]?|halle|hallar|encuentr\w*|encontrar|calcul[ae]r?|determin[ae]r?|resuelv\w*|resolver"
    r"|cuál(?:es)?|cuánt[oa]s?|simplific\w*|expres[ae]|escrib\w*|evalú\w*|evaluar|sea|sean)\b|\bqué",
    r"\b(?:trova(?:re|te)?|calcola(?:re|te)?|determina(?:re|te)?|risolv\w*|qual[ei]?|quant[oaie]|semplific\w*"
    r"|esprim\w*|scriv\w*|valut\w*|sia|siano|si\s+determin\w*|si\s+calcol\w*)\b",
    r"\b(?:finden?|berechnen?|bestimmen?|ermitteln?|lösen?|löse|welche[rsn]?|wie|was|wann|wo|wer|vereinfach\w*"
    r"|gib|geben|schreib\w*|sei|seien|drück\w*)\b",
    r"найд\w*|найти|вычисл\w*|рассчит\w*|подсчит\w*|укаж\w*|назов\w*|определ\w*|реш\w*|сколько|каков\w*|как\w*"
    r"|упрост\w*|выраз\w*|чему|запиш\w*|пусть|где|когда|докаж\w*",
)  # fmt: skip

# Literals that ask beyond doubt; only what has none of them is looked at more closely.
TASK_NEEDLES = [
    "?", "？", "____", "find", "determin", "comput", "calcul", "evaluate", "solve", "simplif", "what", "how many",
    "how much", "which",
    "求", "多少", "计算", "等于", "____", "trouve", "détermin", "combien", "halla", "encuentr", "trova", "bestimm",
    "berechn", "найд", "вычисл", "сколько",
]  # fmt: skip

# --- cut off ---------------------------------------------------------------------------------------------------------

# By language, words at the very end that must be followed by something. Left out is what a text to be completed may
# end in ("the value of x is", "is equal to") and what is a name or a number elsewhere ("in terms of a", "y", 的和).
_UNFINISHED = {
    "en": r"the|(?:is|has|with|makes?|buys?|into|at|on|for|takes?|was|gets?)\s+an?|and|or|whose|with|from|where|which"
    r"|than|if|because|between|such\s+that|so\s+that|that|per|their|its|his|her|my|your|when|while|into|until|after|before"
    r"|how|how\s+(?:many|much)|what|for|(?:then|so|but|if|when|that|and)\s+(?:she|he|they|we|it)"
    r"|(?:the|an?|find|calculate)\s+(?:\w+\s+){0,3}(?:values?|numbers?|sum|product|difference|quotient|area|perimeter"
    r"|volume|length|width|height|radius|measure|ratio|average|mean|median|price|cost|weight|mass|amount|probability"
    r"|remainder|total|percent(?:age)?|fraction|side|speed|equation|distance|size|age|slope|coordinates)\s+of"
    r"|(?:in\s+terms|instead|because|each|some|one|most|half|consists?|made)\s+of",
    "fr": r"le|la|les|l'|un|une|des|du|de|d'|et|ou|avec|pour|dans|sur|par|que|qui|dont|si|quel(?:le)?s?|combien|est-ce"
    r"|aux?|en|chez|sans|son|sa|ses|leurs?",
    "es": r"el|la|los|las|una?|de|del|al|con|por|para|en|que|si|cuy[oa]s?|cuánt[oa]s?|cuál|qué|sus?|entre|cuando|donde",
    "it": r"il|lo|la|gli|le|una?|di|del|dell[ao']|dei|delle|degli|al|alla|da|dal|dalla|con|per|in|nel|nella|su|sul|che"
    r"|se|cui|quant[oaie]|quale|quando|dove",
    "de": r"der|die|das|den|dem|des|eine[rnms]?|und|oder|mit|von|vom|für|zum|zur|im|am|bei|über|unter|zwischen"
    r"|wie(?:\s?viele?)?|wenn|dann|dass|ob|weil|deren|dessen|jede[rsnm]?|kein(?:e[rnms]?)?|sein(?:e[rnms]?)?"
    r"|ihr(?:e[rnms]?)?|sie|er",
    "ru": r"и|или|но|в|во|на|с|со|из|для|если|то|где|котор[а-я]+|сколько|что|чему|при|по|к|от|до|о|об|между|какова?"
    r"|какой|чтобы|когда|его|её|их",
}  # fmt: skip
CUT_OFF = either(
    *(rf"^{lang}\s[\s\S]*[\s,;«(¿¡](?:{unfinished})\s*$" for lang, unfinished in _UNFINISHED.items()),
    r"[,，、]\s*$|\S\s*(?:\.\.\.|…+)\s*$",
    r"(?:[^目标]的|且|[^的之]和|与|若|如果|当|因为|以及|并且|[^存]在|其中|然后|那么|每个|使得?|把|将|从)\s*$",
    r"[0-9a-z)}\]]\s*(?:[+×÷·^]|\\(?:times|cdot|div|frac|sqrt|pm|left|leq?|geq?))\s*\$*\s*$",
)
"""Looked for in the language's code, a space, and the end of the statement."""
CUT_OFF_HARMLESS = either(r"(?:\\c?l?dots|[\d$}a-z)=]\s*,\s*(?:\.\.\.|…)\s*$)")
# A formula that is never closed, at the end: a brace, \( … , a dollar before LaTeX.
OPEN_FORMULA = cheap(r"(?:^|[^\\])\{(?:[^{}$?？。]|\{[^{}]*\})*$|(?:^|[^\\])\\\((?:[^\\]|\\[^)])*$")
OPEN_DOLLAR = cheap(r"\$(?:[^$?？\\]|\\[^\[(])*(?:\\[a-zA-Z]{2,}|[_^]\{)(?:[^$?？\\]|\\[^\[(])*$")

# --- no problem ------------------------------------------------------------------------------------------------------

NOT_A_PROBLEM = either(
    r"\btranslate\s+the\s+(?:above|following|text)|\b(?:above|following)\s+text\s+(?:into|to)\s+(?:english"
    r"|chinese|french)|\bkeep(?:ing)?\s+the\s+original\s+(?:text|format|line)",
    r"\bas\s+an?\s+(?:ai|artificial\s+intelligence|large)\s+(?:language\s+)?(?:model|assistant)|\bi(?:'m"
    r"|\s+am)\s+sorry,?\s+(?:but\s+)?i\s+(?:can|am)|\bi\s+cannot\s+(?:assist|help|provide)",
    r"\bclick\s+(?:here|on\s+the|the\s+(?:link|button))|\bsubscribe\b|\ball\s+rights\s+reserved\b"
    r"|\bcopyright\s+(?:©|\(c\)|\d{4})|\blorem\s+ipsum\b|\bdownload\s+(?:our|this)\s+(?:app|pdf|file)"
    r"|\bsign\s+(?:up|in)\s+(?:to|for|now)|\bcookie\s+policy\b|\bprivacy\s+policy\b|\bpage\s+not\s+found\b"
    r"|\b404\s+error\b",
    r"\bhttps?://\S+|\bwww\.[a-z0-9-]+\.\w+",
    r"^\s*(?:\**\s*)?(?:solution|proof|remark|definition|answer\s+key|table\s+of\s+contents"
    r"|note\s+to\s+the\s+(?:teacher|reader)|solución|démonstration|lösung|решение|解[:：]|证[:：]|答案[:：]|解析[:：]"
    r"|定义[:：])\s*(?:\d+(?:\.\d+)*)?\s*[:.：]",
    r"请?将上(?:述|面)的?(?:文本|内容|题目|文字)翻译|点击(?:这里|此处|查看)|版权所有|扫码|关注.{0,6}公众号|微信号",
)  # fmt: skip
NOT_A_PROBLEM_NEEDLES = [
    "translat", "original", "language model", "artificial", "sorry", "cannot", "click", "subscribe", "rights",
    "copyright",
    "lorem", "download", "sign up", "sign in", "cookie", "privacy", "not found", "404", "http", "www.", "solution",
    "proof",
    "remark", "definition", "answer key", "contents", "note to", "soluci", "monstration", "sung", "ешение", "解:",
    "解：", "证:", "证：",
    "答案", "解析", "定义", "翻译", "点击", "版权", "扫码", "公众号", "微信号",
]  # fmt: skip

# The next number of a series, where no law is stated: any continuation is defensible.
SERIES_GUESS = either(
    r"\b(?:what|which|find|determine|guess|choose|give)\b[^.?]{0,40}\b(?:next|missing|wrong|odd)\s+(?:number|term"
    r"|letter|figure|one|element)s?\b[^.?]{0,40}\b(?:series|sequence|pattern|list)\b",
    r"\b(?:what|which)\s+(?:number\s+|term\s+|letter\s+)?(?:comes|should\s+come|will\s+come|would\s+come|goes|is"
    r"|will\s+be)\s+(?:next|in\s+place\s+of)\b",
    r"\b(?:complete|continue)\s+the\s+(?:series|sequence|pattern)\b|\bodd\s+(?:one|man)\s+out\b",
    r"找规律|按(?:照)?规律|观察.{0,12}规律.{0,20}填|(?:根据|按)[^，。]{0,12}规律[^，。]{0,10}(?:填|写)|下一个(?:数|图|字母)(?:应?该?是|为)",
    r"\b(?:nombre|terme|chiffre)\s+(?:suivant|manquant)\b[^.?]{0,30}\b(?:suite|série)\b|\bcomplète[rz]?\s+la\s+(?:suite"
    r"|série)\b|\b(?:siguiente|próximo)\s+(?:número|término)\b[^.?]{0,30}\b(?:serie|sucesión|secuencia)\b"
    r"|\b(?:numero|termine)\s+(?:successivo|mancante)\b[^.?]{0,30}\b(?:serie|successione|sequenza)\b"
    r"|\b(?:nächste|fehlende)\s+(?:zahl|glied)\b[^.?]{0,30}\b(?:folge|reihe|zahlenfolge|zahlenreihe)\b"
    r"|\bsetze\w*\s+(?:sie\s+)?die\s+(?:zahlen)?(?:folge|reihe)\s+fort\b",
    r"следующ\w+\s+(?:число|член)[^.?]{0,30}(?:ряд|последовательност)|продолжите\s+(?:ряд|последовательност)",
)
SERIES_NEEDLES = [
    "next", "missing", "wrong number", "wrong term", "odd", "series", "sequence", "pattern", "规律", "下一个",
    "suite", "série", "siguiente", "próximo", "successivo", "mancante", "nächste", "fehlende", "folge", "reihe",
    "ледующ", "родолжите",
]  # fmt: skip
SERIES_HARMLESS = either(
    r"\b(?:arithmetic|geometric|fibonacci|harmonic|quadratic|recurrence|recursive|arithmétique|géométrique"
    r"|aritmétic[ao]|geométric[ao]|aritmetic[ao]|geometric[ao]|arithmetischen?|geometrischen?)\b[\s\S]*",
    r"арифметическ[\s\S]*|геометрическ[\s\S]*|等差[\s\S]*|等比[\s\S]*",
)

# --- debris ----------------------------------------------------------------------------------------------------------

# UTF-8 read as Latin-1 or Windows-1252, in Cyrillic, Latin and Chinese; replaced and control characters.
_LATE = "\u0080-\u00bf‚ƒ„…†‡ˆ‰Š‹Œ“”•–—˜™š›œžŸŽ’‘€"
DEBRIS = cheap(
    r".{0,20}(?:\x{FFFD}|[\x00-\x08\x0B\x0E-\x1F\x7F]|锟斤拷|烫烫烫|ï¿½|Ã["
    + _LATE
    + r"]|â€|Â[°·±×²³]|(?:[ÐÑ]["
    + _LATE
    + r"]\s?){3}"
    r"|(?:[ä-é][" + _LATE + r"]{2}){2}"
    r"|&nbsp|</?(?:div|span|script|nav|form|iframe|style|input|button)\b|<a\s+(?:href|class)|<!DOCTYPE|<\?xml"
    r"|^%PDF-|\bendobj\b|\bendstream\b|/FlateDecode|\bundefined\s+undefined\b|\[object\s+Object\]).{0,20}"
)
DEBRIS_NEEDLES = [
    "\ufffd", "锟斤拷", "烫烫烫", "ï¿½", "Ã", "â€", "Â", "Ð", "Ñ", "ä", "å", "æ", "ç", "è", "é", "&nbsp", "div", "span",
    "<script", "</", "<nav", "<form", "<iframe", "<style", "<input", "<button", "<a ", "<!doctype", "<?xml", "%PDF",
    "endobj", "endstream", "FlateDecode", "undefined undefined", "[object ",
    *map(chr, (*range(9), 11, *range(14, 32), 127)),
]  # fmt: skip
# Program text where nothing is asked about it.
CODE = cheap(
    r"\bfunction\s+\w+\s*\([^)]*\)\s*\{|\bdocument\.\w+|\bconsole\.log\(|\bpublic\s+(?:static\s+)?(?:void|class)\b|#include\s*<"
    r"|\bimport\s+[\w.]+;|\bdef\s+\w+\([^)]*\):|\bprintf?\s*\(|\$\(document\)|\bvar\s+\w+\s*=|\bSELECT\s+.{1,40}\bFROM\b"
)
CODE_NEEDLES = [
    "function", "document", "console.", "public ", "#include", "import ", "def ", "print", "var ", "select ",
]  # fmt: skip
# What may be left blank, and what carries meaning: a text of hardly any letters or digits is a drawn line.
BLANKS = r"[\s_□()（）＿?？]+"
SIGNS = cheap(r"[^0-9\p{L}]+")
LEAST_MEANT = 0.2
"""Letters and digits among all signs of a text; below it is debris."""
LEAST_SIGNS = 12

# Scripts, for a tag that cannot be right.
LATIN_PROSE = r"(?:\b[a-zà-ÿ']{2,}\s+){7,}[a-zà-ÿ']{2,}"
