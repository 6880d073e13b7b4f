"""A stand-in for Claude Code's hooks: it sends events in their documented shapes and writes a transcript.

The hooks to run are read from the settings that `learnt install` wrote. The model is scripted. For each request, the
texts that the model would be sent are recorded, as with the real program.
"""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.support.model_stub import Reply
from tests.support.stories import Story, texts


class ClaudeAsDocumented(Story):
    """A project in which the stand-in for Claude Code works."""

    _last: _Conversation

    def program(self, client: str) -> Path:
        """Return the folder of the client's program, which does not exist here."""
        return Path("/nowhere")

    def converse(
        self,
        prompt: str,
        *replies: Reply,
        choose: Callable[[str], Reply | None] = lambda body: None,
        words: tuple[str, ...] = (),
        environ: Mapping[str, str] = MappingProxyType({}),
        folder: str = "",
    ) -> list[str]:
        """Have a conversation, or with `--continue` the last one again.

        Return all texts in each request that the model would be sent.
        """
        if "--continue" in words:
            self._last.source = "resume"
        else:
            self._last = _Conversation(self, environ)
        self._last.run(prompt, replies)
        self.settle()
        return self._last.requests


class _Conversation:
    """One conversation: its messages so far, and its transcript."""

    source = "startup"

    def __init__(self, story: Story, environ: Mapping[str, str]) -> None:
        self._story = story
        self._environ = {**story.environ, **environ, "CLAUDECODE": "1"}
        self._session = str(uuid.uuid4())
        folder = story.home / ".claude" / "projects" / str(story.project).replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        self._transcript = folder / f"{self._session}.jsonl"
        self._hooks = self._settings(".claude/settings.json").get("hooks", {})
        self._servers = self._settings(".mcp.json").get("mcpServers", {})
        self._messages: list[object] = ["it finds what was learnt about it"] if "learnt" in self._servers else []
        self.requests: list[str] = []
        """Those of the last run."""

    def _settings(self, name: str) -> dict[str, Any]:
        path = self._story.project / name
        found: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
        return found

    def run(self, prompt: str, replies: tuple[Reply, ...]) -> None:
        """Start the conversation, let the model answer until it makes no more calls, and end."""
        self.requests = []
        self._hear("SessionStart", source=self.source)
        self._hear("UserPromptSubmit", prompt=prompt, prompt_id="1369", permission_mode="default")
        self._write("user", prompt)
        for reply in replies:
            self.requests.append("\n".join(texts(self._messages)))
            self._answer(reply)
        turn = {"permission_mode": "default", "background_tasks": [], "session_crons": []}
        self._hear("Stop", stop_hook_active=False, last_assistant_message=replies[-1].text, **turn)
        self._hear("SessionEnd", reason="other")

    def _answer(self, reply: Reply) -> None:
        id = f"toolu_{uuid.uuid4().hex}"
        said = [{"type": "text", "text": reply.text}] if reply.text else []
        call = {"type": "tool_use", "id": id, "name": reply.tool, "input": dict(reply.arguments)}
        self._write("assistant", [*said, *([call] if reply.tool else [])])
        if not reply.tool:
            return
        tool = {"tool_name": reply.tool, "tool_input": dict(reply.arguments), "tool_use_id": id}
        answer = self._hear("PreToolUse", **tool)
        if answer.get("permissionDecision") == "deny":
            text, failed = str(answer["permissionDecisionReason"]), True
        elif reply.tool == "Bash":
            text, failed = self._execute(reply, tool)
        else:
            text, failed = self._recalled(dict(reply.arguments)), False
        result = {"tool_use_id": id, "type": "tool_result", "content": text, "is_error": failed}
        self._write("user", [result])

    def _execute(self, reply: Reply, tool: dict[str, Any]) -> tuple[str, bool]:
        line = str(reply.arguments["command"])
        done = subprocess.run(["sh", "-c", line], cwd=self._story.project, capture_output=True, text=True, check=False)
        if done.returncode:
            error = f"Exit code {done.returncode}\n{done.stdout}{done.stderr}".strip()
            self._hear("PostToolUseFailure", **tool, error=error, is_interrupt=False, duration_ms=41)
            return error, True
        response = {"stdout": done.stdout.strip(), "stderr": done.stderr, "interrupted": False, "isImage": False}
        self._hear("PostToolUse", **tool, tool_response=response, duration_ms=41)
        return done.stdout, False

    def _recalled(self, arguments: dict[str, Any]) -> str:
        """Return our server's answer; the server is started as the settings say."""
        server = self._servers["learnt"]
        about = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "claude-code", "version": "2"},
        }
        asked = (
            {"id": 1, "method": "initialize", "params": about},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": "recall", "arguments": arguments}},
        )
        words = [server["command"], *server["args"]]
        with subprocess.Popen(
            words, cwd=self._story.project, env=self._environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **question}) + "\n" for question in asked))
            process.stdin.flush()
            answer = next(told for line in process.stdout if (told := json.loads(line)).get("id") == 2)
            process.stdin.close()
        return str(answer["result"]["content"][0]["text"])

    def _hear(self, event: str, **told: Any) -> dict[str, Any]:
        """Run an event's hooks, pass their text to the model, and return their decision."""
        stdin = {
            "session_id": self._session,
            "transcript_path": str(self._transcript),
            "cwd": str(self._story.project),
            "hook_event_name": event,
            **told,
        }
        decided: dict[str, Any] = {}
        for handler in (one for group in self._hooks.get(event, ()) for one in group["hooks"]):
            done = subprocess.run(
                ["sh", "-c", handler["command"]],
                cwd=self._story.project,
                env=self._environ,
                input=json.dumps(stdin),
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, "")
            answer = json.loads(done.stdout).get("hookSpecificOutput", {}) if done.stdout.strip() else {}
            assert answer.get("hookEventName", event) == event
            self._attach("hook_success", event, stdout=done.stdout)
            if "additionalContext" in answer:
                self._messages.append(f"{event} hook additional context: {answer['additionalContext']}")
                self._attach("hook_additional_context", event, content=[answer["additionalContext"]])
            decided |= answer
        return decided

    def _write(self, role: str, content: object) -> None:
        """Add a message to the conversation and to the transcript."""
        self._messages.append(content)
        self._append({"type": role, "message": {"role": role, "content": content}})

    def _attach(self, kind: str, event: str, **more: Any) -> None:
        """Add to the transcript what came of a hook."""
        self._append({"type": "attachment", "attachment": {"type": kind, "hookEvent": event, **more}})

    def _append(self, content: dict[str, Any]) -> None:
        record = {
            **content,
            "uuid": str(uuid.uuid4()),
            "parentUuid": None,
            "isSidechain": False,
            "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "cwd": str(self._story.project),
            "sessionId": self._session,
            "version": "2.1.325",
            "gitBranch": "main",
        }
        with self._transcript.open("a") as file:
            file.write(json.dumps(record) + "\n")
