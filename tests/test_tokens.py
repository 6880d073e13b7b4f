"""The estimate of tokens, against the real tables of cl100k."""

from __future__ import annotations

import json
import os
import random
import statistics
import sysconfig
from pathlib import Path

import pytest

from learnt.text.words import estimate_tokens

ROOT = Path(__file__).parent.parent
_MOST_RATIO = {"cosqa-dev": 1.35}  # functions without a word of prose: short names between signs
DATA = os.environ.get("LEARNT_BENCH_DATA", "")  # read before the tests put the settings of outside away
bpe = pytest.importorskip("rs_bpe", reason="rs-bpe, which carries the tables of cl100k, has no wheel for this Python")


def _pieces(text: str, count: int, chance: random.Random) -> list[str]:
    starts = [(chance.randrange(max(1, len(text) - 4_000)), chance.randint(200, 4_000)) for _ in range(count)]
    return [text[start : start + length] for start, length in starts]


def test_the_estimate_is_rarely_too_low_and_not_much_too_high() -> None:
    chance = random.Random(7)
    library = Path(sysconfig.get_paths()["stdlib"])
    code = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in sorted(library.glob("*.py")))
    pages = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
    prose = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    count = bpe.openai.cl100k_base().count
    ratios = [estimate_tokens(piece) / count(piece) for text in (code, prose) for piece in _pieces(text, 400, chance)]
    assert sum(ratio >= 0.95 for ratio in ratios) / len(ratios) >= 0.99
    assert statistics.median(ratios) <= 1.20


@pytest.mark.skipif(not DATA, reason="LEARNT_BENCH_DATA names no texts")
def test_the_estimate_holds_for_the_texts_of_the_benchmarks() -> None:
    chance = random.Random(7)
    count = bpe.openai.cl100k_base().count
    for file in sorted(Path(DATA).glob("*/docs.jsonl")):
        lines = [line for line in file.read_text(encoding="utf-8").split("\n") if line.strip()]
        texts = [json.loads(line)["text"] for line in chance.sample(lines, min(400, len(lines)))]
        ratios = [estimate_tokens(text[:4_000]) / count(text[:4_000]) for text in texts if text.strip()]
        assert sum(ratio >= 0.95 for ratio in ratios) / len(ratios) >= 0.99, file
        assert statistics.median(ratios) <= _MOST_RATIO.get(file.parent.name, 1.20), file


def test_nothing_costs_nothing_and_any_text_gets_an_answer() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("日本語 🎉 \x00 naïve") > 4
