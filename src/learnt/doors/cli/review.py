"""The command `review`: decide on proposals, with one key each at a terminal, or with one answer per line on stdin."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from learnt.doors.cli.arguments import Arguments, Parser, add_user, open_memory, refuse_agent, report_redactions
from learnt.doors.cli.terminal import Keys, edit_learning, find_changes, is_at_keyboard, select_editable
from learnt.doors.output import format_time, is_terminal, note, paint, say, show_json
from learnt.errors import LearntError, WrongRequest
from learnt.flow.review import DECISIONS, MAX_COUNTED, REVIEW_KINDS, Decision, ReviewItem
from learnt.memory import Memory
from learnt.model import PARAGRAPHS, Learning
from learnt.store.mined import StoredDiscovery
from learnt.text.records import as_record

_MAX_LISTED = 100
_MAX_EVIDENCE = 3
_WORDS = {
    word: answer
    for answer, short in (
        ("accept", "y yes a"),
        ("reject", "n no r"),
        ("edit", "e"),
        ("other", "o"),
        ("later", "l s skip"),
        ("undo", "u"),
        ("quit", "q"),
    )
    for word in (answer, *short.split())
}
_KEYS = {key: _WORDS[key] for key in "yneoluq"} | dict.fromkeys(" \n\r", "later") | {"\x04": "quit", "": "quit"}
# For each kind of item: what yes and no mean, and what is printed after the decision and after it is undone.
_CHOICES = {
    "merged": ("replace them with it", "keep them"),
    "revised": ("replace the old one", "keep the old one"),
    "proposed": ("accept it", "archive it"),
    "removed": ("hide it", "keep it"),
    "duplicate": ("keep only this one", "keep both"),
    "new": ("like it", "hide it"),
}
_DONE = {"removed": ("Hid", "Kept"), "duplicate": ("Kept only", "Kept both"), "new": ("Liked", "Hid")}
_DONE_TO_PROPOSAL = ("Accepted", "Archived")
_UNDONE = {
    "Accepted": "is proposed again",
    "Archived": "is proposed again",
    "Edited": "has its former text again",
    "Hid": "is visible again",
    "Kept": "needs a decision again",
    "Kept both": "needs a decision again",
    "Kept only": "needs a decision again",
    "Liked": "is no longer liked",
}


def review_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--limit", type=int, default=_MAX_LISTED, metavar="N", help=f"review at most N items; default: {_MAX_LISTED}"
    )
    parser.add_argument("--kind", action="append", choices=REVIEW_KINDS, help="only this kind; repeatable")
    parser.add_argument("--list", action="store_true", help="list the open items, without asking")
    add_user(parser)


def review_run(arguments: Arguments) -> int:
    refuse_agent("review")
    asks_person = is_at_keyboard() and not arguments.json and not arguments.list
    lines = [] if arguments.list or is_terminal(sys.stdin) else sys.stdin.read().splitlines()
    answers = [_parse_answer(line, number) for number, line in enumerate(lines, 1) if line.strip()]
    with open_memory(arguments) as memory:
        items = memory.review.items(limit=arguments.limit, kinds=arguments.kind or ())
        session = _Session(memory, items, show=note if arguments.json else say)
        if asks_person and items:
            session.ask()
        elif answers:
            for id, answer in answers:
                if not session.apply(id, answer):
                    break
        open_items = memory.review.counts()
        report_redactions(memory)
    if arguments.json:
        show_json(_record(session, open_items) if answers else [_item_record(item) for item in items])
    elif asks_person or answers:
        _print_rest(len(session.decided), open_items)
    else:
        _show_all(items, open_items)
    return 130 if session.interrupted else 2 if session.refused and answers else 0


class _Session:
    """Goes through the items, remembers the decisions, and undoes them."""

    def __init__(self, memory: Memory, items: list[ReviewItem], *, show: Callable[[str], None]) -> None:
        self._memory = memory
        self._items = items
        self._show = show
        self._position = 0
        self.decided: list[tuple[int, Decision]] = []
        self.refused: list[tuple[str, str]] = []
        self.interrupted = False
        self._keys: Keys | None = None

    def ask(self) -> None:
        """Ask a person at a terminal until everything is decided or they quit; apply each decision immediately."""
        try:
            with Keys() as self._keys:
                while self._ask_for_key(self._keys):
                    pass
        except KeyboardInterrupt:
            say()
            self.interrupted = True

    def apply(self, id: str, answer: str) -> bool:
        """Apply an answer to the current item or to the item with this id; return False for `quit`."""
        if answer == "quit":
            return False
        try:
            self._apply(id, answer)
        except LearntError as error:
            if error.exit_code != WrongRequest.exit_code:
                raise
            self._refuse(id, error)
        return True

    def _ask_for_key(self, keys: Keys) -> bool:
        if self._position < len(self._items):
            item = self._items[self._position]
            say(f"\n{paint(f'{self._position + 1} of {len(self._items)}', 'dim')}")
            _show_item(item)
            yes, no = _CHOICES[item.kind]
            other = "  [o] keep only the other" if item.kind == "duplicate" else ""
            say(f"\n[y] {yes}  [n] {no}{other}  [e] edit  [l] later  [u] undo  [q] quit")
        elif self.decided:
            say("\nThat was the last one.  [u] undo  [q] quit")
        else:
            return False
        sys.stdout.flush()
        answer = _KEYS.get(keys.read())
        while answer is None or (self._position == len(self._items) and answer not in ("undo", "quit")):
            answer = _KEYS.get(keys.read())
        return self.apply("", answer)

    def _apply(self, id: str, answer: str) -> None:
        if answer == "undo":
            self._undo(id)
        elif id:
            if answer != "later":
                self._decide(self._memory.review.item(id), answer)
        elif self._position >= len(self._items):
            raise WrongRequest("there are no more items", hint="`learnt review --list` shows the open ones")
        elif answer == "later":
            self._position += 1
        else:
            self._decide(self._items[self._position], answer)
            self._position += 1

    def _decide(self, item: ReviewItem, answer: str) -> None:
        if answer == "edit":
            decision = self._edit(item)
        else:
            decision = self._memory.review.decide(item.id, answer, version=item.learning.version)
        self.decided.append((self._position, decision))
        self._show(f"{_name_decision(decision)} {decision.learning.id}: {decision.learning.title}")

    def _edit(self, item: ReviewItem) -> Decision:
        before = item.learning

        def save(fields: dict[str, Any]) -> Decision:
            changes = find_changes(before, fields)
            if not changes:
                raise WrongRequest("nothing was changed, so nothing is decided", hint="accept or reject it as it is")
            return self._memory.review.decide(item.id, "edit", changes=changes, version=before.version)

        if self._keys is not None:
            self._keys.give_back()
        try:
            return edit_learning(select_editable(before), save)
        finally:
            if self._keys is not None:
                self._keys.take()

    def _undo(self, id: str) -> None:
        decisions = [entry for entry in self.decided if id in ("", entry[1].item)]
        if not decisions:
            raise WrongRequest("there is nothing to undo", hint="`learnt undo ID` undoes earlier changes")
        position, decision = decisions[-1]
        self.decided.remove(decisions[-1])  # first, because undoing fails again if the learning has changed since
        item = self._memory.review.undo(decision)
        self._show(f"Undone: {item.learning.id} {_UNDONE[_name_decision(decision)]}: {item.learning.title}")
        if not id:
            self._position = position
        if position < len(self._items) and self._items[position].id == item.id:
            self._items[position] = item

    def _refuse(self, id: str, error: LearntError) -> None:
        """Print why an answer had no effect, and continue with the same item if it is still open."""
        note(f"{error.message}; {error.hint}")
        current = self._items[self._position].id if self._position < len(self._items) else ""
        self.refused.append((id or current, error.message))
        if current and not id:
            try:
                self._items[self._position] = self._memory.review.item(current)
            except WrongRequest:
                self._position += 1


def _parse_answer(line: str, number: int) -> tuple[str, str]:
    """Return a line's id, which may be empty, and its answer."""
    words = line.lower().split()
    answer = _WORDS.get(words[-1])
    if answer is None or len(words) > 2:
        raise WrongRequest(
            f"line {number}, `{line.strip()[:100]}`, is not an answer; nothing was changed",
            hint=f"write one per line, optionally after an id: {', '.join((*DECISIONS, 'later', 'undo', 'quit'))}",
        )
    return words[0] if len(words) > 1 else "", answer


def _name_decision(decision: Decision) -> str:
    if decision.decision == "edit":
        return "Edited"
    accepted, rejected = _DONE.get(decision.kind, _DONE_TO_PROPOSAL)
    return rejected if decision.decision == "reject" else accepted


def _show_item(item: ReviewItem) -> None:
    learning = item.learning
    say(f"{paint(item.kind, 'yellow')}  {paint(learning.title, 'bold')}")
    facts = [learning.id, learning.kind, f"confidence {learning.confidence:.2f}", f"from {learning.origin}"]
    facts += [format_time(learning.created_at), *(f"#{tag}" for tag in learning.tags)]
    say(paint("  ".join(facts), "dim"))
    if item.question:
        say(item.question)
    if item.kind == "revised" and item.replaces:
        old = item.replaces[0]
        say(paint(f"would replace {old.id}", "dim"))
        for name in ("title", *PARAGRAPHS):
            before, after = (text.split("\n") if text else [] for text in (getattr(old, name), getattr(learning, name)))
            for line in format_diff(name, before, after):
                say(line)
    else:
        for name in PARAGRAPHS:
            if getattr(learning, name):
                say(f"{paint(name.capitalize(), 'cyan')}: {getattr(learning, name)}")
        if learning.cues:
            say(f"{paint('When', 'cyan')}: {'; '.join(learning.cues)}")
        for replaced in item.replaces:
            _show_replaced(replaced, what="says the same as" if item.kind == "duplicate" else "would replace")
    show_evidence(item.evidence)


def _show_replaced(learning: Learning, *, what: str) -> None:
    say(f"{paint(what, 'cyan')} {learning.id}: {learning.title}")
    if what != "would replace":
        facts = [f"confidence {learning.confidence:.2f}", f"from {learning.origin}", format_time(learning.created_at)]
        say(paint(f"  {'  '.join(facts)}", "dim"))
        for name in (name for name in PARAGRAPHS if getattr(learning, name)):
            say(f"  {paint(name.capitalize(), 'cyan')}: {getattr(learning, name)}")


def format_diff(name: str, old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the lines of a diff that shows what changed in a field."""
    import difflib

    changed = [line for line in difflib.ndiff(old, new) if line[0] in "-+"]
    return [paint(f"{line[0]} {name}: {line[2:]}", "red" if line[0] == "-" else "green") for line in changed]


def show_evidence(evidence: Sequence[StoredDiscovery]) -> None:
    """Show excerpts of the first few pieces of evidence for a learning."""
    for stored in evidence[:_MAX_EVIDENCE]:
        _show_discovery(stored)
    if len(evidence) > _MAX_EVIDENCE:
        say(paint(f"  … and {len(evidence) - _MAX_EVIDENCE} more", "dim"))


def _show_discovery(stored: StoredDiscovery) -> None:
    discovery = stored.discovery
    parts = (discovery.task, discovery.type, ", ".join(discovery.files[:5]), stored.id)
    say(paint(f"seen in {'  '.join(part for part in parts if part)}", "dim"))
    for line in (discovery.excerpt or discovery.text).splitlines()[:5]:
        say(paint(f"  | {line[:200]}", "dim"))


def _show_all(items: Sequence[ReviewItem], open_items: Mapping[str, int]) -> None:
    for item in items:
        say(f"{item.id}  {item.kind:<9}  {item.learning.title}")
    if items:
        note(f"{describe_open(open_items)}: run `learnt review` at a terminal to decide one by one")
    else:
        say("Nothing to review.")


def _print_rest(decided: int, open_items: Mapping[str, int]) -> None:
    rest = describe_open(open_items)
    result = f"Decided: {decided}. {rest or 'Nothing left to review'}."
    say(result if decided or rest else "Nothing to review.")


def describe_open(open_items: Mapping[str, int]) -> str:
    """Return how many items are open for review; empty if there are none."""
    total = sum(open_items.values())
    if not total:
        return ""
    return f"{total:,}{' or more' if open_items.get('new') == MAX_COUNTED else ''} to review"


def _item_record(item: ReviewItem) -> dict[str, Any]:
    return {
        "id": item.id,
        "kind": item.kind,
        "title": item.learning.title,
        "question": item.question,
        "learning": as_record(item.learning),
        "replaces": [as_record(learning) for learning in item.replaces],
        "evidence": [stored.as_record() for stored in item.evidence],
    }


def _decision_record(decision: Decision) -> dict[str, Any]:
    return {
        "id": decision.item,
        "kind": decision.kind,
        "decision": decision.decision,
        "learning": decision.learning.id,
        "title": decision.learning.title,
        "status": decision.learning.status,
        "events": decision.events,
    }


def _record(session: _Session, open_items: Mapping[str, int]) -> dict[str, Any]:
    decided = [_decision_record(decision) for _, decision in session.decided]
    refused = [{"id": id, "reason": reason} for id, reason in session.refused]
    return {"id": "review", "decided": decided, "refused": refused, "waiting": open_items}
