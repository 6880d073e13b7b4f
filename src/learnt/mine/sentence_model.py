"""Rate sentences: how likely is a sentence worth keeping beyond the work in which it was written?

A linear model over the words and pairs of words of a sentence, its grammatical features (`rating`), and how its
neighbours start. It was fitted by
`python -m tools.fit_sentences` to texts that were written for it (`training/`); the weights are in `weights.json`.
There is one model for each kind of text: what people write to an agent (`prompts`), an agent's last message (`finals`),
and commit messages (`commits`). Names and code count as such, whatever they are, so the model knows no project.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from math import sqrt

from learnt.mine.rating import rate as find_features

PROMPTS, FINALS, COMMITS = "prompts", "finals", "commits"
KINDS = (PROMPTS, FINALS, COMMITS)
_WEIGHTS = os.path.join(os.path.dirname(__file__), "weights.json")
_BIAS = ""
_MAX_SENTENCE = 1_000
_CODE = re.compile(r"`[^`]*`")
_ADDRESS = re.compile(r"https?://\S+")
# A path, a file, an identifier, a call, an option.
_NAME = re.compile(
    r"\S*[/\\]\S+|\b[\w-]+\.[a-z]{1,5}\b|\b\w+_\w+\b|\b[a-z]+[A-Z]\w*|\w+\(\)|(?<!\w)--?\w[\w-]*|\b[A-Z]{2,}[A-Z\d]*\b"
)
_NUMBER = re.compile(r"\d[\d.,:]*")
_TOKEN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|[?!:;,]")
_STEM = 4
_MAX_TOKENS_IN_CLASS = 6
_TOKENS_PER_CLASS = 5


def rate(kind: str, sentence: str, *, before: str = "", after: str = "") -> float:
    """Return the log-odds that a sentence of this kind of text is worth keeping; its neighbours may be empty."""
    weights = _load_weights()[kind]
    known = [weights[feature] for feature in list_features(sentence, before, after) if feature in weights]
    return weights[_BIAS] + (sum(known) / sqrt(len(known)) if known else 0.0)


def list_features(sentence: str, before: str, after: str) -> set[str]:
    """Return what the model knows of a sentence."""
    words = _split(sentence)
    features = {*words, *(f"{word[:_STEM]}*" for word in words if len(word) > _STEM)}
    features.update(f"{first} {second}" for first, second in pairwise(words))
    features.update(f"{first} _ {second}" for first, second in zip(words, words[2:], strict=False))
    features.add(f"#{min(_MAX_TOKENS_IN_CLASS, len(words) // _TOKENS_PER_CLASS)}")
    features.update(f"@{name}" for name in find_features(sentence).features)
    features.update(_list_edges(words, _split(before), _split(after)))
    return features


def _list_edges(words: list[str], before: list[str], after: list[str]) -> Iterator[str]:
    """Yield how a sentence starts, and how its neighbours do."""
    if words:
        yield f"^{words[0]}"
        yield f"^{' '.join(words[:2])}"
    yield f"<^{before[0]}" if before else "<first"
    yield f">^{after[0]}" if after else ">last"


def _split(sentence: str) -> list[str]:
    """Return the words and signs of a sentence in lower case, with names, numbers and code replaced."""
    text = _CODE.sub(" CODE ", sentence[:_MAX_SENTENCE])
    text = _NAME.sub(" NAME ", _ADDRESS.sub(" ADDRESS ", text))
    return _TOKEN.findall(_NUMBER.sub(" NUMBER ", text).replace("’", "'").lower())


@cache
def _load_weights() -> dict[str, dict[str, float]]:
    with open(_WEIGHTS, encoding="utf-8") as file:
        models: dict[str, dict[str, float]] = json.load(file)
    return models
