"""How a call of Codex's ended, as its transcript tells: in a record of its own, or in lines before what was printed.

The reader of its transcripts and the hook, which is not told, both go by this. None: it tells neither success nor
failure, such as of a command that still runs, or that nobody let run.
"""

from __future__ import annotations

import re

from learnt.text.json_values import dig, parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

OUTPUTS = ("function_call_output", "custom_tool_call_output")
# What stands before the output proper.
_HEADER = re.compile(
    r"(?:(?:Chunk ID|Wall time|Original token count|Total output lines|Exit code|Process \w+).*\n)+Output:\n"
)
_EXIT_CODE = re.compile(r"(?:^|\n)(?:Exit code:|Process exited with code) (-?\d+)")


def item_failed(item: Mapping[str, Any]) -> bool | None:
    """Say whether the call failed that a record of its own tells of."""
    status, code = item.get("status"), item.get("exit_code")
    if status not in (None, "completed", "failed") or (status is None and code is None):
        return None
    return status == "failed" or code not in (None, 0)


def read_output(text: str) -> tuple[str, bool | None]:
    """Return what a tool answered without the lines before it, and whether it failed, as far as those tell."""
    told = parsed(text)  # as older versions wrote it
    if isinstance(told.get("output"), str):
        code = dig(told, "metadata", "exit_code")
        return told["output"], None if code is None else code != 0
    headers = ""
    while header := _HEADER.match(text):
        headers, text = headers + header[0], text[header.end() :]
    ended = _EXIT_CODE.search(headers)
    return text, bool(ended[1].strip("-0")) if ended else None
