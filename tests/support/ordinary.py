"""Ordinary lines that hold no secret: code that is installed here, and logs drawn by chance."""

from __future__ import annotations

import random
import re
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from string import ascii_letters, ascii_lowercase, digits

MOST_FALSE_ALARMS = 1 / 100_000
_SKIPPED = {"test", "tests", "idle_test", "site-packages", "dist-packages"}
# `{h:7}` is hexadecimal, `{a:7}` letters and digits, `{l:7}` the same in lower case, `{n:7}` digits.
_LOGS = (
    '10.0.3.7 - - "GET /items/{n:6}?page=2 HTTP/1.1" 200 {n:4}',
    "2026-01-05T10:11:12.{n:3}Z INFO request_id={h:8}-{h:4}-{h:4}-{h:4}-{h:12} trace={h:32} took {n:3} ms",
    "commit {h:40} (HEAD -> main, tag: v1.{n:2}.0)",
    "{h:7} Rename the token store; password prompts stay {n:2}",
    "index {h:10}..{h:10} 100644",
    '"integrity": "sha512-{a:86}==",',
    "    --hash=sha256:{h:64} \\",
    "digest: sha256:{h:64} size: {n:4}",
    "api-{h:10}-{l:5}   1/1   Running   0   {n:2}d",
    '{"type":"tool_use","id":"toolu_01{a:22}","name":"Bash","input":{"command":"mkdir -p out"}}',
    '{"id":"msg_01{a:22}","model":"claude-3-5-sonnet-20241022","usage":{"input_tokens":{n:4}}}',
    '{"id":"chatcmpl-{a:29}","object":"chat.completion","created":17{n:8}}',
    "call_{a:24} finished, req_011C{a:20} acknowledged",
    "Downloading numpy-2.{n:1}.1-cp311-cp311-manylinux_2_17_x86_64.whl ({n:2} MB)",
    "npm warn deprecated glob@7.{n:1}.3: versions before v9 are no longer supported",
    "dist/assets/index-{a:8}.js   {n:3}.21 kB | gzip: {n:2}.02 kB",
    "sshd[{n:4}]: Failed password for invalid user admin from 10.0.0.{n:2} port 55022 ssh2",
    "sshd[811]: Accepted publickey for anna from 10.0.0.2 port 50122 ssh2: ED25519 SHA256:{a:43}",
    "tests/test_auth.py::test_password_reset[{n:2}-token] PASSED [ {n:2}%]",
    '  File "/srv/app/auth/tokens.py", line {n:3}, in check_password',
    "E   AssertionError: assert 'token' == 'Token{n:1}'",
    "arn:aws:iam::{n:12}:role/deploy-{a:6}",
    "Set-Cookie: theme=dark; Path=/; Max-Age={n:5}",
    "learn_0{l:13} supersedes task_0{l:13}",
    "Step {n:2}/30 : RUN docker run -p 8080:{n:4} -u 1000:1000 app",
    "/nix/store/{l:32}-python3-3.11.{n:1}",
    "src/app.c:{n:4}:{n:2}: warning: unused variable 'key{n:1}'",
    "| db{n:1} | running | {n:3} ms | token_count={n:4} |",
    "GET /static/{h:20}.css?v={h:8} 304",
    "Warning: Using a password on the command line interface can be insecure. ({n:2} ms)",
)
_ALPHABETS = {"h": "0123456789abcdef", "n": digits, "l": ascii_lowercase + digits, "a": ascii_letters + digits}


def code_files() -> list[Path]:
    """Return the files of the standard library and of the installed packages."""
    files = []
    for place, skipped in (("stdlib", _SKIPPED), ("purelib", {"tests"})):
        root = Path(sysconfig.get_paths()[place])
        files += [path for path in root.rglob("*.py") if not skipped & set(path.relative_to(root).parts)]
    return sorted(files)


def code_lines(files: Iterable[Path]) -> Iterator[str]:
    for path in files:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        yield from (line for line in lines if line.strip())


def log_line(chance: random.Random) -> str:
    """Draw a line as servers, builds, package managers, clusters and agents print it."""
    return re.sub(
        r"\{(\w):(\d+)\}",
        lambda match: "".join(chance.choices(_ALPHABETS[match[1]], k=int(match[2]))),
        chance.choice(_LOGS),
    )
