"""`python -m synthbench.sandbox.llm PORT SETTINGS`: the server as a child that ends with its parent."""

import json
import os
import signal
import sys
import threading

from synthbench.errors import UserError
from synthbench.sandbox.llm.process import HOST
from synthbench.sandbox.llm.serving import LLMServer
from synthbench.sandbox.llm.settings import LLMSettings


def main() -> int:
    """Serve until the parent ends, or ends us; its one line of output tells the address, or a fault."""
    try:
        server = LLMServer(LLMSettings.model_validate_json(sys.argv[2]), HOST, int(sys.argv[1]))
    except UserError as error:
        _say({"error": str(error)})
        return 2
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _say({"base_url": server.base_url})
    server.serve_forever()
    return 0


def _say(what: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
