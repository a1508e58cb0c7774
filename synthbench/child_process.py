"""What every process that we start for work of our own does first."""

import os
import signal
import threading
import time

SECONDS_BETWEEN_LOOKS = 1


def follow_parent(parent: int) -> None:
    """Leave Ctrl-C to the process with that id, which started this one, and end at once when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
