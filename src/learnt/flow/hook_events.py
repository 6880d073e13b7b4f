"""Answer the hook events in a client's conversation: its start, prompts, tool calls, failures and ends of turns.

An answer is stored before it is returned; an event without an answer leaves no record. A conversation is given each
learning only once, and once more after the client has compacted or cleared the conversation.
"""

from __future__ import annotations

import os
import time

from learnt.brief.render import Content, Shown
from learnt.brief.select import Choice
from learnt.clients.kit.events import (
    briefs_at_first_prompt,
    has_words,
    hears_before_call,
    shows_messages,
    shows_too_late,
)
from learnt.clients.registry import is_interactive
from learnt.errors import LearntError, NoStore
from learnt.flow.briefs import BriefRequest, Draft, Opening, assemble, brief, describe_situation
from learnt.flow.context import apply_file_edits, has_edited_files, note_try
from learnt.flow.injections import asks_for_marks, find_origin, injected, record
from learnt.model import Hit, Task, Value, digest, new_id, text_id
from learnt.store import fired, tasks
from learnt.store.happened import (
    ASK,
    ASKED_IN_BRIEF,
    KEPT,
    FollowedRecord,
    ForgottenRecord,
    ForkRecord,
    GivenWarning,
    NoticeRecord,
    PromptRecord,
    ReportRecord,
    WarningRecord,
    list_given_warnings,
    unshown_notices,
    was_briefed,
)
from learnt.system.files import Locked, make_folders
from learnt.text.clean import clean, first_words
from learnt.text.fence import quoted_line
from learnt.text.redact import redact
from learnt.text.triggers import Situation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from learnt.clients.kit.events import HookEvent
    from learnt.flow.context import Context
    from learnt.flow.warnings import CallAdvice, CallWarning, ToolCall
    from learnt.model import Brief, Learning
    from learnt.store.database import Database

# Clients cut answers at 10,000 characters. An answer has at most 9,500, including the JSON around the text.
MAX_TEXT_CHARS = 9_200
MAX_COMMAND_CHARS = 500
_MAX_INPUT_CHARS = 20_000  # longer input is cut, because a hook has little time
_MIRROR_INTERVAL_S = 60.0
_FORGETTING_SOURCES = ("compact", "clear")
_SERVED_IN_LOOP = ("agent", "call", "result")
_AT_CALLS = ("call", "result")
AT_CALL = ("files", "commands", "tools")
_ERRANDS_FOLDER = "errands"  # as in store.errands, which is loaded only if there are any
_LOCKS_FOLDER, _NUMBER_OF_LOCKS = "conversations", 64

# One of these stands in every request to remember something. Whether it is one, the worker decides.
_REMEMBER = (
    "remember", "in mind", "forget", " note", "note to ", "note for ", "memor", "from now on", "from here on",
    "going forward", "moving forward", "henceforth", "future", "next time", "next ones", "as of now", "as of today",
    "starting now", "starting today", "so you know", "for later", "for the record",
    "merk", "denk daran", "denk dran", "denke dran", "denke daran", "denk bitte", "vergiss", "notier", "im kopf",
    "hinterkopf", "im auge", "gedächtnis", "ab jetzt", "ab sofort", "ab heute", "ab nun", "von nun an", "von jetzt an",
    "von heute an", "zukunft", "künftig", "fortan", "nächste", "für später",
    "retiens", "retenez", "souviens", "souvenez", "rappelle-toi", "rappelez", "oublie", "en tête", "l'esprit",
    "en mémoire", "mémoris", "note bien", "notez", "prends note", "partir de", "dès maintenant", "dorénavant",
    "désormais", "avenir", "futur", "prochaine fois", "pour la suite", "à retenir", "plus tard",
    "recuerd", "recuérd", "recorda", "acuérda", "acuerda", "olvid", "en cuenta", "presente", "toma nota", "apunta",
    "de ahora", "desde ahora", "desde hoy", "adelante", "sucesivo", "próxima", "proxima", "para luego", "para después",
)  # fmt: skip
_MAX_REMEMBERED_CHARS = 20_000  # a longer prompt is left to the transcript
_KEPT = "learnt keeps: {} (`learnt undo` takes {} back)"
_MAX_FOR_SUB_AGENT = 5
_NOTHING = Opening()


class Reply(Value):
    """The answer to a client."""

    text: str = ""
    denies: bool = False
    """Whether the call is stopped."""
    message: str = ""
    """What is shown to the person."""


class Hooks:
    """Serves the events in a client's conversations."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def check_mirror(self) -> None:
        """Raise NoStore if the store is on a server and has no readable mirror, and start the worker to create it."""
        if not self._context.store.place.address:
            return
        try:
            _ = self._context.store.database
        except (LearntError, OSError) as error:
            self._context.close()
            _start_worker(self._context, at_most_every_s=_MIRROR_INTERVAL_S)
            raise NoStore(
                f"the mirror cannot be read: {error}", hint="if this happens again, `learnt doctor` shows the reason"
            ) from None

    def serve(self, event: HookEvent, *, loop_task: str, began_ns: int) -> Reply:
        """Handle an event and return the answer.

        `loop_task` is the task that `learnt work` runs the agent for. `learnt work` briefs and debriefs it itself.
        """
        if event.errand:
            _errands().keep(self._context, event)
        elif event.errand_call or self._leaves_errands(event):
            _errands().drop(self._context, event)
        reply = Conversation(self._context, event, loop_task=loop_task, began_ns=began_ns).serve()
        if event.errand and reply.denies:
            _errands().drop(self._context, event)
        if event.kind == "result" and not self._context.store.spool.is_empty():
            _start_worker(self._context)  # the worker replays the spool
        return reply

    def _leaves_errands(self, event: HookEvent) -> bool:
        """Return whether a turn begins or ends, so that no errand that is still kept will be run."""
        begins_or_ends = event.kind in ("prompt", "stop", "end") and not event.agent_id
        return begins_or_ends and os.path.isdir(os.path.join(self._context.store.place.folder, _ERRANDS_FOLDER))

    def has_edited_files(self) -> bool:
        """Return whether a person may have edited learnings.md since it was last read."""
        return has_edited_files(self._context)

    def take_over_edits(self, *, later: bool = False) -> None:
        """Apply the edits to learnings.md; `later`, again, and if the store is on a server, the worker does it."""
        if later or self._context.store.place.address or not note_try(self._context):
            _start_worker(self._context)
        else:
            apply_file_edits(self._context)

    def is_repeated(self, event: HookEvent) -> bool:
        """Return whether the client has sent the same event to another of our hooks already."""
        folder = self._context.store.place.folder
        return bool(event.identity) and not fired.claim(folder, event.client, event.identity)

    def note_fired(self, event: HookEvent, answer: str, began_ns: int) -> None:
        """Record that a client called a hook; after a call there is nothing new to record."""
        if event.kind == "result":
            return
        duration_ms = (time.perf_counter_ns() - began_ns) / 1_000_000
        folder, at = self._context.store.place.folder, time.time_ns() // 1_000_000
        own, whole = (text_id("task", one.conversation) for one in (event, event.replace(agent_id="")))
        fired.note(folder, event.client, event.kind, at, duration_ms, len(answer), conversation=own, session=whole)

    def has_fired(self, client: str, *, since: int) -> bool:
        """Return whether a client has called a hook since the given time."""
        last = fired.read(self._context.store.place.folder).get(client)
        return last is not None and last.at >= since

    def find_live(self, client: str, *, stated: str, since: int) -> tuple[str, bool]:
        """Return the live conversation of a client that uses a tool, and whether it cannot be told from another one.

        A live one called a hook since the given time, and has not ended. Clients call one before each call of a tool,
        so if there is only one, it is that. `stated` is the session that the client states, which may be outdated.
        """
        last = fired.read(self._context.store.place.folder).get(client)
        live = last.list_live(since=since) if last else []
        session = stated if stated in live else live[0] if len(live) == 1 else ""
        if last and session == last.session:
            return last.conversation, False  # perhaps a sub-agent's
        return session, len(live) > 1 and not session

    def end_turn(self, task: str, said: str, **facts: Any) -> str:
        """Store the agent's last message in a turn, for the worker to debrief; return the attempt's id.

        `facts` are `agent`, `client`, `transcript`, `branch`, `result`, and `parent`, the conversation that a sub-agent
        works for. Each turn replaces the conversation's debrief.
        """
        attempt: str = _turns().end_turn(self._context, task, said, **facts)
        return attempt


class Conversation:
    """A conversation during one of its events."""

    def __init__(self, context: Context, event: HookEvent, *, loop_task: str, began_ns: int) -> None:
        self.context = context
        self.event = event
        self._loop_task = loop_task
        self._began_ns = began_ns
        # A sub-agent has not seen the loop's prompt, so it has its own conversation.
        self._is_of_loop = bool(loop_task) and not event.agent_id
        self.id = loop_task if self._is_of_loop else text_id("task", event.conversation)
        self.now = context.clock()
        self._task: Task | None = None

    def serve(self) -> Reply:
        """Handle the event and return the answer."""
        handlers = {
            "session": self._start_session,
            "prompt": self._brief_prompt,
            "agent": self._brief_agent,
            "call": self._warn_before_call,
            "result": self._learn_from_result,
            "stop": self._end_turn,
            "end": self._end_turn,
        }
        kind = self.event.kind
        if self.event.given is not None:  # also where the loop debriefs
            report = ReportRecord(task=self.id, given=self.event.given, at=self.now)
            self.context.store.spool_for_later(report)
        is_served = not self._loop_task or kind in _SERVED_IN_LOOP or (kind == "prompt" and self.event.agent_id)
        handler = handlers.get(kind) if is_served else None
        if handler is None or self.event.is_end:
            return handler() if handler else Reply()
        if kind in _AT_CALLS:  # many run in parallel, so they lock only if there is something to say
            reply = handler()
        else:
            with self._locked():
                reply = handler()
        return reply.replace(message=self._confirm_kept()) if shows_messages(self.event) else reply

    @property
    def database(self) -> Database:
        """The database of the project's own store."""
        return self.context.store.database

    @property
    def task(self) -> Task:
        """The conversation's stored task, or a new task."""
        if self._task is None:
            self._task = tasks.find(self.database, self.id) or self._new_task()
            if self._is_of_loop:
                # Each attempt is a new conversation, which begins with its claim.
                started = [claim.started_at for claim in tasks.claims(self.database) if claim.task == self.id]
                self._task = self._task.replace(fresh_since=max((*started, self._task.fresh_since)))
        return self._task

    def reply(self, occasion: str, **content: Any) -> Reply:
        """Store a brief with this content (see `_render`) and return its text."""
        brief = self._render(occasion, **content)
        if brief:
            record(self.context, self.task, brief, began_ns=self._began_ns)
        return Reply(text=brief.text if brief else "")

    def _render(
        self,
        occasion: str,
        *,
        warning: CallWarning | None = None,
        hits: Sequence[Hit] = (),
        opening: Opening = _NOTHING,
        ask: str = "",
    ) -> Brief | None:
        """Return a brief with this content; None if there is none, or nothing of it fits."""
        if not (warning or hits or ask or opening != _NOTHING):
            return None
        content = Content(
            id=new_id("brief", self.now),
            now_ms=self.now,
            learnings=tuple(Shown(learning=hit.learning) for hit in hits),
            failed=(warning.failed_before,) if warning else (),
            unfinished=opening.unfinished,
            notes=opening.notes,
            index=opening.index,
            ask=ask,
            asks_marks=asks_for_marks(self.context, self.task, (hit.learning for hit in hits)),
        )
        brief = assemble(self._draft(content, hits, occasion))
        return brief if brief.text else None

    def redact_line(self, text: str, max_chars: int) -> str:
        """Return text on one line without secrets. It is cut last, because part of a secret is not recognised."""
        return self.context.redact_line(first_words(text, _MAX_INPUT_CHARS), max_chars)[:max_chars].rstrip()

    def list_seen_ids(self, task: Task) -> list[str]:
        """Return the ids of the learnings given to the conversation since its last compaction, oldest first."""
        return list(injected(self.context, task.id, since=task.fresh_since))

    def _draft(self, content: Content, hits: Sequence[Hit], occasion: str) -> Draft:
        event = self.event
        # A warning contains the command itself, where a purge finds it, so the command is not stored a second time.
        command = self.redact_line(event.command, MAX_COMMAND_CHARS) if event.command and not content.failed else ""
        tools = (self.context.redact_line(event.tool),) if event.tool else ()
        return Draft(
            task=self.task,
            content=content,
            choices=[Choice(hit=hit) for hit in hits],
            settings={"budget_tokens": self.context.settings.brief_tokens},
            asked=describe_situation(Situation(paths=event.paths, command=command, tools=tools), only_new=True),
            max_chars=MAX_TEXT_CHARS,
            agent=self.context.redact_line(event.agent),
            client=event.client,
            occasion=occasion,
            asked_by="hook",
        )

    def _locked(self) -> Locked:
        """Return the conversation's lock, which prevents parallel hooks from saying the same thing.

        Other conversations may share its file.
        """
        folder = os.path.join(self.context.store.place.folder, _LOCKS_FOLDER)
        make_folders(folder)
        return Locked(os.path.join(folder, f"{int(digest(self.id)[:8], 16) % _NUMBER_OF_LOCKS:02x}.lock"))

    def _new_task(self) -> Task:
        return Task(
            id=self.id,
            title=self.id,  # until its first prompt is known
            type="session",
            agent=self.context.redact_line(self.event.agent),
            client=self.event.client,
            parent=self._parent,
            created_at=self.now,
            updated_at=self.now,
        )

    @property
    def _parent(self) -> str:
        """The conversation or task that a sub-agent works for; it is empty for a conversation with a person."""
        if not self.event.agent_id:
            return ""
        return self._loop_task or text_id("task", self.event.replace(agent_id="").conversation)

    def _start_session(self) -> Reply:
        """Brief a conversation that begins, resumes, continues another one, or was compacted or cleared."""
        before: dict[str, Learning] = {}
        stored = tasks.find(self.database, self.id)
        is_fork = stored is None and self._continues_another()
        if stored is not None and self.event.source in _FORGETTING_SOURCES:
            if self.event.source == "compact":
                before = _openings().list_given(self, stored)
            self.context.store.record(ForgottenRecord(task=self.id, at=self.now))
            self._task = stored.replace(fresh_since=self.now)
        if is_fork or briefs_at_first_prompt(self.event):
            return Reply()
        is_new = stored is None or self.event.source in _FORGETTING_SOURCES
        opening = _openings().find_opening(self, before, is_new=is_new and self.event.source != "compact")
        return self.reply(
            "compaction" if self.event.source == "compact" else "session",
            hits=opening.hits,
            opening=opening,
            ask=self._ask_at_start(is_new=is_new),
        )

    def _ask_at_start(self, *, is_new: bool) -> str:
        return "start" if is_new and self.context.settings.ask_agent != "never" else ""

    def _continues_another(self) -> bool:
        """Return whether this new conversation began as a copy of another one, which is recorded if it is known.

        The client says so, or the transcript begins with a brief for another conversation.
        """
        origin = find_origin(self.context, self.id, self.event)
        if origin:
            self._task = self._new_task().replace(based_on=origin)
            self.context.store.record(ForkRecord(task=self._task))
        return bool(origin) or self.event.source == "fork"

    def _brief_agent(self) -> Reply:
        """Brief a sub-agent for its errand, if it is known already; otherwise its first prompt contains it."""
        errands = _errands().take(self.context, self.event)
        return self._brief("agent", errands[0], or_else=tuple(errands[1:])) if errands else Reply()

    def _brief_prompt(self) -> Reply:
        event = self.event
        if not clean(event.prompt).strip():
            return Reply()
        if event.agent_id:
            return self._brief("agent", event.prompt)
        self._leave_warnings()
        if tasks.find(self.database, self.id) is None:
            self._continues_another()
        self._save_request()
        if not briefs_at_first_prompt(event) or not self._is_unopened():
            return self._brief("prompt", event.prompt, ask=self._find_ask())
        is_new = not self._has_been_briefed()
        ask = self._ask_at_start(is_new=is_new) or self._find_ask()
        opening = _openings().find_opening(self, {}, is_new=is_new)
        return self._brief("prompt", event.prompt, ask=ask, opening=opening)

    def _brief(
        self, occasion: str, text: str, *, or_else: tuple[str, ...] = (), ask: str = "", opening: Opening | None = None
    ) -> Reply:
        """Brief the agent, or a sub-agent, for what it is to do; `or_else` is what it may have to do instead."""
        if not text.strip():
            return Reply()
        event = self.event
        request = BriefRequest(
            text=text,
            or_else=or_else,
            task=self.id,
            task_type="session",
            agent=event.agent,
            client=event.client,
            occasion=occasion,
            asked_by="hook",
            ask=ask,
            only_new=True,
            max_chars=MAX_TEXT_CHARS,
            parent=self._parent,
            max_learnings=_MAX_FOR_SUB_AGENT if event.agent_id else None,
            opening=opening,
            began_ns=self._began_ns,
        )
        return Reply(text=brief(self.context, request).text)

    def _leave_warnings(self) -> None:
        """Record that a person wrote: what an agent did not do before that, it did not do because of a warning."""
        if any(warning.left_at is None for warning in self.list_warnings()):
            self.context.store.record(FollowedRecord(task=self.id, left=True, at=self.now))

    def list_warnings(self) -> list[GivenWarning]:
        """Return the warnings that the conversation was given, also those that are still in the spool."""
        # Read the spool first, because a replay may move records to the database meanwhile.
        pending = [record for record in self.context.store.pending_briefs(self.id) if isinstance(record, WarningRecord)]
        given = list_given_warnings(self.database, self.id)
        return [*given, *(GivenWarning(sign=warning.sign) for warning in pending)]

    def _is_unopened(self) -> bool:
        """Return whether this is the first prompt since the conversation began or resumed."""
        last = fired.read(self.context.store.place.folder).get(self.event.client)
        has_just_begun = last is not None and (last.event, last.conversation) == ("session", self.id)
        return has_just_begun or not self._has_been_briefed()

    def _has_been_briefed(self) -> bool:
        """Return whether the conversation was told anything since its last compaction."""
        pending = self.context.store.pending_briefs(self.id)
        return bool(pending) or was_briefed(self.database, self.id, since=self.task.fresh_since)

    def _save_request(self) -> None:
        """Spool a prompt in which a person may ask for something to be remembered, for the worker to keep it soon."""
        event = self.event
        if event.agent_id or event.follows_command or len(event.prompt) > _MAX_REMEMBERED_CHARS:
            return
        lower = event.prompt.lower()
        if not any(word in lower for word in _REMEMBER):
            return
        record = PromptRecord(
            task=self.id,
            client=event.client,
            text=redact(clean(event.prompt))[0],
            typed=is_interactive(event.client, os.environ),
            at=self.now,
        )
        _ = self.database  # opened before the record is there, so that this hook does not apply it
        self.context.store.spool_for_later(record)
        _start_worker(self.context)

    def _confirm_kept(self) -> str:
        """Return the line that tells the person what was kept of what they said; empty if there is nothing to tell."""
        if not unshown_notices(self.database, self.id, KEPT):
            return ""
        with self._locked():
            ids = [notice.subject for notice in unshown_notices(self.database, self.id, KEPT)]
            for id in ids:
                self.context.store.record(NoticeRecord(task=self.id, what=KEPT, subject=id, at=self.now, shown=True))
        titles = self.context.titles(ids) if ids else {}
        named = [quoted_line(titles[id]) for id in ids if id in titles]
        return _KEPT.format("; ".join(named), "the last one" if len(named) > 1 else "it") if named else ""

    def _find_ask(self) -> str:
        """Return what the agent is asked for, because the worker found it worth writing down; empty if nothing."""
        if self.context.settings.ask_agent == "never":
            return ""
        # Read the spool first, because a replay may move records to the database meanwhile.
        pending = self.context.store.pending_briefs(self.id)
        if any(record.given.brief.receipt.get("ask") == ASKED_IN_BRIEF for record in pending):
            return ""
        return ASKED_IN_BRIEF if unshown_notices(self.database, self.id, ASK) else ""

    def _warn_before_call(self) -> Reply:
        """Before a call: stop it or warn if it failed the last time, and show learnings about it."""
        mode = self._choose_mode()
        if mode == "off":
            return Reply()
        call = self._call()
        call.follow()
        stops = mode == "stop_once"
        kinds = AT_CALL if hears_before_call(self.event) else ()
        return self._say_once("tool", lambda: call.find(kinds, warns=stops or bool(kinds), stops=stops))

    def _choose_mode(self) -> str:
        """Return what happens before a call that failed here; by default, what the client shows in time."""
        mode = self.context.settings.before_tool
        if mode != "auto":
            return mode
        return "stop_once" if shows_too_late(self.event) else "tell"

    def _learn_from_result(self) -> Reply:
        """After a call: record whether it failed, and show learnings that help after a failure."""
        event, call = self.event, self._call()
        kinds = () if hears_before_call(event) or self.context.settings.before_tool == "off" else AT_CALL
        has_succeeded = bool(event.command) and event.failed is False
        if not has_succeeded:  # otherwise the success shows that the call was made
            call.follow()
        if not event.failed:
            if has_succeeded:
                call.record_success()
            return self._say_once("tool", lambda: call.find(kinds, warns=False))
        call.record_failure()
        return self._say_once("failure", lambda: call.find((*kinds, "errors")))

    def _say_once(self, occasion: str, find: Callable[[], CallAdvice]) -> Reply:
        """Say what `find` returns; nothing is locked while it is searched and rendered.

        What a parallel call has been told meanwhile is not said again.
        """
        found = find()
        brief = self._render(occasion, warning=found.warning, hits=found.hits)
        if not brief:
            return Reply()
        with self._locked():
            rest = find()
            if rest != found or brief.receipt["asks_marks"]:  # a parallel call may have asked for marks, too
                brief = self._render(occasion, warning=rest.warning, hits=rest.hits)
            if brief:
                record(self.context, self.task, brief, began_ns=self._began_ns, warning=rest.warning)
        if not brief:
            return Reply()
        stop = rest.warning.describe_stop(self.now) if rest.warning and rest.warning.denies else ""
        return Reply(text=stop + brief.text, denies=bool(stop))

    def _end_turn(self) -> Reply:
        """Spool the end of a turn. The end of a conversation may also end a turn whose end was not reported."""
        event = self.event
        if event.said is None and not has_words(event.transcript):
            _start_worker(self.context)
            return Reply()
        _turns().end_turn(
            self.context,
            self.id,
            event.said or "",
            agent=event.agent,
            client=event.client,
            transcript=event.transcript,
            parent=self._parent,
        )
        # The words are saved by now, whatever happens next.
        return self._insist() if self.context.settings.ask_agent == "insist" and event.may_go_on else Reply()

    def _insist(self) -> Reply:
        """At the end of a turn in which an error was overcome: ask once to write it down, which takes another turn."""
        has_written = "<learning" in (self.event.said or "").lower()
        if has_written or not self._call().has_overcome_error():
            return Reply()
        with self._locked():
            return Reply(text=_turns().ask_once(self.context, self.id, now=self.now))

    def _call(self) -> ToolCall:
        from learnt.flow.warnings import ToolCall  # only needed at tool calls

        return ToolCall(self)

    def unseen(self, shown: Iterable[Learning]) -> list[Hit]:
        """Return the learnings that the conversation has not been given yet and that do not come from it."""
        seen = self.list_seen_ids(self.task)
        fresh = [learning for learning in shown if learning.id not in seen and learning.task != self.id]
        return [Hit(learning=learning, score=0.0, relevance=1.0) for learning in fresh]


def _openings() -> Any:
    from learnt.flow import opening  # only needed where a conversation starts

    return opening


def _errands() -> Any:
    from learnt.flow import errands  # only needed where a sub-agent starts

    return errands


def _turns() -> Any:
    from learnt.flow import turns  # only needed where a turn ends

    return turns


def _start_worker(context: Context, *, at_most_every_s: float = 0.0) -> None:
    from learnt.flow.background import start_worker  # only needed where a turn ends or a record is spooled

    start_worker(context, at_most_every_s=at_most_every_s)
