"""The doctor says of each client whether it is trusted, and when its hooks last fired, how long it took, what came."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from select import select
from typing import Any

import pytest

from learnt import Memory
from learnt.clients import registry
from learnt.clients.kit.setup import Question
from learnt.flow.client_questions import ask_client
from learnt.flow.context import now_ms
from learnt.store import fired
from tests.conftest import Done, command_line
from tests.support import real_clients
from tests.support.answering import put_learnt
from tests.support.doors import open_doors

Command = Callable[..., Done]
CODEX = tuple(registry.get("codex", "setup").events)


class Doctor:
    """The doctor in a project where programs of ours are on PATH, and nothing else."""

    def __init__(self, project: Path, bin: Path) -> None:
        self.bin = bin
        self.project = project
        self.environ = {**os.environ, "PATH": str(bin)}
        self.run = open_doors(project, self.environ)
        put_learnt(bin)
        assert self.run("init").code == 0

    def program(self, name: str, text: str) -> None:
        self.bin.mkdir(exist_ok=True)
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def codex(self, *lines: str) -> None:
        """Let a program take the part of Codex."""
        self.program("codex", "\n".join((f"#!{sys.executable}", "import json, os, sys, time", *lines)))

    def says(self, client: str) -> dict[str, Any]:
        told = json.loads(self.run("doctor", "--json").out)["findings"]
        finding, *_ = [one for one in told if one["subject"] == f"client {client}"]
        return dict(finding)


def _question(doctor: Doctor) -> Question:
    messages = ({"id": 1, "method": "initialize"},)
    return Question(words=("codex", "app-server"), folder=str(doctor.project), messages=messages, reply_id=1)


@pytest.fixture
def doctor(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    return Doctor(project, tmp_path / "bin")


class TestFired:
    def test_the_last_event_of_each_client_is_read_again(self, tmp_path: Path) -> None:
        fired.note(str(tmp_path), "claude", "compaction", 1_000, 123.456, 12_345)
        fired.note(str(tmp_path), "claude", "end", 2_000, 5, 0)
        fired.note(str(tmp_path), "codex", "prompt", 3_000, 12.3, 840)

        found = fired.read(str(tmp_path))

        assert found["claude"].as_dict() == {"at": 2_000, "event": "end", "duration_ms": 5.0, "chars": 0}
        assert found["codex"].as_dict() == {"at": 3_000, "event": "prompt", "duration_ms": 12.3, "chars": 840}
        assert (tmp_path / "fired" / "claude.json").stat().st_mode & 0o077 == 0
        assert (tmp_path / "fired").stat().st_mode & 0o077 == 0

    @pytest.mark.parametrize("client", ["", "-", "../out", "a/b", "a.b", "x" * 100, "a\0b"])
    def test_what_cannot_name_a_file_is_not_written(self, client: str, tmp_path: Path) -> None:
        (tmp_path / "store").mkdir()
        fired.note(str(tmp_path / "store"), client, "prompt", 1, 1.0, 1)
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

    def test_a_folder_that_is_missing_or_is_none_disturbs_nobody(self, tmp_path: Path) -> None:
        fired.note(str(tmp_path / "missing"), "claude", "prompt", 1, 1.0, 1)
        (tmp_path / "fired").write_text("a file")
        fired.note(str(tmp_path), "claude", "prompt", 1, 1.0, 1)
        assert fired.read(str(tmp_path)) == fired.read(str(tmp_path / "missing")) == {}

    @pytest.mark.parametrize("content", [b"", b"\0" * 240, b"[]", b"null", b'{"at": 1}', b"[" * 100_000, b"\xff\xfe"])
    def test_what_cannot_be_read_is_as_if_it_were_not_there(self, content: bytes, tmp_path: Path) -> None:
        (tmp_path / "fired").mkdir()
        (tmp_path / "fired" / "claude.json").write_bytes(content)
        assert fired.read(str(tmp_path)) == {}
        fired.note(str(tmp_path), "claude", "prompt", 1, 1.0, 1)
        assert fired.read(str(tmp_path)).keys() == {"claude"}

    def test_of_many_at_once_one_is_left_whole(self, tmp_path: Path) -> None:
        def fire(number: int) -> None:
            for at in range(50):
                fired.note(str(tmp_path), "claude", "prompt" * (1 + number), at, 10.0**number, 10**number)

        threads = [threading.Thread(target=fire, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = fired.read(str(tmp_path))["claude"]
        assert found.duration_ms == found.chars

    def test_it_loads_nothing_but_what_python_has_loaded(self) -> None:
        program = "import sys; before = set(sys.modules); import learnt.store.fired; print(set(sys.modules) - before)"
        bare = "import sys; before = set(sys.modules); import learnt.store; print(set(sys.modules) - before)"
        more, less = (
            subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True).stdout
            for words in (program, bare)
        )
        assert set(re.findall(r"[\w.]+", more)) - set(re.findall(r"[\w.]+", less)) == {"learnt.store.fired"}


class TestDoctor:
    def test_what_a_real_hook_did_is_seen_by_the_doctor_and_in_the_activity(self, doctor: Doctor) -> None:
        doctor.run("install", "claude-code")
        doctor.run("add", "Paint the shop in red")
        event = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "Paint the shop, please"}
        answer = doctor.run("hook", "--client", "claude", stdin=json.dumps(event)).out
        assert "in red" in answer

        told = doctor.says("claude-code")["facts"]
        (entry,) = json.loads(doctor.run("activity", "--client", "claude-code", "--json").out)["activity"]

        assert (told["last_fired"]["event"], told["last_fired"]["chars"]) == ("prompt", len(answer))
        assert told["last_brief"]["id"] == entry["id"]
        assert (entry["client"], entry["occasion"], entry["asked_by"]) == ("claude", "prompt", "hook")
        assert entry["learnings"] == 1
        assert doctor.run("activity", "--line").out == "learnt: 1 brief today, not known to be delivered\n"

    def test_a_client_that_never_fired_is_told_with_what_to_do(self, doctor: Doctor) -> None:
        doctor.run("install", "claude-code")
        doctor.program("claude", "#!/bin/sh\n")

        told = doctor.says("claude-code")

        assert told["fine"]
        assert "none of its hooks has fired here yet" in told["detail"]
        assert "send a prompt" in told["remedy"]
        assert "restart Claude Code (2.1 or newer)" in told["remedy"]
        assert told["facts"] == {
            "client": "claude-code",
            "installed": True,
            "trusted": None,
            "answers": {"hooks": True, "server": True},
            "last_fired": None,
            "last_brief": None,
        }

    def test_a_client_that_fired_is_told_with_when_how_long_and_what_it_gave(self, doctor: Doctor) -> None:
        doctor.run("install", "claude-code")
        at = now_ms() - 5 * 60_000
        fired.note(str(doctor.project / ".learnt"), "claude", "prompt", at, 12.3, 840)
        with Memory.open(doctor.project) as memory:
            memory.add("Paint the shop in red")
            brief = memory.brief("Paint the shop", client="claude", occasion="prompt")

        told = doctor.says("claude-code")

        assert told["fine"]
        assert told["remedy"] == ""
        assert "last fired 5 min ago (prompt), took 12 ms and returned 840 characters" in told["detail"]
        assert f"last brief just now (prompt): 1 learning, {brief.tokens} tokens" in told["detail"]
        assert told["facts"]["last_fired"] == {"at": at, "event": "prompt", "duration_ms": 12.3, "chars": 840}
        assert told["facts"]["last_brief"]["id"] == brief.id
        assert "took 12 ms" in doctor.run("doctor").out

    def test_a_client_that_a_plugin_set_up_is_told_of(self, doctor: Doctor) -> None:
        fired.note(str(doctor.project / ".learnt"), "claude", "prompt", now_ms(), 12.3, 840)

        told = doctor.says("claude-code")

        assert told["fine"]
        assert told["facts"]["client"] == "claude-code"
        assert told["detail"].startswith("not set up by `learnt install`: ")
        assert "; last fired" in told["detail"]
        assert "took 12 ms and returned 840 characters" in told["detail"]
        assert (told["facts"]["installed"], told["facts"]["last_fired"]["chars"]) == (False, 840)

    def test_more_than_half_of_the_deadline_is_remarked(self, doctor: Doctor) -> None:
        del doctor.environ["LEARNT_HOOK_DEADLINE_MS"]
        doctor.run("install", "gemini")
        fired.note(str(doctor.project / ".learnt"), "gemini", "prompt", now_ms(), 201.0, 0)
        told = doctor.says("gemini")
        assert told["fine"]
        assert "more than half of the 400 ms" in told["remedy"]
        (doctor.project / "learnt.toml").write_text("hook_deadline_ms = 2000\n")
        assert doctor.says("gemini")["remedy"] == ""

    def test_a_damaged_store_hides_no_client(self, doctor: Doctor) -> None:
        doctor.run("install", "gemini")
        (doctor.project / ".learnt" / "learnt.db").write_bytes(b"garbage" * 1_000)
        assert "none of its hooks has fired" in doctor.says("gemini")["detail"]

    @pytest.mark.parametrize(
        ("folders", "trusted"),
        [
            ({}, False),
            ({"{project}": "TRUST_FOLDER"}, True),
            ({"{above}": "TRUST_FOLDER"}, True),
            ({"{project}/src": "TRUST_PARENT"}, True),
            ({"{above}": "TRUST_FOLDER", "{project}": "DO_NOT_TRUST"}, False),
            ([], False),
        ],
    )
    def test_gemini_is_trusted_as_its_file_says(
        self, doctor: Doctor, home: Path, folders: Any, trusted: bool | None
    ) -> None:
        doctor.run("install", "gemini")
        text = json.dumps(folders)
        text = text.replace("{project}", str(doctor.project)).replace("{above}", str(doctor.project.parent))
        (home / ".gemini").mkdir()
        (home / ".gemini" / "trustedFolders.json").write_text(text)

        told = doctor.says("gemini")

        assert told["facts"]["trusted"] is trusted
        assert told["fine"] is (trusted is not False)
        assert ("/permissions" in told["remedy"]) or trusted

    def test_claude_code_is_trusted_when_its_dialog_was_accepted(self, doctor: Doctor, home: Path) -> None:
        doctor.run("install", "claude-code")
        accepted = {"projects": {str(doctor.project): {"hasTrustDialogAccepted": True}}}
        (home / ".claude.json").write_text(json.dumps(accepted))
        told = doctor.says("claude-code")
        assert told["facts"]["trusted"] is True
        assert "and trusted" in told["detail"]
        (home / ".claude.json").write_text("{no json")
        assert doctor.says("claude-code")["facts"]["trusted"] is None


def key(project: Path, event: str) -> str:
    """Return by what Codex knows a hook of the project."""
    return f"{project / '.codex' / 'hooks.json'}:{re.sub(r'(?<=[a-z])(?=[A-Z])', '_', event).lower()}:0:0"


def answering(hooks: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return a program that answers as Codex does."""
    return (
        f"hooks = json.loads({json.dumps(json.dumps(hooks))})",
        "for line in sys.stdin:",
        "    asked = json.loads(line)",
        "    print('a warning that is no JSON', flush=True)",
        "    print(json.dumps({'method': 'configWarning', 'params': {}}), flush=True)",
        "    if asked['method'] == 'initialize':",
        "        print(json.dumps({'id': asked['id'], 'result': {}}), flush=True)",
        "    if asked['method'] == 'hooks/list':",
        "        data = [{'cwd': asked['params']['cwds'][0], 'hooks': hooks}]",
        "        print(json.dumps({'id': asked['id'], 'result': {'data': data}}), flush=True)",
    )


def trust_in_file(home: Path, project: Path) -> None:
    """Let Codex's file say that everything is trusted."""
    (home / ".codex").mkdir(exist_ok=True)
    states = "".join(f'[hooks.state."{key(project, event)}"]\ntrusted_hash = "sha256:1"\n' for event in CODEX)
    (home / ".codex" / "config.toml").write_text(f'[projects."{project}"]\ntrust_level = "trusted"\n{states}')


class TestCodex:
    @pytest.fixture(autouse=True)
    def installed(self, doctor: Doctor, home: Path) -> None:
        doctor.run("install", "codex")
        trust_in_file(home, doctor.project)

    def hooks(self, doctor: Doctor, **statuses: str) -> list[dict[str, Any]]:
        return [
            {"key": key(doctor.project, event), "enabled": True, "trustStatus": statuses.get(event, "trusted")}
            for event in CODEX
        ]

    def test_codex_itself_says_that_a_hook_was_changed_since(self, doctor: Doctor) -> None:
        doctor.codex(*answering(self.hooks(doctor, Stop="modified", PreToolUse="untrusted")))

        told = doctor.says("codex")

        assert not told["fine"]
        assert "PreToolUse (not approved yet), Stop (changed since it was approved)" in told["detail"]
        assert "SessionStart" not in told["detail"]
        assert "/hooks" in told["remedy"]
        assert told["facts"]["trusted"] is False

    def test_a_hook_that_has_fired_since_stands_above_a_distrust_of_all(self, doctor: Doctor) -> None:
        doctor.codex(*answering(self.hooks(doctor, **dict.fromkeys(CODEX, "untrusted"))))
        store = str(doctor.project / ".learnt")
        fired.note(store, "codex", "prompt", now_ms() - 3_600_000, 20.0, 0)
        assert not doctor.says("codex")["fine"]
        fired.note(store, "codex", "prompt", now_ms(), 20.0, 0)
        told = doctor.says("codex")
        assert told["fine"]
        assert "does not trust" not in told["detail"]

        doctor.codex(*answering(self.hooks(doctor, Stop="modified")))
        assert not doctor.says("codex")["fine"]  # another one may have fired

    def test_what_codex_says_stands_above_its_file(self, doctor: Doctor, home: Path) -> None:
        (home / ".codex" / "config.toml").write_text("")
        doctor.codex(*answering(self.hooks(doctor, Stop="managed")))
        told = doctor.says("codex")
        assert told["fine"]
        assert told["facts"]["trusted"] is True

    def test_a_hook_that_was_switched_off_or_is_not_listed_is_told(self, doctor: Doctor) -> None:
        hooks = self.hooks(doctor)
        hooks[0]["enabled"] = False
        doctor.codex(*answering(hooks[:-1]))
        told = doctor.says("codex")["detail"]
        assert f"{CODEX[0]} (disabled)" in told
        assert f"{CODEX[-1]} (not seen by Codex)" in told

    def test_hooks_that_codex_does_not_see_at_all_are_told_by_its_file_or_as_unseen(
        self, doctor: Doctor, home: Path
    ) -> None:
        doctor.codex(*answering([]))
        assert "does not see these hooks" in doctor.says("codex")["detail"]
        (home / ".codex" / "config.toml").write_text("")
        assert f"does not trust {doctor.project}" in doctor.says("codex")["detail"]

    def test_hooks_that_are_switched_off_are_told_as_that_alone(self, doctor: Doctor) -> None:
        doctor.codex(*answering([]))
        config = doctor.project / ".codex" / "config.toml"
        config.write_text(f"{config.read_text()}[features]\nhooks = false\n")
        told = doctor.run("doctor").out
        assert "`hooks` is false under [features]" in told
        assert "does not see these hooks" not in told

    @pytest.mark.parametrize(
        "lines",
        [
            ("sys.exit(1)",),
            ("print('[' * 100000)",),
            ("print(json.dumps({'id': 2, 'error': {'code': -32601}}))",),
            ("print(json.dumps({'id': 2, 'result': {'data': [{'hooks': ['x']}]}}))",),
            ("os.close(0)", "print(1)"),
        ],
        ids=["ends", "garbage", "refuses", "answers otherwise", "does not listen"],
    )
    def test_without_an_answer_of_codex_its_file_counts(self, doctor: Doctor, lines: tuple[str, ...]) -> None:
        doctor.codex(*lines)
        told = doctor.says("codex")
        assert told["fine"]
        assert told["facts"]["trusted"] is True

    def test_a_codex_that_hangs_is_ended_with_all_that_it_started(
        self, doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        note = tmp_path / "pids"
        doctor.codex(
            "child = os.fork()",
            f"open({str(note)!r}, 'a').write(f'{{os.getpid()}} ')",
            "time.sleep(600)",
        )
        monkeypatch.setenv("PATH", str(doctor.bin))
        assert ask_client(_question(doctor), limit_s=1.0) is None
        for pid in note.read_text().split():
            assert _is_gone(int(pid))

    def test_without_codex_on_path_nobody_is_asked(self, doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(doctor.bin))
        assert ask_client(_question(doctor)) is None
        assert doctor.says("codex")["fine"]

    def test_install_asks_nobody(self, doctor: Doctor, tmp_path: Path) -> None:
        doctor.codex(f"open({str(tmp_path / 'asked')!r}, 'w')")
        assert doctor.run("install", "codex").code == 0
        assert not (tmp_path / "asked").exists()
        doctor.run("doctor")
        assert (tmp_path / "asked").exists()


def _is_gone(pid: int) -> bool:
    """Say whether a process that was killed has ended, as soon as it has."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select([process], [], [], 60)[0])
    finally:
        os.close(process)


@pytest.mark.clients
def test_the_real_codex_says_what_it_trusts(doctor: Doctor, home: Path, tmp_path: Path) -> None:
    program = real_clients.program("codex")
    if isinstance(program, real_clients.Unavailable):
        pytest.skip(f"no codex: {program}")
    path = f"{doctor.bin}{os.pathsep}{program.parent}{os.pathsep}{os.environ['PATH']}"
    doctor.run = command_line(doctor.project, {**os.environ, "PATH": path})
    real_clients.settle("codex", home, "http://127.0.0.1:9", doctor.project)
    config = home / ".codex" / "config.toml"
    doctor.run("install", "codex")

    assert f"does not trust {doctor.project}" in doctor.says("codex")["detail"]

    config.write_text(config.read_text() + f'\n[projects."{doctor.project}"]\ntrust_level = "trusted"\n')
    told = doctor.says("codex")
    assert f"{len(CODEX)} hooks (not approved yet)" in told["detail"]

    hashes = _hashes({**os.environ, "PATH": path}, doctor.project)
    assert hashes.keys() == {key(doctor.project, event) for event in CODEX}
    states = "".join(f'[hooks.state."{name}"]\ntrusted_hash = "{hash}"\n' for name, hash in hashes.items())
    config.write_text(config.read_text() + states)
    assert doctor.says("codex")["facts"]["trusted"] is True

    config.write_text(config.read_text().replace(hashes[key(doctor.project, "Stop")], "sha256:0"))
    told = doctor.says("codex")
    assert not told["fine"]
    assert "Stop (changed since it was approved)" in told["detail"]

    config.write_text(config.read_text().replace("[features]\n", "[features]\nhooks = false\n"))
    assert _hashes({**os.environ, "PATH": path}, doctor.project) == {}
    assert "does not run our hooks here (`hooks` is false" in doctor.says("codex")["detail"]


def _hashes(environ: Mapping[str, str], project: Path) -> dict[str, str]:
    """Return what Codex makes of each hook, by which a person's approval is kept."""
    with subprocess.Popen(
        ["codex", "app-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=project,
        env=environ,
    ) as process:
        assert process.stdin
        assert process.stdout
        for asked in (
            {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
            {"method": "initialized"},
            {"id": 2, "method": "hooks/list", "params": {"cwds": [str(project)]}},
        ):
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
        told = next(one for one in map(json.loads, process.stdout) if one.get("id") == 2)
        process.stdin.close()
        return {hook["key"]: hook["currentHash"] for hook in told["result"]["data"][0]["hooks"]}
