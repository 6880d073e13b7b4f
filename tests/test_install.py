"""Clients are set up and taken out again: what is not ours keeps every byte, whatever its file looks like."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools import generate_plugins

from learnt.clients import registry
from learnt.clients.aider.setup import ReadList
from learnt.clients.codex.setup import ServerTable
from learnt.clients.kit.json_file import WITH_COMMENTS_AND_COMMAS, JsonFile
from learnt.clients.kit.setup import Edit, Location, Unfit, targets
from learnt.clients.registry import FOLDER_VARIABLES
from learnt.system.installation import own_script
from tests.conftest import Done, command_line
from tests.support.answering import put_learnt
from tests.support.disk import Disk
from tests.support.words import tells

Learnt = Callable[..., Done]
CLIENTS = registry.setup_names()
CLAUDE, CODEX, GEMINI = (registry.get(name, "setup").events for name in ("claude", "codex", "gemini"))
LOCATION = Location(root="/srv/shop")
SETTINGS_FILES = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "copilot": ".github/hooks/learnt.json",
    "gemini": ".gemini/settings.json",
    "opencode": "opencode.json",
}
OTHER_HOOK = {"hooks": [{"type": "command", "command": "notify-send done"}]}
RICH: dict[str, Any] = {
    "zebra": [1, 2.50, None, True],
    "mcpServers": {"other": {"command": "other", "args": []}},
    "mcp": {"other": {"type": "local", "command": ["other"]}},
    "permissions": {"deny": [], "allow": ["Bash(ls:*)"]},
    "hooks": {"Stop": [OTHER_HOOK], "SessionStart": [], "AfterTool": [OTHER_HOOK]},
    "ünï": '☃ \u2028 \\ " // no comment',
}
FOUR = json.dumps(RICH, indent=4, ensure_ascii=False)
PLAIN_FILES = {
    "empty": b"",
    "blank": b" \n\n",
    "braces": b"{}",
    "braces, blank": b"{ }\n",
    "braces, two lines": b"{\n}\n",
    "four blanks": f"{FOUR}\n".encode(),
    "no last line end": FOUR.encode(),
    "tabs": json.dumps(RICH, indent="\t").encode() + b"\n",
    "windows": f"{FOUR}\n".replace("\n", "\r\n").encode(),
    "byte order mark": b"\xef\xbb\xbf" + f"{FOUR}\n".encode(),
    "one line": json.dumps(RICH).encode(),
    "minified": json.dumps(RICH, separators=(",", ":")).encode(),
    "empty holders": b'{\n  "hooks": { },\n  "mcpServers": {},\n  "permissions": {"allow": [ ]}, "mcp": {\n\n}\n}\n',
    "twice the same key": b'{"hooks": {"Stop": []}, "x": 1, "hooks": {"Stop": [ ]}}\n',
}
COMMENTED = b"""// what I like
{
  /* before */ "theme": "dark", // why not
  "mcpServers": { // mine
    "other": {"command": "x"} /* the last */
  },
  "mcp": {}, "hooks": {
    // nothing yet
  }
  // the end
}
"""
TRAILING = b"""{
\t"theme": "dark", // why not
\t"mcp": {
\t\t"other": {"type": "local", "command": ["x",],}, // mine
\t},
}
"""
FILES = [
    (client, name, content)
    for client in SETTINGS_FILES
    for name, content in {
        **PLAIN_FILES,
        **({"comments": COMMENTED} if client in ("gemini", "opencode") else {}),
        **({"trailing commas": TRAILING} if client == "opencode" else {}),
    }.items()
]


@pytest.fixture(autouse=True)
def no_places(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FOLDER_VARIABLES:
        if name != "HOME":
            monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository in which there is no store."""
    folder = tmp_path / "shop"
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder but those of the store and of git."""
    files = [path for path in folder.rglob("*") if path.is_file() and not {".learnt", ".git"} & set(path.parts)]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def folders(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_dir() and path.name not in (".learnt", ".git")}


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def all_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On PATH there are all clients' programs."""
    for client in registry.that_offer("setup"):
        put(tmp_path / "programs" / client.name, b"#!/bin/sh\n").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}{os.pathsep}{os.environ['PATH']}")


def events(path: Path) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = json.loads(path.read_text(encoding="utf-8-sig"))["hooks"]
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_was_never_set_up_is_left_as_if_it_never_had_been(
    client: str, learnt: Learnt, project: Path
) -> None:
    first = learnt("install", client)
    made = tree(project)
    second = learnt("install", client)

    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert made
    assert tree(project) == made
    assert f"{client}: nothing to change" in second.out
    assert learnt("uninstall", client).code == 0
    assert tree(project) == {}
    assert folders(project) == set()


@pytest.mark.parametrize(("client", "name", "content"), FILES, ids=[f"{client}: {name}" for client, name, _ in FILES])
def test_settings_come_back_byte_for_byte(
    client: str, name: str, content: bytes, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from learnt.flow.install import ClientSetup

    monkeypatch.chdir(project)
    path = put(project / SETTINGS_FILES[client], content)
    assert [one.error for one in ClientSetup().install([client], user=False)] == [None]
    installed = tree(project)
    assert installed[SETTINGS_FILES[client]] != content
    ClientSetup().install([client], user=False)
    assert tree(project) == installed

    ClientSetup().uninstall([client], user=False)

    assert tree(project) == {SETTINGS_FILES[client]: content}
    assert path.read_bytes() == content


@pytest.mark.parametrize(("client", "name", "content"), FILES, ids=[f"{client}: {name}" for client, name, _ in FILES])
def test_from_settings_that_were_changed_since_only_ours_is_taken_out(client: str, name: str, content: bytes) -> None:
    edit = edit_of(client)
    changed = edit.add(content)
    if name in ("empty", "blank"):
        return  # there is nothing that could have been changed

    assert edit.remove(changed, content) == content
    for mark, new in ((b'"zebra"', b'"zulu"'), (b'"theme": "dark"', b'"theme": "light"')):
        assert edit.remove(changed.replace(mark, new), content) == content.replace(mark, new)


@pytest.mark.parametrize("name", [name for name in PLAIN_FILES if name not in ("empty", "blank")])
def test_what_an_earlier_version_wrote_for_claude_code_is_updated_and_taken_out(name: str) -> None:
    line = "sh -c 'learnt hook --client claude 2>/dev/null || exit 0'"
    handler = {"type": "command", "command": line, "timeout": 5}
    older = JsonFile(hooks=dict.fromkeys(CLAUDE, handler), words={("permissions", "allow"): "mcp__learnt__*"})
    content = PLAIN_FILES[name]
    written = older.add(content)
    edit = edit_of("claude-code")

    assert edit.remove(written, content) == content
    if name != "empty holders":  # a holder that only the old permission kept goes with it
        assert edit.remove(edit.add(written), content) == content
    assert b"mcp__learnt" not in edit.add(written)
    assert b"sh -c" not in edit.add(written)
    user = targets("claude-code", LOCATION.replace(user=True, variables={"HOME": "/home/anna"}))[0].edit
    assert edit.add(user.add(written)) == edit.add(written)  # a shell's line has no arguments


def edit_of(client: str) -> Edit:
    (found,) = [one for one in targets(client, LOCATION) if one.path == f"/srv/shop/{SETTINGS_FILES[client]}"]
    return found.edit


def test_what_is_added_later_stays_when_ours_is_taken_out(learnt: Learnt, project: Path) -> None:
    path = put(project / ".claude/settings.json", f"{FOUR}\n".encode())
    learnt("install", "claude-code")
    value = json.loads(path.read_bytes())
    value["hooks"]["Stop"].insert(0, {"hooks": [{"type": "command", "command": "later"}]})
    value["model"] = "opus"
    path.write_text(json.dumps(value, indent=2))  # as the client itself writes it

    assert learnt("uninstall", "claude-code").code == 0

    hooks = {**RICH["hooks"], "Stop": [{"hooks": [{"type": "command", "command": "later"}]}, OTHER_HOOK]}
    assert json.loads(path.read_bytes()) == {**RICH, "hooks": hooks, "model": "opus"}
    assert set(tree(project)) == {".claude/settings.json"}


def test_settings_that_came_with_the_repository_are_known_as_ours(
    learnt: Learnt, project: Path, tmp_path: Path
) -> None:
    learnt("install", "claude-code")
    clone = tmp_path / "clone"
    shutil.copytree(project / ".git", clone / ".git")
    for name, content in tree(project).items():
        put(clone / name, content)
    put(clone / ".mcp.json", (project / ".mcp.json").read_bytes().replace(b'"mcpServers"', b'"x": 1,\n  "mcpServers"'))

    assert "nothing to change" in learnt("install", "claude-code", cwd=clone).out
    assert learnt("uninstall", "claude-code", cwd=clone).code == 0

    assert tree(clone) == {".mcp.json": b'{\n  "x": 1\n}\n'}


def test_a_newer_version_changes_only_ours_and_leaves_it_in_its_place(learnt: Learnt, project: Path) -> None:
    older = {"type": "command", "command": "learnt hook", "statusMessage": "mine"}
    path = project / ".codex/hooks.json"
    put(path, json.dumps({"hooks": {"Stop": [{"hooks": [older]}, OTHER_HOOK], "Gone": [{"hooks": [older]}]}}).encode())
    before = path.read_bytes()

    assert learnt("install", "codex").code == 0

    found = events(path)
    assert set(found) == set(CODEX)
    assert [len(groups) for groups in found.values()] == [2, *[1] * (len(CODEX) - 1)]
    assert found["Stop"][1] == OTHER_HOOK
    (ours,) = found["Stop"][0]["hooks"]
    assert ours["statusMessage"] == "mine"
    assert "--client codex" in ours["command"]
    assert learnt("uninstall", "codex").code == 0
    assert "learnt" not in path.read_text()
    path.write_bytes(before)


@pytest.mark.parametrize(
    "content", [b'{"a": 1', b'{"a": 1} // why', b'{"a": 1,}', b"[]", b'{"hooks": 7}', b"\xff\xfe{"]
)
@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_settings_that_the_client_could_not_read_are_not_touched(
    client: str, content: bytes, learnt: Learnt, project: Path
) -> None:
    path = put(project / SETTINGS_FILES[client], content)

    done = learnt("install", client)

    assert done.code == 2
    assert str(path) in done.err
    assert "add this by hand" in done.err
    assert "learnt hook" in done.err
    assert ("does not read" in done.err) == (content in (b'{"a": 1} // why', b'{"a": 1,}'))
    assert tree(project) == {SETTINGS_FILES[client]: content}


def test_what_a_person_can_add_names_every_file_that_was_not_written(learnt: Learnt, project: Path) -> None:
    settings = put(project / ".claude/settings.json", b'{"hooks": []}')

    both = learnt("install", "claude-code").err
    put(project / ".mcp.json", b'{"mcpServers": {"learnt": {"command": "learnt", "args": ["mcp"]}}}')
    one = learnt("install", "claude-code").err

    assert f"in {settings}:" in both
    assert f'in {project / ".mcp.json"}:\n\n{{\n  "mcpServers"' in both
    assert "add this by hand:" in one
    assert ".mcp.json" not in one
    assert set(tree(project)) == {".claude/settings.json", ".mcp.json"}
    put(project / "opencode.json", b"{")
    assert "hint: fix it and try again\n" in learnt("install", "opencode").err  # nobody writes a plugin by hand


def test_what_cannot_be_taken_out_is_named_with_the_other_files(learnt: Learnt, project: Path) -> None:
    learnt("install", "claude-code")
    put(project / ".mcp.json", b'{"learnt": ')

    done = learnt("uninstall", "claude-code")

    assert done.code == 2
    assert f"remove learnt's entries by hand, there and in {project / '.claude/settings.json'}" in done.err


def test_a_server_of_the_same_name_is_not_taken_over(learnt: Learnt, project: Path) -> None:
    put(project / ".mcp.json", b'{"mcpServers": {"learnt": {"command": "something-else"}}}')
    before = tree(project)

    done = learnt("install", "claude-code")

    assert done.code == 2
    assert "another server is called `learnt`" in done.err
    assert "rename that server" in done.err
    assert "by hand" not in done.err
    assert tree(project) == before
    assert learnt("uninstall", "claude-code").code == 0
    assert tree(project) == before


def test_outside_any_project_it_is_said_how_to_make_one(learnt: Learnt, project: Path) -> None:
    shutil.rmtree(project / ".git")

    done = learnt("install", "claude-code")

    assert done.code == 2
    assert "learnt init" in done.err
    assert "--user" in done.err
    undone = learnt("uninstall", "claude-code")
    assert undone.code == 2
    assert "is not inside a project" in undone.err
    assert "--user" in undone.err
    assert list(project.iterdir()) == []


@pytest.mark.parametrize("scope", ["--project", "--user"])
def test_what_was_made_for_the_way_back_goes_with_the_last_client(
    scope: str, learnt: Learnt, project: Path, home: Path
) -> None:
    learnt("install", "codex", "gemini", scope)
    store = project / ".learnt" if scope == "--project" else home / ".local/share/learnt"
    assert (store / "backups/clients").is_dir()
    learnt("uninstall", "codex", scope)
    assert (store / "backups/clients").is_dir()
    learnt("uninstall", "gemini", scope)
    assert not store.exists()


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("client", [client for client in CLIENTS if client != "aider"])
def test_for_the_user_every_folder_that_was_made_goes_and_every_other_stays(
    client: str, learnt: Learnt, home: Path
) -> None:
    for before in ((), (".local",), (".local/share/learnt", ".claude", ".codex", ".gemini", ".config/opencode/plugin")):
        for name in before:
            (home / name).mkdir(parents=True)
        there = everything(home)

        assert learnt("install", client, "--user").code == 0
        assert everything(home) > there
        assert learnt("uninstall", client, "--user").code == 0

        assert everything(home) == there


def test_folders_go_with_the_last_client_whichever_was_first(learnt: Learnt, project: Path, home: Path) -> None:
    (project / ".learnt").mkdir()
    (project / ".claude").mkdir()
    learnt("install", "claude-code", "--user")
    learnt("install", "gemini", "--user")
    learnt("uninstall", "claude-code", "--user")
    assert (home / ".local/share/learnt/backups/clients").is_dir()
    learnt("uninstall", "gemini", "--user")
    assert everything(home) == set()

    there = everything(project)
    learnt("install", "claude-code")
    learnt("install", "codex")
    learnt("uninstall", "claude-code")
    learnt("uninstall", "codex")
    assert everything(project) == there
    (project / ".learnt/backups").mkdir()
    learnt("install", "codex")
    learnt("uninstall", "codex")
    assert (project / ".learnt/backups").is_dir()


def test_an_install_that_fails_leaves_nothing_behind(learnt: Learnt, home: Path) -> None:
    put(home / ".claude.json", b"{}").chmod(0o444)
    assert learnt("install", "claude-code", "--user").code == 1
    assert everything(home) == {".claude.json"}


def test_a_store_that_came_after_stays_in_folders_that_were_made(learnt: Learnt, project: Path) -> None:
    learnt("install", "codex")
    learnt("init")
    learnt("uninstall", "codex")
    assert (project / ".learnt/learnt.db").exists()
    assert (project / ".learnt/.gitignore").exists()


def test_a_store_stays_when_the_last_client_goes(learnt: Learnt, project: Path) -> None:
    learnt("init")
    learnt("install", "codex")
    learnt("uninstall", "codex")
    assert (project / ".learnt/learnt.db").exists()
    assert not (project / ".learnt/backups/clients").exists()


def test_with_nothing_to_change_nothing_is_written(learnt: Learnt, project: Path) -> None:
    learnt("install", "codex")
    shutil.rmtree(project / ".learnt")
    assert "nothing to change" in learnt("install", "codex").out
    assert not (project / ".learnt").exists()


def test_a_client_is_known_by_other_names_and_a_misspelt_one_is_guessed(learnt: Learnt, project: Path) -> None:
    assert learnt("install", "claude").out.startswith("claude-code: wrote")
    assert "did you mean opencode?" in learnt("install", "opncode").err
    several = learnt("install", "claude", "codex", "--json").out
    assert [one["id"] for one in json.loads(several)] == ["claude-code", "codex"]
    assert "would be" not in several
    assert tells(learnt("install", "--all", "codex").err, "--all", "names")
    assert learnt("uninstall", "--all", "--user").err == ""


def test_a_file_in_the_place_of_a_folder_is_named(learnt: Learnt, project: Path) -> None:
    put(project / ".claude", b"")
    assert f"{project / '.claude'} is a file" in learnt("install", "claude-code").err


def test_a_plugin_of_the_same_name_is_not_written_over(learnt: Learnt, project: Path) -> None:
    put(project / ".opencode/plugin/learnt.js", b"export const Mine = async () => ({})\n")
    before = tree(project)

    assert learnt("install", "opencode").code == 2
    assert learnt("uninstall", "opencode").code == 0
    assert tree(project) == before


@pytest.mark.usefixtures("all_clients")
def test_of_all_clients_one_that_cannot_be_set_up_does_not_keep_the_others(learnt: Learnt, project: Path) -> None:
    put(project / ".gemini/settings.json", b"{")

    done = learnt("install", "--all", "--json")

    assert done.code == 2
    told = {one["id"]: one for one in json.loads(done.out)}
    assert set(told) == set(CLIENTS)
    assert "not changed" in told["gemini"]["error"]
    assert all(told[name]["files"] and not told[name]["error"] for name in told if name != "gemini")
    assert (project / ".gemini/settings.json").read_bytes() == b"{"


@pytest.mark.usefixtures("all_clients")
def test_every_event_of_the_table_is_served_and_the_times_have_the_clients_units(learnt: Learnt, project: Path) -> None:
    learnt("install", "--all")

    claude, codex, gemini = (events(project / SETTINGS_FILES[name]) for name in ("claude-code", "codex", "gemini"))
    assert (list(claude), list(codex), list(gemini)) == (list(CLAUDE), list(CODEX), list(GEMINI))
    handlers = {event: groups[0]["hooks"][0] for event, groups in claude.items()}
    assert {handler["timeout"] for handler in handlers.values()} == {5}
    assert codex["SessionEnd"][0]["hooks"][0]["timeout"] == 3
    assert {groups[0]["hooks"][0]["timeout"] for groups in gemini.values()} == {5_000}
    config = tomllib.loads((project / ".codex/config.toml").read_text())
    assert config["mcp_servers"]["learnt"]["command"] == "learnt"
    assert json.loads((project / ".gemini/settings.json").read_text())["mcpServers"]["learnt"]["trust"] is True
    assert json.loads((project / "opencode.json").read_text())["mcp"]["learnt"]["command"] == ["learnt", "mcp"]


def command_of(path: Path) -> str:
    return str(events(path)["SessionStart"][0]["hooks"][0]["command"])


def test_the_command_of_a_project_is_silent_without_learnt_and_hands_over_the_event_with_it(
    learnt: Learnt, project: Path, tmp_path: Path
) -> None:
    learnt("install", "claude-code")
    line = command_of(project / ".claude/settings.json")
    shim = put(tmp_path / "bin" / "learnt", b'#!/bin/sh\necho "$@"; cat\n')
    shim.chmod(0o755)
    nowhere = os.pathsep.join(folder for folder in ("/usr/bin", "/bin") if not Path(folder, "learnt").exists())

    def served(path: str) -> subprocess.CompletedProcess[str]:
        words = ["/bin/sh", "-c", line]
        return subprocess.run(words, input="{}", capture_output=True, text=True, env={"PATH": path}, check=False)

    missing, there = served(nowhere), served(f"{shim.parent}{os.pathsep}{nowhere}")
    shim.write_bytes(b"#!/no/such/interpreter\n")
    broken = served(f"{shim.parent}{os.pathsep}{nowhere}")

    assert [(one.returncode, one.stdout, one.stderr) for one in (missing, broken)] == [(0, "", "")] * 2
    assert there.stdout == "hook --client claude\n{}"


@pytest.mark.usefixtures("all_clients")
def test_for_the_user_the_command_is_a_path_and_the_settings_come_back(
    learnt: Learnt, project: Path, home: Path
) -> None:
    put(home / ".claude.json", b'{"numStartups": 7, "projects": {"/x": {"mcpServers": {}}}}')
    put(home / ".codex/config.toml", b'model = "gpt-5"')
    before = tree(home)

    done = learnt("install", "--all", "--user")

    assert done.code == 0, done.err
    script = Path(sys.executable).with_name("learnt")
    assert str(script) in command_of(home / ".claude/settings.json")
    assert json.loads((home / ".claude.json").read_text())["mcpServers"]["learnt"]["command"] == str(script)
    assert shlex.split(command_of(home / ".gemini/settings.json"))[:2] == ["sh", "-c"]
    assert tree(project) == {}
    kept = home / ".local/share/learnt/backups/clients"
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept.iterdir()} == {0o600}
    assert learnt("uninstall", "--all", "--user").code == 0
    assert {name: content for name, content in tree(home).items() if "backups" not in name} == {
        **before,
        **{name: content for name, content in tree(home).items() if name.endswith("learnt/.gitignore")},
    }


@pytest.mark.usefixtures("all_clients")
def test_the_folders_of_clients_can_be_moved(learnt: Learnt, home: Path, tmp_path: Path) -> None:
    moved = {name: str(tmp_path / name) for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME")}

    assert learnt("install", "--all", "--user", env={**moved, "XDG_CONFIG_HOME": str(tmp_path / "xdg")}).code == 0

    assert set(tree(tmp_path / "CLAUDE_CONFIG_DIR")) == {"settings.json", ".claude.json"}
    assert set(tree(tmp_path / "CODEX_HOME")) == {"hooks.json", "config.toml"}
    assert set(tree(tmp_path / "GEMINI_CLI_HOME")) == {".gemini/settings.json"}
    assert set(tree(tmp_path / "xdg")) == {"opencode/opencode.json", "opencode/plugin/learnt.js"}


@pytest.mark.usefixtures("all_clients")
def test_a_preview_writes_nothing_and_shows_what_would_change(learnt: Learnt, project: Path) -> None:
    put(project / ".claude/settings.json", f"{FOUR}\n".encode())
    before = tree(project)

    done = learnt("install", "--all", "--dry-run")

    assert done.code == 0
    assert "would change .claude/settings.json" in done.out
    assert '+                        "timeout": 5' in done.out
    assert tree(project) == before
    assert not (project / ".learnt").exists()


def test_a_preview_says_which_file_is_new_and_which_goes(learnt: Learnt, project: Path) -> None:
    new = learnt("install", "aider", "--dry-run").out
    learnt("install", "aider")
    gone = learnt("uninstall", "aider", "--dry-run").out
    path = project / ".aider.conf.yml"

    assert f"--- {path} (a new file)\n+++ {path} (as it would be)\n@@" in new
    assert f"--- {path} (as it is)\n+++ {path} (no file any more)\n@@" in gone


def test_advice_is_given_when_something_was_written_or_can_be_seen_to_be_missing(
    learnt: Learnt, project: Path, home: Path, tmp_path: Path
) -> None:
    learnt("init")
    put_learnt(tmp_path / "bin")
    path = {"PATH": str(tmp_path / "bin")}

    first = learnt("install", "claude-code", "gemini", env=path).out
    second = learnt("install", "claude-code", "gemini", env=path).out
    put(home / ".gemini/trustedFolders.json", json.dumps({str(project): "DO_NOT_TRUST"}).encode())
    distrusted = learnt("install", "claude-code", "gemini", env=path).out

    assert "restart Claude Code (2.1 or newer)" in first
    assert "/permissions" in first
    assert second == "claude-code: nothing to change\ngemini: nothing to change\n"
    assert distrusted.startswith("claude-code: nothing to change\ngemini: nothing to change\n    restart Gemini CLI")


def test_install_says_that_the_command_of_a_project_is_not_on_path(learnt: Learnt, project: Path) -> None:
    nowhere = {"PATH": "/nowhere"}
    path = f'`export PATH="{os.path.dirname(own_script())}:$PATH"` where the client is started'
    told = f"    `learnt` is not on PATH: the hooks stay silent until it is; {path}\n"

    assert told in learnt("install", "claude-code", env=nowhere).out
    assert told in learnt("install", "claude-code", env=nowhere).out
    assert told not in learnt("install", "aider", env=nowhere).out
    assert "not on PATH" not in learnt("install", "claude-code", "--user", env=nowhere).out


OFF = {
    "Claude Code, shared": ("claude-code", "{project}/.claude/settings.json", '{"disableAllHooks": true}'),
    "Claude Code, local": ("claude-code", "{project}/.claude/settings.local.json", '{"disableAllHooks": true}'),
    "Claude Code, user": ("claude-code", "{home}/.claude/settings.json", '{"disableAllHooks": true}'),
    "Gemini, project": ("gemini", "{project}/.gemini/settings.json", '{"hooksConfig": {"enabled": false}} // why'),
    "Gemini, user": ("gemini", "{home}/.gemini/settings.json", '{"hooksConfig": {"enabled": false}}'),
    "Gemini, by name": ("gemini", "{home}/.gemini/settings.json", '{"hooksConfig": {"disabled": ["x", "learnt"]}}'),
    "Codex, project": ("codex", "{project}/.codex/config.toml", "[features]\nhooks = false\n"),
    "Codex, user": ("codex", "{home}/.codex/config.toml", "[features]\nhooks = false\n"),
    "Codex, by its old name": ("codex", "{home}/.codex/config.toml", "features.codex_hooks = false\n"),
}


@pytest.mark.parametrize(
    ("switch", "scope"),
    [(switch, scope) for switch in OFF for scope in (("--project", "--user") if "user" in switch else ("--project",))],
)
def test_hooks_that_are_switched_off_are_told_with_the_place_of_the_switch(
    switch: str, scope: str, learnt: Learnt, project: Path, home: Path
) -> None:
    learnt("init")
    client, place, content = OFF[switch]
    path = put(Path(place.format(project=project, home=home)), content.encode())

    told = learnt("install", client, scope)
    found, *_ = findings(learnt, client)

    assert told.code == 0
    (line,) = [line for line in told.out.splitlines() if "does not run our hooks here" in line]
    assert f" in {path}); " in line
    assert not found["fine"]
    assert f" in {path})" in found["detail"]
    assert re.match(r"set `\w+(\.enabled)?` to (true|false)|take `learnt` out of", found["remedy"])


@pytest.mark.parametrize(
    ("client", "files"),
    [
        (
            "claude-code",
            {
                "{project}/.claude/settings.local.json": '{"disableAllHooks": false}',
                "{project}/.claude/settings.json": '{"disableAllHooks": true}',
            },
        ),
        (
            "gemini",
            {
                "{project}/.gemini/settings.json": '{"hooksConfig": {"enabled": true, "disabled": ["x"]}}',
                "{home}/.gemini/settings.json": '{"hooksConfig": {"enabled": false}}',
            },
        ),
        (
            "codex",
            {
                "{project}/.codex/config.toml": "[features]\nhooks = true\n",
                "{home}/.codex/config.toml": "[features]\nhooks = false\n",
            },
        ),
        ("claude-code", {"{home}/.claude/settings.json": '{"disableAllHooks": "true"}'}),
        ("claude-code", {"{home}/.claude/settings.json": "{"}),
        ("codex", {"{home}/.codex/config.toml": "features = "}),
        ("gemini", {"{home}/.gemini/settings.json": "[]"}),
        ("opencode", {}),
    ],
)
def test_the_nearest_switch_counts_and_what_cannot_be_read_switches_nothing(
    client: str, files: dict[str, str], learnt: Learnt, project: Path, home: Path
) -> None:
    for place, content in files.items():
        put(Path(place.format(project=project, home=home)), content.encode())
    told = learnt("install", client)
    assert told.code == 0, told.err
    assert "runs no hook" not in told.out


@pytest.mark.parametrize("words", [(), ("claude-code", "--all"), ("cursor",), ("codex", "--user", "--project")])
def test_a_line_that_does_not_name_what_is_meant_is_refused(
    words: tuple[str, ...], learnt: Learnt, project: Path
) -> None:
    assert learnt("install", *words).code == 2
    assert tree(project) == {}


def test_without_a_home_nothing_is_written_for_the_user(project: Path, tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "HOME"}
    environ["XDG_DATA_HOME"] = str(tmp_path / "share")

    done = command_line(project, environ)("install", "claude-code", "--user")

    assert done.code == 2
    assert "set HOME" in done.err


def test_aider_is_not_set_up_for_all_projects(learnt: Learnt, home: Path) -> None:
    refused = learnt("install", "gemini", "aider", "--user")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("error: aider can only be set up in a project\n")
    assert list(home.iterdir()) == []


def test_links_and_modes_stay(learnt: Learnt, home: Path, tmp_path: Path) -> None:
    real = put(tmp_path / "dotfiles" / "claude.json", b'{"a": 1}\n')
    real.chmod(0o640)
    (home / ".claude").mkdir()
    link = home / ".claude/settings.json"
    link.symlink_to(real)

    for verb in ("install", "uninstall"):
        assert learnt(verb, "claude-code", "--user").code == 0
        assert link.is_symlink()
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
        assert (b"learnt" in real.read_bytes()) == (verb == "install")
    assert real.read_bytes() == b'{"a": 1}\n'


def test_a_read_only_file_is_left_alone_with_all_others_of_its_client(learnt: Learnt, project: Path) -> None:
    put(project / ".mcp.json", b"{}").chmod(0o444)

    done = learnt("install", "claude-code")

    assert done.code == 1
    assert "read-only" in done.err
    assert tree(project) == {".mcp.json": b"{}"}
    assert folders(project) == set()


def test_a_folder_in_the_place_of_a_file_is_an_error(learnt: Learnt, project: Path) -> None:
    (project / ".mcp.json").mkdir()

    done = learnt("install", "claude-code")

    assert done.code == 2
    assert "is not a file" in done.err
    assert tree(project) == {}


def test_on_a_full_disk_nothing_changes(project: Path) -> None:
    put(project / ".claude/settings.json", FOUR.encode())
    before = tree(project)
    # A limit on the size of files stands for the disk: what is small still fits, our hooks do not.
    limited = (
        "import resource, sys; from learnt.doors.cli import run; from signal import *; signal(SIGXFSZ, SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY)); sys.exit(run(sys.argv[1:]))"
    )

    done = subprocess.run(
        [sys.executable, "-c", limited, "install", "claude-code"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode in (1, 3), done.stderr
    assert "cannot write" in done.stderr
    assert tree(project) == before


KILLED = """
import os, sys
from learnt.doors.cli import run
steps = 0
def die(event, _):
    global steps
    steps += event in ("os.rename", "os.remove")
    if steps == int(sys.argv[1]) and event in ("os.rename", "os.remove"):
        os._exit(9)
sys.addaudithook(die)
sys.exit(run(sys.argv[2:]))
"""


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_killed_between_any_two_steps_nothing_is_lost(verb: str, learnt: Learnt, project: Path) -> None:
    settings, servers = project / ".claude/settings.json", project / ".mcp.json"
    for step in range(1, 20):
        put(settings, b"{ }")
        put(servers, FOUR.encode())
        if verb == "uninstall":
            learnt("install", "claude-code")
        words = [sys.executable, "-c", KILLED, str(step), verb, "claude-code"]
        code = subprocess.run(words, cwd=project, check=False, stdout=subprocess.DEVNULL).returncode

        for path in (settings, servers):
            json.loads(path.read_bytes())
        assert learnt("uninstall", "claude-code").code == 0
        assert tree(project) == {".claude/settings.json": b"{ }", ".mcp.json": FOUR.encode()}
        if code == 0:
            break
    assert step > 4


def test_without_its_backup_only_ours_is_taken_out(learnt: Learnt, project: Path) -> None:
    put(project / ".mcp.json", FOUR.encode())
    learnt("install", "claude-code")
    for kept in (project / ".learnt/backups/clients").iterdir():
        if kept.suffix == ".json" and "-" in kept.name:
            kept.unlink()

    assert learnt("uninstall", "claude-code").code == 0
    assert tree(project) == {".mcp.json": FOUR.encode()}


def test_two_at_once_leave_one_set_of_hooks(project: Path) -> None:
    put(project / ".claude/settings.json", FOUR.encode())
    words = [sys.executable, "-m", "learnt", "install", "claude-code"]
    at_once = [subprocess.Popen(words, cwd=project, stdout=subprocess.DEVNULL) for _ in range(4)]

    assert [process.wait() for process in at_once] == [0] * 4

    found = events(project / ".claude/settings.json")
    assert {event: len(groups) for event, groups in found.items() if event in CLAUDE} == {
        event: 2 if event == "Stop" else 1 for event in CLAUDE
    }
    command_line(project)("uninstall", "claude-code")
    assert tree(project) == {".claude/settings.json": FOUR.encode()}


TOML_FILES = {
    "empty": b"",
    "plain": b'model = "x" # why\n\n[projects."/srv/shop"]\ntrust_level = "trusted"\n',
    "no last line end": b'[mcp_servers.other]\ncommand = "x"',
    "windows": b'a = 1\r\n\r\n[b]\r\nc = """\r\n[mcp_servers.learnt]\r\n"""\r\n',
    "byte order mark": b"\xef\xbb\xbfa = 1\n\n\n",
}


@pytest.mark.parametrize("content", TOML_FILES.values(), ids=TOML_FILES)
def test_codex_configuration_comes_back_even_when_codex_wrote_into_it(content: bytes) -> None:
    edit = ServerTable(server={"command": "learnt", "args": ["mcp"]})
    changed = edit.add(content)
    later = b'\n[hooks.state."/x:stop:0:0"]\ntrusted_hash = "sha256:1"\n'

    assert tomllib.loads(changed.decode("utf-8-sig"))["mcp_servers"]["learnt"]["args"] == ["mcp"]
    assert edit.add(changed) == changed
    assert edit.remove(changed, content) == content
    left = edit.remove(changed + later, content)
    assert left is not None
    assert tomllib.loads(left.decode("utf-8-sig")) == tomllib.loads((content + b"\n" + later).decode("utf-8-sig"))


@pytest.mark.parametrize(
    "content",
    [
        b"a = ",
        b'mcp_servers = {other = {command = "x"}}\n',
        b'[mcp_servers.learnt]\ncommand = "x"\n',
        b"mcp_servers = 1\n",
    ],
)
def test_codex_configuration_that_cannot_be_changed_safely_is_refused(content: bytes) -> None:
    with pytest.raises(Unfit):
        ServerTable(server={"command": "learnt", "args": ["mcp"]}).add(content)


def test_an_inline_table_is_refused_with_what_to_write_instead(learnt: Learnt, project: Path) -> None:
    config = put(project / ".codex/config.toml", b'mcp_servers = {a={command="x"}}\n')
    refused = learnt("install", "codex")

    assert refused.code == 2
    assert "`mcp_servers` is an inline table" in refused.err
    assert "hint: write it as tables, `[mcp_servers.<name>]` for each server, and try again" in refused.err
    assert tree(project) == {".codex/config.toml": b'mcp_servers = {a={command="x"}}\n'}

    config.write_bytes(b'[mcp_servers.a]\ncommand="x"\n')
    assert learnt("install", "codex").code == 0


def test_our_server_that_a_person_wrote_into_an_inline_table_is_seen_and_left_to_that_person() -> None:
    edit = ServerTable(server={"command": "learnt", "args": ["mcp"]})
    content = b'mcp_servers = {learnt = {command = "learnt", args = ["mcp"]}}\n'

    assert edit.has_settings(content)
    assert edit.add(content) == content
    with pytest.raises(Unfit):
        edit.remove(content, None)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "[mcp_servers.learnt]"),
        (b"a = ", "[mcp_servers.learnt]"),
        (b'[mcp_servers.x]\ncommand = "x"\n', "[mcp_servers.learnt]"),
        (b'mcp_servers.learnt = {command = "learnt", args = ["mcp"]}\n', "# so that the table `mcp_servers.learnt`"),
    ],
)
def test_otherwise_what_is_to_be_added_to_codex_by_hand_is_a_table(content: bytes, expected: str) -> None:
    assert ServerTable(server={"command": "learnt", "args": ["mcp"]}).by_hand(content).startswith(expected)


def test_a_part_of_our_table_that_somebody_wrote_elsewhere_is_not_left_alone() -> None:
    edit = ServerTable(server={"command": "learnt", "args": ["mcp"]})
    with pytest.raises(Unfit):
        edit.remove(edit.add(b"") + b'\n[mcp_servers.learnt.env]\nA = "b"\n', None)


WORD = ".learnt/learnings.md"
YAML_FILES = {
    "nothing": ("", f"read: [{WORD}]\n"),
    "another key": ("# mine\nmodel: x # why\n", f"# mine\nmodel: x # why\nread: [{WORD}]\n"),
    "no last line end": ("model: x", f"model: x\nread: [{WORD}]\n"),
    "over several lines": ("a: [1, # ]\r\n  2]\r\n", f"a: [1, # ]\r\n  2]\r\nread: [{WORD}]\r\n"),
    "dashes": (
        "read:\n  # two\n  - A.md # a\n  - 'b c.md'\n\nx: 1\n",
        f"read:\n  # two\n  - A.md # a\n  - 'b c.md'\n  - {WORD}\n\nx: 1\n",
    ),
    "dashes below the key": (
        "---\nread: # these\n- A.md\nx: |\n  read: no\n",
        f"---\nread: # these\n- A.md\n- {WORD}\nx: |\n  read: no\n",
    ),
    "dashes at the end": ("read:\n- A.md", f"read:\n- A.md\n- {WORD}"),
    "windows": ("x: 1\r\nread:\r\n  - A.md\r\n", f"x: 1\r\nread:\r\n  - A.md\r\n  - {WORD}\r\n"),
    "byte order mark": ("\ufeffx: 1\n", f"\ufeffx: 1\nread: [{WORD}]\n"),
}


@pytest.mark.parametrize(("before", "after"), YAML_FILES.values(), ids=YAML_FILES)
def test_aider_reads_the_learnings_along_and_its_settings_come_back(before: str, after: str) -> None:
    edit = ReadList()
    added = edit.add(before.encode())

    assert added.decode() == after
    assert edit.add(added) == added
    assert edit.remove(added, before.encode()) == before.encode()
    if before.endswith("\n"):
        assert edit.remove(added + b"dark-mode: true\n", before.encode()) == before.encode() + b"dark-mode: true\n"


@pytest.mark.parametrize(
    "content",
    [
        "{read: x}\n",
        "read: A.md\n",
        "read: [A.md, b.md]\n",
        "read: []\n",
        "read:\nmodel: x\n",
        "read: [a,\n  b]\n",
        "read: &x a\n",
        "read: >\n  a\n",
        "read:\n  - a\n    - b\n",
        "read:\n  - a: b\n",
        "\tread: a\n",
        "a: 1\n---\nb: 2\n",
        "read: a\nread: b\n",
        "read: &x\n  - a\nother: *x\n",
    ],
)
def test_aider_settings_that_cannot_be_changed_safely_are_refused(content: str) -> None:
    with pytest.raises(Unfit):
        ReadList().add(content.encode())


@pytest.mark.parametrize(
    ("written", "left"),
    [
        (f"read: [A.md, {WORD}] # why\nmodel: x\n", "read: [A.md] # why\nmodel: x\n"),
        (f"read: [ A.md, 'b c.md', {WORD} ]\n", "read: [ A.md, 'b c.md' ]\n"),
        (f"read: [{WORD}, b.md]\n", "read: [b.md]\n"),
        (f'model: x\nread: ["{WORD}"]\n', "model: x\n"),
    ],
)
def test_what_an_earlier_version_put_between_brackets_is_taken_out(written: str, left: str) -> None:
    assert ReadList().remove(written.encode(), b"x: 1\n") == left.encode()


@pytest.mark.parametrize(
    ("before", "by_hand"),
    [
        ("read: A.md\n", "read: [A.md, {}]\n"),
        ("read: &x\n  - A.md\n", "read: &x\n  - A.md\n  - {}\n"),
        ("read: [a,\n  b]\n", "read: [a,\n  b, {}]\n"),
        ("read: [a,\n  b\n  ]\nx: 1\n", 'read: [a,\n  b, "{}"\n  ]\nx: 1\n'),
    ],
)
def test_what_is_to_be_added_to_aider_by_hand_is_no_second_key_and_is_seen_there(before: str, by_hand: str) -> None:
    edit = ReadList()
    with pytest.raises(Unfit):
        edit.add(before.encode())

    assert edit.by_hand(before.encode()).endswith(f"no second `read:`\n{WORD}")
    done = by_hand.format(WORD).encode()
    assert edit.add(done) == done
    assert edit.has_settings(done)
    with pytest.raises(Unfit):
        edit.add(before.encode() + f"other: {WORD}\n".encode())
    assert edit.by_hand(b"{a: 1}\n") == f"# within the braces\nread: [{WORD}]"
    assert edit.by_hand(b"---\na: 1\n---\n") == f"read: [{WORD}]"


def test_a_list_over_several_lines_is_left_to_the_person_who_wrote_it() -> None:
    with pytest.raises(Unfit):
        ReadList().remove(f"read: [a,\n  {WORD}]\n".encode(), None)


# Any JSON, written in any way: with comments, commas after the last, and blanks wherever they may stand.

KEYS = st.sampled_from(
    ["hooks", "mcp", "permissions", "allow", "Stop", "learnt", "a/b", "//", "ü", "☃", "", 'q"', "\\"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
LISTS = st.lists(VALUES, max_size=2)
ROOTS = st.fixed_dictionaries(
    {},
    optional={
        "hooks": st.dictionaries(st.sampled_from(["Stop", "SessionStart", "Other"]), LISTS, max_size=3) | VALUES,
        "mcp": st.dictionaries(KEYS.filter(lambda key: key != "learnt"), VALUES, max_size=2),
        "permissions": st.dictionaries(st.sampled_from(["deny", "allow"]), LISTS, max_size=2),
        "ünï": VALUES,
        "zebra": VALUES,
    },
)
EVERYTHING = JsonFile(
    hooks={
        "SessionStart": {"type": "command", "command": "learnt hook"},
        "Stop": {"type": "command", "command": "learnt hook"},
    },
    servers="mcp",
    server={"command": ["learnt", "mcp"]},
    words={("permissions", "allow"): "mcp__learnt__*"},
)


class Writer:
    """Writes a value in a way that chance decides."""

    def __init__(self, chance: random.Random, *, plain: bool) -> None:
        self.chance = chance
        self.line = chance.choice(["\n", "\r\n"])
        self.plain = plain

    def gap(self) -> str:
        blank = self.chance.choice(["", "", " ", "  ", "\t", self.line, f"{self.line}  "])
        if self.plain or self.chance.random() < 0.8:
            return blank
        return blank + self.chance.choice([f'// [no" {self.line}', '/* } "," */', f"/*{self.line}*/ "])

    def write(self, value: Any) -> str:
        if isinstance(value, dict):
            key = self.chance.choice([True, False])
            parts = [
                f"{json.dumps(name, ensure_ascii=key)}{self.gap()}:{self.gap()}{self.write(one)}"
                for name, one in value.items()
            ]
            return self.within("{", parts, "}")
        if isinstance(value, list):
            return self.within("[", [self.write(one) for one in value], "]")
        return json.dumps(value, ensure_ascii=self.chance.choice([True, False]))

    def within(self, opening: str, parts: list[str], closing: str) -> str:
        last = "," + self.gap() if parts and not self.plain and self.chance.random() < 0.3 else ""
        inner = ",".join(f"{self.gap()}{part}{self.gap()}" for part in parts)
        return opening + (inner or self.gap()) + last + closing


def documents(value: dict[str, Any], chance: random.Random, *, plain: bool) -> bytes:
    writer = Writer(chance, plain=plain)
    if plain and chance.random() < 0.5:
        text = json.dumps(
            value, indent=chance.choice([None, 1, 2, 3, 4, "\t"]), ensure_ascii=chance.choice([True, False])
        )
        return text.replace("\n", writer.line).encode("utf-8", "surrogatepass")
    return (writer.gap() + writer.write(value) + writer.gap()).encode()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=ROOTS, chance=st.randoms(use_true_random=False), plain=st.booleans(), mark=st.booleans())
def test_any_settings_come_back_byte_for_byte_and_keep_what_others_change(
    value: dict[str, Any], chance: random.Random, plain: bool, mark: bool
) -> None:
    edit = EVERYTHING if plain else EVERYTHING.replace(dialect=WITH_COMMENTS_AND_COMMAS)
    content = (b"\xef\xbb\xbf" if mark else b"") + documents(value, chance, plain=plain)
    try:
        added = edit.add(content)
    except Unfit:
        unfit = not isinstance(value.get("hooks", {}), dict) or any(
            not isinstance(value["hooks"].get(event, []), list) for event in ("Stop", "SessionStart")
        )
        assert unfit
        return

    assert edit.has_settings(added)
    assert edit.add(added) == added
    assert edit.remove(added, content) == content
    if "zebra" in value and added.count(b'"zebra"') == 1:
        theirs = b'"others": [{"Stop": "\\""}], "zulu"'
        assert edit.remove(added.replace(b'"zebra"', theirs), content) == content.replace(b'"zebra"', theirs)
    if plain:
        hooks, kept = json.loads(added.decode("utf-8-sig"))["hooks"], value.get("hooks", {})
        for event, groups in kept.items():
            assert (hooks[event][: len(groups)] if event in EVERYTHING.hooks else hooks[event]) == groups


# What the doctor says.


def findings(learnt: Learnt, client: str, **options: Any) -> list[dict[str, Any]]:
    told = json.loads(learnt("doctor", "--json", **options).out)["findings"]
    return [one for one in told if one["subject"] == f"client {client}"]


def test_the_doctor_tells_each_fault_of_a_client_in_a_finding_of_its_own(
    learnt: Learnt, project: Path, tmp_path: Path
) -> None:
    learnt("init")
    learnt("install", "claude-code")
    put_learnt(tmp_path / "bin")
    path = project / ".claude" / "settings.json"
    content = json.loads(path.read_text())
    del content["hooks"]["PreToolUse"]
    path.write_text(json.dumps({**content, "disableAllHooks": True}))

    off, old = findings(learnt, "claude-code", env={"PATH": str(tmp_path / "bin")})

    assert off["detail"] == f"Claude Code does not run our hooks here (`disableAllHooks` is true in {path})"
    assert old["detail"] == f"the setup is incomplete, or from an older version: {path}"
    assert (off["fine"], off["remedy"]) == (False, "set `disableAllHooks` to false")
    assert (off["facts"]["client"], old["facts"]) == ("claude-code", {})


def test_the_doctor_says_whether_a_client_can_start_learnt(learnt: Learnt, project: Path, tmp_path: Path) -> None:
    learnt("init")
    learnt("install", "claude-code")
    put_learnt(tmp_path / "bin")
    nowhere = {"PATH": "/nowhere"}

    (missing,) = findings(learnt, "claude-code", env=nowhere)
    (there,) = findings(learnt, "claude-code", env={"PATH": str(tmp_path / "bin")})
    (project / ".mcp.json").unlink()
    (half,) = findings(learnt, "claude-code", env={"PATH": str(tmp_path / "bin")})

    assert not missing["fine"]
    assert "not on PATH" in missing["detail"]
    assert there["fine"]
    assert not half["fine"]
    assert half["remedy"] == "`learnt install claude-code`"
    assert findings(learnt, "gemini") == []


def test_the_doctor_sees_a_client_that_is_set_up_twice(learnt: Learnt, tmp_path: Path) -> None:
    learnt("install", "gemini")
    told = learnt("install", "gemini", "--user")

    assert "every hook runs twice" in told.out
    put_learnt(tmp_path / "bin")
    (found,) = findings(learnt, "gemini", env={"PATH": str(tmp_path / "bin")})
    assert "every hook runs twice" in found["detail"]
    assert found["remedy"] == "`learnt uninstall gemini`, or `learnt uninstall gemini --user`"


def test_the_doctor_says_what_codex_does_not_trust_yet(
    learnt: Learnt, project: Path, home: Path, tmp_path: Path
) -> None:
    learnt("install", "codex")
    put_learnt(tmp_path / "bin")
    path = {"PATH": str(tmp_path / "bin")}

    (no_project,) = findings(learnt, "codex", env=path)
    trusted = f'[projects."{project}"]\ntrust_level = "trusted"\n'
    config = put(home / ".codex/config.toml", trusted.encode())
    (no_hooks,) = findings(learnt, "codex", env=path)
    names = [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower() for event in CODEX]
    hooks = project / ".codex/hooks.json"
    config.write_text(
        trusted + "".join(f'[hooks.state."{hooks}:{name}:0:0"]\ntrusted_hash = "sha256:1"\n' for name in names)
    )
    (all_well,) = findings(learnt, "codex", env=path)

    assert "is not on this machine" in no_project["detail"]
    assert no_project["fine"]  # a project carries settings for colleagues, too
    assert no_project["remedy"] == ""
    assert f"{len(CODEX)} hooks (not approved yet); codex is not on PATH" in no_hooks["detail"]
    assert not no_hooks["fine"]  # somebody uses it here
    assert "/hooks" in no_hooks["remedy"]
    assert all_well["fine"]


def test_in_a_read_only_folder_the_way_out_is_told_and_nothing_is_claimed_of_hooks(disk: Disk, tmp_path: Path) -> None:
    put_learnt(tmp_path / "bin")
    learnt = command_line(disk.folder, {**os.environ, "PATH": str(tmp_path / "bin")})
    learnt("init")
    learnt("install", "gemini")
    assert "none of its hooks has fired here yet" in findings(learnt, "gemini")[0]["detail"]
    disk.forbid_writing()

    refused = [learnt("install", "codex"), learnt("uninstall", "gemini")]
    (found,) = findings(learnt, "gemini")

    for done in refused:
        assert done.code == 1
        assert "`chmod -R u+w " in done.err
    assert "whether its hooks have fired is unknown" in found["detail"]
    told = json.loads(learnt("doctor", "--json").out)["findings"]
    (folder,) = [one for one in told if one["subject"] == "store: permissions"]
    assert "hooks say nothing" in folder["detail"]
    assert folder["remedy"].startswith(f"`chmod -R u+w {disk.folder}/.learnt`")


# What the repository carries.


@pytest.mark.parametrize("path", generate_plugins.files())
def test_plugins_say_the_same_as_the_table_of_events(path: str) -> None:
    assert (generate_plugins.PLUGINS / path).read_text(encoding="utf-8") == generate_plugins.files()[path], (
        "run `make docs`"
    )
