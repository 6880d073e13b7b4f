"""The doctor tries what was installed, and names what keeps it from working with what to do; install finds clients."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from learnt import Memory, __version__
from learnt.clients import registry
from learnt.clients.claude_code import setup as claude_code
from learnt.clients.codex import setup as codex
from learnt.clients.kit.setup import Location
from learnt.clients.opencode import setup as opencode
from learnt.flow import client_questions, diagnosis, install
from learnt.flow.context import now_ms
from learnt.store import fired
from learnt.system.installation import own_script
from tests.conftest import Done
from tests.support.answering import ANSWERS, put_learnt
from tests.support.terminal import Terminal

Learnt = Callable[..., Done]
NO_ANSWER = "#!/bin/sh\nread -r line\n"
NO_SERVER = """#!/bin/sh
[ "$1" = hook ] && echo '{"learnt": "VERSION"}' && exit
echo 'error: the Python package `mcp` is missing' >&2; exit 2
"""
OLD_HOOK = "sh -c 'learnt hook --client claude 2>/dev/null || exit 0'"
OPENCODE_MARK = opencode.plugin(Location(root="")).partition("\n")[0] + "\n"
OLD_SETTINGS = {
    "permissions": {"allow": ["Bash(ls:*)", "mcp__learnt__*"]},
    "hooks": {event: [{"hooks": [{"type": "command", "command": OLD_HOOK, "timeout": 5}]}] for event in ("Stop",)},
}


class Machine:
    """A project, a home and a PATH on which there is a learnt that answers, and the client's program."""

    def __init__(self, learnt: Learnt, project: Path, home: Path, bin: Path) -> None:
        self.learnt = learnt
        self.project = project
        self.home = home
        self.bin = bin
        self.path = put_learnt(bin)

    def install(self, client: str) -> None:
        self.add_program(registry.get(client, "setup").name)
        assert self.learnt("init", env=self.path).code == 0
        assert self.learnt("install", client, env=self.path).code == 0

    def add_program(self, name: str) -> None:
        (self.bin / name).write_text("#!/bin/sh\n")
        (self.bin / name).chmod(0o755)

    def write(self, place: str, value: object) -> None:
        """Write a file; `{project}` and `{home}` stand for the folders, also in the content."""
        text = value if isinstance(value, str) else json.dumps(value)
        path = Path(self.fill(place))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.fill(text))

    def fill(self, text: str) -> str:
        return text.replace("{project}", str(self.project)).replace("{home}", str(self.home))

    def trust(self) -> None:
        self.write("{home}/.claude.json", {"projects": {"{project}": {"hasTrustDialogAccepted": True}}})
        self.write("{home}/.gemini/trustedFolders.json", {"{project}": "TRUST_FOLDER"})
        self.write("{home}/.copilot/config.json", {"trustedFolders": ["{project}"]})
        hooks = [f'[hooks.state."{key}"]\ntrusted_hash = "x"\n' for key in self.codex_hooks()]
        self.write("{home}/.codex/config.toml", '[projects."{project}"]\ntrust_level = "trusted"\n' + "".join(hooks))

    def codex_hooks(self, path: str = "") -> list[str]:
        path = path or str(self.project / ".codex" / "hooks.json")
        return list(codex._hook_keys(path, lambda path: Path(path).read_bytes() if Path(path).exists() else None))

    def says(self, client: str, cwd: Path | None = None) -> dict[str, Any]:
        told = json.loads(self.learnt("doctor", "--json", env=self.path, cwd=cwd).out)["findings"]
        finding, *_ = [one for one in told if one["subject"] == f"client {client}"]
        return dict(finding)


@pytest.fixture
def machine(learnt: Learnt, project: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(claude_code, "MANAGED", (str(tmp_path / "managed.json"),))
    monkeypatch.setattr(codex, "MANAGED", str(tmp_path / "requirements.toml"))
    (project / ".git").mkdir()
    return Machine(learnt, project, home, tmp_path / "bin")


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "opencode"])
def test_what_was_installed_is_tried_and_found_to_work(client: str, machine: Machine) -> None:
    machine.install(client)
    machine.trust()

    told = machine.says(client)

    assert told["fine"], told
    assert told["facts"]["answers"] == {"hooks": True, "server": True}


PROJECT = {"projects": {"{project}": {"hasTrustDialogAccepted": True, "disabledMcpjsonServers": ["learnt"]}}}
BROKEN: dict[str, tuple[str, str, object, str, str]] = {
    "server not ticked": (
        "claude-code", "{home}/.claude.json", PROJECT,
        "does not start our server here (`disabledMcpjsonServers` lists `learnt` in {home}/.claude.json)", "/mcp",
    ),
    "server disabled": (
        "claude-code", "{project}/.claude/settings.local.json", {"disabledMcpjsonServers": ["learnt"]},
        "`disabledMcpjsonServers` lists `learnt` in {project}/.claude/settings.local.json", "take `learnt` out of",
    ),
    "untrusted": (
        "claude-code", "{home}/.claude.json", {"projects": {"{project}": {"hasTrustDialogAccepted": False}}},
        "Claude Code does not trust {project}", "it asks once whether you trust the folder",
    ),
    "plugin twice": (
        "claude-code", "{home}/.claude/settings.json", {"enabledPlugins": {"learnt@learnt": True, "x@y": True}},
        "every hook runs twice", "`claude plugin uninstall learnt@learnt`",
    ),
    "managed hooks only": (
        "claude-code", "{home}/../managed.json", {"allowManagedHooksOnly": True},
        "`allowManagedHooksOnly` is true", "administrator",
    ),
    "old settings": (
        "claude-code", "{project}/.claude/settings.json", OLD_SETTINGS,
        "incomplete, or from an older version", "`learnt install claude-code`",
    ),
    "codex server off": (
        "codex", "{project}/.codex/config.toml",
        '[mcp_servers.learnt]\ncommand = "learnt"\nargs = ["mcp"]\nenabled = false\n'
        'default_tools_approval_mode = "approve"\n',
        "does not start our server here (`enabled` is false", "set `enabled` to true",
    ),
    "codex managed hooks only": (
        "codex", "{home}/../requirements.toml", "allow_managed_hooks_only = true\n",
        "`allow_managed_hooks_only` is true", "administrator",
    ),
    "codex untrusted": (
        "codex", "{home}/.codex/config.toml", "x = 1\n",
        "Codex does not trust {project} yet", "approve the hooks under `/hooks`",
    ),
    "gemini untrusted": (
        "gemini", "{home}/.gemini/trustedFolders.json", {}, "Gemini CLI does not trust {project}", "/permissions",
    ),
    "codex refused": (
        "codex", "{home}/.codex/config.toml", '[projects."{project}"]\ntrust_level = "untrusted"\n',
        "Codex does not trust {project} yet", "approve the hooks under `/hooks`",
    ),
    "gemini refused": (
        "gemini", "{home}/.gemini/trustedFolders.json", {"{project}": "DO_NOT_TRUST"},
        "Gemini CLI does not trust {project}", "/permissions",
    ),
    "copilot untrusted": (
        "copilot", "{home}/.copilot/config.json", {}, "Copilot CLI does not trust {project}", "trust the folder",
    ),
    "copilot hooks off": (
        "copilot", "{project}/.github/copilot/settings.json", {"disableAllHooks": True},
        "does not run our hooks here (`disableAllHooks` is true in {project}/.github/copilot/", "set `disableAllHooks`",
    ),
    "gemini extension": (
        "gemini", "{home}/.gemini/extensions/learnt/gemini-extension.json", {},
        "every hook runs twice", "`gemini extensions uninstall learnt`",
    ),
    "gemini server excluded": (
        "gemini", "{home}/.gemini/settings.json", {"mcp": {"excluded": ["learnt"]}},
        "`mcp.excluded` lists `learnt`", "take `learnt` out of `mcp.excluded`",
    ),
    "gemini server disabled": (
        "gemini", "{home}/.gemini/mcp-server-enablement.json", {"learnt": {"enabled": False}},
        "does not start our server here", "`/mcp enable learnt`",
    ),
    "settings damaged": (
        "claude-code", "{project}/.claude/settings.json", '{"hooks": }',
        "{project}/.claude/settings.json cannot be read: line 1, column 11: Expecting value",
        "fix {project}/.claude/settings.json, then `learnt install claude-code`",
    ),
    "servers damaged": (
        "claude-code", "{project}/.mcp.json", "{", "{project}/.mcp.json cannot be read: line 1", "fix {project}/.mcp",
    ),
    "local settings damaged": (
        "claude-code", "{project}/.claude/settings.local.json", '{"disableAllHooks": true, // hi',
        "{project}/.claude/settings.local.json cannot be read: line 1", "fix {project}/.claude/settings.local.json",
    ),
    "codex damaged": (
        "codex", "{project}/.codex/config.toml", "x = \n", "config.toml cannot be read: Invalid value (at line 1",
        "fix {project}/.codex/config.toml, then `learnt install codex`",
    ),
    "gemini damaged": (
        "gemini", "{project}/.gemini/settings.json", "{'a': 1}", "settings.json cannot be read: line 1, column 2",
        "fix {project}/.gemini/settings.json, then `learnt install gemini`",
    ),
    "opencode damaged": (
        "opencode", "{project}/opencode.json", '{"mcp": {', "opencode.json cannot be read: line 1, column 10",
        "fix {project}/opencode.json, then `learnt install opencode`",
    ),
    "hooks gone": (
        "claude-code", "{project}/.claude/settings.json", None,
        "the setup is incomplete, or from an older version: {project}/.claude/settings.json",
        "`learnt install claude-code`, or `learnt uninstall claude-code`",
    ),
    "opencode plugin changed": (
        "opencode", "{project}/.opencode/plugin/learnt.js", "// ours\n" + OPENCODE_MARK + "x\n",
        "incomplete, or from an older version", "`learnt install opencode`",
    ),
    "opencode plugin of others": (
        "opencode", "{project}/.opencode/plugin/learnt.js", "export const x = 1\n",
        "learnt.js: the file exists and is not ours", "move it out of its folder, then `learnt install opencode`",
    ),
    "opencode server off": (
        "opencode", "{project}/.opencode/opencode.jsonc", {"mcp": {"learnt": {"enabled": False}}},
        "does not start our server here (`enabled` is false", "set `enabled` to true",
    ),
    "opencode tools off": (
        "opencode", "{home}/.config/opencode/opencode.json", {"tools": {"learnt_*": False, "learnt_recall": True}},
        "does not let agents use our tools (`learnt_*` under `tools`", "take `learnt_*` out of `tools`",
    ),
    "opencode tool denied": (
        "opencode", "{home}/.config/opencode/opencode.json",
        {"permission": {"*": "deny", "learnt*": "allow", "learnt_recall": "deny", "bash": "deny"}},
        "our tools (`learnt_recall` under `permission`", "take `learnt_recall` out of `permission`",
    ),
    "other version": ("opencode", "", "0.0.9", f"is learnt 0.0.9, and this is learnt {__version__}", "PATH"),
    "no answer": ("opencode", "", NO_ANSWER, "is another version of learnt, or another program", "export PATH="),
    "no server": ("opencode", "", NO_SERVER, "exit code 2: error: the Python package `mcp` is missing", "pip install"),
    "off PATH": ("opencode", "", None, "learnt is not on PATH", "export PATH="),
}  # fmt: skip


@pytest.mark.parametrize("way", BROKEN)
def test_whatever_keeps_it_from_working_is_named_with_what_to_do(way: str, machine: Machine) -> None:
    client, place, content, named, remedy = BROKEN[way]
    machine.install(client)
    machine.trust()
    if way.endswith("refused"):  # a hook that fired before does not change the user's mind
        fired.note(str(machine.project / ".learnt"), client, "prompt", 2**42, 1.0, 1)
    if place and content is None:
        Path(machine.fill(place)).unlink()
    elif place:
        machine.write(place, content)
    elif content is None:
        (machine.bin / "learnt").unlink()
    elif isinstance(content, str) and content.startswith("#!"):
        put_learnt(machine.bin, text=content)
    else:
        put_learnt(machine.bin, version=str(content))

    told = machine.says(client)

    assert not told["fine"], told
    assert machine.fill(named) in told["detail"]
    assert machine.fill(remedy) in told["remedy"]
    assert "--user" not in told["remedy"]
    if way == "opencode plugin changed":
        machine.install(client)
        assert machine.says(client)["fine"]


RECORDS = {
    "codex": ("{home}/.codex/config.toml", "x = 1\n"),
    "copilot": ("{home}/.copilot/config.json", {}),
    "gemini": ("{home}/.gemini/trustedFolders.json", {}),
}


@pytest.mark.parametrize("client", RECORDS)
def test_a_hook_proves_trust_only_until_the_clients_record_of_it_changes(client: str, machine: Machine) -> None:
    machine.install(client)
    machine.trust()
    fired.note(str(machine.project / ".learnt"), client, "prompt", now_ms(), 1.0, 1)
    record, content = RECORDS[client]
    machine.write(record, content)
    later_s = time.time() + 60
    os.utime(machine.fill(record), (later_s, later_s))

    told = machine.says(client)

    assert f"does not trust {machine.project}" in told["detail"]
    fired.note(str(machine.project / ".learnt"), client, "prompt", now_ms() + 120_000, 1.0, 1)
    assert machine.says(client)["fine"], "it was trusted for this session alone"


def test_copilots_switch_counts_in_the_file_with_our_hooks_and_in_the_users_settings_until_a_hook_fires(
    machine: Machine,
) -> None:
    machine.install("copilot")
    machine.trust()
    hooks = machine.project / ".github" / "hooks" / "learnt.json"
    as_installed = hooks.read_text()
    hooks.write_text(json.dumps({**json.loads(as_installed), "disableAllHooks": True}))
    fired.note(str(machine.project / ".learnt"), "copilot", "prompt", now_ms() + 120_000, 1.0, 1)
    in_hooks = machine.says("copilot")
    hooks.write_text(as_installed)
    machine.write("{home}/.copilot/settings.json", {"disableAllHooks": True})
    disproved = machine.says("copilot")
    later_s = time.time() + 240
    os.utime(machine.fill("{home}/.copilot/settings.json"), (later_s, later_s))
    in_settings = machine.says("copilot")

    assert f"`disableAllHooks` is true in {hooks}" in in_hooks["detail"]
    assert disproved["fine"], disproved
    assert machine.fill("`disableAllHooks` is true in {home}/.copilot/settings.json") in in_settings["detail"]


@pytest.mark.parametrize("client", [client for client in install.CLIENTS if client != "aider"])
def test_a_setup_for_the_user_is_his_own_in_the_home_folder_too(client: str, machine: Machine) -> None:
    machine.install(client)
    machine.learnt("uninstall", client, env=machine.path)
    assert machine.learnt("install", client, "--user").code == 0
    for path in machine.home.rglob("*"):  # as the learnt that runs, which is too slow to be tried
        if path.is_file() and str(own_script()).encode() in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(own_script().encode(), str(machine.bin / "learnt").encode()))
    hooks = str(machine.home / ".codex" / "hooks.json")
    states = [f'[hooks.state."{key}"]\ntrusted_hash = "x"\n' for key in machine.codex_hooks(hooks)]
    if client == "codex":
        machine.write(
            "{home}/.codex/config.toml", Path(machine.home, ".codex/config.toml").read_text() + "".join(states)
        )

    at_home = machine.says(client, cwd=machine.home)
    (machine.home / ".git").mkdir()  # somebody keeps the whole home folder in git

    assert at_home["fine"], at_home
    assert machine.says(client, cwd=machine.home)["fine"]


WRONG_PROGRAMS = {
    "hangs": ("#!/bin/sh\nexec /bin/sleep 60\n", "our hook does not answer: {learnt} hangs"),
    "fails": (
        "#!/bin/sh\necho no >&2\nexit 2\n",
        "our hook does not answer: {learnt} is another version of learnt, or",
    ),
    "interpreter": (
        "#!/nonexistent/python\n",
        "{learnt} cannot be started: its interpreter /nonexistent/python does not",
    ),
    "version": (ANSWERS.replace("VERSION", "0.0.9"), f"{{learnt}} is learnt 0.0.9, and this is learnt {__version__}, "),
}


@pytest.mark.parametrize("way", WRONG_PROGRAMS)
def test_a_wrong_learnt_is_found_soon_and_named_once(
    way: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_questions, "_HOOK_LIMIT_S", 0.2 if way == "hangs" else 5.0)
    for client in ("opencode", "claude-code"):
        machine.install(client)
    machine.trust()
    text, named = WRONG_PROGRAMS[way]
    put_learnt(machine.bin, text=text)

    told = machine.learnt("doctor", env=machine.path).out

    wrong = f"{machine.bin}/learnt"
    first, remedy = f"client claude-code, client opencode: {named}".format(learnt=wrong), f"or remove {wrong}\n"
    assert first in told, told
    assert told.count("!!  client") == told.count(remedy) == 1
    assert f'`export PATH="{os.path.dirname(own_script())}:$PATH"` where the client is started, {remedy}' in told


def test_asking_a_client_leaves_its_folder_alone(machine: Machine) -> None:
    machine.install("codex")
    machine.trust()
    hooks = [{"key": key, "enabled": True, "trustStatus": "trusted"} for key in machine.codex_hooks()]
    answer = json.dumps({"id": 2, "result": {"data": [{"hooks": hooks}]}})
    (machine.bin / "codex").write_text(
        f"#!/bin/sh\n: > $CODEX_HOME/state\nread x; read x; read x\n/bin/cat <<'EOF'\n{answer}\nEOF\n"
    )

    told = machine.says("codex")

    assert told["facts"]["trusted"]
    assert os.listdir(machine.home / ".codex") == ["config.toml"]


def test_without_a_client_the_doctor_says_what_to_type(machine: Machine) -> None:
    assert "`learnt install` finds your agent clients" in machine.learnt("init").out
    assert "`learnt install` finds your agent clients" in machine.learnt("activity").out
    assert "clients: none is set up here\n    `learnt install claude-code`" in machine.learnt("doctor").out
    machine.add_program("codex")
    machine.add_program("gemini")
    told = machine.learnt("doctor", env=machine.path)
    assert (told.code, "\n    `learnt install codex gemini`\n" in told.out) == (0, True)


@pytest.mark.parametrize("client", ["claude-code", "gemini"])
def test_a_start_below_the_project_is_told_by_install_and_doctor(client: str, machine: Machine) -> None:
    machine.install(client)
    machine.trust()
    below = machine.project / "src"
    below.mkdir()

    installed = machine.learnt("install", client, env=machine.path, cwd=below).out
    told = machine.says(client, cwd=below)

    for text in (installed, f"{told['detail']}; {told['remedy']}"):
        assert f"reads them only if it is started in {machine.project}, and this is {below}" in text
        assert f"`learnt install {client} --user`" in text
    assert machine.says(client)["fine"]


def test_a_file_that_two_clients_read_stays_until_the_last_of_them_goes(machine: Machine) -> None:
    machine.install("claude-code")
    machine.trust()
    clients = [
        one["subject"] for one in json.loads(machine.learnt("doctor", "--json", env=machine.path).out)["findings"]
    ]
    assert "client copilot" not in clients  # it would read .mcp.json, but is not set up
    machine.install("copilot")

    machine.learnt("uninstall", "copilot", env=machine.path)
    assert machine.says("claude-code")["fine"]
    machine.install("copilot")
    machine.learnt("uninstall", "claude-code", env=machine.path)
    assert (machine.project / ".mcp.json").exists()
    machine.learnt("uninstall", "--all", env=machine.path)

    assert sorted(os.listdir(machine.project)) == [".git", ".learnt", "learnt.toml"]


def test_a_store_that_somebody_keeps_locked_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "_LOCK_PATIENCE_MS", 10)
    machine.learnt("init")
    path = machine.project / ".learnt" / "learnt.db"
    assert "locked" not in machine.learnt("doctor").out
    other = apsw.Connection(str(path))
    other.execute("begin immediate")

    told = machine.learnt("doctor").out

    other.close()
    assert f"another process keeps {path} locked" in told
    assert f"`fuser {path}`" in told


def test_an_old_permission_that_only_warns_goes_with_the_next_install_and_own_tools_are_permitted(
    machine: Machine,
) -> None:
    machine.learnt("init")
    machine.write("{project}/.claude/settings.json", OLD_SETTINGS)

    assert machine.learnt("install", "claude-code").code == 0

    written = json.loads((machine.project / ".claude/settings.json").read_text())
    assert written["permissions"] == {"allow": ["Bash(ls:*)"]}
    assert "sh -c" not in json.dumps(written)
    call = {"hook_event_name": "PreToolUse", "session_id": "1", "cwd": str(machine.project)}
    for tool, decision in (
        ("mcp__learnt__recall", "allow"),
        ("mcp__plugin_learnt_learnt__learn", "allow"),
        ("mcp__learntx__recall", None),
        ("Bash", None),
    ):
        event = json.dumps({**call, "tool_name": tool, "tool_input": {}})
        told = machine.learnt("hook", "--client", "claude", stdin=event).out
        answer = json.loads(told)["hookSpecificOutput"] if told else {}
        assert answer.get("permissionDecision") == decision


def test_a_hook_that_is_only_tried_answers_and_leaves_no_record(machine: Machine) -> None:
    machine.learnt("init")
    event = json.dumps({"hook_event_name": "SessionStart", "session_id": "1", "cwd": str(machine.project)})

    told = machine.learnt("hook", "--client", "claude", stdin=event, env={"LEARNT_INTERNAL": "probe"})
    outside = machine.learnt("hook", stdin=event, env={"LEARNT_INTERNAL": "probe"}, cwd=machine.home)

    assert (told.code, json.loads(told.out)) == (0, {"learnt": __version__, "error": ""})
    assert outside.out == told.out
    assert not (machine.project / ".learnt" / "fired").exists()
    with Memory.open(machine.project) as memory:
        assert memory.reports.activity().entries == ()
    machine.learnt("hook", "--client", "claude", stdin=event, env={"LEARNT_INTERNAL": ""})  # as if it were not set
    assert (machine.project / ".learnt" / "fired").exists()


def test_a_hook_that_answers_when_it_is_tried_ends_the_alarm_about_hooks(machine: Machine) -> None:
    machine.install("opencode")
    event = json.dumps({"hook_event_name": "SessionStart", "session_id": "1", "cwd": str(machine.project)})
    settings, log = machine.project / "learnt.toml", machine.project / ".learnt" / "hook.log"
    right = settings.read_text()
    settings.write_text('brief_tokens = "zzz"\n')
    machine.learnt("hook", "--client", "claude", stdin=event, env={"LEARNT_INTERNAL": "probe"})
    assert not log.exists()
    machine.learnt("hook", "--client", "claude", stdin=event)
    assert "brief_tokens" in log.read_text()
    settings.write_text(right)
    for fired_before in (machine.project / ".learnt" / "fired").iterdir():
        fired_before.unlink()

    answered = machine.learnt("doctor", env=machine.path).out
    log.write_text(f"{log.read_text().split()[0]} KeyError: at flow/hook_events.py:1\n")
    failed = machine.learnt("doctor", env=machine.path).out

    assert "ok  store: hook: 1 entry in the log" in answered
    assert "hooks have answered since" in answered
    assert "!!  store: hook: 1 entry in the log" in failed  # serving an event was not tried


def test_a_preview_says_what_could_not_be_written(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.learnt("init")
    writable = machine.learnt("install", "gemini", "--dry-run").out
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)

    told = machine.learnt("install", "gemini", "--dry-run").out

    assert f"{machine.project} is read-only, so that nothing could be written: `chmod" in told
    assert "read-only" not in writable


def test_what_was_written_for_the_user_goes_with_the_last_client(machine: Machine) -> None:
    machine.learnt("init")  # which is noted as trusted
    machine.learnt("install", "gemini", "--user")
    data = machine.home / ".local" / "share" / "learnt"
    assert (data / ".gitignore").exists()

    machine.learnt("uninstall", "gemini", "--user")

    assert not data.exists() or os.listdir(data) == ["trust"]


def test_install_finds_the_clients_that_are_used_here(machine: Machine) -> None:
    machine.learnt("init")
    assert "no client was found" in machine.learnt("install", "--all", env=machine.path).err
    machine.add_program("codex")
    machine.write("{home}/.gemini/history", "")
    machine.write("{home}/.config/opencode/plugin/learnt.js", "")  # of ours alone: nobody uses it

    asked = machine.learnt("install", env=machine.path)
    for_user = machine.learnt("install", "--user", env=machine.path)
    done = machine.learnt("install", "--all", "--json", env=machine.path)

    assert asked.code == 2
    assert "found here: codex, gemini" in asked.err
    assert "`learnt install codex gemini`, or `learnt install --all` for" in asked.err
    assert "`learnt install codex gemini --user`, or `learnt install --all --user` for" in for_user.err
    assert [one["id"] for one in json.loads(done.out)] == ["codex", "gemini"]


def test_a_person_is_asked_for_each_client_that_was_found(machine: Machine) -> None:
    machine.learnt("init")
    for name in ("codex", "opencode", "gemini"):
        machine.add_program(name)
    machine.install("gemini")

    code, screen = Terminal(machine.project).run("install", typed="y\nx\nq\n", **machine.path)
    assert (code, screen.count("Set up opencode?"), "nothing was changed" in screen) == (2, 2, True), screen
    assert not (machine.project / ".codex").exists()
    code, screen = Terminal(machine.project).run("install", typed="n\n\n", **machine.path)

    assert code == 0, screen
    assert "Set up codex? (`codex` is on PATH) [Y/n]" in screen
    assert "Set up gemini" not in screen
    assert "gemini: nothing to change" in screen
    assert not (machine.project / ".codex").exists()
    assert (machine.project / "opencode.json").exists()
    assert os.listdir(machine.project / ".opencode" / "plugin") == ["learnt.js"]
