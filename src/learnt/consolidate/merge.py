"""Merge learnings without loss: every sentence of every source must be in the successor, or there is no merge.

A sentence is in a successor if one of the successor's sentences has all its words one after the other, and the same
negations, modal words and conditions. Endings, articles and punctuation may differ, and words of other sources may
stand before and behind. Code and quotations must be there letter by letter, as a whole. Nobody who proposes a successor
is believed: a program, a model and a person are checked alike.

    check_merge    what the sources say and a proposed successor does not
    find_invented  what a proposed successor says and no source does
    combine        a successor that loses nothing: one of the sources, with the sentences that it lacks
    add_up         the successor's fields that are not text: counts, cues, tags, triggers
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from learnt.model import CUE_LIMIT, OBSERVED_LIMIT, PARAGRAPHS, TAG_LIMIT, Learning, Triggers, Value
from learnt.text.clean import fold
from learnt.text.statements import complete_title, is_negating, is_specific, normalise

NUMBER, NAME, CODE, QUOTE = "number", "name", "code", "quote"
NEGATION, MODAL, CONDITION, WORD, STATEMENT = "negation", "modal", "condition", "word", "statement"
KINDS = (NUMBER, NAME, CODE, QUOTE, NEGATION, MODAL, CONDITION, WORD, STATEMENT)
_TOKEN = re.compile(r"(?<!\w)--?\w[\w=./:-]*|[#@$~.]?\w(?:[\w./:#@+*=%’'-]*[\w*+#/%])?(?:\(\))?|[<>≤≥=]+")
_CODE = re.compile(r"`([^`\n]+)`")
_QUOTE = re.compile(r"“([^”\n]+)”|\"([^\"\n]+)\"")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_NEGATED = "not"
_MORE_NEGATIONS = frozenset(
    "without nowhere hardly rarely seldom barely scarcely unable fail fails instead rather than except lacks ohne "
    "statt sans sin".split()
)
_MODALS = frozenset(
    "must should shall may might can could would will ought need needs needn required optional always only at-least "
    "sometimes usually mostly often ever all any every each some most least exactly about approximately "
    "muss müssen soll sollte darf kann immer nur doit doivent peut toujours seulement debe deben puede siempre solo "
    "solamente".split()
)
_CONDITIONS = frozenset(
    "if unless when whenever while until till before after since once during where wherever otherwise provided because "
    "although though but then first last both either neither or wenn falls außer sobald bevor nachdem während bis "
    "si sauf quand lorsque avant après pendant jusque cuando mientras antes después hasta excepto".split()
)
_EMPTY = frozenset(
    "a an the is are was were be been being am it its this that these those there here and to of for i you we he she "
    "they them our your their my his her me us as so do does did doing have has had having also just very too please "
    "s t re ve ll d m".split()
)


class Loss(Value):
    """Something that a source says and a proposed successor does not."""

    source: str
    """The source's id."""
    kind: str
    """One of `KINDS`."""
    text: str


class _Word(Value):
    """A word of a sentence: how it is compared, its kind, and how it is written."""

    form: str
    kind: str
    text: str


class _SentenceWords(Value):
    """A sentence as a sequence of words; `guards` are its negations, modal words and conditions."""

    text: str
    words: tuple[_Word, ...]
    guards: Mapping[str, int]


def check_merge(sources: Sequence[Learning], successor: Learning) -> list[Loss]:
    """Return what sources say and a proposed successor does not; if it is empty, nothing is lost."""
    sentences, said = _read_learning(successor), _list_quoted(_list_texts(successor))
    return [loss for source in sources for loss in _list_losses(source, sentences, said)]


def find_invented(sources: Sequence[Learning], successor: Learning) -> list[str]:
    """Return what a proposed successor says and no source does: words of its own, and sentences made of their words."""
    known = [sentence for source in sources for sentence in _read_learning(source)]
    forms = {word.form for sentence in known for word in sentence.words}
    invented: dict[str, None] = {}
    for sentence in _read_learning(successor):
        own = [word.text for word in sentence.words if word.form not in forms]
        if not own and not any(_contains(sentence, other) for other in known):
            own = [sentence.text]
        invented.update(dict.fromkeys(own))
    return list(invented)


def combine(sources: Sequence[Learning], base: Learning) -> Learning:
    """Return one of the sources with the sentences of the others that it lacks; they are added to its paragraphs.

    A title goes into the observation. The result may be longer than a learning can be; then it raises InvalidValue.
    """
    successor = base
    for source in sources:
        for name in ("title", *PARAGRAPHS):
            text = complete_title(source.title, source.observation) if name == "title" else getattr(source, name)
            lacking = _find_lacking(source, text if name != "title" else source.advise(text), successor)
            field = "observation" if name == "title" else name
            if lacking:
                successor = successor.replace(**{field: _append(getattr(successor, field), lacking)})
    return successor


def add_up(sources: Sequence[Learning], successor: Learning) -> dict[str, Any]:
    """Return the changes to a successor's other fields: what speaks for the sources speaks for it.

    A source counts as a recurrence unless it comes from the same task.
    """
    all_of_them = (successor, *sources)
    changes: dict[str, Any] = {
        name: sum(getattr(one, name) for one in all_of_them) for name in ("times_helpful", "times_not_helpful")
    }
    again = sum(not source.task or source.task != successor.task for source in sources)
    changes["recurrences"] = sum(one.recurrences for one in all_of_them) + again
    for name in ("last_helpful_at", "last_injected_at"):
        changes[name] = max((at for one in all_of_them if (at := getattr(one, name)) is not None), default=None)
    limits = {"tags": TAG_LIMIT, "cues": CUE_LIMIT, "model_cues": CUE_LIMIT, "observed_cues": OBSERVED_LIMIT}
    for name, limit in limits.items():
        changes[name] = _unite(*(getattr(one, name) for one in all_of_them))[:limit]
    triggers = {kind: _unite(*(getattr(one.triggers, kind) for one in all_of_them)) for kind in Triggers.fields}
    changes["triggers"] = Triggers(**{kind: words[:TAG_LIMIT] for kind, words in triggers.items()})
    return changes


def _unite(*lists: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry for entries in lists for entry in entries))


def _list_texts(learning: Learning) -> list[str]:
    stated = learning.advise(complete_title(learning.title, learning.observation))
    return [stated, *(text for name in PARAGRAPHS if (text := getattr(learning, name)))]


def _read_learning(learning: Learning) -> tuple[_SentenceWords, ...]:
    return _read_sentences("\n".join(_list_texts(learning)))


def _list_losses(source: Learning, sentences: Sequence[_SentenceWords], said: Mapping[str, str]) -> Iterator[Loss]:
    reported: set[tuple[str, str]] = set()
    for kind, text in _list_missing(_list_texts(source), sentences, said):
        if (kind, text) not in reported:
            reported.add((kind, text))
            yield Loss(source=source.id, kind=kind, text=text)


def _list_missing(
    texts: Sequence[str], sentences: Sequence[_SentenceWords], said: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield what is missing of some texts, and of which kind it is; `said` is the code and the quotations there are."""
    written = {word.text for sentence in sentences for word in sentence.words}
    for text in texts:
        for quoted, kind in _list_quoted([text]).items():
            if said.get(quoted) != kind and quoted not in written:
                yield kind, quoted
        for sentence in _read_sentences(text):
            if not any(_contains(other, sentence) for other in sentences):
                yield from _explain(sentence, sentences)


def _list_quoted(texts: Sequence[str]) -> dict[str, str]:
    """Return the code and the quotations in some texts, each with its kind."""
    return {
        fold(next(filter(None, match.groups()), "")): kind
        for text in texts
        for literal, kind in ((_QUOTE, QUOTE), (_CODE, CODE))
        for match in literal.finditer(text)
    }


def _find_lacking(source: Learning, text: str, successor: Learning) -> str:
    """Return the sentences of a source's text that a successor does not have, as they are written."""
    sentences, said = _read_learning(successor), _list_quoted(_list_texts(successor))
    lacking = [part for part in _split(text) if any(_list_missing([part], sentences, said))]
    return "\n".join(lacking) if source.id != successor.id else ""


def _append(text: str, more: str) -> str:
    return f"{text}\n{more}" if text else more


def _split(text: str) -> list[str]:
    return [part for part in _SENTENCE.split(text) if part.strip()]


@lru_cache(maxsize=2_000)
def _read_sentences(text: str) -> tuple[_SentenceWords, ...]:
    sentences = []
    for part in _split(text):
        words = tuple(_read_words(part))
        guards = Counter(word.form for word in words if word.kind in (NEGATION, MODAL, CONDITION))
        if words:
            sentences.append(_SentenceWords(text=fold(part), words=words, guards=dict(guards)))
    return tuple(sentences)


def _read_words(text: str) -> Iterator[_Word]:
    for match in _TOKEN.finditer(text):
        written = match[0]
        plain = written.lower().replace("’", "'").removesuffix("'s")
        if plain in _MORE_NEGATIONS:
            yield _Word(form=plain, kind=NEGATION, text=written)
        elif is_negating(plain):
            yield _Word(form=_NEGATED, kind=NEGATION, text=written)
        elif plain in _MODALS:
            yield _Word(form=plain, kind=MODAL, text=written)
        elif plain in _CONDITIONS:
            yield _Word(form=plain, kind=CONDITION, text=written)
        elif any(map(str.isdigit, plain)):
            yield _Word(form=plain.strip("."), kind=NUMBER, text=written)
        elif is_specific(written, starts=match.start() == 0):
            yield _Word(form=_reduce(plain.rstrip("./:") or plain), kind=NAME, text=written)
        elif plain not in _EMPTY:
            yield _Word(form=normalise(plain), kind=WORD, text=written)


def _reduce(name: str) -> str:
    """Return a name as it is compared: at the start of a sentence it looks like any other word."""
    return normalise(name) if name.isalpha() else name


def _contains(successor: _SentenceWords, source: _SentenceWords) -> bool:
    """Return whether a sentence has all words of another one after the other, and no other negation or condition."""
    if successor.guards != source.guards:
        return False
    wanted, forms = [word.form for word in source.words], [word.form for word in successor.words]
    return any(forms[start : start + len(wanted)] == wanted for start in range(len(forms) - len(wanted) + 1))


def _explain(lost: _SentenceWords, sentences: Sequence[_SentenceWords]) -> Iterator[tuple[str, str]]:
    """Yield what is missing of a sentence where most of it is; the whole sentence if it is all there, but otherwise."""
    wanted = Counter(word.form for word in lost.words)
    counted = [Counter(word.form for word in sentence.words) for sentence in sentences]
    nearest = max(counted, key=lambda forms: (wanted & forms).total(), default=Counter[str]())
    missing = wanted - nearest
    for word in lost.words:
        if missing[word.form] > 0:
            missing[word.form] -= 1
            yield word.kind, word.text
    if not wanted - nearest:
        yield STATEMENT, lost.text
