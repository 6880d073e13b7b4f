"""Find the learnings that say what the agent is told anyway, by CLAUDE.md, AGENTS.md or a skill.

They are only proposed to a person: the file may lose the rule again, and other agents may not load it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from learnt.consolidate.overlap import LearningContent, judge
from learnt.model import Learning, Value
from learnt.weigh.compare import REPEATS, Verdict

_MIN_SHARED = 0.5
_MAX_COMPARED = 5


class RedundantLearning(Value):
    """A learning that a file says already."""

    learning: Learning
    file: str
    """The path of the file in the project."""
    rule: Learning
    """What the file says; it is not stored."""
    verdict: Verdict


def find_redundant(learnings: Sequence[Learning], loaded: Mapping[str, Sequence[Learning]]) -> list[RedundantLearning]:
    """Return the learnings that add nothing to what loaded files say, each with the rule that says most of it.

    `loaded` are the rules of each file. A learning that knows itself to be from such a file is left out.
    """
    rules = {file: [LearningContent(rule) for rule in found] for file, found in loaded.items()}
    contents = [LearningContent(learning) for learning in learnings if not learning.loaded_from]
    return [redundant for content in contents for redundant in _find_said(content, rules)]


def _find_said(content: LearningContent, rules: Mapping[str, Sequence[LearningContent]]) -> Iterator[RedundantLearning]:
    """Yield the best rule that a learning repeats, if there is one."""
    nearest = sorted(
        (-share, file, number)
        for file, found in rules.items()
        for number, rule in enumerate(found)
        if (share := _share(content.words, rule.words)) >= _MIN_SHARED
    )
    for _, file, number in nearest[:_MAX_COMPARED]:
        rule = rules[file][number]
        verdict = judge(rule, content)
        if verdict == REPEATS:
            yield RedundantLearning(learning=content.learning, file=file, rule=rule.learning, verdict=verdict)
            return


def _share(words: frozenset[str], others: frozenset[str]) -> float:
    """Return how much of the words of the shorter text the other one has."""
    return len(words & others) / max(1, min(len(words), len(others)))
