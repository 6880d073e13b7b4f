"""llama-index's vector index with its default store, saved to a folder, and the shared model as a custom embedding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sentence_model
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import TextNode


class MiniLM(BaseEmbedding):  # type: ignore[misc]
    """The shared model."""

    def _get_query_embedding(self, query: str) -> list[float]:
        return list(sentence_model.load().encode(query).tolist())

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_query_embedding(text)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return list(sentence_model.load().encode(texts).tolist())

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class Store:
    """One index in memory, which is saved to a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._embedding = MiniLM(embed_batch_size=32)
        self._embedding.get_query_embedding("load the model")
        self._index: Any = None

    def add(self, documents: list[dict[str, Any]]) -> None:
        """Index and save the documents, each as one node."""
        nodes = [TextNode(id_=document["id"], text=document["text"]) for document in documents]
        self._index = VectorStoreIndex(nodes, embed_model=self._embedding)
        self._index.storage_context.persist(persist_dir=str(self._folder))

    def search(self, text: str, limit: int) -> list[str]:
        """Return the nearest documents."""
        return [hit.node.node_id for hit in self._index.as_retriever(similarity_top_k=limit).retrieve(text)]

    def close(self) -> None:
        """Do nothing: the index is saved."""


def open_store(folder: Path, option: str) -> Store:
    """Return an empty store."""
    return Store(folder)
