"""However a real client is kept from passing our text on, nothing counts; what arrives counts once, and only once.

The doctor names what keeps it, although the client's hooks have fired here before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.support.model_stub import ModelStub, Reply
from tests.support.stories import Story

pytestmark = pytest.mark.clients

TITLE, PROMPT = "Speak with the pilot first", "Shall I speak with the pilot first?"
COUNTED = """
    select (select sum(times_injected) from learning),
           (select count(*) from injection where delivered_at is not null),
           (select count(*) from brief where delivery = 'delivered')
"""
HOOKS = ".github/hooks/learnt.json"
OTHER_VERSION = '#!/bin/sh\necho "error: no command `$1`" >&2\nexit 2\n'

Way = Callable[[Story], AbstractContextManager[dict[str, Any]]]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Story]]:
    """The story of each client, in which one learning is told for the prompt."""
    made: dict[str, Story] = {}
    with ModelStub(Reply("Nothing to say.")) as stub:

        def find(client: str) -> Story:
            if client not in made:
                story = made[client] = Story(client, tmp_path_factory.mktemp(client), stub)
                story.learnt("init")
                story.learnt("add", TITLE)
                story.learnt("install", client)
            return made[client]

        yield find


@contextmanager
def nothing(story: Story) -> Iterator[dict[str, Any]]:
    yield {}


@contextmanager
def dropped(story: Story) -> Iterator[dict[str, Any]]:
    with story.garbled_hooks():
        yield {}


@contextmanager
def written(path: Path, content: str) -> Iterator[dict[str, Any]]:
    """Let a file have another content for a while."""
    before = path.read_bytes() if path.exists() else None
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    try:
        yield {}
    finally:
        path.unlink() if before is None else path.write_bytes(before)


def replaces(name: str, content: object) -> Way:
    """Write JSON into a file; its name begins with the folder, an attribute of the story."""
    folder, _, rest = name.partition("/")
    return lambda story: written(getattr(story, folder) / rest, json.dumps(content))


def another_learnt(story: Story) -> AbstractContextManager[dict[str, Any]]:
    return written(story.project.parent / "bin" / "learnt", OTHER_VERSION)


@contextmanager
def off_path(story: Story) -> Iterator[dict[str, Any]]:
    _, _, rest = story.environ["PATH"].partition(":")
    yield {"environ": {"PATH": rest}}


@contextmanager
def without_server(story: Story) -> Iterator[dict[str, Any]]:
    yield {"words": ("--disable-mcp-server", "learnt")}


@contextmanager
def below(story: Story) -> Iterator[dict[str, Any]]:
    (story.project / "src").mkdir(exist_ok=True)
    yield {"folder": "src"}


@contextmanager
def locked(story: Story) -> Iterator[dict[str, Any]]:
    """Keep the store locked until the model is asked."""
    other = apsw.Connection(str(story.project / ".learnt" / "learnt.db"))
    other.execute("begin exclusive")

    try:
        yield {"choose": lambda body: other.close()}
    finally:
        other.close()


@contextmanager
def twice(story: Story) -> Iterator[dict[str, Any]]:
    story.learnt("install", "claude-code")
    try:
        yield {}
    finally:
        story.learnt("uninstall", "claude-code")


# The doctor's words for what is broken, in a project where the client's hooks have fired before.
NAMED = {
    "text dropped": "ran our hooks and dropped their text",
    "hooks off": "does not run our hooks here",
    "hooks off in the file": "does not run our hooks here",
    "untrusted": "does not trust",
    "sub-folder": "only if it is started in",
    "off PATH": "learnt is not on PATH",
    "old settings": "incomplete, or from an older version",
    "other version": "our hook does not answer",
}
# The client, how it is broken, and whether the text arrives all the same.
WAYS: dict[str, tuple[str, Way, bool]] = {
    "nothing": ("copilot", nothing, True),
    "text dropped": ("copilot", dropped, False),
    "server disabled": ("copilot", without_server, True),
    "hooks off": ("copilot", replaces("project/.github/copilot/settings.json", {"disableAllHooks": True}), False),
    "untrusted": ("copilot", replaces("home/.copilot/config.json", {"trustedFolders": []}), False),
    "hooks off in the file": ("copilot", replaces(f"project/{HOOKS}", {"version": 1, "disableAllHooks": True}), False),
    "nothing in gemini": ("gemini", nothing, True),
    "sub-folder": ("gemini", below, False),
    "off PATH": ("copilot", off_path, False),
    "store locked": ("copilot", locked, True),
    "plugin twice": ("copilot", twice, True),
    "old settings": ("copilot", replaces(f"project/{HOOKS}", {"version": 1, "hooks": {}}), False),
    "other version": ("copilot", another_learnt, False),
}


@pytest.mark.parametrize("way", WAYS)
def test_only_what_arrives_counts_and_it_counts_once(way: str, stories: Callable[[str], Story]) -> None:
    client, broken, arrives = WAYS[way]
    story = stories(client)
    before = count(story)
    with broken(story) as how:
        (asked, *_) = story.converse(PROMPT, Reply("Good morning."), **how)
        told = story.examined(**{name: how[name] for name in ("environ", "folder") if name in how})

    assert asked.count(TITLE) == int(arrives)
    assert count(story) == tuple(number + int(arrives) for number in before)
    assert NAMED.get(way, "") in told.out
    assert told.code == int(way in NAMED), told.out


def count(story: Story) -> tuple[int, ...]:
    """Return how many exposures the store has counted: of learnings, in tasks, and in briefs."""
    database = apsw.Connection(str(story.project / ".learnt" / "learnt.db"))
    try:
        return next(iter(database.execute(COUNTED)))
    finally:
        database.close()
