"""What consolidation leaves to a person: questions about two sides, with the evidence for each, and the answers.

The list of questions stays short and current. A question is asked once, as long as both sides stay as they are; it is
withdrawn when one of them has changed, asked again when they are as they were, and expires after a month. At most
`MAX_OPEN` are open; what else there is to ask waits until there is room. Until it is answered, nothing that it
concerns is consolidated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from learnt.consolidate.ages import day_of
from learnt.consolidate.questions import (
    BOTH,
    CHOICES,
    MAX_PASSAGE,
    NEITHER,
    NEW,
    OLD,
    PATCH,
    REGRESSION,
    TOO_LONG,
    OpenQuestion,
    digest_file,
    digest_sides,
)
from learnt.errors import LearntError, NotFound, WrongRequest
from learnt.flow.context import Context
from learnt.flow.documents import read_document
from learnt.flow.learnings import refuse_agent, replace_by, to_status
from learnt.flow.staging_file import stage
from learnt.flow.tasks import Tasks, answer_escalation
from learnt.model import PARAGRAPHS, PROGRAM, TEXT_LIMIT, Learning, Value, is_id
from learnt.store import Store, learnings, reviews
from learnt.store.reviews import CONSOLIDATION, Escalation
from learnt.text.clean import fold
from learnt.text.times import DAY_MS
from learnt.weigh.confidence import vouch_by_person

MAX_OPEN = 20
EXPIRY_DAYS = 30
REPORTS = "reports"
_WITHDRAWN = "withdrawn: "
_EXPIRED = f"{_WITHDRAWN}nobody answered within {EXPIRY_DAYS} days"
_CUT = "\n…"


class Side(Value):
    """One side of a question, and what speaks for it."""

    name: str
    """`old` or `new`."""
    id: str = ""
    file: str = ""
    text: str
    evidence: str = ""


class Decisions:
    """Escalations: which there are, both sides of each, and a person's answers."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def pending(self, *, status: str | None = "open") -> list[Escalation]:
        """Return the escalations, oldest first, after those that have no object any more have been withdrawn."""
        withdraw(self._context)
        return reviews.escalations(self._store.database, status=status)

    def sides(self, escalation: Escalation) -> list[Side]:
        """Return the two sides of a question of consolidation, the older one first."""
        if not escalation.is_about_consolidation:
            return []
        detail = escalation.detail
        older = learnings.find(self._store.database, str(detail.get("older", "")))
        newer = learnings.find(self._store.database, escalation.subject)
        sides = [_describe_side(OLD, older)] if older else []
        if not older and detail.get("passage"):
            sides.append(_describe_passage(self._context, escalation))
        return [*sides, *([_describe_side(NEW, newer)] if newer else [])]

    def resolve(
        self, id: str, answer: str = "", *, keep: str = "", scope: str = "", cancel: bool = False, hide: bool = False
    ) -> Escalation:
        """Answer an escalation. For one of consolidation, `keep` is the side that holds, and `scope` where both do."""
        escalation = self._answer(id, answer, keep=keep, scope=scope, cancel=cancel, hide=hide)
        if escalation.is_about_consolidation:
            self._stage_accepted(escalation)
        return escalation

    def _answer(self, id: str, answer: str, *, keep: str, scope: str, cancel: bool, hide: bool) -> Escalation:
        refuse_agent(self._context, "resolve")
        escalation = reviews.get_escalation(self._store.database, id) if is_id("esc", id) else None
        if escalation is None or not escalation.is_about_consolidation:
            if (keep or scope) and escalation is None and not is_id("task", id):
                reviews.get_escalation(self._store.database, id)  # raises: there is none
            if keep or scope:
                raise WrongRequest(f"`{fold(id[:100])}` has no sides to choose from", hint="answer it in words")
            return Tasks(self._context).resolve(id, answer, cancel=cancel, hide=hide)
        withdraw(self._context)
        keep = _read_choice(keep or answer or (NEITHER if hide else ""), escalation, scope)
        with self._store.transaction():
            escalation = reviews.get_escalation(self._store.database, id, for_update=True)
            if escalation.status != "open":
                raise WrongRequest(
                    f"`{id}` is closed: {escalation.answer}", hint="`learnt escalations` shows the others"
                )
            scope = self._context.redact_line(scope, TEXT_LIMIT)
            self._apply(escalation, keep, scope)
            # With a scope, the newer side says something else now: the answer holds for that, too.
            state = _digest_present(self._store, escalation)
            escalation = escalation.replace(detail={**escalation.detail, "answered_for": state})
            return answer_escalation(self._context, escalation, f"{keep}: {scope}" if scope else keep)

    def _stage_accepted(self, escalation: Escalation) -> None:
        """Stage the side that a person has accepted, unless it takes the place of the other one in a topic file."""
        chosen = escalation.answer.partition(":")[0]
        newer = learnings.find(self._store.database, escalation.subject)
        older = learnings.find(self._store.database, str(escalation.detail.get("older", "")))
        if chosen not in (NEW, BOTH) or newer is None or (chosen == NEW and older is not None and older.topic_file):
            return
        try:
            stage(self._context, (newer,))
        except LearntError as error:
            self._context.remarks.append(f"{newer.id} is not in the staging file: {error.message}; {error.hint}")

    def describe_next(self, escalation: Escalation) -> str:
        """Return what the next consolidation does because of an answer; empty if nothing is left to do."""
        detail, answer = escalation.detail, escalation.answer.partition(":")[0]
        if not escalation.is_about_consolidation or answer not in CHOICES or detail.get("kind") == TOO_LONG:
            return ""
        if detail.get("kind") == PATCH:
            done = f"splits {escalation.subject}" if answer == NEW else f"writes into {escalation.subject} all the same"
            return f"The next `learnt consolidate` {done}."
        found = learnings.get_all(self._store.database, _list_learnings(escalation))
        gone = [one.topic_file for one in found.values() if one.status != "active" and one.topic_file]
        if gone:
            return f"The next `learnt consolidate` takes what does not hold any more out of {gone[0]}."
        if detail.get("passage") and answer == NEW:
            return f"{detail['file']} still says the old side: edit it yourself."
        return ""

    def _apply(self, escalation: Escalation, keep: str, scope: str) -> None:
        """Within a transaction: let the sides that were not chosen go, with a link to the one that stays."""
        newer, older = escalation.subject, str(escalation.detail.get("older", ""))
        has_older = bool(older) and learnings.exists(self._store.database, older)
        detail = escalation.detail
        if detail.get("kind") == REGRESSION and keep in (OLD, NEW):
            return  # the next consolidation does what was chosen; what speaks for the older one is added up then
        in_file = learnings.find(self._store.database, newer) if is_id("learn", newer) and not has_older else None
        if keep == OLD and in_file is not None and in_file.topic_file and in_file.topic_file == detail.get("file"):
            return  # its own entry there was edited, and stays
        changes: list[tuple[str, str, Callable[[Learning], dict[str, Any]]]] = []
        if is_id("learn", newer) and keep in (NEW, BOTH):
            changes.append((newer, "accept", lambda learning: _accept(learning, scope)))
        if is_id("learn", newer) and keep == OLD and has_older:
            changes.append((newer, "supersede", replace_by(older)))
        elif is_id("learn", newer) and keep in (OLD, NEITHER):
            changes.append((newer, "archive", to_status("archived")))
        if has_older and keep == NEW:
            changes.append((older, "supersede", replace_by(newer)))
        if has_older and keep == BOTH:
            changes.append((older, "accept", lambda learning: _accept(learning, "")))
        if has_older and keep == NEITHER:
            changes.append((older, "archive", to_status("archived")))
        for id, what, decide in changes:
            change = self._context.change(what, at=self._context.clock(), reason=f"{escalation.id}: {keep}")
            learnings.change(self._store.database, id, decide, change)


def propose(context: Context, question: OpenQuestion, *, at: int) -> Escalation | None:
    """Within a transaction: ask a person, unless it was asked before; None if too many questions are open."""
    database = context.store.database
    known = find_escalation(context, question.id)
    if known is not None and not _was_withdrawn(known):
        return known
    for earlier in list_open(context):
        # Of a file as a whole, only the latest question is of use.
        if question.kind in (TOO_LONG, PATCH) and _is_about_file(earlier, question):
            reviews.resolve_escalation(database, _close(earlier, "the file was asked about again", at))
    if len(list_open(context)) >= MAX_OPEN:
        return None
    passage = question.passage
    detail = {
        "what": CONSOLIDATION,
        "kind": question.kind,
        "older": question.older,
        "file": question.file,
        "passage": passage if len(passage) <= MAX_PASSAGE else f"{passage[: MAX_PASSAGE - len(_CUT)]}{_CUT}",
        "state": question.state,
        "expires_at": at + EXPIRY_DAYS * DAY_MS,
        **({"root": context.root} if question.file else {}),
    }
    escalation = Escalation(
        id=question.id, subject=question.subject, question=question.text, detail=detail, created_at=at
    )
    (reviews.ask_again if known else reviews.add_escalation)(database, escalation)
    return escalation


def find_escalation(context: Context, id: str) -> Escalation | None:
    """Return an escalation, whatever came of it; None if there is none."""
    try:
        return reviews.get_escalation(context.store.database, id)
    except NotFound:
        return None


def find_answer(context: Context, question: OpenQuestion) -> str | None:
    """Return what became of a question: a person's answer or why it was closed, empty if it is open.

    None if it was never asked, or if its sides changed after it was asked and are as they were again.
    """
    known = find_escalation(context, question.id)
    if known is not None:
        return None if _was_withdrawn(known) else known.answer if known.status != "open" else ""
    answered = reviews.escalations(context.store.database, status="resolved", subject=question.subject)
    for escalation in reversed(answered):
        detail = escalation.detail
        is_same = all(detail.get(name) == getattr(question, name) for name in ("kind", "older", "file"))
        # Who wants a document to stay whole is not asked again each time that it grows.
        holds = question.kind == PATCH and escalation.answer == OLD
        if is_same and (detail.get("answered_for") == question.state or holds):
            return escalation.answer
    return None


def still_waits(escalation: Escalation) -> bool:
    """Return whether what a question concerns waits for it: it is open, or nobody answered it in time."""
    return escalation.status == "open" or escalation.answer == _EXPIRED


def _was_withdrawn(escalation: Escalation) -> bool:
    """Return whether a question was closed because its sides had changed."""
    return not still_waits(escalation) and escalation.resolved_by == PROGRAM


def patch_path(context: Context, id: str) -> str:
    """Return the path of the file with the patch that an escalation proposes."""
    return os.path.join(context.store.place.folder, REPORTS, f"{id}.patch")


def list_open(context: Context) -> list[Escalation]:
    """Return the open questions of consolidation, oldest first."""
    return [one for one in reviews.escalations(context.store.database) if one.is_about_consolidation]


def withdraw(context: Context) -> list[Escalation]:
    """Close the questions that have expired, or whose sides are not what they were; return them."""
    store, now = context.store, context.clock()
    if store.place.read_only or store.database.read_only:
        return []
    closed = []
    for escalation in list_open(context):
        reason = _find_reason_to_close(context, store, escalation, now)
        if reason:
            closed.append(_close(escalation, reason, now))
    if closed:
        with store.transaction():
            for escalation in closed:
                reviews.resolve_escalation(store.database, escalation)
    return closed


def _is_about_file(escalation: Escalation, question: OpenQuestion) -> bool:
    return escalation.detail.get("kind") == question.kind and escalation.subject == question.subject


def _close(escalation: Escalation, reason: str, at: int) -> Escalation:
    return escalation.replace(status="resolved", answer=f"{_WITHDRAWN}{reason}", resolved_at=at, resolved_by=PROGRAM)


def _find_reason_to_close(context: Context, store: Store, escalation: Escalation, now: int) -> str:
    detail = escalation.detail
    expires_at = detail.get("expires_at")
    if isinstance(expires_at, int) and now >= expires_at:
        return _EXPIRED.removeprefix(_WITHDRAWN)
    ids = _list_learnings(escalation)
    found = learnings.get_all(store.database, ids) if ids else {}
    if len(found) < len(ids):
        return "one of the learnings was purged"
    if any(learning.status not in ("active", "proposed") for learning in found.values()):
        return "one of the learnings is not in force any more"
    if _has_other_document(context, escalation):
        return f"{detail['file']} has changed"
    if detail.get("kind") in (TOO_LONG, PATCH):
        return ""
    return "" if detail.get("state") == _digest_present(store, escalation) else "one of the learnings has changed"


def _list_learnings(escalation: Escalation) -> list[str]:
    """Return the ids of the learnings that a question is about, the newer one first."""
    return [id for id in (escalation.subject, str(escalation.detail.get("older", ""))) if is_id("learn", id)]


def _digest_present(store: Store, escalation: Escalation) -> str:
    """Return the digest of the sides of a question as they are now."""
    ids = _list_learnings(escalation)
    found = learnings.get_all(store.database, ids) if ids else {}
    return digest_sides([found[id] for id in ids if id in found], str(escalation.detail.get("passage", "")))


def _has_other_document(context: Context, escalation: Escalation) -> bool:
    """Return whether the document that a question is about has changed; another worktree has its own."""
    detail = escalation.detail
    file, passage = str(detail.get("file", "")), str(detail.get("passage", ""))
    if not file or detail.get("root", context.root) != context.root:
        return False
    try:
        text = read_document(context.root, file) or ""
    except WrongRequest:
        return True
    if detail.get("kind") == PATCH:
        return detail.get("state") != digest_file(text)
    if detail.get("kind") == TOO_LONG:
        return text.count("\n") < context.settings.consolidate_size_lines
    return bool(passage) and passage.removesuffix(_CUT) not in text


def _read_choice(keep: str, escalation: Escalation, scope: str) -> str:
    if keep not in CHOICES:
        hint = f"`learnt resolve {escalation.id} --keep old`, new, both (with --scope) or neither"
        raise WrongRequest(f"`{escalation.id}` needs one of: {', '.join(CHOICES)}", hint=hint)
    if keep == BOTH and not scope:
        raise WrongRequest(
            "both can hold only in different cases", hint='say where the newer one holds: --scope "on CI"'
        )
    if scope and keep != BOTH:
        raise WrongRequest("a scope says where each of both holds", hint="combine it with --keep both")
    return keep


def _accept(learning: Learning, scope: str) -> dict[str, Any]:
    """Return the changes with which a person accepts a learning, perhaps only for some cases."""
    context = {"context": fold(f"{learning.context} {scope}")} if scope else {}
    return vouch_by_person(learning, {"status": "active", "superseded_by": "", **context})


def _describe_passage(context: Context, escalation: Escalation) -> Side:
    """Return the side of a document; of a patch, there may be more in a file of its own."""
    detail = escalation.detail
    path = patch_path(context, escalation.id)
    evidence = f"apply it: `git apply {path}`" if detail.get("kind") == PATCH and os.path.exists(path) else ""
    return Side(name=OLD, file=str(detail.get("file", "")), text=str(detail["passage"]), evidence=evidence)


def _describe_side(name: str, learning: Learning) -> Side:
    said = [f"{field}: {text}" for field in PARAGRAPHS if (text := getattr(learning, field))]
    return Side(
        name=name,
        id=learning.id,
        file=learning.topic_file,
        text="\n".join((learning.advise(learning.title), *said)),
        evidence=_describe_evidence(learning),
    )


def _describe_evidence(learning: Learning) -> str:
    counts: Mapping[str, int] = {
        "helpful": learning.times_helpful,
        "not helpful": learning.times_not_helpful,
        "recurred": learning.recurrences,
        "shown": learning.times_injected,
    }
    vouched = f"vouched by {learning.vouched}" if learning.vouched else "nobody vouches for it"
    since = f"since {day_of(learning.created_at)}"
    return "; ".join((since, vouched, *(f"{count} × {what}" for what, count in counts.items() if count)))
