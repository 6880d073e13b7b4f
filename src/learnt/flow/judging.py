"""Judge many pairs of learnings: by rules, and if a model is configured, by it where the rules do not decide.

A model is asked in few calls and under the spending cap. What it says is an estimate, which a person decides on. If it
fails or answers nonsense, the verdicts of the rules stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from learnt.consolidate.ask import PER_CALL, TEMPLATE, TEMPLATES, JudgedPair, make_request, read_answer
from learnt.consolidate.overlap import LearningContent, judge
from learnt.errors import LearntError, WrongRequest
from learnt.flow.context import Context
from learnt.flow.model_calls import LONG_LIMIT_S, ask_model, asks_a_model
from learnt.flow.vectors import make_measure
from learnt.llm.calls import ModelRequest
from learnt.model import TEXT_LIMIT, Learning, is_id, new_id
from learnt.system.templates import read_template
from learnt.text.clean import clean, fold
from learnt.text.shorten import shorten
from learnt.weigh.compare import Verdict

_PURPOSE = "overlap"


def compare(context: Context, older: str | Learning, newer: str | Learning) -> Verdict:
    """Return how a newer learning relates to an older one; both are learnings, ids or texts. No model is asked."""
    contents = [LearningContent(_read(context, learning)) for learning in (older, newer)]
    return judge(*contents, measure=make_measure(context))


def _read(context: Context, learning: str | Learning) -> Learning:
    """Return a learning, given by itself, by its id, or as a text that is not stored."""
    if isinstance(learning, Learning):
        return learning
    if is_id("learn", learning):
        return context.get(learning)
    text = clean(learning)
    title = shorten(fold(text))
    if not title:
        raise WrongRequest("there is nothing to compare", hint="give a learning, its id, or a text")
    return Learning(id=new_id("learn", context.clock()), title=title, observation=text[:TEXT_LIMIT])


def judge_pairs(
    context: Context,
    pairs: Sequence[tuple[Learning, Learning]],
    *,
    asks: bool = True,
    limit_s: float = LONG_LIMIT_S,
) -> list[Verdict]:
    """Return how the second of each pair of learnings, the newer one, relates to the first."""
    measure = make_measure(context)
    judged = []
    for older, newer in pairs:
        contents = LearningContent(older), LearningContent(newer)
        judged.append(JudgedPair(older=contents[0], newer=contents[1], verdict=judge(*contents, measure=measure)))
    verdicts = {number: pair.verdict for number, pair in enumerate(judged)}
    waiting = [number for number, pair in enumerate(judged) if pair.is_open]
    for start in range(0, len(waiting) if asks and asks_a_model(context) else 0, PER_CALL):
        batch = waiting[start : start + PER_CALL]
        try:
            answers = _ask(context, [judged[number] for number in batch], limit_s=limit_s)
        except LearntError as error:
            context.remarks.append(f"overlaps were judged without the model: {error.message}; {error.hint}")
            break
        verdicts.update(zip(batch, answers, strict=True))
    return [verdicts[number] for number in range(len(judged))]


def _ask(context: Context, pairs: Sequence[JudgedPair], *, limit_s: float) -> list[Verdict]:
    template = read_template(TEMPLATE, (TEMPLATES,), own=context.prompts_folder)
    system, prompt, schema, max_tokens = make_request(pairs, template=template)
    request = ModelRequest(purpose=_PURPOSE, system=system, prompt=prompt, schema=schema, max_tokens=max_tokens)
    answer = ask_model(context, request, task="", regeneration="", limit_s=limit_s)
    return read_answer(answer.data, pairs)
