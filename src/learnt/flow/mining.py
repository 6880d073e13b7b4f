"""Extract learnings from agents' work, by rules or by the configured model.

Material is processed task by task. Everything slow or likely to fail (transcripts, the model) comes first. Then one
transaction stores the discoveries and learnings and deletes the material. If the model's answer is unusable or a
spending cap forbids the question, the rules serve that task. If the model cannot be reached, the material is kept for
the next run, but only a few times. New learnings are on trial; a person decides on a model's revisions and removals.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

from learnt.clients.kit.transcript import Step, steps
from learnt.debrief.sigils import kind_of, remove_sigils
from learnt.errors import LearntError, ModelFailed, NoModel, SpendingCap, TryAgain
from learnt.flow.briefs import SearchRequest, search
from learnt.flow.context import Context, Talk
from learnt.flow.folding import add_or_repeat, refuse
from learnt.flow.model_calls import ask_model, asks_a_model
from learnt.flow.warnings import remember_retry
from learnt.llm import ModelRequest
from learnt.mine.ask import TEMPLATES, ProposedChange, ProposedChanges, cut_material, make_request, read_changes
from learnt.mine.attempts import observe_attempts
from learnt.mine.calls import Retry
from learnt.mine.choices import observe_choices, observe_need
from learnt.mine.classify import complete
from learnt.mine.extract import LearningDraft, NoDraft, extract
from learnt.mine.lessons import observe_words
from learnt.mine.observe import observe_steps
from learnt.mine.people import Utterance
from learnt.mine.quality import find_flaw, find_flaw_in
from learnt.mine.rejections import observe_rejections
from learnt.mine.reviews import find_recurring, observe_reviews, read_findings
from learnt.model import PROGRAM, TEXT_LIMIT, TITLE_LIMIT, Attempt, Discovery, Learning, Task, Value, new_id, text_id
from learnt.project import head_commit
from learnt.store import goals, learnings, mined, reviews, session_database, tasks
from learnt.store.database import Database
from learnt.store.learnings import Change
from learnt.store.mined import Material
from learnt.store.reviews import Escalation
from learnt.system.templates import read_template
from learnt.text.records import read_fields
from learnt.text.redact import redact
from learnt.text.times import HOUR_MS
from learnt.weigh import confidence
from learnt.weigh.confidence import PERSON, STATEMENT_FIELDS, author_of

MAX_READ_CHARS = 24_000
_MAX_NEAREST = 8
_MAX_QUERY_CHARS = 4_000
_MAX_BY_RULES = 10
_FINDING = "finding"
# These are found by comparing reviews, so the model is not asked about them.
_BY_RULES_ALONE = (_FINDING, "review")
_LEFT_TO_THE_MODEL = "left to the model, which was told of it"
# How often a task waits for a model that cannot be reached.
_MAX_WAITS = 2
_UNCONFIRMED = "waits for the improvement that closes it, or for a second review that finds it"


class MiningReport(Value):
    """The learnings from the work on a task."""

    task: str
    learnings: tuple[str, ...] = ()
    """New learnings."""
    repeated: tuple[str, ...] = ()
    """Known learnings that recurred."""
    proposed: tuple[str, ...] = ()
    """Learnings for a person to decide on: of commits, a model's revisions, and flawed ones found in several tasks."""
    escalated: tuple[str, ...] = ()
    """Questions whether to remove a learning."""
    skipped: tuple[str, ...] = ()
    """The reasons why other discoveries did not become learnings."""
    remark: str = ""
    """Why the rules served the task, although a model is configured."""

    def join(self, other: MiningReport) -> MiningReport:
        """Return this report followed by another one about the same task."""
        names = [name for name in MiningReport.fields if name not in ("task", "remark")]
        joined = {name: (*getattr(self, name), *getattr(other, name)) for name in names}
        return self.replace(remark=self.remark or other.remark, **joined)


class TaskReading(Value):
    """What was read about the work on a task, before anything is stored."""

    task: Task
    words: str = ""
    """The messages of the task's agents."""
    material: tuple[Material, ...] | None = None
    """The material in the store that was read, which another process may mine first; None for another source."""
    discoveries: tuple[Discovery, ...] = ()
    """What the rules found."""
    retries: tuple[Retry, ...] = ()
    """Commands that worked in place of failed ones, in a transcript of this project."""
    changes: ProposedChanges | None = None
    """What the model proposes; None if the model was not asked or gave no usable answer."""
    remark: str = ""
    """Why there is no usable answer of the model."""
    heard: tuple[Utterance, ...] = ()
    """What a person said for longer than the task."""
    is_unwritten: bool = False
    """Whether the agent overcame an error in a conversation and wrote nothing down since."""


def read_task(context: Context, id: str, *, deadline: float) -> TaskReading:
    """Read the attempts at a task and apply the rules; raise TryAgain at the deadline."""
    task = tasks.get(context.store.database, id)
    material = mined.material_of(context.store.database, id)
    discoveries = []
    retries: list[Retry] = []
    for discovery in _observe_task(context, task, material, retries):
        discoveries.append(redact_discovery(context, discovery, task))
        if time.monotonic() > deadline:
            raise TryAgain("reading took too long", hint="`learnt update` has more time")
    words = "\n\n".join(part.text for part in material)
    return TaskReading(
        task=task,
        words=words,
        material=tuple(material),
        discoveries=tuple(discoveries),
        retries=tuple(retries),
    )


def ask_about(context: Context, reading: TaskReading, *, regeneration: str = "", limit_s: float) -> TaskReading:
    """Return the reading with the model's proposals, if a model is configured and there is something to read.

    Without a usable answer, or if a cap forbids the question, return the reading as the rules made it, with a remark.
    Raise ModelFailed only if the model cannot be reached at the moment.
    """
    if not asks_a_model(context) or not (reading.words.strip() or reading.discoveries):
        return reading
    _note_question(context, reading.task)
    try:
        return reading.replace(changes=_ask_for_changes(context, reading, regeneration=regeneration, limit_s=limit_s))
    except (ModelFailed, NoModel, SpendingCap) as error:
        if isinstance(error, ModelFailed) and error.is_temporary:
            raise
        return reading.replace(remark=_describe_failure(error))


class ModelReader:
    """Asks the model about one task after the other.

    If the model cannot be reached, neither this task nor those after it are read: they wait for the next run. After a
    task has waited a few times, the rules serve it.
    """

    def __init__(self, context: Context, *, regeneration: str = "") -> None:
        self._context = context
        self._regeneration = regeneration
        self._failure = ""
        self._waiting = 0
        self._unanswered: list[str] = []

    def read(self, reading: TaskReading, *, limit_s: float) -> TaskReading | None:
        """Return the reading with the model's proposals or the rules' remark; None if the task waits."""
        if not self._failure:
            try:
                reading = ask_about(self._context, reading, regeneration=self._regeneration, limit_s=limit_s)
                self._unanswered += [reading.remark] if reading.remark else []
                return reading
            except ModelFailed as error:
                self._failure = _describe_failure(error)
        source = f"waits for the model: {reading.task.id}"
        waits = mined.size_read(self._context.store.database, source) or 0
        if waits >= _MAX_WAITS:
            self._unanswered.append(self._failure)
            return reading.replace(remark=self._failure)
        note_read(self._context, source, size=waits + 1)
        _note_question(self._context, reading.task)
        self._waiting += 1
        return None

    @property
    def remarks(self) -> list[str]:
        """What the model's failures mean for the tasks."""
        remarks = []
        if self._unanswered:
            remarks.append(f"{_count_tasks(len(self._unanswered))} read without the model: {self._unanswered[0]}")
        if self._waiting:
            remarks.append(f"{_count_tasks(self._waiting)} waiting for the model: {self._failure}")
        return remarks


def was_asked_recently(context: Context, task: Task) -> bool:
    """Return whether the model was asked about a conversation within the last hour.

    A conversation grows with each turn. Asking after every turn would repeat failures and pay for the same text several
    times.
    """
    if not asks_a_model(context) or task.type != "session":
        return False
    return mined.read_at(context.store.database, _question_about(task)) > context.clock() - HOUR_MS


def learn_from(context: Context, reading: TaskReading) -> MiningReport:
    """Within a transaction: store the learnings from a reading, and delete the material."""
    intake = Intake(context, reading.task)
    intake.report = intake.report.replace(remark=reading.remark)
    database = context.store.database
    if reading.material is None:
        mined.drop_material(database, reading.task.id)
    elif not mined.drop_read(database, reading.material):
        return intake.report  # another process has mined it, or a newer message has replaced it
    for retry in reading.retries:
        remember_retry(context, retry, reading.task.id)
    changes = reading.changes
    for discovery in reading.discoveries:
        if changes is None or discovery.rule in _BY_RULES_ALONE:
            intake.learn_from_discovery(discovery)
        else:
            mined.add(database, discovery, at=context.clock(), skipped=_LEFT_TO_THE_MODEL)
    if changes is not None:
        intake.note("skipped", *changes.skipped)
        for change in changes.changes:
            intake.apply_change(change)
    return intake.report


def note_read(context: Context, source: str, *, size: int, task: str = "") -> None:
    """Record how much of a source was read."""
    with context.store.transaction():
        mined.note_read(context.store.database, source, size=size, task=task, at=context.clock())


def redact_discovery(context: Context, discovery: Discovery, task: Task) -> Discovery:
    """Return a discovery without secrets, with its task and its commit."""
    texts = {
        name: redact(getattr(discovery, name))[0][:TEXT_LIMIT]
        for name in ("text", "failed", "error", "worked", "excerpt", "observed", "advice")
    }
    files = tuple(path for path in discovery.files if redact(path)[0] == path)
    commit = discovery.commit or (head_commit(context.root) if context.root else "")
    return discovery.replace(**texts, files=files, task=task.id, commit=commit[:40])


def _observe_task(
    context: Context, task: Task, material: Sequence[Material], retries: list[Retry]
) -> Iterator[Discovery]:
    """Yield the discoveries that rules make in the attempts at a task."""
    attempts = tasks.attempts(context.store.database, task.id)
    words = {part.attempt: remove_sigils(part.text) for part in material}
    commits = {part.attempt: part.commit for part in material}
    for attempt, discovery in chain(
        _observe_transcripts(context, [attempt for attempt in reversed(attempts) if attempt.id in words], retries),
        _observe_turns(words) if task.type == "session" else _observe_result(context, task, attempts, words),
    ):
        yield discovery.replace(attempt=attempt, commit=commits.get(attempt, ""))


def _observe_transcripts(
    context: Context, attempts: Iterable[Attempt], retries: list[Retry]
) -> Iterator[tuple[str, Discovery]]:
    """Yield what was overcome, rejected and then accepted in the attempts' transcripts."""
    for attempt in attempts:
        if attempt.transcript:
            by_steps = observe_steps(_read_steps(attempt.transcript), folder=context.root, retries=retries)
            by_rejections = observe_rejections(_read_steps(attempt.transcript), folder=context.root)
            yield from ((attempt.id, discovery) for discovery in chain(by_steps, by_rejections))


def _observe_turns(words: Mapping[str, str]) -> Iterator[tuple[str, Discovery]]:
    """Yield what an agent says at the end of each turn."""
    return (
        (turn, discovery)
        for turn, text in words.items()
        for discovery in chain(observe_words(text), observe_choices(text))
    )


def _observe_result(
    context: Context, task: Task, attempts: Sequence[Attempt], words: Mapping[str, str]
) -> Iterator[tuple[str, Discovery]]:
    """Yield what failed attempts and reviews teach, once an attempt at the task was done."""
    done = next((attempt for attempt in attempts if attempt.result == "done"), None)
    if done is None:
        return
    reports = tasks.failures(context.store.database, task.id)
    last_words = words.get(done.id, "")
    for attempt in attempts[1:]:
        if attempt.id in words and attempt.id in reports:
            lesson = observe_attempts(reports[attempt.id], summary=done.summary, said=last_words)
            yield from ((attempt.id, found) for found in (lesson, observe_need(reports[attempt.id])) if found)
    found_in_words = chain(observe_words(last_words), observe_choices(last_words))
    for discovery in chain(found_in_words, _observe_review(context, task, last_words, done.summary)):
        yield done.id, discovery


def _observe_review(context: Context, task: Task, words: str, summary: str) -> Iterator[Discovery]:
    """Yield a review's findings, findings that recur across reviews, and findings that an improvement closed."""
    database = context.store.database
    if task.type == "review":
        findings = read_findings(words)
        earlier = [
            read_findings(_as_list(texts)) for texts in mined.list_found_elsewhere(database, _FINDING, but=task.id)
        ]
        yield from find_recurring(findings, earlier)
        yield from (Discovery(type="pattern", text=finding.text, rule=_FINDING) for finding in findings)
    elif task.based_on:
        base_findings = [finding.text for finding in mined.findings_of(database, task.based_on, _FINDING)]
        yield from observe_reviews(_as_list(base_findings), f"{summary}\n{words}")


def _read_steps(path: str) -> Iterator[Step]:
    """Yield a transcript's steps; yield nothing if it cannot be read."""
    try:
        yield from steps(path, session_database)
    except LearntError:
        return


def _as_list(texts: Iterable[str]) -> str:
    return "".join(f"- {text}\n" for text in texts)


def _note_question(context: Context, task: Task) -> None:
    """Record when the model was asked about a conversation, or would have been."""
    if task.type == "session":
        note_read(context, _question_about(task), size=1)


def _count_tasks(count: int) -> str:
    return f"{count} task{'s' if count > 1 else ''}"


def _describe_failure(error: LearntError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message


def _question_about(task: Task) -> str:
    """Return the name under which the time of the last question about a task is recorded."""
    return f"asked about {task.id}"


def _ask_for_changes(context: Context, reading: TaskReading, *, regeneration: str, limit_s: float) -> ProposedChanges:
    """Ask the model which learnings to add or change, and show it the most similar known learnings."""
    if limit_s <= 0:
        raise TryAgain("no time is left to ask the model", hint="`learnt update` has more time")
    task, discoveries = reading.task, reading.discoveries
    material = cut_material(redact(reading.words)[0], limit_chars=MAX_READ_CHARS)
    texts = (task.title, task.text, *(discovery.text for discovery in discoveries), material)
    query = "\n".join(texts)[:_MAX_QUERY_CHARS]
    hits = search(context, SearchRequest(query=query, limit=4 * _MAX_NEAREST, min_confidence=0.0, by_settings=False))
    nearest = [hit.learning for hit in hits if hit.learning.scope == "project"][:_MAX_NEAREST]
    system, prompt, schema = make_request(
        task_title=task.title,
        task_text=task.text,
        task_type=task.type,
        result=task.status,
        goal=goals.describe(context.store.database, task.goal),
        material=material,
        findings=discoveries,
        nearest=nearest,
        template=read_template("extract", (TEMPLATES,), own=context.prompts_folder),
    )
    request = ModelRequest(purpose="extract", system=system, prompt=prompt, schema=schema)
    answer = ask_model(context, request, task=task.id, regeneration=regeneration, limit_s=limit_s)
    return read_changes(answer.data, known_ids=[learning.id for learning in nearest])


class Intake:
    """Within a transaction: stores a task's learnings, and reports what was done. A task without a type is none."""

    def __init__(self, context: Context, task: Task) -> None:
        self._context = context
        self._database = context.store.database
        self._task = task
        self._agent = task.agent or "agent"
        self._source = task.id if task.type not in ("commit", "") else ""
        self._title = task.title if task.type else ""
        self.report = MiningReport(task=task.id)

    def note(self, name: str, *values: str) -> None:
        """Add values to a field of the report."""
        self.report = self.report.replace(**{name: (*getattr(self.report, name), *values)})

    def learn_from_discovery(self, discovery: Discovery) -> None:
        """Turn a discovery into a learning, or record why it does not become one."""
        now = self._context.clock()
        if discovery.rule == _FINDING:
            mined.add(self._database, discovery, at=now, skipped=_UNCONFIRMED)
            return
        drafted = self._draft(discovery)
        draft = None if isinstance(drafted, NoDraft) else drafted
        reason = drafted.reason if isinstance(drafted, NoDraft) else find_flaw(drafted, rule=discovery.rule)
        if not reason and len(self.report.learnings) >= _MAX_BY_RULES:
            reason = f"one task teaches {_MAX_BY_RULES} learnings at most"
        same = self._find_known(discovery, draft.title if draft else "")
        if same is None and (draft is None or reason):
            self._reject(draft, discovery, reason=reason)
        else:
            self._learn(draft, discovery, same)

    def learn_from_person(self, discovery: Discovery) -> None:
        """Turn a person's discovery into a learning that the person vouches for; a dependency is only kept."""
        now, drafted = self._context.clock(), self._draft(discovery)
        if isinstance(drafted, NoDraft):
            mined.add(self._database, discovery, at=now, skipped=drafted.reason)
            return
        known = self._find_known(discovery, drafted.title)
        if known is not None:
            self._learn(drafted, discovery, known)
            return
        learning = self._make(drafted, discovery, origin="person").replace(vouched=PERSON, author=self._context.person)
        learnings.add(self._database, learning, self._context.change("add", at=now))
        mined.add(self._database, discovery, at=now, learning=learning.id)
        self.note("learnings", learning.id)

    def _draft(self, discovery: Discovery) -> LearningDraft | NoDraft:
        goal = goals.describe(self._database, self._task.goal).partition("\n")[0]
        return extract(discovery, task_title=self._title, goal=goal)

    def apply_change(self, change: ProposedChange) -> None:
        """Carry out a change that the model proposes, or leave it to a person."""
        target = learnings.find(self._database, change.id) if change.id else None
        if target is None and change.do != "ADD":
            self.note("skipped", f"`{change.id}` does not exist any more")
        elif target is not None and change.do == "KEEP":
            evidence = Discovery(
                type="pattern", text=f"It still holds: {target.title}", rule="model", excerpt=change.reason
            )
            evidence = redact_discovery(self._context, evidence, self._task)
            mined.add(self._database, evidence, at=self._context.clock(), learning=target.id)
        elif target is not None and change.do == "REMOVE":
            self._propose_removal(target, change)
        else:
            if target is not None:  # fields that a revision leaves empty keep their text
                names = ("title", "observation", "action")
                texts = {name: getattr(change, name) or getattr(target, name) for name in names}
                change = change.replace(type=change.type or target.discovery or "pattern", **texts)
            self._apply_text(change, target if change.do == "REVISE" else None)

    def _apply_text(self, change: ProposedChange, revised: Learning | None) -> None:
        """Add a learning in the model's words, or propose it as a revision of a known learning."""
        text = change.observation or change.title
        discovery = Discovery(type=change.type, text=text, rule="model", excerpt=change.reason)
        discovery = redact_discovery(self._context, discovery, self._task)
        reason = find_flaw_in(title=change.title, observation=change.observation, action=change.action)
        if reason:
            self._reject(change, discovery, reason=reason, origin="model")
        elif revised is None:
            self._learn(change, discovery, self._find_known(discovery, change.title), origin="model")
        elif _is_proposed(self._database, change):
            self.note("skipped", f"the same revision of `{change.id}` is proposed already")
        else:
            self._propose_revision(change, discovery, revised)

    def _learn(
        self,
        draft: LearningDraft | ProposedChange | None,
        discovery: Discovery,
        known: Learning | None,
        *,
        origin: str = "agent",
    ) -> None:
        """Add a learning, or count a recurrence of the known learning, with the discovery as its evidence."""
        now, who = self._context.clock(), self._who(origin)
        # Anybody may have written a commit message: it is proposed, and is no conversation that speaks for a learning.
        is_commit = self._task.type == "commit"
        make = partial(self._make, draft, discovery, origin=origin, status="proposed" if is_commit else "active")
        learning, is_new = add_or_repeat(self._context, known, make, task=self._source, who=who, at=now, talk=Talk())
        mined.add(self._database, discovery, at=now, learning=learning.id)
        if is_new or learning.id not in self.report.repeated:
            new = "proposed" if learning.status == "proposed" else "learnings"
            self.note(new if is_new else "repeated", learning.id)

    def _propose_revision(self, change: ProposedChange, discovery: Discovery, revised: Learning) -> None:
        """Add a model's revision of a learning for a person to decide on, with the discovery as its evidence."""
        now = self._context.clock()
        learning = self._make(change, discovery, origin="model", status="proposed", revises=revised)
        learnings.add(self._database, learning, Change(what="propose", who=self._who("model"), at=now))
        mined.add(self._database, discovery, at=now, learning=learning.id)
        self.note("proposed", learning.id)

    def _reject(
        self, draft: LearningDraft | ProposedChange | None, discovery: Discovery, *, reason: str, origin: str = "agent"
    ) -> None:
        """Record why a discovery does not become a learning; an incident that comes back is proposed."""
        make = None if draft is None else partial(self._make, draft, discovery, origin=origin)
        who, now = self._who(origin), self._context.clock()
        proposal = refuse(self._context, make, discovery, reason, who=who, at=now)
        self.note("skipped", reason)
        self.note("proposed", *filter(None, [proposal]))

    def _find_known(self, discovery: Discovery, title: str) -> Learning | None:
        """Return the known learning for a discovery, or a learning that says the same thing."""
        id = mined.find_learning(self._database, discovery)
        learning = learnings.find(self._database, id) if id else None
        return learning if learning or not title else learnings.find_same(self._database, title)

    def _who(self, origin: str) -> str:
        return self._agent if origin == "agent" else PROGRAM

    def _make(
        self,
        draft: LearningDraft | ProposedChange | None,
        discovery: Discovery,
        *,
        origin: str,
        status: str = "active",
        revises: Learning | None = None,
    ) -> Learning:
        """Return a new learning; fields that the draft leaves empty are copied from the learning that it revises."""
        now, task = self._context.clock(), self._task
        drafted = {"kind": "" if revises else kind_of(discovery.type), **(draft.as_dict() if draft else {})}
        fields = {name: value for name, value in drafted.items() if name in STATEMENT_FIELDS and value}
        if revises is not None:
            fields = {**{name: getattr(revises, name) for name in STATEMENT_FIELDS}, **fields}
        fields = read_fields(self._context.redact_record(fields))
        if origin == "model" and revises is None:
            fields = complete(fields)
        return Learning(
            id=new_id("learn", now),
            **fields,
            origin=origin,
            goal=revises.goal if revises else task.goal,
            task=self._source,
            discovery=discovery.type,
            commit=discovery.commit,
            confidence=confidence.start(origin, discovery.type),
            author=author_of(discovery.rule, agent=self._who(origin), is_commit=task.type == "commit")[:TITLE_LIMIT],
            status=status,
            replaces=(revises.id,) if revises else (),
            pinned=revises is not None and revises.pinned,
            created_at=now,
            updated_at=now,
        )

    def _propose_removal(self, learning: Learning, change: ProposedChange) -> None:
        settings = self._context.settings
        why = self._context.redact_line(change.reason, 500) or "it does not hold any more"
        escalation = Escalation(
            id=text_id(
                "esc", f"remove {learning.id}"
            ),  # the same id each time, so that a person who keeps the learning is not asked again
            subject=learning.id,
            question=f"Should `{learning.title}` go? {why}",
            detail={"task": self._task.id, "by": settings.model_name or settings.model_provider},
            created_at=self._context.clock(),
        )
        reviews.add_escalation(self._database, escalation)
        self.note("escalated", escalation.id)


def _is_proposed(database: Database, change: ProposedChange) -> bool:
    """Return whether a revision of the learning is already proposed, or a person has rejected exactly this revision."""
    alike = [
        learning for learning in learnings.find_by_title(database, change.title) if learning.replaces == (change.id,)
    ]
    return bool(alike) or learnings.has_proposal(database, change.id)
