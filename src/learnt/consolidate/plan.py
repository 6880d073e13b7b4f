"""Plan a consolidation: what becomes of each entry of the batch, and what the topic files say afterwards.

    moved      it is written into a topic file, and leaves the staging file
    dropped    it leaves the staging file, because another learning or a topic file says what it says, or corrects it
    escalated  it stays until a person has decided
    kept       it stays: a person was asked, and did not answer

and what becomes of entries that topic files have already, if their learnings were retired or edited since:

    removed    it leaves the topic file
    revised    it is written anew in its place

The same arguments always give the same plan: nothing here reads the store, the clock or a file. What words prove is
acted upon; what is only estimated is asked. A learning is dropped for one that says the same only if everything it says
is there; otherwise both are moved, and the plan shows what would have been lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property

from learnt.consolidate.ages import AgedEntry
from learnt.consolidate.merge import check_merge
from learnt.consolidate.pairs import DocumentPassage, Overlaps, Pair, StagedEntry, make_learning
from learnt.consolidate.questions import (
    BOTH,
    CHOICES,
    NEW,
    OLD,
    OpenQuestion,
    Regression,
    ask_about_document,
    ask_about_flaw,
    ask_about_loss,
    ask_about_patch,
    ask_which_holds,
)
from learnt.consolidate.split import LIMIT_LINES, count_lines, render_patch, split
from learnt.consolidate.stale_entries import EDITED, REMOVED, REVISED, StaleEntry, StoredVersions, remove_doubled, renew
from learnt.consolidate.topics import CallingWords, Topic, find_topic_files, is_own, route, write_entries
from learnt.model import Learning, Value
from learnt.weigh.compare import CONTRADICTS, REPEATS, SUPERSEDES, Verdict
from learnt.weigh.confidence import is_persons

MOVED, DROPPED, ESCALATED, KEPT = OF_STAGED = ("moved", "dropped", "escalated", "kept")
VERDICTS = (*OF_STAGED, REMOVED, REVISED)
CHANGING = (MOVED, DROPPED, REMOVED, REVISED)
"""The verdicts that change a file."""
ASKED = "asked"
"""What `Decided` returns for a question that waits for its answer."""
Decided = Callable[[OpenQuestion], str]
"""Returns a person's answer to a question, `ASKED`, empty if it was never asked, or why it was closed."""


class RefusedMerge(Value):
    """An entry that says the same as another one, but not only that: both stay."""

    entry: str
    other: str
    lost: tuple[str, ...]
    """What would have been lost."""


class WaitingEntry(Value):
    """Why an entry waits, as before: neither it nor its neighbours have changed."""

    reason: str
    escalation: str = ""
    """The id of the question that it waits for."""


class PlannedEntry(Value):
    """What becomes of an entry, and why."""

    staged: StagedEntry
    verdict: str
    reason: str
    target: str = ""
    """The topic file that says it afterwards."""
    other: str = ""
    """The id of the learning that stands for it afterwards."""
    question: OpenQuestion | None = None
    waits_for: str = ""
    """The id of the question that a person has to answer first."""

    @property
    def id(self) -> str:
        """The id of its learning."""
        return self.staged.learning.id

    @property
    def waits(self) -> bool:
        """Whether it stays where it is."""
        return self.verdict in (ESCALATED, KEPT)


class ConsolidationPlan(Value):
    """What a consolidation does."""

    entries: tuple[PlannedEntry, ...] = ()
    """Oldest first."""
    refused: tuple[RefusedMerge, ...] = ()
    files: Mapping[str, str] = {}
    """The new texts of the topic files that change, by their paths in the project."""
    split: tuple[str, ...] = ()
    """The files that were split."""
    questions: tuple[OpenQuestion, ...] = ()
    """Further questions, which are about files."""
    edited: tuple[StaleEntry, ...] = ()
    """Entries of topic files that stay although their learnings were retired, because somebody has edited them."""

    def of(self, *verdicts: str) -> list[PlannedEntry]:
        """Return the entries with one of these verdicts."""
        return [entry for entry in self.entries if entry.verdict in verdicts]


class StaleEntries(Value):
    """The entries of topic files that do not say what their learnings say."""

    entries: tuple[StaleEntry, ...] = ()
    versions: Mapping[str, StoredVersions] = {}
    """What the store knows about their learnings, by the ids of the entries."""
    doubled: tuple[StaleEntry, ...] = ()
    """Entries that another topic file has, too."""

    def find(self, id: str) -> StaleEntry | None:
        """Return the entry that names a learning, if it is stale."""
        return next((entry for entry in self.entries if entry.id == id), None)


def make_plan(
    overlaps: Overlaps,
    verdicts: Mapping[Pair, Verdict],
    topics: Sequence[Topic],
    *,
    calling: CallingWords,
    folder: str,
    reserved: Collection[str] = (),
    decided: Decided,
    withheld: Mapping[str, Regression] | None = None,
    settled: Mapping[str, WaitingEntry] | None = None,
    stale: StaleEntries | None = None,
    limit_lines: int = LIMIT_LINES,
) -> ConsolidationPlan:
    """Return the plan for the entries of a batch, and for those in topic files that are stale.

    `verdicts` say how the pairs of `overlaps` relate. `withheld` are learnings that must not be consolidated without a
    person's consent, with what would be missing in briefs of the past. `settled` are learnings that wait for the same
    reason as before, because neither they nor their neighbours have changed. No new topic file gets a path that is
    `reserved`.
    """
    outdated = stale or StaleEntries()
    judge = _EntryJudge(overlaps, verdicts, decided, withheld=withheld or {}, stale=outdated)
    single = [remove_doubled(topic, outdated.doubled) for topic in topics]
    judged = judge.judge_all(settled or {}, find_topic_files(single))
    changed = [judge.decide_on_stale(entry) for entry in outdated.entries]
    by_id = {entry.id: entry for entry in changed}
    renewed = {topic.path: renew(topic.text, by_id, outdated.versions) for topic in single}
    writer = _TopicWriter(
        topics, renewed, calling, folder=folder, reserved=reserved, decided=decided, limit_lines=limit_lines
    )
    entries = [writer.write(planned) if planned.verdict == MOVED else planned for planned in judged]
    writer.split_long_files()
    entries = [writer.update_target(planned) for planned in entries]
    return ConsolidationPlan(
        entries=(
            *_keep_for_waiting(entries, settled or {}),
            *(_plan_stale(entry) for entry in (*changed, *outdated.doubled) if entry.verdict != EDITED),
        ),
        refused=tuple(judge.refused),
        files=writer.changed_files(),
        split=tuple(writer.split),
        questions=tuple(writer.questions),
        edited=tuple(entry for entry in changed if entry.verdict == EDITED and entry.learning.status != "active"),
    )


def _keep_for_waiting(entries: Sequence[PlannedEntry], settled: Mapping[str, WaitingEntry]) -> Iterator[PlannedEntry]:
    """Yield the entries; what was to be dropped for one that waits itself waits with it."""
    waiting = {id: entry.escalation for id, entry in settled.items()}
    waiting |= {planned.id: planned.waits_for for planned in entries if planned.waits}
    for planned in entries:
        if planned.verdict != DROPPED or planned.other not in waiting:
            yield planned
            continue
        reason, escalation = f"what would replace it waits: {planned.other}", waiting[planned.other]
        yield planned.replace(verdict=KEPT, reason=reason, other="", target="", waits_for=escalation)


def _plan_stale(stale: StaleEntry) -> PlannedEntry:
    """Return an entry that a topic file has already."""
    entry = AgedEntry(title=stale.learning.title, id=stale.learning.id)
    return PlannedEntry(
        staged=StagedEntry(entry=entry, learning=stale.learning),
        verdict=stale.verdict,
        reason=stale.reason,
        target=stale.file,
        other=stale.id if stale.id != stale.learning.id else "",
    )


class _EntryJudge:
    """Decides which entries move."""

    def __init__(
        self,
        overlaps: Overlaps,
        verdicts: Mapping[Pair, Verdict],
        decided: Decided,
        *,
        withheld: Mapping[str, Regression],
        stale: StaleEntries,
    ) -> None:
        self._all = overlaps.staged
        self._staged = {staged.learning.id: staged for staged in overlaps.staged}
        self._passages = {passage.learning.id: passage for passage in overlaps.passages}
        self._verdicts: dict[str, list[tuple[Pair, Verdict]]] = {}
        for pair, verdict in verdicts.items():
            for id in pair:
                self._verdicts.setdefault(id, []).append((pair, verdict))
        self._decided = decided
        self._withheld = withheld
        self._homes: Mapping[str, str] = {}
        self._stale = stale
        self._chosen: set[str] = set()
        """The learnings of entries that a person has edited in a topic file, and that are to be written anew."""
        self._dropped: dict[str, str] = {}
        """The learnings that stand for dropped ones."""
        self._spared: set[str] = set()
        """The learnings that a person does not want to be dropped."""
        self._asked: dict[str, OpenQuestion] = {}
        """The questions whether older entries may be dropped for these learnings."""
        self.refused: list[RefusedMerge] = []

    def judge_all(self, settled: Mapping[str, WaitingEntry], homes: Mapping[str, str]) -> list[PlannedEntry]:
        """Return what becomes of the entries of the batch, oldest first; `homes` are what topic files have already."""
        self._homes = homes
        batch = sorted((staged for staged in self._all if staged.is_in_batch), key=lambda staged: staged.order)
        return [
            PlannedEntry(staged=staged, verdict=KEPT, reason=known.reason, waits_for=known.escalation)
            if (known := settled.get(staged.learning.id))
            else self._judge(staged)
            for staged in batch
        ]

    def decide_on_stale(self, stale: StaleEntry) -> StaleEntry:
        """Return a stale entry; if a person wants the learning instead of an edit in the file, it is revised."""
        return stale.replace(verdict=REVISED, reason="a person has chosen it") if stale.id in self._chosen else stale

    def _judge(self, staged: StagedEntry) -> PlannedEntry:
        """Return what becomes of an entry; the older ones were judged before."""
        learning = staged.learning
        if learning.status != "active":
            return PlannedEntry(staged=staged, verdict=DROPPED, reason=f"it is {learning.status}")
        if learning.id in self._homes:
            return self._judge_written(staged, self._homes[learning.id])
        if staged.flaw:
            waiting = self._ask(staged, ask_about_flaw(learning, staged.flaw), staged.flaw)
            if waiting:
                return waiting
        if learning.id in self._asked:
            question = self._asked[learning.id]
            return self._wait(staged, question, "an older one, which has helped, would be dropped for it")
        for (older, newer), verdict in self._verdicts.get(learning.id, ()):
            planned = self._compare(staged, older, newer, verdict)
            if planned is not None:
                return planned
        return self._withhold(staged) or PlannedEntry(staged=staged, verdict=MOVED, reason="it has aged and held")

    def _judge_written(self, staged: StagedEntry, home: str) -> PlannedEntry:
        """Return what becomes of an entry whose learning stands in a topic file."""
        stale, reason = self._stale.find(staged.learning.id), f"it stands in {home} already"
        if stale is not None and stale.verdict == REVISED:
            reason = f"it stands in {home} already, and is written there as it says now"
        elif stale is not None and self._says_more(staged.learning, stale):
            question = ask_about_document(staged.learning, home, stale.text, "both were edited")
            answer = self._decided(question).partition(":")[0]
            if answer not in CHOICES:
                return self._wait(staged, question, f"it was edited here, and in {home}, too")
            if answer in (NEW, BOTH):
                self._chosen.add(stale.id)
                reason = f"it stands in {home} already, and is written there as a person has chosen"
        return PlannedEntry(staged=staged, verdict=DROPPED, reason=reason, target=home)

    def _says_more(self, learning: Learning, stale: StaleEntry) -> bool:
        """Return whether an entry was edited here after it was moved, and the file does not say what it says now."""
        written = self._stale.versions[stale.id].written
        if written is not None and not check_merge((learning,), written) and not check_merge((written,), learning):
            return False
        return bool(check_merge((learning,), make_learning(stale.file, stale.text)))

    def _compare(self, staged: StagedEntry, older: str, newer: str, verdict: Verdict) -> PlannedEntry | None:
        """Return what follows for an entry from one comparison; None if nothing does."""
        if older in self._passages:
            return self._compare_with_passage(staged, self._passages[older], verdict)
        is_older = staged.learning.id == older
        other = self._staged[newer if is_older else older]
        if other.learning.status != "active" or other.learning.id in self._dropped:
            return None
        if verdict in (CONTRADICTS, SUPERSEDES) and self._needs_person(staged, other, verdict):
            sides = (other, staged) if is_older else (staged, other)
            question = ask_which_holds(sides[0].learning, sides[1].learning, verdict.reason)
            return self._ask(staged, question, f"{verdict} {other.learning.id}, perhaps: {verdict.reason}")
        if is_older and verdict in (SUPERSEDES, CONTRADICTS):
            says = "corrects" if verdict == CONTRADICTS or verdict.lacks else "says it and more than"
            return self._drop(staged, other.learning, f"a newer one {says} it: {other.learning.title}")
        if not is_older and verdict == REPEATS and not verdict.is_estimate:
            return None if self._is_fuller(staged, other, verdict) else self._drop_repeated(staged, other.learning)
        if is_older and verdict == REPEATS and self._is_fuller(other, staged, verdict):
            return self._drop(staged, other.learning, f"a newer one says it and more: {other.learning.title}")
        return None

    def _is_fuller(self, newer: StagedEntry, older: StagedEntry, verdict: Verdict) -> bool:
        """Return whether the newer of two that say the same adds a reason, lacks nothing, and may take its place."""
        if not verdict.explains or self._needs_person(older, newer, verdict) or older.learning.id in self._spared:
            return False
        return not check_merge((older.learning,), newer.learning)

    def _needs_person(self, staged: StagedEntry, other: StagedEntry, verdict: Verdict) -> bool:
        """Return whether a correction is only estimated, or would retire what a person stands behind."""
        older, newer = sorted((staged, other), key=lambda one: one.order)
        is_fixed = older.learning.pinned or is_persons(older.learning)
        return verdict.is_estimate or (is_fixed and not is_persons(newer.learning))

    def _compare_with_passage(
        self, staged: StagedEntry, passage: DocumentPassage, verdict: Verdict
    ) -> PlannedEntry | None:
        stale = self._stale.find(passage.learning.id)
        if stale is not None and stale.verdict == REMOVED:
            return None
        is_stored = passage.is_stored and passage.learning.status == "active"
        if verdict == REPEATS and not verdict.is_estimate:
            return self._drop_repeated(staged, passage.learning, passage.replace(is_stored=is_stored))
        if verdict == CONTRADICTS or (verdict == SUPERSEDES and verdict.lacks):
            reason = f"{verdict} what {passage.file} says: {passage.learning.title}"
            if is_stored:
                return self._ask(staged, ask_which_holds(staged.learning, passage.learning, verdict.reason), reason)
            question = ask_about_document(staged.learning, passage.file, passage.text, verdict.reason)
            return self._ask(staged, question, reason)
        return None

    def _drop_repeated(
        self, staged: StagedEntry, other: Learning, passage: DocumentPassage | None = None
    ) -> PlannedEntry | None:
        """Drop an entry if another learning has everything that it says."""
        losses = check_merge((staged.learning,), other)
        if losses:
            lost = tuple(dict.fromkeys(loss.text for loss in losses))
            self.refused.append(RefusedMerge(entry=staged.learning.id, other=other.id, lost=lost))
            return None
        where = f"{passage.file} says it" if passage else "an older one says it"
        if passage and not passage.is_stored:
            dropped = PlannedEntry(staged=staged, verdict=DROPPED, reason=where, target=passage.file)
            return self._withhold(staged) or dropped
        return self._drop(staged, other, f"{where} already: {other.title}")

    def _drop(self, staged: StagedEntry, other: Learning, reason: str) -> PlannedEntry | None:
        """Drop an entry for another learning; None if a person wants to keep both."""
        id = staged.learning.id
        if id in self._withheld:
            question = ask_about_loss(staged.learning, other, self._withheld[id])
            answer = self._decided(question).partition(":")[0]
            if answer in (OLD, BOTH) and question.older:
                self._spared.add(id)
                return None
            if answer != NEW:
                self._asked[other.id] = question
                return self._wait(staged, question, f"{self._withheld[id].title} has helped, and would be missing")
        self._dropped[id] = other.id
        return PlannedEntry(staged=staged, verdict=DROPPED, reason=reason, other=other.id)

    def _withhold(self, staged: StagedEntry) -> PlannedEntry | None:
        """Return an entry that waits because briefs would lose something by it; None if they would not."""
        regression = self._withheld.get(staged.learning.id)
        if regression is None or staged.learning.id in self._spared:
            return None
        question = ask_about_loss(staged.learning, None, regression)
        return self._ask(staged, question, f"{regression.title} has helped, and would be missing")

    def _ask(self, staged: StagedEntry, question: OpenQuestion, reason: str) -> PlannedEntry | None:
        """Return an entry that waits for a person's answer; None if the answer lets it go on."""
        is_accepted = self._decided(question).partition(":")[0] in (NEW, BOTH)
        return None if is_accepted else self._wait(staged, question, reason)

    def _wait(self, staged: StagedEntry, question: OpenQuestion, reason: str) -> PlannedEntry:
        """Return an entry that stays until a person has answered a question, or because of the answer."""
        answer = self._decided(question)
        is_open = answer in ("", ASKED)
        return PlannedEntry(
            staged=staged,
            verdict=ESCALATED if is_open else KEPT,
            reason=reason if is_open else f"{answer}; it is asked again when it changes",
            question=question,
            waits_for=question.id,
        )


class _TopicWriter:
    """Writes entries into topic files, which are only texts here, and splits those that become too long."""

    def __init__(
        self,
        topics: Sequence[Topic],
        renewed: Mapping[str, str],
        calling: CallingWords,
        *,
        folder: str,
        reserved: Collection[str],
        decided: Decided,
        limit_lines: int,
    ) -> None:
        """`renewed` are the texts of topic files whose stale entries were changed."""
        self._before = {topic.path: topic for topic in topics}
        self._topics = {topic.path: topic.replace(text=renewed.get(topic.path, topic.text)) for topic in topics}
        self._calling = calling
        self._folder = folder
        self._reserved = reserved
        self._decided = decided
        self._limit = limit_lines
        self._patches: dict[str, OpenQuestion] = {}
        self.split: list[str] = []
        self.questions: list[OpenQuestion] = []

    def write(self, planned: PlannedEntry) -> PlannedEntry:
        """Write an entry into its topic file; if that is a person's and too long, a person decides what happens."""
        path = self._route(planned)
        if self._is_closed(path):
            question = self._patches.get(path) or self._propose_to_split(path)
            self._patches[path] = question
            answer = self._decided(question).partition(":")[0]
            if answer not in CHOICES:
                return self._ask_to_split(planned, question)
            if answer == NEW:
                self._split(path)
                path = self._route(planned)
        topic = self._topics.get(path) or Topic(path=path, text="")
        self._topics[path] = topic.replace(text=write_entries(topic.text, (planned.staged.learning,)))
        return planned.replace(target=path)

    def _route(self, planned: PlannedEntry) -> str:
        topics, learning = list(self._topics.values()), planned.staged.learning
        return route(learning, topics, self._calling, folder=self._folder, reserved=self._reserved)

    def _is_closed(self, path: str) -> bool:
        """Return whether a file is too long already, and is not learnt's to be split."""
        text = self._before[path].text if path in self._before else ""
        return path not in self.split and not is_own(text) and count_lines(text) >= self._limit

    def _propose_to_split(self, path: str) -> OpenQuestion:
        texts = {other: topic.text for other, topic in self._before.items()}
        others = {other: text for other, text in texts.items() if other != path}
        files = split(path, texts[path], limit=self._limit, others=others, reserved=self._reserved)
        return ask_about_patch(path, texts[path], render_patch(texts, files))

    def _ask_to_split(self, planned: PlannedEntry, question: OpenQuestion) -> PlannedEntry:
        if question not in self.questions:
            self.questions.append(question)
        reason = f"{question.file} is too long, and learnt did not make it: a person decides whether to split it"
        return planned.replace(verdict=ESCALATED, reason=reason, question=question, waits_for=question.id)

    def split_long_files(self) -> None:
        """Split the files that learnt made and that have become too long."""
        for path in sorted(self._topics):
            text = self._topics[path].text
            if count_lines(text) >= self._limit and is_own(text):
                self._split(path)

    def _split(self, path: str) -> None:
        others = {other: topic.text for other, topic in self._topics.items() if other != path}
        text = self._topics[path].text
        files = split(path, text, limit=self._limit, others=others, reserved=self._reserved)
        if len(files) > 1:
            self.split.append(path)
        for name, content in files.items():
            self._topics[name] = (self._topics.get(name) or Topic(path=name, text="")).replace(text=content)

    def update_target(self, planned: PlannedEntry) -> PlannedEntry:
        """Return an entry with the file that it stands in after long files were split."""
        home = self._homes.get(planned.id) if planned.verdict == MOVED else None
        return planned.replace(target=home) if home else planned

    @cached_property
    def _homes(self) -> dict[str, str]:
        return find_topic_files(self._topics.values())

    def changed_files(self) -> dict[str, str]:
        """Return the texts of the files that are new or other than before."""
        texts = {path: topic.text for path, topic in self._topics.items()}
        return {path: text for path, text in sorted(texts.items()) if self._is_changed(path, text)}

    def _is_changed(self, path: str, text: str) -> bool:
        return path not in self._before or self._before[path].text != text
