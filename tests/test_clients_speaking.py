"""Real clients work in a project with many learnings: the right ones are told at the right prompt, and only once.

The learnings, their cues and the prompts are those of a labelled project. Its first prompts are one conversation, in
which the first one that wants something is said again at the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.text.fence import quoted
from tests.support.claude_as_documented import ClaudeAsDocumented
from tests.support.model_stub import ModelStub, Reply
from tests.support.stories import Story, approve_hooks

pytestmark = pytest.mark.clients

LABELLED = Path(__file__).parents[1] / "training" / "briefs" / "clinic-rails"
FIELDS = ("title", "context", "observation", "implication", "action", "tags", "category", "kind", "triggers")
NUMBER_OF_PROMPTS = 10
MIN_LISTED, MAX_ALIKE = 15, 4
INDEX = "## Known From Past Work"
CONTINUES = {
    "claude": ("--continue",),
    "codex": ("resume", "--last", "-"),
    "gemini": ("--resume", "latest"),
    "opencode": ("--continue",),
}


class Talk:
    """A conversation: what each prompt wants, and the request that it led to."""

    def __init__(self, story: Story) -> None:
        story.learnt("init")
        story.learnt("install", "claude-code" if story.client == "claude" else story.client)
        if story.client == "codex":
            approve_hooks(story)
        with opened(story) as memory:
            self.learnings = {learning.id: learning for learning in memory.add_all(read_learnings())}
            prompts = [entry["prompt"] for entry in read_lines("prompts.jsonl")[:NUMBER_OF_PROMPTS]]
            wanted = [memory.brief(prompt, keep=False).learning_ids for prompt in prompts]
        again = next(number for number, ids in enumerate(wanted) if ids)
        self.wanted = [*wanted, wanted[again]]
        self.requests: list[str] = []
        for prompt in (*prompts, prompts[again]):
            words = CONTINUES[story.client] if self.requests else ()
            (request,) = story.converse(prompt, Reply("Done."), words=words)
            self.requests.append(request)
        self.injected = {one["id"]: one["times_injected"] for one in story.told("list", "--limit", "100")["learnings"]}

    def told_in_full(self, request: str) -> list[str]:
        """Return the ids of the learnings whose full text a request contains, one for each time."""
        return [id for id in self.learnings for _ in range(request.count(f"_ID: {id} |"))]


@contextmanager
def opened(story: Story) -> Iterator[Memory]:
    """Open the project's memory in the story's home, where the project is trusted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(story.home))
        with Memory.open(story.project) as memory:
            yield memory


def read_lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (LABELLED / name).read_text(encoding="utf-8").splitlines()]


def read_learnings() -> list[dict[str, Any]]:
    cues = {entry["id"]: entry["cues"] for entry in read_lines("cues.jsonl")}
    return [
        {"cues": cues[entry["id"]], **{name: entry[name] for name in FIELDS if entry[name]}}
        for entry in read_lines("learnings.jsonl")
    ]


@pytest.fixture(scope="module", params=["codex", "gemini", "opencode", "claude as documented"])
def talk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    client, _, is_documented = str(request.param).partition(" ")
    kind = ClaudeAsDocumented if is_documented else Story
    with ModelStub(Reply("Nothing to say.")) as stub:
        yield Talk(kind(client, tmp_path_factory.mktemp(client), stub))


def test_the_index_is_in_the_first_request_and_is_not_repeated(talk: Talk) -> None:
    first, last = talk.requests[0], talk.requests[-1]
    listed = re.findall(r"^- .+ \((learn_\w+)\)$", first, re.MULTILINE)
    (more,) = re.findall(r"^- … and (\d+) more$", first, re.MULTILINE)
    assert len(listed) == len(set(listed)) >= MIN_LISTED
    assert set(listed) <= set(talk.learnings)
    assert len(talk.learnings) - int(more) - len(listed) <= MAX_ALIKE
    assert first.count(INDEX) == last.count(INDEX) == 1


def test_a_prompt_is_told_what_it_wants_and_nothing_else(talk: Talk) -> None:
    told: set[str] = set()
    for wanted, request in zip(talk.wanted, talk.requests, strict=True):
        told |= set(wanted)
        assert set(talk.told_in_full(request)) == told
        for id in wanted:
            assert quoted(talk.learnings[id].action) in request
    assert len(told) >= NUMBER_OF_PROMPTS / 2


def test_no_full_text_is_told_twice(talk: Talk) -> None:
    told = talk.told_in_full(talk.requests[-1])
    assert len(told) == len(set(told))
    assert {id for id, times in talk.injected.items() if times} == set(told)
    assert set(talk.injected.values()) == {0, 1}
