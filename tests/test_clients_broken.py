"""From a clean machine to a green doctor with the real clients, and the ways to break that: the doctor names each."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apsw
import pytest

from learnt import __version__
from tests.conftest import Done, command_line
from tests.support import real_clients
from tests.support.answering import put_learnt
from tests.support.model_stub import ModelStub, Reply
from tests.support.stories import Story, approve_hooks

pytestmark = pytest.mark.clients

Change = Callable[[str], str]


class Clients:
    """A project in which all clients of this machine are installed, with one home and one model."""

    def __init__(self, folder: Path, stub: ModelStub) -> None:
        self.story = story = Story("codex", folder, stub)  # of whom a person must approve the hooks
        self.named = ["codex"]
        for client in ("claude", "copilot", "gemini", "opencode"):
            found = real_clients.program(client)
            if not isinstance(found, real_clients.Unavailable):
                story.environ |= real_clients.settle(client, story.home, stub.address, story.project)
                story.environ["PATH"] = f"{story.environ['PATH']}{os.pathsep}{found.parent}"
                self.named.append("claude-code" if client == "claude" else client)
        self.learnt("init")
        self.learnt("install", "--all")
        approve_hooks(story)

    def learnt(self, *words: str, cwd: Path | None = None, **environ: str) -> Done:
        run = command_line(cwd or self.story.project, {**self.story.environ, **environ})
        done = run(*words)
        assert done.code == 0 or words[0] == "doctor", done.out + done.err
        return done

    def fill(self, text: str) -> str:
        return text.replace("{project}", str(self.story.project)).replace("{home}", str(self.story.home))

    @contextmanager
    def changed(self, place: str, change: Change) -> Iterator[None]:
        """Change a file, which need not exist, for a while."""
        path = Path(self.fill(place))
        before = path.read_text() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.fill(change(before or "")))
        try:
            yield
        finally:
            path.write_text(before) if before is not None else path.unlink()

    def says(self, client: str, told: str) -> str:
        """Return what is wrong with a client."""
        lines = told.splitlines()
        about = [number for number, line in enumerate(lines) if re.match(rf"!!  .*client {client}[:,]", line)]
        return "\n".join(line for number in about for line in lines[number : number + 2])


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    with ModelStub(Reply("Nothing to say.")) as stub:
        yield Clients(tmp_path_factory.mktemp("clients"), stub)


def merge(**settings: object) -> Change:
    return lambda text: json.dumps({**json.loads(text or "{}"), **settings})


def drop_an_event(text: str) -> str:
    settings = json.loads(text)
    settings["hooks"].popitem()
    return json.dumps(settings)


OLD = "incomplete, or from an older version"
HOOKS_OFF, SERVER_OFF, UNTRUSTED = "does not run our hooks here", "does not start our server here", "does not trust"
# The client, the file that is changed, how, and what the doctor says.
WAYS: dict[str, list[tuple[str, str, Change, str]]] = {
    "server disabled": [
        ("claude-code", "{project}/.claude/settings.local.json", merge(disabledMcpjsonServers=["learnt"]), SERVER_OFF),
        ("codex", "{project}/.codex/config.toml", lambda text: f"{text}enabled = false\n", SERVER_OFF),
        ("copilot", "{home}/.copilot/settings.json", merge(disabledMcpServers=["learnt"]), SERVER_OFF),
        ("gemini", "{project}/.gemini/settings.json", merge(mcp={"excluded": ["learnt"]}), SERVER_OFF),
        ("opencode", "{project}/opencode.json", merge(tools={"learnt_*": False}), "does not let agents use our tools"),
    ],
    "hooks off": [
        ("claude-code", "{home}/.claude/settings.json", merge(disableAllHooks=True), HOOKS_OFF),
        ("codex", "{project}/.codex/config.toml", lambda text: f"{text}[features]\nhooks = false\n", HOOKS_OFF),
        ("copilot", "{project}/.github/copilot/settings.json", merge(disableAllHooks=True), HOOKS_OFF),
        ("gemini", "{home}/.gemini/settings.json", merge(hooksConfig={"enabled": False}), HOOKS_OFF),
        ("opencode", "{project}/.opencode/plugin/learnt.js", lambda _: "// off\n", "the file exists and is not ours"),
    ],
    "untrusted": [
        (
            "claude-code", "{home}/.claude.json",
            lambda _: '{"projects": {"{project}": {"hasTrustDialogAccepted": false}}}', UNTRUSTED,
        ),
        ("codex", "{home}/.codex/config.toml", lambda text: text.replace('"trusted"', '"untrusted"'), UNTRUSTED),
        ("copilot", "{home}/.copilot/config.json", lambda _: "{}", UNTRUSTED),
        ("gemini", "{home}/.gemini/trustedFolders.json", lambda _: "{}", UNTRUSTED),
    ],
    "old settings": [
        ("claude-code", "{project}/.claude/settings.json", drop_an_event, OLD),
        ("codex", "{project}/.codex/hooks.json", drop_an_event, OLD),
        ("copilot", "{project}/.github/hooks/learnt.json", drop_an_event, OLD),
        ("gemini", "{project}/.gemini/settings.json", drop_an_event, OLD),
        ("opencode", "{project}/.opencode/plugin/learnt.js", lambda text: f"{text}// 1\n", OLD),
    ],
    "plugin twice": [
        ("claude-code", "{home}/.claude/settings.json", merge(enabledPlugins={"learnt@learnt": True}), "runs twice"),
        ("gemini", "{home}/.gemini/extensions/learnt/gemini-extension.json", merge(), "every hook runs twice"),
    ],
    "damaged settings": [
        ("claude-code", "{project}/.mcp.json", lambda text: text[:-3], "cannot be read: line"),
        ("codex", "{project}/.codex/config.toml", lambda text: f"{text}x =\n", "cannot be read: "),
        ("copilot", "{project}/.github/hooks/learnt.json", lambda text: text[:-3], "cannot be read: line"),
        ("gemini", "{project}/.gemini/settings.json", lambda text: text[:-3], "cannot be read: line"),
        ("opencode", "{project}/opencode.json", lambda text: text[:-3], "cannot be read: line"),
    ],
}  # fmt: skip


def test_after_init_and_install_the_doctor_finds_nothing_wrong_and_changes_nothing(clients: Clients) -> None:
    told = clients.learnt("doctor")
    before = {path: path.stat().st_mtime_ns for path in clients.story.home.rglob("*")}
    again = clients.learnt("doctor")

    assert (told.code, again.out) == (0, told.out), told.out
    for client in clients.named:
        (line,) = (line for line in told.out.splitlines() if f"client {client}" in line)
        assert "hooks and server answer" in line
    assert {path: path.stat().st_mtime_ns for path in clients.story.home.rglob("*")} == before


@pytest.mark.parametrize("way", WAYS)
def test_what_is_broken_is_named_for_each_client(way: str, clients: Clients) -> None:
    ways = [one for one in WAYS[way] if one[0] in clients.named]
    with ExitStack() as stack:
        for _, place, change, _ in ways:
            stack.enter_context(clients.changed(place, change))
        told = clients.learnt("doctor")

    assert told.code == 1
    for client, _, _, named in ways:
        assert named in clients.says(client, told.out), told.out


def test_below_the_project_the_clients_that_read_nothing_there_are_named(clients: Clients) -> None:
    below = clients.story.project / "src"
    below.mkdir()
    told = clients.learnt("doctor", cwd=below).out
    for client in {"claude-code", "gemini"} & set(clients.named):
        assert f"only if it is started in {clients.story.project}, and this is {below}" in clients.says(client, told)


def test_a_learnt_that_is_missing_or_another_one_is_named_once_for_all_clients(
    clients: Clients, tmp_path: Path
) -> None:
    path = clients.story.environ["PATH"].split(os.pathsep)
    without = os.pathsep.join(folder for folder in path if not Path(folder, "learnt").exists())
    missing = clients.learnt("doctor", PATH=without).out
    put_learnt(tmp_path, version="0.0.9")
    other = clients.learnt("doctor", PATH=f"{tmp_path}{os.pathsep}{without}").out
    put_learnt(tmp_path, text="#!/bin/sh\nexec sleep 60\n")
    hanging = clients.learnt("doctor", PATH=f"{tmp_path}{os.pathsep}{without}").out

    for client in clients.named:
        assert "learnt is not on PATH\n    `export PATH=" in clients.says(client, missing)
        assert f"{tmp_path}/learnt is learnt 0.0.9, and this is learnt {__version__}, " in clients.says(client, other)
        assert f"{tmp_path}/learnt hangs" in clients.says(client, hanging)
    assert missing.count("learnt is not on PATH") == other.count("is learnt 0.0.9") == 1


def test_a_locked_store_and_a_setup_for_the_user_as_well_are_named(clients: Clients) -> None:
    clients.learnt("install", "codex", "--user")
    database = apsw.Connection(str(clients.story.project / ".learnt" / "learnt.db"))
    database.execute("begin immediate")

    told = clients.learnt("doctor").out

    database.close()
    clients.learnt("uninstall", "codex", "--user")
    assert "another process keeps" in told
    assert "so that every hook runs twice\n    `learnt uninstall codex`" in clients.says("codex", told)


def test_the_real_codex_says_what_it_trusts_of_the_users_own_hooks(clients: Clients) -> None:
    clients.learnt("uninstall", "codex")
    clients.learnt("install", "codex", "--user")
    config = clients.story.home / ".codex" / "config.toml"
    before = config.read_text()
    config.write_text(re.sub(r"(?ms)^\[projects\..*?(?=^\[|\Z)", "", before))  # a person approves it again
    untrusted = clients.learnt("doctor").out
    approve_hooks(clients.story)

    trusted = clients.learnt("doctor")
    config.write_text(re.sub(r'(?s)(.*trusted_hash = ")[^"]*', r"\1sha256:0", config.read_text()))
    changed = clients.learnt("doctor").out

    config.write_text(before)
    clients.learnt("uninstall", "codex", "--user")
    clients.learnt("install", "codex")
    assert "hooks (not approved yet)" in clients.says("codex", untrusted)
    assert "ok  client codex: in " in trusted.out, trusted.out
    assert clients.says("codex", trusted.out) == ""
    assert "(changed since it was approved)" in clients.says("codex", changed)


def test_text_that_a_client_drops_is_named(clients: Clients) -> None:
    clients.learnt("add", "Speak with the pilot first", "--on-command", "ship")
    with clients.story.garbled_hooks():
        clients.story.converse("Speak with the pilot, please", Reply("Yes."))
    told = clients.learnt("doctor").out
    assert "Codex ran our hooks and dropped their text: 2 briefs in its last conversation (session, prompt)" in told
