"""The command that walks a person through what waits: one key each on a terminal, else one answer a line on stdin."""

from __future__ import annotations

import sys

from learnt.doors.cli.arguments import add_user, open_memory, tell_redactions
from learnt.doors.cli.keys import Keys, is_at_keyboard
from learnt.doors.cli.screen import is_terminal, moment, note, paint, say, show_json
from learnt.errors import LearntError, WrongRequest
from learnt.flow.review import DECISIONS, MOST_COUNTED, REVIEW_KINDS
from learnt.model import PARAGRAPHS
from learnt.text.records import as_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from learnt.flow.review import Decision, ReviewItem
    from learnt.memory import Memory
    from learnt.model import Learning
    from learnt.store.mined import Found

_MANY = 100
_EVIDENCE_SHOWN = 3
_KEYS = {
    "y": "accept",
    "n": "reject",
    "e": "edit",
    "l": "later",
    " ": "later",
    "\n": "later",
    "\r": "later",
    "u": "undo",
    "q": "quit",
    "\x04": "quit",
    "": "quit",
}
_WORDS = {
    **dict.fromkeys(("y", "yes", "a", "accept"), "accept"),
    **dict.fromkeys(("n", "no", "r", "reject"), "reject"),
    **dict.fromkeys(("e", "edit"), "edit"),
    **dict.fromkeys(("l", "later", "s", "skip"), "later"),
    **dict.fromkeys(("u", "undo"), "undo"),
    **dict.fromkeys(("q", "quit"), "quit"),
}
# What yes and no mean, and what is said when it is done.
_CHOICES = {
    "merged": ("replace them by it", "leave them as they are"),
    "revised": ("replace the old one", "leave the old one"),
    "proposed": ("accept it", "put it away"),
    "removed": ("hide it", "keep it"),
    "new": ("like it", "hide it"),
}
_DONE = {
    "merged": ("Accepted", "Archived"),
    "revised": ("Accepted", "Archived"),
    "proposed": ("Accepted", "Archived"),
    "removed": ("Hid", "Kept"),
    "new": ("Liked", "Hid"),
}


def review_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, default=_MANY, metavar="N", help=f"at most N; {_MANY} if not given")
    parser.add_argument("--kind", action="append", choices=REVIEW_KINDS, help="only these; repeatable")
    parser.add_argument("--list", action="store_true", help="show what waits, and ask nothing")
    add_user(parser)


def review_run(arguments: argparse.Namespace) -> int:
    asks_person = is_at_keyboard() and not arguments.json and not arguments.list
    lines = [] if arguments.list or is_terminal(sys.stdin) else sys.stdin.read().splitlines()
    answers = [_answer(line, number) for number, line in enumerate(lines, 1) if line.strip()]
    with open_memory(arguments) as memory:
        items = memory.review.items(limit=arguments.limit, kinds=arguments.kind or ())
        walk = _Walk(memory, items, tell=note if arguments.json else say)
        if asks_person and items:
            walk.ask()
        elif answers:
            for id, answer in answers:
                if not walk.take(id, answer):
                    break
        waiting = memory.review.counts()
        tell_redactions(memory)
    if arguments.json:
        show_json(_record(walk, waiting) if answers else [_item_record(item) for item in items])
    elif asks_person or answers:
        _tell_rest(len(walk.decided), waiting)
    else:
        _show_all(items, waiting)
    return 130 if walk.interrupted else 2 if walk.refused and answers else 0


class _Walk:
    """Goes through the items, keeps what was decided, and goes back."""

    def __init__(self, memory: Memory, items: list[ReviewItem], *, tell: Callable[[str], None]) -> None:
        self._memory = memory
        self._items = items
        self._tell = tell
        self._position = 0
        self.decided: list[tuple[int, Decision]] = []
        self.refused: list[tuple[str, str]] = []
        self.interrupted = False
        self._keys: Keys | None = None

    def ask(self) -> None:
        """Ask a person at a terminal until all is seen or they leave; what is decided is decided."""
        try:
            with Keys() as self._keys:
                while self._take_key(self._keys):
                    pass
        except KeyboardInterrupt:
            say()
            self.interrupted = True

    def take(self, id: str, answer: str) -> bool:
        """Take one answer, for the item at hand or for the one with this id; False when it is the last."""
        if answer == "quit":
            return False
        try:
            self._take(id, answer)
        except LearntError as error:
            if error.exit_code != WrongRequest.exit_code:
                raise
            self._refuse(id, error)
        return True

    def _take_key(self, keys: Keys) -> bool:
        if self._position < len(self._items):
            item = self._items[self._position]
            say(f"\n{paint(f'{self._position + 1} of {len(self._items)}', 'dim')}")
            _show(item)
            yes, no = _CHOICES[item.kind]
            say(f"\n[y] {yes}  [n] {no}  [e] edit  [l] later  [u] undo  [q] quit")
        elif self.decided:
            say("\nThat was the last one.  [u] undo  [q] quit")
        else:
            return False
        sys.stdout.flush()
        answer = _KEYS.get(keys.read())
        while answer is None or (self._position == len(self._items) and answer not in ("undo", "quit")):
            answer = _KEYS.get(keys.read())
        return self.take("", answer)

    def _take(self, id: str, answer: str) -> None:
        if answer == "undo":
            self._undo(id)
        elif id:
            if answer != "later":
                self._decide(self._memory.review.item(id), answer, position=self._position)
        elif self._position >= len(self._items):
            raise WrongRequest("nothing more waits", hint="`learnt review --list` shows what waits")
        elif answer == "later":
            self._position += 1
        else:
            item = self._items[self._position]
            self._decide(item, answer, position=self._position)
            self._position += 1

    def _decide(self, item: ReviewItem, answer: str, *, position: int) -> None:
        if answer == "edit":
            decided = self._edit(item)
        else:
            decided = self._memory.review.decide(item.id, answer, version=item.learning.version)
        self.decided.append((position, decided))
        self._tell(f"{_what_was_done(decided)} {decided.learning.id}: {decided.learning.title}")

    def _edit(self, item: ReviewItem) -> Decision:
        from learnt.doors.cli.learnings import differing, editable, edited

        before = item.learning

        def keep(fields: dict[str, Any]) -> Decision:
            changes = differing(before, fields)
            if not changes:
                raise WrongRequest("nothing was changed, so nothing is decided", hint="decide on it as it is")
            return self._memory.review.decide(item.id, "edit", changes=changes, version=before.version)

        if self._keys is not None:
            self._keys.give_back()
        try:
            return edited(editable(before), keep)
        finally:
            if self._keys is not None:
                self._keys.take()

    def _undo(self, id: str) -> None:
        made = [one for one in self.decided if id in ("", one[1].item)]
        if not made:
            raise WrongRequest("there is nothing to take back", hint="`learnt undo ID` takes back earlier changes")
        position, decided = made[-1]
        self.decided.remove(made[-1])  # also where it fails: somebody has gone on from there
        item = self._memory.review.take_back(decided)
        self._tell(f"Took back: {_what_was_done(decided)} {item.learning.id}: {item.learning.title}")
        if not id:
            self._position = position
        if position < len(self._items) and self._items[position].id == item.id:
            self._items[position] = item

    def _refuse(self, id: str, error: LearntError) -> None:
        """Tell why an answer had no effect, and go on: with the same item, unless it does not wait any more."""
        note(f"{error.message}; {error.hint}")
        if self._position < len(self._items):
            item = self._items[self._position]
            self.refused.append((id or item.id, error.message))
            if not id:
                self._look_again(item)
        else:
            self.refused.append((id, error.message))

    def _look_again(self, item: ReviewItem) -> None:
        try:
            self._items[self._position] = self._memory.review.item(item.id)
        except WrongRequest:
            self._position += 1


def _answer(line: str, number: int) -> tuple[str, str]:
    """Return what a line says: the id, if it names one, and the answer."""
    words = line.lower().split()
    answer = _WORDS.get(words[-1])
    if answer is None or len(words) > 2:
        raise WrongRequest(
            f"line {number}, `{line.strip()[:100]}`, is no answer; nothing was changed",
            hint=f"one a line, after an id if you like: {', '.join((*DECISIONS, 'later', 'undo', 'quit'))}",
        )
    return words[0] if len(words) > 1 else "", answer


def _what_was_done(decided: Decision) -> str:
    if decided.decision == "edit":
        return "Edited"
    accepted, rejected = _DONE[decided.kind]
    return accepted if decided.decision == "accept" else rejected


def _show(item: ReviewItem) -> None:
    learning = item.learning
    say(f"{paint(item.kind, 'yellow')}  {paint(learning.title, 'bold')}")
    facts = [learning.id, learning.kind, f"confidence {learning.confidence:.2f}", f"from {learning.origin}"]
    facts += [moment(learning.created_at), *(f"#{tag}" for tag in learning.tags)]
    say(paint("  ".join(facts), "dim"))
    if item.question:
        say(item.question)
    if item.kind == "revised" and item.replaces:
        _show_difference(item.replaces[0], learning)
    else:
        for name in PARAGRAPHS:
            if getattr(learning, name):
                say(f"{paint(name.capitalize(), 'cyan')}: {getattr(learning, name)}")
        for one in item.replaces:
            say(f"{paint('would replace', 'cyan')} {one.id}: {one.title}")
    show_evidence(item.evidence)


def _show_difference(old: Learning, new: Learning) -> None:
    import difflib

    say(paint(f"would replace {old.id}", "dim"))
    for name in ("title", *PARAGRAPHS):
        before, after = (getattr(one, name).split("\n") if getattr(one, name) else [] for one in (old, new))
        for line in difflib.ndiff(before, after):
            if line[0] in "-+":
                say(paint(f"{line[0]} {name}: {line[2:]}", "red" if line[0] == "-" else "green"))


def show_evidence(evidence: Sequence[Found]) -> None:
    """Show what was seen that speaks for a learning, the first of it in its own words."""
    for found in evidence[:_EVIDENCE_SHOWN]:
        _show_found(found)
    if len(evidence) > _EVIDENCE_SHOWN:
        say(paint(f"  … and {len(evidence) - _EVIDENCE_SHOWN} more", "dim"))


def _show_found(found: Found) -> None:
    seen = found.discovery
    where = "  ".join(part for part in (seen.task, seen.type, ", ".join(seen.files[:5])) if part)
    say(paint(f"seen in {where}" if where else "seen", "dim"))
    for line in (seen.excerpt or seen.text).splitlines()[:5]:
        say(paint(f"  | {line[:200]}", "dim"))


def _show_all(items: Sequence[ReviewItem], waiting: Mapping[str, int]) -> None:
    for item in items:
        say(f"{item.id}  {item.kind:<8}  {item.learning.title}")
    if items:
        note(f"{told_waiting(waiting)}: at a terminal, `learnt review` asks one by one")
    else:
        say("Nothing waits for your review.")


def _tell_rest(decided: int, waiting: Mapping[str, int]) -> None:
    rest = told_waiting(waiting)
    if not decided and not rest:
        say("Nothing waits for your review.")
        return
    say(f"Decided: {decided}. " + (f"{rest}." if rest else "Nothing more waits."))


def told_waiting(waiting: Mapping[str, int]) -> str:
    """Return in words how much waits for review; empty for nothing."""
    total = sum(waiting.values())
    if not total:
        return ""
    many = f"{total:,}{' or more' if waiting.get('new') == MOST_COUNTED else ''}"
    return f"{many} {'waits' if total == 1 else 'wait'} for review"


def _item_record(item: ReviewItem) -> dict[str, Any]:
    return {
        "id": item.id,
        "kind": item.kind,
        "title": item.learning.title,
        "question": item.question,
        "learning": as_record(item.learning),
        "replaces": [as_record(one) for one in item.replaces],
        "evidence": [one.discovery.as_dict() for one in item.evidence],
    }


def _record(walk: _Walk, waiting: Mapping[str, int]) -> dict[str, Any]:
    decided = [
        {
            "id": one.item,
            "kind": one.kind,
            "decision": one.decision,
            "learning": one.learning.id,
            "title": one.learning.title,
            "status": one.learning.status,
            "events": one.events,
        }
        for _, one in walk.decided
    ]
    refused = [{"id": id, "reason": reason} for id, reason in walk.refused]
    return {"id": "review", "decided": decided, "refused": refused, "waiting": waiting}
