"""The answer cache: equality of requests, kills, several processes."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from synthbench.base.errors import UserError
from synthbench.llm.accounts import Spent
from synthbench.llm.cache import FILE, Answer, AnswerCache, Cost, OverBudgetError, key_of
from synthbench.llm.endpoint import Account, Endpoint, Pacing
from synthbench.llm.ledger import AttemptTotals, entries
from synthbench.llm.requests import ChatRequest

ENDPOINT = Endpoint("mine", "http://127.0.0.1:1/v1", "model")
REQUEST = ChatRequest("a", ({"role": "user", "content": "Hello"},), {"temperature": 1.0}, 3)
COST = Cost(10, 5, 0.25)
ANSWER = Answer("Good day", "", 9, 2)


def opened(folder: Path, account: Account | None = None, **budget: float) -> AnswerCache:
    endpoint = replace(ENDPOINT, pacing=Pacing.model_validate(budget))
    return AnswerCache(folder, endpoint, account or Account("study", "stage"))


def paid(folder: Path, *keys: str) -> None:
    with opened(folder) as cache:
        for key in keys or ("k",):
            attempt = cache.begin_attempt(key, COST)
            assert attempt is not None
            cache.record_answer(attempt, key, ANSWER, 0.125)


def damage(folder: Path, old: bytes, new: bytes) -> None:
    """Change the file's bytes, as bit rot does; what SQLite has beside it is written back first."""
    with closing(sqlite3.connect(folder / FILE)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = (folder / FILE).read_bytes()
    assert old in content
    (folder / FILE).write_bytes(content.replace(old, new, 1))


def states(cache: AnswerCache) -> list[tuple[str, str]]:
    return cache.database.execute("SELECT key, state FROM attempts ORDER BY id")


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, messages=({"role": "user", "content": "Hallo"},)),
        replace(REQUEST, messages=({"role": "system", "content": "Hello"},)),
        replace(REQUEST, sampling={"temperature": 0.9}),
        replace(REQUEST, sampling={"temperature": 1.0, "top_p": 0.9}),
        replace(REQUEST, sample=4),
    ],
)
def test_the_cache_key_depends_on_everything_that_affects_an_answer(other: ChatRequest) -> None:
    assert key_of(ENDPOINT, other) != key_of(ENDPOINT, REQUEST)


def test_the_cache_key_holds_only_name_and_model_of_the_endpoint() -> None:
    key = key_of(ENDPOINT, REQUEST)
    assert key_of(replace(ENDPOINT, name="yours"), REQUEST) != key
    assert key_of(replace(ENDPOINT, model="larger"), REQUEST) != key
    moved = Endpoint("mine", "https://elsewhere/v1", "model", "MY_KEY", Pacing(concurrency=3, budget_usd=1))
    assert key_of(moved, REQUEST) == key


def test_the_cache_key_ignores_the_callers_name_and_number_formats() -> None:
    assert key_of(ENDPOINT, replace(REQUEST, key="b", sampling={"temperature": 1})) == key_of(
        ENDPOINT, REQUEST
    )


def test_a_cached_answer_serves_the_next_session(tmp_path: Path) -> None:
    with opened(tmp_path) as cache:
        attempt = cache.begin_attempt("k", COST)
        assert attempt is not None
        cache.record_answer(attempt, "k", ANSWER, 0.1)
    with opened(tmp_path, Account("another", "stage")) as cache:
        assert cache.find("k") == ANSWER
        assert cache.begin_attempt("k", COST) is None
        assert cache.spent() == Spent(0.0, 0)


def test_only_one_of_two_sessions_sends_the_same_request(tmp_path: Path) -> None:
    with opened(tmp_path) as one, opened(tmp_path) as other:
        attempt = one.begin_attempt("k", COST)
        assert attempt is not None
        assert other.begin_attempt("k", COST) is None
        one.record_failure(attempt, "429")
        assert other.begin_attempt("k", COST) is not None


def test_refused_requests_cost_nothing_but_requests_in_flight_or_in_doubt_do(tmp_path: Path) -> None:
    with opened(tmp_path) as cache:
        attempts = [cache.begin_attempt(key, COST) for key in "abcd"]
        answered, refused, doubted, _ = (attempt or 0 for attempt in attempts)
        cache.record_answer(answered, "a", ANSWER, 0.125)
        cache.record_failure(refused, "500")
        cache.record_failure(doubted, "dropped", in_doubt=True)
        assert cache.spent().usd == 0.125 + 0.25 + 0.25


@pytest.mark.parametrize("budget", [{"budget_usd": 0.5}, {"budget_tokens": 2 * COST.tokens}])
def test_an_experiments_budget_holds_across_processes(tmp_path: Path, budget: dict[str, float]) -> None:
    with (
        opened(tmp_path, **budget) as one,
        opened(tmp_path, **budget) as other,
        opened(tmp_path, Account("another"), **budget) as third,
    ):
        attempt = one.begin_attempt("a", COST) or 0
        assert other.begin_attempt("b", COST) is not None
        with pytest.raises(OverBudgetError):
            other.begin_attempt("c", COST)
        assert third.begin_attempt("c", COST) is not None
        one.record_answer(attempt, "a", Answer("", "", 0, 0), 0.0)
        assert other.begin_attempt("d", COST) is not None


def test_requests_of_a_killed_process_are_in_doubt_and_may_be_sent_again(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path;"
        "from synthbench.llm.cache import AnswerCache, Cost;"
        "from synthbench.llm.endpoint import Account, Endpoint;"
        "cache = AnswerCache(Path(sys.argv[1]), Endpoint('mine', 'u', 'model'), Account());"
        "cache.begin_attempt('k', Cost(1, 1, 0.0)); print('sent', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "sent\n"
        with opened(tmp_path) as cache:
            assert states(cache) == [("k", "sent")]
            assert cache.begin_attempt("k", COST) is None
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            assert cache.begin_attempt("k", COST) is not None
            assert states(cache) == [("k", "in doubt"), ("k", "sent")]
    assert not list((tmp_path / "sessions").iterdir())


def test_a_file_that_is_no_cache_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database, " * 100)
    with pytest.raises(
        UserError, match=r"^the cache of LLM answers, .* is damaged: file is not a database\. "
    ):
        opened(tmp_path)


def test_a_full_disk_is_reported_in_one_line_and_loses_no_answer(tmp_path: Path) -> None:
    with opened(tmp_path) as cache:
        attempt = cache.begin_attempt("k", COST) or 0
        cache.record_answer(attempt, "k", ANSWER, 0.1)
        pages = cache.database.execute("PRAGMA page_count")[0][0]
        cache.database.execute(f"PRAGMA max_page_count = {pages}")
        attempt = cache.begin_attempt("long", COST) or 0
        with pytest.raises(UserError, match=r"database or disk is full\. Its answers are kept"):
            cache.record_answer(attempt, "long", Answer("long " * 20_000, "", 1, 1), 0.1)
        assert cache.find("k") == ANSWER
        assert cache.find("long") is None


@pytest.mark.parametrize("flipped", [b"kGood dax", b"kGood d\xffy", b"kGood d\x00y", b"jGood day"])
def test_a_damaged_answer_is_reported_dropped_and_requested_again(tmp_path: Path, flipped: bytes) -> None:
    paid(tmp_path)
    damage(tmp_path, b"kGood day", flipped)
    said: list[str] = []
    with AnswerCache(tmp_path, ENDPOINT, Account("study", "stage"), said.append) as cache:
        assert cache.find("k") is None
        assert said == [f"{tmp_path / FILE}: a cached answer is damaged; it is dropped and requested again"]
        attempt = cache.begin_attempt("k", COST)
        assert attempt is not None
        cache.record_answer(attempt, "k", ANSWER, 0.125)
        assert cache.find("k") == ANSWER
    (entry,) = entries(tmp_path)
    assert entry.answered == AttemptTotals(2, 18, 4, 0.25)
    assert len(said) == 1


def test_a_damaged_answer_is_found_before_another_session_uses_it(tmp_path: Path) -> None:
    paid(tmp_path)
    damage(tmp_path, b"Good day", b"Bad  day")
    with opened(tmp_path) as cache:
        assert cache.begin_attempt("k", COST) is not None


def test_an_answer_cached_by_another_process_between_two_reads_is_not_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    first_look = AnswerCache._row

    def looked(cache: AnswerCache, key: str) -> object:
        found = first_look(cache, key)
        monkeypatch.setattr(AnswerCache, "_row", first_look)
        paid(tmp_path, key)
        return found

    with AnswerCache(tmp_path, ENDPOINT, Account("study", "stage"), said.append) as cache:
        monkeypatch.setattr(AnswerCache, "_row", looked)
        assert cache.find("k") == ANSWER
    assert said == []


def test_answers_without_hashes_from_earlier_versions_are_used(tmp_path: Path) -> None:
    paid(tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as database:
        database.execute("ALTER TABLE answers DROP COLUMN hash")
        database.execute("INSERT INTO answers VALUES ('odd', CAST(x'61ff62' AS TEXT), '', 1, 1)")
        database.execute("INSERT INTO answers VALUES ('none', NULL, 'content filter', 1, 1)")
    with opened(tmp_path) as cache:
        assert cache.find("k") == ANSWER
        assert cache.find("none") == Answer(None, "content filter", 1, 1)
    damage(tmp_path, b"Good day", b"Bad  day")
    with opened(tmp_path) as cache:
        assert cache.find("k") is None


def test_a_damaged_file_is_reported_in_one_line_and_not_changed(tmp_path: Path) -> None:
    paid(tmp_path, *map(str, range(200)))
    file = tmp_path / FILE
    damage(tmp_path, b"Good day", b"Good day")
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    for use in (opened, entries):
        with pytest.raises(UserError) as raised:
            use(tmp_path)
        (message,) = raised.value.messages
        assert message.startswith(
            f"the cache of LLM answers, {file}, is damaged: database disk image is malformed."
        )
