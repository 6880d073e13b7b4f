"""Learn from clients' existing transcripts and from the project's git history.

Each source is read once; a transcript that has grown is read again. A conversation is one task; its agent's messages
are debriefed like any other output.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain
from typing import Any

from learnt.clients.kit.transcript import About, TranscriptFile, about, lies_in, steps
from learnt.clients.kit.transcript import find as find_transcripts
from learnt.clients.registry import FOLDER_VARIABLES
from learnt.debrief.sigils import remove_sigils
from learnt.errors import LearntError, WrongRequest
from learnt.flow.asks import StepWatch, states_learning
from learnt.flow.background import refuse_without_project
from learnt.flow.context import Context
from learnt.flow.debriefs import AgentOutput, debrief, store_debrief
from learnt.flow.mining import (
    MAX_READ_CHARS,
    MiningReport,
    TaskReading,
    ask_about,
    learn_from,
    note_read,
    redact_discovery,
)
from learnt.flow.model_calls import LONG_LIMIT_S, asks_a_model, get_provider
from learnt.flow.people import Listener, is_new_or_stored, keep, may_vouch
from learnt.flow.turns import record_turn, transcript_source
from learnt.llm.calls import cost_usd
from learnt.mine.calls import Retry
from learnt.mine.commits import observe_commit
from learnt.mine.lessons import observe_words
from learnt.mine.observe import observe_steps
from learnt.mine.rejections import RejectionWatch
from learnt.model import Debrief, Task, Value, text_id
from learnt.store import mined, session_database, tasks
from learnt.system.git import Commit, commit_at, commits, still_stands
from learnt.text.clean import clean, join_messages
from learnt.text.redact import redact

_MAX_MESSAGES_CHARS = 1_000_000
_MAX_PROMPT_CHARS = 1_000
_TOKENS_PER_PROMPT = 2_000
_TOKENS_PER_ANSWER = 2_000
_CHARS_PER_TOKEN = 4


class UnreadHistory(Value):
    """Transcripts and commits that have not been read yet, and the cost of reading them."""

    transcripts: tuple[TranscriptFile, ...] = ()
    """Transcripts that are new or have grown, oldest first."""
    commits: tuple[Commit, ...] = ()
    read_before: int = 0
    """How many transcripts have already been read."""
    calls: int = 0
    """How many times the model would be asked."""
    forecast_usd: float | None = None
    """The estimated cost; None if the cost is unknown."""


class Transcripts:
    """Learns from transcripts and commits."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def find(self, *, since_ms: int) -> UnreadHistory:
        """Return the unmined transcripts and commits since the given time, and the cost of mining them."""
        refuse_without_project(self._context)
        database, root = self._store.database, self._context.root
        places = {name: os.environ[name] for name in FOLDER_VARIABLES if name in os.environ}
        files = find_transcripts(places, folder=root, since_ms=since_ms, database=session_database)
        loop_transcripts = tasks.transcripts(database)  # they are mined with their tasks, if at all
        own_files = [file for file in files if file.path not in loop_transcripts]
        unread = [file for file in own_files if mined.size_read(database, transcript_source(file.path)) != file.size]
        history = commits(root, since_ms=since_ms, environ=os.environ)
        sizes = [file.size for file in unread] if asks_a_model(self._context) else []
        return UnreadHistory(
            transcripts=tuple(reversed(unread)),
            commits=tuple(commit for commit in history if not mined.size_read(database, commit.id)),
            read_before=len(own_files) - len(unread),
            calls=len(sizes),
            forecast_usd=_forecast_usd(self._context, sizes),
        )

    def debrief(
        self, path: str, *, task: str = "", result: str | None = None, agent: str = "", model: str = ""
    ) -> tuple[Debrief, MiningReport]:
        """Debrief the agent's messages in a transcript, and mine the transcript's steps."""
        context, database = self._context, self._store.database
        header = self._read_header(path)
        size, source = size_of(path), transcript_source(path)
        if mined.size_read(database, source) == size:
            raise WrongRequest(f"{path} has already been read", hint="it will be read again once it has grown")
        first_prompt, messages = read_words(path)
        words, last = join_messages(messages), messages[-1] if messages else ""
        conversations = tasks.conversations(database, transcript=source, limit=1)
        id = task or (conversations[0].task if conversations else text_id("task", source))
        now = context.clock()
        new = Task(id=id, title=context.redact_line(first_prompt) or id, type="session", created_at=now, updated_at=now)
        stored_task = tasks.find(database, id) or new
        reading = TaskReading(task=stored_task)
        if not stored_task.skip_learnings:
            commit = commit_at(context.root, header.ended_at, environ=os.environ) if header.ended_at else ""
            reading = read_conversation(context, stored_task, path, messages, folder=header.folder, commit=commit)
            # Steps that may fail come first, so that a failure stores nothing and the transcript is read again later.
            reading = ask_about(context, reading, limit_s=LONG_LIMIT_S)
        with self._store.transaction():
            tasks.ensure(database, stored_task)
        figures: dict[str, Any] = {"result": result, "model": model or header.model, "transcript": source}
        figures["ended_at"] = min(header.ended_at or now, now)
        if stored_task.type == "session":
            session = stored_task.replace(agent=context.redact_line(agent), client=stored_task.client or header.client)
            read = {"size": size, "last": last}
            outcome = store_debrief(
                context, record_turn(context, session, words, branch=header.branch, read=read, **figures)
            )
        else:
            outcome = debrief(context, AgentOutput(task=id, text=words, agent=agent, **figures))
        if outcome.spooled:
            return outcome, MiningReport(task=id)
        return outcome, learn_from_transcript(context, reading, outcome.attempt, source, size)

    def learn_from_commit(self, commit: Commit) -> MiningReport:
        """Propose what a commit message teaches: why a change was taken back, a rule, or a decision with its reason."""
        task = Task(id=text_id("task", commit.id), title=commit.subject.strip() or commit.id, type="commit")
        discovery = observe_commit(commit.subject, commit.body, commit.files)
        reading = TaskReading(task=task)
        if discovery is not None and still_stands(self._context.root, commit.id, environ=os.environ):
            safe = redact_discovery(self._context, discovery.replace(commit=commit.id), task)
            reading = reading.replace(discoveries=(safe,))
        with self._store.transaction():
            report = learn_from(self._context, reading)
            mined.note_read(self._store.database, commit.id, size=1, task="", at=self._context.clock())
        return report

    def _read_header(self, path: str) -> About:
        """Return a transcript's header; a file that is not a transcript is not tried again until it changes."""
        try:
            return about(path, session_database)
        except WrongRequest:
            if os.path.isfile(path):
                note_read(self._context, transcript_source(path), size=size_of(path))
            raise


def size_of(path: str) -> int:
    """Return the size of a transcript, which may be a session in a database."""
    if os.path.exists(path):
        return os.path.getsize(path)
    file, _, session = path.rpartition("#")
    return int(session_database.session(file, session).get("size") or 0)


def size_or_0(path: str) -> int:
    """Return the size of a transcript; 0 if it no longer exists."""
    try:
        return size_of(path)
    except (LearntError, OSError):
        return 0


def read_words(path: str) -> tuple[str, list[str]]:
    """Return the first prompt and the agent's last messages without secrets; of too many, the oldest are dropped."""
    first_prompt = ""
    own, aside = _LastMessages(), _LastMessages()
    for step in steps(path, session_database):
        if step.kind == "prompt" and not step.aside:
            first_prompt = first_prompt or step.text[:_MAX_PROMPT_CHARS]
        elif step.kind == "said":
            (aside if step.aside else own).add(step.text)
    # If only a sub-agent spoke, the transcript is the sub-agent's own.
    messages = own.messages if own.messages or first_prompt else aside.messages
    safe = [redact(clean(text))[0] for text in (first_prompt, *messages)]
    return safe[0], safe[1:]


def read_conversation(
    context: Context, task: Task, path: str, messages: Sequence[str], *, folder: str, commit: str = ""
) -> TaskReading:
    """Apply the mining rules to a transcript and to the agent's last message.

    Earlier messages are not considered, because they are mostly plans or guesses. `commit` was checked out then; if it
    is empty, the one that is checked out now.
    """
    listener = Listener()
    retries: list[Retry] = []
    watch = StepWatch(listener.heard)
    rejections = RejectionWatch(folder or context.root)
    heard_steps = watch.follow(listener.follow(rejections.follow(steps(path, session_database))))
    by_steps = list(watch.note(observe_steps(heard_steps, folder=folder or context.root, retries=retries)))
    by_words = rejections.drop_told(observe_words(remove_sigils(messages[-1] if messages else "")))
    found = (
        discovery.replace(commit=discovery.commit or commit)
        for discovery in chain(by_steps, rejections.found, by_words)
    )
    discoveries = [redact_discovery(context, discovery, task) for discovery in found]
    # The last message may not be in the transcript yet.
    is_unwritten = watch.is_unwritten and not states_learning(messages[-1] if messages else "")
    vouches = may_vouch(context, path)
    return TaskReading(
        task=task,
        words=_read_dialogue(context, path, messages),
        discoveries=tuple(discoveries),
        retries=tuple(retries) if lies_in(folder or context.root, context.root) else (),
        heard=tuple(utterance.replace(typed=utterance.typed and vouches) for utterance in listener.heard),
        is_unwritten=is_unwritten,
    )


def _read_dialogue(context: Context, path: str, messages: Sequence[str]) -> str:
    """Return what the user and the agent said, for the model; without a model, nothing reads it."""
    if not asks_a_model(context):
        return ""
    dialogue = _LastMessages()
    for step in steps(path, session_database):
        if step.kind in ("prompt", "said") and not step.aside:
            dialogue.add(f"{'User' if step.kind == 'prompt' else 'Agent'}: {clean(step.text)}")
    return "\n\n".join(dialogue.messages) or "\n\n".join(messages)


def learn_from_transcript(context: Context, reading: TaskReading, attempt: str, source: str, size: int) -> MiningReport:
    """Store the learnings from a transcript, and how much of the transcript was read."""
    with context.store.transaction():
        discoveries = [
            discovery.replace(attempt=attempt)
            for discovery in reading.discoveries
            if is_new_or_stored(context, discovery)
        ]
        kept = keep(context, reading.heard, task=reading.task, attempt=attempt)
        report = learn_from(context, reading.replace(discoveries=tuple(discoveries)))
        mined.note_read(context.store.database, source, size=size, task=reading.task.id, at=context.clock())
    return kept.join(report)


def _forecast_usd(context: Context, sizes: Sequence[int]) -> float | None:
    """Return the estimated cost of asking the model about transcripts of these sizes; None if the cost is unknown."""
    if not sizes:
        return 0.0
    provider = get_provider(context)
    tokens = sum(min(size, MAX_READ_CHARS) // _CHARS_PER_TOKEN + _TOKENS_PER_PROMPT for size in sizes)
    cost = cost_usd(provider, tokens, _TOKENS_PER_ANSWER * len(sizes))
    has_token_price = provider.input_price is not None or provider.output_price is not None
    return cost if cost is None or (has_token_price and provider.name != "command") else cost * len(sizes)


class _LastMessages:
    """Messages in order; the oldest are dropped when there are too many."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self._length = 0

    def add(self, text: str) -> None:
        self.messages.append(text)
        self._length += len(text)
        while self._length > _MAX_MESSAGES_CHARS and len(self.messages) > 1:
            self._length -= len(self.messages.pop(0))
