"""The real agent clients, in known versions; npm installs them once into the user's cache.

If a client is unavailable (no npm, no registry, an unsupported platform), a reason is returned instead of a program.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.support.postgres import CACHE

# Tests have their own home folders, but npm's settings are in the real one.
ENVIRONMENT = dict(os.environ)
PATIENCE_S = 600


class Package(NamedTuple):
    """A client's npm package."""

    name: str
    version: str


PACKAGES = {
    "claude": Package("@anthropic-ai/claude-code", "2.1.325"),
    "codex": Package("@openai/codex", "0.166.0"),
    "copilot": Package("@github/copilot", "1.0.102"),
    "gemini": Package("@google/gemini-cli", "0.61.0"),
    "opencode": Package("opencode-ai", "1.18.33"),
}


class Unavailable(Exception):
    """Why a client is not available here."""


@functools.cache
def program(client: str) -> Path | Unavailable:
    """Return the client's program, after installing it if necessary, or why it is unavailable."""
    package = PACKAGES[client]
    folder = CACHE / "clients" / f"{client}-{package.version}"
    found = folder / "node_modules" / ".bin" / client
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{client}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if not found.exists():
                _install(package, client, folder)
        except Unavailable as reason:
            return reason
    return found


def _install(package: Package, client: str, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not installed")
    # Install into another folder and then rename it, because a killed install must not look complete.
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
        new = Path(beside) / "new"
        new.mkdir()
        wanted = f"{package.name}@{package.version}"
        _run(npm, "install", "--prefix", str(new), "--no-audit", "--no-fund", "--fetch-retries=1", wanted)
        _run(str(new / "node_modules" / ".bin" / client), "--version", home=beside)
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)


def _run(*words: str, home: str = "") -> None:
    environment = {**ENVIRONMENT, "HOME": home} if home else ENVIRONMENT
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as mistake:
        raise Unavailable(f"{words[0]} failed: {mistake}") from None
    if done.returncode:
        raise Unavailable(f"{words[0]} {words[1]} failed: {' '.join((done.stderr or done.stdout).split())[-400:]}")


def settle(client: str, home: Path, address: str, trusted: Path) -> dict[str, str]:
    """Write the client's settings so that it uses only our model, and trusts one folder with everything below it.

    Returns the variables that it needs.
    """
    if client == "gemini":
        _write(home / ".gemini" / "trustedFolders.json", json.dumps({str(trusted): "TRUST_FOLDER"}))
    if client == "copilot":
        _write(home / ".copilot" / "config.json", json.dumps({"trustedFolders": [str(trusted)]}))
    if client == "claude":  # it runs a project's hooks without that, but does not allow what the project allows
        projects = {str(trusted): {"hasTrustDialogAccepted": True}}
        _write(home / ".claude.json", json.dumps({"projects": projects}))
    return _SETTLE[client](home, address)


def _codex(home: Path, address: str) -> dict[str, str]:
    _write(
        home / ".codex" / "config.toml",
        f"""
        model = "gpt-5-codex"
        model_provider = "stub"
        [model_providers.stub]
        name = "stub"
        base_url = "{address}/v1"
        env_key = "STUB_API_KEY"
        wire_api = "responses"
        request_max_retries = 0
        stream_max_retries = 0
        [analytics]
        enabled = false
        [features]
        plugins = false
        """,
    )
    return {"STUB_API_KEY": "none"}


def _gemini(home: Path, address: str) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    _write(home / ".gemini" / "settings.json", json.dumps(settings))
    return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": address}


def _copilot(home: Path, address: str) -> dict[str, str]:
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{address}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": "no-key-is-needed",  # wherever it is printed, Copilot hides it
        "COPILOT_MODEL": "claude-sonnet-4.5",
        "COPILOT_OFFLINE": "true",
        # It unpacks 230 MB at its first start.
        "COPILOT_CACHE_HOME": str(CACHE / "clients" / "copilot-cache"),
    }


def _opencode(home: Path, address: str) -> dict[str, str]:
    model = {"name": "Stub", "limit": {"context": 200_000, "output": 8_192}, "cost": {"input": 1, "output": 2}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Stub",
        "options": {"baseURL": f"{address}/v1", "apiKey": "none"},
        "models": {"stub-model": model},
    }
    settings = {"autoupdate": False, "share": "disabled", "provider": {"stub": provider}}
    _write(home / ".config" / "opencode" / "opencode.json", json.dumps(settings))
    without = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")
    # With a plugin, it requests a package that it does not need; here, our server rejects the request immediately.
    npm = {"npm_config_registry": address, "npm_config_fetch_retries": "0"}
    return {**{f"OPENCODE_DISABLE_{name}": "1" for name in without}, **npm}


def _claude(home: Path, address: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "ENABLE_TOOL_SEARCH": "false",
        "MCP_CONNECTION_NONBLOCKING": "false",  # otherwise the first request may come before a server's tools
    }


_SETTLE: dict[str, Callable[[Path, str], dict[str, str]]] = {
    "claude": _claude,
    "codex": _codex,
    "copilot": _copilot,
    "gemini": _gemini,
    "opencode": _opencode,
}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
