"""Golden files: learnt's visible output, stored as text and compared byte by byte.

Requests to the real command line and its answers are recorded in a transcript, masked, and compared with a file in
`tests/golden`. `pytest --update-golden` writes the files instead, so that a change is seen in review. JSON keys are
sorted, because their order is not promised; floats are rounded, because some of them depend on a learning's age.
"""

from __future__ import annotations

import difflib
import io
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from learnt.__main__ import main
from tests.support.doors import Done, start_doors

FOLDER = Path(__file__).parent.parent / "golden"
# These commands end their process, or start and end others.
_IN_PROCESSES_OF_THEIR_OWN = ("brief", "hook", "work", "demo")
_KINDS = "attempt|brief|call|cons|disc|esc|event|import|learn|op|opinion|r|run|task|worker"
_PATIENCE_S = 60


def masked(text: str, places: Mapping[str, str]) -> str:
    """Return a text without parts that differ between runs: ids are numbered in order, other parts are replaced."""
    for place in sorted(places, key=len, reverse=True):
        text = text.replace(place, places[place])
    text = with_numbered_ids(text)
    text = re.sub(r"\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b", "HASH", text)
    text = re.sub(r"\b1[6-9]\d{11}\b", "MILLISECONDS", text)
    text = re.sub(r"\b20\d\d-\d\d(?:-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?)?\b", "TIME", text)
    text = re.sub(r"\b20\d{6}T\d{6}Z-[0-9a-z]{6}\b|\b\d\d:\d\d:\d\d\b", "TIME", text)
    # The number of tokens is estimated from the characters, including those in ids, so it varies.
    text = re.sub(r'"(\w+_ms|\w+_s|pid|tokens)": \d[\d.e-]*', r'"\1": NUMBER', text)
    return re.sub(r"\b\d+\.\d+\.\d+(?:\.\d+)?\b", "VERSION", text)


def with_numbered_ids(text: str) -> str:
    """Return a text whose ids are numbered in order, separately for each kind."""
    numbers: dict[str, dict[str, int]] = {}

    def numbered(match: re.Match[str]) -> str:
        known = numbers.setdefault(match[1], {})
        return f"{match[1]}_{known.setdefault(match[0], len(known) + 1)}"

    return re.sub(rf"\b({_KINDS})_[0-9a-z]{{14}}(?![0-9a-z])", numbered, text)


class Golden:
    """Compares texts with the golden files, or writes the files."""

    def __init__(self, config: pytest.Config) -> None:
        self._writes = bool(config.getoption("update_golden"))

    def check(self, name: str, text: str) -> None:
        """Compare a text with its golden file, or write the file."""
        path = FOLDER / name
        if self._writes:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        expected = path.read_text() if path.exists() else ""
        lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), name, "now", lineterm="", n=8)
        assert text == expected, "\n".join(lines)


class Outside:
    """A project as other programs see it: the real command line, its answers, and a transcript of both."""

    def __init__(self, project: Path, home: Path, patch: pytest.MonkeyPatch) -> None:
        self.project = project
        self.home = home
        self._patch = patch
        self._process = start_doors(project)
        self._lines: list[str] = []
        # Only git is on PATH, because a golden file must not depend on the clients that are installed.
        programs = project.parent / "bin"
        if not programs.exists():
            programs.mkdir()
            for program in ("git", "sh"):
                (programs / program).symlink_to(shutil.which(program) or program)
        patch.setenv("PATH", str(programs))
        patch.setenv("TZ", "UTC")

    @property
    def places(self) -> dict[str, str]:
        """Return names for the folders whose paths differ between machines."""
        return {
            str(self.project): "PROJECT",
            str(self.home): "HOME",
            str(self.project.parent): "TMP",
            sys.executable: "PYTHON",
            str(Path(sys.executable).parent): "BIN",
        }

    def transcript(self, *, unmasked: bool = False) -> str:
        """Return the transcript so far, masked; with `unmasked`, only folders are masked."""
        text = "\n".join([*self._lines, ""])
        return text.replace(str(self.project), "PROJECT") if unmasked else masked(text, self.places)

    def has_heard(self, text: str) -> bool:
        """Return whether an answer contained exactly this text."""
        heard = "\n".join(self._lines)
        return text in heard or json.dumps(text, ensure_ascii=False)[1:-1] in heard

    def write(self, text: str) -> None:
        """Add a text to the transcript."""
        self._lines.append(text)

    def json(self, *words: str, stdin: str = "", code: int = 0, varying: tuple[str, ...] = ()) -> Any:
        """Run a command with --json, record its answer, and return it.

        `varying`: the keys whose values differ from run to run, or are prose that may be worded anew.
        """
        done = self.quietly(*words, "--json", stdin=stdin, code=code)
        answer = json.loads(done.out)
        self.write(f"$ learnt {_shown(words)} --json" + (f"  # exit code {code}" if code else ""))
        self.write(_plain(_without(answer, varying)))
        self.write("")
        return answer

    def text(self, *words: str, stdin: str = "") -> str:
        """Run a command, record its output, and return it."""
        done = self.quietly(*words, stdin=stdin)
        self.write(f"$ learnt {_shown(words)}")
        self.write(done.out)
        return done.out

    def quietly(self, *words: str, stdin: str = "", code: int = 0) -> Done:
        """Run a command, check its exit code, and do not record anything."""
        own_process = words[0] in _IN_PROCESSES_OF_THEIR_OWN
        done = (self._process if own_process else self._run_here)(*words, stdin=stdin)
        assert done.code == code, f"learnt {' '.join(words)}: {done.code}\n{done.out}\n{done.err}"
        return done

    def hook(self, name: str, *, client: str = "claude", session: str = "s1", **fields: Any) -> str:
        """Send an event as a client does, record the answer, and return it."""
        event = {"hook_event_name": name, "session_id": session, "cwd": str(self.project), **fields}
        done = self.quietly("hook", "--client", client, stdin=json.dumps(event))
        assert done.err == ""
        shown = {key: value for key, value in event.items() if key not in ("hook_event_name", "cwd", "transcript_path")}
        self.write(f"> {client}: {name} {json.dumps(shown, ensure_ascii=False)}")
        self.write(done.out)
        return done.out

    def _run_here(self, *words: str, stdin: str) -> Done:
        """Run a command in this process, which is faster."""
        out, err = io.StringIO(), io.StringIO()
        with self._patch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "argv", ["learnt", *words])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
            patch.chdir(self.project)
            code = main()
        return Done(code, out.getvalue(), err.getvalue())

    def wait_for_workers(self) -> None:
        """Wait until all processes that hooks started have ended, because they would affect the next command."""
        deadline = time.monotonic() + _PATIENCE_S
        while any(self._is_ours(name) for name in os.listdir("/proc") if name.isdecimal()):
            assert time.monotonic() < deadline, "a worker does not end"
            time.sleep(0.01)

    def _is_ours(self, process: str) -> bool:
        if int(process) == os.getpid():
            return False
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            return os.fsencode(self.project) in words or os.readlink(f"/proc/{process}/cwd") == str(self.project)
        except OSError:
            return False


def files_in(*folders: Path) -> str:
    """Return all files in some folders with their content, except for stores' files and git's."""
    parts = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not {".learnt", ".git", "learnt"} & set(path.relative_to(folder).parts[:-1]):
                parts.append(f"=== {path}\n{path.read_text()}")
    return "\n".join(parts)


def _shown(words: tuple[str, ...]) -> str:
    return " ".join(json.dumps(word, ensure_ascii=False) if " " in word or not word else word for word in words)


def _plain(answer: Any) -> str:
    rounded = json.loads(json.dumps(answer), parse_float=lambda digits: round(float(digits), 4))
    return json.dumps(rounded, ensure_ascii=False, indent=2, sort_keys=True)


def _without(answer: Any, keys: tuple[str, ...]) -> Any:
    if isinstance(answer, list):
        return [_without(one, keys) for one in answer]
    if isinstance(answer, dict):
        return {key: "VARIES" if key in keys and value else _without(value, keys) for key, value in answer.items()}
    return answer
