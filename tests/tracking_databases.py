"""MLflow's migrations run once for all tests; later tracking databases are copies of the first."""

import functools
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_MODULE = "mlflow.store.db.utils"
_first = sqlite3.connect(":memory:", check_same_thread=False)


@pytest.fixture(autouse=True)
def migrations_run_once() -> None:
    """Cache the database that MLflow's migrations make, which takes a second, and the newest revision."""
    utils = sys.modules.get(_MODULE)
    if utils is None or hasattr(utils._initialize_tables, "__wrapped__"):
        return
    migrate = utils._initialize_tables

    @functools.wraps(migrate)
    def initialize(engine: Any) -> None:
        if engine.dialect.name != "sqlite" or not _is_empty(_database(engine)):
            migrate(engine)
        elif _is_empty(_first):
            migrate(engine)
            _database(engine).backup(_first)
        else:
            _first.backup(_database(engine))

    utils._initialize_tables = initialize
    utils._get_latest_schema_revision = functools.cache(utils._get_latest_schema_revision)


def _database(engine: Any) -> sqlite3.Connection:
    database: sqlite3.Connection = engine.raw_connection().driver_connection
    return database


def _is_empty(database: sqlite3.Connection) -> bool:
    return database.execute("SELECT * FROM sqlite_master").fetchone() is None


@contextmanager
def migrating() -> Iterator[None]:
    """Run MLflow's own migrations within the block."""
    import mlflow.store.db.utils as utils

    ours = utils._initialize_tables
    utils._initialize_tables = getattr(ours, "__wrapped__", ours)
    try:
        yield
    finally:
        utils._initialize_tables = ours
