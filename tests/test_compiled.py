"""What is learnt from checks on unfinished code: where a name is imported from, what a value must be."""

from __future__ import annotations

import pytest

from learnt.clients.kit.transcript import Step
from tests.test_observe import FOLDER, observed, only, ran, used


def edit(path: str, before: str, after: str) -> list[Step]:
    return used("Edit", f"{FOLDER}/{path}", before=before, text=after)


@pytest.mark.parametrize(
    ("file", "complaint", "before", "after", "learnt"),
    [
        ("a.go", "a.go:3:2: undefined: cart", "import (", 'import (\n"shop.example/cart"', "Import `cart` with"),
        ("a.ts", "a.ts(3,5): error TS2304: Cannot find name 'Cart'.", "x", 'import { Cart } from "./cart";', "Import"),
        ("a.rs", "error[E0433]: use of undeclared type `Cart`\n --> a.rs:3:5", "x", "use crate::cart::Cart;", "Import"),
        ("a.py", 'a.py:3: error: Name "Cart" is not defined  [name-defined]', "x", "from cart import Cart", "Import"),
    ],
)
def test_a_compilers_error_is_told_with_what_closed_it(
    file: str, complaint: str, before: str, after: str, learnt: str
) -> None:
    found = observed(ran("make check", complaint, failed=True), edit(file, before, after), ran("make check"))

    assert any(one.text.startswith(learnt) for one in found), found
    assert not observed(ran("make check", complaint, failed=True), ran("make check"))


def test_a_value_that_code_refused_tells_what_it_must_be() -> None:
    output = '--- FAIL: TestId (0.00s)\npanic: invalid id "ada": must be 12 hex characters\nFAIL'
    found = only(
        observed(
            ran("go test ./id", output, failed=True),
            edit("id/id_test.go", 'id.Must("ada")', 'id.Must("aabbccddeeff")'),
            ran("go test ./id", "ok"),
        )
    )

    assert found.text.startswith("`id.Must`: invalid id: must be 12 hex characters")


def test_an_expression_that_could_not_be_read_is_told_by_its_piece() -> None:
    found = only(
        observed(
            ran(
                "gh api x --jq '.[] | {id, body[0:8]}'",
                'failed to parse jq expression: unexpected token "["',
                failed=True,
            ),
            ran("gh api x --jq '.[] | {id, body: .body[0:8]}'", "[]"),
        )
    )

    assert "not `body[0:8]}`" in found.text
