"""Before a task: recall learnings, brief the agent, and store the receipt; `why.py` reads it.

Every brief (for a task, a hook event or a template) is built by `assemble`, and stored by `record` in `injections.py`
before its text is used.
"""

from __future__ import annotations

from learnt.brief.render import (
    LOADED_FROM,
    Content,
    Index,
    Loop,
    Shown,
    fit,
    render,
    write_receipt,
)
from learnt.brief.select import REPEATS, Choice, Rules, choose, hidden_categories, is_restricted, without_twins
from learnt.clients.registry import loaded_files
from learnt.errors import LearntError, WrongRequest
from learnt.flow.context import check_rows, load_module, take_over_edits
from learnt.flow.injections import asks_for_marks, injected, record
from learnt.model import (
    TEXT_LIMIT,
    TITLE_LIMIT,
    Brief,
    Hit,
    Injection,
    Learning,
    Task,
    Value,
    check_text,
    digest,
    new_id,
)
from learnt.recall.find import Source, Wanted, find_each
from learnt.settings import Settings
from learnt.store import PATIENCE_MS, happened, learnings, tasks
from learnt.store.index import Filter
from learnt.text.clean import clean, fold
from learnt.text.redact import redact
from learnt.text.triggers import Situation
from learnt.text.words import estimate_tokens
from learnt.weigh.confidence import impact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from learnt.brief.render import Past, Unfinished
    from learnt.flow.context import Context
    from learnt.flow.task_parts import TaskPart
    from learnt.recall.find import Encoded

STRATEGIES = {"hybrid": None, "bm25": 0.0, "words": 0.0, "semantic": 1.0}
"""How much meaning counts in a search; None if the settings say so. `words` is an older name for `bm25`."""
_MAX_TRUSTED = 20
_MAX_DOUBTED = 10
_MAX_OWN = 10
_ENOUGH_TRUSTED = 10
_MAX_LEFT_OUT, _MAX_PINNED = 5, 10
PINNED = "pinned"
STANDING = "stands at the beginning of this brief"
UNCERTAIN = "does not fit every errand that the agent may have"
SHOWN_BEFORE = "shown before in this conversation"


class SearchRequest(Value):
    """A search; the fields are the keywords of `Memory.search`."""

    query: str
    limit: int = 10
    min_confidence: float = 0.5
    strategy: str = ""
    semantic_weight: float | None = None
    by_settings: bool = True
    """Whether the settings under [search] apply, with the encoder: for searches of people and agents."""
    status: str | None = "active"
    domain: str | None = None
    category: str | None = None
    exclude_goal: str | None = None
    paths: Sequence[str] = ()
    command: str = ""
    tools: Sequence[str] = ()
    task_type: str = ""
    asked_by: str = ""


class BriefRequest(Value):
    """A request for a brief; the fields are the keywords of `Memory.brief`."""

    text: str
    id: str = ""  # of an earlier brief that is put together again, perhaps within a transaction; it takes up tokens
    or_else: tuple[str, ...] = ()
    """What the task may be instead, if it is not certain: only learnings that each text alone would be given, are."""
    agent: str = ""
    task: str | None = None
    goal: str = ""
    exclude_goal: str | None = None
    budget_tokens: int | None = None
    paths: Sequence[str] = ()
    command: str = ""
    tools: Sequence[str] = ()
    task_type: str = ""
    only_new: bool = False
    beside: Sequence[str] = ()
    model: str = ""
    model_reason: str = ""
    keep: bool = True
    max_chars: int | None = None
    asked_by: str = "prompt"
    ask: str = ""
    """What the agent is asked for; see `brief.render.ASKS`."""
    occasion: str = "task"
    client: str = ""
    parent: str = ""
    """For a new task, the task that it is part of."""
    max_learnings: int | None = None
    opening: Opening | None = None
    """What the brief begins with, if it is the first of a conversation."""
    pinned: bool = False
    """Whether pinned learnings are given even if they are not relevant; an agent in a role gets them in any case."""
    began_ns: int | None = None

    @property
    def gives_pinned(self) -> bool:
        """Whether pinned learnings are given even if they are not relevant."""
        return self.pinned or self.occasion == "agent" or (self.occasion == "task" and bool(self.agent))


class Opening(Value):
    """What a conversation is told at its beginning, whatever it is about."""

    hits: Sequence[Hit] = ()
    unfinished: tuple[Unfinished, ...] = ()
    notes: tuple[str, ...] = ()
    index: Index = Index()


class Draft(Value):
    """The full content of a brief before `assemble` cuts it to its budget."""

    task: Task
    content: Content
    choices: Sequence[Choice]
    settings: Mapping[str, Any]
    """The settings used for the choice, including `budget_tokens`; they go into the receipt."""
    asked: Mapping[str, Any]
    """The request without its text; it goes into the receipt."""
    query: str = ""
    beside: Sequence[str] = ()
    max_chars: int | None = None
    agent: str = ""
    client: str = ""
    occasion: str = "task"
    asked_by: str = "prompt"


def search(context: Context, request: SearchRequest) -> list[Hit]:
    """Return the learnings that match a text, best first: triggered learnings, then learnings that share words."""
    weights = _weigh_meaning(context, request)
    check_rows(limit=request.limit)
    take_over_edits(context)
    which = Filter(
        status=request.status,
        domain=None if request.domain is None else fold(request.domain),
        category=None if request.category is None else fold(request.category),
        exclude_goal=None if request.exclude_goal is None else fold(request.exclude_goal),
        min_confidence=request.min_confidence,
    )
    situation = _situation(request, request.query, request.task_type)
    encoded = _encode(context, situation.text, weight=weights[1]) if request.by_settings and weights[1] else None
    how = {"semantic_weight": weights[0], "encoded": encoded}
    (hits,) = _find_everywhere(context, situation, which, [Wanted(which=which, limit=request.limit)], **how)
    if request.asked_by:
        _count_search(context, request.asked_by)
    return hits


def _weigh_meaning(context: Context, request: SearchRequest) -> tuple[float, float]:
    """Return how much meaning counts in a search, by the embedded table and by an encoder."""
    settings, given = context.settings if request.by_settings else Settings(), request.semantic_weight
    strategy = request.strategy or settings.search_strategy
    if strategy not in STRATEGIES:
        raise WrongRequest(f"there is no strategy `{strategy}`", hint=f"choose one of: {', '.join(STRATEGIES)}")
    if given is not None and not 0 <= given <= 1:
        raise WrongRequest(f"semantic_weight cannot be {given}", hint="set it to a number from 0 to 1")
    fixed = STRATEGIES[strategy] if STRATEGIES[strategy] is not None else given
    if fixed is not None:
        return fixed, fixed
    return settings.search_semantic_weight, settings.search_encoder_weight


def _encode(context: Context, text: str, *, weight: float) -> Encoded | None:
    """Return what a text means by the configured encoder, if there is one that can be used."""
    if context.settings.search_encoder == "embedded":
        return None
    encoded: Encoded | None = load_module("vectors").encode_query(context, text, weight=weight)
    return encoded


def brief(context: Context, request: BriefRequest) -> Brief:
    """Return what an agent should know before this task, and store the receipt; the text may be empty."""
    request = _without_secrets(context, request)
    if request.asked_by != "hook" and not request.id:  # a hook has done it within its deadline
        take_over_edits(context)
    now = context.clock()
    task = task_for(context, request, now=now)
    situation, parts = _read_task(context, task, request)
    already_given = _list_known_before(context, task if request.only_new else None, request)
    opening = request.opening or Opening()
    already_given |= {hit.learning.id: STANDING for hit in opening.hits}
    hits, reasons = _recall(context, situation, task, already_given, request, parts=parts)
    said = [*opening.hits, *(hit for hit in hits if reasons.get(hit.learning.id) == SHOWN_BEFORE)]
    fresh = without_twins([hit for hit in hits if hit.learning.id not in reasons], before=said)
    reasons = {hit.learning.id: REPEATS for hit in hits if not any(hit is one for one in fresh)} | reasons
    for other in request.or_else:
        fits = brief(context, request.replace(text=other, or_else=(), keep=False)).learning_ids
        reasons = {hit.learning.id: UNCERTAIN for hit in hits if hit.learning.id not in fits} | reasons
    rules = _rules(context, request.max_learnings)
    if rules.max_learnings:
        rules = rules.replace(max_learnings=rules.max_learnings + sum(hit.trigger == PINNED for hit in hits))
    doubted = [hit.learning.id for hit in hits if not hit.learning.vouched]
    choices = choose(
        hits,
        rules,
        excluded=reasons,
        impact=impact,
        is_observed=request.asked_by == "hook",
        undecided=happened.count_undecided(context.store.database, doubted) if doubted else {},
        both_hold=lambda: load_module("both_hold").list_both_hold(context),
    )
    choices = [*(Choice(hit=hit) for hit in opening.hits), *(one for one in choices if one.left_out != STANDING)]
    draft = Draft(
        task=task,
        content=_content(context, task, choices, request, now=now).replace(
            unfinished=opening.unfinished,
            notes=opening.notes,
            index=opening.index,
            asks_marks=not request.only_new
            or asks_for_marks(context, task, (choice.hit.learning for choice in choices if not choice.left_out)),
        ),
        choices=choices,
        settings={**rules.as_dict(), "budget_tokens": _budget(context, request.budget_tokens)},
        asked=_describe_request(request, task, situation, parts),
        query="\n".join((request.text, *request.or_else)),
        beside=request.beside,
        max_chars=request.max_chars,
        agent=request.agent,
        client=request.client,
        occasion=request.occasion,
        asked_by=request.asked_by,
    )
    assembled = assemble(draft)
    if request.keep and (assembled.text or not request.only_new):
        return record(context, task, assembled, began_ns=request.began_ns)
    return assembled


def assemble(draft: Draft) -> Brief:
    """Return the brief for a draft, cut to its budget, with its receipt and its injections."""
    content, no_room = fit(draft.content, draft.settings["budget_tokens"], max_chars=draft.max_chars)
    receipt = write_receipt(
        query=draft.query,
        request=dict(draft.asked),
        choices=draft.choices,
        content=content,
        beside=draft.beside,
        no_room=no_room,
        attempts=draft.content.attempts,
        settings=dict(draft.settings),
    )
    text = render(content)
    return Brief(
        id=content.id,
        created_at=content.now_ms,
        task=draft.task.id,
        agent=draft.agent,
        tokens=estimate_tokens(text),
        text_hash=digest(text),
        receipt=receipt,
        injections=tuple(
            Injection(learning=id, task=draft.task.id, brief=content.id, injected_at=content.now_ms)
            for id in (*(shown.learning.id for shown in content.learnings), *receipt["beside"])
        ),
        text=text,
        client=draft.client,
        occasion=draft.occasion,
        asked_by=draft.asked_by,
    )


def task_for(context: Context, request: BriefRequest, *, now: int) -> Task:
    """Return the stored task of a brief, or a new task made from the text."""
    id = request.task or new_id("task", now)
    stored = tasks.find(context.store.database, id)
    text = "" if request.or_else else request.text
    title = id if request.or_else else fold(text)[:TITLE_LIMIT]
    if stored and stored.title == stored.id and title:
        return stored.replace(title=title, text=text[:TEXT_LIMIT])
    return stored or Task(
        id=id,
        title=title or "(no title)",
        text=text[:TEXT_LIMIT],
        type=context.redact_line(request.task_type) or "implement",
        goal=context.redact_line(request.goal),
        agent=request.agent,
        parent=request.parent,
        created_at=now,
        updated_at=now,
    )


def _describe_request(
    request: BriefRequest, task: Task, situation: Situation, parts: Sequence[TaskPart]
) -> dict[str, Any]:
    """Return the request for a brief for a task for the receipt, without its text and without secrets."""
    also = {"parts": [part.as_entry() for part in parts]} if parts else {}
    exclude_goal = fold(request.exclude_goal or "")
    return describe_situation(situation, goal=task.goal, exclude_goal=exclude_goal, only_new=request.only_new, **also)


def describe_situation(situation: Situation, **also: Any) -> dict[str, Any]:
    """Return the request for a brief for the receipt, without its text and without secrets."""
    return {
        **also,
        "paths": [redact(clean(path))[0] for path in situation.paths],
        "command": situation.command,
        "tools": list(situation.tools),
        "task_type": situation.task_type,
    }


def _without_secrets(context: Context, request: BriefRequest) -> BriefRequest:
    text = redact(clean(check_text("task_text", request.text)))[0]
    if not text.strip():
        text = _read_stored_text(context, request.task)
    return request.replace(
        text=text,
        command=redact(clean(request.command))[0],
        agent=context.redact_line(request.agent),
        client=context.redact_line(request.client),
        model=context.redact_line(request.model),
        model_reason=context.redact_line(request.model_reason, TEXT_LIMIT),
    )


def _read_stored_text(context: Context, id: str | None) -> str:
    """Return the title and the text of a stored task, for a brief that is asked for without a text."""
    stored = tasks.find(context.store.database, id) if id else None
    if stored is None:
        raise WrongRequest("the task has no text", hint="describe in a few words what to do")
    return f"{stored.title}\n{stored.text}".strip()


def _read_task(context: Context, task: Task, request: BriefRequest) -> tuple[Situation, list[TaskPart]]:
    """Return the situation with the files that a task names, and the task's parts; a conversation has no parts."""
    situation = _situation(request, request.text, task.type)
    if task.type == "session" or not (request.task or task.goal):
        return situation, []
    module = load_module("task_parts")  # a hook never needs it
    parts: list[TaskPart] = module.list_parts(context, task, request.text)
    own = [request.text, *(part.text for part in parts if not part.is_inherited)]
    paths = dict.fromkeys((*situation.paths, *module.list_own_paths(context.root, own)))
    return situation.replace(paths=tuple(paths)), parts


def _situation(request: SearchRequest | BriefRequest, text: str, task_type: str) -> Situation:
    return Situation(
        text=clean(text),
        paths=tuple(map(clean, request.paths)),
        command=clean(request.command),
        tools=tuple(map(fold, request.tools)),
        task_type=fold(task_type),
    )


def _budget(context: Context, tokens: int | None) -> int:
    budget = context.settings.brief_tokens if tokens is None else tokens
    if budget < 0:
        raise WrongRequest(f"the budget cannot be {budget} tokens", hint="set it to 0 or a positive number")
    return budget


def _rules(context: Context, max_learnings: int | None) -> Rules:
    settings = context.settings
    most = settings.brief_learnings
    return Rules(
        max_learnings=most if max_learnings is None else min(most, max_learnings),
        min_confidence=settings.brief_confidence,
        min_relevance=settings.brief_relevance,
        trial_slots=settings.trial_slots,
    )


def _content(context: Context, task: Task, choices: Sequence[Choice], request: BriefRequest, *, now: int) -> Content:
    """Return the full content of a brief for a task."""
    chosen = (choice for choice in choices if not choice.left_out)
    shown = [Shown(learning=one.hit.learning, on_trial=one.on_trial, newer=one.newer) for one in chosen]
    past, loop, is_stuck = _past_attempts(context, task, now=now)
    return Content(
        id=request.id or new_id("brief", now),
        now_ms=now,
        learnings=tuple(shown),
        attempts=past,
        loop=loop.replace(model=request.model, model_reason=request.model_reason),
        stuck=is_stuck,
        ask=request.ask,
    )


def _find_everywhere(
    context: Context,
    situation: Situation,
    which: Filter,
    parts: Sequence[Wanted],
    **how: Any,
) -> list[list[Hit]]:
    """Return the best hits from all stores for each part of the search."""
    sources = [Source(database=store.database, scope=store.place.scope) for store in context.sound_stores()]
    return find_each(sources, situation, which, parts, **how)


def _recall(
    context: Context,
    situation: Situation,
    task: Task,
    known: dict[str, str],
    request: BriefRequest,
    *,
    parts: Sequence[TaskPart],
) -> tuple[list[Hit], dict[str, str]]:
    """Return the candidates for a brief, and the reasons for leaving some of them out.

    Trusted learnings, doubted learnings and learnings in other agents' categories are searched for separately, so that
    none of these groups crowds out the others. A conversation does not get its own learnings back. A retry gets the
    learnings from earlier attempts, and learnings that match the last failure. A task gets what matches its parts.
    """
    if task.skip_learnings:
        return [], {}
    exclude_goal, agent = request.exclude_goal, request.agent
    which = Filter(exclude_goal=None if exclude_goal is None else fold(exclude_goal))
    unknown = which.replace(
        exclude_task=task.id if task.type == "session" else None,
        exclude_ids=tuple(sorted(known)),
        exclude_loaded=loaded_files(request.client),
    )
    gate, hidden = context.settings.brief_confidence, _hidden_categories(context, agent)
    visible = unknown.replace(not_in_categories=hidden) if hidden else unknown
    trusted = Wanted(
        which=visible.replace(trusted_from=gate), limit=_MAX_TRUSTED, least=_ENOUGH_TRUSTED, by_relevance=True
    )
    doubted = Wanted(which=visible.replace(doubted_below=gate), limit=_MAX_DOUBTED, least=1, by_relevance=True)
    excluded = Wanted(which=unknown.replace(only_excluded=True), limit=_MAX_LEFT_OUT, by_relevance=True)
    of_others = (
        [Wanted(which=unknown.replace(in_categories=hidden), limit=_MAX_LEFT_OUT, by_relevance=True)] if hidden else []
    )
    *fresh, left_out = _find_everywhere(context, situation, which, [*of_others, trusted, doubted, excluded])
    others = fresh.pop(0) if hidden else []
    hits = {hit.learning.id: hit for part in fresh for hit in part}
    _add_better(hits, _taught_by_failures(context, task, unknown, [trusted, doubted]))
    if parts:
        _add_those_of_parts(context, hits, parts, unknown, [trusted, doubted])
    if request.gives_pinned:
        hits |= _find_pinned(context, visible.replace(trusted_from=gate), hits)
    reasons = {hit.learning.id: known.get(hit.learning.id) or _why_excluded(hit.learning, unknown) for hit in left_out}
    others = [hit for hit in others if hit.learning.id not in hits]
    reasons.update((hit.learning.id, f"not in the categories of {agent}") for hit in others)
    return [*hits.values(), *left_out, *others], reasons


def _add_better(hits: dict[str, Hit], others: Sequence[Hit]) -> None:
    """Replace hits by others for the same learnings that more speaks for, and add the hits for other learnings."""
    for hit in others:
        known = hits.get(hit.learning.id)
        if known is None or (not known.trigger and (hit.trigger or hit.relevance > known.relevance)):
            hits[hit.learning.id] = hit


def _add_those_of_parts(
    context: Context, hits: dict[str, Hit], parts: Sequence[TaskPart], which: Filter, wanted: Sequence[Wanted]
) -> None:
    """Add the hits for a task's own parts, and the best one for what it inherits."""
    module = load_module("task_parts")
    found = [
        hit.replace(part=part.name)
        for part in parts
        for piece in module.split_part(part)
        for some in _find_everywhere(context, Situation(text=clean(piece)), which, wanted)
        for hit in some
    ]
    _add_better(hits, [hit for hit in found if hit.part not in module.INHERITED])
    inherited = [module.weaken(hit) for hit in found if hit.part in module.INHERITED]
    _add_better(hits, module.choose_inherited(inherited, hits, context.settings.brief_relevance))


def _find_pinned(context: Context, which: Filter, hits: Mapping[str, Hit]) -> dict[str, Hit]:
    """Return the pinned learnings by id, each triggered by its pin unless another trigger matched."""
    pinned: dict[str, Hit] = {}
    for store in context.sound_stores():
        for learning in learnings.page(store.database, which.replace(pinned=True), limit=_MAX_PINNED):
            hit = hits.get(learning.id) or Hit(learning=learning.replace(scope=store.place.scope), score=0.0)
            pinned.setdefault(learning.id, hit if hit.trigger else hit.replace(trigger=PINNED))
    return pinned


def _why_excluded(learning: Learning, which: Filter) -> str:
    """Return why a brief leaves out a learning that the conversation taught, or that its client loads by itself."""
    if learning.task and learning.task == which.exclude_task:
        return "learnt in this very conversation"
    return f"{LOADED_FROM}{learning.loaded_from}"


def _taught_by_failures(context: Context, task: Task, which: Filter, parts: Sequence[Wanted]) -> list[Hit]:
    """Return the learnings from earlier attempts at a task, and learnings that match the last failure."""
    database = context.store.database
    attempts = tasks.attempts(database, task.id) if task.type != "session" else []
    report = tasks.failures(database, task.id).get(attempts[0].id) if attempts else None
    if report is None or report.archived_at:
        return []
    own = learnings.page(database, which.replace(task=task.id), limit=_MAX_OWN)
    hits = [
        Hit(learning=learning, score=0.0, relevance=1.0, trigger="an earlier attempt at this task") for learning in own
    ]
    situation = Situation(
        text=clean("\n".join((report.reason, report.error))),
        paths=tuple(map(clean, report.files)),
        task_type=fold(task.type),
    )
    found = _find_everywhere(context, situation, which, parts)
    return [*hits, *(hit.replace(part="failure") for some in found for hit in some)]


def _past_attempts(context: Context, task: Task, *, now: int) -> tuple[tuple[Past, ...], Loop, bool]:
    """Return the approaches that failed, the state of a task's loop, and whether it is stuck; nothing of it for a
    conversation."""
    attempts = tasks.attempts(context.store.database, task.id) if task.type != "session" else []
    if not attempts:
        return (), Loop(), False
    module = load_module("past_attempts")  # a hook never needs it
    past, loop = module.read_past(context, task, attempts, now=now)
    return past, loop, bool(loop.failures) and module.is_stuck(context, task)


def _count_search(context: Context, asker: str) -> None:
    """Count a search; the search neither waits for this nor fails because of it."""
    if asker not in ("person", "tool"):
        raise WrongRequest(
            f"`asked_by` must be `person` or `tool`, not `{asker}`",
            hint="leave it out if the search is not to be counted",
        )
    database = context.store.database
    if context.store.place.read_only or database.read_only:
        return
    wait_ms = database.wait_at_most(PATIENCE_MS)
    try:
        with context.store.transaction():
            database.count(happened.search_counter(asker, context.clock()))
    except LearntError:
        return
    finally:
        database.wait_at_most(wait_ms)


def _list_known_before(context: Context, task: Task | None, request: BriefRequest) -> dict[str, str]:
    """Return the learnings that the agent already has, each with the reason for leaving it out."""
    seen = injected(context, task.id, since=task.fresh_since, agent=request.agent) if task else ()
    reasons = dict.fromkeys(seen, SHOWN_BEFORE)
    return reasons | dict.fromkeys(request.beside, "stands in the learnings file of the prompt")


def _hidden_categories(context: Context, agent: str) -> tuple[str, ...]:
    """Return the categories that an agent does not see, spelled as in the learnings."""
    agents = context.settings.agents
    if not agent or not is_restricted(agent, agents):
        return ()
    spellings = {name for store in context.sound_stores() for name in learnings.categories(store.database)}
    return hidden_categories(agent, agents, sorted(spellings))
