"""Any program that answers on stdout: the prompt comes on stdin, or as a file for `{prompt_file}`.

Whatever the program does, `ask` returns in time: it may hang, print without end, leave its input unread or leave other
processes running. Everything in its process group is killed when it is over. `LEARNT_INTERNAL=1` tells the hooks of a
client that the call is ours.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence

from learnt.llm.service import time_out
from learnt.llm.shapes import FAILED, ModelAnswer, ModelRequest, Provider
from learnt.system.detached import INTERNAL
from learnt.system.run import NOT_STARTED, TIME_LIMIT, Exit, run
from learnt.text.clean import clean, fold
from learnt.text.templates import fill_in, takes_prompt_file

OUTPUT_LIMIT_BYTES = 5_000_000
_ERRORS_KEPT_BYTES = 4_000
_LONGEST_COMPLAINT = 300
# How long a killed process may take to vanish, and a pipe to close that something outside of the group still holds.
_PATIENCE_S = 2.0


def ask(words: Sequence[str], request: ModelRequest, provider: Provider) -> ModelAnswer:
    """Return what the program prints when it is given the prompt."""
    with tempfile.TemporaryDirectory(prefix="learnt-", ignore_cleanup_errors=True) as scratch:
        path = os.path.join(scratch, "prompt.md")
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(f"{request.instructions}\n\n{clean(request.prompt)}".strip() + "\n")
        output, filled_in = _Printout(), fill_in(words, prompt_file=path, model=provider.model)
        with open(os.devnull if takes_prompt_file(words) else path, "rb") as stdin:
            exit = run(
                filled_in,
                folder=provider.folder or scratch,
                environ={**provider.environment, INTERNAL: "1"},
                stdin=stdin,
                keep=output.keep,
                time_limit_s=provider.time_limit_s,
                patience_s=_PATIENCE_S,
            )
    return _read(filled_in[0], exit, output, provider)


class _Printout:
    """What the program printed: all of stdout up to the limit, and the end of stderr."""

    def __init__(self) -> None:
        self.text = bytearray()
        self.errors = b""

    def keep(self, name: str, chunk: bytes) -> bool:
        """Keep a chunk; False when it is too much."""
        if name == "stdout":
            self.text += chunk
        else:
            self.errors = (self.errors + chunk)[-_ERRORS_KEPT_BYTES:]
        return not self.is_too_long()

    def is_too_long(self) -> bool:
        return len(self.text) > OUTPUT_LIMIT_BYTES


def _read(program: str, exit: Exit, output: _Printout, provider: Provider) -> ModelAnswer:
    """Return the answer, or why there is none."""
    if exit.ending == NOT_STARTED:
        hint = "check `command`: `learnt config model.command` shows it and where it is set"
        return ModelAnswer(result=FAILED, reason=exit.error, hint=hint, reached=False)
    if output.is_too_long():
        reason = f"`{program}` printed more than {OUTPUT_LIMIT_BYTES:,} bytes"
        return ModelAnswer(result=FAILED, reason=reason, again=True)
    if exit.ending == TIME_LIMIT:
        return time_out(provider.time_limit_s)
    text = output.text.decode("utf-8", "replace")
    if exit.exit_code:
        complaint = _last_line(output.errors.decode("utf-8", "replace")) or _last_line(text)
        reason = f"`{program}` ended with exit code {exit.exit_code}" + (f": {complaint}" if complaint else "")
        return ModelAnswer(result=FAILED, reason=reason, again=True)
    return ModelAnswer(text=text)


def _last_line(text: str) -> str:
    lines = [line for line in clean(text).splitlines() if line.strip()]
    return fold(lines[-1])[:_LONGEST_COMPLAINT] if lines else ""
