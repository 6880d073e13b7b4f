"""Call a model through any program that answers on stdout and reads the prompt from stdin or from `{prompt_file}`.

`ask` returns in time even if the program hangs, prints endlessly, ignores its input or leaves other processes running.
The program's process group is killed at the end. `LEARNT_INTERNAL=1` prevents a client's hooks from serving the call.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence

from learnt.llm.calls import FAILED, ModelAnswer, ModelRequest, Provider
from learnt.llm.services import make_timeout_answer
from learnt.system.detached import INTERNAL
from learnt.system.run import NOT_STARTED, OUTPUT_LIMIT, TIME_LIMIT, Exit, run
from learnt.text.clean import clean, fold
from learnt.text.templates import fill_in, takes_prompt_file

OUTPUT_LIMIT_BYTES = 5_000_000
_STDERR_LIMIT_BYTES = 4_000
_MAX_COMPLAINT_LENGTH = 300
# How long to wait for a killed process to end, and for a pipe that a process outside the group keeps open.
_PATIENCE_S = 2.0


def ask(words: Sequence[str], request: ModelRequest, provider: Provider) -> ModelAnswer:
    """Return the program's answer to the prompt."""
    with tempfile.TemporaryDirectory(prefix="learnt-", ignore_cleanup_errors=True) as scratch:
        path = os.path.join(scratch, "prompt.md")
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(f"{request.instructions}\n\n{clean(request.prompt)}".strip() + "\n")
        filled_in = fill_in(words, prompt_file=path, model=provider.model)
        printed, errors = bytearray(), bytearray()

        def collect(name: str, chunk: bytes) -> bool:
            (printed if name == "stdout" else errors).extend(chunk)
            del errors[:-_STDERR_LIMIT_BYTES]
            return len(printed) <= OUTPUT_LIMIT_BYTES

        with open(os.devnull if takes_prompt_file(words) else path, "rb") as stdin:
            exit = run(
                filled_in,
                folder=scratch,  # contains nothing that could mislead the model
                environ={**provider.environment, INTERNAL: "1"},
                stdin=stdin,
                keep=collect,
                time_limit_s=provider.time_limit_s,
                patience_s=_PATIENCE_S,
            )
    return _read(filled_in[0], exit, printed.decode("utf-8", "replace"), errors.decode("utf-8", "replace"), provider)


def _read(program: str, exit: Exit, text: str, errors: str, provider: Provider) -> ModelAnswer:
    """Return the answer, or why there is none."""
    if exit.ending == NOT_STARTED:
        hint = "check `command`: `learnt config model.command` shows it and where it is set"
        return ModelAnswer(result=FAILED, reason=exit.error, hint=hint, may_have_cost=False)
    if exit.ending == OUTPUT_LIMIT:
        reason = f"`{program}` printed more than {OUTPUT_LIMIT_BYTES:,} bytes"
        return ModelAnswer(result=FAILED, reason=reason, can_retry=True)
    if exit.ending == TIME_LIMIT:
        return make_timeout_answer(provider.time_limit_s)
    if exit.exit_code:
        complaint = _last_line(errors) or _last_line(text)
        reason = f"`{program}` ended with exit code {exit.exit_code}" + (f": {complaint}" if complaint else "")
        return ModelAnswer(result=FAILED, reason=reason, can_retry=True)
    return ModelAnswer(text=text)


def _last_line(text: str) -> str:
    lines = [line for line in clean(text).splitlines() if line.strip()]
    return fold(lines[-1])[:_MAX_COMPLAINT_LENGTH] if lines else ""
