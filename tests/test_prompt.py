"""A whole prompt, as an agent of the loop gets it: docs/loop.md shows this one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.doors import Learnt
from tests.support.golden import Golden, with_numbered_ids
from tests.support.shop import Shop

PAGE = Path(__file__).parent.parent / "docs" / "loop.md"
AGENT = """
if "Add the outbox table" in prompt.split("\\n")[0]:
    print("<task-done>Added migrations/7_outbox.sql and `outbox.put`.</task-done>")
elif "Attempt 1" not in prompt:
    print("<learning category='pitfall' when='a mail is sent twice'>Call `outbox.put` inside the transaction of the")
    print("order. Outside of it, a mail is sent for what is rolled back.</learning>")
    print("<difficulty-estimate>moderate</difficulty-estimate>")
    print("<task-done>Added /reset, which calls smtplib directly.</task-done>")
else:
    print("<failure-report>")
    print("what_tried: moved the call into a thread, so that the page does not wait")
    print("why_failed: the thread has no connection to the database")
    print("error_category: logic_error")
    print("relevant_files: shop/reset.py, shop/outbox.py")
    print("avoid: threads, and any other way around the outbox")
    print("</failure-report>")
    print("<retry-suggestion>Put the mail into the outbox, in the transaction that makes the token.</retry-suggestion>")
    print("<task-failed>the mail cannot be sent from a thread</task-failed>")
"""
FAILS = "FAILED tests/test_reset.py::test_mail - AssertionError: expected 1 mail in the outbox, found 0"


@pytest.fixture
def shop(project: Path, learnt: Learnt) -> Shop:
    return Shop(project, learnt)


def test_the_prompt_in_the_documentation_is_one_that_an_agent_gets(shop: Shop, golden: Golden) -> None:
    check = f"test -e passes || {{ echo '{FAILS}'; exit 1; }}"
    (shop.folder / "check").write_text(f"#!/bin/sh\n{check}\n")
    (shop.folder / "check").chmod(0o755)
    (shop.folder / "reset.md").write_text("A token is valid for an hour and for one use.\n")
    shop.agent(AGENT)
    shop.model("haiku", price=0.05)
    shop.model("sonnet", price=0.3)
    shop.model("opus", price=1.5)
    shop.learnt("goal", "add", "accounts", "--title", "Customers manage their accounts", "--text", "Without asking us.")
    shop.learnt(
        "add", "Send every mail through the outbox table", "--action", "`outbox.put(mail)`", "--on-file", "shop/*"
    )
    outbox = shop.add("Add the outbox table", "--goal", "accounts")
    judged = ("--verify", "./check", "--acceptance", "A customer gets one mail with a link.", "--spec", "reset.md")
    reset = shop.add("Add password reset by mail", "--goal", "accounts", "--after", outbox, *judged)
    shop.work("--all", "--max-iterations", "3", code=1)

    prompt = with_numbered_ids(shop.learnt("task", "prompt", reset).out)
    prompt = re.sub(r"\b[0-9a-f]{8}\b", "c0ffee00", prompt)

    golden.check("prompt.txt", prompt)
    assert prompt.rstrip("\n") in PAGE.read_text(encoding="utf-8")
