"""Recognition of chat models' refusals in English, German and Chinese."""

from synthbench.base.patterns import linear_pattern

_CANNOT = r"(?:cannot|can't|can not|could not|couldn't|won't|(?:am|'m|was) (?:unable|not able) to)"
_TASK = "(?:rewrite|contradict|write|generate|provide|produce|create|complete|fulfil+|carry out)"
_CANNOT_DE = r"\b(?:ich kann|kann ich)(?: (?:ihnen|dir|leider|aber|(?:zu|aus) diesem text)){0,2}"
_TEXT_DE = "(?:satz|sätze|ausdruck|text|eingabe|anfrage|suchanfrage|umformulierung)"
_WRITE_DE = "(?:umschreiben|umformulieren|paraphrasieren|schreiben|verfassen|erstellen|formulieren)"
_AI_DE = "(?:ki|künstliche intelligenz|(?:großes )?(?:ki-)?sprachmodell|ki-(?:modell|assistent))"
_CANNOT_ZH = r"我(?:不能|无法)(?:为您|帮您|为你|帮你)?"
_DECLINED = linear_pattern(
    "|".join(
        (
            r"\bas an? (?:ai|artificial intelligence|(?:large )?language model)\b",
            r"\bi(?:'m| am) (?:just |only )?an? (?:ai|artificial intelligence|(?:large )?language model)\b",
            rf"\b{_CANNOT} (?:\w+ )?(?:paraphrase|rephrase|reword)\b",
            rf"\bi ?{_CANNOT} (?:assist|help)(?: you)? with (?:this|that|the|your)\b",
            rf"\bals (?:eine? )?{_AI_DE} (?:kann|darf|bin|habe) ich\b",
            rf"\bich bin (?:nur )?eine? {_AI_DE}\b",
            rf"{_CANNOT_DE} (?:dabei|damit) (?:leider )?nicht (?:weiter)?helfen\b",
            r"作为(?:一个|一名|一款)?(?:ai|人工智能|大?型?语言模型)(?:语言)?(?:模型|助手)?[，,]?我",
            r"我只?是(?:一个|一名|一款)?(?:ai|人工智能|大?型?语言)(?:语言)?(?:模型|助手)",
            rf"{_CANNOT_ZH}(?:改写|重写|转述|写|生成|创作)[^，。！？]{{0,20}}(?:句子|短语|文本|内容|搜索问题)",
            rf"{_CANNOT_ZH}提供(?:这类|此类|这样的|相关)的?内容",
            rf"{_CANNOT_ZH}(?:协助|帮助|完成|处理|满足)(?:这个|这样的|这类|此类|此|该|您的|你的)请求",
        )
    )
)
_OPEN = (
    (
        linear_pattern(rf"\bi ?{_CANNOT} {_TASK}\b"),
        linear_pattern(
            r"\b(?:sentences?|text|input|content|paraphrase|contradiction|premise|hypothes[ei]s|request|list)\b"
        ),
    ),
    (
        linear_pattern(
            rf"\bi ?{_CANNOT} (?:provide|give|share|generate) (?:\w+ )?(?:information|guidance)\b"
        ),
        linear_pattern(r"\b(?:that|this|explicit|illegal|harmful|promotes?)\b"),
    ),
    (
        linear_pattern(rf"{_CANNOT_DE} (?:diese[nrs]?|ihren?|den gegebenen|die gegebene) {_TEXT_DE}\b"),
        linear_pattern(rf"\bnicht {_WRITE_DE}\b"),
    ),
    (linear_pattern(rf"{_CANNOT_DE} keine[nr]? {_TEXT_DE}\b"), linear_pattern(rf"\b{_WRITE_DE}\b")),
)
"""Beginnings of refusals, and a word that must follow each."""


def looks_like_a_refusal(text: str) -> bool:
    """Return whether a chat model seems to decline its task: "I cannot paraphrase ...", "As an AI ..."."""
    line = " ".join(text.lower().replace("\u2019", "'").split())
    return _DECLINED.search(line) is not None or any(
        (begun := beginning.search(line)) is not None and word.search(line, begun.end()) is not None
        for beginning, word in _OPEN
    )
