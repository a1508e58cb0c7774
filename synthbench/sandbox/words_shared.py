"""Words that several domains share, and how a domain's words are written down.

Concepts are separated by ";", their synonyms by "|"; after ":" stand an action's nouns with preposition.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class DomainWords:
    """The words of one domain; `people` adds the agents that act everywhere in private life."""

    name: str
    agent_type: Literal["person", "animal", "organisation"]
    agents: str
    places: str
    scenes: tuple[tuple[str, str], ...]
    people: bool = False


PEOPLE = "man|guy; woman|lady; boy|lad; girl; teenager|adolescent"

ATTRIBUTES = {
    "person": (
        "young|youthful; old|elderly|aged; tall; tired|weary|exhausted; happy|cheerful|joyful; "
        "angry|furious|irate; famous|well-known|celebrated; injured|wounded; foreign; strong|muscular; "
        "nervous|anxious; experienced|seasoned"
    ),
    "animal": (
        "young|juvenile; old|aged; brown; black; white; little|small|tiny; big|large|huge; "
        "hungry|starving; wet|soaked; tired|exhausted; wild|untamed; aggressive|fierce"
    ),
    "organisation": (
        "big|large|major; little|small|minor; foreign|overseas; local|regional; private|privately owned; "
        "leading|top; troubled|struggling|ailing; rich|wealthy; state-owned|government-owned"
    ),
}

TIMES = (
    "at dawn|at sunrise|at daybreak; in the morning|before noon; at noon|at midday; "
    "in the afternoon|after lunch; in the evening; at dusk|at sunset|at nightfall; at night|after dark; "
    "at the weekend|on the weekend; in winter|during the winter; in summer|during the summer"
)
