"""English inflection of the sandbox's words; in a phrase, the head is inflected."""

_PLURALS = {"head of state": "heads of state", "wolf": "wolves", "midwife": "midwives"}
_PARTICIPLES = {
    "bite": "bitten",
    "build": "built",
    "buy": "bought",
    "catch": "caught",
    "cut": "cut",
    "drive": "driven",
    "eat": "eaten",
    "feed": "fed",
    "forecast": "forecast",
    "give": "given",
    "hide": "hidden",
    "hit": "hit",
    "hold": "held",
    "leave": "left",
    "lose": "lost",
    "make": "made",
    "meet": "met",
    "put": "put",
    "read": "read",
    "ride": "ridden",
    "run": "run",
    "sell": "sold",
    "set": "set",
    "sew": "sewn",
    "shoot": "shot",
    "shut": "shut",
    "sing": "sung",
    "sow": "sown",
    "steal": "stolen",
    "strike": "struck",
    "tear": "torn",
    "throw": "thrown",
    "win": "won",
    "withdraw": "withdrawn",
    "write": "written",
}
_DOUBLING = frozenset({"chop", "cut", "drop", "grab", "grip", "gun", "hit", "lug", "plan", "put"}) | {
    *("run", "set", "shut", "skin", "skip", "stir", "tug", "win"),
}
_VOWELS = "aeiou"
_SAID_WITH_CONSONANT = ("uni", "euro", "use", "one")


def article(phrase: str) -> str:
    """Return "a" or "an" for the phrase's first word."""
    has_vowel = phrase[0] in _VOWELS and not phrase.startswith(_SAID_WITH_CONSONANT)
    return "an" if has_vowel else "a"


def plural(phrase: str) -> str:
    """Return the plural of a noun phrase whose last word is its head."""
    if phrase in _PLURALS:
        return _PLURALS[phrase]
    if phrase.endswith("man"):
        return phrase[:-3] + "men"
    return _with_s(phrase)


def third_person(verb: str) -> str:
    """Return "slices" for "slice", "looks after" for "look after"."""
    head, _, rest = verb.partition(" ")
    return _join(_with_s(head), rest)


def gerund(verb: str) -> str:
    """Return "slicing" for "slice", "looking after" for "look after"."""
    head, _, rest = verb.partition(" ")
    if head in _DOUBLING:
        head += head[-1]
    elif head.endswith("e") and not head.endswith("ee"):
        head = head[:-1]
    return _join(head + "ing", rest)


def participle(verb: str) -> str:
    """Return "sliced" for "slice", "looked after" for "look after"."""
    head, _, rest = verb.partition(" ")
    return _join(_PARTICIPLES.get(head) or _regular_participle(head), rest)


def _regular_participle(head: str) -> str:
    if head in _DOUBLING:
        return head + head[-1] + "ed"
    if head.endswith("e"):
        return head + "d"
    return head[:-1] + "ied" if _ends_in_consonant_y(head) else head + "ed"


def _with_s(word: str) -> str:
    if _ends_in_consonant_y(word):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def _ends_in_consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in _VOWELS


def _join(head: str, rest: str) -> str:
    return f"{head} {rest}" if rest else head
