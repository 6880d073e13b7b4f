"""Merges that an adversary proposes: whatever it shortens, mixes up or leaves out, nothing lossy is applied.

And nothing that has helped is lost: the briefs in which one of the learnings helped are put together again, and it is
in them, or what has taken its place.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory, WrongRequest
from learnt.model import Learning
from tests.conftest import Clock
from tests.soak import seed_of

pytestmark = pytest.mark.soak

MERGES = 10_000
PER_STORE = 200
SUBJECTS = "gateway worker scheduler importer ledger mailer indexer cache".split()
VERBS = "retries flushes locks copies sends reads drops signs".split()
THINGS = "orders batches invoices sessions uploads tokens rows events".split()
PLACES = ("in staging", "on Fridays", "for Jana", "in `deploy/prod.yml`", "under load", "behind the proxy")
GUARDS = ("must", "never", "does not", "only", "should", "may", "cannot", "always")
CONDITIONS = ("if LABEL is set", "unless DEBUG=1", "before the release", "after `make gen`", "while Redis is down", "")
NAMES = "Jana Tom Anna Ravi Mei".split()
TEXTS = ("title", "context", "observation", "implication", "action")
TOKEN = re.compile(r"[\w./=-]+")
SMALL = frozenset("the is does and for of".split())
GUARDING = frozenset("must never not only should may cannot always if unless before after while".split())


class Adversary:
    """Proposes texts for the successor of some learnings, as a model that must be brief would, and worse."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self._attacks: tuple[Callable[[list[str]], list[str]], ...] = (
            self.drop_words,
            self.drop_sentences,
            self.join_neighbours,
            self.swap_numbers,
            self.turn_round,
            self.drop_negation,
            self.change_number,
            self.shuffle_words,
            self.deny,
            self.truncate,
            self.fuse,
            self.swap_between_neighbours,
            self.weave,
            self.keep_first,
            lambda sentences: sentences,
        )

    def make_sentence(self) -> str:
        """Return a rule, or a plain fact without any word that guards it."""
        pick = self.chance.choice
        if self.chance.random() < 0.4:
            return self.make_fact()
        number = self.chance.choice(
            (str(self.chance.randint(2, 9999)), f"{self.chance.randint(1, 9)}.{self.chance.randint(0, 20)}")
        )
        words = ["The", pick(SUBJECTS), pick(GUARDS), pick(VERBS), number, pick(THINGS), pick(PLACES), pick(CONDITIONS)]
        return " ".join(filter(None, words)) + "."

    def make_fact(self) -> str:
        pick = self.chance.choice
        number = self.chance.randint(2, 999)
        return pick(
            (
                f"PR #{number} fixed the {pick(THINGS)} of the {pick(SUBJECTS)}.",
                f"The {pick(SUBJECTS)} listens on port {8000 + number}.",
                f"{pick(NAMES)} owns the {pick(SUBJECTS)}.",
                f"`{pick(SUBJECTS)}` calls `{pick(SUBJECTS)}` before `{pick(THINGS)}`.",
                f"The {pick(SUBJECTS)} reads {pick(THINGS)} from db/{pick(THINGS)}.sql.",
                f"Use {pick(SUBJECTS)} {pick('123456789')}.{number} for {pick(THINGS)}.",
            )
        )

    def propose(self, sources: list[Learning]) -> dict[str, str]:
        sentences = list(dict.fromkeys(sentence for source in sources for sentence in sentences_of(source)))
        for _ in range(self.chance.randint(1, 3)):
            sentences = self.chance.choice(self._attacks)(sentences)
        title, *others = sentences or ["Nothing"]
        cut = self.chance.randint(0, len(others))
        texts = {"context": "", "implication": ""}
        return {
            "title": title[:100].strip() or "x",
            "observation": " ".join(others[:cut]),
            **texts,
            "action": " ".join(others[cut:]),
        }

    def drop_words(self, sentences: list[str]) -> list[str]:
        keep = self.chance.uniform(0.7, 0.99)
        return [" ".join(word for word in text.split() if self.chance.random() < keep) for text in sentences]

    def drop_sentences(self, sentences: list[str]) -> list[str]:
        return [text for text in sentences if self.chance.random() < 0.8]

    def join_neighbours(self, sentences: list[str]) -> list[str]:
        if len(sentences) < 2:
            return sentences
        at = self.chance.randrange(len(sentences) - 1)
        joined = f"{sentences[at].rstrip('.')} and {sentences[at + 1]}"
        return [*sentences[:at], joined, *sentences[at + 2 :]]

    def swap_numbers(self, sentences: list[str]) -> list[str]:
        numbers = [number for text in sentences for number in re.findall(r"\d[\d.]*\d|\d", text)]
        if len(numbers) < 2:
            return sentences
        one, other = self.chance.sample(numbers, 2)
        return [text.replace(one, "§").replace(other, one).replace("§", other) for text in sentences]

    def turn_round(self, sentences: list[str]) -> list[str]:
        return [
            " ".join(reversed(text.rstrip(".").split())) if self.chance.random() < 0.3 else text for text in sentences
        ]

    def drop_negation(self, sentences: list[str]) -> list[str]:
        return [re.sub(r"\b(?:never|not|cannot|only|must|unless|if) ", "", text, count=1) for text in sentences]

    def change_number(self, sentences: list[str]) -> list[str]:
        return [re.sub(r"\d", lambda _: str(self.chance.randint(0, 9)), text, count=1) for text in sentences]

    def shuffle_words(self, sentences: list[str]) -> list[str]:
        words = " ".join(sentences).split()
        self.chance.shuffle(words)
        return [" ".join(words)]

    def deny(self, sentences: list[str]) -> list[str]:
        return [text.replace("The ", "Never the ", 1) if self.chance.random() < 0.3 else text for text in sentences]

    def fuse(self, sentences: list[str]) -> list[str]:
        """Take two sentences of one form for one, as “PR #260” and “PR #480”."""
        for at, text in enumerate(sentences):
            for later in sentences[at + 1 :]:
                if text.split()[:1] == later.split()[:1]:
                    words, others = text.split(), later.split()
                    fused = [
                        one if one == other else f"{one} {other}" for one, other in zip(words, others, strict=False)
                    ]
                    return [" ".join(fused), *(other for other in sentences if other not in (text, later))]
        return sentences

    def swap_between_neighbours(self, sentences: list[str]) -> list[str]:
        """Exchange the last words of two neighbours."""
        if len(sentences) < 2:
            return sentences
        at = self.chance.randrange(len(sentences) - 1)
        (*one, last), (*other, other_last) = (text.split() or [""] for text in sentences[at : at + 2])
        return [*sentences[:at], " ".join((*one, other_last)), " ".join((*other, last)), *sentences[at + 2 :]]

    def weave(self, sentences: list[str]) -> list[str]:
        """Put the words of one sentence between those of another one."""
        if len(sentences) < 2:
            return sentences
        one, other, *rest = sentences
        words = [word for pair in zip(one.split(), other.split(), strict=False) for word in pair]
        return [" ".join(words), *rest]

    def keep_first(self, sentences: list[str]) -> list[str]:
        return sentences[:1]

    def truncate(self, sentences: list[str]) -> list[str]:
        return [text[: self.chance.randint(10, 60)] for text in sentences]


def sentences_of(learning: Learning) -> Iterator[str]:
    for name in TEXTS:
        yield from re.split(r"(?<=\.)\s+", getattr(learning, name)) if getattr(learning, name) else ()


def list_lost(source: Learning, successor: Learning) -> list[str]:
    """Return the sentences of a source of which no sentence of the successor has all words in one piece.

    Written apart from the product's own check: words are compared letter by letter, without stems, and only articles
    and the like may differ.
    """
    kept = [list_words(text) for text in sentences_of(successor)]
    lost = []
    for text in sentences_of(source):
        wanted = list_words(text)
        needed = [word for word in wanted if word not in SMALL]
        guards = Counter(word for word in wanted if word in GUARDING)
        is_kept = any(
            _is_in_one_piece(needed, [word for word in words if word not in SMALL])
            and Counter(word for word in words if word in GUARDING) == guards
            for words in kept
        )
        if not is_kept:
            lost.append(text)
    return lost


def list_words(text: str) -> list[str]:
    """Return the words of a text; the full stop behind code is none."""
    return [word for found in TOKEN.findall(text) if (word := found.strip(".").lower())]


def _is_in_one_piece(wanted: list[str], words: list[str]) -> bool:
    return any(words[start : start + len(wanted)] == wanted for start in range(len(words) - len(wanted) + 1))


def add_sources(memory: Memory, adversary: Adversary, clock: Clock) -> list[str]:
    """Add two to four learnings of agents, or sometimes a person's, which partly say the same."""
    chance = adversary.chance
    shared = [adversary.make_sentence() for _ in range(2)]
    ids = []
    for _ in range(chance.randint(2, 4)):
        sentences = [chance.choice(shared), *(adversary.make_sentence() for _ in range(chance.randint(0, 3)))]
        by = "person" if chance.random() < 0.1 else "agent"
        added = memory.add(sentences[0][:100], observation=" ".join(sentences[1:]), origin=by, by=by)
        if by == "person" and chance.random() < 0.3:
            memory.pin(added.id)
        ids.append(added.id)
        clock.advance(days=1)
    return ids


class PastBrief:
    """A brief in which learnings have helped."""

    def __init__(self, prompt: str, helpful: tuple[str, ...]) -> None:
        self.prompt = prompt
        self.helpful = helpful

    def list_missing(self, memory: Memory) -> list[str]:
        """Return the learnings that are not in the brief any more, nor what has taken their place."""
        given = memory.brief(self.prompt, keep=False).learning_ids
        return [id for id in self.helpful if find_present(memory, id) not in given]


def find_present(memory: Memory, id: str) -> str:
    """Return the learning that stands for another one now."""
    learning = memory.get(id)
    while learning.status == "superseded":
        learning = memory.get(learning.superseded_by)
    return learning.id


def help_with(memory: Memory, adversary: Adversary, ids: list[str]) -> PastBrief | None:
    """Ask for a brief about one of the learnings, and let it help; None if it is not given."""
    wanted = memory.get(adversary.chance.choice(ids))
    prompt = adversary.chance.choice(list(sentences_of(wanted)))
    brief = memory.brief(prompt)
    if wanted.id not in brief.learning_ids:
        return None
    memory.debrief(brief.task, f"LEARNING_HELPFUL: {wanted.id}", result="done")
    past = PastBrief(prompt, (wanted.id,))
    return None if past.list_missing(memory) else past


def test_no_lossy_merge_is_applied_and_no_brief_misses_what_has_helped(
    tmp_path: Path, share: Callable[[int], int], pytestconfig: pytest.Config, clock: Clock
) -> None:
    adversary = Adversary(random.Random(seed_of(pytestconfig)))
    counts: Counter[str] = Counter()
    lossy: list[Any] = []
    lost: list[str] = []
    total = share(MERGES)
    for start in range(0, total, PER_STORE):
        folder = tmp_path / f"store{start}"
        folder.mkdir()
        with Memory.open(folder, clock=clock) as memory:
            for _ in range(min(PER_STORE, total - start)):
                counts.update(_try_merge(memory, adversary, clock, lossy, lost))
    print(f"{total} merges: {dict(counts)}, {len(lossy)} lossy, {len(lost)} helpful learnings lost")
    assert lossy == []
    assert lost == []
    assert counts["refused"] > total / 2
    assert counts["applied"]
    assert counts["briefs"] > total / 4


def _try_merge(memory: Memory, adversary: Adversary, clock: Clock, lossy: list[Any], lost: list[str]) -> Counter[str]:
    ids = add_sources(memory, adversary, clock)
    brief = help_with(memory, adversary, ids)
    before = [memory.get(id) for id in ids]
    texts = adversary.propose(before) if adversary.chance.random() < 0.9 else None
    into = adversary.chance.choice(["", *ids])
    counts = Counter(briefs=brief is not None)
    try:
        merge = memory.merges.merge(ids, into=into, texts=texts)
    except WrongRequest as error:
        assert [memory.get(id).as_dict() for id in ids] == [learning.as_dict() for learning in before]
        return counts + Counter(refused=1, withheld="would miss it" in error.message)
    after = memory.get(merge.successor.id)
    lossy += [(source.as_dict(), after.as_dict()) for source in before if list_lost(source, after)]
    lost += brief.list_missing(memory) if brief else []
    for source in before:
        if source.pinned or source.vouched == "person":
            present = memory.get(source.id)
            assert [getattr(present, name) for name in TEXTS] == [getattr(source, name) for name in TEXTS]
    if adversary.chance.random() < 0.2:
        memory.merges.undo(merge.id)
        assert all(memory.get(id).status == "active" for id in ids)
    return counts + Counter(applied=1, reworded=texts is not None, helped=brief is not None)
