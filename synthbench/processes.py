"""What each of our processes does first: opt out of telemetry; a worker also follows its parent."""

import os
import signal
import threading
import time

SECONDS_BETWEEN_LOOKS = 1
# HF's libraries and MLflow all understand "true"; MLflow does not understand "1" for DO_NOT_TRACK.
OPT_OUTS = {
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "HF_HUB_DISABLE_TELEMETRY": "true",
    "HF_UPDATE_DOWNLOAD_COUNTS": "false",
}


def disable_telemetry() -> None:
    """Opt out of the usage statistics of every library we use, where the user has not decided otherwise.

    The libraries read these variables when they are imported, so call this before any of them is.
    """
    for name, value in OPT_OUTS.items():
        os.environ.setdefault(name, value)


def follow_parent(parent: int) -> None:
    """Leave Ctrl-C to the process with that id, which started this one, and end at once when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
