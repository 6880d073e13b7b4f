"""What learnt says while a conversation goes on in a client: at its start, at a prompt, at a call, after a failure.

Record, then speak: what is said is durable before it is returned, and what has nothing to say leaves no record. A
conversation is told nothing twice; what it was told is forgotten with it when the client compacts or clears it.
"""

from __future__ import annotations

import os
from zlib import crc32

from learnt.clients.events import tells_before
from learnt.flow.briefs import asked, fitted, made_brief
from learnt.model import Hit, Task, Value, new_id, text_id
from learnt.store import claims, learnings, tasks
from learnt.store.learnings import Filter
from learnt.store.spool import Locked
from learnt.text.clean import first_words
from learnt.text.triggers import Situation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from learnt.brief.render import Content, FailedBefore, Unfinished
    from learnt.clients.events import Event
    from learnt.memory import Memory
    from learnt.model import Brief, Learning
    from learnt.store.missteps import Misstep

# An answer has at most 9,500 characters, some of them in the frame around the text: clients cut at 10,000.
LONGEST_TEXT = 9_200
_LONGEST_COMMAND = 500
_LONGEST_ERROR = 300
_MOST_READ = 20_000  # a hook has little time
_MOST_TRIGGERED = 2
_MOST_UNFINISHED = 3
_UNFINISHED_MS = 14 * 24 * 3600 * 1000
_FORGETS = ("compact", "clear")
_AT_CALL = ("files", "commands", "tools")
_IN_LOOP = ("agent", "call", "result")
_LOCKS, _MOST_LOCKS = "conversations", 64
_STOPPED = (
    "\nThe call was stopped this once, because it failed here before. If it is what you want, make it again: it will "
    "not be stopped."
)


class Reply(Value):
    """What a client is told."""

    text: str = ""
    denies: bool = False
    """Whether the call is not to be made."""


class Conversing:
    """One event of a conversation, and what is known of the conversation."""

    def __init__(self, memory: Memory, event: Event, *, of_task: str, began_ns: int) -> None:
        """`of_task`: the task that `learnt work` has an agent do, which it briefs and debriefs itself."""
        self._memory = memory
        self._event = event
        self._of_task = of_task
        self._began_ns = began_ns
        # A sub-agent has not seen the prompt that the loop made: its conversation is its own there, too.
        self._is_loops = bool(of_task) and not event.agent_id
        self._id = of_task if self._is_loops else text_id("task", event.conversation)
        self._now = memory._clock()
        self._known: Task | None = None
        self._repeated: list[Misstep] | None = None
        self._signed: str | None = None

    def serve(self) -> Reply:
        """Do what the event asks for, and return what the client is told."""
        serve = {
            "session": self._session,
            "prompt": self._prompt,
            "agent": self._agent,
            "call": self._call,
            "result": self._result,
            "compaction": self._compaction,
            "stop": self._stop,
            "end": self._stop,
        }
        kind = self._event.kind
        asked = serve.get(kind) if kind in _IN_LOOP or not self._of_task else None
        if asked is None or self._event.is_end:
            return asked() if asked else Reply()
        # Calls are made side by side: what one of them hears, the others must know.
        with Locked(self._lock_path()):
            return asked()

    def _lock_path(self) -> str:
        """Return the file that the hooks of a conversation lock; others may share it."""
        folder = os.path.join(self._memory.store.place.folder, _LOCKS)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return os.path.join(folder, f"{crc32(self._id.encode()) % _MOST_LOCKS:02x}.lock")

    def _session(self) -> Reply:
        """A conversation begins, goes on, or goes on without what it knew."""
        before: dict[str, Learning] = {}
        known = tasks.find(self._database, self._id)
        forgets = self._event.source in _FORGETS
        if known is not None and forgets:
            if self._event.source == "compact":
                before = self._given_before(known)
            self._memory.store.record("forgotten", {"task": self._id, "at": self._now})
            self._known = known.replace(fresh_since=self._now)
        shown = {**before, **{one.id: one for one in self._standing(proven_only=True)}}
        is_new = known is None or forgets
        return self._said(
            "compaction" if self._event.source == "compact" else "session",
            learnings=self._unseen(shown.values()),
            unfinished=self._unfinished() if is_new else (),
            notes=self._notes() if is_new else (),
        )

    def _agent(self) -> Reply:
        return self._said("agent", learnings=self._unseen(self._standing()))

    def _prompt(self) -> Reply:
        event = self._event
        if not event.prompt.strip():
            return Reply()
        brief = self._memory.brief(
            event.prompt,
            task=self._id,
            task_type="session",
            agent=event.agent,
            client=event.client,
            occasion="prompt",
            asked_by="hook",
            only_new=True,
            max_chars=LONGEST_TEXT,
            began_ns=self._began_ns,
        )
        return Reply(text=brief.text)

    def _call(self) -> Reply:
        """Before a call: tell what it did the last time."""
        how = self._memory.settings.before_tool
        if how == "off":
            return Reply()
        misstep = self._misstep()
        if misstep is not None and how == "stop_once":
            said = self._said("tool", misstep=misstep, denies=True)
            # What had no room was neither recorded nor said: such a call would be refused again and again.
            return said.replace(text=said.text + _STOPPED, denies=True) if said.text else said
        if not tells_before(self._event):
            return Reply()
        return self._said("tool", misstep=misstep, learnings=self._triggered(_AT_CALL))

    def _result(self) -> Reply:
        """After a call: remember how it ended and, where it failed, tell what helped."""
        event = self._event
        late = () if tells_before(event) or self._memory.settings.before_tool == "off" else _AT_CALL
        if not event.failed:
            if event.command and event.failed is False:
                self._note_success()
            return self._said("tool", learnings=self._triggered(late))
        misstep = self._misstep()
        self._note_failure()
        return self._said("failure", misstep=misstep, learnings=self._triggered((*late, "errors")))

    def _compaction(self) -> Reply:
        """Before a conversation is made shorter: what its summary should keep."""
        known = tasks.find(self._database, self._id)
        given = self._given_before(known) if known else {}
        if not given:
            return Reply()
        from learnt.brief.render import length_in_json
        from learnt.text.fence import harmless

        text = "Keep these learnings with their ids in the summary:"
        for one in reversed(given.values()):  # the latest first
            longer = f"{text}\n- {harmless(one.title)} ({one.id})"
            if length_in_json(longer) > LONGEST_TEXT:
                break
            text = longer
        return Reply(text=text)

    def _stop(self) -> Reply:
        """A turn is over, or the conversation: perhaps within a turn that nothing told the end of."""
        from learnt.clients.spoken import has_words

        event = self._event
        if event.said is None and not has_words(event.transcript):
            self._memory.start_worker()
            return Reply()
        self._memory.end_turn(
            self._id,
            event.said or "",
            agent=event.agent,
            client=event.client,
            transcript=event.transcript,
            parent=self._parent,
        )
        return Reply()

    @property
    def _database(self) -> Any:
        return self._memory.store.database

    @property
    def _parent(self) -> str:
        """What a sub-agent works for, a conversation or a task of the loop; empty for a conversation with a person."""
        event = self._event
        if not event.agent_id:
            return ""
        return self._of_task or text_id("task", event.replace(agent_id="").conversation)

    @property
    def _task(self) -> Task:
        if self._known is None:
            new = Task(
                id=self._id,
                title=self._id,  # until its first prompt is known
                type="session",
                agent=self._memory._line(self._event.agent),
                client=self._event.client,
                parent=self._parent,
                created_at=self._now,
                updated_at=self._now,
            )
            self._known = tasks.find(self._database, self._id) or new
            if self._is_loops:
                # Each attempt is a conversation of its own, which begins with its claim.
                held = [one.started_at for one in claims.all_of(self._database) if one.task == self._id]
                self._known = self._known.replace(fresh_since=max((*held, self._known.fresh_since)))
        return self._known

    def _said(
        self,
        occasion: str,
        *,
        misstep: Misstep | None = None,
        learnings: Sequence[Hit] = (),
        unfinished: tuple[Unfinished, ...] = (),
        notes: tuple[str, ...] = (),
        denies: bool = False,
    ) -> Reply:
        """Make a brief of what there is to say, keep it, and return it."""
        if not (misstep or learnings or unfinished or notes):
            return Reply()
        from learnt.brief.render import Content, FailedBefore, Shown

        failed: tuple[FailedBefore, ...] = ()
        if misstep is not None:
            told = {"command": misstep.command, "error": misstep.error, "worked": misstep.worked}
            failed = (FailedBefore(**told, at=misstep.failed_at),)
        everything = Content(
            id=new_id("brief", self._now),
            now_ms=self._now,
            learnings=tuple(Shown(learning=hit.learning) for hit in learnings),
            failed=failed,
            unfinished=unfinished,
            notes=notes,
        )
        brief = self._brief(everything, learnings, occasion)
        if not brief.text or brief.tokens > self._memory.settings.brief_tokens:
            return Reply()
        warning = None
        if misstep is not None:
            whom = {"task": self._id, "sign": misstep.sign, "brief": brief.id, "agent": brief.agent}
            # After a failure the call that is warned of is over.
            failures = int(occasion == "failure")
            warning = {**whom, "denied": int(denies), "failures": failures, "warned_at": self._now}
        self._memory._recorded(self._task, brief, self._began_ns, warning=warning)
        return Reply(text=brief.text)

    def _brief(self, everything: Content, hits: Sequence[Hit], occasion: str) -> Brief:
        from learnt.brief.select import Choice

        event = self._event
        # A warning tells the command itself, and a purge must find it there.
        command = self._line(event.command, _LONGEST_COMMAND) if event.command and not everything.failed else ""
        tools = (self._memory._line(event.tool),) if event.tool else ()
        content, receipt = fitted(
            everything,
            [Choice(hit=hit) for hit in hits],
            "",
            asked(Situation(paths=event.paths, command=command, tools=tools), only_new=True),
            (),
            settings={"budget_tokens": self._memory.settings.brief_tokens},
            max_chars=LONGEST_TEXT,
        )
        made = made_brief(self._task, content, receipt, agent=self._memory._line(event.agent))
        return made.replace(client=event.client, occasion=occasion, asked_by="hook")

    def _misstep(self) -> Misstep | None:
        """Return what the command did the last time, if it is known and this conversation was not told yet."""
        from learnt.store import missteps

        since = self._task.fresh_since
        known = [one for one in self._missteps() if one.is_known and self._now - one.failed_at < missteps.TOLD_FOR_MS]
        if not known:
            return None
        # First what waits: it may be brought into the database at this very moment.
        waiting = [one.body["warning"] for one in self._memory.store.waiting(self._id) if one.kind == "warning"]
        if any(missteps.warned_since(self._database, self._id, one.sign, since) for one in known):
            return None
        is_told = any(one["sign"] == known[0].sign and one["warned_at"] >= since for one in waiting)
        return None if is_told else known[0]

    def _missteps(self) -> list[Misstep]:
        """Return the missteps that the command repeats: the very same one first, then those with the same mistake."""
        if self._repeated is None:
            from learnt.mine.missteps import asked_by, repeats
            from learnt.store import missteps

            sign, command = self._sign(), self._event.command
            where = {"root": self._memory.root, "folder": self._event.folder}
            same = missteps.find(self._database, sign) if sign else None
            alike = missteps.of_asked(self._database, asked_by(command, **where)) if sign else []
            others = [one for one in alike if one.sign != sign and repeats(command, one.asked, one.wrong, **where)]
            self._repeated = [*([same] if same else []), *others]
        return self._repeated

    def _sign(self) -> str:
        if self._signed is None:
            from learnt.mine.missteps import sign_of

            event = self._event
            self._signed = sign_of(event.command, self._memory.root, event.folder) if event.command else ""
        return self._signed

    def _note_failure(self) -> None:
        """Remember that a command failed; that of a test or a linter says nothing about the command."""
        from learnt.mine.complaint import first_line, is_conflict, is_no_error, why
        from learnt.mine.missteps import counts, is_question

        event, sign = self._event, self._sign()
        error = why(event.output) or first_line(event.output)
        if not sign or not counts(event.command, error) or is_no_error(event.output) or is_conflict(event.output):
            return
        if not error and is_question(event.command):
            return
        self._memory.store.record("misstep", {**self._body(), "error": self._line(error, _LONGEST_ERROR)})

    def _note_success(self) -> None:
        """Remember that a command succeeded, where that changes anything."""
        from learnt.mine.missteps import succeeded
        from learnt.store import missteps

        command, sign = self._event.command, self._sign()
        if not succeeded(command, self._event.output):
            return
        open_ones = [one for one in missteps.unsettled(self._database, self._id) if one.sign != sign]
        replaced: dict[str, Any] = {}
        if open_ones and sign:
            from learnt.mine.missteps import may_replace, replaces, wrong_words

            kept = self._line(command, _LONGEST_COMMAND)
            for one in open_ones if may_replace(command) else ():
                # The same words in another folder: that they worked there would tell nobody what to do.
                if one.command != kept and replaces(one.command, command, one.error):
                    replaced[one.sign] = wrong_words(
                        one.command, command, one.error, self._memory.root, self._event.folder
                    )
        if replaced or self._missteps():
            self._memory.store.record("success", {**self._body(), "replaces": replaced})

    def _body(self) -> dict[str, Any]:
        """Return what is kept of a call, however it ended."""
        return {
            "sign": self._sign(),
            "command": self._line(self._event.command, _LONGEST_COMMAND),
            "repeats": [one.sign for one in self._missteps()],
            "task": self._id,
            "at": self._now,
        }

    def _line(self, text: str, longest: int) -> str:
        """Return a text on one line, without secrets, and only then cut: a part of a secret is not known as one."""
        return self._memory._line(first_words(text, _MOST_READ), longest)[:longest].rstrip()

    def _triggered(self, kinds: Sequence[str]) -> list[Hit]:
        """Return the trusted gotchas that have an exact sign in this call, and that the conversation has not seen."""
        event = self._event
        runs_or_edits = bool(event.paths or event.command)
        if not kinds or not (runs_or_edits or event.tool):
            return []
        from learnt.text.clean import clean
        from learnt.text.triggers import Signs

        text = clean(event.output) if "errors" in kinds else ""
        paths, tools = tuple(map(clean, event.paths)), (clean(event.tool),) if event.tool else ()
        signs = Signs(Situation(text=text, paths=paths, command=clean(event.command), tools=tools))
        wanted = {kind for kind in kinds if (event.paths if kind == "files" else runs_or_edits or kind == "tools")}
        anchors = {kind: found for kind, found in signs.anchors().items() if kind in wanted}
        which = Filter(
            exclude_task=self._id,
            exclude_ids=tuple(sorted(self._seen(self._task))),
            trusted_from=self._memory.settings.brief_confidence,
        )
        hits = []
        for store in self._memory.sound_stores():
            found = learnings.with_triggers(store.database, anchors, signs.show, which)
            for one in learnings.get_all(store.database, list(found)).values() if found else ():
                if _warns(one, found[one.id]):
                    learning = one.replace(scope=store.place.scope)
                    hits.append(Hit(learning=learning, score=0.0, relevance=1.0, trigger=found[one.id]))
        best = sorted(hits, key=lambda hit: (not hit.learning.pinned, -hit.learning.confidence, hit.learning.id))
        return best[:_MOST_TRIGGERED]

    def _standing(self, *, proven_only: bool = False) -> list[Learning]:
        from learnt.flow.standing import standing

        return standing(self._memory, agent=self._event.agent, proven_only=proven_only)

    def _unseen(self, shown: Iterable[Learning]) -> list[Hit]:
        """Return the learnings that the conversation was not given yet, and did not teach itself."""
        seen = self._seen(self._task)
        fresh = [one for one in shown if one.id not in seen and one.task != self._id]
        return [Hit(learning=one, score=0.0, relevance=1.0) for one in fresh]

    def _seen(self, task: Task) -> list[str]:
        """Return the ids of what the conversation was given since it last forgot, the oldest first."""
        return list(self._memory._injected(task.id, since=task.fresh_since))

    def _given_before(self, task: Task) -> dict[str, Learning]:
        """Return what the conversation was given and is still to be told, as it stands now."""
        given = self._seen(task)
        found: dict[str, Learning] = {}
        for store in self._memory.sound_stores():
            for id, one in learnings.get_all(store.database, given).items():
                if one.status == "active":
                    found.setdefault(id, one.replace(scope=store.place.scope))
        return {id: found[id] for id in given if id in found}

    def _unfinished(self) -> tuple[Unfinished, ...]:
        """Return what failed on the branch that is checked out, and was not finished."""
        from learnt.project import head_branch

        branch = head_branch(self._memory.root) if self._memory.root else ""
        if not branch:
            return ()
        from learnt.brief.render import Unfinished
        from learnt.debrief.reports import NO_REPORT

        since = self._now - _UNFINISHED_MS
        found = tasks.unfinished(self._database, branch=branch, since=since, limit=_MOST_UNFINISHED)
        return tuple(
            Unfinished(
                task=task.id, title=task.title, reason=report.reason, suggestion=report.suggestion, at=report.created_at
            )
            for task, report in found
            # Of a conversation whose first words nobody knows, a failure without a reason tells nothing.
            if task.id != self._id and not (task.title == task.id and report.reason.endswith(NO_REPORT))
        )

    def _notes(self) -> tuple[str, ...]:
        """Return what the person should hear of."""
        waiting = learnings.count(self._database, Filter(status="proposed"))
        if not waiting or learnings.count(self._database, Filter()) <= self._memory.settings.summarise_above:
            return ()
        return (f"Consolidation is due: {waiting} proposals wait for the user, who can decide with `learnt review`.",)


def _warns(learning: Learning, trigger: str) -> bool:
    """Say whether a learning is worth an interruption: what answers this error, or a gotcha on this very call.

    What was read off a command that failed is about all that its program can be asked for: the misstep itself warns
    where the same is asked again.
    """
    kind, _, pattern = trigger.partition(": ")
    if kind == "errors":
        return True
    is_gotcha = learning.kind == "gotcha" or learning.polarity == "avoid"
    return is_gotcha and (
        learning.origin == "person" or (kind == "files" and not any(sign in pattern for sign in "*?["))
    )
