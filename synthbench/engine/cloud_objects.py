"""Objects in a cloud bucket (s3://, gs:// or az://), through obstore."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern
from synthbench.engine.cloud_credentials import (
    ABSENT,
    PROVIDER,
    SETTINGS,
    aws_credentials,
    can_be_renewed,
    credentials_fault,
    has_expired,
)
from synthbench.engine.objects import TRIES, ExpiredError, ListedObject, UnavailableError, first_bytes

if TYPE_CHECKING:
    from obstore.auth.boto3 import Boto3CredentialProvider
    from obstore.store import ObjectStore

SCHEMES = ("s3", "gs", "az")
INSTALL = "pip install 'synthbench[store]'"
RETRIES = 3
"""Retries of one request by obstore; `PatientObjects` retries for minutes."""
SECONDS_OF_RETRIES = 60
SECONDS_OF_SILENCE = 60
"""A server that is silent for this long counts as unreachable."""
QUICK_SECONDS = 10
"""The same limit for `quick` requests, which are useless when late, such as a lease's renewal."""
_FINAL = ("builder error", "Received redirect", "AccessDenied")
"""Parts of permanent errors' messages, whatever the HTTP status."""
_PASSING_STATUS = ("408", "409", "425", "429")
"""Retryable HTTP statuses below 500. All from 500 on are retryable too, except 501."""
_PASSING = ("RequestTimeout", "SlowDown", "ConditionalRequestConflict", "OperationAborted")
"""S3's codes of retryable errors, whatever the HTTP status."""
_CODE = linear_pattern(r"(?:<Code>|\(code: )(\w+)")
_STATUS = linear_pattern(r"status code: ([0-9]{3})")


class CloudObjects:
    """Objects in a bucket, with the methods of `FolderObjects`.

    Credentials are found as the cloud's own tools find them.
    """

    def __init__(self, url: str, *, is_quick: bool = False) -> None:
        self.url = url.rstrip("/")
        self._scheme = url.partition(":")[0]
        self._is_quick = is_quick
        self._credentials: Boto3CredentialProvider | None = None

    def __str__(self) -> str:
        return self.url

    def __reduce__(self) -> tuple[type["CloudObjects"], tuple[str]]:
        return CloudObjects, (self.url,)

    @cached_property
    def quick(self) -> "CloudObjects":
        """The same objects, with a short time-out per request and without retries."""
        return CloudObjects(self.url, is_quick=True)

    @cached_property
    def _store(self) -> "ObjectStore":
        given: dict[str, Any] = {}
        try:
            from obstore.store import from_url

            if self._scheme == "s3":
                self._credentials = given["credential_provider"] = aws_credentials()
        except ImportError:
            raise UserError(f"{self.url}: a store in a cloud needs an extra: {INSTALL}") from None
        except UserError as error:
            # While a run waits for credentials, their file may be half written.
            kind = UserError if self._credentials is None else ExpiredError
            raise kind(f"{self.url}: {error}") from None
        silence = QUICK_SECONDS if self._is_quick else SECONDS_OF_SILENCE
        with self._errors():
            return from_url(
                self.url,
                client_options={
                    "allow_http": True,
                    "connect_timeout": f"{QUICK_SECONDS}s",
                    "read_timeout": f"{silence}s",
                    "timeout": f"{silence}s" if self._is_quick else "1h",
                },
                retry_config={
                    "max_retries": 0 if self._is_quick else RETRIES,
                    "retry_timeout": timedelta(seconds=SECONDS_OF_RETRIES),
                },
                **given,
            )

    def create(self, key: str, content: bytes) -> bool:
        """Create an object; False if the key exists with other content."""
        store = self._store
        from obstore.exceptions import AlreadyExistsError

        with self._errors(), self._no_bucket():
            try:
                store.put(key, content, mode="create")
            except AlreadyExistsError:
                return self._is_ours(key, content)
        return True

    def _is_ours(self, key: str, content: bytes) -> bool:
        """Return whether this process wrote the existing object, by a request whose reply was lost.

        While requests for one key compete, S3 answers 409, which obstore reports as "exists". Then there may
        be no object yet: raises UnavailableError, so that the caller retries.
        """
        try:
            for _ in range(TRIES):
                found = b"".join(first_bytes(self.parts(key), len(content) + 1))
                if found == content or not content.startswith(found):
                    break  # else the network may have truncated the reply
            return found == content
        except FileNotFoundError:
            raise UnavailableError(f"{self.url}: requests on one object compete") from None

    def write(self, key: str, content: bytes | Path) -> None:
        """Write or overwrite an object."""
        with self._errors(), self._no_bucket():
            self._store.put(key, content)

    def parts(self, key: str) -> Iterator[bytes]:
        """Yield an object's content in parts; raises FileNotFoundError."""
        with self._errors():
            yield from map(bytes, self._store.get(key).stream())

    def list(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the objects below a prefix."""
        with self._errors():
            for batch in self._store.list(prefix.rstrip("/") or None):
                for meta in batch:
                    yield ListedObject(meta["path"], meta["size"], meta["last_modified"].timestamp())

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; missing ones are ignored."""
        found = list(keys)
        with self._errors():
            for start in range(0, len(found), 1000):
                some = found[start : start + 1000]
                try:
                    self._store.delete(some)
                except FileNotFoundError:  # clouds without bulk requests stop at the first missing object
                    for key in some:
                        with suppress(FileNotFoundError):
                            self._store.delete(key)

    @contextmanager
    def _no_bucket(self) -> Iterator[None]:
        """Turn "not found" during a write into a UserError about the bucket or the lost upload."""
        try:
            yield
        except FileNotFoundError as error:
            if "NoSuchUpload" in str(error):  # the multipart upload is already complete, or was aborted
                raise UnavailableError(f"{self.url}: an upload was lost") from None
            raise UserError(f"{self.url}: there is no such bucket, or no such path in it") from error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn obstore's errors into UserErrors of one line; omit their texts, which may contain secrets."""
        try:
            yield
        except (FileNotFoundError, UserError):
            raise
        except Exception as error:
            from obstore.exceptions import BaseError

            if not isinstance(error, BaseError):
                raise
            raise self._kind(error)(f"{self.url}: {self._reason(error)}") from None

    def _kind(self, error: Exception) -> type[UserError]:
        """Return the UserError class to raise for one of obstore's errors.

        If the credentials expired, also makes the next request read new credentials.
        """
        if has_expired(error):
            self.__dict__.pop("_store", None)
            return ExpiredError if can_be_renewed(self._credentials) else UserError
        return UnavailableError if _may_pass(error) else UserError

    def _reason(self, error: Any) -> str:  # noqa: ANN401
        text = str(error)
        found = _CODE.search(text)
        code = f" ({found[1]})" if found else ""
        if fault := credentials_fault(self._scheme, error):
            return fault
        if type(error).__name__ == "UnauthenticatedError" or "401 Unauthorized" in text:
            return f"the credentials are wrong{code}; set {SETTINGS[self._scheme]}"
        if (
            type(error).__name__ == "PermissionDeniedError"
            or "403 Forbidden" in text
            or "AccessDenied" in code
        ):
            return f"access was refused{code}; the credentials must allow reading, writing and deleting"
        if (found and found[1] in ("NoSuchBucket", "ContainerNotFound")) or "404 Not Found" in text:
            return f"there is no such bucket{code}"
        if "error sending request" in text or "timed out" in text:
            return "can't be reached; AWS_ENDPOINT_URL is the address of services other than Amazon's"
        return f"the object store failed{code}: {type(error).__name__}"


def _may_pass(error: Exception) -> bool:
    """Return whether an error is temporary, so that the same request may succeed later."""
    text, kind = str(error), type(error).__name__
    if PROVIDER in text:
        return not any(mark in text for mark in _FINAL)
    if kind == "AlreadyExistsError" or any(f"<Code>{code}<" in text for code in _PASSING):
        return True
    if kind != "GenericError" or any(mark in text for mark in (*ABSENT, *_FINAL)):
        return False
    status = _STATUS.search(text)
    return status is None or status[1] in _PASSING_STATUS or "501" != status[1] >= "500"
