"""Leases: one holder at a time for each stage, run and clean-up of a store.

Leases on one machine (`local_leases`) end with their process. Leases across machines (`shared_leases`)
expire: a slow holder may go on beside its successor. So correctness never depends on leases.
"""

import json
import os
import socket
import time

from synthbench.base.escaping import shown

CLEANING = "cleaning"
"""The lease name of clean-ups."""
RUN = "run-"
"""Prefix of the runs' lease names, which are unique."""
MOST_OF_A_NAME = 100


HeldLease = tuple[str, bytes, float]
"""A lease's name, its content, and for how many seconds it has not been renewed."""


class StageBusyError(Exception):
    """Another process is computing the stage; the message says which."""


def this_process(label: str) -> dict[str, object]:
    """Return a lease's description of this process as its holder."""
    return {"pid": os.getpid(), "host": socket.gethostname(), "stage": label, "since": time.time()}


def described(holder: bytes) -> str:
    """Describe a lease's holder, and since when it holds the lease, from the lease's content."""
    try:
        found = json.loads(holder)
        process, host = int(found["pid"]), str(found["host"])[:MOST_OF_A_NAME]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "another process"
    return f"process {process} on {shown(host)}{_since(found.get('since'))}"


def _since(began: object) -> str:
    """Return " (since 14:03)", with the date if it was not today; "" if unknown."""
    if not isinstance(began, int | float):
        return ""
    try:
        moment = time.localtime(began)
    except (ValueError, OverflowError, OSError):
        return ""
    is_today = moment[:3] == time.localtime()[:3]
    return time.strftime(" (since %H:%M)" if is_today else " (since %Y-%m-%d %H:%M)", moment)
