"""Thousands of secrets through every door: what the redactor finds is in no file of the store."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest

from learnt.text.redact import redact
from tests.soak import seed_of
from tests.support import leaks, secret_cases
from tests.support.ordinary import MOST_FALSE_ALARMS, code_files, code_lines, log_line
from tests.support.secrets import CARRIERS, LEAST_FOUND, SECRETS, is_missed, secrets

pytestmark = pytest.mark.soak

CASE_SEEDS = 20
LINES = 1_500_000
SLOW = (
    *(
        "password=",
        "password: ",
        "token ",
        "password for ",
        "mysql -p",
        "sshpass -p ",
        "docker -p ",
        "ghp_a\n",
        "user,password\n",
    ),
    *(
        "kind: Secret\ndata:\n",
        "| password |\n",
        "\\u002d",
        "%2D",
        "'a1b2c3' + ",
        "a1\\\n",
        "psk=",
        "echo a1 | sudo -S ",
        "pw ",
    ),
    *(
        "htpasswd -b a ",
        "aGVsbG8gd29ybGQgaGVsbG8g",
        "eyJa\n",
        "Private-Lines: 3\n",
        "-----BEGIN PRIVATE KEY-----\n",
        "Aa1_",
    ),
)
BATCH = 100  # secrets for one project: recall and the spool take longer the more there is


def test_no_secret_that_the_redactor_finds_reaches_a_file(
    share: Callable[[int], int],
    chance: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    drawn = chance.sample(list(secrets()), share(SECRETS))
    missed = [secret for secret in drawn if is_missed(secret)]
    leaked: dict[str, list[str]] = {}
    for start in range(0, len(drawn), BATCH):
        batch = drawn[start : start + BATCH]
        for name, numbers in leaks.walk(batch, monkeypatch).items():
            texts = [batch[number].text for number in numbers if batch[number] not in missed]
            leaked.setdefault(name, []).extend(texts)
    raw = {text for texts in leaked.values() for text in texts}
    print(
        f"\n{len(drawn):,} secrets in {CARRIERS} carriers (seed {seed_of(pytestconfig)}): "
        f"{100 - 100 * len(missed) / len(drawn):.2f} % redacted, {len(missed)} missed; "
        f"of the redacted {len(raw)} raw in database, WAL, spool, backup and log"
    )
    assert not raw, leaked
    assert len(missed) <= max(1, len(drawn) * (1 - LEAST_FOUND)), missed


def test_secrets_of_every_family_are_redacted(
    share: Callable[[int], int], chance: random.Random, pytestconfig: pytest.Config
) -> None:
    drawn = [case for _ in range(share(CASE_SEEDS)) for case in secret_cases.cases(chance.randrange(10**9))]
    missed = [case for case in drawn if secret_cases.is_missed(case)]
    print(
        f"\n{len(drawn):,} cases (seed {seed_of(pytestconfig)}): {100 - 100 * len(missed) / len(drawn):.2f} % redacted"
    )
    assert len(missed) <= len(drawn) * (1 - secret_cases.LEAST_FOUND), missed


def test_code_and_logs_raise_at_most_one_false_alarm_in_100_000_lines(
    share: Callable[[int], int], chance: random.Random, pytestconfig: pytest.Config
) -> None:
    code = list(code_lines(code_files()))
    # All of them whatever the share: a tenth of so few alarms would be a matter of chance. It takes half a minute.
    lines = chance.sample(code, min(len(code), LINES)) + [log_line(chance) for _ in range(share(100_000))]
    alarms = [line for line in lines if redact(line)[1]]
    print(f"\n{len(lines):,} lines (seed {seed_of(pytestconfig)}): {len(alarms)} false alarms", *alarms, sep="\n")
    assert len(alarms) <= max(1, len(lines) * MOST_FALSE_ALARMS), alarms


@pytest.mark.parametrize("piece", SLOW)
def test_the_time_for_a_text_made_to_be_slow_grows_with_its_length(piece: str) -> None:
    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        start = time.process_time()
        redact(text)
        return time.process_time() - start

    assert seconds(1_000_000) <= max(1.0, 10 * seconds(250_000))
