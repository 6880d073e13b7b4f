"""Thousands of secrets through every door: what the redactor finds is in no file of the store."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.soak import seed_of
from tests.support import leaks
from tests.support.secrets import CARRIERS, LEAST_FOUND, SECRETS, is_missed, secrets

pytestmark = pytest.mark.soak

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
