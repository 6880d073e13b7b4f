"""mcp-memory-service: its SQLite storage with the shared model, asked as its tool asks by default (`semantic`).

It refuses exact repetitions of a text, so a hit stands for every document with that text.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import sentence_model
from mcp_memory_service.models.memory import Memory
from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage
from mcp_memory_service.utils.hashing import generate_content_hash

_loop = asyncio.new_event_loop()
_run = _loop.run_until_complete


class Store:
    """One database."""

    def __init__(self, folder: Path) -> None:
        self._storage = SqliteVecMemoryStorage(str(folder / "memory.db"), embedding_model=sentence_model.PATH)
        _run(self._storage.initialize())
        self._documents: dict[str, list[str]] = {}

    def add(self, documents: list[dict[str, Any]]) -> None:
        """Add the documents in one batch."""
        for document in documents:
            self._documents.setdefault(generate_content_hash(document["text"]), []).append(document["id"])
        texts = {generate_content_hash(document["text"]): document["text"] for document in documents}
        memories = [Memory(content=text, content_hash=hash) for hash, text in texts.items()]
        refused = [reason for stored, reason in _run(self._storage.store_batch(memories)) if not stored]
        if len(refused) == len(memories):
            raise RuntimeError(refused[0])

    def search(self, text: str, limit: int) -> list[str]:
        """Return the nearest memories."""
        found = _run(self._storage.retrieve(text, n_results=limit))
        return [id for hit in found for id in self._documents[hit.memory.content_hash]][:limit]

    def close(self) -> None:
        """Close the database."""
        _run(self._storage.close())


def open_store(folder: Path, option: str) -> Store:
    """Return an empty store."""
    return Store(folder)
