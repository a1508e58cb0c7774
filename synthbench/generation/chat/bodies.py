"""What comes over the wire, no more of it than an answer can have."""

import json
import zlib
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from httpx2 import Response

LARGEST = 4 * 2**20
"""Bytes of a reply when it is unpacked: several times the longest answer that a model writes."""
ENCODINGS = "gzip, deflate"
_GZIP_OR_ZLIB = 47


class UnreadableReplyError(Exception):
    """What came with status 200 is not an answer of the API."""


@dataclass(frozen=True)
class Reply:
    """A status and what came with it; `is_whole` unless the body has more than LARGEST bytes."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    is_whole: bool = True

    @property
    def content_type(self) -> str:
        """What it says it is, "" if it does not."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_page(self) -> bool:
        """Whether it is a web page, which no API sends."""
        return "html" in self.content_type

    @cached_property
    def value(self) -> Any:  # noqa: ANN401 - whatever came
        """Its JSON; raises UnreadableReplyError if it is none."""
        try:
            return json.loads(self.content)
        except RecursionError:
            raise UnreadableReplyError("JSON that is nested too deep") from None
        except ValueError:
            kind = self.content_type or "no content type"
            is_json = kind == "application/json"
            raise UnreadableReplyError(
                "incomplete JSON instead of an answer"
                if is_json
                else f"{as_printable_line(kind)} instead of JSON"
            ) from None


async def read_whole(response: "Response") -> Reply:
    """Return the reply; reading stops where it has more than LARGEST bytes, packed or not."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    unpacking = zlib.decompressobj(_GZIP_OR_ZLIB) if encoding not in ("", "identity") else None
    content = bytearray()
    async with aclosing(response.aiter_raw()) as parts:
        async for part in parts:
            try:
                content += (
                    part if unpacking is None else unpacking.decompress(part, LARGEST + 1 - len(content))
                )
            except zlib.error:
                # Neither gzip nor deflate, which alone were asked for: what it says then is not read.
                content.clear()
                break
            if len(content) > LARGEST:
                return Reply(response.status_code, response.headers, b"", is_whole=False)
    return Reply(response.status_code, response.headers, bytes(content))


def as_printable_line(text: str) -> str:
    """Return somebody else's words fit for a log: one line, without control characters and broken letters."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
