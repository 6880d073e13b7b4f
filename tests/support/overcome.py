"""Read the conversations in `overcome_errors.txt`: what went wrong in each, and what it teaches."""

from __future__ import annotations

from pathlib import Path

from learnt.clients.kit.transcript import Step
from learnt.mine.extract import LearningDraft, extract
from learnt.mine.observe import observe_steps
from learnt.mine.quality import find_flaw
from learnt.model import Value

FOLDER = "/home/ada/shop"
_NOTHING = "nothing"
_TABLE = Path(__file__).with_name("overcome_errors.txt")


class OvercomeError(Value):
    """A conversation, and the words that one of its learnings has to contain; none if it teaches nothing."""

    name: str
    steps: tuple[Step, ...]
    expected: tuple[tuple[str, ...], ...]

    def learn(self) -> list[LearningDraft]:
        """Return what is learnt from the conversation."""
        drafts = (extract(discovery) for discovery in observe_steps(self.steps, folder=FOLDER))
        return [draft for draft in drafts if isinstance(draft, LearningDraft) and not find_flaw(draft)]

    @property
    def teaches(self) -> bool:
        """Whether the conversation teaches anything."""
        return not any(_NOTHING in words for words in self.expected)

    def allows(self, draft: LearningDraft) -> bool:
        """Return whether a learning may be made although nothing has to be learnt."""
        return any(word in _text_of(draft) for words in self.expected for word in words if word != _NOTHING)

    def fits(self, draft: LearningDraft) -> bool:
        """Return whether a learning says what the conversation teaches."""
        return all(any(word.lower() in _text_of(draft) for word in words) for words in self.expected)


def _text_of(draft: LearningDraft) -> str:
    return f"{draft.title}\n{draft.observation}\n{draft.action}".lower()


def read_table() -> list[OvercomeError]:
    """Return all conversations."""
    pieces = _TABLE.read_text(encoding="utf-8").split("\n## ")[1:]
    return [_read_conversation(*piece.split("\n", 1)) for piece in pieces]


def _read_conversation(name: str, text: str) -> OvercomeError:
    steps: list[Step] = []
    expected = []
    for line in text.splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "=":
            expected.append(tuple(word.strip() for word in rest.split("|")))
        elif mark == '"':
            steps.append(Step(kind="said", text=rest.strip()))
        elif mark in tuple("xv~!e"):
            steps += _make_call(mark, rest, f"call_{len(steps)}")
        elif mark in ("-", "+") and steps:
            field = "before" if mark == "-" else "text"
            steps[-2] = steps[-2].replace(**{field: rest})
        elif line.startswith("  "):
            steps[-1] = steps[-1].replace(text=f"{steps[-1].text}\n{line[2:]}".strip("\n"))
    return OvercomeError(name=name, steps=tuple(steps), expected=tuple(expected))


def _make_call(mark: str, rest: str, call: str) -> list[Step]:
    is_edit = mark == "e"
    return [
        Step(
            kind="call",
            call=call,
            tool="Edit" if is_edit else "Bash",
            does="edit" if is_edit else "run",
            text="" if is_edit else rest,
            path=f"{FOLDER}/{rest}" if is_edit else "",
        ),
        Step(kind="result", call=call, failed=mark in "x!", denied=mark == "!"),
    ]
