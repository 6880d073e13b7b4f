"""What is learnt from checks on unfinished code: what changes together, which test holds a file, compilers' errors."""

from __future__ import annotations

import pytest

from learnt.clients.transcript import Step
from learnt.debrief.extract import Draft, extract
from learnt.debrief.red import red_tests
from learnt.model import Discovery
from tests.test_observe import FOLDER, observed, only, ran, used


def edit(path: str, before: str, after: str) -> list[Step]:
    return used("Edit", f"{FOLDER}/{path}", before=before, text=after)


def drafted(discovery: Discovery) -> Draft:
    draft = extract(discovery)
    assert isinstance(draft, Draft)
    return draft


GO = "--- FAIL: TestReceipt (0.00s)\n    receipt_test.go:9: got 3, want 2\nFAIL\nFAIL\tshop/e2e\t0.1s"
PYTEST = "FAILED tests/test_receipt.py::test_receipt - AssertionError: 3 != 2"
JEST = "FAIL e2e/receipt.test.ts > prints a receipt"
CARGO = "thread 'receipt' panicked at e2e/receipt_test.rs:9:5:\nexpected 2\ntest receipt ... FAILED"


@pytest.mark.parametrize(
    ("source", "test", "command", "output"),
    [
        ("cart/sum.go", "e2e/receipt_test.go", "go test ./...", GO),
        ("cart/sum.py", "tests/test_receipt.py", "pytest", PYTEST),
        ("cart/sum.ts", "e2e/receipt.test.ts", "vitest run", JEST),
        ("cart/sum.rs", "e2e/receipt_test.rs", "cargo test", CARGO),
    ],
)
def test_a_test_that_an_edit_broke_is_learnt_for_that_file(source: str, test: str, command: str, output: str) -> None:
    broken = (edit(source, "a + 1", "a + 2"), ran(command, output, failed=True))
    adapted = only(observed(*broken, edit(test, "== 2", "== 3"), ran(command, "ok")))
    mended = only(observed(*broken, edit(source, "a + 2", "a + 1"), ran(command, "ok")))

    assert adapted.text.startswith(f"Tests of `{source.rpartition('/')[2]}` also stand in")
    assert drafted(adapted).triggers.files == (source,)
    assert mended.text.startswith("Run `")
    assert red_tests(output)[0].sign in drafted(mended).triggers.errors


@pytest.mark.parametrize(
    "before",
    [
        [
            edit("e2e/receipt_test.go", "", "func TestReceipt() {"),
            edit("cart/sum.go", "a + 1", "a + 2"),
        ],  # its own test
        [edit("cart/sum.go", "a + 1", "a + 2"), edit("cart/tax.go", "b + 1", "b + 2")],  # one of two: which?
    ],
)
def test_a_red_test_of_its_own_or_of_an_unknown_cause_teaches_nothing(before: list[list[Step]]) -> None:
    assert not observed(
        *before,
        ran("go test ./...", GO, failed=True),
        edit("e2e/receipt_test.go", "want 2", "want 3"),
        ran("go test ./...", "ok"),
    )


def test_other_tests_that_pass_say_nothing_of_the_red_one() -> None:
    assert not observed(
        edit("cart/sum.go", "a + 1", "a + 2"),
        ran("go test ./e2e", GO, failed=True),
        edit("e2e/receipt_test.go", "want 2", "want 3"),
        ran("go test ./cart", "ok"),
    )


@pytest.mark.parametrize(
    ("file", "complaint", "before", "after", "learnt"),
    [
        ("a.go", 'a.go:3:2: "os" imported and not used', '"os"', "", "Take an import out"),
        ("a.go", "a.go:3:2: undefined: time", "import (", 'import (\n"time"', "Add the import"),
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
