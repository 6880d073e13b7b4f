"""The tools, resources and prompts for an agent: each makes one call to the façade and returns plain text.

Every call opens the store again, so that a server that has been running for days notices other writers, changed
settings and a database that was unavailable for a while. Calls run one at a time, because a connection belongs to one
thread. No tool deletes anything.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from learnt.clients.registry import client_name, conversation_of_shell
from learnt.doors.mcp.words import fence_lines, format_brief, format_cache, format_learning, format_learnings, prompt
from learnt.doors.output import describe_debrief, describe_discovery, describe_mark
from learnt.doors.reasons import describe_receipt, describe_why_not, list_mentioned
from learnt.errors import LearntError, NotFound, WrongRequest
from learnt.memory import Memory
from learnt.model import check_goal, is_id, text_id
from learnt.text.fence import fenced, without_tags
from learnt.text.times import DAY_MS

CALLER: ContextVar[str] = ContextVar("caller", default="mcp")
"""The name that the history records for changes made here."""
STATED: ContextVar[str] = ContextVar("stated", default="")
"""The conversation that the client states in a call, as hooks know it."""

_MAX_SIMILAR = 3
_RECENT_MS = 30 * DAY_MS
_TaskId = Annotated[
    str, Field(description="The id that `brief` gave, task_…; where hooks brief you, this conversation if left out")
]
# A single text is a list of one.
_Texts = Annotated[tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)]
_Paths = Annotated[_Texts, Field(description="Files that are worked on")]
_WHEN = (
    "A few situations or symptoms in which it will matter again, in the words in which a user would put them, not in "
    "those of the learning; at most 8, of 100 characters"
)
_UNCLEAR = "Several conversations are open in this project, and the client does not tell which one calls"
_Command = Annotated[str, Field(description="A command that is about to run")]


class Tools:
    """One project's tools, resources and prompts."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._one_at_a_time = threading.Lock()
        self._started_at = time.time_ns() // 1_000_000

    def brief(
        self,
        text: Annotated[str, Field(description="What is to be done, in the words of the task")],
        *,
        task: Annotated[
            str, Field(description="The task's id, task_…, if it has one; otherwise `brief` gives a new one")
        ] = "",
        agent: Annotated[str, Field(description="Your role: engineer, tester, reviewer, …")] = "",
        goal: Annotated[str, Field(description="What a new task serves, named like a file")] = "",
        paths: _Paths = (),
        command: _Command = "",
    ) -> str:
        """Call this before you start on a task: it tells what failed before, and the few learnings that matter."""
        with self._open() as memory:
            own = "" if goal else self._conversation_of_hooks(memory)
            brief = memory.brief(
                text,
                task=task or os.environ.get("LEARNT_TASK") or own,
                task_type="session" if own else "",
                only_new=bool(own) and task in ("", own),
                agent=agent or CALLER.get(),
                goal=goal,
                paths=paths,
                command=command,
                asked_by="tool",
                client=_caller_client(),
            )
            remark = "" if task else self._remark(memory)
        return format_brief(brief) + remark

    def recall(
        self,
        query: Annotated[str, Field(description="Any text: a question, an error message, a command, a path")],
        limit: Annotated[int, Field(ge=1, le=50, description="How many to return at most")] = 5,
        paths: _Paths = (),
        command: _Command = "",
    ) -> str:
        """Call this when something fails or seems risky: it finds what was learnt about it. It is only counted."""
        with self._open() as memory:
            hits = memory.search(query, limit=limit, paths=paths, command=command, asked_by="tool")
        return format_learnings([hit.learning for hit in hits]) or "Nothing known fits. Other words may find more."

    def learn(
        self,
        title: Annotated[str, Field(description="The learning in one sentence: what to do or to avoid, and where")],
        *,
        observation: Annotated[str, Field(description="What you noticed")] = "",
        action: Annotated[str, Field(description="What exactly to do next time")] = "",
        context: Annotated[str, Field(description="What you were working on")] = "",
        avoid: Annotated[bool, Field(description="Whether it is something to avoid")] = False,
        when: Annotated[_Texts, Field(description=_WHEN)] = (),
        tags: Annotated[_Texts, Field(description="Words to find it by")] = (),
        files: Annotated[_Texts, Field(description="Files that it is about, as patterns: src/*.py")] = (),
        commands: Annotated[_Texts, Field(description="Commands that it is about")] = (),
        task: _TaskId = "",
    ) -> str:
        """Call this once you know something that will help with other tasks here; it starts on trial."""
        with self._open() as memory:
            task = task or self._conversation_of_hooks(memory)
            learning, is_new = memory.learn(
                title,
                observation=observation,
                action=action,
                context=context,
                polarity="avoid" if avoid else "do",
                cues=when,
                tags=tags,
                triggers={"files": list(files), "commands": list(commands)},
                task=task,
            )
            similar = memory.similar(learning, _MAX_SIMILAR) if is_new else []
            remark = "" if task else self._remark(memory)
        redacted = f"\nsecrets redacted: {memory.redactions}" if memory.redactions else ""
        known = "" if learning.status == "active" else f" ({learning.status})"
        others = "".join(f"\nsimilar ({one.verdict}): {one.learning.id}" for one in similar)
        return f"{'Kept' if is_new else f'Known already{known}'}: {learning.id}{others}{redacted}{remark}"

    def discover(
        self,
        text: Annotated[str, Field(description="What was found, in one sentence")],
        type: Annotated[
            Literal["blocker", "constraint", "pattern", "decision", "dependency"],
            Field(
                description="blocker: it stopped the work; constraint: a limit that holds; pattern: what works here; "
                "decision: a choice, with its reason; dependency: what this task needs first"
            ),
        ],
        *,
        failed: Annotated[str, Field(description="The command or file that failed")] = "",
        error: Annotated[str, Field(description="The error that told so")] = "",
        worked: Annotated[str, Field(description="What worked instead")] = "",
        why: Annotated[str, Field(description="The words or facts that it rests on")] = "",
        files: _Paths = (),
        task: _TaskId = "",
    ) -> str:
        """Call this to keep a raw finding as evidence; what holds beyond its task becomes a learning by rules."""
        with self._open() as memory:
            task = task or self._conversation_of_hooks(memory)
            evidence = {"failed": failed, "error": error, "worked": worked, "excerpt": why, "files": files}
            stored = memory.discover(text, type=type, task=task, **evidence)
            titles = memory.titles([stored.learning])
            remark = "" if task else self._remark(memory)
        return describe_discovery(stored, titles) + remark

    def debrief(
        self,
        output: Annotated[
            str,
            Field(
                description="What the next agent should know, in your own words; with lines of LEARNING_HELPFUL: <id> "
                "or LEARNING_NOT_HELPFUL: <id>, <learning>…</learning>, <failure-report>…</failure-report>, and "
                "<task-done/> or <task-failed/>"
            ),
        ],
        task: _TaskId = "",
        result: Annotated[
            str, Field(description="done, failed, incomplete or interrupted; else as the output says")
        ] = "",
        model: Annotated[str, Field(description="The model that did it")] = "",
    ) -> str:
        """Call this when a task is over or handed on: it keeps what you learnt, what failed, and what helped."""
        own = os.environ.get("LEARNT_TASK")
        if own and task in ("", own):
            raise WrongRequest(
                "`learnt work` started you, and reads your last answer itself", hint="say the same there instead"
            )
        with self._open() as memory:
            memory.tidies_when_done = True
            task = task or self._conversation_of_hooks(memory)
            report = memory.debrief(
                task or memory.tasks.new_id(), output, result=result or None, model=model, agent=CALLER.get()
            )
            remark = "" if task else self._remark(memory)
        return "\n".join(describe_debrief(report, has_given_task=bool(task), verbose=True)) + remark

    def mark(
        self,
        learning: Annotated[str, Field(description="The learning's id, learn_…")],
        task: _TaskId = "",
        *,
        helpful: Annotated[bool, Field(description="Whether it helped")],
    ) -> str:
        """Call this to say whether a learning in your brief helped; it counts once for each learning and task."""
        with self._open() as memory:
            task = task or self._conversation_of_hooks(memory)
            if not task:
                missing = f"`task` is missing. {_UNCLEAR}" if self._remark(memory) else "`task` is missing"
                raise WrongRequest(missing, hint="give the id that `brief` gave, task_…")
            marked = memory.mark(learning, task, helpful)
        return describe_mark(marked, helpful=helpful)

    def explain(
        self,
        brief: Annotated[str, Field(description="The brief's id, brief_…")],
        why_not: Annotated[str, Field(description="A learning's id: only why the brief does not contain it")] = "",
    ) -> str:
        """Call this to see why a brief said what it said: everything considered, and why some of it was left out."""
        with self._open() as memory:
            explained = memory.explain(brief)
            if why_not:
                answer = memory.why.not_in_brief(explained, why_not)
                lines = describe_why_not(answer, memory.titles([answer.rival]), f"in {explained.id}")
                return fence_lines(lines, explained.id)
            titles = memory.titles(list_mentioned(explained))
        return fence_lines(describe_receipt(explained, titles), explained.id)

    def learnings_file(self) -> str:
        """What this project has learnt, as people and agents left it."""
        # Clients list this resource and may read it without being asked, so a missing file is not an error.
        return self._read_file("") or "There is no learnings file yet. For the user: `learnt update` writes it.\n"

    def learnings_of_goal(self, goal: str) -> str:
        """What was learnt for one goal."""
        check_goal(goal)
        text = self._read_file(goal)
        if not text:
            raise NotFound(f"there is no learnings file of {goal} yet", hint="`learnt update` writes it")
        return text

    def learning(self, id: str) -> str:
        """One learning in full."""
        with self._open() as memory:
            return fenced(format_learning(memory.get(id)), id)

    def standing(self, agent: str) -> str:
        """What an agent of this role should always know, and the age of this server's cached copy."""
        with self._open() as memory:
            learnings = memory.agents.standing(agent)
            state = memory.agents.cache_state()
        text = format_learnings(learnings) or "There are no standing learnings for this agent."
        return f"{text}\n{format_cache(state)}\n"

    def brief_prompt(self, task: Annotated[str, Field(description="What is to be done")]) -> str:
        """Start on a task with what is known about it."""
        return f"{task}\n\n{self.brief(task)}"

    def debrief_prompt(self, task: Annotated[str, Field(description="The task's id, task_…")] = "") -> str:
        """End a task, or hand it on: what to tell the next agent."""
        return prompt("debrief", with_task=f" for `{task}`" if task else "")

    def _read_file(self, goal: str) -> str:
        """Return a learnings file, fenced as data; empty if it does not exist."""
        with self._open() as memory:
            text = memory.file.read(goal)
        return "" if text is None else fenced(without_tags(text), "learnings.md")

    def is_briefed_by_hooks(self, caller: str) -> bool:
        """Return whether a client's hooks have been called here of late, so that they brief its conversations."""
        try:
            with Memory.open(self._folder, create=False) as memory:
                return memory.hooks.has_fired(client_name(caller), since=self._started_at - _RECENT_MS)
        except (LearntError, OSError):
            return False

    def _conversation_of_hooks(self, memory: Memory) -> str:
        """Return the task of the caller's conversation, if its hooks have been called since this server started."""
        return self._find_conversation(memory)[0]

    def _find_conversation(self, memory: Memory) -> tuple[str, bool]:
        """Return the same, and whether it cannot be told from another open conversation.

        What the call states counts first, then what the environment states, if that conversation is open. Otherwise the
        only one that is open is meant.
        """
        session = _stated_by_environment()
        found, is_unclear = memory.hooks.find_live(_caller_client(), stated=session, since=self._started_at)
        if STATED.get() and (found or is_unclear):
            return text_id("task", STATED.get()), False
        return found, is_unclear

    def _remark(self, memory: Memory) -> str:
        """Return why a task of its own is used for this call, if hooks brief the conversation that makes it."""
        return f"\n{_UNCLEAR}: this is kept apart from them." if self._find_conversation(memory)[1] else ""

    def _conversation(self, memory: Memory) -> dict[str, Any]:
        """Return the conversation that the caller takes part in.

        If neither hooks nor the client tell it, it is one for each caller as long as this server runs.
        """
        own = os.environ.get("LEARNT_TASK", "")
        if is_id("task", own):
            return {"conversation": own}
        found, is_unclear = self._find_conversation(memory)
        stated = text_id("task", STATED.get()) if STATED.get() else _stated_by_environment()
        known = found or ("" if is_unclear else stated)
        if known:
            return {"conversation": known}
        name = f"mcp {os.getpid()} {self._started_at} {CALLER.get()}"
        return {"conversation": text_id("task", name), "since": self._started_at}

    @contextmanager
    def _open(self) -> Iterator[Memory]:
        if os.environ.get("LEARNT_INTERNAL"):
            raise WrongRequest("this is one of learnt's own model calls", hint="answer it without these tools")
        with self._one_at_a_time:
            try:
                with Memory.open(self._folder, create=False) as memory:
                    memory.speak_as_agent(CALLER.get(), **self._conversation(memory))
                    yield memory
            finally:
                _reap_children()


def _caller_client() -> str:
    """Return the name under which the calling client's activity is stored; empty if it is unknown."""
    return client_name(CALLER.get().partition(": ")[2])


def _stated_by_environment() -> str:
    """Return the task of the session that the client states in our environment; empty if it does not."""
    stated = conversation_of_shell(os.environ, of=_caller_client())
    return text_id("task", stated) if stated else ""


def _reap_children() -> None:
    """Reap background workers that have exited."""
    try:
        while sys.platform != "win32" and os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return
