"""cognee as its README begins: `add`, `cognify`, `search`; `cognify` asks an LLM, of which there is none offline."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import cognee

_run = asyncio.new_event_loop().run_until_complete


class Store:
    """One set of texts."""

    def add(self, documents: list[dict[str, Any]]) -> None:
        """Add the documents and build the graph."""
        _run(cognee.add([document["text"] for document in documents]))
        _run(cognee.cognify())

    def search(self, text: str, limit: int) -> list[str]:
        """Return nothing: `add` never succeeds without an LLM."""
        return []

    def close(self) -> None:
        """Do nothing."""


def open_store(folder: Path, option: str) -> Store:
    """Return an empty store."""
    return Store()
