"""Transcripts of the four clients in which a command fails and a changed one works, as the clients write them."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

from tests.support.transcripts import (
    HEAD,
    INFO,
    META,
    answered,
    asked,
    claude,
    codex,
    codex_call,
    codex_message,
    codex_output,
    gemini,
    gemini_call,
    part,
    used,
    written,
)

_FAILED, _WORKED = "python -m pytest tests", "uv run pytest tests"
_WHY = "/usr/bin/python: No module named pytest"
_PASSED = "12 passed"


def correction(
    client: str, path: Path, *, folder: Path, prompt: str = "Mend the tills", said: str = "Mended the tills."
) -> str:
    """Write a client's conversation to a folder; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if client == "opencode":
        return _of_opencode(path, folder, prompt, said)
    records = {"claude": _of_claude, "codex": _of_codex, "gemini": _of_gemini}[client](folder, prompt, said)
    return written(path, records)


def kept_at_home(home: Path, folder: Path) -> list[str]:
    """Write a conversation for each client that stores files, where the client stores them; return their paths."""
    name = re.sub("[^A-Za-z0-9]", "-", str(folder))
    day = time.strftime("%Y/%m/%d")
    root = home / ".gemini" / "tmp" / folder.name / ".project_root"
    root.parent.mkdir(parents=True)
    root.write_text(str(folder))
    return [
        correction("claude", home / ".claude" / "projects" / name / "s-1.jsonl", folder=folder),
        correction("codex", home / ".codex" / "sessions" / day / "rollout-1.jsonl", folder=folder),
        correction("gemini", root.parent / "chats" / "session-1.jsonl", folder=folder),
    ]


def _of_claude(folder: Path, prompt: str, said: str) -> list[dict[str, Any]]:
    records = [
        claude("user", prompt),
        used("Bash", {"command": _FAILED}),
        answered(f"Exit code 1\n{_WHY}", is_error=True),
        used("Bash", {"command": _WORKED}, "t2"),
        answered(_PASSED, "t2"),
        claude("assistant", [{"type": "text", "text": said}]),
    ]
    return [{**record, "cwd": str(folder)} for record in records]


def _of_codex(folder: Path, prompt: str, said: str) -> list[dict[str, Any]]:
    return [
        codex({**META, "cwd": str(folder)}, "session_meta"),
        codex_message("user", prompt),
        codex_call("exec_command", {"cmd": _FAILED}),
        codex_output(f"Wall time: 0.1 seconds\nProcess exited with code 1\nOutput:\n{_WHY}\n"),
        codex_call("exec_command", {"cmd": _WORKED}, "c2"),
        codex_output(f"Wall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n{_PASSED}\n", "c2"),
        codex_message("assistant", said),
    ]


def _of_gemini(folder: Path, prompt: str, said: str) -> list[dict[str, Any]]:
    ran = "<untrusted_context>\nOutput: {}\nExit Code: {}\n</untrusted_context>"
    return [
        HEAD,
        asked("m1", prompt),
        gemini("m2", toolCalls=[gemini_call("run_shell_command", {"command": _FAILED}, ran.format(_WHY, 1))]),
        gemini("m3", said, toolCalls=[gemini_call("run_shell_command", {"command": _WORKED}, ran.format(_PASSED, 0))]),
    ]


def _of_opencode(path: Path, folder: Path, prompt: str, said: str) -> str:
    failed = part("bash", {"command": _FAILED}, output=_WHY, metadata={"exit": 1})
    worked = {**part("bash", {"command": _WORKED}, output=_PASSED, metadata={"exit": 0}), "callID": "o2"}
    messages = [
        {"info": {"role": "user"}, "parts": [{"type": "text", "text": prompt}]},
        {"info": {"role": "assistant"}, "parts": [failed, worked, {"type": "text", "text": said}]},
    ]
    path.write_text(json.dumps({"info": {**INFO, "directory": str(folder)}, "messages": messages}))
    return str(path)
