"""One line of a diagnosis."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is: a note limits something, a problem will end a run."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is, and what to do about it (if anything)."""

    level: Level
    subject: str
    text: str
    advice: str = ""


def fine(subject: str, text: str) -> Finding:
    """Return that all is well."""
    return Finding(Level.OK, subject, text)


def note(subject: str, text: str, advice: str) -> Finding:
    """Return what limits something."""
    return Finding(Level.NOTE, subject, text, advice)


def problem(subject: str, text: str, advice: str) -> Finding:
    """Return what will end a run."""
    return Finding(Level.PROBLEM, subject, text, advice)
