"""What is learnt from checks on unfinished code: what a value must be."""

from __future__ import annotations

import pytest

from learnt.clients.kit.transcript import Step
from tests.test_observe import FOLDER, observed, only, ran, used


def edit(path: str, before: str, after: str) -> list[Step]:
    return used("Edit", f"{FOLDER}/{path}", before=before, text=after)


@pytest.mark.parametrize(
    ("file", "complaint", "line"),
    [
        ("a.go", "a.go:3:2: undefined: cart", '"shop.example/cart"'),
        ("a.ts", "a.ts(3,5): error TS2304: Cannot find name 'Cart'.", 'import { Cart } from "./cart";'),
        ("a.rs", "error[E0433]: use of undeclared type `Cart`\n --> a.rs:3:5", "use crate::cart::Cart;"),
        ("a.py", 'a.py:3: error: Name "Cart" is not defined  [name-defined]', "from cart import Cart"),
    ],
)
def test_an_import_that_was_forgotten_teaches_nothing(file: str, complaint: str, line: str) -> None:
    assert not observed(ran("make check", complaint, failed=True), edit(file, "x", line), ran("make check"))


def test_a_value_that_code_refused_tells_what_it_must_be() -> None:
    output = '--- FAIL: TestId (0.00s)\npanic: invalid id "ada": must be 12 hex characters\nFAIL'
    found = only(
        observed(
            ran("go test ./id", output, failed=True),
            edit("id/id_test.go", 'id.Must("ada")', 'id.Must("aabbccddeeff")'),
            ran("go test ./id", "ok"),
        )
    )

    assert found.text.startswith("`id.Must`: the id must be 12 hex characters")
