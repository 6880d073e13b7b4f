"""Settings as a person meets them: where they come from, what is refused, and what is never shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learnt import Memory
from learnt.doors.cli import run
from learnt.settings import AGENTS, BY_KEY, SETTINGS, Setting
from learnt.settings_text import example_lines
from tests.conftest import Done


class Settings:
    """The settings of one project, seen through `learnt config`."""

    def __init__(
        self, project: Path, home: Path, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
    ) -> None:
        self.project_file = project / "learnt.toml"
        self.user_file = home / ".config/learnt/learnt.toml"
        self.user_file.parent.mkdir(parents=True)
        self._capture = capture
        self.patch = patch

    def run(self, *words: str) -> tuple[int, str]:
        """Run a command; return its exit code and all that it said."""
        self._capture.readouterr()
        code = run(list(words))
        out, err = self._capture.readouterr()
        return code, out + err

    def shown(self) -> dict[str, dict[str, Any]]:
        """Return what `learnt config --json` shows, by key."""
        code, text = self.run("config", "--json")
        assert code == 0, text
        return {record["id"]: record for record in json.loads(text)}

    def refused(self) -> str:
        """Expect the settings to be refused with a way out; return the message."""
        code, text = self.run("config")
        assert code == 2, text
        text = re.sub(r"^learnt: ", "", text, flags=re.MULTILINE)  # how our lines begin inside an attempt of the loop
        assert text.startswith("error: ")
        assert "\nhint: " in text
        assert "Traceback" not in text
        return text


@pytest.fixture
def settings(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Settings:
    monkeypatch.chdir(project)
    for name in ("LEARNT_LEARNINGS_REGENERATE_EVERY", "LEARNT_HOOK_DEADLINE_MS"):
        monkeypatch.delenv(name)
    return Settings(project, home, capsys, monkeypatch)


def keys(setting: Setting) -> list[str]:
    """Return the keys under which a setting is written in a file; each agent has one of its own."""
    return [line.partition(" = ")[0] for line in example_lines(setting)]


def test_the_nearer_place_wins_and_is_named(settings: Settings) -> None:
    settings.project_file.write_text("")
    assert settings.shown()["page_size"] | {"meaning": ""} == {
        "id": "page_size",
        "value": 50,
        "origin": "default",
        "meaning": "",
        "personal": False,
        "by": "anybody",
        "ignored": False,
    }
    settings.user_file.write_text('page_size = 10\nperson = "anna"\nwait_ms = 1\n')
    settings.project_file.write_text('page_size = 20\nperson = "ben"\n')
    settings.patch.setenv("LEARNT_PAGE_SIZE", "30")
    found = {key: (record["value"], record["origin"]) for key, record in settings.shown().items()}
    assert found["wait_ms"] == (1, str(settings.user_file))
    assert found["person"] == ("ben", str(settings.project_file))
    assert found["page_size"] == (30, "LEARNT_PAGE_SIZE")
    assert found["color"] == ("auto", "default")


def test_every_setting_is_shown_with_its_meaning_and_one_can_be_asked_for(settings: Settings) -> None:
    assert list(settings.shown()) == [key for setting in SETTINGS for key in keys(setting)]
    code, text = settings.run("config")
    assert code == 0
    assert all(f"\n{key} = " in f"\n{text}" for setting in SETTINGS for key in keys(setting))
    assert all(text.count(setting.meaning) == 1 for setting in SETTINGS)
    assert settings.run("config", "page_size")[1].startswith("page_size = 50  (default)\n")
    code, text = settings.run("config", "pagesize")
    assert code == 2
    assert "hint: " in text


def test_every_setting_has_a_variable(settings: Settings) -> None:
    values = {
        "database": ("postgresql://db/shop", "postgresql://db/shop"),
        "project": ("p", "p"),
        "person": ("q", "q"),
        "sources": ("/a:/b", ["/a", "/b"]),
        "user_store": ("no", False),
        "wait_ms": ("7", 7),
        "page_size": ("8", 8),
        "color": ("never", "never"),
        "brief_learnings": ("3", 3),
        "brief_confidence": ("0.5", 0.5),
        "brief_relevance": ("0.25", 0.25),
        "brief_tokens": ("500", 500),
        "index_tokens": ("300", 300),
        "trial_slots": ("2", 2),
        "brief_per_category": ("4", 4),
        "cache_ttl_s": ("0", 0),
        "hook_deadline_ms": ("300", 300),
        "before_tool": ("off", "off"),
        "ask_agent": ("insist", "insist"),
        "cues": ("auto", "auto"),
        "summarise_above": ("9", 9),
        "stuck_after": ("4", 4),
        "strategy": ("escalate", "escalate"),
        "models": ("small=0.1,large", [_model("small", 0.1), _model("large", 0.0)]),
        "work.agent": ("command", "command"),
        "work.command": ("./agent {model}", "./agent {model}"),
        "work.arguments": ("-a:-b", ["-a", "-b"]),
        "work.model": ("large", "large"),
        "work.verify": ("make test", "make test"),
        "work.isolation": ("worktree", "worktree"),
        "work.jobs": ("2", 2),
        "work.order": ("depth", "depth"),
        "work.time_limit_s": ("5", 5),
        "work.output_limit_mb": ("6", 6),
        "work.lease_s": ("7", 7),
        "work.task_cap_usd": ("1.5", 1.5),
        "work.daily_cap_usd": ("9", 9.0),
        "search.strategy": ("bm25", "bm25"),
        "search.semantic_weight": ("0.3", 0.3),
        "search.encoder": ("ollama:small", "ollama:small"),
        "search.encoder_weight": ("0.7", 0.7),
        "search.encoder_key": ("SHOP_KEY", "SHOP_KEY"),
        "search.encoder_deadline_ms": ("900", 900),
        "search.encoder_price": ("0.02", 0.02),
        "learnings.enabled": ("no", False),
        "learnings.window_size": ("8", 8),
        "learnings.goal_window_size": ("0", 0),
        "learnings.regenerate_every": ("9", 9),
        "learnings.max_tokens": ("500", 500),
        "learnings.injection_strategy": ("both", "both"),
        "learnings.time_limit_s": ("11", 11),
        "learnings.ask": ("false", False),
        "model.provider": ("openai", "openai"),
        "model.name": ("small", "small"),
        "model.command": ("ask -", "ask -"),
        "model.base_url": ("http://localhost:1/v1", "http://localhost:1/v1"),
        "model.time_limit_s": ("12", 12),
        "model.input_price": ("0.25", 0.25),
        "model.output_price": ("1.5", 1.5),
        "model.call_price": ("0", 0.0),
        "model.daily_cap_usd": ("2", 2.0),
        "model.monthly_cap_usd": ("3.5", 3.5),
        "consolidate.staging_file": ("docs/new.md", "docs/new.md"),
        "consolidate.size_lines": ("80", 80),
        "consolidate.staleness_days": ("9", 9),
        "consolidate.freshness_days": ("8", 8),
        "consolidate.batch_entries": ("2", 2),
        "consolidate.topics_folder": ("notes", "notes"),
        "consolidate.index_file": ("notes/index.md", "notes/index.md"),
        "consolidate.topic_files": ("docs/a.md:docs/b.md", ["docs/a.md", "docs/b.md"]),
        "consolidate.topic_lines": ("300", 300),
        "consolidate.pointer": ("false", False),
    }
    values["trusted"] = ("/a:/b", ["/a", "/b"])
    variables = {key: f"LEARNT_{key.upper().replace('.', '_')}" for key in values}
    for key, (text, _) in values.items():
        settings.patch.setenv(variables[key], text)

    shown = settings.shown()

    plain = {key: record for key, record in shown.items() if not key.startswith("agents.")}
    assert {key: record["value"] for key, record in plain.items()} == {key: value for key, (_, value) in values.items()}
    assert {key: record["origin"] for key, record in plain.items()} == variables


def _model(name: str, price: float) -> dict[str, object]:
    return {"name": name, "price": price, "input_price": 0.0, "output_price": 0.0}


def test_a_table_and_a_list_of_models_are_read_from_the_file(settings: Settings) -> None:
    settings.project_file.write_text(
        '[work]\nagent = "codex"\njobs = 3\n[[models]]\nname = "small"\nprice = 1\n[[models]]\nname = "large"\n'
    )
    shown = settings.shown()
    assert (shown["work.agent"]["value"], shown["work.jobs"]["value"]) == ("codex", 3)
    assert shown["models"]["value"] == [_model("small", 1), _model("large", 0.0)]


def test_an_entry_of_an_agent_replaces_that_of_the_same_agent_only(settings: Settings) -> None:
    settings.user_file.write_text('[agents.engineer]\ncategories = ["rust"]\n[agents.tester]\ncategories = ["rust"]\n')
    settings.project_file.write_text('[agents."Engineer"]\ncategories = ["Git Flow", "git_flow", "make"]\n')
    settings.patch.setenv("LEARNT_AGENTS", "code_reviewer = git, security ; Tester=")
    found = {key: (record["value"], record["origin"]) for key, record in settings.shown().items()}
    assert found["agents.engineer.categories"] == (["git-flow", "make"], str(settings.project_file))
    assert found["agents.tester.categories"] == ([], "LEARNT_AGENTS")
    assert found["agents.code-reviewer.categories"] == (["git", "security"], "LEARNT_AGENTS")
    assert found["agents.architect.categories"] == (list(AGENTS["architect"]), "default")
    assert "agents.tester.categories = []" in settings.run("config", "agents")[1]
    assert "wait_ms" not in settings.run("config", "agents")[1]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("agents = 5", "`agents`"),
        ('[agents]\nengineer = ["git"]', "`agents.engineer` without `categories`"),
        ('[agents.engineer]\ncategory = ["git"]', "`agents.engineer` without `categories`"),
        ("[agents.engineer]\ncategories = []\ntokens = 5", "`agents.engineer.tokens`"),
        ('[agents.engineer]\ncategories = "git"', "`agents.engineer.categories` to 'git'"),
        ("[agents.engineer]\ncategories = [1]", "`agents.engineer.categories` to [1]"),
        ('[agents.engineer]\ncategories = [" "]', "`agents.engineer.categories`"),
        ("[agents.engineer]\ncategories = []\n[agents.Engineer]\ncategories = []", "`Engineer` twice"),
        ('[agents." "]\ncategories = []', "without a name"),
    ],
)
def test_a_wrong_entry_of_an_agent_is_refused_with_its_key(settings: Settings, content: str, said: str) -> None:
    settings.project_file.write_text(content + "\n")
    told = settings.refused()
    assert said in told
    assert str(settings.project_file) in told


@pytest.mark.parametrize("text", ["engineer", "engineer:git", "=git", "a=b;a=c"])
def test_a_wrong_variable_for_agents_is_refused_by_its_name(settings: Settings, text: str) -> None:
    settings.patch.setenv("LEARNT_AGENTS", text)
    told = settings.refused()
    assert "LEARNT_AGENTS sets" in told or "LEARNT_AGENTS lists" in told
    assert 'LEARNT_AGENTS="engineer=git,pytest;' in told


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('work = "codex"', "`work`"),
        ('[work]\nagnet = "codex"', "`work.agnet`"),
        ("[work]\njobs = 0", "`work.jobs`"),
        ("[[models]]\nprice = 1", "needs `name`"),
        ('[[models]]\nname = "a"\ncost = 1', "no field `cost`"),
        ('[[models]]\nname = "a"\nprice = "much"', "price"),
        ('[[models]]\nname = "a"\n[[models]]\nname = "a"', "`a` twice"),
    ],
)
def test_a_wrong_table_or_model_is_refused_with_its_name(settings: Settings, content: str, said: str) -> None:
    settings.project_file.write_text(content + "\n")
    assert said in settings.refused()


def test_a_source_is_named_from_where_its_file_stands(settings: Settings, project: Path, home: Path) -> None:
    settings.user_file.write_text('sources = ["beside"]\n')
    assert settings.shown()["sources"]["value"] == [str(settings.user_file.parent / "beside")]
    settings.project_file.write_text('sources = ["../other", "~/mine", "/abs"]\n')
    assert settings.shown()["sources"]["value"] == [str(project.parent / "other"), str(home / "mine"), "/abs"]


@pytest.mark.parametrize("place", ["project_file", "user_file"])
def test_an_unknown_key_is_refused_with_the_likely_one(settings: Settings, place: str) -> None:
    settings.project_file.touch()
    file: Path = getattr(settings, place)
    file.write_text("pagesize = 5\n")
    told = settings.refused()
    assert str(file) in told
    assert "did you mean `page_size`?" in told
    file.write_text("xyzzy = 5\n")
    assert "page_size" in settings.refused()
    file.write_text("[color]\nx = 1\n")
    assert "color" in settings.refused()


def test_an_unknown_variable_is_refused_but_signs_between_our_processes_are_none(settings: Settings) -> None:
    settings.patch.setenv("LEARNT_INTERNAL", "1")
    settings.patch.setenv("LEARNT_TASK", "task_1")
    settings.patch.delenv("LEARNT_TRUSTED")
    assert {record["origin"] for record in settings.shown().values()} == {"default"}
    settings.patch.setenv("LEARNT_PAGESIZE", "5")
    told = settings.refused()
    assert "LEARNT_PAGESIZE" in told
    assert "page_size" in told


def test_signs_between_our_processes_cannot_be_set_in_a_file(settings: Settings) -> None:
    settings.project_file.write_text("internal = true\n")
    assert "internal" in settings.refused()


@pytest.mark.parametrize(
    "text",
    [
        "database = 5",
        'database = ["postgresql://db/x"]',
        'database = "mysql://db/x"',
        'database = "/var/learnt.db"',
        "project = true",
        "person = 1",
        'sources = "../other"',
        "sources = [1]",
        'user_store = "yes"',
        "user_store = 1",
        'wait_ms = "5"',
        "wait_ms = 1.5",
        "wait_ms = -1",
        "wait_ms = true",
        "page_size = 0",
        "page_size = []",
        'color = "pink"',
        "color = false",
    ],
)
def test_a_wrong_value_is_refused_by_file_key_and_remedy(settings: Settings, text: str) -> None:
    settings.project_file.write_text(text + "\n")
    told = settings.refused()
    assert str(settings.project_file) in told
    assert f"`{text.split(maxsplit=1)[0]}`" in told


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PAGE_SIZE", "many"),
        ("PAGE_SIZE", "0"),
        ("PAGE_SIZE", "--5"),
        ("PAGE_SIZE", "9" * 5000),
        ("WAIT_MS", "1.5"),
        ("WAIT_MS", "-1"),
        ("USER_STORE", "maybe"),
        ("COLOR", "pink"),
        ("DATABASE", "sqlite:///x"),
    ],
)
def test_a_wrong_variable_is_refused_by_its_name(settings: Settings, name: str, text: str) -> None:
    settings.patch.setenv(f"LEARNT_{name}", text)
    assert f"LEARNT_{name}" in settings.refused()


@pytest.mark.parametrize("content", [b"= 1", b"page_size = 1\npage_size = 2", b"\xff\xfe", b'person = "'])
def test_a_file_that_is_no_toml_is_named(settings: Settings, content: bytes) -> None:
    settings.project_file.write_bytes(content)
    assert str(settings.project_file) in settings.refused()


@pytest.mark.parametrize("number", ["9223372036854775808", "99999999999999999999999"])
def test_a_number_beyond_all_bounds_is_refused_or_works(settings: Settings, number: str) -> None:
    assert settings.run("init")[0] == 0
    for key in ("page_size", "wait_ms"):
        settings.project_file.write_text(f"{key} = {number}\n")
        code, text = settings.run("list")
        assert code in (0, 2), text


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://anna:geheim@/x?host=/nonexistent",
        "postgresql://anna:ge@geheim@/x?host=/nonexistent",
        "postgresql://anna@/x?host=/nonexistent&password=geheim",
        "postgresql://anna@/x?password=geheim&host=/nonexistent",
        "postgresql:///x?host=/nonexistent&sslpassword=geheim",
        "postgresql://anna:%67geheim%zz@/x?host=/nonexistent",
        "postgresql://anna:1/geheim@localhost:1/x",
        "mysql://anna:geheim@db/x",
        "host=/nonexistent user=anna password=geheim",
        "anna:geheim@db",
    ],
)
def test_a_password_is_never_shown(settings: Settings, address: str) -> None:
    settings.patch.setenv("LEARNT_DATABASE", address)
    settings.patch.setenv("LEARNT_WAIT_MS", "50")
    for words in (["config"], ["config", "--json"], ["list"], ["init"], ["doctor"], ["doctor", "--json"]):
        _, text = settings.run(*words)
        assert "geheim" not in text
        assert "Traceback" not in text


def test_a_password_is_not_shown_in_a_value_of_the_wrong_type(settings: Settings) -> None:
    settings.project_file.write_text('database = ["postgresql://anna:geheim@db/x"]\n')
    assert "geheim" not in settings.refused()


def test_init_writes_every_setting_commented_out_that_a_project_may_set(settings: Settings) -> None:
    assert settings.run("init")[0] == 0
    lines = settings.project_file.read_text().splitlines()
    assert all(not line or line.startswith("# ") for line in lines)
    own = [setting for setting in SETTINGS if setting.by != "user"]
    written = [key for setting in own for key in keys(setting)]
    for key in written:
        (example,) = [line for line in lines if line.startswith(f"# {key} = ")]
        settings.project_file.write_text(example.removeprefix("# ") + "\n")
        assert settings.shown()[key]["origin"] == str(settings.project_file)
    examples = tuple(f"# {key} = " for key in written)
    everything = [line.removeprefix("# ") if line.startswith(examples) else line for line in lines]
    settings.project_file.write_text("\n".join(everything))
    origins = {key: record["origin"] for key, record in settings.shown().items()}
    assert {origins[key] for key in written} == {str(settings.project_file)}
    for setting in SETTINGS:
        if setting.by == "user":
            assert not any(line.startswith(f"# {setting.key} = ") for line in lines)


@pytest.mark.parametrize("key", [setting.key for setting in SETTINGS if setting.by in ("person", "user")])
def test_a_project_cannot_choose_what_is_personal(settings: Settings, key: str) -> None:
    settings.patch.delenv("LEARNT_TRUSTED")
    settings.run("init")
    before = settings.shown()[key]["value"]
    settings.project_file.write_text(_line_for(key))

    shown = settings.shown()[key]

    assert (shown["value"], shown["ignored"], shown["personal"]) == (before, True, True)
    assert "learnt trust" in settings.run("config", key)[1]
    code, told = settings.run("list")
    assert f"`{key}`" in told
    assert "learnt trust" in told
    assert code == (2 if key == "database" else 0)


@pytest.mark.parametrize(
    "key",
    [setting.key for setting in SETTINGS if setting.by in ("lower", "higher") and setting.default is not True],
)
def test_a_project_may_only_tighten_a_limit(settings: Settings, key: str) -> None:
    settings.patch.delenv("LEARNT_TRUSTED")
    settings.run("init")
    settings.user_file.write_text(f"{key} = {_tight(key)}\n")
    settings.project_file.write_text(f"{key} = {_tight(key, steps=1)}\n")
    assert settings.shown()[key]["origin"] == str(settings.project_file)
    settings.project_file.write_text(f"{key} = {_tight(key, steps=-1)}\n")
    assert settings.shown()[key]["origin"] == str(settings.user_file)

    assert settings.run("trust", "--yes")[0] == 0

    assert settings.shown()[key]["origin"] == str(settings.project_file)


def test_a_project_may_switch_learning_off_but_not_on(settings: Settings) -> None:
    settings.patch.delenv("LEARNT_TRUSTED")
    settings.run("init")
    for own, theirs, effective in (("true", "false", False), ("false", "true", False), ("true", "true", True)):
        settings.user_file.write_text(f"learnings.enabled = {own}\n")
        settings.project_file.write_text(f"learnings.enabled = {theirs}\n")
        assert settings.shown()["learnings.enabled"]["value"] is effective


def test_what_was_accepted_takes_effect_until_it_changes(settings: Settings) -> None:
    settings.patch.delenv("LEARNT_TRUSTED")
    settings.run("init")
    settings.project_file.write_text('page_size = 3\n[work]\nverify = "make test"\n')
    assert settings.shown()["work.verify"]["value"] == ""

    code, told = settings.run("trust", "--yes")

    assert code == 0
    assert "work.verify" in told
    assert "make test" in told
    assert settings.shown()["work.verify"]["value"] == "make test"
    settings.project_file.write_text('page_size = 4\n[work]\nverify = "make test"\n')
    assert settings.shown()["work.verify"]["value"] == "make test"
    settings.project_file.write_text('[work]\nverify = "make evil"\n')
    assert settings.shown()["work.verify"]["value"] == ""
    settings.run("untrust")
    assert settings.run("list")[0] == 2


def test_a_trusted_folder_never_comes_from_a_project(settings: Settings) -> None:
    settings.patch.delenv("LEARNT_TRUSTED")
    settings.run("init")
    settings.project_file.write_text('trusted = ["/"]\nperson = "eve"\n')
    assert settings.run("trust", "--yes")[0] == 0
    assert settings.shown()["trusted"]["value"] == []
    assert settings.shown()["person"]["value"] == "eve"


def _line_for(key: str) -> str:
    (line,) = [line for line in example_lines(BY_KEY[key]) if line.startswith(f"{key} = ")] or [f'{key} = ["/"]']
    other = {"user_store": "user_store = false", "before_tool": 'before_tool = "off"'}
    other["ask_agent"] = 'ask_agent = "never"'
    other["cues"] = 'cues = "auto"'
    return other.get(key, line) + "\n"


def _tight(key: str, *, steps: int = 0) -> float:
    """Return a limit, or one that is tighter by so many steps."""
    if isinstance(BY_KEY[key].default, float):
        return 0.5 + (0.1 if BY_KEY[key].by == "higher" else -0.1) * steps
    return 500 + (1 if BY_KEY[key].by == "higher" else -1) * steps if key != "work.jobs" else 5 - steps


def test_a_person_names_the_model_and_a_project_s_choice_counts_once_it_is_trusted(settings: Settings) -> None:
    settings.user_file.write_text('[model]\nprovider = "openai"\nbase_url = "http://localhost:1/v1"\n')
    settings.project_file.write_text('[model]\nname = "small"\ntime_limit_s = 5\ndaily_cap_usd = 2\n')
    found = {key: (record["value"], record["personal"]) for key, record in settings.shown().items()}
    assert found["model.provider"] == ("openai", True)
    assert found["model.base_url"] == ("http://localhost:1/v1", True)
    assert (found["model.name"], found["model.daily_cap_usd"]) == (("small", True), (2.0, False))
    settings.patch.setenv("LEARNT_MODEL_PROVIDER", "anthropic")
    assert settings.shown()["model.provider"]["value"] == "anthropic"
    told = settings.run("config", "model.provider")[1]
    assert str(settings.user_file) in told
    assert "LEARNT_MODEL_PROVIDER" in told


def test_a_parsed_copy_that_came_with_a_project_cannot_speak_for_a_missing_file(settings: Settings) -> None:
    assert settings.run("init")[0] == 0
    settings.project_file.unlink()
    files = [str(settings.user_file), str(settings.project_file)]
    forged = {"stamps": [[file] for file in files], "contents": {files[0]: {"person": "evil"}, files[1]: {}}}
    (settings.project_file.parent / ".learnt" / "settings.json").write_text(json.dumps(forged))
    with Memory.open(settings.project_file.parent) as memory:
        assert memory.person != "evil"


def test_init_with_an_address_writes_a_file_that_loads(settings: Settings, postgres: Any) -> None:
    assert settings.run("init", "--database", postgres.address(empty=True))[0] == 0
    assert settings.shown()["project"]["value"] == "shop"
    assert settings.run("list")[0] == 0


def test_settings_reach_the_commands(settings: Settings, learnt: Callable[..., Done]) -> None:
    settings.run("init")
    for title in ("One", "Two", "Three"):
        settings.run("add", title)
    listed = learnt("list", env={"LEARNT_PAGE_SIZE": "2", "LEARNT_INTERNAL": "1", "LEARNT_TASK": "task_1"})
    assert len(listed.out.splitlines()) == 2
    id = listed.out.split()[0]
    settings.project_file.write_text('person = "  Anna   B. "\n')
    settings.run("pin", id)
    assert json.loads(learnt("history", id, "--json").out)[-1]["who"] == "Anna B."


def test_the_parsed_copy_follows_every_change_of_the_files(project: Path, home: Path) -> None:
    copy = project / ".learnt" / "settings.json"
    for size in (7, 8):
        (project / "learnt.toml").write_text(f"page_size = {size}\n")
        for _ in range(2):
            with Memory.open(project) as memory:
                assert memory.settings.page_size == size
        assert copy.stat().st_mode & 0o777 == 0o600
    (home / ".config" / "learnt").mkdir(parents=True)
    (home / ".config" / "learnt" / "learnt.toml").write_text('person = "berta"\n')
    with Memory.open(project) as memory:
        assert (memory.settings.page_size, memory.person) == (8, "berta")
    copy.write_text("{damaged")
    with Memory.open(project) as memory:
        assert memory.settings.page_size == 8


def test_a_hook_keeps_the_parsed_copy_itself(project: Path, learnt: Callable[..., Done]) -> None:
    Memory.open(project).close()
    (project / "learnt.toml").write_text("page_size = 7\n")
    assert learnt("hook", stdin="{}").code == 0
    assert "page_size" in (project / ".learnt" / "settings.json").read_text()
