"""Find out whether a tool call failed in Codex, from the end of the transcript: the events do not contain the result.

The result is in a separate record, or in lines before the output. The transcript reader uses the same functions. None
means neither success nor failure, for example because the command is still running or was denied.
"""

from __future__ import annotations

import os
import re

from learnt.clients.kit.events import whole_output
from learnt.system.files import open_to_read
from learnt.text.json_values import dig, parsed, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

OUTPUTS = ("function_call_output", "custom_tool_call_output")
# Codex prints these lines before the output.
_HEADER = re.compile(
    r"(?:(?:Chunk ID|Wall time|Original token count|Total output lines|Exit code|Process \w+).*\n)+Output:\n"
)
# A hook has little time, so it reads only the end of a longer transcript.
_TRANSCRIPT_END = 1_000_000
_EXIT_CODE = re.compile(r"(?:^|\n)(?:Exit code:|Process exited with code) (-?\d+)")


def read_result(payload: Mapping[str, Any], output: str, *, runs: bool, transcript: str) -> tuple[bool | None, str]:
    """Return whether a call failed (None if it neither failed nor succeeded), and its output."""
    return _find_ending(transcript, text_of(payload.get("tool_use_id"))), output


def _find_ending(path: str, call: str) -> bool | None:
    """Return whether a call failed, according to the end of a transcript."""
    if not path or not call:
        return None
    try:
        with open(path, "rb", opener=open_to_read) as file:
            file.seek(max(0, os.path.getsize(path) - _TRANSCRIPT_END))
            lines = file.read(_TRANSCRIPT_END).split(b"\n")
    except (OSError, ValueError):
        return None
    for line in reversed(lines):
        if call.encode("utf-8", "replace") in line and (b"item_completed" in line or b"_call_output" in line):
            failed = _read_ending(line, call)
            if failed is not None:
                return failed
    return None


def _read_ending(line: bytes, call: str) -> bool | None:
    """Return whether a call failed, according to one line of the transcript."""
    payload = parsed(line.decode("utf-8", "replace")).get("payload")
    item = dig(payload, "item")
    if dig(item, "id") == call:
        return item_failed(item)
    if dig(payload, "type") in OUTPUTS and dig(payload, "call_id") == call:
        return read_output(whole_output(dig(payload, "output")))[1]
    return None


def item_failed(item: Mapping[str, Any]) -> bool | None:
    """Return whether a call failed, according to its record."""
    status, code = item.get("status"), item.get("exit_code")
    if status not in (None, "completed", "failed") or (status is None and code is None):
        return None
    return status == "failed" or code not in (None, 0)


def read_output(text: str) -> tuple[str, bool | None]:
    """Return a tool's output without the lines before it, and whether those lines report a failure."""
    record = parsed(text)  # the format of older versions
    if isinstance(record.get("output"), str):
        code = dig(record, "metadata", "exit_code")
        return record["output"], None if code is None else code != 0
    headers = ""
    while header := _HEADER.match(text):
        headers, text = headers + header[0], text[header.end() :]
    exit_code = _EXIT_CODE.search(headers)
    return text, bool(exit_code[1].strip("-0")) if exit_code else None
