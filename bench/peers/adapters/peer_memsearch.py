"""memsearch: one Markdown file per document, Milvus Lite, its provider `local` with the shared model.

It searches by meaning and by BM25 and fuses both. A document that is cut into chunks counts where its best chunk is.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import sentence_model
from memsearch import MemSearch

CHUNKS_PER_DOCUMENT = 3


class Store:
    """A folder of notes and their index."""

    def __init__(self, folder: Path) -> None:
        self._notes = folder / "notes"
        self._notes.mkdir()
        self._search = MemSearch(
            paths=[str(self._notes)],
            embedding_provider="local",
            embedding_model=sentence_model.PATH,
            milvus_uri=str(folder / "milvus.db"),
        )
        self._loop = asyncio.new_event_loop()
        self._documents: dict[str, str] = {}

    def add(self, documents: list[dict[str, Any]]) -> None:
        """Write the notes and index them."""
        for number, document in enumerate(documents):
            path = self._notes / f"{number:06}.md"
            path.write_text(document["text"], encoding="utf-8")
            self._documents[path.name] = document["id"]
        report = self._loop.run_until_complete(self._search.index_with_report())
        if report.failed_files:
            raise RuntimeError(f"{len(report.failed_files)} files failed: {report.failed_files[0].error}")

    def search(self, text: str, limit: int) -> list[str]:
        """Return the documents of the best chunks."""
        found = self._loop.run_until_complete(self._search.search(text, top_k=limit * CHUNKS_PER_DOCUMENT))
        names = dict.fromkeys(Path(hit["source"]).name for hit in found)
        return [self._documents[name] for name in names][:limit]

    def close(self) -> None:
        """Close the index."""
        self._search.close()


def open_store(folder: Path, option: str) -> Store:
    """Return an empty store."""
    return Store(folder)
