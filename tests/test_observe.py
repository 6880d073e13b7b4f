"""What is observed in an agent's work: errors that it overcame, lessons in words, reviews; and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnt.clients.kit.transcript import Step
from learnt.mine.attempts import observe_attempts
from learnt.mine.commits import observe_commit
from learnt.mine.complaint import find_error, find_stable_part, generalise, read_diagnostics
from learnt.mine.demands import read_demands
from learnt.mine.lessons import observe_words
from learnt.mine.norms import states_rule
from learnt.mine.observe import observe_steps
from learnt.mine.rejections import observe_rejections
from learnt.mine.reviews import find_recurring, observe_reviews, read_findings
from learnt.mine.shell import split_command
from learnt.model import Discovery, Failure

FOLDER = "/home/ada/shop"
_numbers = count(1)


def ran(command: str, output: str = "", *, failed: bool = False, denied: bool = False) -> list[Step]:
    """A command and its result."""
    call = f"call_{next(_numbers)}"
    return [
        Step(kind="call", call=call, tool="Bash", does="run", text=command),
        Step(kind="result", call=call, text=output, failed=failed, denied=denied),
    ]


def used(
    tool: str, path: str, output: str = "", *, failed: bool = False, text: str = "", before: str = ""
) -> list[Step]:
    """A call of a file tool and its result."""
    call = f"call_{next(_numbers)}"
    does = {"Edit": "edit", "Write": "edit", "Read": "read"}.get(tool, "other")
    return [
        Step(kind="call", call=call, tool=tool, does=does, path=path, text=text, before=before),
        Step(kind="result", call=call, text=output, failed=failed),
    ]


def observed(*steps: list[Step], folder: str = FOLDER) -> list[Discovery]:
    return list(observe_steps((step for some in steps for step in some), folder=folder))


def only(discoveries: list[Discovery]) -> Discovery:
    assert len(discoveries) == 1, discoveries
    return discoveries[0]


def test_a_command_that_failed_and_the_changed_one_that_worked_are_a_discovery() -> None:
    found = only(
        observed(
            ran("python -m pytest tests", "Exit code 1\n/usr/bin/python: No module named pytest", failed=True),
            ran("ls"),
            ran("uv run pytest tests", "12 passed"),
        )
    )

    assert (found.type, found.rule) == ("blocker", "command")
    assert (found.failed, found.worked) == ("python -m pytest tests", "uv run pytest tests")
    assert "No module named pytest" in found.error


def test_an_option_that_a_program_does_not_have_is_named() -> None:
    found = only(
        observed(
            ran("gh pr diff 88 --stat", "Exit code 1\nunknown flag: --stat\n\nUsage: gh pr diff", failed=True),
            ran("gh pr diff 88 --name-only", "shop.py"),
        )
    )

    assert found.text == "`gh pr diff` has no `--stat`: use `--name-only`"
    assert found.worked == "gh pr diff <n> --name-only"


def test_a_word_that_had_to_be_quoted_is_said_to_be_quoted() -> None:
    found = only(
        observed(
            ran(
                "gh api repos/ada/shop/pulls/7/comments?per_page=100 --paginate",
                "zsh: no matches found: repos",
                failed=True,
            ),
            ran('gh api "repos/ada/shop/pulls/7/comments?per_page=100" --paginate', "[]"),
        )
    )

    assert found.text.startswith("Quote `repos/ada/shop/pulls/<n>/comments?per_page=100` for `gh api`")


def test_the_command_that_an_error_asked_for_is_learnt() -> None:
    found = only(
        observed(
            ran("make test", "Exit code 1\ngo: updates to go.mod needed; to update it:\n\tgo mod tidy", failed=True),
            ran("go mod tidy"),
            ran("make test", "ok"),
        )
    )

    assert found.text == "Run `go mod tidy` when `make` says: go: updates to go.mod needed"
    assert found.advice == "Run `go mod tidy` first, then `make test`."


def test_a_shell_that_was_left_in_another_folder_teaches_nothing() -> None:
    assert not observed(
        ran("cd web && npm run build", "(eval):cd:1: no such file or directory: web", failed=True),
        ran(f"cd {FOLDER} && npm run build", "done"),
    )


@pytest.mark.parametrize(
    "refusal",
    [
        "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>",
        "<tool_use_error>String to replace not found in file.\nString: x = 1</tool_use_error>",
        "<tool_use_error>Found 2 matches of the string to replace, but replace_all is false.</tool_use_error>",
        "<tool_use_error>File has been modified since read, either by the user or by a linter.</tool_use_error>",
        "InputValidationError: Edit failed due to the following issue:\nAn unexpected parameter `file` was provided",
    ],
)
def test_how_a_clients_own_tools_are_called_teaches_nothing_about_the_project(refusal: str) -> None:
    path = f"{FOLDER}/shop.py"
    assert not observed(
        used("Edit", path, refusal, failed=True, text="x = 2", before="x = 1"),
        used("Read", path, "x  = 1"),
        used("Edit", path, "ok", text="x = 2", before="x  = 1"),
    )


def test_a_formatter_that_rewrote_a_file_is_named() -> None:
    path = f"{FOLDER}/shop.py"
    found = only(
        observed(
            used("Edit", path, "File has been modified since read", failed=True, text="a", before="b"),
            ran("make format", "reformatted"),
            used("Edit", path, text="a", before="b"),
        )
    )

    assert "`make format`" in found.text


def test_a_file_that_is_too_large_is_read_in_parts() -> None:
    path = f"{FOLDER}/data/orders_test.go"
    found = only(
        observed(
            used("Read", path, "File content (26800 tokens) exceeds maximum allowed tokens (25000).", failed=True),
            used("Read", path, "lines 1 to 50"),
        )
    )

    assert found.files == ("data/orders_test.go",)
    assert "offset and limit" in found.text


def test_a_file_that_is_elsewhere_is_told_with_both_places() -> None:
    found = only(
        observed(
            used("Read", f"{FOLDER}/src/orders/total.py", "File does not exist.", failed=True),
            used("Read", f"{FOLDER}/src/prices/total.py", "def total(): ..."),
        )
    )

    assert found.text == "`src/orders/total.py` does not exist: it is in `src/prices`"
    assert found.worked == "src/prices/total.py"


LINT = """Exit code 1
[lint] $ golangci-lint run ./...
shop/total.go:12:9: error returned from external package is unwrapped: sig: func os.ReadFile() (wrapcheck)
\treturn nil, err
\t        ^
[lint] ERROR task failed"""


def test_what_a_linter_rejected_and_the_edit_that_it_accepted_are_a_constraint() -> None:
    found = only(
        observed(
            ran("make lint", LINT, failed=True),
            used(
                "Edit",
                f"{FOLDER}/shop/total.go",
                before="\treturn nil, err\n",
                text='\treturn nil, fmt.Errorf("total: %w", err)\n',
            ),
            ran("make lint", "ok"),
        )
    )

    assert (found.type, found.rule) == ("constraint", "verification")
    assert found.text == "`wrapcheck` rejects: error returned from external package is unwrapped"
    assert found.worked == '`return nil, fmt.Errorf("total: %w", err)` instead of `return nil, err`'


def test_an_edit_that_was_rejected_again_is_not_the_one_that_is_learnt() -> None:
    wrong = used("Edit", f"{FOLDER}/shop/total.go", before="\treturn nil, err\n", text="\treturn nil, (err)\n")
    right = used("Edit", f"{FOLDER}/shop/total.go", before="\treturn nil, (err)\n", text="\treturn nil, wrap(err)\n")
    again = LINT.replace("\treturn nil, err", "\treturn nil, (err)")

    found = only(
        observed(
            ran("make lint", LINT, failed=True), wrong, ran("make lint", again, failed=True), right, ran("make lint")
        )
    )

    assert found.worked == "`return nil, wrap(err)` instead of `return nil, (err)`"


def test_a_name_that_does_not_exist_and_the_right_one_are_learnt() -> None:
    found = only(
        observed(
            ran("go build ./...", "shop/cart.go:3:5: undefined: price.Total", failed=True),
            used("Edit", f"{FOLDER}/shop/cart.go", before="x := price.Total()", text="x := price.Sum()"),
            ran("go build ./..."),
        )
    )

    assert found.text == "`price.Total` does not exist: it is called `price.Sum`"


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("shop/cart.go:3:5: Error return value is not checked (errcheck)", "errcheck"),
        ("[lint:go] shop/cart.go:3:5: Error return value is not checked (errcheck)", "errcheck"),
        ("shop/cart.py:3: error: Missing return statement  [return]", "return"),
        ("shop/cart.py:3:5: B904 Within an except clause, raise with from", "B904"),
        ("src/cart.ts(3,5): error TS2339: Property 'sum' does not exist on type 'Cart'.", "TS2339"),
        ("shop/cart.go:3:5: undefined: price.Total", ""),
    ],
)
def test_the_forms_of_the_checks_are_read(line: str, rule: str) -> None:
    (found,) = read_diagnostics(line)

    assert found.rule == rule
    assert found.file.rpartition("/")[2].startswith("cart.")


def test_a_type_error_that_an_edit_removed_teaches_nothing_without_an_example() -> None:
    assert (
        observed(
            ran("mypy shop", "shop/cart.py:3: error: Incompatible return value type  [return-value]", failed=True),
            used("Edit", "/x/shop/cart.py", before="return 1", text="return str(1)"),
            ran("mypy shop"),
        )
        == []
    )


@pytest.mark.parametrize(
    "steps",
    [
        [*ran("pytest", "Exit code 1\nE  assert 1 == 2\n1 failed", failed=True), *ran("pytest", "1 passed")],
        [
            *ran("git merge main", "CONFLICT (content): Merge conflict in a.py", failed=True),
            *ran("git merge main --no-edit"),
        ],
        [
            *ran("gh pr view", "<tool_use_error>Sibling tool call errored</tool_use_error>", failed=True),
            *ran("gh pr view 7"),
        ],
        [*ran("rm -r x", "Permission to use Bash has been denied", failed=True, denied=True), *ran("rm x")],
        [*ran("grep -n total shop.py", "Exit code 1", failed=True), *ran("grep -n sum shop.py", "3: sum")],
        [*ran("git show 1234567", "fatal: bad object 1234567", failed=True), *ran("git show 7654321", "commit")],
        [*ran("git status", "fatal: Unable to create '.git/index.lock'", failed=True), *ran("git status --short")],
        ran("frobnicate --all", "unknown option: --all", failed=True),
    ],
    ids=[
        "red test",
        "conflict",
        "sibling",
        "denied",
        "no match",
        "other commit",
        "lock",
        "not overcome",
    ],
)
def test_what_teaches_nothing_is_not_observed(steps: list[Step]) -> None:
    assert observed(steps) == []


def test_an_own_function_outside_of_the_project_teaches_nothing() -> None:
    assert (
        observed(
            used("Edit", "/x/shop/cart.go", before="func Sum(a int) {", text="func Sum(a, b int) {"),
            ran("go build ./...", "shop/main.go:3:5: not enough arguments in call to Sum", failed=True),
            used("Edit", "/x/shop/main.go", before="Sum(1)", text="Sum(1, 2)"),
            ran("go build ./..."),
        )
        == []
    )


def test_a_sub_agents_success_does_not_correct_the_agents_failure() -> None:
    failed = ran("gh pr diff --stat", "unknown flag: --stat", failed=True)
    aside = [step.replace(aside=True) for step in ran("gh pr diff --name-only")]

    assert observed(failed, aside) == []


def test_a_long_conversation_is_read_as_a_stream() -> None:
    def endless() -> Iterator[Step]:
        for number in range(5_000):
            yield Step(kind="call", call=f"open_{number}", tool="Bash", does="run", text="make never-answered")
            yield from ran(f"make step-{number}", "Exit code 2\nmake: unknown option -- x" * 50, failed=True)
        yield from ran("make --help")

    assert len(list(observe_steps(endless()))) <= 50


texts = st.text(max_size=200)


@given(
    st.lists(
        st.builds(
            Step,
            kind=st.sampled_from(("prompt", "said", "call", "result")),
            text=texts
            | st.sampled_from(("a.go:1:2: undefined: b.C", "unknown flag: --x", "x " * 3_000, "cd 'a && b", "<<EOF")),
            call=st.sampled_from(("1", "2")),
            tool=st.sampled_from(("Bash", "Edit", "Read", "")),
            does=st.sampled_from(("run", "edit", "read", "other", "")),
            path=texts,
            before=texts,
            failed=st.booleans(),
            aside=st.booleans(),
        ),
        max_size=30,
    ),
    texts,
)
def test_no_conversation_is_an_error(steps: list[Step], folder: str) -> None:
    for discovery in (*observe_steps(steps, folder=folder), *observe_rejections(steps, folder=folder)):
        assert discovery.text


@given(texts)
def test_no_text_is_an_error(text: str) -> None:
    list(observe_words(text))
    list(observe_reviews(text, text))
    list(observe_rejections([Step(kind="said", text=text), Step(kind="prompt", text=text)]))
    read_demands(text), states_rule(text)
    list(find_recurring(read_findings(text), [read_findings(text)]))
    observe_commit(text, text, [text])
    observe_attempts(Failure(attempt="attempt_1", task="task_1", error=text), summary=text, said=text)
    list(read_diagnostics(text))
    split_command(text), find_error(text), find_stable_part(text), generalise(text, text)


@pytest.mark.parametrize(
    "sentence",
    [
        "The `release` workflow only supports a token for the tap, not an app.",
        "Never call `Store.close` inside of a transaction, it waits for itself.",
        "Use `uv run pytest` instead of `pytest`: the system Python lacks the plugins.",
        "`--generate` requires `--checkpoint` with the id of one.",
    ],
)
def test_a_rule_in_the_agents_own_words_is_observed(sentence: str) -> None:
    found = only(list(observe_words(f"Done with the first part.\n\n{sentence} Moving on.")))

    assert found.rule == "words"
    assert found.text == sentence


@pytest.mark.parametrize(
    "sentence",
    [
        "Let me check whether `shop.py` requires a newer version of it.",
        "I'll use `uv run pytest` instead of `pytest`: it has the plugins.",
        "Does `shop.py` support negative prices, or must they be refused?",
        "The issue was that `Total` was never called with a discount here.",
        "You must always be careful and never forget what matters most.",
        "The tests pass now and `make lint` is happy with all of the code.",
        "> The `release` workflow only supports a token for the tap.",
        "```\nThe `release` workflow only supports a token for the tap.\n```",
    ],
)
def test_plans_questions_accounts_and_quotations_are_no_lessons(sentence: str) -> None:
    assert list(observe_words(sentence)) == []


def test_an_attempt_that_passed_tells_what_the_check_wanted() -> None:
    earlier = Failure(
        attempt="attempt_1",
        task="task_1",
        reason="the verification failed",
        error="ImportError: cannot import name 'total' from 'shop.prices'",
        files=("shop/prices.py",),
    )

    found = observe_attempts(earlier, summary="Exported `total` from `shop/prices.py`.", said="All good.")

    assert found is not None
    assert "cannot import name" in found.error
    assert found.worked == "Export `total` from `shop/prices.py`."
    assert observe_attempts(earlier, summary="Done.", said="It works.") is None


def test_a_revert_is_learnt_with_its_reason() -> None:
    body = "This reverts commit 0123456789abcdef0123456789abcdef01234567.\n\nThe cache broke the price of bundles."

    found = observe_commit('Revert "Cache all prices"', body, ["shop/prices.py"])

    assert found is not None
    assert found.rule == "revert"
    assert found.text == "Do not redo “Cache all prices”: The cache broke the price of bundles."
    assert observe_commit('Revert "Cache all prices"', body.partition("\n\n")[0]) is None


def test_a_lesson_in_a_commit_message_is_learnt_and_an_account_is_not() -> None:
    found = observe_commit(
        "Pin the driver", "The `fastsql` driver does not support arrays on Windows.\n\nSigned-off-by: A"
    )

    assert found is not None
    assert found.text.startswith("The `fastsql` driver")
    assert observe_commit("Add totals", "Adds totals to the cart page.") is None


REVIEW = """## Review

1. **Must fix**: `shop/cart.py:12` swallows the database error without logging it
2. Minor: the docstring of `shop/price.py` is outdated
- Looks good otherwise
"""


def test_findings_are_the_items_that_name_a_file_or_how_grave_they_are() -> None:
    first, second = read_findings(REVIEW)

    assert (first.file, first.severity) == ("shop/cart.py", "must-fix")
    assert (second.file, second.severity) == ("shop/price.py", "low")
    assert read_findings("No lists here, only prose on shop/cart.py.") == ()


def test_a_finding_that_an_improvement_closed_is_learnt() -> None:
    found = only(list(observe_reviews(REVIEW, "Log the database error before it is swallowed.\nRenamed a variable.")))

    assert found.text == "Log the database error before it is swallowed: a review asked for it in `shop/cart.py`"
    assert found.worked == "Log the database error before it is swallowed"
    assert "A review rejected in `shop/cart.py`: “" in found.excerpt


@pytest.mark.parametrize(
    ("finding", "fix", "rule"),
    [
        (
            "Major: the HTTP call in `shop/rates.py:9` lacks a timeout",
            "The HTTP call in shop/rates.py has a timeout of 10 s.",
            "Give every HTTP call a timeout: a review rejected `shop/rates.py` without it",
        ),
        (
            "High: `shop/mail.py:3` has no retry for failed deliveries",
            "Failed deliveries are retried, `shop/mail.py` has a retry.",
            "Give such code a retry for failed deliveries: a review rejected `shop/mail.py` without it",
        ),
        (
            "Major: `shop/tax.py:4` computes money with floats",
            "Replaced floats by Decimal where money is computed.",
            "Replace floats by Decimal where money is computed: a review asked for it in `shop/tax.py`",
        ),
        (
            "Blocker: `shop/tax.py:4` rounds too early. Money must never be rounded before it is summed",
            "Money is rounded after it is summed.",
            "Money must never be rounded before it is summed",
        ),
    ],
)
def test_a_finding_that_was_fixed_is_put_as_the_rule_that_it_broke(finding: str, fix: str, rule: str) -> None:
    found = only(list(observe_reviews(f"- {finding}", fix)))

    assert found.text == rule


def test_a_finding_in_several_places_of_one_review_names_all_of_them() -> None:
    review = "".join(
        f"- Major: `{file}:7` opens a connection without closing it on errors\n" for file in ("a.py", "b.py", "c.py")
    )

    found = only(list(find_recurring(read_findings(review))))

    assert found.files == ("a.py", "b.py", "c.py")
    assert found.text.endswith("a review rejected it in `a.py`, `b.py` and `c.py`")


def test_a_finding_of_two_reviews_is_a_pattern() -> None:
    later = "- Blocker: `shop/stock.py:90` swallows the database error without logging it"

    found = only(list(find_recurring(read_findings(REVIEW), [read_findings(later)])))

    assert found.type == "pattern"
    assert found.text.startswith("Avoid code that swallows the database error without logging it")
    assert found.text.endswith("2 reviews rejected it in `shop/cart.py` and `shop/stock.py`")
    assert found.files == ("shop/cart.py", "shop/stock.py")
    assert list(find_recurring(read_findings(REVIEW), [read_findings("- Minor: `a.py` has a long line")])) == []
