"""What is learnt, without a model, from texts whose lessons are labelled.

Each item is read in a project of its own: a conversation as a transcript of Claude Code, a commit from the project's
history. A lesson is found if one learning has all its phrases in its title, its action or the first 300 characters of
its observation, so storing the whole text finds nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.report import Bar, Report, say, table
from bench.workspace import Workspace
from learnt import Learning, Memory

DATA = os.environ.get("LEARNT_BENCH_DATA", "")
FILE = "lessons-dev/lessons.jsonl"
ALL = "all"
MIN_FOUND = {ALL: 0.60, "user_prompt": 0.70, "transcript": 0.60, "agent_final": 0.45, "commit": 0.55}
MIN_RIGHT = 0.75
MIN_QUIET = 0.90
_LENGTHS = (("title", 100), ("action", 300), ("observation", 300), ("implication", 200))
_SESSION = "5f0c8e52-4c1f-4d57-9d53-3f1d4e6b7a90"


def measure(workspace: Workspace) -> Report:
    """Read every item and count what was found, what was right, and where nothing was learnt rightly."""
    path = Path(DATA) / FILE
    if not DATA or not path.exists():
        notes = f"Not measured: {FILE}. Set LEARNT_BENCH_DATA to a folder with the set; it was labelled by hand."
        return Report("Lessons", notes, "")
    items = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    say(f"  reading {len(items)} items")
    counts: dict[str, Counter[str]] = {}
    for item in items:
        learned = _learn(item, workspace.new_folder())
        for name in (item["source"], ALL):
            counts.setdefault(name, Counter()).update(_count(item, learned))
    head = ("source", "lessons", "found", "found active", "learnings", "right", "nothing to learn", "quiet")
    rows = [_row(name, counts[name]) for name in (*sorted(name for name in counts if name != ALL), ALL)]
    notes = (
        f"{len(items)} items, each in a project of its own. `found` includes learnings that wait for a person; `found "
        "active` does not. `right` is the share of learnings that are one of the lessons, `quiet` the share of items "
        "without a lesson from which nothing was learnt."
    )
    return Report("Lessons", notes, table(head, rows), tuple(_bars(counts)))


def _learn(item: dict[str, Any], folder: Path) -> list[Learning]:
    """Return the learnings from one item, also those that wait for a person."""
    project = folder / "project"
    project.mkdir()
    _git(project, "init", "--quiet")
    if item["source"] == "commit":
        _git(project, "commit", "--quiet", "--allow-empty", "--file", "-", text=item["text"])
    with Memory.open(project) as memory:
        if item["source"] == "commit":
            for commit in memory.transcripts.find(since_ms=0).commits:
                memory.transcripts.learn_from_commit(commit)
        else:
            transcript = folder / "transcript.jsonl"
            transcript.write_text("".join(_lines(item, str(project))), encoding="utf-8")
            memory.transcripts.debrief(str(transcript))
        pages = [memory.learnings(status=status, limit=100) for status in ("active", "proposed")]
    return [learning for page in pages for learning in page.learnings]


def _git(folder: Path, *arguments: str, text: str = "") -> None:
    person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *person, *arguments], cwd=folder, input=text, text=True, check=True)


def _lines(item: dict[str, Any], folder: str) -> Iterator[str]:
    """Yield the lines of a transcript in the format of Claude Code."""
    for number, (role, content) in enumerate(_messages(item), start=1):
        record = {
            "type": role,
            "uuid": f"message-{number}",
            "parentUuid": f"message-{number - 1}" if number > 1 else None,
            "isSidechain": False,
            "userType": "external",
            "cwd": folder,
            "sessionId": _SESSION,
            "timestamp": f"2026-11-15T09:{number // 60:02}:{number % 60:02}.000Z",
            "message": {"role": role, "content": content},
        }
        yield json.dumps(record) + "\n"


def _messages(item: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield who speaks in an item, and the message."""
    events = item["events"] or _talk(item)
    if "user" not in events[0]:
        yield "user", "Please continue."
    for number, event in enumerate(events):
        if "user" in event:
            yield "user", event["user"]
        elif "say" in event:
            yield "assistant", [{"type": "text", "text": event["say"]}]
        else:
            call = f"call-{number}"
            use = {"type": "tool_use", "id": call, "name": event["tool"], "input": event["input"]}
            result = {"tool_use_id": call, "content": event["output"], "is_error": bool(event["is_error"])}
            yield "assistant", [use]
            yield "user", [{"type": "tool_result", **result}]
    if "say" not in events[-1]:
        yield "assistant", [{"type": "text", "text": "Done."}]


def _talk(item: dict[str, Any]) -> list[dict[str, str]]:
    """Return a short conversation around an item that is one message."""
    if item["source"] == "user_prompt":
        return [{"user": "Please look at the task."}, {"say": "I have made the change."}, {"user": item["text"]}]
    return [{"user": "Please do the task."}, {"say": item["text"]}]


def _count(item: dict[str, Any], learned: list[Learning]) -> Counter[str]:
    lessons = [lesson["must"] for lesson in item["expect"]]
    active = [learning for learning in learned if learning.status == "active"]
    return Counter(
        lessons=len(lessons),
        found=sum(_is_found(lesson, learned) for lesson in lessons),
        found_active=sum(_is_found(lesson, active) for lesson in lessons),
        learnings=len(learned),
        right=sum(any(_says(learning, lesson) for lesson in lessons) for learning in learned),
        nothing=int(not lessons),
        quiet=int(not lessons and not learned),
    )


def _is_found(lesson: list[str], learned: Iterable[Learning]) -> bool:
    return any(_says(learning, lesson) for learning in learned)


def _says(learning: Learning, lesson: list[str]) -> bool:
    """Return whether a learning has all phrases of a lesson; `a|b` is a or b."""
    text = " ".join(" ".join(getattr(learning, field).split())[:length] for field, length in _LENGTHS).lower()
    return all(any(word.strip() in text for word in phrase.split("|")) for phrase in lesson)


def _row(name: str, counts: Counter[str]) -> list[str]:
    return [
        name,
        str(counts["lessons"]),
        _share(counts["found"], counts["lessons"]),
        _share(counts["found_active"], counts["lessons"]),
        str(counts["learnings"]),
        _share(counts["right"], counts["learnings"]),
        str(counts["nothing"]),
        _share(counts["quiet"], counts["nothing"]),
    ]


def _bars(counts: dict[str, Counter[str]]) -> Iterator[Bar]:
    for name, least in MIN_FOUND.items():
        if lessons := counts.get(name, Counter())["lessons"]:
            yield Bar(f"found, {name}: at least {least:.2f}", counts[name]["found"] >= least * lessons)
    total = counts[ALL]
    yield Bar(f"right: at least {MIN_RIGHT:.2f}", total["right"] >= MIN_RIGHT * total["learnings"])
    yield Bar(f"quiet: at least {MIN_QUIET:.2f}", total["quiet"] >= MIN_QUIET * total["nothing"])


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "-"
