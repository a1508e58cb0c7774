"""A chat service on loopback under any model's name, which replaces an experiment file's service."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from loopback import serving

from synthbench.worlds.sandbox.llm import LLMSettings
from synthbench.worlds.sandbox.llm.answering import Answers

KEY = "sk-of-nobody-0815"


class _Handler(BaseHTTPRequestHandler):
    """Answers requests that have the key with the sandbox's LLM."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != f"Bearer {KEY}":
            self._send(401, {"error": {"message": "wrong key", "type": "invalid_request_error"}})
            return
        text = Answers(LLMSettings(), body).choice(0)
        message = {"role": "assistant", "content": text, "refusal": None}
        num_asked = sum(len(each["content"].split()) for each in body["messages"])
        num_said = len(text.split())
        usage = {
            "prompt_tokens": num_asked,
            "completion_tokens": num_said,
            "total_tokens": num_asked + num_said,
        }
        # One token, of which it is nearly sure.
        token = {"token": text, "logprob": -0.1, "bytes": None}
        sure = {"content": [{**token, "top_logprobs": [token]}], "refusal": None}
        logprobs = sure if body.get("logprobs") else None
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": logprobs}
        answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": body["model"]}
        self._send(200, {**answer, "choices": [choice], "usage": usage})

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _send(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def chat_service() -> Iterator[str]:
    """Serve in a thread; gives the base URL."""
    with serving(_Handler) as address:
        yield f"{address}/v1"
