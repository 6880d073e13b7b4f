"""Events as clients send them, the real hook process that receives them, and checks of its answers."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from learnt.brief.render import ASKS
from learnt.text.fence import notice
from tests.support.doors import Learnt

HOW_TO_KEEP = notice(ASKS["start"])
"""What a conversation is told at its start, if there is nothing else to tell."""
CLIENTS = ("claude", "codex", "gemini", "opencode")
LONGEST_ANSWER = 9_500
_GEMINI = {
    "UserPromptSubmit": "BeforeAgent",
    "PreToolUse": "BeforeTool",
    "PostToolUse": "AfterTool",
    "Stop": "AfterAgent",
}
NAMES = (
    "SessionStart",
    "UserPromptSubmit",
    "SubagentStart",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "Stop",
    "StopFailure",
    "SubagentStop",
    "SessionEnd",
)
WRONG = "./ship --fast"
RIGHT = "./ship --safe"
COMPLAINT = "ship: unknown option --fast"


class Sent:
    """An event that is sent to a hook."""

    def __init__(self, client: str, fields: Mapping[str, Any]) -> None:
        self.client = client
        self.fields = dict(fields)

    @property
    def name(self) -> str:
        return str(self.fields["hook_event_name"])

    @property
    def content(self) -> bytes:
        return json.dumps(self.fields).encode()


def event(client: str, name: str, session: str, **fields: Any) -> Sent:
    """Return an event with the client's own name for it."""
    name = _GEMINI.get(name, name) if client == "gemini" else name
    return Sent(client, {"hook_event_name": name, "session_id": session, "cwd": "/x", **fields})


def event_text(name: str, **fields: Any) -> str:
    """Return an event, with exactly this name, as a client writes it to a hook."""
    return json.dumps({"hook_event_name": name, "session_id": "s1", "cwd": "/x", **fields})


class Client:
    """A conversation in a client, which sends events to a hook in the client's own format."""

    def __init__(self, learnt: Learnt, name: str, session: str = "s1", **always: Any) -> None:
        self._learnt = learnt
        self._always = {"session_id": session, **always}
        self.name = name

    def tell(self, event: str, **fields: Any) -> Any:
        """Return the hook's answer, as the client parses it."""
        told = event_text(event, **{**self._always, **fields})
        done = self._learnt("hook", "--client", self.name, stdin=told)
        assert (done.code, done.err) == (0, "")
        if not done.out:
            return {}
        return json.loads(done.out) if done.out.startswith("{") else done.out

    def hear(self, event: str, **fields: Any) -> str:
        """Return the text that is passed to the model, with a call or instead of it."""
        answer = self.tell(event, **fields)
        output = answer.get("hookSpecificOutput", answer) if answer else {}
        texts = (output.get(key) for key in ("additionalContext", "permissionDecisionReason", "reason"))
        return str(next(filter(None, texts))) if output else ""

    def call(self, command: str) -> str:
        event = "BeforeTool" if self.name == "gemini" else "PreToolUse"
        return self.hear(event, **self._tool(command))

    def fail(self, command: str, error: str) -> str:
        if self.name == "gemini":
            told = {"llmContent": f"Output: {error}\nExit Code: 2", "returnDisplay": error}
            return self.hear("AfterTool", **self._tool(command), tool_response=told)
        return self.hear("PostToolUseFailure", **self._tool(command), error=f"Exit code 2\n{error}")

    def work(self, command: str, output: str = "shipped") -> str:
        event = "AfterTool" if self.name == "gemini" else "PostToolUse"
        told = {"llmContent": output} if self.name == "gemini" else {"stdout": output, "stderr": ""}
        return self.hear(event, **self._tool(command), tool_response=told)

    def _tool(self, command: str) -> dict[str, Any]:
        name = "run_shell_command" if self.name == "gemini" else "Bash"
        return {"tool_name": name, "tool_input": {"command": command}, "tool_use_id": "call_1"}


def stop(client: str, session: str, said: str, *, name: str = "Stop") -> Sent:
    """Return the event at the end of an agent's or a sub-agent's turn."""
    fields = {"agent_id": "a48b", "agent_type": "general-purpose"} if name == "SubagentStop" else {}
    words = "prompt_response" if client == "gemini" and name == "Stop" else "last_assistant_message"
    return event(client, name, session, stop_hook_active=False, **fields, **{words: said})


def failed_call(client: str, session: str, folder: Path, command: str = WRONG) -> Sent:
    """Return the result event of a command that failed, with the details that the client sends."""
    call = {"tool_input": {"command": command}, "tool_use_id": "call_1"}
    if client == "gemini":
        told = {"llmContent": f"Output: {COMPLAINT}\nExit Code: 2\n"}
        return event(client, "PostToolUse", session, tool_name="run_shell_command", tool_response=told, **call)
    if client == "codex":
        rollout = folder / f"rollout-{session}.jsonl"
        item = {"id": "call_1", "exit_code": 2, "status": "failed"}
        rollout.write_text(json.dumps({"type": "item_completed", "payload": {"item": item}}) + "\n")
        path = str(rollout)
        return event(
            client, "PostToolUse", session, tool_name="Bash", tool_response=COMPLAINT, transcript_path=path, **call
        )
    return event(client, "PostToolUseFailure", session, tool_name="Bash", error=f"Exit code 2\n{COMPLAINT}", **call)


def any_event(chance: random.Random, session: str, said: str, prompt: str) -> Sent:
    """Return a random event from a random client; the end of a turn contains `said`, and a prompt `prompt`."""
    client, name = chance.choice(CLIENTS), chance.choice(NAMES)
    if name in ("Stop", "SubagentStop"):
        return stop(client, session, said, name=name)
    fields: dict[str, Any] = {}
    if name == "SessionStart":
        fields = {"source": chance.choice(("startup", "resume", "compact", "clear"))}
    elif name == "UserPromptSubmit":
        fields = {"prompt": prompt}
    elif name == "SubagentStart":
        fields = {"agent_id": "a48b", "agent_type": chance.choice(("general-purpose", "engineer", "tester"))}
    elif name == "StopFailure":
        fields = {"error": "unknown", "last_assistant_message": "API Error: 400 no such model"}
    elif "Tool" in name:
        fields = _call(chance, name)
    return event(client, name, session, **fields)


def _call(chance: random.Random, name: str) -> dict[str, Any]:
    runs = chance.random() < 0.7
    given = {"command": chance.choice((WRONG, RIGHT, "make build"))} if runs else {"file_path": "src/cart.py"}
    fields: dict[str, Any] = {"tool_name": "Bash" if runs else "Edit", "tool_input": given, "tool_use_id": "call_1"}
    if name == "PostToolUse":
        fields["tool_response"] = {"stdout": "built", "stderr": ""}
    elif name == "PostToolUseFailure":
        fields["error"] = f"Exit code 2\n{COMPLAINT}"
    return fields


class Told:
    """A hook process's exit code, output and duration."""

    def __init__(self, code: int, out: bytes, err: bytes, seconds: float) -> None:
        self.code = code
        self.out = out
        self.err = err
        self.seconds = seconds

    @property
    def text(self) -> str:
        """The text that is passed to the model."""
        return said_in(self.out.decode())


def words_of(client: str) -> list[str]:
    """Return the command line of a client's hook."""
    return [sys.executable, "-m", "learnt", "hook", "--client", client]


def run(folder: Path, client: str, content: bytes, environ: Mapping[str, str] | None = None) -> Told:
    """Run the real hook to its end."""
    began = time.perf_counter()
    done = subprocess.run(
        words_of(client),
        cwd=folder,
        input=content,
        capture_output=True,
        env=dict(os.environ if environ is None else environ),
        check=False,
    )
    return Told(done.returncode, done.stdout, done.stderr, time.perf_counter() - began)


def send(folder: Path, sent: Sent) -> Told:
    """Run the real hook for an event."""
    return run(folder, sent.client, sent.content)


def faults_in(told: Told) -> Iterator[str]:
    """Yield problems in an answer that could disturb a client."""
    if told.code:
        yield f"exit code {told.code}"
    if told.err:
        yield f"on stderr: {told.err.decode(errors='replace')[:500]}"
    try:
        out = told.out.decode()
    except UnicodeDecodeError:
        yield "an answer that is no text"
        return
    if len(out) > LONGEST_ANSWER:
        yield f"an answer of {len(out):,} characters"
    if out and not is_answer(out):
        yield f"no answer that a client knows: {out[:500]}"


def is_answer(out: str) -> bool:
    """Return whether a client accepts this as an answer."""
    try:
        answer = json.loads(out)
    except ValueError:
        return False
    if not isinstance(answer, dict):
        return False
    if answer.keys() == {"decision", "reason"}:
        return answer["decision"] in ("deny", "block") and bool(answer["reason"])
    said = answer.get("hookSpecificOutput")
    if answer.keys() != {"hookSpecificOutput"} or not isinstance(said, dict):
        return False
    denies = said.get("permissionDecision") == "deny" and bool(said.get("permissionDecisionReason"))
    return isinstance(said.get("hookEventName"), str) and (bool(said.get("additionalContext")) or denies)


def said_in(out: str) -> str:
    """Return an answer's text."""
    if not out.startswith("{"):
        return out
    answer = json.loads(out)
    said = answer.get("hookSpecificOutput", answer)
    return str(said.get("additionalContext") or said.get("permissionDecisionReason") or said.get("reason"))


def processes_in(folder: Path) -> list[int]:
    """Return the other processes whose current folder is this one."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                if os.readlink(f"/proc/{name}/cwd") == str(folder):
                    found.append(int(name))
            except OSError:
                continue
    return found


def work(folder: Path) -> None:
    """Let the worker do all pending work."""
    for _ in range(20):
        subprocess.run(
            [sys.executable, "-P", "-m", "learnt.doors.worker", str(folder)], check=False, capture_output=True
        )
        if not any(
            path.stat().st_size for path in (folder / ".learnt").glob("spool*.jsonl") if "refused" not in path.name
        ):
            return


_LETTERS = (
    "\ud800",
    "\x00",
    "\u202e",
    "\ufeff",
    "é",
    "日本",
    "\U0001f600",
    '"',
    "\\",
    "\n",
    "<learning>",
    "{",
    "a" * 300,
)
_NUMBERS = (0, -1, 10**400, 1e308, float("nan"), float("inf"))


def any_value(chance: random.Random, depth: int = 0) -> Any:
    """Return a random value that JSON, or almost valid JSON, can contain."""
    kind = chance.randrange(8 if depth < 4 else 5)
    if kind == 0:
        return None
    if kind == 1:
        return chance.random() < 0.5
    if kind == 2:
        return chance.choice(_NUMBERS)
    if kind in (3, 4):
        return "".join(chance.choice((*_LETTERS, "cache the schema ")) for _ in range(chance.randrange(6)))
    if kind == 5:
        return [any_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    keys = ("command", "file_path", "text", "stdout", "content", "llmContent", "id", "\ud800")
    return {chance.choice(keys): any_value(chance, depth + 1) for _ in range(chance.randrange(4))}


def distorted(chance: random.Random, sent: Sent) -> dict[str, Any]:
    """Return an event with random values in some of its fields."""
    more = ("agent_id", "agent_type", "transcript_path", "agent_transcript_path", "client", "tool_response", "error")
    fields = dict(sent.fields)
    for name in chance.sample((*fields, *more), chance.randint(1, 4)):
        fields[name] = any_value(chance)
    return fields
