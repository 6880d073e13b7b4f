"""learnt through `Memory`; the option is the strategy of the search."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from learnt import Memory
from learnt.model import TEXT_LIMIT, TITLE_LIMIT


class Store:
    """One project; the title of a learning is the beginning of its document, the observation is the document."""

    def __init__(self, folder: Path, strategy: str) -> None:
        self._memory = Memory.open(folder)
        self._strategy = strategy
        self._documents: dict[str, str] = {}

    def add(self, documents: list[dict[str, Any]]) -> None:
        """Add the documents; those of the same time are added together."""
        for time_ms, group in groupby(documents, key=lambda document: document["time_ms"]):
            same_time = list(group)
            added = self._memory.add_all([_record(document["text"]) for document in same_time], created_at=time_ms)
            self._documents |= {new.id: document["id"] for new, document in zip(added, same_time, strict=True)}

    def search(self, text: str, limit: int) -> list[str]:
        """Return the documents whose learnings match best."""
        hits = self._memory.search(text, limit=limit, min_confidence=0.0, strategy=self._strategy)
        return [self._documents[hit.learning.id] for hit in hits]

    def close(self) -> None:
        """Close the project's store."""
        self._memory.close()


def open_store(folder: Path, option: str) -> Store:
    """Return an empty store."""
    return Store(folder, option)


def _record(text: str) -> dict[str, Any]:
    return {"title": " ".join(text.split())[:TITLE_LIMIT], "observation": text[:TEXT_LIMIT]}
