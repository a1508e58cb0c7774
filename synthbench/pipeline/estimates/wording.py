"""Times in words."""

_UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0))


def duration(seconds: float) -> str:
    """Return a time in words, with about two digits."""
    for unit, length in _UNITS:
        if seconds >= 1.95 * length:
            number = seconds / length
            return f"{number:,.0f} {unit}" if number >= 9.95 else f"{number:.1f} {unit}".replace(".0 ", " ")
    return f"{max(seconds, 1):,.0f} s"
