"""Vectors of the configured encoder: the worker makes those of learnings, and a search those of its text.

If a new version of learnt has another embedded table, the worker also makes the vectors of that table for the learnings
that an older version has stored; until then they are found by their words.

A search never fails because of an encoder: if it cannot answer in time, the embedded table is used, and it is not asked
again for a minute. The worker makes vectors in small batches, and nothing is locked while the encoder works. What it
has stored stays, so that an interrupted run continues. Vectors of a model that nobody has used for a week are removed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from functools import cache

from learnt.consolidate.overlap import Likeness, compare_by_table
from learnt.errors import LearntError, ModelFailed
from learnt.flow.background import start_worker
from learnt.flow.context import Context
from learnt.flow.model_calls import CallRecorder
from learnt.llm.calls import DONE, TIMEOUT, ModelRequest, Provider
from learnt.llm.encoders import Encoder, EncoderAnswer, EncoderName, open_encoder
from learnt.model import Learning, Value
from learnt.recall.find import Encoded
from learnt.settings import Settings
from learnt.store import Store, learnings, mined, vectors
from learnt.store.index import Entry, Filter
from learnt.text.clean import clean, fold
from learnt.text.meaning import MODEL, likeness
from learnt.text.redact import redact
from learnt.text.times import DAY_MS
from learnt.text.words import estimate_tokens

_BATCH = 64
_BATCH_LIMIT_S = 120.0
_PAUSE_S = 60.0
_KEPT_MS = 7 * DAY_MS
_USED = "encoder "
_PURPOSE = "vectors"
_MILLION = 1_000_000


class VectorProgress(Value):
    """How many learnings of a store have vectors of the encoder's model."""

    model: str
    done: int
    total: int


class VectorReport(Value):
    """What the worker has done."""

    made: int = 0
    removed: tuple[str, ...] = ()
    """The models whose vectors were removed."""


@cache
def _get_encoder(setting: str, api_key: str) -> Encoder | None:
    """Return the encoder that a setting names, the same one for the whole process; None for the embedded table."""
    name = EncoderName.parse(setting)
    return open_encoder(name, api_key=api_key) if name else None


_paused_until: dict[str, float] = {}
"""Until when an encoder that failed is not asked by searches, by its setting."""


def find_encoder(settings: Settings) -> Encoder | None:
    """Return the configured encoder; None for the embedded table. Raise if there is no such encoder."""
    name = EncoderName.parse(settings.search_encoder)
    variable = settings.search_encoder_key or (name.key_variable if name else "")
    return _get_encoder(settings.search_encoder, os.environ.get(variable, "") if variable else "")


def encode_query(context: Context, text: str, *, weight: float) -> Encoded | None:
    """Return what a text means by the configured encoder; None, with a remark, if it fails or is too slow."""
    if not text.strip():
        return None
    encoded = _try_encoder(context, [text], instead="searched")
    return Encoded(model=encoded[0], vector=encoded[1][0], weight=weight) if encoded and encoded[1][0] else None


def make_measure(context: Context) -> Likeness:
    """Return how texts are compared: by the configured encoder, and where that fails, by the embedded table."""
    known: dict[str, bytes | None] = {}

    def measure(one: str, other: str) -> float:
        lacking = [text for text in dict.fromkeys((one, other)) if text not in known]
        encoded = _try_encoder(context, lacking, instead="compared") if lacking else None
        known.update(zip(lacking, encoded[1], strict=True) if encoded else ())
        vectors = known.get(one), known.get(other)
        return likeness(vectors[0], vectors[1]) if vectors[0] and vectors[1] else compare_by_table(one, other)

    return compare_by_table if EncoderName.parse(context.settings.search_encoder) is None else measure


def _try_encoder(context: Context, texts: Sequence[str], *, instead: str) -> tuple[str, list[bytes | None]] | None:
    """Return the configured encoder's model and its vectors of texts; None, with a remark, if it fails or is too slow.

    An encoder that failed is not asked again for a while.
    """
    settings = context.settings
    if time.monotonic() < _paused_until.get(settings.search_encoder, 0.0):
        return None
    try:
        encoder = find_encoder(settings)
        if encoder is None:
            return None
        limit_s = settings.search_encoder_deadline_ms / 1000
        answer = _embed(context, encoder, [redact(clean(text))[0] for text in texts], limit_s=limit_s)
    except LearntError as error:
        _paused_until[settings.search_encoder] = time.monotonic() + _PAUSE_S
        context.remarks.append(f"{instead} with the embedded table instead: {error.message}; {error.hint}")
        return None
    if vectors.list_lacking(context.store.database, encoder.model, after=0, limit=1):
        start_worker(context, at_most_every_s=_PAUSE_S)
    return encoder.model, list(answer.vectors)


def measure_progress(store: Store, settings: Settings) -> VectorProgress | None:
    """Return how far a store's vectors are; None for the embedded table. Raise if there is no such encoder."""
    encoder = find_encoder(settings)
    if encoder is None:
        return None
    done, total = vectors.count(store.database, encoder.model), learnings.count(store.database, Filter(status=None))
    return VectorProgress(model=encoder.model, done=done, total=total)


class Vectors:
    """The vectors of the configured encoder."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def build(self, *, limit_s: float) -> VectorReport:
        """Make the vectors that are missing, and remove those of models that are no longer used."""
        deadline = time.monotonic() + limit_s
        encoder = find_encoder(self._context.settings)
        made, removed = 0, []
        for store in self._own_stores():
            made += self._build_embedded(store, deadline)
            if encoder:
                made += self._build_in(store, encoder, deadline)
            removed += list(self._remove_unused(store, encoder.model if encoder else ""))
        return VectorReport(made=made, removed=tuple(removed))

    def _own_stores(self) -> list[Store]:
        """Return the project's store and the user-wide one; others are never changed."""
        return [store for store in self._context.sound_stores() if not store.place.read_only]

    def _build_embedded(self, store: Store, deadline: float) -> int:
        """Make the vectors of the embedded table for learnings that have none, or only those of an older table."""
        database, made, after = store.database, 0, 0
        while (lacking := vectors.list_lacking(database, MODEL, after=after, limit=_BATCH)) and (
            time.monotonic() < deadline
        ):
            batch = [*learnings.get_all(database, [*lacking]).values()]
            made += self._store(store, MODEL, batch, [Entry.of(learning).vector for learning in batch])
            after = max(lacking.values())
        return made

    def _build_in(self, store: Store, encoder: Encoder, deadline: float) -> int:
        database, made, after = store.database, 0, 0
        self._note_use(store, encoder.model)
        lacking = vectors.list_lacking(database, encoder.model, after=after, limit=_BATCH)
        if lacking:
            vectors.prepare(database)
        while lacking and time.monotonic() < deadline:
            batch = [*learnings.get_all(database, [*lacking]).values()]
            limit_s = max(0.1, min(_BATCH_LIMIT_S, deadline - time.monotonic()))
            try:
                answer = _embed(self._context, encoder, [text_to_encode(one) for one in batch], limit_s=limit_s)
            except ModelFailed as error:
                if made and error.result == TIMEOUT and limit_s < _BATCH_LIMIT_S:
                    break  # it works, but little time was left for this batch: the next run makes it
                raise
            made += self._store(store, encoder.model, batch, answer.vectors)
            after = max(lacking.values())
            lacking = vectors.list_lacking(database, encoder.model, after=after, limit=_BATCH)
        return made

    def _store(self, store: Store, model: str, batch: Sequence[Learning], made: Sequence[bytes | None]) -> int:
        """Store the vectors of learnings that have not been changed or given one meanwhile; return how many."""
        database = store.database
        with store.transaction():
            database.lock_words()
            current = learnings.get_all(database, [learning.id for learning in batch])
            numbers = vectors.list_lacking_of(database, model, [*current])
            fresh = {
                numbers[learning.id]: vector
                for learning, vector in zip(batch, made, strict=True)
                if vector and learning.id in numbers and current[learning.id].version == learning.version
            }
            vectors.put(database, fresh, model=model)
            if fresh and model == MODEL:
                database.renew_learnings_stamp()  # other processes keep the signs of these vectors by the stamp
        return len(fresh)

    def _note_use(self, store: Store, model: str) -> None:
        """Record, once a day, that a model is used."""
        now = self._context.clock()
        if mined.read_at(store.database, _USED + model) < now - DAY_MS:
            with store.transaction():
                mined.note_read(store.database, _USED + model, size=0, task="", at=now)

    def _remove_unused(self, store: Store, used: str) -> Iterator[str]:
        """Remove the vectors of models that nobody has used for a while, and yield the models."""
        database, since = store.database, self._context.clock() - _KEPT_MS
        for model in vectors.list_models(database):
            if model not in (MODEL, used) and mined.read_at(database, _USED + model) < since:
                with store.transaction():
                    database.lock_words()
                    vectors.remove_model(database, model)
                    mined.forget_read(database, _USED + model)
                yield model


def text_to_encode(learning: Learning) -> str:
    """Return what an encoder reads of a learning: what it is about first, because long texts are cut; nothing twice."""
    parts = [learning.title, *learning.cues, *learning.model_cues, learning.action, learning.observation]
    folded = [fold(part) for part in parts]
    return "\n".join(
        part
        for place, part in enumerate(folded)
        if part
        and not any(part in other for other in (*folded[:place], *folded[place + 1 :]) if other != part)
        and part not in folded[:place]
    )


def _embed(context: Context, encoder: Encoder, texts: Sequence[str], *, limit_s: float) -> EncoderAnswer:
    """Return the vectors of texts; if the encoder has a price, under the spending caps."""
    price = context.settings.search_encoder_price if encoder.is_service else 0.0
    if not price:
        return encoder.embed(texts, limit_s=limit_s)
    recorder = CallRecorder(context, task="", regeneration="")
    provider = Provider(name="openai", model=encoder.model)
    forecast = sum(map(estimate_tokens, texts)) * price / _MILLION
    call = recorder.begin(ModelRequest(purpose=_PURPOSE, prompt=""), provider, forecast)
    outcome = {"result": "failed", "reason": "the call was interrupted", "tokens_in": None, "cost_usd": forecast}
    began = time.monotonic()
    try:
        answer = encoder.embed(texts, limit_s=limit_s)
        cost = forecast if answer.tokens is None else answer.tokens * price / _MILLION
        outcome = {"result": DONE, "reason": "", "tokens_in": answer.tokens, "cost_usd": cost}
    except ModelFailed as error:
        outcome.update(result=error.result, reason=error.message)
        raise
    finally:
        recorder.end(call, **outcome, tokens_out=None, duration_ms=round((time.monotonic() - began) * 1000))
    return answer
