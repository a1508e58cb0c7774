"""Nothing about a user's work leaves the machine unasked."""

import os

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
