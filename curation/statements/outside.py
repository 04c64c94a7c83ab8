"""What a statement points at outside itself: figures and tables that are not there, other problems; or its own answer.

The companion of `words`, with the same conventions: Rust syntax, seven languages, all tried on every row.
"""

from __future__ import annotations

from curation.statements.words import cheap, either

# --- figures ---------------------------------------------------------------------------------------------------------

FIGURE_NEEDLES = [
    "figure", "diagram", "picture", "shown", "image", "![", "[asy]", "<img", "includegraphics", "tikz", "chart",
    "graph", "pictured", "illustrat", "depicted", "drawing", "histogram", "plot", "map", "number line",
    "图", "圖", "schéma", "ci-contre", "ci-dessous", "figura", "gráfic", "grafic", "dibujo", "imagen", "esquema",
    "mostra", "muestra", "disegno", "immagine", "abbildung", "skizze", "zeichnung", "bild", "diagramm", "grafik",
    "dessin", "courbe", "abgebildet", "dargestellt", "gezeigt", "stehende",
    "исун", "рис.", "чертеж", "чертёж", "иаграмм", "хем", "зображ", "рафик", "артин", "показан",
]  # fmt: skip

_KIND = (
    r"(?:figure|diagram|picture|image|illustration|graph|chart|drawing|map|sketch|grid|plot|histogram|pictogram"
    r"|pictograph|photo(?:graph)?|number\s+line)"
)

FIGURE = either(
    r"!\[[^\]]*\]\([^)]*\)|!\[\]|\[asy\]|<img\b|\\includegraphics|\\begin\{tikzpicture\}|\[(?:image|figure"
    r"|diagram|图片?)\s*\d*\]|<(?:image|figure)[^>]{0,20}>",
    # en
    r"\b(?:see|in|on|from|by)\s+(?:the|this)\s+(?:(?:following|above|below|given|adjoining|accompanying|attached"
    r"|left|right|bottom|top)\s+)*"
    r"(?:figures?|diagrams?|pictograph|bar\s+(?:graph|chart)|pie\s+chart|line\s+graph|histogram|scatter\s?plot"
    r"|venn\s+diagram)\b",
    r"\b(?:see|in)\s+(?:the|this)\s+(?:(?:following|above|below|given|adjoining|accompanying"
    r"|attached)\s+)*(?:picture|image|illustration|sketch|drawing)\b",
    rf"\b{_KIND}s?\s+(?:\d+\s+|\(?[a-d]\)?\s+)?(?:(?:is|are|was|as)\s+)?(?:shown|below|above|here\b|to\s+the"
    r"\s+(?:right|left)|at\s+(?:the\s+)?(?:right|left)|on\s+the\s+(?:right|left)|depicted|pictured|(?:shows|illustrates"
    r"|depicts|displays|represents)\b)",
    rf"\b(?:following|above|below|adjoining|accompanying|attached)\s+(?:[\w-]+\s+){{0,2}}{_KIND}s?\b",
    r"\b(?:as\s+)?(?:shown|pictured|illustrated|depicted|drawn)\s+(?:in\s+the\s+(?:figure|diagram|picture|image"
    r"|graph|chart|map|drawing|sketch|illustration|grid)|(?:here|below|above|at\s+(?:the\s+)?(?:right|left)"
    r"|to\s+the\s+(?:right|left)|on\s+the\s+(?:right|left)))",
    r"\bas\s+(?:shown|pictured|illustrated|depicted)\s*[.,;)?]",
    r"\b(?:see|in|from)\s+fig(?:ure|\.)\s*\d+|\(fig(?:ure|\.)?\s*\d*\)|\bthe\s+(?:shaded|unshaded)\s+(?:region"
    r"|area|part|portion)\s+(?:shown|below|above|in\s+the\s+(?:figure|diagram))",
    rf"\baccording\s+to\s+(?:the|this)\s+(?:[\w-]+\s+){{0,3}}{_KIND}\b|\bhow\s+many\s+\w+\s+(?:are|is)\s+"
    r"(?:there\s+)?in\s+(?:the|this)\s+(?:picture|figure|diagram)\b",
    r"\b(?:use|using|refer\s+to|look(?:ing)?\s+at|study|examine)\s+(?:the|this)\s+(?:[\w-]+\s+){0,2}(?:figure|diagram"
    r"|picture|bar\s+graph|pie\s+chart|chart|histogram|pictograph|map)\b"
    r"|\b(?:use|using)\s+the\s+graph\s+(?:to|below|above|shown)\b",
    # zh
    r"如.{0,4}[图圖](?:所?示|[0-9１-９一二三甲乙]|[，,。．：:；;）)]|\s|$|中|是|，)|如[图圖]",
    r"[下右左上附][图圖](?:[所是为中，,。．）)：:的]|\s|$)|[图圖](?:[0-9１２３]|\$+\d\$+|[①②③])(?:所示|中|是)|见[图圖]|[图圖]示|[看由从据]图"
    r"|[图圖]中|示意图如|统计图(?:如|中|所|可|[，,])|(?:条形|折线|扇形|直方)统?计?图(?:如|中|所|可)|(?:根据|依据|由|从|观察)(?:上|下|右|左)?[图圖](?:中|形|，|可|回|$)|阴影部分",
    # fr
    r"\b(?:sur|dans|voir|selon|d'après)\s+(?:la|le|cette|ce)\s+(?:figure|schéma|diagramme|graphique|dessin"
    r"|histogramme)\b|(?:figure|schéma|graphique|dessin|diagramme|histogramme|courbe"
    r"|image)\s+(?:ci-contre|ci-dessous|ci-dessus|ci-après|suivante?|montre\b|représente\b)",
    # es
    r"\b(?:en|ver|de|según|observa(?:ndo)?|usando)\s+(?:la|el)\s+(?:figura|diagrama|dibujo|imagen|gráfic[oa]|esquema"
    r"|histograma)\b|\b(?:figura|gráfic[oa]|diagrama|imagen|dibujo|esquema)\s+(?:muestra|siguiente|adjunt[oa]|anterior"
    r"|de\s+(?:abajo|arriba|la\s+(?:derecha|izquierda))|que\s+se\s+muestra)|como\s+se\s+(?:muestra|ve|observa)\s+en\b"
    r"|siguiente\s+(?:figura|gráfic[oa]|diagrama|imagen|dibujo|esquema)",
    # it
    r"\b(?:in|nella|dalla|vedi|nel|secondo|dal)\s+(?:la\s+|il\s+)?(?:figura|diagramma|disegno|grafico|istogramma)\b"
    r"|\b(?:figura|grafico|diagramma|immagine|disegno|istogramma)\s+(?:mostra|seguente|sottostante|qui\s+sotto"
    r"|in\s+basso|a\s+(?:lato|fianco|destra))|come\s+(?:mostrato|indicato|illustrato)\s+(?:in|nella|nel)\b",
    # de
    r"\b(?:in|siehe|auf|aus|laut|gemäß|nach)\s+(?:der|die|dem)?\s*(?:nebenstehenden|folgenden|obigen)?\s*(?:abbildung"
    r"|skizze|zeichnung|figur|grafik|\w*diagramm|schaubild)\b|\bim\s+(?:\w+en\s+)?(?:bild|\w*diagramm|schaubild)\b"
    r"|(?:abbildung|skizze|diagramm|grafik|schaubild|bild)\s+(?:zeigt|unten|oben|rechts|links)"
    r"|wie\s+(?:in\s+der\s+)?(?:abgebildet|dargestellt|gezeigt)\b"
    r"|\b(?:unten|oben|rechts|links|hier)\s+(?:abgebildet|dargestellt|gezeigt|stehend)",
    # ru
    r"на\s+(?:рисунк\w+|рис\.|чертеже|диаграмме|схеме|картинке|графике\s+(?:ниже|показан|изображ))|(?:см"
    r"|на)\.?\s*рис(?:\.|ун)|изображ[её]н\w*\s+на|как\s+показано|(?:рисунок|график|диаграмма|схема)\s+(?:ниже|справа"
    r"|слева|показыва)|(?:по|из)\s+(?:рисунку|рисунка|диаграмм[еы]|чертежу|схеме|графику\s*,?\s*(?:определ|найд|ответ|узна|ниже))",
)  # fmt: skip

# "the picture of", graphs as objects, figures as numbers, three-dimensional figures, plots that are described in words
FIGURE_HARMLESS = either(
    r"\bin\s+the\s+(?:graph|picture|image)\s+(?:of|\$|theor)",
    r"\bthe\s+(?:image|picture)\s+of\b",
    r"(?:图象|图像|图形|图书|地图|图案|意图|企图|图纸|版图|画图|试图|力图|图论|图谱|图章|构图|图表示)(?:馆|室)?",
)

TABLE_NEEDLES = ["table", "tableau", "tabla", "tabella", "tabelle", "аблиц", "表"]
TABLE = either(
    r"\b(?:following|above|below|given|accompanying)\s+(?:[\w-]+\s+){0,2}table\b|\btable\s+(?:is\s+)?(?:shown|below|above"
    r"|shows|gives|lists|represents|summari[sz]es|displays)\b|\b(?:according\s+to|use|using|complete)\s+the\s+"
    r"(?:\w+\s+)?table\b|\b(?:shown|given|listed|values?|data)\s+(?:in|from)\s+the\s+(?:\w+\s+)?table\b",
    r"\btableau\s+(?:ci-|suivant|montre|donn)|\b(?:dans|d'après|selon)\s+le\s+tableau\b",
    r"\b(?:siguiente\s+tabla|tabla\s+(?:siguiente|adjunta|muestra|anterior|de\s+abajo))\b|\b(?:en|según)\s+la\s+tabla\b",
    r"\btabella\s+(?:seguente|sottostante|mostra|qui\s+sotto|riporta)\b|\b(?:nella|dalla|secondo\s+la)\s+tabella\b",
    r"\btabelle\s+(?:zeigt|unten|enthält|gibt)|\b(?:in|aus|laut|nach)\s+der\s+(?:folgenden\s+|obigen\s+)?tabelle\b",
    r"в\s+таблице|таблиц[аеуы]\s+(?:ниже|показ|справа)|по\s+таблице|следующ\w+\s+таблиц",
    r"[下右上附左]表(?:所示|[^达面示情演]|$)|[如见]表|表(?:[0-9一二三]|中)?所示|统计表(?:如|中|所)|(?:根据|由|从)表|[^格数图代]表中的?(?:数据|信息)",
)
# The table itself: cells, whatever draws them.
TABLE_HERE = cheap(
    r"\\begin\{(?:tabular|array|matrix|[bpv]matrix)|&[^&\n]*&|\|[^|\n]*\|[^|\n]*\||<t[dr]\b|\t|\\hline"
    r"|(?:\n[^\n]*[0-9][^\n]*){3}|[:：]\s*\n\s*\S"
)

# --- references to elsewhere -----------------------------------------------------------------------------------------

ELSEWHERE_NEEDLES = [
    "previous", "preceding", "problem", "exercise", "theorem", "lemma", "proposition", "corollary", "example",
    "section", "chapter", "equation (", "eq. (", "question", "earlier", "part (", "part a", "part b", "passage",
    "above text", "table", "to part", "from part", "of part",
    "上题", "上一题", "前一题", "上一问", "前题", "上述问题", "同上", "例", "习题", "材料", "题", "教材", "课本",
    "exercice", "précéd", "ejercicio", "anterior", "esercizio", "precedente", "aufgabe", "vorherig", "vorig",
    "problème", "exemple", "tableau", "théorème", "pregunta", "ejemplo", "tabla", "teorema", "domanda", "esempio",
    "tabella", "tabelle", "beispiel", "abschnitt", "kapitel", "übung", "satz", "inciso", "apartado", "capít", "capit",
    "редыдущ", "адач", "пражнен", "пункт", "ример", "еорем", "аблиц",
]  # fmt: skip

_NUMBER = r"(?:№|#|no\.?|nr\.?|n[°º])?\s*\(?\d+(?:[.-]\d+)*\)?"
ELSEWHERE = either(
    r"\b(?:in|of|from|see|using|by|to|as\s+in|with|under|for|continue|repeat|consider|recall)\s+(?:the\s+|our\s+)?"
    r"(?:previous|preceding|last|foregoing|earlier)\s+(?:problem|exercise|question|part|example|section|chapter|result"
    r"|theorem|lemma)s?\b|\bthe\s+(?:previous|preceding|foregoing)\s+(?:problem|exercise|question|example)s?\b",
    rf"\b(?:in|of|from|see|using|by|as\s+in|as\s+for|with|under|to|recall|and|use|repeat|redo|refer\s+to)\s+"
    rf"(?:(?-i:Exercise|Example|Section|Chapter|Problem|Question)s?|theorem|lemma|proposition|corollary)\s*{_NUMBER}"
    r"[a-d]?\b",
    rf"(?-i:\b(?:Repeat|Redo|Rework|See|Continue|Answer|Do))\s+(?:exercise|problem|question|example|task)s?\s+{_NUMBER}",
    rf"\b(?:as\s+in|see|from|repeat|using|refer\s+to|the\s+(?:answer|result|solution)\s+(?:to|of|from))\s+(?:exercise"
    rf"|problem|question|example|task)\s+{_NUMBER}",
    r"\b(?:equations?|eqs?\.?|formula)\s*\(\d+\.\d+\)|\b(?:exercise|theorem|lemma|proposition|corollary"
    r"|example|table|section|chapter)\s+\d+\.\d+\b|\b(?:see|in|from|of|to|using|use)\s+(?-i:Table)\s+\d+\b",
    r"\b(?:part|parts)\s+\(?[a-d1-4i]{1,3}\)\s+(?:of\s+(?:the|this)\s+(?:previous|problem|exercise)|above)"
    r"|\b(?:from|answers?\s+(?:to|from|in|of)|results?\s+(?:of|from|in)|in|to|of|using|by)\s+parts?\s+(?:\([a-h1-9]\)"
    r"|(?-i:[A-Ha-d])\b)|\bin\s+the\s+(?:passage|text|article|story)\s+above\b",
    r"上一?题|前一?题(?:中|的|所)|上一问|上述(?:问题|题目|例题)|同上题|[由见用据在]例题?\s?\d|第\s?\d+\s?题(?:中|的)|见(?:习题|课本|教材|第)"
    r"|(?:阅读|根据)(?:上面|上述)(?:的)?材料|习题\s?\d",
    rf"\b(?:exercice|problème|question|exemple|partie)s?\s+précédente?s?\b|\b(?:de|dans|à|voir|selon|cf\.?"
    rf"|d'après)\s+(?:la\s+|le\s+)?(?:l')?(?:exercice|problème|question|exemple|théorème|tableau)\s+{_NUMBER}",
    rf"\b(?:ejercicio|problema|pregunta|ejemplo|apartado|inciso)\s+anterior\b|\b(?:del|al|en\s+el|en\s+la|de\s+la|ver|véase"
    rf"|según\s+el|según\s+la)\s+(?:el\s+|la\s+)?(?:ejercicio|problema|pregunta|ejemplo|teorema|tabla|apartado|inciso)\s+"
    rf"(?:{_NUMBER}|[a-d]\))",
    rf"\b(?:esercizio|problema|domanda|esempio)\s+precedente\b|\b(?:del|dell'|nel|nell'|al|all'|dal|dall'|della|nella|vedi"
    rf"|dalla)\s*(?:esercizio|problema|domanda|esempio|teorema|tabella)\s+{_NUMBER}",
    rf"\b(?:vorherigen?|vorigen?|vorangegangenen?|vorhergehenden?|letzten)\s+(?:aufgabe|beispiel|teil|übung|frage)|\b(?:aus"
    rf"|in|von|siehe|nach|zu)\s+(?:der\s+)?(?:(?:teil)?aufgabe|übung|beispiel|satz|tabelle|abschnitt|kapitel)\s+"
    rf"(?:{_NUMBER}|[a-d]\))",
    r"предыдущ\w+\s+(?:задач|пункт|упражнен|вопрос|пример)\w*|(?:из|в|см\.|по|к|для)\s+(?:задач[аеиу]|упражнени\w+"
    r"|пример[аеу]|теорем[аеыу]|таблиц[аеыу]|пункт[аеу]|вопрос[аеу])\s+(?:№\s*)?\d+",
)  # fmt: skip

# --- the answer itself -----------------------------------------------------------------------------------------------

# "Answer: 42", "the answer is 42", "答案：42", "#### 42": what stands behind the last label
GIVEN = cheap(
    r"(?i)^[\s\S]*(?:(?:\b(?:answers?|ans|sol|solution|key|result|rép|réponse|resp|respuesta|resultado|risposta|ris"
    r"|antwort|lösung|lsg|ergebnis|solución|soluzione)|ответ|отв|答案?|参考答案|正确答案)\W{0,3}?"
    r"(?:[:：=】\]]|\.\s|\s(?:is|are|ist|lautet|est|es|è)\s|为|是)|####|\\boxed\s*\{)([^?？]*)$"
)
# A worked solution behind the question.
WORKED_OUT = cheap(
    r"(?i)(?:^|[\n.?!。？！)）*\[【(]\s*)(?:(?:worked\s+|full\s+)?solution|explanation|lösung|solución|soluzione|решение"
    r"|correction|解答?|解析|分析|详解)\s?\**\s*[:：】\]]([\s\S]*)$"
)
GIVEN_NEEDLES = [
    "answer", "ans.", "ans:", "ans ", "sol.", "sol:", "solution", "key", "result", "rép", "respuesta", "resp.",
    "risposta", "ris.", "antwort", "lösung", "lsg", "ergebnis", "soluci", "soluzione", "explanation", "correction",
    "твет", "тв.", "ешение", "答", "解", "分析", "####", "\\boxed",
]  # fmt: skip
