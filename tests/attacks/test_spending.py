"""A project cannot spend the user's money: the caps are the user's, and count over all projects."""

from __future__ import annotations

from pathlib import Path

import pytest

from learnt import Memory
from learnt.errors import SpendingCap
from learnt.flow.model_calls import ask_model
from learnt.llm import ModelRequest

REQUEST = ModelRequest(purpose="extract", system="", prompt="Say yes.")


@pytest.fixture
def paid(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that costs 0.4 USD a call, and a cap of 1 USD a day."""
    for name, text in {"PROVIDER": "command", "COMMAND": "echo yes", "CALL_PRICE": "0.4", "DAILY_CAP_USD": "1"}.items():
        monkeypatch.setenv(f"LEARNT_MODEL_{name}", text)


def _ask(folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    with Memory.open(folder) as memory:
        return ask_model(memory.context, REQUEST, task="", regeneration="", limit_s=20).text.strip()


def test_what_one_project_spends_counts_in_the_others(tmp_path: Path, paid: None) -> None:
    assert [_ask(tmp_path / name) for name in ("one", "two")] == ["yes", "yes"]
    with pytest.raises(SpendingCap, match="a day"):
        _ask(tmp_path / "three")


def test_a_project_cannot_raise_the_cap(
    tmp_path: Path, paid: None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEARNT_TRUSTED")
    monkeypatch.delenv("LEARNT_MODEL_DAILY_CAP_USD")
    greedy = tmp_path / "greedy"
    greedy.mkdir()
    (greedy / "learnt.toml").write_text("model.daily_cap_usd = 1000000\n")
    assert [_ask(greedy), _ask(greedy)] == ["yes", "yes"]
    with pytest.raises(SpendingCap, match="a day") as told:
        _ask(greedy)
    assert str(home / ".config" / "learnt" / "learnt.toml") in told.value.hint


def test_a_damaged_line_does_not_stop_the_count(tmp_path: Path, paid: None, home: Path) -> None:
    assert _ask(tmp_path / "one") == "yes"
    file = home / ".local" / "share" / "learnt" / "spending.jsonl"
    file.write_text(f"{{]\n{file.read_text()}")
    assert _ask(tmp_path / "two") == "yes"
    with pytest.raises(SpendingCap):
        _ask(tmp_path / "three")
