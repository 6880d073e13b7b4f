"""`learnt work` with the real programs: a task fails its verification, and the retry is told so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import command_line
from tests.support import model_stub, real_clients
from tests.support.model_stub import ModelStub, Reply
from tests.support.shop import Shop
from tests.support.stories import MODELS
from tests.test_real_clients import COSTS_USD, INPUT_PRICE, OUTPUT_PRICE, brief_in, environment, writes

pytestmark = pytest.mark.clients

HINT = "Write it with one call of the tool that writes files."
LIE = f"<retry-suggestion>{HINT}</retry-suggestion>\n<task-done>wrote made.txt</task-done>"


@pytest.mark.parametrize("client", real_clients.PACKAGES)
def test_a_real_client_does_a_task_with_the_brief_that_tells_why_it_failed(
    client: str, project: Path, tmp_path: Path
) -> None:
    shop = Shop(project, command_line(project))
    shop.repository()
    shop.settle(agent=client, isolation="worktree")
    shop.model(MODELS[client], input_price=INPUT_PRICE, output_price=OUTPUT_PRICE)
    task = shop.add("Write made.txt", "--verify", "grep made made.txt")
    folder = project / ".learnt" / "worktrees" / task

    with ModelStub(Reply(LIE), writes(client, folder), Reply("<task-done>made it so</task-done>")) as stub:
        shop.learnt = command_line(project, environment(client, tmp_path, stub, trusted=project))
        summary = shop.work()

    shown = shop.show(task)
    assert (summary["done"], shown["status"]) == (1, "done")
    assert shop.git("show", f"{shown['branch']}:made.txt") == "made\n"
    done, failed = shown["attempts"]
    assert (failed["result"], done["result"]) == ("failed", "done")
    assert "made.txt: No such file or directory" in failed["failure"]["reason"]
    asked = [one.body for one in stub.asked if task in one.body]
    assert "Previous Attempts" not in asked[0]
    brief = brief_in(asked[-1], shop)
    for told in ("### Attempt 1: said done, and refuted", "wrote made.txt", "No such file or directory", HINT):
        assert told in brief
    for attempt, turns in ((failed, 1), (done, 2)):
        tokens_in, tokens_out = turns * model_stub.TOKENS_IN, turns * model_stub.TOKENS_OUT
        assert (attempt["tokens_in"], attempt["tokens_out"]) == (tokens_in, tokens_out)
        read = tokens_in - 0.9 * turns * model_stub.TOKENS_CACHED  # what comes from a cache costs a tenth
        by_price = (read * INPUT_PRICE + tokens_out * OUTPUT_PRICE) / 1_000_000
        reported = COSTS_USD[client] * turns / 2 if client in COSTS_USD else by_price
        assert attempt["cost_usd"] == pytest.approx(reported)
    assert summary["cost_usd"] == pytest.approx(failed["cost_usd"] + done["cost_usd"])
