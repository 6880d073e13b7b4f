"""txtai with the shared model; the option is `dense`, which is its default, or `hybrid`, which adds its BM25."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sentence_model
from txtai import Embeddings


class Store:
    """One index, which is saved to a folder with the texts."""

    def __init__(self, folder: Path, option: str) -> None:
        self._folder = folder
        self._embeddings = Embeddings(path=sentence_model.PATH, content=True, hybrid=option == "hybrid")

    def add(self, documents: list[dict[str, Any]]) -> None:
        """Index and save the documents."""
        self._embeddings.index([(document["id"], document["text"], None) for document in documents])
        self._embeddings.save(str(self._folder / "index"))

    def search(self, text: str, limit: int) -> list[str]:
        """Return the best documents."""
        return [hit["id"] for hit in self._embeddings.search(text, limit)]

    def close(self) -> None:
        """Close the index."""
        self._embeddings.close()


def open_store(folder: Path, option: str) -> Store:
    """Return an empty store."""
    return Store(folder, option)
