"""Names that people spell in their own ways: agents and categories."""

from __future__ import annotations


def key_of(name: str) -> str:
    """Return what a name is compared by: without case, and with `-` for underscores and blanks."""
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())
