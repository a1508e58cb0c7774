"""Good news or bad news: two classes that no single word tells.

What is done decides together with whether it is denied: to win a match is good news, not to win it is bad,
to lose it is bad, not to lose it is good. Nothing else differs between the classes: domain, scene, object,
agent and circumstances are drawn without regard to the class. One in four sentences is a denial, so that
whoever takes the words one by one is right three times in four at best.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import count
from operator import itemgetter
from random import Random
from typing import Literal

from synthbench.errors import UserError
from synthbench.sandbox.events import Event
from synthbench.sandbox.premises import Premises
from synthbench.sandbox.realisation import Register
from synthbench.sandbox.sampling import draw_event
from synthbench.sandbox.streams import Distinct, Scope, draw_until
from synthbench.sandbox.vocabulary import Scene, domains

News = Literal["good news", "bad news"]
CLASSES: tuple[News, News] = ("good news", "bad news")
DENIED_SHARE = 0.25
GOOD_ACTIONS = {
    "sport": {"win", "celebrate"},
    "sea": {"repair", "tow"},
    "construction": {"build", "renovate"},
    "education": {"attend", "prepare"},
    "politics": {"approve", "sign", "appoint", "praise"},
    "business": {"open", "expand", "launch", "produce"},
    "science": {"repair", "install"},
}
BAD_ACTIONS = {
    "sport": {"lose", "interrupt"},
    "sea": {"abandon"},
    "construction": {"demolish"},
    "education": {"cancel", "skip"},
    "politics": {"reject", "criticize", "delay", "dismiss", "accuse"},
    "business": {"close", "recall"},
    "science": {"switch off"},
}


def news(event: Event) -> News | None:
    """Return an event's class; None if it is neither."""
    is_good = event.action in GOOD_ACTIONS.get(event.domain, ())
    if not is_good and event.action not in BAD_ACTIONS.get(event.domain, ()):
        return None
    return "good news" if is_good != event.is_negative else "bad news"


def two_classes(scope: Scope) -> Iterator[tuple[str, Register, News]]:
    """Yield distinct sentences with register and class, the classes in turn.

    Raises UserError if none of the scope's domains has both good and bad news.
    """
    names = [name for name in scope.domains if name in GOOD_ACTIONS]
    if not names:
        raise UserError(f"the sandbox has good and bad news of {', '.join(GOOD_ACTIONS)} only")
    distinct = Distinct()
    for position in count():
        random = scope.random("two classes", position)
        register = random.choice(scope.registers)
        label = CLASSES[position % len(CLASSES)]
        yield distinct.draw(partial(_draw, scope, names, label, register, random), itemgetter(0))


def _draw(
    scope: Scope, names: list[str], label: News, register: Register, random: Random
) -> tuple[str, Register, News]:
    event = draw_until(lambda: _event(names, label, random, scope.premises), scope.holds)
    return scope.tell(event, register, random), register, label


def _event(names: list[str], label: News, random: Random, premises: Premises) -> Event:
    name = random.choice(names)
    scene = random.choice(_scenes(name))
    is_denied = random.random() < DENIED_SHARE
    kind = GOOD_ACTIONS if (label == "good news") != is_denied else BAD_ACTIONS
    return replace(
        draw_event([name], random, premises.without("foreign")),
        action=random.choice([action for action in scene.actions if action in kind[name]]),
        object=random.choice(list(scene.objects)),
        is_negative=is_denied,
    )


@cache
def _scenes(name: str) -> tuple[Scene, ...]:
    """Return the domain's scenes with good and bad actions, so that the scene tells nothing."""
    kinds = (GOOD_ACTIONS[name], BAD_ACTIONS[name])
    return tuple(
        scene for scene in domains()[name].scenes if all(kind & scene.actions.keys() for kind in kinds)
    )
