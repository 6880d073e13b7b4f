"""SQLite's FTS5 alone: the words of the query joined by OR, porter stemming, ranked by bm25."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import apsw


class Store:
    """One table in one file."""

    def __init__(self, folder: Path) -> None:
        self._connection = apsw.Connection(str(folder / "fts5.db"))
        self._connection.execute("create virtual table document using fts5(id unindexed, text, tokenize = 'porter')")

    def add(self, documents: list[dict[str, Any]]) -> None:
        """Add the documents in one transaction."""
        rows = [(document["id"], document["text"]) for document in documents]
        with self._connection:
            self._connection.executemany("insert into document values (?, ?)", rows)

    def search(self, text: str, limit: int) -> list[str]:
        """Return the documents that share words with a text."""
        match = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        if not match:
            return []
        select = "select id from document where document match ? order by rank limit ?"
        return [id for (id,) in self._connection.execute(select, (match, limit))]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def open_store(folder: Path, option: str) -> Store:
    """Return an empty store."""
    return Store(folder)
