"""mem0 with `infer=False` (each text is kept as it is, no model is asked), Qdrant in a folder, the shared model.

It insists on a key for the model that it would ask; the one given here is never used.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"
os.environ["OPENAI_API_KEY"] = "none"

import sentence_model
from mem0 import Memory

USER = "bench"


class Store:
    """The memories of one user."""

    def __init__(self, folder: Path) -> None:
        self._memory = Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(folder / "qdrant"),
                        "on_disk": True,
                        "embedding_model_dims": sentence_model.DIMENSIONS,
                    },
                },
                "embedder": {
                    "provider": "huggingface",
                    "config": {"model": sentence_model.PATH, "embedding_dims": sentence_model.DIMENSIONS},
                },
                "history_db_path": str(folder / "history.db"),
            }
        )

    def add(self, documents: list[dict[str, Any]]) -> None:
        """Add the documents one by one; there is no call for many."""
        for document in documents:
            self._memory.add(document["text"], user_id=USER, metadata={"document": document["id"]}, infer=False)

    def search(self, text: str, limit: int) -> list[str]:
        """Return the memories that match best."""
        found = self._memory.search(text, filters={"user_id": USER}, top_k=limit)
        return [hit["metadata"]["document"] for hit in found["results"]]

    def close(self) -> None:
        """Close the memory's databases."""
        self._memory.close()


def open_store(folder: Path, option: str) -> Store:
    """Return an empty store."""
    return Store(folder)
