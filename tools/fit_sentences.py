"""Fit the model that rates sentences (`learnt.mine.sentence_model`) to the texts in `training/`.

    python -m tools.fit_sentences            # print how well unseen writers' texts are rated
    python -m tools.fit_sentences --write    # also write the weights

`training/NAME.KIND.txt` contains what one writer wrote: a text per line, a line break in it as `\\n`, and the sentences
that are worth keeping in ⟦ ⟧. To measure, each writer's texts are rated by a model that was fitted to the others'.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from learnt.mine import sentence_model
from learnt.mine.sentence_model import KINDS, list_features
from learnt.text.clean import clean
from learnt.text.sentences import read_sentences

TRAINING = Path(__file__).parent.parent / "training"
WEIGHTS = Path(sentence_model.__file__).with_name("weights.json")
MARK = re.compile("[⟦⟧]")
EPOCHS = 15
RATE = 0.5
PENALTY = 0.05
BIAS = ""
MIN_COUNT = 2
MIN_WEIGHT = 0.05
QUIET = (0.85, 0.90, 0.95)


class Example(NamedTuple):
    """A sentence: what the model knows of it, and whether it is worth keeping."""

    features: tuple[str, ...]
    is_lesson: bool


Text = list[Example]


def main() -> None:
    """Print how well each kind of text is rated, and write the weights if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights")
    arguments = parser.parse_args()
    models = {}
    for kind in KINDS:
        writers = {path.name.partition(".")[0]: read_texts(path) for path in sorted(TRAINING.glob(f"*.{kind}.txt"))}
        print(kind, *(f"{name}: {len(texts)} texts" for name, texts in writers.items()), sep="; ")
        if len(writers) > 1:
            print_figures(writers)
        models[kind] = fit([example for texts in writers.values() for text in texts for example in text])
    if arguments.write:
        rounded = {
            kind: {feature: round(weight, 2) for feature, weight in model.items()} for kind, model in models.items()
        }
        WEIGHTS.write_text(json.dumps(rounded, ensure_ascii=False, indent=0, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{WEIGHTS}: {WEIGHTS.stat().st_size / 1_000:.0f} kB")


def read_texts(path: Path) -> list[Text]:
    """Return the texts of a file, each as its sentences."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [list(_read_text(line.replace("\\n", "\n"))) for line in lines if line.strip()]


def _read_text(marked: str) -> Iterator[Example]:
    """Yield the sentences of a text; one is worth keeping if most of it is marked."""
    is_marked, depth = [], 0
    for letter in marked:
        depth += {"⟦": 1, "⟧": -1}.get(letter, 0)
        if letter not in "⟦⟧":
            is_marked.append(depth > 0)
    plain = MARK.sub("", marked)
    if clean(plain) != plain:
        raise SystemExit(f"this text is not clean: {plain[:80]}")
    sentences = list(read_sentences(plain))
    for number, sentence in enumerate(sentences):
        before = sentences[number - 1].text if number else ""
        after = sentences[number + 1].text if number + 1 < len(sentences) else ""
        inside = is_marked[sentence.start : sentence.end]
        features = sorted(list_features(sentence.text, before, after))
        yield Example(tuple(features), sum(inside) * 2 > len(inside))


def fit(examples: Text, *, min_count: int = MIN_COUNT) -> dict[str, float]:
    """Return the weights of a regularised logistic regression: stochastic descent (AdaGrad), averaged over epochs."""
    counts = Counter(feature for example in examples for feature in example.features)
    known = [
        ([feature for feature in example.features if counts[feature] >= min_count], example.is_lesson)
        for example in examples
    ]
    weights: defaultdict[str, float] = defaultdict(float)
    squares: defaultdict[str, float] = defaultdict(lambda: 1e-6)
    sums: defaultdict[str, float] = defaultdict(float)
    chance = random.Random(1)
    for epoch in range(EPOCHS):
        chance.shuffle(known)
        for features, is_lesson in known:
            scale = 1 / math.sqrt(len(features) or 1)
            odds = weights[BIAS] + scale * sum(weights[feature] for feature in features)
            slope = 1 / (1 + math.exp(-max(-30.0, min(30.0, odds)))) - is_lesson
            _step(weights, squares, BIAS, slope)
            for feature in features:
                _step(weights, squares, feature, slope * scale + PENALTY / counts[feature] * weights[feature])
        if epoch >= EPOCHS // 3:
            for feature, weight in weights.items():
                sums[feature] += weight
    averaged = {feature: total / (EPOCHS - EPOCHS // 3) for feature, total in sums.items()}
    return {feature: weight for feature, weight in averaged.items() if feature == BIAS or abs(weight) >= MIN_WEIGHT}


def _step(weights: dict[str, float], squares: dict[str, float], feature: str, slope: float) -> None:
    squares[feature] += slope * slope
    weights[feature] -= RATE * slope / math.sqrt(squares[feature])


def rate(weights: dict[str, float], example: Example) -> float:
    """Return what `sentence_model.rate` returns with these weights."""
    known = [weights[feature] for feature in example.features if feature in weights]
    return weights[BIAS] + (sum(known) / math.sqrt(len(known)) if known else 0.0)


def print_figures(writers: dict[str, list[Text]]) -> None:
    """Print the share of lessons found and of findings that are right, at thresholds that keep other texts quiet."""
    rated: list[list[tuple[float, bool]]] = []
    for name, texts in writers.items():
        others = [example for other in writers if other != name for text in writers[other] for example in text]
        weights = fit(others)
        rated += [[(rate(weights, example), example.is_lesson) for example in text] for text in texts]
    loudest = sorted(
        max((odds for odds, _ in text), default=-9.0) for text in rated if not any(is_lesson for _, is_lesson in text)
    )
    for quiet in QUIET:
        least = loudest[min(len(loudest) - 1, int(quiet * len(loudest)))]
        kept = [is_lesson for text in rated for odds, is_lesson in text if odds > least]
        lessons = sum(is_lesson for text in rated for _, is_lesson in text)
        share = f"found {sum(kept) / lessons:.2f}, right {sum(kept) / max(1, len(kept)):.2f}"
        print(f"  quiet {quiet:.2f} above {least:+.2f}: {share}")


if __name__ == "__main__":
    main()
