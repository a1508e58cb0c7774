"""Check that an endpoint can answer, before anything is computed and at no cost."""

import asyncio
import difflib
from collections.abc import Collection
from dataclasses import replace
from urllib.parse import quote

from synthbench.errors import UserError
from synthbench.llm.connection import (
    Connection,
    FailedAttemptError,
    Kind,
    Refusals,
    endpoint_error,
)
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.replies import Reply, UnreadableReplyError

SECONDS = 10.0
_SHOWN = 5


def check_endpoint(endpoint: Endpoint) -> None:
    """Raise UserError if the endpoint has no key, is not there, refuses the key, or lacks the model.

    It is asked for its list of models, which costs nothing. Where it has none, nothing is concluded.
    """
    pacing = endpoint.pacing
    if pacing.offline or not endpoint.base_url:
        return
    patient = pacing.model_copy(update={"timeout": min(pacing.timeout, SECONDS)})
    asyncio.run(_check(replace(endpoint, pacing=patient)))


async def _check(endpoint: Endpoint) -> None:
    async with Connection(endpoint) as connection:
        listed = await _look_up(connection, endpoint, "/models")
        if listed is None:
            return
        if listed.status in (401, 403) and "permission" not in Refusals(endpoint).said(listed):
            raise Refusals(endpoint).of(listed)
        names = _names(listed)
        if not names or _plain(endpoint.model) in map(_plain, names):
            return
        # Some serve models that they do not list, and say so of each.
        found = await _look_up(connection, endpoint, f"/models/{quote(endpoint.model, safe='/:')}")
        if found is not None and found.status in (400, 404):
            raise endpoint_error(
                endpoint, f"has no model '{endpoint.model}'{_nearest(endpoint.model, names)}"
            )


async def _look_up(connection: Connection, endpoint: Endpoint, path: str) -> Reply | None:
    """Return what is there, None if nothing can be told; raises UserError if nobody is."""
    num_tries = 0
    while True:
        num_tries += 1
        try:
            return await connection.look_up(path)
        except FailedAttemptError as error:
            if error.kind is not Kind.UNREACHABLE:
                return None
            if not error.can_pass(num_tries, endpoint.pacing.tries):
                raise _nobody_there(endpoint, error.reason) from None
            await asyncio.sleep(error.pause(num_tries))


def _names(reply: Reply) -> list[str]:
    """Return the models of a list as the API has it, [] if it is none."""
    try:
        rows = reply.value["data"] if reply.status == 200 else ()
        names = [row["id"] for row in rows]
    except (UnreadableReplyError, KeyError, TypeError):
        return []
    return [name for name in names if isinstance(name, str)]


def _plain(name: str) -> str:
    """Return a model's name without what services leave out: "models/" before, ":latest" after it."""
    return name.removeprefix("models/").partition(":")[0].lower()


def _nearest(model: str, names: Collection[str]) -> str:
    near = difflib.get_close_matches(model, names, _SHOWN) or sorted(names)[:_SHOWN]
    return f"; of the {len(names)} that it lists, the nearest are {', '.join(near)}"


def _nobody_there(endpoint: Endpoint, reason: str) -> UserError:
    return endpoint_error(
        endpoint,
        f"can't be reached ({reason}); nothing was computed. Start it, mend llm.base_url, or take the kept"
        " answers alone with llm.offline: true",
    )
