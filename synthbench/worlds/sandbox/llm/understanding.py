"""Recognise the task, sentence and topics that a chat's messages ask for."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise

from synthbench.worlds.sandbox.llm.comparing import ComparisonTask, comparison_in
from synthbench.worlds.sandbox.llm.filling import masked_in
from synthbench.worlds.sandbox.llm.inputs import (
    PASSAGE,
    MessageParts,
    leaning,
    pairs_inside,
    parts,
    refers_to_a_sentence,
    without_answer_label,
)
from synthbench.worlds.sandbox.llm.json_asks import JSONAsk, json_ask_in, passage_of
from synthbench.worlds.sandbox.parsing import read_sentence
from synthbench.worlds.sandbox.realisation import Register
from synthbench.worlds.sandbox.vocabulary import domains

# Words for each domain's topics, by their beginnings.
_TOPIC_WORDS = {
    "cooking": "food recipe culinary cuisine kitchen meal dining baking gastronom",
    "farming": "agricultur nature environment rural crop garden conservation climate countryside food",
    "sport": "sport fitness game athletic exercise football tennis olympic",
    "music": "music art cultur concert song entertainment opera band performance",
    "traffic": "travel transport car vehicle commut touris travelogue journey traffic",
    "animals": "animal nature wildlife pet creature environment conservation zoo",
    "household": "home household famil relationship personal everyday daily fashion cloth furniture emotion",
    "sea": "sea ocean marine maritime fishing beach environment immigra migra coast",
    "construction": "construct building architect engineer housing infrastructure electrical",
    "medicine": "medic health hospital disease covid-19 covid mental wellness doctor pandemic",
    "education": "educat school teach learn universit literature history histor book exam philosoph",
    "politics": "politic government war polic social global diploma election immigra parliament intrigue",
    "business": "business financ econom market compan trade shopping strateg industr",
    "crime": "crime criminal law legal court police justice security",
    "science": "scien technolog space research stem celestial astronom discover mathematic engineer",
}
_CAPTIONS = re.compile(r"\b(?:caption|image|photo|picture|video|flickr|visual|footage)")
_HEADLINES = re.compile(
    r"\b(?:headline|news|report|press|government|journal|bulletin|gazette|broadcast|ticker|polit|announcement)"
)
_GENRE = re.compile(
    r"\b(?:appear|occur|found|find|seen|see|used|read|heard|written|stand|encounter\w*|expect\w*)\s+"
    r"(?:in|on|as|for)\s+(?P<place>.+?)(?=[,;.(\n]|\s(?:covering|spanning|encompassing|touching|about|on)\s|$)|"
    r"\b(?:style of|genre|genre is|typical of|reflecting)\b:?\s*(?P<style>.+?)(?=[,;.(\n]|$)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"[^"\n]*"|“[^”\n]*”')
_BRACKETED = re.compile(r"\(([^()]*,[^()]*)\)")
_LISTED = re.compile(
    r"\b(?:topics?|themes?|subjects?|fields?|areas?|domains?|about|on|such as|like|covering|concerning|"
    r"regarding|spanning|including|related to|deal(?:s|ing)? with)\b:?\s+"
    r"(.+?)(?=[.;\n()]|\band so on|\betc|$)",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(r"^.*\b(?:such as|like|including|topics|themes|subjects)\b", re.IGNORECASE)
_SEPARATOR = re.compile(r",|;|/|\band\b|\bor\b|\bas well as\b")
_MAX_TOPIC_WORDS = 6
_MIN_BEGINNING = 5


def register_of(instruction: str) -> Register:
    """Return the register of a genre: headlines for news, captions (whole sentences) for anything else."""
    found = [match["place"] or match["style"] for match in _GENRE.finditer(instruction)]
    for text in (" ".join(found).lower(), instruction.lower()):
        if _CAPTIONS.search(text):
            return "captions"
        if _HEADLINES.search(text):
            return "headlines"
        if found:
            break
    return "captions"


def domains_of(instruction: str) -> tuple[str, ...]:
    """Return the domains of the topics that an instruction names; all domains if it names none."""
    text = _QUOTED.sub(" ", instruction)
    listed = [match[1] for pattern in (_BRACKETED, _LISTED) for match in pattern.finditer(text)]
    pieces = [_LEAD_IN.sub("", piece) for part in listed for piece in _SEPARATOR.split(part)]
    topics = dict.fromkeys(piece.strip().lower() for piece in pieces)
    chosen = {name for topic in topics for name in domains_of_topic(topic)}
    return tuple(name for name in domains() if name in chosen) or tuple(domains())


def domains_of_topic(topic: str) -> tuple[str, ...]:
    """Return the domains that a topic of a few words belongs to, () if there are none."""
    words = re.findall(r"[\w-]+", topic)
    if not 0 < len(words) <= _MAX_TOPIC_WORDS:
        return ()
    by_field = tuple(
        name
        for name, fields in _TOPIC_WORDS.items()
        if any(_begins(word, field) for word in words for field in (*fields.split(), name))
    )
    return by_field or tuple(name for name in domains() if _nouns(name) & set(words))


def _begins(word: str, field: str) -> bool:
    """Return whether `word` begins with `field`; short fields must match whole words ("art", "articles")."""
    return word.startswith(field) if len(field) >= _MIN_BEGINNING else word in (field, field + "s")


@cache
def _nouns(domain: str) -> frozenset[str]:
    """Return the last words of a domain's agents and objects, in singular and plural."""
    concepts = (*domains()[domain].agents.values(), *domains()[domain].objects.values())
    heads = {word.split()[-1] for concept in concepts for word in concept.words}
    return frozenset(heads | {head + "s" for head in heads})


Message = tuple[str, str]
"""Role ("system", "developer", "user", "assistant") and text."""

MAX_SENTENCES = 200
SEVERAL = 5
_AMOUNTS = {
    **{"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9},
    **{"ten": 10, "twelve": 12, "a dozen": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "fifty": 50},
    **{"a few": SEVERAL, "several": SEVERAL, "some": SEVERAL},
}
_AMOUNT = rf"(?P<amount>\d{{1,4}}|{'|'.join(sorted(_AMOUNTS, key=len, reverse=True))})"
_TEXTS = r"(?:sentence|caption|headline|description|statement|phrase|line|example|title|item|text)s\b"
_VERSIONS = (
    r"(?:paraphrase|version|variant|rewording|alternative|contradiction|restatement|negative|positive)s\b"
)
_SENTENCES = re.compile(rf"\b{_AMOUNT}\s+(?:(?!words?\b)[\w'-]+,?\s+){{0,6}}?{_TEXTS}", re.IGNORECASE)
_SEVERAL_VERSIONS = re.compile(rf"\b{_AMOUNT}\s+(?:[\w'-]+,?\s+){{0,3}}?{_VERSIONS}", re.IGNORECASE)
_A_LIST = re.compile(
    rf"\b(?:list|set|collection|batch|number) of\s+(?:[\w-]+\s+){{0,4}}{_TEXTS}", re.IGNORECASE
)
_WRITING = re.compile(
    r"\b(?:write|generate|devise|construct|create|compose|produce|give|list|make|need|want|invent|craft|draft|"
    r"provide|come up|think|imagine|formulate|prepare|show|supply|propose|suggest|sentences)\b",
    re.IGNORECASE,
)
_ASKING_FOR_QUESTIONS = re.compile(r"\b(?:question|query|queries)", re.IGNORECASE)
_QUERY = re.compile(r"^(?:query|question)\s*:[ \t]*(?P<text>\S.*)$", re.IGNORECASE | re.MULTILINE)
_NOT_ANSWERING = re.compile(
    r"\b(?:passage|document|text)\b.*?\b(?:does not|doesn't|must not|should not|cannot|fails to) answer\b",
    re.IGNORECASE | re.DOTALL,
)
_LIST_ITEM = re.compile(r"^\s*(?:\d+\s*[.):-]|[-*•])\s*\S", re.MULTILINE)
_LEAST_LIST = 3
_NUM_OF_A_FRAME = 2


class AskedTask(StrEnum):
    """The kind of request."""

    PARAPHRASE = "paraphrase"
    CONTRADICTION = "contradiction"
    SENTENCES = "sentences"
    JUDGEMENT = "judgement"
    JSON = "JSON"
    QUESTION = "question"
    FILLING = "filling"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Ask:
    """A task, the sentence it is about (or an instruction for new sentences), and the number of answers.

    `count` 1 asks for a bare sentence, more for a numbered list. A judgement has a `comparison`, a request
    for JSON a `json`. In a question over several passages, `sentence` is the first passage and `further` are
    the others. With a `query`, the request is for a passage that does not answer it. Then `sentence` is the
    passage to contradict, which answers the query; without a passage, `sentence` is the query itself.
    """

    task: AskedTask
    sentence: str = ""
    instruction: str = ""
    count: int = 1
    comparison: ComparisonTask | None = None
    json: JSONAsk | None = None
    further: tuple[str, ...] = ()
    query: str = ""


def understand(messages: Sequence[Message]) -> Ask:
    """Recognise what the last user message asks for, given all messages before it.

    The newest clear instruction counts; without one, the exemplars (user and assistant in turn) show the
    task.
    """
    texts = [text for role, text in messages if role == "user"]
    others = [text for role, text in messages if role in ("system", "developer")]
    if not texts:
        return Ask(AskedTask.UNCLEAR)
    wanted = json_ask_in(texts[-1])
    if wanted is not None:
        return Ask(AskedTask.JSON, passage_of(wanted), json=wanted)
    masked = masked_in(texts[-1])
    if masked:
        return Ask(AskedTask.FILLING, masked)
    judged = comparison_in(texts[-1], others)
    if judged is not None:
        return Ask(AskedTask.JUDGEMENT, judged.texts[0], judged.instruction, comparison=judged)
    negative = _negative_asked_for(texts[-1], others)
    if negative is not None:
        return negative
    passages = _passages_asked_about(texts, others)
    if passages:
        return Ask(AskedTask.QUESTION, passages[0], further=passages[1:])
    users = _reframed([parts(text) for text in texts])
    instructions = [asked.instruction for asked in reversed(users)] + others[::-1]
    for instruction in instructions:
        found = _asked_by(instruction, users)
        if found is not None:
            return found
    return _asked_by_exemplars(messages, users, instructions)


def _negative_asked_for(text: str, others: Sequence[str]) -> Ask | None:
    """Return the request for a passage that does not answer a query; None for another request."""
    query = _QUERY.search(text)
    if query is None:
        return None
    passage = PASSAGE.search(text)
    rest = PASSAGE.sub("", _QUERY.sub("", text))
    instruction = "\n".join((*others, rest)).strip()
    if not _NOT_ANSWERING.search(instruction):
        return None
    asked = query["text"].strip()
    told = asked if passage is None else passage["text"].strip()
    return Ask(AskedTask.CONTRADICTION, told, instruction, query=asked)


def _passages_asked_about(texts: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return the passages for which a question is to be written, () if there are none."""
    given = tuple(found["text"].strip() for found in PASSAGE.finditer(texts[-1]))
    instruction = "\n".join((*others, *(PASSAGE.sub("", text) for text in texts)))
    return given if _ASKING_FOR_QUESTIONS.search(instruction) else ()


def _reframed(users: Sequence[MessageParts]) -> list[MessageParts]:
    """Split messages again at the words that most often surround their sentences.

    This finds a sentence that reads like an instruction, if exemplars show where sentences are. If no two
    messages have the same words around their sentence, the messages are unchanged.
    """
    frames = Counter(_frame(asked) for asked in users if asked.sentence)
    frame, num_framed = frames.most_common(1)[0] if frames else (("", ""), 0)
    if num_framed < _NUM_OF_A_FRAME:
        return list(users)
    # The first message may be an instruction for all that follow.
    return [users[0], *(_in_frame(asked, *frame) or asked for asked in users[1:])]


def _in_frame(asked: MessageParts, before: str, after: str) -> MessageParts | None:
    """Return the message split at the words `before` and `after` its sentence; None if it lacks them.

    If `before` and `after` are empty, a message that has a sentence gives None; any other message becomes the
    sentence as a whole.
    """
    sentence = asked.text.removeprefix(before).removesuffix(after)
    is_framed = sentence.strip() and asked.text == before + sentence + after
    if not is_framed or (not before + after and asked.sentence):
        return None
    return MessageParts(asked.text, f"{before}\n{after}".strip(), sentence)


def _frame(asked: MessageParts) -> tuple[str, str]:
    """Return the words before and after a message's sentence."""
    before, _, after = asked.text.rpartition(asked.sentence)
    return before, after


def _asked_by(instruction: str, users: Sequence[MessageParts]) -> Ask | None:
    sentence = _newest_sentence(users)
    amount = _amount(_SENTENCES, instruction)
    is_list = bool(_WRITING.search(instruction)) and (
        amount >= _LEAST_LIST or (amount == 0 and bool(_A_LIST.search(instruction)))
    )
    lean = leaning(without_answer_label(instruction)) or leaning(instruction)
    if is_list and not (lean and refers_to_a_sentence(instruction)):
        whole = "\n".join(dict.fromkeys((users[-1].text, instruction)))
        return Ask(AskedTask.SENTENCES, instruction=whole, count=min(amount or 2 * SEVERAL, MAX_SENTENCES))
    if lean == 0 or not sentence:
        return None
    count = _amount(_SEVERAL_VERSIONS, instruction) or (amount if is_list else 1)
    task = AskedTask.PARAPHRASE if lean > 0 else AskedTask.CONTRADICTION
    return Ask(task, sentence, instruction, min(max(count, 1), MAX_SENTENCES))


def _asked_by_exemplars(
    messages: Sequence[Message], users: Sequence[MessageParts], instructions: Sequence[str]
) -> Ask:
    lean, sentence = 0, _newest_sentence(users)
    for given, answer in _exemplars(messages):
        num_items = len(_LIST_ITEM.findall(answer))
        if num_items >= _LEAST_LIST:
            return Ask(
                AskedTask.SENTENCES, instruction="\n".join((users[-1].text, *instructions)), count=num_items
            )
        lean += _relation(given, parts(answer).sentence or answer)
    if lean == 0 or not sentence:
        return Ask(AskedTask.UNCLEAR, sentence)
    return Ask(AskedTask.PARAPHRASE if lean > 0 else AskedTask.CONTRADICTION, sentence)


def _newest_sentence(users: Sequence[MessageParts]) -> str:
    """Return the last user message's sentence, or that of an earlier message if it has none."""
    return next((asked.sentence for asked in reversed(users) if asked.sentence), "")


def _exemplars(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """Yield sentences with answers: user and assistant in turn, and the last message's own exemplars."""
    for (role, text), (next_role, answer) in pairwise(messages):
        if role == "user" and next_role == "assistant":
            yield parts(text).sentence, answer
    yield from pairs_inside(next(text for role, text in reversed(messages) if role == "user"))


def _relation(given: str, answer: str) -> int:
    """Return 1 if two sentences of the grammar describe the same event, -1 if not, 0 for other texts."""
    first, second = read_sentence(given), read_sentence(answer)
    if first is None or second is None:
        return 0
    return 1 if first.event == second.event else -1


def _amount(pattern: re.Pattern[str], instruction: str) -> int:
    """Return the largest number of texts that the instruction asks for, 0 if it has none."""
    found = [match["amount"].lower() for match in pattern.finditer(instruction)]
    return max((_AMOUNTS.get(word) or int(word) for word in found), default=0)
