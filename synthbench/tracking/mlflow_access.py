"""Reach MLflow: settings of its client, addresses of database files, failures in one line."""

import logging
import os
import re
from pathlib import Path

from synthbench.base.errors import in_one_line
from synthbench.base.patterns import linear_pattern
from synthbench.base.processes import disable_telemetry

SETTINGS = {
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_DISABLE_AGENT_HINT": "true",
    # With MLflow's defaults, an unreachable server would take four minutes to fail.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "15",
}
MESSAGE_LENGTH = 300
_PLAIN = linear_pattern(r"^[\w/.-]+\Z", re.ASCII)


def sqlite_uri(file: Path) -> str:
    """Return the address of a database file, with special characters (%, ?, #) quoted."""
    plain = f"sqlite:///{file}"
    if _PLAIN.match(str(file)):
        return plain
    # SQLAlchemy loads slowly, and ordinary names need no quoting.
    from sqlalchemy.engine import URL

    quoted = URL.create("sqlite+pysqlite", database=str(file)).render_as_string(hide_password=False)
    # The driver's name keeps MLflow from making a folder of the quoted path, as it does for "sqlite:///".
    return plain if quoted.endswith(f":///{file}") else quoted


def quieten() -> None:
    """Silence MLflow and shorten its timeouts; call it before MLflow is imported."""
    disable_telemetry()
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    logging.getLogger("mlflow").setLevel(os.environ["MLFLOW_LOGGING_LEVEL"])


def reason_of(error: BaseException) -> str:
    """Return one line on the cause of an error, from its chain of errors."""
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(cause)
    names = {type(each).__name__ for each in chain}
    if names & {"ConnectTimeout", "ReadTimeout", "ConnectTimeoutError", "ReadTimeoutError"}:
        return "the server does not answer in time"
    if names & {"ConnectionError", "NewConnectionError", "MaxRetryError"}:
        said = next((each.strerror for each in chain if isinstance(each, OSError) and each.strerror), None)
        return f"no server can be reached there{f' ({said})' if said else ''}"
    line = in_one_line(error)
    if len(line) <= MESSAGE_LENGTH:
        return line
    sentences, end, _ = line[:MESSAGE_LENGTH].rpartition(". ")
    return sentences if end else f"{line[:MESSAGE_LENGTH].rpartition(' ')[0]} ..."


def foreseen_failures() -> tuple[type[Exception], ...]:
    """Return the error classes of a missing server, driver, permission or disk space."""
    try:
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError:
        return (ImportError,)
    return (MlflowException, SQLAlchemyError, OSError, ImportError)
