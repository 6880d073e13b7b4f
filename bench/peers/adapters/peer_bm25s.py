"""bm25s as its README begins: English stop words, a stemmer, the index saved to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bm25s
import Stemmer


class Store:
    """An index in memory, which is saved to a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stemmer = Stemmer.Stemmer("english")
        self._retriever = bm25s.BM25()
        self._ids: list[str] = []

    def add(self, documents: list[dict[str, Any]]) -> None:
        """Index and save the documents."""
        self._ids = [document["id"] for document in documents]
        texts = [document["text"] for document in documents]
        self._retriever.index(self._tokens(texts), show_progress=False)
        self._retriever.save(self._folder, corpus=[{"id": id, "text": text} for id, text in zip(self._ids, texts)])

    def search(self, text: str, limit: int) -> list[str]:
        """Return the best documents that share a word with a text."""
        numbers, scores = self._retriever.retrieve(
            self._tokens([text]), k=min(limit, len(self._ids)), show_progress=False
        )
        return [self._ids[number] for number, score in zip(numbers[0], scores[0]) if score > 0]

    def _tokens(self, texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)

    def close(self) -> None:
        """Do nothing: the index is saved."""


def open_store(folder: Path, option: str) -> Store:
    """Return an empty store."""
    return Store(folder)
