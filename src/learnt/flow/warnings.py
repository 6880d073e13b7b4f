"""Warnings at tool calls: commands that failed before, and gotchas whose triggers match the call.

A failed command is stored as a misstep, with the command that worked instead. A conversation is warned about a misstep
only once.
"""

from __future__ import annotations

from learnt.brief.render import FailedBefore, describe_failure
from learnt.brief.select import Originals, without_twins
from learnt.clients.registry import loaded_files
from learnt.flow.context import user_place
from learnt.flow.hook_events import AT_CALL, MAX_COMMAND_CHARS
from learnt.mine.complaint import find_error, find_first_line, is_conflict, passes_by_itself, was_aborted
from learnt.mine.missteps import (
    command_key,
    find_wrong_words,
    has_succeeded,
    is_misstep,
    is_misuse,
    is_question,
    list_requests,
    list_signs,
    list_variables,
    may_find,
    may_replace,
    repeats,
    replaces,
)
from learnt.mine.shell import is_check, split_command
from learnt.model import Hit, Value, text_id
from learnt.store import index, learnings, missteps, names
from learnt.store.happened import BriefRecord, FollowedRecord, WarningRecord, list_given_warnings
from learnt.store.index import Filter
from learnt.store.missteps import MisstepRecord, RunRecord, SuccessRecord
from learnt.system import watched
from learnt.text.clean import clean, first_words
from learnt.text.triggers import ANY, Situation, SituationMatcher, find_anchor, list_mentioned
from learnt.weigh.confidence import is_persons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from learnt.flow.context import Context
    from learnt.flow.hook_events import Conversation
    from learnt.mine.calls import Retry
    from learnt.model import Learning
    from learnt.store import Store
    from learnt.store.missteps import Misstep

_MAX_ERROR_CHARS = 300
_MAX_TRIGGERED = 2
_MAX_NAMING_CHARS = 20_000
_MAX_BY_NAMES = 2
_STOPPED = "To run it all the same, make the same call again."


class CallWarning(Value):
    """A warning about a misstep; `denies` means that the call is stopped."""

    misstep: Misstep
    denies: bool = False

    @property
    def failed_before(self) -> FailedBefore:
        """The warning as part of a brief."""
        misstep = self.misstep
        return FailedBefore(command=misstep.command, error=misstep.error, worked=misstep.worked, at=misstep.failed_at)

    def as_record(self, brief_record: BriefRecord) -> WarningRecord:
        """Return the record of this warning, which was given in a brief."""
        brief = brief_record.brief
        return WarningRecord(
            given=brief_record,
            task=brief.task,
            sign=self.misstep.sign,
            brief=brief.id,
            agent=brief.agent,
            denied=self.denies,
            failures=int(brief.occasion == "failure"),  # the call that the warning is about has just failed
            warned_at=brief.created_at,
        )

    def describe_stop(self, now_ms: int) -> str:
        """Return what a person reads on the screen when the call is stopped."""
        return f"learnt stopped this call once: {describe_failure(self.failed_before, now_ms)} {_STOPPED}\n\n"


class CallAdvice(Value):
    """What there is to say at a call."""

    warning: CallWarning | None = None
    hits: tuple[Hit, ...] = ()


class ToolCall:
    """A tool call in a conversation, before or after it runs."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._context = conversation.context
        self._event = conversation.event
        self._where = {"root": self._context.root, "folder": self._event.folder}
        command = self._event.command
        self._sign = command_key(command, self._context.root, self._event.folder) if command else ""
        self._repeated: list[Misstep] | None = None

    def find(self, kinds: Sequence[str], *, warns: bool = True, stops: bool = False) -> CallAdvice:
        """Return what the conversation has not been told about this call, by triggers of these kinds.

        With `stops`, a warning stops the call, and stands alone. A learning that a warning has told is not said again.
        """
        warning = self._find_warning() if warns else None
        if warning is not None and stops:
            return CallAdvice(warning=warning.replace(denies=True))
        hits = self.triggered(kinds)
        told = [warning.misstep] if warning else self._list_warned() if hits else []
        hits = [hit for hit in hits if not any(tells_of(hit.learning, misstep) for misstep in told)]
        return CallAdvice(warning=warning, hits=tuple(hits))

    def _list_warned(self) -> list[Misstep]:
        """Return the missteps that the conversation has been warned about since its last compaction."""
        database, task = self._conversation.database, self._conversation.task
        signs = [warning.sign for warning in list_given_warnings(database, task.id, since=task.fresh_since)]
        return [misstep for sign in signs if (misstep := missteps.find(database, sign))]

    def follow(self) -> None:
        """Record that this call is made after the conversation was warned of it."""
        conversation = self._conversation
        given = conversation.list_warnings()
        if not given:
            return
        signs = {misstep.sign for misstep in self._missteps()}
        made = [warning.sign for warning in given if warning.sign in signs and not warning.made]
        if made:
            self._context.store.record(FollowedRecord(task=conversation.id, made=made, at=conversation.now))

    def _find_warning(self) -> CallWarning | None:
        """Return a warning if the command failed before and the conversation has not been told yet."""
        conversation = self._conversation
        since, now = conversation.task.fresh_since, conversation.now
        known = [
            misstep
            for misstep in self._missteps()
            if misstep.has_replacement and now - misstep.failed_at < missteps.WARN_FOR_MS
        ]
        if not known:
            return None
        # Read the spool first, because a replay may move records to the database meanwhile.
        pending = self._context.store.pending_briefs(conversation.id)
        warnings = [warning for warning in pending if isinstance(warning, WarningRecord)]
        database = conversation.database
        if any(missteps.warned_since(database, conversation.id, misstep.sign, since) for misstep in known):
            return None
        if any(warning.sign == known[0].sign and warning.warned_at >= since for warning in warnings):
            return None
        return CallWarning(misstep=known[0])

    def record_failure(self) -> None:
        """Record that a command failed, unless it is a test or a linter, whose failures are not missteps."""
        event = self._event
        error = find_error(event.output) or find_first_line(event.output)
        if (
            not self._sign
            or not is_misstep(event.command, error)
            or passes_by_itself(error)
            or was_aborted(event.output)
            or is_conflict(event.output)
        ):
            return
        if not error and is_question(event.command):
            return
        line = self._conversation.redact_line(error, _MAX_ERROR_CHARS)
        self._context.store.record(MisstepRecord(error=line, **self._call()))

    def record_success(self) -> None:
        """Record that a command succeeded, if it failed before or replaces a misstep."""
        if not has_succeeded(self._event.command, self._event.output):
            return
        self._record_run()
        replaced, call = self._replaced_missteps(), self._call()
        # With variables, a command may succeed that fails without them.
        plain = self._key_without_variables() if self._sign else ""
        repeated = tuple(sign for sign in call["repeats"] if sign == self._sign or sign != plain)
        if replaced or repeated:
            self._context.store.record(SuccessRecord(replaces=replaced, **{**call, "repeats": repeated}))

    def _record_run(self) -> None:
        """Record the first success of a command in the conversation: a learning may have recommended it."""
        signs, conversation = list_signs(self._event.command), self._conversation
        if signs and not missteps.has_run(conversation.database, conversation.id, signs):
            self._context.store.record(RunRecord(signs=signs, task=conversation.id, at=conversation.now))

    def has_overcome_error(self) -> bool:
        """Return whether a command that failed was replaced in the conversation, and no agent has learnt since."""
        return missteps.was_overcome(self._conversation.database, self._conversation.id)

    def triggered(self, kinds: Sequence[str]) -> list[Hit]:
        """Return the vouched gotchas whose triggers match this call and that the conversation has not seen.

        People's learnings come first, and near copies of them are left out, even if the conversation has seen them.
        """
        event, conversation = self._event, self._conversation
        runs_or_edits = bool(event.paths or event.command)
        if not kinds or not (runs_or_edits or event.tool):
            return []
        matcher = self._matcher(kinds)
        wanted = {kind for kind in kinds if (event.paths if kind == "files" else runs_or_edits or kind == "tools")}
        anchors = {kind: words for kind, words in matcher.anchors().items() if kind in wanted}
        which = Filter(
            exclude_task=conversation.id,
            trusted_from=self._context.settings.brief_confidence,
        )
        hits = []
        for store in self._context.sound_stores():
            matches = index.find_by_triggers(store.database, anchors, matcher.matches, which)
            for learning in learnings.get_all(store.database, list(matches)).values() if matches else ():
                if _warns(learning, matches[learning.id]):
                    scoped = learning.replace(scope=store.place.scope)
                    hits.append(Hit(learning=scoped, score=0.0, relevance=1.0, trigger=matches[learning.id]))
            hits += self._find_by_names(store, which) if "commands" in kinds else ()
        hits = without_twins(list({hit.learning.id: hit for hit in reversed(hits)}.values()))
        originals = Originals(hit.learning for hit in hits)
        seen = conversation.list_seen_ids(conversation.task) if hits else ()
        fresh = (hit for hit in hits if hit.learning.id not in seen and not originals.of(hit.learning))
        return sorted(fresh, key=_rank)[:_MAX_TRIGGERED]

    def _find_by_names(self, store: Store, which: Filter) -> list[Hit]:
        """Return the vouched learnings that name an identifier in the text of this edit or command.

        A command that only looks for something touches nothing. What the client loads by itself is not repeated. With
        many learnings, names occur often, so a conversation is interrupted by them only a few times.
        """
        event = self._event
        command = "" if is_question(event.command) else event.command
        mentioned = list_mentioned(clean(first_words(f"{event.edit}\n{command}", _MAX_NAMING_CHARS)))
        if not mentioned:
            return []
        which = which.replace(exclude_loaded=loaded_files(event.client))
        found = names.find(store.database, mentioned, which.conditions(store.database))
        if found and self._has_heard_of_names():
            return []
        return [
            Hit(
                learning=learning.replace(scope=store.place.scope),
                score=0.0,
                relevance=1.0,
                trigger=f"{names.TRIGGER}{found[learning.id]}",
            )
            for learning in (learnings.get_all(store.database, list(found)).values() if found else ())
        ]

    def _has_heard_of_names(self) -> bool:
        """Return whether names have interrupted the conversation so often that another one would be noise."""
        conversation = self._conversation
        since = conversation.task.fresh_since
        return names.count_spoken(conversation.database, conversation.id, since=since) >= _MAX_BY_NAMES

    def _matcher(self, kinds: Sequence[str]) -> SituationMatcher:
        event = self._event
        return SituationMatcher(
            Situation(
                text=clean(event.output) if "errors" in kinds else "",
                paths=tuple(map(clean, event.paths)),
                command=clean(event.command),
                tools=(clean(event.tool),) if event.tool else (),
            )
        )

    def _missteps(self) -> list[Misstep]:
        """Return the missteps that the command repeats: the same command first, then commands with the same mistake."""
        if self._repeated is None:
            sign, command, database = self._sign, self._event.command, self._conversation.database
            same = missteps.find(database, sign) or self._find_without_variables() if sign else None
            alike = missteps.find_by_requests(database, list_requests(command, **self._where)) if sign else []
            others = [
                misstep
                for misstep in alike
                if misstep.sign not in (sign, same and same.sign)
                and repeats(command, misstep.asked, misstep.wrong, **self._where)
            ]
            known = [*([same] if same else []), *others]
            self._repeated = [misstep for misstep in known if not _has_remedy(command, misstep)]
        return self._repeated

    def _key_without_variables(self) -> str:
        return command_key(self._event.command, self._context.root, self._event.folder, with_variables=False)

    def _find_without_variables(self) -> Misstep | None:
        """Return the misstep of the command without the variables that it sets, unless one of them was the remedy."""
        variables = list_variables(self._event.command)
        if not variables:
            return None
        misstep = missteps.find(self._conversation.database, self._key_without_variables())
        return None if misstep is None or variables & list_variables(misstep.worked) else misstep

    def _replaced_missteps(self) -> dict[str, Any]:
        """Return the unsettled missteps that this command replaces, each with its wrong words."""
        command, conversation = self._event.command, self._conversation
        unsettled = missteps.unsettled(conversation.database, conversation.id) if self._sign else []
        others = [
            misstep
            for misstep in unsettled
            if misstep.sign != self._sign and (may_replace(command) or is_misuse(misstep.command, misstep.error))
        ]
        if not others:
            return {}
        line = conversation.redact_line(command, MAX_COMMAND_CHARS)
        return {
            misstep.sign: find_wrong_words(
                misstep.command, command, misstep.error, self._context.root, self._event.folder
            )
            for misstep in others
            # The same command in another folder is not a replacement.
            if misstep.command != line and replaces(misstep.command, command, misstep.error)
        }

    def _call(self) -> dict[str, Any]:
        """Return the fields for a record of this call."""
        return {
            "sign": self._sign,
            "command": self._conversation.redact_line(self._event.command, MAX_COMMAND_CHARS),
            "repeats": tuple(misstep.sign for misstep in self._missteps()),
            "task": self._conversation.id,
            "at": self._conversation.now,
        }


class WatchedCalls:
    """The words without which a call concerns nothing (`system.watched`)."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def update(self) -> None:
        """Write the words down if they may have changed, so that hooks before other calls end early."""
        own, *others = self._context.sound_stores()
        if own.place.address or own.place.read_only or watched.is_current(own.place.folder):
            return
        for store in others:
            store.close()  # so that its log is in its file before the signature is taken
        files = [
            *self._context.settings_files,
            *(f"{path}{ending}" for path in _other_paths(self._context) for ending in ("", "-wal")),
        ]
        signatures = {path: watched.signature(path) for path in files}
        with own.transaction():
            words = {word for misstep in missteps.list_replaced(own.database) for word in _list_words(misstep)}
            any_file = False
            for store in (own, *others):
                for kind, anchors in index.list_anchors(store.database, AT_CALL).items():
                    any_file = any_file or (kind == "files" and ANY in anchors)
                    words |= {anchor for anchor in anchors if anchor != ANY}
                words |= set(map(find_anchor, names.list_vouched(store.database)))
            watched.write(own.place.folder, words, any_file=any_file, database=own.place.path, others=signatures)


def _other_paths(context: Context) -> list[str]:
    """Return the paths of the databases beside the project's own, the user-wide one even if there is none yet."""
    places = [user_place(context.settings), *(store.place for store in context.stores[1:])]
    return list(dict.fromkeys(place.path for place in places))


def _list_words(misstep: Misstep) -> list[str]:
    """Return one word for each way in which a call can repeat a misstep: the name of a program."""
    names = [part.program for part in split_command(misstep.command)[:1]]
    names += misstep.asked.split()[:1]
    return [name.strip("'\"").rpartition("/")[2].lower() for name in names]


def remember_retry(context: Context, retry: Retry, task: str) -> bool:
    """Within a transaction: record a misstep that a transcript shows, as hooks do; return whether it is new.

    A failure that hooks have recorded is not recorded again.
    """
    where = {"root": context.root, "folder": retry.folder}
    sign, right_sign = (command_key(command, context.root, retry.folder) for command in (retry.failed, retry.worked))
    is_right = may_replace(retry.worked) or is_misuse(retry.failed, retry.error)
    if not is_right or not is_misstep(retry.failed, retry.error) or sign == right_sign:
        return False
    if not replaces(retry.failed, retry.worked, retry.error):
        return False
    database, failed_at = context.store.database, retry.failed_at or context.clock()
    known = missteps.find(database, sign)
    if known is not None and known.failed_at >= failed_at and known.worked:
        return False
    if not context.store.claim_operation(text_id("op", f"misstep {task} {sign} {retry.failed_at}")):
        return False
    if known is None or known.failed_at < failed_at:
        failure = MisstepRecord(
            sign=sign,
            command=_shorten(context, retry.failed, MAX_COMMAND_CHARS),
            repeats=(),
            task=task,
            at=failed_at,
            error=_shorten(context, retry.error, _MAX_ERROR_CHARS),
        )
        missteps.apply_failure(database, failure.as_body())
    success = SuccessRecord(
        sign=right_sign,
        command=_shorten(context, retry.worked, MAX_COMMAND_CHARS),
        repeats=(),
        task=task,
        at=max(retry.worked_at, failed_at, known.failed_at if known else 0),
        replaces={sign: find_wrong_words(retry.failed, retry.worked, retry.error, **where)},
    )
    missteps.apply_success(database, success.as_body())
    return True


def _shorten(context: Context, text: str, max_chars: int) -> str:
    """Return text on one line without secrets. It is cut last, because part of a secret is not recognised."""
    return context.redact_line(text, max_chars)[:max_chars].rstrip()


def tells_of(learning: Learning, misstep: Misstep) -> bool:
    """Return whether a learning says what a warning about a misstep says.

    It was mined from the misstep, or it quotes both commands. One that quotes only the failed command may be about
    something else, or recommend it.
    """
    text = f"{learning.title} {learning.observation} {learning.action}"
    failed, worked = (
        any(f"`{words}`" in text for words in (command, *(part.text for part in split_command(command))))
        for command in (misstep.command, misstep.worked)
    )
    wrong = any(f"`{word}`" in text for word in misstep.wrong)
    return (failed and worked) or (learning.task == misstep.task and (failed or worked or wrong))


def _has_remedy(command: str, misstep: Misstep) -> bool:
    """Return whether a command may find the program that was missing in a misstep."""
    is_missing = bool(misstep.asked) and misstep.wrong == (misstep.asked,)
    return is_missing and may_find(command, misstep.command, misstep.asked)


def _rank(hit: Hit) -> tuple[object, ...]:
    learning = hit.learning
    is_named = hit.trigger.startswith(names.TRIGGER)  # its own triggers say more
    return (is_named, not learning.pinned, not is_persons(learning), -learning.confidence, learning.id)


def _warns(learning: Learning, trigger: str) -> bool:
    """Return whether a vouched learning is worth an interruption: it is about this error, or names this call.

    What an agent learnt from a check is about the code, so the call of the check is no occasion, even if a person
    accepted it. What only evidence vouches for is shown at a command, and at exactly the file that it names, because
    patterns of files match too often.
    """
    kind, _, pattern = trigger.partition(": ")
    if kind == "errors" or (is_persons(learning) and learning.origin == "person"):
        return True
    if kind == "commands":
        return not any(map(is_check, split_command(pattern)))
    return is_persons(learning) or (kind == "files" and not any(sign in pattern for sign in "*?[{"))
