"""chromadb, persistent; its default model would be downloaded, so it is given the shared one. Distance: its default."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import chromadb
import sentence_model
from chromadb.utils.embedding_functions import SentenceTransformerEmbeddingFunction

BATCH = 1_000


class Store:
    """One collection in a folder."""

    def __init__(self, folder: Path) -> None:
        self._client = chromadb.PersistentClient(path=str(folder))
        self._collection = self._client.create_collection("documents", embedding_function=_embedder())

    def add(self, documents: list[dict[str, Any]]) -> None:
        """Add the documents in large batches."""
        for start in range(0, len(documents), BATCH):
            batch = documents[start : start + BATCH]
            self._collection.add(ids=[one["id"] for one in batch], documents=[one["text"] for one in batch])

    def search(self, text: str, limit: int) -> list[str]:
        """Return the nearest documents."""
        found = self._collection.query(query_texts=[text], n_results=limit)
        return list(found["ids"][0])

    def close(self) -> None:
        """Do nothing: everything is on the disk."""


def open_store(folder: Path, option: str) -> Store:
    """Return an empty store."""
    return Store(folder)


@cache
def _embedder() -> Any:
    return SentenceTransformerEmbeddingFunction(model_name=sentence_model.PATH)
