"""Hooks in bad circumstances, counted: no client is disturbed, nobody waits, and nothing that was kept is lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from learnt import Memory
from tests.soak import seed_of
from tests.support import faults, hooks
from tests.support.disk import small_disk

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not os.path.isdir("/proc"), reason="which processes are left is read from /proc"),
]

RUNS = 1_000
MOST_S = 1.0
LEFT_AFTER_S = 5.0
CONVERSATIONS = 100
LEAST_CONVERSATIONS = 10
LEARNINGS = 60
RUNS_PER_FAULT = 25
KILLS_PER_CHECK = 50
PROMPT = "cache the schema of the replica"
TITLES = (
    "Cache the schema of the replica",
    "A replica loses its schema when a cache grows too large",
    "Never lock the schema while the replica fills its cache",
    "The cache of a replica expires: read the schema anew",
)
Share = Callable[[int], int]


class Yard:
    """A project in which hooks are run, timed and judged, and what their clients have said so far."""

    def __init__(self, folder: Path, chance: random.Random, seed: int) -> None:
        self.folder = folder
        self.chance = chance
        self.seed = seed
        self.said: set[str] = set()
        self.counted: Counter[str] = Counter()
        self._times: list[float] = []
        self._slow: list[str] = []
        self._numbers = iter(range(10**9))
        self._usual_s = min(_bare_python_s() for _ in range(5))

    def fill(self) -> None:
        """Make the store, with long and short learnings that prompts ask for, and a misstep."""
        texts = ("", "Seen twice.", 'It "hangs"\n' * 200, "架構 " * 900)
        with Memory.open(self.folder) as memory:
            for _ in range(LEARNINGS):
                title = f"{self.chance.choice(TITLES)} in {self.word()}"
                memory.add(title, observation=self.chance.choice(texts))
            memory.pin(memory.add("Never commit the cache", triggers={"files": ["cart.py"]}).id)
        for name, command in (("PostToolUseFailure", hooks.WRONG), ("PostToolUse", hooks.RIGHT)):
            fields = {"tool_name": "Bash", "tool_input": {"command": command}, "error": hooks.COMPLAINT}
            hooks.send(self.folder, hooks.event("claude", name, "first", **fields))

    def word(self) -> str:
        """Return a word that nobody has said yet."""
        return "".join(chr(ord("a") + int(digit)) for digit in f"{next(self._numbers):06d}") + "x"

    def any_event(self) -> tuple[hooks.Sent, str]:
        """Return some event, and the word that it says if it ends a turn."""
        word = self.word()
        sent = hooks.any_event(self.chance, f"session {word}", teaching(word), PROMPT)
        return sent, word if sent.name in ("Stop", "SubagentStop", "AfterAgent") else ""

    def fire(
        self, client: str, content: bytes, environ: dict[str, str] | None = None, place: Path | None = None
    ) -> hooks.Told:
        """Run a hook, judge it and time it."""
        told = hooks.run(place or self.folder, client, content, environ)
        found = list(hooks.faults_in(told))
        assert not found, f"{found} on {content[:2000]!r} (seed {self.seed})"
        self.counted["answers"] += bool(told.out)
        self._times.append(told.seconds)
        if told.seconds > MOST_S:
            # Where a bare Python takes longer than usual as well, the machine is busy, and a hook may take longer, too.
            busy = max(1.0, max(_bare_python_s() for _ in range(3)) / self._usual_s)
            self.counted["slow beside a slow Python"] += told.seconds <= MOST_S * busy
            if told.seconds > MOST_S * busy:
                self._slow.append(f"{told.seconds:.2f} s beside a Python {busy:.1f} times as slow as usual")
        return told

    def end(self, kind: str) -> None:
        """The fault is over: check what is left, and what is kept, and print what was counted."""
        self.check_that_nobody_is_left()
        hooks.work(self.folder)
        self.report(kind, self.kept())

    def report(self, kind: str, kept: set[str]) -> None:
        """Print what was counted, and check that nothing is lost and nobody waited."""
        times = sorted(self._times)
        print(
            f"\n{kind}: {len(times):,} hooks (seed {self.seed}): median {statistics.median(times) * 1000:.0f} ms, "
            f"p99 {times[int(len(times) * 0.99)] * 1000:.0f} ms, slowest {times[-1] * 1000:.0f} ms; "
            f"{len(self.said):,} turns kept, {len(self.said - kept)} lost; "
            + ", ".join(f"{count:,} {what}" for what, count in sorted(self.counted.items()))
        )
        assert not self.said - kept, f"lost: {sorted(self.said - kept)[:10]}"
        assert not self._slow, self._slow

    def kept(self) -> set[str]:
        """Return the words that the store has, after a look whether all of it is sound and counted once."""
        with Memory.open(self.folder) as memory:
            faults.wait_for_others(memory.context.store.database)
            assert faults.contradictions(memory) == []
            assert _counted_wrongly(memory) == []
            told = Counter(
                one.title.split("`")[1].split()[1] for one in memory.transfer.export() if "`make " in one.title
            )
        assert not [word for word, times in told.items() if times > 1], "learnt twice"
        return set(told)

    def check_that_nobody_is_left(self) -> None:
        deadline = time.monotonic() + LEFT_AFTER_S
        while hooks.processes_in(self.folder):
            left = [_command_of(process) for process in hooks.processes_in(self.folder)]
            assert time.monotonic() < deadline, f"still there after {LEFT_AFTER_S} s: {left}"
            time.sleep(0.05)


@pytest.fixture
def yard(project: Path, chance: random.Random, pytestconfig: pytest.Config) -> Yard:
    return Yard(project, chance, seed_of(pytestconfig))


def teaching(word: str, mark: str = "") -> str:
    """Return what an agent says at the end of a turn."""
    marks = f"\nLEARNING_HELPFUL: {mark}" if mark else ""
    return f"Done.\n<learning>Run `make {word}` before each commit</learning>{marks}"


# One fault, many events


def test_a_locked_database_disturbs_no_client(yard: Yard, share: Share) -> None:
    yard.fill()
    path = yard.folder / ".learnt" / "learnt.db"
    runs = share(RUNS)
    for start in range(0, runs, RUNS_PER_FAULT):
        with _locked(path, everybody=yard.chance.random() < 0.5):
            for _ in range(min(RUNS_PER_FAULT, runs - start)):
                _fire_any(yard)
            yard.check_that_nobody_is_left()
    yard.end("locked database")


def test_a_corrupt_database_disturbs_no_client(yard: Yard, share: Share) -> None:
    yard.fill()
    path = yard.folder / ".learnt" / "learnt.db"
    sound = path.read_bytes()
    for number in range(share(RUNS)):
        # In the first half nobody can take it for a database: no turn can be brought into it and go with it.
        unreadable = number < share(RUNS) // 2
        _damage(path, sound, yard.chance, header=unreadable)
        sent, word = yard.any_event()
        yard.fire(sent.client, sent.content)
        if word and unreadable:
            yard.said.add(word)
        if number + 1 == share(RUNS) // 2:
            _restore(yard, path, sound)
            hooks.work(yard.folder)
            sound = path.read_bytes()
    _restore(yard, path, sound)
    yard.end("corrupt database")
    assert "schema" in _answered(yard, "restored")


def test_a_full_disk_disturbs_no_client(tmp_path: Path, share: Share, yard: Yard) -> None:
    with small_disk(tmp_path / "disk", size=20_000_000) as disk:
        yard.folder = disk.folder
        yard.fill()
        for number in range(share(RUNS)):
            (disk.folder / "ballast").unlink(missing_ok=True)
            if number % RUNS_PER_FAULT == 0:
                hooks.work(disk.folder)
            disk.fill(keep_free=yard.chance.choice((0, 0, yard.chance.randrange(100_000))))
            sent, word = yard.any_event()
            yard.fire(sent.client, sent.content)
            _note_whether_kept(yard, word)
        disk.free()
        yard.end("full disk")


def _note_whether_kept(yard: Yard, word: str) -> None:
    """On a full disk not even the spool takes everything; what it took, it must give back."""
    spooled = b"".join(path.read_bytes() for path in (yard.folder / ".learnt").glob("spool*.jsonl"))
    if word and word.encode() in spooled:
        yard.said.add(word)
    yard.counted["turns without room"] += bool(word) and word.encode() not in spooled


def test_a_missing_store_disturbs_no_client_and_none_is_made(yard: Yard, share: Share) -> None:
    (yard.folder / "place").mkdir()
    for _ in range(share(RUNS)):
        place = yard.folder / "place"
        shutil.rmtree(place)
        place.mkdir()
        for name in yard.chance.sample((".git", ".learnt", "src"), yard.chance.randrange(4)):
            (place / name).mkdir()
        if (place / ".learnt").exists():
            (place / ".learnt" / "learnings.md").write_text("- Cache the schema\n")
        before = sorted(place.rglob("*"))
        sent, _ = yard.any_event()
        assert yard.fire(sent.client, sent.content, place=place).out == b""
        assert sorted(place.rglob("*")) == before
    yard.report("missing store", set())


def test_garbage_on_stdin_disturbs_no_client(yard: Yard, share: Share) -> None:
    yard.fill()
    for _ in range(share(RUNS)):
        sent, _ = yard.any_event()
        yard.fire(sent.client, _garbage(sent, yard.chance))
    yard.end("garbage on stdin")


def test_an_environment_without_a_home_disturbs_no_client(yard: Yard, share: Share) -> None:
    yard.fill()
    bare = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LEARNT_TRUSTED") if name in os.environ}
    for _ in range(share(RUNS)):
        _fire_any(yard, bare)
    yard.end("no HOME")


def _fire_any(yard: Yard, environ: dict[str, str] | None = None) -> None:
    sent, word = yard.any_event()
    yard.fire(sent.client, sent.content, environ)
    if word:
        yard.said.add(word)


# Killed


def test_killed_hooks_and_workers_leave_a_sound_store_and_lose_nothing(
    database: str, yard: Yard, share: Share, chance: random.Random
) -> None:
    yard.fill()
    hooks.work(yard.folder)
    for number in range(share(RUNS)):
        sent, word = _to_be_killed(yard, number)
        if _killed_at_random(yard, sent):
            yard.counted["killed"] += 1
        elif word:
            yard.said.add(word)
        assert "schema" in _answered(yard, f"after {number}"), "the next prompt is answered"
        if number % KILLS_PER_CHECK == 0:
            yard.check_that_nobody_is_left()
            hooks.work(yard.folder)
            assert not yard.said - yard.kept()
    yard.end(f"killed, {'PostgreSQL' if database else 'SQLite'}")


def _answered(yard: Yard, session: str) -> str:
    """Return the answer to a prompt, however busy the machine is."""
    sent = hooks.event(yard.chance.choice(hooks.CLIENTS), "UserPromptSubmit", session, prompt=PROMPT)
    return yard.fire(sent.client, sent.content, {**os.environ, "LEARNT_HOOK_DEADLINE_MS": "20000"}).text


def _to_be_killed(yard: Yard, number: int) -> tuple[hooks.Sent | None, str]:
    """Return an event for a hook that will not live long, and what it says; None for the worker."""
    client, word = yard.chance.choice(hooks.CLIENTS), yard.word()
    session = f"killed {number}"
    kind = yard.chance.choice(("stop", "stop", "prompt", "failed", "session", "worker"))
    if kind == "stop":
        hooks.send(yard.folder, hooks.event(client, "UserPromptSubmit", session, prompt=PROMPT))
        return hooks.stop(client, session, teaching(word)), word
    if kind == "prompt":
        return hooks.event(client, "UserPromptSubmit", session, prompt=PROMPT), ""
    if kind == "failed":
        return hooks.failed_call(client, session, yard.folder.parent, f"./ship --fast {word}"), ""
    return (hooks.event(client, "SessionStart", session, source="startup"), "") if kind == "session" else (None, "")


def _killed_at_random(yard: Yard, sent: hooks.Sent | None) -> bool:
    """Start a hook, or the worker, and kill it; False when it had ended before."""
    words = hooks.words_of(sent.client) if sent else [sys.executable, "-P", "-m", "learnt.doors.worker", "."]
    process = subprocess.Popen(
        words, cwd=yard.folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    with process:
        if sent:
            process.stdin.write(sent.content)
        process.stdin.close()
        time.sleep(yard.chance.uniform(0, 0.15 if sent else 0.4))  # when it is hit is chance; nothing is asserted of it
        process.kill()
    return process.returncode != 0


# Many at once


def test_parallel_conversations_lose_no_debrief_and_hear_nothing_twice(database: str, yard: Yard, share: Share) -> None:
    count = max(LEAST_CONVERSATIONS, share(CONVERSATIONS))
    with Memory.open(yard.folder) as memory:
        known = [memory.add(title).id for title in TITLES]
    hooks.work(yard.folder)
    words = [yard.word() for _ in range(count)]
    with ThreadPoolExecutor(count) as pool:
        heard = list(pool.map(lambda word: _converse(yard.folder, word, known), words))
    yard.check_that_nobody_is_left()
    hooks.work(yard.folder)
    twice = [one for texts in heard for one in _ids_heard_twice(texts, known)]
    marked = [word for word, texts in zip(words, heard, strict=True) if any(known[0] in text for text in texts)]
    with Memory.open(yard.folder) as memory:
        helpful = memory.get(known[0]).times_helpful
    lost = set(words) - yard.kept()
    print(
        f"\n{'PostgreSQL' if database else 'SQLite'}: {count} conversations at once (seed {yard.seed}): "
        f"{len(lost)} debriefs lost, {helpful} of {len(marked)} marks counted, "
        f"{sum(map(len, heard)):,} hooks, {sum(bool(text) for texts in heard for text in texts):,} answers, "
        f"{len(twice)} learnings heard twice"
    )
    assert lost == set()
    assert helpful == len(marked)
    assert twice == []


def _converse(folder: Path, word: str, known: list[str]) -> list[str]:
    """Hold a conversation, and return what its agent heard after the index at its start, which gives no learning."""
    client, session = hooks.CLIENTS[ord(word[-2]) % len(hooks.CLIENTS)], f"talk {word}"
    call = {"tool_name": "Bash", "tool_input": {"command": f"./ship --safe {word}"}, "tool_response": "shipped"}
    heard = []
    started = hooks.send(folder, hooks.event(client, "SessionStart", session, source="startup"))
    assert list(hooks.faults_in(started)) == []
    events = (
        *(hooks.event(client, "UserPromptSubmit", session, prompt=f"{PROMPT} {turn}") for turn in range(3)),
        hooks.failed_call(client, session, folder.parent, f"./ship --fast {word}"),
        hooks.event(client, "PostToolUse", session, **call),
    )
    for sent in events:
        told = hooks.send(folder, sent)
        assert list(hooks.faults_in(told)) == []
        heard.append(told.text)
    mark = known[0] if any(known[0] in text for text in heard) else ""
    told = hooks.send(folder, hooks.stop(client, session, teaching(word, mark)))
    assert list(hooks.faults_in(told)) == []
    return heard


def _ids_heard_twice(texts: list[str], known: list[str]) -> list[str]:
    return [id for id in known if sum(id in text for text in texts) > 1]


# Faults


@contextmanager
def _locked(path: Path, *, everybody: bool) -> Iterator[None]:
    """Keep everybody else from writing, or even from reading."""
    holder = apsw.Connection(str(path))
    holder.set_busy_timeout(60_000)
    if everybody:
        holder.execute("pragma locking_mode = exclusive")
    holder.execute("begin immediate")
    holder.execute("insert into counter (project, name, value) values ('', 'held', 1) on conflict do nothing")
    try:
        yield
    finally:
        holder.execute("rollback")
        holder.close()


def _damage(path: Path, sound: bytes, chance: random.Random, *, header: bool) -> None:
    """Put a damaged copy in the place of a sound database."""
    content = bytearray(sound)
    if header:
        content[: chance.randint(16, 5_000)] = chance.randbytes(5_000)
    else:
        for _ in range(chance.randint(1, 20)):
            at = chance.randrange(100, len(content))
            content[at : at + chance.choice((1, 8, 500))] = chance.randbytes(chance.choice((1, 8, 500)))
        if chance.random() < 0.3:
            del content[chance.randrange(len(content)) :]
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    damaged = path.with_name("damaged")
    damaged.write_bytes(content)
    damaged.replace(path)


def _restore(yard: Yard, path: Path, sound: bytes) -> None:
    yard.check_that_nobody_is_left()
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    path.write_bytes(sound)


def _garbage(sent: hooks.Sent, chance: random.Random) -> bytes:
    """Return what no client should ever send."""
    content = sent.content
    kind = chance.randrange(8)
    if kind == 0:
        return chance.randbytes(chance.randrange(5_000))
    if kind == 1:
        return content[: chance.randrange(len(content))]
    if kind == 2:
        depth = chance.choice((900, 100_000))
        return b'{"hook_event_name": "Stop", "session_id": ' + b'[{"a":' * depth
    if kind == 3:
        size = chance.choice((100_000, 1_000_000, 10_000_000))
        return json.dumps(
            {
                **sent.fields,
                chance.choice(("prompt", "error", "session_id", "last_assistant_message")): "key = x;\n" * (size // 9),
            }
        ).encode()
    return json.dumps(hooks.distorted(chance, sent), ensure_ascii=False).encode("utf-8", "surrogatepass")


def _bare_python_s() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - began


def _command_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return "ended"


def _counted_wrongly(memory: Memory) -> list[str]:
    """Return the learnings that were counted more or less often than they were given or marked."""
    rows = memory.context.store.database.rows(
        """
        select learning.id
          from learning
         where project = :project
           and (times_injected != (
                    select count(*)
                      from injection
                     where injection.project = learning.project
                       and injection.learning = learning.id
                       and injection.delivered_at is not null
                )
                or times_helpful != (
                    select count(*)
                      from mark
                     where mark.project = learning.project
                       and mark.learning = learning.id
                       and mark.helpful = 1
                ))
        """
    )
    return [str(row["id"]) for row in rows]
