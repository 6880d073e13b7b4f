"""Which model tries a task, why, and when work is stuck: from figures alone, the same every time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnt.errors import InvalidValue
from learnt.settings import Model
from learnt.strategy.choose_model import STRATEGIES, Facts, ModelChoice, choose, spread
from learnt.strategy.figures import Figure, PastAttempt, Share, TrackRecord, make_figures
from learnt.strategy.plot import plot
from learnt.strategy.stuck import find_stuck_run, find_stuck_task, list_open_failures
from learnt.text.titles import normalised_error

HAIKU, SONNET, OPUS = (
    Model(name="claude-haiku-4-5", price=0.05),
    Model(name="sonnet", price=0.2),
    Model(name="opus", price=1),
)
MODELS = (HAIKU, SONNET, OPUS)
MANY = tuple(Model(name=f"model-{number}", price=0.1 * (number + 1)) for number in range(12))


def attempts(
    model: Model, *, done: int, failed: int = 0, before: int = 0, type: str = "implement", likeness: float = 1.0
) -> list[PastAttempt]:
    results = ["done"] * done + ["failed"] * failed
    return [
        PastAttempt(
            model=model.name,
            task=f"task_{number}",
            result=result,
            type=type,
            before=before,
            cost_usd=model.price,
            likeness=likeness,
        )
        for number, result in enumerate(results)
    ]


def failure(task: str, error: str = "", model: str = "opus") -> PastAttempt:
    return PastAttempt(model=model, task=task, result="failed", error=error)


def learned(
    record: TrackRecord, *failures: Model, type: str = "implement", similar: Iterable[PastAttempt] = ()
) -> ModelChoice:
    names = tuple(model.name for model in failures)
    return choose("learned", MODELS, record, Facts(task="task_9", type=type, failures=names, similar=tuple(similar)))


# Choosing


def test_without_a_record_the_cheapest_starts_and_says_that_nothing_is_known() -> None:
    choice = learned(TrackRecord())

    assert choice.model == HAIKU.name
    assert choice.reason == "no attempts yet, so the cheapest model starts"


def test_without_a_record_every_failure_goes_one_step_up() -> None:
    assert learned(TrackRecord(), HAIKU).model == "sonnet"
    assert learned(TrackRecord(), HAIKU, SONNET) == ModelChoice(
        model="opus", reason="no attempts yet with opus or stronger models, so it is the next step up", last=True
    )


def test_the_record_keeps_the_cheapest_where_it_pays_and_says_so_with_figures() -> None:
    record = TrackRecord([*attempts(HAIKU, done=14, failed=3), *attempts(SONNET, done=2, failed=1, before=1)])

    choice = learned(record)

    assert choice.model == HAIKU.name
    assert choice.reason.startswith(
        "claude-haiku-4-5: 14 of 17 attempts at `implement` tasks succeeded at $0.05; starting with it costs"
    )


def test_where_the_cheapest_always_fails_a_stronger_model_starts() -> None:
    record = TrackRecord([*attempts(HAIKU, done=0, failed=60), *attempts(SONNET, done=57, failed=3, before=1)])

    assert learned(record).model == "sonnet"


def test_what_fails_at_one_type_of_task_still_starts_at_another() -> None:
    record = TrackRecord(
        [
            *attempts(HAIKU, done=80, failed=10, type="review"),
            *attempts(HAIKU, done=0, failed=60, type="plan"),
            *attempts(SONNET, done=57, failed=3, before=1, type="plan"),
        ]
    )

    assert learned(record, type="review").model == HAIKU.name
    assert learned(record, type="plan").model == "sonnet"


def test_similar_tasks_that_failed_move_the_start_of_this_one() -> None:
    record = TrackRecord([*attempts(HAIKU, done=50, failed=10), *attempts(SONNET, done=9, failed=1, before=1)])
    similar = [*attempts(HAIKU, done=0, failed=80, likeness=0.9), *attempts(SONNET, done=80, before=1, likeness=0.9)]

    assert learned(record).model == HAIKU.name
    assert learned(record, similar=similar).model == "sonnet"


def test_a_step_that_never_helps_after_a_failure_is_skipped() -> None:
    record = TrackRecord([*attempts(SONNET, done=1, failed=60, before=1), *attempts(OPUS, done=50, failed=5, before=1)])

    choice = learned(record, HAIKU)

    assert choice.model == "opus"
    assert choice.last
    assert "opus: 50 of 55 attempts at `implement` tasks succeeded after a failure at $1.00" in choice.reason


def test_after_the_strongest_has_failed_it_stays_with_the_strongest() -> None:
    record = TrackRecord(attempts(OPUS, done=1, failed=9, before=1))

    assert learned(record, HAIKU, OPUS).model == "opus"
    assert learned(record, HAIKU, OPUS).last


def test_interrupted_attempts_say_nothing() -> None:
    interrupted = PastAttempt(model=HAIKU.name, task="task_1", result="interrupted", cost_usd=9.0)

    assert learned(TrackRecord([interrupted])) == learned(TrackRecord())
    assert make_figures([interrupted]) == []


def test_the_same_record_and_task_give_the_same_choice_in_any_order_of_attempts() -> None:
    outcomes = [*attempts(HAIKU, done=3, failed=3), *attempts(SONNET, done=2, failed=1, before=1)]

    assert learned(TrackRecord(outcomes)) == learned(TrackRecord(reversed(outcomes)))


def test_models_without_prices_are_taken_in_their_order() -> None:
    models = [Model(name="small"), Model(name="large")]
    record = TrackRecord([PastAttempt(model="small", task="task_1", result="done")])

    assert choose("learned", models, record, Facts(task="task_2")).model == "small"


def test_of_many_models_a_task_sees_only_a_few_from_all_over_the_list() -> None:
    record, tried = TrackRecord(), list[str]()
    for before in range(4):
        choice = choose("learned", MANY, record, Facts(task="task_1", failures=tuple(tried)))
        record.add(PastAttempt(model=choice.model, task="task_1", result="failed", before=before, cost_usd=0.1))
        tried.append(choice.model)

    assert choice.last
    assert len(set(tried)) == 4
    assert tried[0] == "model-0"
    assert [model.name for model in spread(MANY, 4)] == ["model-0", "model-4", "model-7", "model-11"]


def test_among_many_models_the_one_that_the_record_praises_is_the_last_step() -> None:
    record = TrackRecord()
    for model in MANY:
        good = model.name == "model-6"
        for outcome in attempts(model, done=18 if good else 2, failed=2 if good else 18, before=1):
            record.add(outcome)

    facts = Facts(task="task_9", failures=("model-0", "model-1", "model-2"))
    assert choose("learned", MANY, record, facts).model == "model-6"


def test_a_record_of_sums_gives_the_same_choice_as_ten_thousand_attempts() -> None:
    record = TrackRecord(attempts(HAIKU, done=9_000, failed=1_000))
    summed = TrackRecord()
    summed.put(
        HAIKU.name, after_failure=False, type="implement", attempts=10_000, done=9_000, costed=10_000, cost_usd=500
    )

    assert learned(record) == learned(summed)
    assert "9000 of 10000" in learned(record).reason


@pytest.mark.parametrize(
    ("failures", "done", "model", "words"),
    [
        (0, 9, HAIKU.name, "9 of 10 attempts succeeded, so the cheapest model is used"),
        (0, 8, "sonnet", "8 of 10 attempts succeeded, so the middle model is used"),
        (1, 9, "sonnet", "one failure at this task, so the middle model is used"),
        (2, 9, "opus", "2 failures at this task, so the strongest model is used"),
    ],
)
def test_cost_optimized_looks_at_recent_attempts_and_at_this_task(
    failures: int, done: int, model: str, words: str
) -> None:
    facts = Facts(task="task_1", failures=(HAIKU.name,) * failures, recent=Share(done=done, attempts=10))

    choice = choose("cost-optimized", MODELS, TrackRecord(), facts)

    assert (choice.model, choice.reason) == (model, words)


def test_escalate_goes_one_step_up_with_every_failure_and_stays_at_the_last() -> None:
    chosen = [choose("escalate", MODELS, TrackRecord(), Facts(task="t", failures=("x",) * n)).model for n in range(5)]

    assert chosen == [HAIKU.name, "sonnet", "opus", "opus", "opus"]


def test_fixed_takes_the_named_model_and_refuses_one_that_is_not_configured() -> None:
    facts = Facts(task="task_1")

    assert choose("fixed", MODELS, TrackRecord(), facts, fixed="sonnet").model == "sonnet"
    assert choose("fixed", MODELS, TrackRecord(), facts).model == "opus"
    with pytest.raises(InvalidValue, match="`gpt` is not configured"):
        choose("fixed", MODELS, TrackRecord(), facts, fixed="gpt")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_the_agent_asks_for_wins_over_every_strategy(strategy: str) -> None:
    facts = Facts(task="task_1", failures=("opus",))

    assert choose(strategy, MODELS, TrackRecord(), facts, hint="OPUS").model == "opus"
    assert choose(strategy, MODELS, TrackRecord(), facts, hint="haiku") == ModelChoice(
        model=HAIKU.name, reason="the agent asked for claude-haiku-4-5"
    )


def test_a_wish_that_fits_no_model_or_two_is_ignored_and_the_reason_says_so() -> None:
    models = (Model(name="opus-4-7"), Model(name="opus-4-8"))

    unknown = choose("escalate", models, TrackRecord(), Facts(task="task_1"), hint="gpt")
    either = choose("escalate", models, TrackRecord(), Facts(task="task_1"), hint="opus")

    assert unknown.model == either.model == "opus-4-7"
    assert unknown.reason.startswith("`gpt`, which the agent asked for, is not configured; ")
    assert either.reason.startswith("`opus`, which the agent asked for, matches opus-4-7 and opus-4-8; ")


def test_what_cannot_be_chosen_from_is_refused() -> None:
    facts = Facts(task="task_1")
    for strategy, models in (("guess", MODELS), ("learned", ()), ("learned", (OPUS, OPUS))):
        with pytest.raises(InvalidValue):
            choose(strategy, models, TrackRecord(), facts)
    with pytest.raises(InvalidValue):
        Model(name="opus", price=-1)


outcomes = st.builds(
    PastAttempt,
    model=st.sampled_from([model.name for model in MANY]),
    task=st.just("task_1"),
    result=st.sampled_from(["done", "failed", "incomplete", "interrupted"]),
    type=st.sampled_from(["", "implement", "plan"]),
    difficulty=st.sampled_from(["", "hard"]),
    before=st.integers(0, 4),
    cost_usd=st.none() | st.floats(0, 5),
    likeness=st.floats(0, 1),
)


@settings(max_examples=150, deadline=None)
@given(
    strategy=st.sampled_from(STRATEGIES),
    count=st.integers(1, len(MANY)),
    record=st.lists(outcomes, max_size=30),
    similar=st.lists(outcomes, max_size=5),
    failures=st.lists(st.sampled_from([model.name for model in MANY]), max_size=6),
    hint=st.text(max_size=8),
    limit=st.integers(1, 6),
)
def test_any_record_gives_a_configured_model_and_a_reason(
    *,
    strategy: str,
    count: int,
    record: list[PastAttempt],
    similar: list[PastAttempt],
    failures: list[str],
    hint: str,
    limit: int,
) -> None:
    models = MANY[:count]
    names = [model.name for model in models]
    facts = Facts(task="task_1", type="plan", difficulty="hard", failures=tuple(failures), similar=tuple(similar))

    choice = choose(strategy, models, TrackRecord(record), facts, hint=hint, attempts=limit)

    assert choice.model in names
    assert choice.reason
    failed = [names.index(name) for name in failures if name in names]
    if not hint.strip() and failed and (strategy == "escalate" or (strategy == "learned" and count <= limit)):
        assert names.index(choice.model) >= max(failed)


# Figures


def test_figures_are_told_by_model_and_by_type() -> None:
    record = [*attempts(OPUS, done=2, failed=1), *attempts(OPUS, done=1, type="plan"), *attempts(SONNET, done=1)]

    assert [(one.model, one.share) for one in make_figures(record)] == [
        ("opus", Share(done=3, attempts=4)),
        ("sonnet", Share(done=1, attempts=1)),
    ]
    assert [(one.model, one.type, one.mean_cost_usd) for one in make_figures(record, by_type=True)] == [
        ("opus", "implement", 1.0),
        ("opus", "plan", 1.0),
        ("sonnet", "implement", 0.2),
    ]


def test_the_time_of_a_model_is_its_median_and_unknown_figures_stay_unknown() -> None:
    times = [PastAttempt(model="opus", task="t", result="done", duration_ms=ms) for ms in (10, 20, 900, 40)]

    assert make_figures(times)[0].median_ms == 30
    assert make_figures(times)[0].mean_cost_usd is None


def test_an_interval_is_wide_for_few_attempts_and_never_certain() -> None:
    assert Share().interval == (0.0, 1.0)
    low, high = Share(done=1, attempts=1).interval
    assert low < 0.4
    assert high == pytest.approx(1.0)
    narrow, wide = (Share(done=8 * n, attempts=10 * n).interval for n in (100, 1))
    assert wide[0] < narrow[0] < 0.8 < narrow[1] < wide[1]


# Stuck


def test_a_task_is_stuck_after_three_failures_in_a_row_whichever_models_made_them() -> None:
    twice = [failure("task_1", model="haiku"), failure("task_1", model="sonnet")]

    assert find_stuck_task(twice) is None
    found = find_stuck_task([*twice, failure("task_1")])
    assert found is not None
    assert found.reason == "3 attempts in a row failed (haiku, sonnet, opus)"


def test_the_same_error_three_times_is_named_as_what_a_task_is_stuck_at() -> None:
    errors = [
        "ValueError: bad row 17 in /tmp/pytest-4/x.csv at 0x7f3a",
        "ValueError: bad row 23 in /tmp/pytest-5/y.csv at 0x7f4b",
        "valueerror: bad row 8 in /tmp/a at 0x11",
    ]
    found = find_stuck_task([failure("task_1", normalised_error(error), "sonnet") for error in errors])

    assert found is not None
    assert found.reason == "3 attempts ended with the same error: valueerror bad row in at"


def test_errors_that_differ_in_more_than_numbers_stay_different() -> None:
    assert normalised_error("KeyError: 'name'") != normalised_error("KeyError: 'id'")
    assert normalised_error("module added") == "module added"


def test_what_failed_before_a_task_was_done_is_forgotten() -> None:
    done = PastAttempt(model="opus", task="task_1", result="done")

    assert list_open_failures([failure("task_1"), done, failure("task_1", "later")]) == [failure("task_1", "later")]
    assert find_stuck_task([failure("task_1")] * 3 + [done]) is None


def test_the_same_error_in_three_tasks_stops_the_run_and_names_what_they_share() -> None:
    same = [failure(task, "no such table user") for task in ("task_1", "task_2", "task_2")]
    shown = {"task_1": ["learn_a", "learn_b"], "task_2": ["learn_b"], "task_3": ["learn_b", "learn_c"]}

    assert find_stuck_run(same, shown) is None
    found = find_stuck_run([*same, failure("task_3", "no such table user")], shown)
    assert found is not None
    assert found.tasks == ("task_1", "task_2", "task_3")
    assert found.learnings == ("learn_b",)
    assert found.reason == "3 tasks failed with the same error: no such table user"


def test_failures_without_an_error_and_tasks_done_since_stop_no_run() -> None:
    nameless = [failure(f"task_{number}") for number in range(5)]
    overcome = [failure(f"task_{number}", "flaky") for number in range(3)]

    assert find_stuck_run(nameless, {}) is None
    assert find_stuck_run([*overcome, PastAttempt(model="opus", task="task_0", result="done")], {}) is None
    found = find_stuck_run(overcome, {})
    assert found is not None
    assert found.learnings == ()


# The picture


def test_the_picture_is_valid_svg_with_labels_intervals_and_escaped_names() -> None:
    shares = (Share(done=3, attempts=4), Share(done=1, attempts=1))
    names = ('<b>&"x"</b>', "opus")
    picture = plot(
        [Figure(model=n, share=s, mean_cost_usd=c) for n, s, c in zip(names, shares, (0.04, 1.4), strict=True)]
    )

    root = ElementTree.fromstring(picture)  # noqa: S314 - our own text
    words = " ".join(root.itertext())
    assert '<b>&"x"</b> (3 of 4)' in words
    assert "mean cost of an attempt (USD)" in words
    assert "attempts that got the task done" in words
    assert picture.count('class="bar"') == 2
    assert "prefers-color-scheme: dark" in picture


@pytest.mark.parametrize("cost", [None, 0.0, 0.00012, 9.99, 10.0, 12345.0])
def test_a_picture_of_any_cost_stays_within_its_frame(cost: float | None) -> None:
    root = ElementTree.fromstring(  # noqa: S314 - our own text
        plot([Figure(model="opus", share=Share(done=1, attempts=2), mean_cost_usd=cost)])
    )

    points = [element for element in root.iter() if element.tag.endswith("circle")]
    assert len(points) == (cost is not None)
    assert all(0 <= float(point.attrib["cx"]) <= 720 for point in points)
    assert ElementTree.fromstring(plot([])) is not None  # noqa: S314 - our own text


@pytest.mark.parametrize("cost", [0.01, 0.95])
def test_the_names_of_models_that_did_alike_stand_below_or_above_each_other(cost: float) -> None:
    alike = [
        Figure(model=f"model-{number}", share=Share(done=done, attempts=10), mean_cost_usd=cost + number / 1000)
        for done in (0, 5, 10)
        for number in range(5)
    ]
    picture = plot(alike)
    names = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="\w+">model-', picture)
    heights = sorted(float(y) for _, y in names)
    assert len(heights) == 15
    assert all(after - before >= 13 for before, after in itertools.pairwise(heights)), heights
    assert heights[0] > 40
    assert heights[-1] < 400
    assert plot(alike) == picture
