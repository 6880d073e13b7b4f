"""tantivy with its English stemmer; the words of a query are joined by OR, which is its default.

Its query language would read `mail: send` as a field and `-x` as an exclusion, so only the words are passed on.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import tantivy


class Store:
    """One index in a folder."""

    def __init__(self, folder: Path) -> None:
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("id", stored=True, tokenizer_name="raw")
        schema.add_text_field("text", stored=True, tokenizer_name="en_stem")
        self._index = tantivy.Index(schema.build(), path=str(folder))

    def add(self, documents: list[dict[str, Any]]) -> None:
        """Add the documents in one commit."""
        writer = self._index.writer()
        for document in documents:
            writer.add_document(tantivy.Document(id=document["id"], text=document["text"]))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def search(self, text: str, limit: int) -> list[str]:
        """Return the documents that match best."""
        query = self._index.parse_query(" ".join(re.findall(r"\w+", text.lower())), ["text"])
        searcher = self._index.searcher()
        return [searcher.doc(address)["id"][0] for _, address in searcher.search(query, limit).hits]

    def close(self) -> None:
        """Do nothing: everything is committed."""


def open_store(folder: Path, option: str) -> Store:
    """Return an empty store."""
    return Store(folder)
