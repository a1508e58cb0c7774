"""langchain-ai/langchain #32252: a busy vLLM server answered with `choices: null` and status 200.

Here that is a fault of the server: it is tried again like a 5xx, costs nothing, and is never kept.
"""

import pytest

from synthbench.llm.connection import ErrorReader
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.retries import FailedAttemptError, FailureKind


@pytest.mark.parametrize("more", [{}, {"error": {"message": "Too Many Requests", "code": 429}}])
def test_a_reply_with_null_choices_is_a_server_error(more: dict[str, object]) -> None:
    completion = {"id": None, "choices": None, "usage": None, **more}
    reader = ErrorReader(Endpoint("mine", "http://127.0.0.1:1/v1", "model"))
    with pytest.raises(FailedAttemptError) as raised:
        reader.answer(lambda: completion, 1, FailureKind.UNREADABLE)
    error = raised.value
    assert (error.kind, error.rule.is_billed, error.rule.in_doubt) == (FailureKind.FAILED, False, False)
    assert error.can_pass(7, 8)
    assert ("Too Many Requests" in error.reason) == bool(more)
