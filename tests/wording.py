"""The exact wording of messages and notes, pinned in one file: `tests/wording.json`.

A test names the facts that a message must hold: a file, a line, a key. The sentence around them is in the
snapshot, so that nobody touches a test to reword a message: `make wording` renews the file, and its diff
shows every changed sentence.
"""

import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import ValidationError

from synthbench.base.errors import UserError

SNAPSHOT = Path(__file__).with_name("wording.json")
ROOT = Path(__file__).parents[1]
_TEMPORARY = re.escape(tempfile.gettempdir())
CHANGING = (
    (re.compile(r"since (\d{4}-\d\d-\d\d )?\d\d:\d\d"), "since <time>"),
    (
        re.compile(rf"(?:/private)?{_TEMPORARY}/pytest-of-[^/]+/pytest-\d+(?:/popen-gw\d+)?/[^/\s'\":,;)]+"),
        "<tmp>",
    ),
    (re.compile(re.escape(str(ROOT))), "<root>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
    (re.compile(r"(?<=port )\d+"), "<port>"),
    (re.compile(r"(?<=-)\d{8}-\d{6}-\d+(?=\.log)"), "<when>"),
    (re.compile(r"(?<=batch_\d of )\d{4}-\d\d-\d\d"), "<date>"),
    (re.compile(r"(?<=s3://laboratory/)[0-9a-f]{16}"), "<prefix>"),
    (re.compile(r"(?<=process )\d+( on [^\s:,;]+)?"), "<pid>"),
    (re.compile(r"(?<=-)[0-9a-f]{16}(?=/)"), "<hash>"),
    # Texts that depend on the versions of Python and libraries, and the hash of weights that these draw.
    (re.compile(r"(?<=revision=)[0-9a-f]{64}"), "<hash>"),
    (re.compile(r"(?<=device 'cuda:99' can't be used: ).*"), "<torch's words>"),
    (re.compile(r"(?<=not JSON compliant): nan$"), ""),
)


class Wording:
    """What tests saw, and what the snapshot holds, by test; `renew` takes what was seen."""

    def __init__(self) -> None:
        self.renew = False
        self.seen: dict[str, list[list[str]]] = {}
        self._pinned: dict[str, list[list[str]]] | None = None

    @property
    def pinned(self) -> dict[str, list[list[str]]]:
        """The snapshot's texts: for each test, for each of its checks, the lines."""
        if self._pinned is None:
            self._pinned = json.loads(SNAPSHOT.read_text("utf-8")) if SNAPSHOT.is_file() else {}
        return self._pinned

    def check(self, lines: Sequence[str]) -> None:
        """Compare lines with those that the snapshot has for this check of the running test."""
        test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
        texts = [_steady(line) for line in lines]
        checks = self.seen.setdefault(test, [])
        checks.append(texts)
        if not self.renew:
            known = self.pinned.get(test, [])
            assert len(checks) <= len(known), f"no wording is pinned: make wording; it is {texts}"
            assert texts == known[len(checks) - 1], "reworded? then: make wording"

    def write(self, collected: set[str]) -> None:
        """Write the snapshot: new entries of tests that ran, old ones of tests that were not collected."""
        files = {test.partition("::")[0] for test in collected}
        kept = {
            test: texts
            for test, texts in self.pinned.items()
            if test.partition("::")[0] not in files or (test in collected and test not in self.seen)
        }
        text = json.dumps({**kept, **self.seen}, indent=1, sort_keys=True, ensure_ascii=False)
        SNAPSHOT.write_text(text + "\n", encoding="utf-8")


WORDING = Wording()


def worded(found: str | Sequence[str], *facts: str) -> None:
    """Check that `found` holds every fact, and that its wording is the snapshot's."""
    lines = [found] if isinstance(found, str) else list(found)
    for fact in facts:
        assert any(fact in line for line in lines), f"{fact!r} is missing in {lines}"
    WORDING.check(lines)


@contextmanager
def refused(*facts: str, kind: type[Exception] = UserError) -> Iterator["pytest.ExceptionInfo[Exception]"]:
    """Expect an error of this kind whose message holds every fact in the snapshot's wording."""
    with pytest.raises(kind) as caught:
        yield caught
    worded(_lines(caught.value), *facts)


def _lines(error: Exception) -> list[str]:
    """Return a message's lines; of pydantic's errors what does not change with its version."""
    if isinstance(error, ValidationError):
        return [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
    return str(error).splitlines()


def _steady(line: str) -> str:
    for pattern, name in CHANGING:
        line = pattern.sub(name, line)
    return line


def pytest_configure(config: pytest.Config) -> None:
    WORDING.renew = bool(config.getoption("renew", default=False))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if WORDING.renew:
        WORDING.write({item.nodeid for item in session.items})
