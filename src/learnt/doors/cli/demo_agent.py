"""The demo's agent: a small program that reads its prompt from stdin, works, and reports how it went.

It knows only what the prompt says. If the task is to build, it builds; if a learning in its brief mentions a script to
run first, it runs that script. For any other task it writes a note. The build really fails, and really succeeds.
"""

from __future__ import annotations

import re
import subprocess
import sys


def work(prompt: str) -> str:
    """Do the prompt's task in the current folder and return what the agent says."""
    title = next(iter(re.findall(r"(?:# Task|Your task): (.*)", prompt)), "")
    if "build" not in title.lower():
        return _write_note(title, re.findall(r"_ID: (learn_[a-z0-9]+)", prompt))
    advice = re.search(r"[Rr]un (\w+\.py) before the build", prompt)
    if advice:
        _run(advice[1])
    code, output = _run("build.py")
    lines = [f"I ran build.py; it ended with {code}."]
    if code == 0:
        useful = re.findall(r"before the build.*?_ID: (learn_[a-z0-9]+)", prompt, re.DOTALL)[:1]
        lines += [f"LEARNING_HELPFUL: {id}" for id in useful]
        return "\n".join([*lines, "<task-done>built the shop</task-done>"])
    missing = re.search(r"(\w+\.py) writes it", output)
    lines += [
        "<failure-report>",
        "what_tried: running build.py straight away",
        f"why_failed: {output.strip().splitlines()[-1]}",
        "error_category: missing_file",
        "relevant_files: build.py, settings.ini",
        "</failure-report>",
    ]
    if missing:
        lesson = f"Run {missing[1]} before the build. It writes settings.ini, which build.py needs."
        lines.append(f'<learning category="pitfall" tags="build">{lesson}</learning>')
    return "\n".join([*lines, "<task-failed/>"])


def _write_note(title: str, ids: list[str]) -> str:
    with open("notes.txt", "a", encoding="utf-8") as file:
        file.write(f"{title}\n")
    lines = [f"LEARNING_NOT_HELPFUL: {id}" for id in ids]
    return "\n".join(["I wrote it into notes.txt.", *lines, "<task-done>wrote notes.txt</task-done>"])


def _run(script: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    print(work(sys.stdin.read()))
