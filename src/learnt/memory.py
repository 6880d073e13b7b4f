"""The façade for everything that learnt can do. Doors parse, call one method of `Memory` or its rooms, and render.

    memory = Memory.open(".")
    brief = memory.brief("Add password reset", task="task_1")
    …the agent works…
    memory.debrief("task_1", output, result="done")

The verbs are implemented in `flow/`. Modules that hooks do not need are loaded on first use.
"""

from __future__ import annotations

import os

from learnt.flow import briefs
from learnt.flow.briefs import BriefRequest, SearchRequest
from learnt.flow.context import Talk, is_upkeep_due, load_configuration, open_for_hook, open_project, open_user
from learnt.store.index import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Self

    from learnt.config import Configuration
    from learnt.flow.agent_templates import AgentTemplates
    from learnt.flow.claims import Work
    from learnt.flow.consolidation import Consolidation
    from learnt.flow.consolidation_run import ConsolidationRuns
    from learnt.flow.context import Context
    from learnt.flow.cues import Cues
    from learnt.flow.debriefs import Debriefs
    from learnt.flow.decisions import Decisions
    from learnt.flow.discoveries import Discoveries
    from learnt.flow.documents import TopicFiles
    from learnt.flow.folding import Similar
    from learnt.flow.goals import Goals
    from learnt.flow.handoff import HandoffReport, Handoffs
    from learnt.flow.history import Transcripts
    from learnt.flow.hook_events import Hooks
    from learnt.flow.learnings import Learnings, LearningsPage
    from learnt.flow.learnings_file import LearningsFile
    from learnt.flow.merging import Merges
    from learnt.flow.purge import Purge, Warnings
    from learnt.flow.reports import Reports
    from learnt.flow.review import Review
    from learnt.flow.tasks import Tasks
    from learnt.flow.tidy import TidyReport, Upkeep
    from learnt.flow.transfer import Transfer
    from learnt.flow.warnings import WatchedCalls
    from learnt.flow.why import Why
    from learnt.flow.worker import Worker
    from learnt.model import Brief, Claim, Debrief, Event, Failure, Hit, Learning, Triggers
    from learnt.settings import Settings
    from learnt.store.mined import StoredDiscovery
    from learnt.weigh.compare import Verdict


class _Room:
    """Loads a part of the flow on first access."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __set_name__(self, owner: type, attribute: str) -> None:
        self._attribute = attribute

    def __get__(self, memory: Memory | None, owner: type) -> Any:
        if memory is None:
            return self
        module = __import__(f"learnt.flow.{self._module}", fromlist=[self._name])
        room = getattr(module, self._name)(memory.context)
        memory.__dict__[self._attribute] = room
        return room


_room: Any = _Room


class Memory:
    """What a project has learnt."""

    tasks: Tasks = _room("tasks", "Tasks")
    """Tasks by hand, and escalations."""
    work: Work = _room("claims", "Work")
    """The loop's view of tasks: claims, the choice of a model, stuck runs."""
    goals: Goals = _room("goals", "Goals")
    """What sets of tasks serve."""
    discoveries: Discoveries = _room("discoveries", "Discoveries")
    """Raw findings."""
    review: Review = _room("review", "Review")
    """Items that a person has to decide."""
    file: LearningsFile = _room("learnings_file", "LearningsFile")
    """learnings.md: update, merge, clear."""
    reports: Reports = _room("reports", "Reports")
    """Activity, statistics, and the cost of model calls."""
    transfer: Transfer = _room("transfer", "Transfer")
    """Export, import, templates, backups."""
    transcripts: Transcripts = _room("history", "Transcripts")
    """Learning from existing transcripts and commits."""
    agents: AgentTemplates = _room("agent_templates", "AgentTemplates")
    """Agents' prompt templates."""
    hooks: Hooks = _room("hook_events", "Hooks")
    """The events in a client's conversations."""
    worker: Worker = _room("worker", "Worker")
    """Background work."""
    warnings: Warnings = _room("purge", "Warnings")
    """Warnings that a person dismisses or deletes."""
    cues: Cues = _room("cues", "Cues")
    """The situations in which learnings matter, asked of a model."""
    why: Why = _room("why", "Why")
    """Why a brief or a search says what it does."""
    consolidation: Consolidation = _room("consolidation", "Consolidation")
    """The ages of learnings, and what becomes of aged ones."""
    consolidations: ConsolidationRuns = _room("consolidation_run", "ConsolidationRuns")
    """Runs of consolidation."""
    decisions: Decisions = _room("decisions", "Decisions")
    """Escalations, and a person's answers."""
    merges: Merges = _room("merging", "Merges")
    """Merging learnings without loss."""
    topics: TopicFiles = _room("documents", "TopicFiles")
    """The topic files and their index."""
    calls: WatchedCalls = _room("warnings", "WatchedCalls")
    """The calls that may concern something."""
    _learnings: Learnings = _room("learnings", "Learnings")
    _debriefs: Debriefs = _room("debriefs", "Debriefs")
    _handoffs: Handoffs = _room("handoff", "Handoffs")
    _purge: Purge = _room("purge", "Purge")
    _upkeep: Upkeep = _room("tidy", "Upkeep")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.tidies_when_done = False

    @classmethod
    def open(
        cls,
        path_or_url: str | os.PathLike[str] = ".",
        *,
        create: bool = True,
        clock: Callable[[], int] | None = None,
        wait_ms: int | None = None,
    ) -> Self:
        """Open the store of the project that contains a folder, or at a PostgreSQL address; create it if it is missing.

        `wait_ms` is how long to wait for other writers; by default, the settings determine it.
        """
        return cls(open_project(os.fspath(path_or_url), create=create, clock=clock, wait_ms=wait_ms))

    @classmethod
    def open_for_hook(cls, path: str | os.PathLike[str] = ".", *, clock: Callable[[], int] | None = None) -> Self:
        """Open a store for a hook; for a store on a server its mirror (without one, reading raises NoStore)."""
        return cls(open_for_hook(os.fspath(path), clock=clock))

    @classmethod
    def open_user(cls, *, create: bool = True, clock: Callable[[], int] | None = None) -> Self:
        """Open only the user-wide store, for learnings that apply to all projects."""
        return cls(open_user(create=create, clock=clock))

    @staticmethod
    def load_configuration(path: str | os.PathLike[str] = ".") -> Configuration:
        """Return the settings for a folder and the source of each, without opening a store."""
        return load_configuration(os.fspath(path))

    def close(self) -> None:
        """Close all connections."""
        self.context.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.tidies_when_done:
            self._tidy_when_due()
        self.context.close(completed=kind is None)

    def _tidy_when_due(self) -> None:
        if is_upkeep_due(self.context):
            self._upkeep.tidy_beside_a_command()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from learnt.flow.moved_names import find_moved  # former names are rarely used

            return find_moved(self, name)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.context.settings

    @property
    def configuration(self) -> Configuration:
        """The settings in force, and the source of each."""
        return self.context.configuration

    @property
    def person(self) -> str:
        """The name of the person who uses this memory."""
        return self.context.person

    @person.setter
    def person(self, name: str) -> None:
        self.context.person = self.context.clean_person(name)

    def speak_as_agent(self, name: str, *, conversation: str = "", since: int = 0) -> None:
        """From now on, an agent speaks and not the person; `conversation` is the one that it takes part in.

        If that conversation might also be known by another id, `since` is when it began: the agent's marks count only
        for learnings from before.
        """
        self.context.by, self.context.person = "agent", name
        self.context.talk = Talk(id=conversation, since=since)

    @property
    def folder(self) -> str:
        """The folder with the store's files: the project's `.learnt`."""
        return self.context.store.place.folder

    @property
    def database_path(self) -> str:
        """The SQLite file, or the server's address without its password."""
        return self.context.store.database.path

    @property
    def server_project(self) -> str:
        """The project's name on its PostgreSQL server; it is empty for SQLite."""
        place = self.context.store.place
        return place.project if place.address else ""

    @property
    def root(self) -> str:
        """The project's folder; it is empty for the user-wide store."""
        return self.context.root

    @property
    def report(self) -> Callable[[str], None] | None:
        """Called with messages about additional work, such as tidying."""
        return self.context.report

    @report.setter
    def report(self, report: Callable[[str], None] | None) -> None:
        self.context.report = report

    tell = report
    """The former name of `report`, which is kept for one release."""

    @property
    def remarks(self) -> list[str]:
        """Notes for a person, for example about a missing source."""
        return self.context.remarks

    @property
    def mistake(self) -> str:
        """The fault in the settings, if the last valid ones are used instead."""
        return self.context.mistake

    @property
    def redactions(self) -> int:
        """How many secrets have been redacted from input and from names."""
        return self.context.redactions

    def add(
        self,
        title: str,
        *,
        context: str = "",
        observation: str = "",
        implication: str = "",
        action: str = "",
        tags: Sequence[str] = (),
        cues: Sequence[str] = (),
        domain: str = "",
        category: str = "",
        kind: str = "solution",
        polarity: str = "do",
        triggers: Triggers | dict[str, list[str]] | None = None,
        origin: str = "person",
        goal: str = "",
        task: str = "",
        discovery: str = "",
        commit: str = "",
        confidence: float | None = None,
        pinned: bool = False,
        created_at: int | None = None,
        by: str | None = None,
    ) -> Learning:
        """Add a learning. Only the title is required; equal learnings are not merged.

        `by` is who speaks, a `person` or an `agent`; by default the person, or for another origin nobody. A person
        vouches for the learning. An agent's is on trial, and the agent chooses neither origin, confidence nor pin.
        """
        record = {
            "title": title,
            "context": context,
            "observation": observation,
            "implication": implication,
            "action": action,
            "tags": tags,
            "cues": cues,
            "domain": domain,
            "category": category,
            "kind": kind,
            "polarity": polarity,
            "triggers": triggers or {},
            "origin": origin,
            "goal": goal,
            "task": task,
            "discovery": discovery,
            "commit": commit,
            "pinned": pinned,
            **({} if confidence is None else {"confidence": confidence}),
        }
        return self._learnings.add_all([record], created_at=created_at, by=by)[0]

    def add_all(
        self, records: Sequence[dict[str, Any]], *, created_at: int | None = None, by: str | None = None
    ) -> list[Learning]:
        """Add several learnings, all or none; each record contains the fields of `add`."""
        return self._learnings.add_all(records, created_at=created_at, by=by)

    def learn(self, title: str, *, task: str = "", **fields: Any) -> tuple[Learning, bool]:
        """Add a working agent's learning, and return whether it is new; the fields are those of `add`.

        A known learning recurs instead, but only once per task, and not for the task that it comes from.
        """
        return self._learnings.learn({"title": title, "task": task, **fields})

    def discover(self, text: str, *, type: str, task: str = "", **evidence: Any) -> StoredDiscovery:
        """Keep a raw finding, and learn from it what holds beyond its task; `type` is one of DISCOVERIES.

        `evidence` is `failed`, `error`, `worked`, `excerpt` and `files`. The result says what became of it.
        """
        return self.discoveries.add(text, type=type, task=task, **evidence)

    def get(self, id: str) -> Learning:
        """Return a learning from the first store that has it."""
        return self.context.get(id)

    def learnings(
        self,
        *,
        status: str | None = "active",
        domain: str | None = None,
        category: str | None = None,
        tag: str | None = None,
        kind: str | None = None,
        goal: str | None = None,
        min_confidence: float | None = None,
        scope: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> LearningsPage:
        """Return the matching learnings, newest first; `status=None` means any status."""
        what: Any = {"domain": domain, "category": category, "tag": tag, "kind": kind, "goal": goal}
        which = Filter(status=status, min_confidence=min_confidence, **what)
        return self._learnings.page(which, scope=scope, limit=limit, offset=offset)

    def titles(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the current titles of learnings that still exist, by id."""
        return self.context.titles(ids)

    def edit(
        self,
        id: str,
        *,
        reason: str = "",
        add_tags: Sequence[str] = (),
        drop_tags: Sequence[str] = (),
        add_cues: Sequence[str] = (),
        drop_cues: Sequence[str] = (),
        by: str | None = None,
        **changes: Any,
    ) -> Learning:
        """Change fields of a learning; the fields are those of `add`. A person vouches for the result."""
        more, fewer = {"tags": add_tags, "cues": add_cues}, {"tags": drop_tags, "cues": drop_cues}
        return self._learnings.edit(id, changes, reason=reason, more=more, fewer=fewer, by=by)

    def archive(self, id: str, *, reason: str = "") -> Learning:
        """Remove a learning from lists and briefs; it can be restored."""
        return self._learnings.archive(id, reason=reason)

    def restore(self, id: str, *, reason: str = "") -> Learning:
        """Make an archived, hidden, proposed or superseded learning active; a proposal then supersedes its members."""
        return self._learnings.restore(id, reason=reason)

    def hide(self, id: str, *, reason: str = "") -> Learning:
        """Keep a learning out of every brief."""
        return self._learnings.hide(id, reason=reason)

    def like(self, id: str, *, reason: str = "", by: str | None = None) -> Learning:
        """Vouch for a learning and raise its confidence a little; this has an effect once per person."""
        return self._learnings.like(id, reason=reason, by=by)

    def pin(self, id: str, *, pinned: bool = True, reason: str = "", by: str | None = None) -> Learning:
        """Vouch for a learning and show it first where it is relevant, whatever its confidence."""
        return self._learnings.pin(id, pinned=pinned, reason=reason, by=by)

    def supersede(self, old: str, new: str, *, reason: str = "") -> Learning:
        """Replace a learning with a better one; return the replaced learning."""
        return self._learnings.supersede(old, new, reason=reason)

    def supersedes(self, id: str) -> list[str]:
        """Return the ids of the learnings that this one replaced."""
        return self._learnings.superseded_by(id)

    def history(self, id: str) -> list[Event]:
        """Return every change to a learning, oldest first."""
        return self._learnings.history(id)

    def undo(self, id: str = "", *, reason: str = "") -> Learning:
        """Undo the last change to a learning, or the change with this event id.

        Without an id, take back the latest learning that was kept of what the person said to an agent.
        """
        return self._learnings.undo(id, reason=reason) if id else self._learnings.undo_said(reason=reason)

    def similar(self, learning: str | Learning, limit: int = 10, *, near_too: bool = False) -> list[Similar]:
        """Return the learnings most alike, each with the verdict how it relates; `near_too` adds merely near ones."""
        return self._learnings.similar(learning, limit=limit, near_too=near_too)

    def compare(self, older: str | Learning, newer: str | Learning) -> Verdict:
        """Return how a newer learning relates to an older one (`repeats`, …); both are learnings, ids or texts."""
        return self.merges.compare(older, newer)

    def purge(self, id: str) -> int:
        """Delete a learning permanently: rows, history, spool, backups, log, and this worktree's learnings files.

        Return how many backups contained it. An interrupted purge can be repeated. Nothing can restore the learning.
        """
        return self._purge.learning(id)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        min_confidence: float = 0.5,
        strategy: str = "",
        semantic_weight: float | None = None,
        status: str | None = "active",
        domain: str | None = None,
        category: str | None = None,
        exclude_goal: str | None = None,
        paths: Sequence[str] = (),
        command: str = "",
        tools: Sequence[str] = (),
        task_type: str = "",
        asked_by: str = "",
    ) -> list[Hit]:
        """Return the learnings that match a text, best first: triggered ones, then by `strategy` (or the settings)."""
        which: Any = {"status": status, "domain": domain, "category": category, "exclude_goal": exclude_goal}
        situation: Any = {"paths": paths, "command": command, "tools": tools, "task_type": task_type}
        request = SearchRequest(
            query=query,
            limit=limit,
            min_confidence=min_confidence,
            strategy=strategy,
            semantic_weight=semantic_weight,
            asked_by=asked_by,
            **which,
            **situation,
        )
        return briefs.search(self.context, request)

    def brief(
        self,
        task_text: str,
        *,
        agent: str | None = None,
        task: str | None = None,
        goal: str | None = None,
        exclude_goal: str | None = None,
        budget_tokens: int | None = None,
        paths: Sequence[str] = (),
        command: str = "",
        tools: Sequence[str] = (),
        task_type: str = "",
        only_new: bool = False,
        beside: Sequence[str] = (),
        model: str = "",
        model_reason: str = "",
        keep: bool = True,
        max_chars: int | None = None,
        asked_by: str = "",
        occasion: str = "task",
        client: str = "",
        pinned: bool = False,
        began_ns: int | None = None,
    ) -> Brief:
        """Return what an agent should know before this task, and store the receipt; the text may be empty.

        `paths`, `command` and `tools` describe what is about to happen. `only_new` leaves out learnings that the
        task was given before, and records nothing if none are left. `beside` lists learnings that the prompt contains
        elsewhere; they are left out and recorded as given. `model` and `model_reason` are shown in the loop's status.
        `keep=False` records nothing. `max_chars` is a limit in addition to the budget. `asked_by`, `occasion` and
        `client` are who asked, for what (ASKERS, OCCASIONS), and in which program. `pinned` gives pinned learnings even
        if they are irrelevant, as an `agent` gets them. `began_ns` (`time.perf_counter_ns`) is when the work began.
        """
        situation: Any = {"paths": paths, "command": command, "tools": tools, "task_type": task_type}
        asked: Any = {"asked_by": asked_by or "prompt", "occasion": occasion, "client": client, "began_ns": began_ns}
        limits: Any = {"budget_tokens": budget_tokens, "max_chars": max_chars, "only_new": only_new, "pinned": pinned}
        request = BriefRequest(
            text=task_text,
            agent=agent or "",
            goal=goal or "",
            task=task,
            exclude_goal=exclude_goal,
            beside=beside,
            model=model,
            model_reason=model_reason,
            keep=keep,
            **situation,
            **asked,
            **limits,
        )
        return briefs.brief(self.context, request)

    def explain(self, id: str) -> Brief:
        """Return a brief with its receipt; its text is rendered again if everything in it still exists."""
        return self.why.explain(id)

    def debrief(
        self,
        task: str,
        output: str,
        *,
        result: str | None = None,
        model: str = "",
        duration_ms: int | None = None,
        cost_usd: float | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        tokens: int | None = None,
        agent: str = "",
        task_type: str = "implement",
        model_reason: str = "",
        transcript: str = "",
        failure: Failure | None = None,
        claim: Claim | None = None,
        ended_at: int | None = None,
    ) -> Debrief:
        """Read an agent's output: store its learnings, failure report, marks and statistics.

        `tokens` is the total, if input and output are not counted separately. `failure` was found by other means, such
        as a verification. `claim` is the loop's: a result is accepted only while it is held. `ended_at`: default, now.
        """
        return self._debriefs.debrief(
            text=output,
            task=task,
            result=result,
            model=model,
            duration_ms=duration_ms,
            cost_usd=cost_usd,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            tokens=tokens,
            agent=agent,
            task_type=task_type,
            model_reason=model_reason,
            transcript=transcript,
            failure=failure,
            claim=claim,
            ended_at=ended_at,
        )

    def handoff(self, text: str = "", *, task: str = "") -> HandoffReport:
        """Check the learnings in a text and those that a task taught, and append them to the staging file."""
        return self._handoffs.handoff(text, task=task)

    def mark(self, learning: str, task: str, helpful: bool, *, by: str | None = None) -> Learning:
        """Record whether a learning helped with a task that was given it; only the first mark per pair is valid."""
        return self._learnings.mark(learning, task, helpful, by=by)

    def render_agent(
        self,
        template: str | os.PathLike[str],
        *,
        agent: str = "",
        context: Mapping[str, Any] | None = None,
        inject_learnings: bool = True,
        task: str | None = None,
    ) -> str:
        """Fill in a Jinja2 template (its text or a path) with `learnings` and the variables in `context`.

        The variable `learnings` contains the agent's standing learnings, fenced like a brief, or is empty. If the
        result contains them, they are recorded as a brief for the task. `context` may override the variable.
        """
        how: dict[str, Any] = {"agent": agent, "inject_learnings": inject_learnings, "task": task}
        return self.agents.render(template, variables=context, **how)

    def tidy(self, *, limit_s: float = 3_600.0) -> TidyReport:
        """Let unused learnings fade, archive old ones and propose to merge similar ones, as far as the time allows."""
        return self._upkeep.tidy(limit_s=limit_s)
