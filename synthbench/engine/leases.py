"""Leases: which process computes a stage, runs or cleans in a store; a name has one holder at a time.

Those of one machine (`local_leases`) end with their process. Those of several machines (`shared_leases`)
expire: a holder that was only slow may go on beside the next one, so no correctness rests on them.
"""

import json
import os
import socket
import time

from synthbench.base.escaping import shown

CLEANING = "cleaning"
"""The name that a clean-up holds."""
RUN = "run-"
"""Begins the names of runs; no two runs have the same."""
MOST_OF_A_NAME = 100


class StageBusyError(Exception):
    """Another process is computing the stage; the message says which."""


def this_process(label: str) -> dict[str, object]:
    """Return what a lease says of its holder."""
    return {"pid": os.getpid(), "host": socket.gethostname(), "stage": label, "since": time.time()}


def described(holder: bytes) -> str:
    """Return which process holds a lease, and since when, according to what it wrote."""
    try:
        found = json.loads(holder)
        process, host = int(found["pid"]), str(found["host"])[:MOST_OF_A_NAME]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "another process"
    return f"process {process} on {shown(host)}{_since(found.get('since'))}"


def _since(began: object) -> str:
    """Return " (since 14:03)", with the date if that is another day; "" if nobody says."""
    if not isinstance(began, int | float):
        return ""
    try:
        moment = time.localtime(began)
    except (ValueError, OverflowError, OSError):
        return ""
    is_today = moment[:3] == time.localtime()[:3]
    return time.strftime(" (since %H:%M)" if is_today else " (since %Y-%m-%d %H:%M)", moment)
