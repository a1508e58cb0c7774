"""Check before any computation, and free of charge, that an endpoint can answer."""

import asyncio
import difflib
from collections.abc import Collection
from dataclasses import replace
from urllib.parse import quote

from synthbench.base.errors import UserError
from synthbench.llm.connection import (
    Connection,
    ErrorReader,
    endpoint_error,
)
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.replies import Reply, UnreadableReplyError
from synthbench.llm.retries import FailedAttemptError, FailureKind
from synthbench.llm.server_programs import check_program

SECONDS = 10.0
_SHOWN, _LONGEST = 5, 100


def check_endpoint(endpoint: Endpoint, *, is_elsewhere: bool = False) -> None:
    """Raise UserError if the endpoint has no key, is unreachable, rejects the key, or lacks the model.

    This requests the endpoint's list of models, which is free. An endpoint without a list passes. If the run
    starts the server, only its program is checked; with `is_elsewhere` (on a cluster), nothing is. With
    `offline`, nothing is checked.
    """
    pacing = endpoint.pacing
    if endpoint.served is not None and not pacing.offline and not is_elsewhere:
        check_program(endpoint.served, endpoint.section)
    if pacing.offline or not endpoint.base_url:
        return
    patient = pacing.model_copy(update={"timeout": min(pacing.timeout, SECONDS)})
    asyncio.run(_check(replace(endpoint, pacing=patient)))


async def _check(endpoint: Endpoint) -> None:
    async with Connection(endpoint) as connection:
        listed = await _get(connection, endpoint, "/models")
        if listed is None:
            return
        if listed.status in (401, 403) and "permission" not in ErrorReader(endpoint).said(listed).lower():
            raise ErrorReader(endpoint).of(listed)
        names = listed_names(listed)
        if not names or any(_offers(name, endpoint.model) for name in names):
            return
        # Some services offer models outside their list.
        found = await _get(connection, endpoint, f"/models/{quote(endpoint.model, safe='/:')}")
        if found is not None and found.status in (400, 404):
            raise endpoint_error(
                endpoint, f"has no model '{endpoint.model}'{_nearest(endpoint.model, names)}"
            )


async def _get(connection: Connection, endpoint: Endpoint, path: str) -> Reply | None:
    """Return the reply, None if there is none; raises UserError if the endpoint is unreachable."""
    num_tries = 0
    while True:
        num_tries += 1
        try:
            return await connection.get(path)
        except FailedAttemptError as error:
            if error.kind is not FailureKind.UNREACHABLE:
                return None
            if not error.can_pass(num_tries, endpoint.pacing.tries):
                raise _unreachable(endpoint, error.reason) from None
            await asyncio.sleep(error.pause(num_tries))


def listed_names(reply: Reply) -> list[str]:
    """Return the names in the API's list of models, [] if the reply is no such list."""
    try:
        rows = reply.value["data"] if reply.status == 200 else ()
        names = [row["id"] for row in rows]
    except (UnreadableReplyError, KeyError, TypeError):
        return []
    return [name for name in names if isinstance(name, str)]


def _offers(listed: str, asked: str) -> bool:
    """Return whether a listed name is the requested model.

    A listed name without a tag is the model under any tag; a request without a tag means "latest".
    """
    (name, _, tag), (wanted, _, wanted_tag) = (
        model.lower().removeprefix("models/").partition(":") for model in (listed, asked)
    )
    return name == wanted and tag in ("", wanted_tag or "latest")


def _nearest(model: str, names: Collection[str]) -> str:
    near = difflib.get_close_matches(model, names, _SHOWN) or sorted(names)[:_SHOWN]
    shown = ", ".join(name[:_LONGEST] for name in near)
    return f"; of the {len(names)} that it lists, the nearest are {shown}"


def _unreachable(endpoint: Endpoint, reason: str) -> UserError:
    return endpoint_error(
        endpoint,
        f"can't be reached ({reason}). Nothing was computed. Start it, correct {endpoint.section}.base_url,"
        f" or use cached answers only with {endpoint.section}.offline: true",
    )
