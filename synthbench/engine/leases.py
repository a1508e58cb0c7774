"""Leases: one holder at a time for each stage, run and clean-up of a store.

Leases on one machine (`local_leases`) end with their process. Leases across machines (`shared_leases`)
expire: a slow holder may go on beside its successor. So correctness never depends on leases.
"""

import json
import os
import socket
import time
from typing import Any

from synthbench.base.escaping import shown

CLEANING = "cleaning"
"""The lease name of clean-ups."""
RUN = "run-"
"""Prefix of the runs' lease names, which are unique."""
MOST_OF_A_NAME = 100


HeldLease = tuple[str, bytes, float]
"""A lease's name, its content, and for how many seconds it has not been renewed."""


class StageBusyError(Exception):
    """Another process holds the lease; the message describes that process."""


def this_process(label: str) -> dict[str, object]:
    """Return a lease's description of this process as its holder."""
    return {"pid": os.getpid(), "host": socket.gethostname(), "stage": label, "since": time.time()}


def described(holder: bytes) -> str:
    """Return the process, host and start in a lease's content, as text; "another process" if unreadable."""
    try:
        found = json.loads(holder)
        process, host = int(found["pid"]), str(found["host"])[:MOST_OF_A_NAME]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "another process"
    since = moment(found.get("since"))
    return f"process {process} on {shown(host)}{since and f' (since {since})'}"


def moment(seconds: Any, today: str = "%H:%M") -> str:  # noqa: ANN401 - a stranger may have written it
    """Format seconds since 1970: by `today` if the date is today's, else with the date; "" if no number."""
    try:
        found = time.localtime(float(seconds))
    except (TypeError, ValueError, OverflowError, OSError):
        return ""
    return time.strftime(today if found[:3] == time.localtime()[:3] else "%Y-%m-%d %H:%M", found)
