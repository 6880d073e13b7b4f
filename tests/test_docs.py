"""The documentation is true: generated pages are fresh, links lead somewhere, examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.generate_docs import DOCS, pages

from learnt.doors.cli import COMMANDS
from learnt.doors.cli.arguments import full_parser

ROOT = DOCS.parent
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


@pytest.mark.parametrize("name", sorted(pages()))
def test_generated_pages_are_fresh(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name], "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)[^):]*\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_examples_exist_and_take_these_options(page: Path) -> None:
    known = {command.name: command for command in COMMANDS}
    for line in re.findall(r"^\s*\$ learnt (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
        name = next((two for two in (" ".join(line.split()[:2]),) if two in known), line.split()[0])
        assert name in known or name.startswith("-"), line
        options = re.findall(r"(?<=\s)(--[a-z-]+)", re.sub(r"'[^']*'|\"[^\"]*\"", "", line)) if name in known else []
        for option in options:
            assert option in full_parser(known[name])._option_string_actions, line


def test_files_and_functions_that_the_architecture_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for path, name in re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`(?: `([A-Za-z_.]+))?", text):
        file = next((file for file in (ROOT / "src" / "learnt" / path, ROOT / path) if file.exists()), None)
        assert file is not None, path
        assert re.search(rf"\b{name.rpartition('.')[2].rstrip('_')}", file.read_text(encoding="utf-8")), (path, name)


def test_the_architecture_draws_every_room() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "learnt"
    rooms = {f"{path.name}/" for path in source.iterdir() if (path / "__init__.py").exists()}
    files = {path.name for path in source.glob("*.py")} - {"__init__.py"}
    assert [room for room in sorted(rooms | files) if f"\n      {room} " not in text] == []
    for room, content in re.findall(r"^      ([a-z_]+)/ +(.+)$", text, re.MULTILINE):
        names = [re.sub(r" \(.*\)", "", part).rstrip("/") for part in content.split(" · ")]
        for name in filter(re.compile("[a-z_]+").fullmatch, names):
            assert (source / room / name).is_dir() or (source / room / f"{name}.py").exists(), f"{room}/{name}"
