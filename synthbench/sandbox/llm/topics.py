"""From a genre and topics in people's words to the sandbox's domains and registers."""

import re
from functools import cache

from synthbench.sandbox.forms import Register
from synthbench.sandbox.vocabulary import domains

# What people call the fields of life, by domain: beginnings of words.
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
    """Return the register that suits the genre: news has headlines, all else whole sentences (captions)."""
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
    """Return the domains of the topics that an instruction names; all if it names none that there is."""
    text = _QUOTED.sub(" ", instruction)
    listed = [match[1] for pattern in (_BRACKETED, _LISTED) for match in pattern.finditer(text)]
    pieces = [_LEAD_IN.sub("", piece) for part in listed for piece in _SEPARATOR.split(part)]
    topics = dict.fromkeys(piece.strip().lower() for piece in pieces)
    chosen = {name for topic in topics for name in domains_of_topic(topic)}
    return tuple(name for name in domains() if name in chosen) or tuple(domains())


def domains_of_topic(topic: str) -> tuple[str, ...]:
    """Return the domains that a topic of a few words is about, none if there is no such domain."""
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
    """Say whether a word begins with the field's; a short one must be the whole word ("art", "articles")."""
    return word.startswith(field) if len(field) >= _MIN_BEGINNING else word in (field, field + "s")


@cache
def _nouns(domain: str) -> frozenset[str]:
    """Return the last words of a domain's agents and objects, as they are and in the plural."""
    concepts = (*domains()[domain].agents.values(), *domains()[domain].objects.values())
    heads = {word.split()[-1] for concept in concepts for word in concept.words}
    return frozenset(heads | {head + "s" for head in heads})
