"""Find learnings in stores: by triggers, by words and by meaning.

Any text can be searched for, and searching for a long text is fast, too. Rare words say the most and are the cheapest
to look up, so they are looked up first, until there are enough candidates. Common words are still used to rank the
candidates. Learnings that mean something similar are found without any common word.

A hit has two figures. Its `score` orders a search: BM25 and likeness of meaning, both in relation to the best
candidate, added with weights; an encoder's vectors can replace those of the embedded table. Its `relevance` decides
about a brief: the probability that it is wanted (`relevance.py`), always by the embedded table. All stores count as
one, so that a hit in one store can be compared with a hit in another. The same arguments always produce the same order:
nothing here reads the clock or the settings.
"""

from __future__ import annotations

import math
from collections import Counter

from learnt.model import Hit, Value
from learnt.recall.query import EVERYDAY, Query
from learnt.recall.relevance import (
    EVERYDAY_WEIGHT,
    FEATURES,
    estimate_probability,
    estimate_self_meaning,
    list_margins,
    measure_strength,
    weigh_shared_words,
    weigh_word,
)
from learnt.store import index, learnings
from learnt.text.meaning import embed, likenesses
from learnt.text.triggers import Situation, SituationMatcher
from learnt.text.words import JOINED, mark, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from learnt.model import Learning
    from learnt.store.database import Database
    from learnt.store.index import Candidate, Counts, Filter

_MIN_CANDIDATES = 60
_BY_MEANING = _BY_ENCODER = 30  # so many candidates are looked for by meaning
_FEW = 50  # reading the words of so few learnings is faster than searching the index
_MAX_WORDS = 300
_MAX_LOOKED_UP = 16
_USUAL_WORDS = 100  # if a text has more words, the limit grows by one for every two further words
MAX_POSTINGS = 5_000
_SATURATION = 0.9
_MAX_SATURATED = _SATURATION + 1
_LENGTH_WEIGHT = 0.75
BY_SENTENCE = 24  # so many candidates are compared with each sentence
BY_SELF = 10  # so many of them by title and cues
_MIN_PREFIX, _MAX_COMPLETIONS = 4, 5
_MANY_CUE_WORDS = 20
SEMANTIC_WEIGHT = ENCODER_WEIGHT = 0.4
_REST = 0.1  # how much the encoder's likeness of the least like candidate counts
# Without a common word, texts that have nothing to do with each other are usually less alike than this.
_MIN_LIKENESS = 0.25


class Wanted(Value):
    """One part of a search: which learnings to find, how many at most, and how many are enough."""

    which: Filter
    limit: int
    least: int = 0
    by_relevance: bool = False
    """Whether the most relevant are wanted, instead of those with the highest scores."""


class Source(Value):
    """A store to search in, and the scope of its learnings."""

    database: Database
    scope: str


class Encoded(Value):
    """What a text means by an encoder's model, and how much that counts."""

    model: str
    vector: bytes
    weight: float = ENCODER_WEIGHT


def find_each(
    sources: Sequence[Source],
    situation: Situation,
    which: Filter,
    parts: Sequence[Wanted],
    *,
    semantic_weight: float = SEMANTIC_WEIGHT,
    encoded: Encoded | None = None,
) -> list[list[Hit]]:
    """Return the best hits for each part of a search; `which` is the filter that all parts have in common.

    If `encoded` is given, it orders the hits instead of the embedded table, as soon as most candidates have vectors of
    its model. A candidate without one is compared by the embedded table.

    Usually one search is enough for all parts. A part that finds too few candidates, because there are too many for the
    other parts, is searched separately.
    """
    search = _Search(sources, situation, which, parts, semantic_weight=semantic_weight, encoded=encoded)
    return search.find()


def measure(sources: Sequence[Source], situation: Situation, which: Filter, id: str) -> tuple[Hit | None, Hit | None]:
    """Return the hit for one learning, whether `which` allows it or not, and the best hit for any other one."""
    search = _Search(sources, situation, which, [], also=id)
    return search.measure(id)


def weigh_cue(sources: Sequence[Source], cue: str) -> tuple[float, float]:
    """Return the weight of all words that a learning would share with a text if it had this cue, and of the rarest."""
    wanted = [*dict.fromkeys(words(cue))]
    total = _add_up([index.counts(source.database, wanted) for source in sources])
    weights = [
        EVERYDAY_WEIGHT if word in EVERYDAY else weigh_word(word, total.frequencies.get(word, 0) + 1, total.learnings)
        for word in wanted
    ]
    return sum(weights), max(weights, default=0.0)


def find_nearest(database: Database, text: str, which: Filter, *, limit: int) -> list[Hit]:
    """Return the learnings that are most like a text by words and meaning, best first, whatever their triggers."""
    search = _Search([Source(database=database, scope="")], Situation(text=text), which, [])
    return search.find_alike(limit)


def highlights(hit: Hit) -> dict[str, str]:
    """Return the texts of the matched fields, with the matched words in `<mark>`."""
    return {field: mark(index.text_of(hit.learning, field), hit.words) for field in hit.matched_fields}


def words_to_look_up(wanted: Sequence[str], frequencies: Mapping[str, int]) -> list[str]:
    """Return the words to look up, rarest first; words that do not occur in any learning are left out."""
    rarest_first = sorted((word for word in wanted if frequencies.get(word)), key=lambda word: frequencies[word])
    chosen: list[str] = []
    postings = 0
    for word in rarest_first[: _MAX_LOOKED_UP + max(0, len(wanted) - _USUAL_WORDS) // 2]:
        postings += frequencies[word]
        if chosen and postings > MAX_POSTINGS:
            break
        chosen.append(word)
    return chosen


class _Found:
    """A candidate of one store during a search, with everything that is known about it."""

    __slots__ = (
        *(
            "alike",
            "by_meaning",
            "by_words",
            "candidate",
            "cued",
            "likeness",
            "meaning",
            "rarest",
            "self_meaning",
            "shares",
            "source",
        ),
        *("strength", "times", "trigger", "words"),
    )

    def __init__(self, candidate: Candidate, source: int, trigger: str) -> None:
        self.candidate = candidate
        self.source = source
        self.trigger = trigger
        self.times = Counter(candidate.words())
        self.shares: dict[str, float] = {}
        self.by_words = self.by_meaning = self.alike = 0.0
        self.likeness: Any = None  # a number, once it is known
        self.words = self.rarest = self.meaning = self.self_meaning = self.strength = 0.0
        self.cued = min(1.0, len(candidate.texts.get("cues", "").split()) / _MANY_CUE_WORDS)

    def list_features(self) -> dict[str, float]:
        """Return the figures that decide about its relevance."""
        values = (self.words, self.rarest, self.meaning, self.self_meaning, self.cued, bool(self.trigger))
        return dict(zip(FEATURES, values, strict=True))

    def update_strength(self) -> None:
        self.strength = measure_strength(
            words=self.words,
            rarest=self.rarest,
            meaning=self.meaning,
            self_meaning=self.self_meaning,
            cued=self.cued,
            trigger=bool(self.trigger),
        )


class _Search:
    """A search in several stores."""

    def __init__(
        self,
        sources: Sequence[Source],
        situation: Situation,
        which: Filter,
        parts: Sequence[Wanted],
        *,
        semantic_weight: float = SEMANTIC_WEIGHT,
        encoded: Encoded | None = None,
        also: str = "",
    ) -> None:
        self._sources, self._which, self._parts = sources, which, parts
        self._also = also
        self._semantic_weight, self._encoded = semantic_weight, encoded
        self._query = Query(situation.text)
        self._counts = [index.counts(source.database, _with_joined(self._query.words)) for source in sources]
        forms = self._find_forms()
        self._total = _add_up(self._counts)
        in_index = dict.fromkeys(form for word in self._query.words for form in forms.get(word, (word,)))
        self._wanted = _most_significant([*in_index], self._total.frequencies)
        self._sentences = [
            frozenset(form for word in sentence for form in forms.get(word, (word,)))
            for sentence in self._query.sentences
        ]
        self._worth = _worth_of(self._wanted, self._total)
        self._weights = self._weigh_words()
        self._vector = self._query.embed_whole()
        self._matcher = SituationMatcher(situation)
        self._most = max(_MIN_CANDIDATES, *(4 * part.limit for part in parts), 0)
        self._vectors = self._list_vectors() if self._vector is not None else []
        self._found: dict[str, _Found] = {}
        self._learnings: dict[str, Learning] = {}
        self._best_words = 0.0
        self._reached_limit = False
        for number in range(len(sources)):
            self._search_source(number)

    def find(self) -> list[list[Hit]]:
        """Return the best hits for each part."""
        chosen = [self._fitting(part) for part in self._parts]
        self._score()
        self._estimate_strengths()
        self._compare_with_titles_and_cues()
        best = [self._order(found, part)[: part.limit] for found, part in zip(chosen, self._parts, strict=True)]
        hits = self._make_hits({one.candidate.id: one for some in best for one in some}.values())
        return [[hits[one.candidate.id] for one in some if one.candidate.id in hits] for some in best]

    def find_alike(self, limit: int) -> list[Hit]:
        """Return the best hits by score, whatever their triggers."""
        self._score()
        self._estimate_strengths()
        for one in self._found.values():
            one.trigger = ""
        best = sorted(self._found.values(), key=self._rank_by_score)[:limit]
        hits = self._make_hits(best)
        return [hits[one.candidate.id] for one in best if one.candidate.id in hits]

    def measure(self, id: str) -> tuple[Hit | None, Hit | None]:
        """Return the hit for one learning, and the best hit for any other one."""
        self._score()
        self._estimate_strengths()
        self._compare_with_titles_and_cues(also=self._found.get(id))
        best = sorted(self._found.values(), key=_rank_by_strength)[:BY_SELF]
        hits = self._make_hits({one.candidate.id: one for one in (*best, self._found.get(id)) if one}.values())
        others = sorted((hit for other, hit in hits.items() if other != id), key=lambda hit: -hit.relevance)
        return hits.get(id), others[0] if others else None

    def _find_forms(self) -> dict[str, tuple[str, ...]]:
        """Return the words of the text that no learning contains, with the forms of them that learnings contain.

        These are identifiers written without separators, and words that begin with the given one: people shorten words
        when they type, so `auth` finds `authentication`.
        """
        known = {word for counts in self._counts for word in counts.frequencies}
        unknown = [word for word in self._query.words if word not in known]
        forms = {word: (JOINED + word,) for word in unknown if JOINED + word in known}
        short = [word for word in unknown if word not in forms and len(word) >= _MIN_PREFIX and word.isalpha()]
        for number, source in enumerate(self._sources) if short else ():
            longer = index.complete_words(source.database, short, most=_MAX_COMPLETIONS)
            self._counts[number] = _with_frequencies(self._counts[number], longer)
            for word in short:
                forms[word] = (*forms.get(word, ()), *(one for one in longer if one.startswith(word)))
        return {word: found for word, found in forms.items() if found}

    def _weigh_words(self) -> dict[str, float]:
        size, frequencies = self._total.learnings, self._total.frequencies
        return {
            word: EVERYDAY_WEIGHT if word in EVERYDAY else weigh_word(word, frequencies.get(word, 0), size)
            for word in dict.fromkeys((*(word for sentence in self._sentences for word in sentence), *self._wanted))
        }

    def _search_source(self, number: int) -> None:
        """Find the candidates of a store."""
        database = self._sources[number].database
        triggers = index.find_by_triggers(database, self._matcher.anchors(), self._matcher.matches, self._which)
        candidates = {one.id: one for one in self._by_words(number, self._which, most=self._most)}
        self._reached_limit = self._reached_limit or len(candidates) >= self._most
        alike: dict[str, float] = {}
        if self._vector is not None and self._semantic_weight:
            alike = dict(index.find_by_meaning(database, self._vector, self._which, limit=_BY_MEANING))
        near: dict[str, float] = {}
        if self._encoded:
            vector, model = self._encoded.vector, self._encoded.model
            near = dict(index.find_by_meaning(database, vector, self._which, limit=_BY_ENCODER, model=model))
        also = [self._also] if self._also else []
        missing = [id for id in dict.fromkeys((*triggers, *alike, *near, *also)) if id not in candidates]
        candidates.update((one.id, one) for one in (index.read_candidates(database, missing) if missing else ()))
        for id, candidate in candidates.items():
            if id not in self._found:  # otherwise it is a copy of a learning in another store
                self._found[id] = _Found(candidate, number, triggers.get(id, ""))
                self._found[id].likeness = alike.get(id)

    def _by_words(self, number: int, which: Filter, *, most: int) -> list[Candidate]:
        counts = self._counts[number]
        chosen = words_to_look_up(self._wanted, counts.frequencies)
        if not chosen:
            return []
        newest = _newest_to_search(counts, chosen)
        database = self._sources[number].database
        return index.find_by_words(database, _worth_of(chosen, self._total), which, limit=most, newest=newest)

    def _fitting(self, part: Wanted) -> list[str]:
        """Return the ids of the candidates for a part; if there are too few, search for this part alone."""

        def list_fitting() -> list[str]:
            return [
                id for id, one in self._found.items() if part.which.accepts(one.candidate, triggered=bool(one.trigger))
            ]

        fitting = list_fitting()
        if not (self._reached_limit and len(fitting) < part.least):
            return fitting
        for number in range(len(self._sources)):
            for candidate in self._search_part(number, part):
                self._found.setdefault(candidate.id, _Found(candidate, number, ""))
        return list_fitting()

    def _search_part(self, number: int, part: Wanted) -> list[Candidate]:
        """Return the candidates for one part; if only a few learnings match its filter, return all of them."""
        database = self._sources[number].database
        ids = index.find_ids(database, part.which, limit=_FEW + 1)
        if len(ids) <= _FEW:
            return index.read_candidates(database, ids) if ids else []
        return self._by_words(number, part.which, most=4 * part.limit)

    def _score(self) -> None:
        """Determine what each word and the meaning add to each candidate's score."""
        for one in self._found.values():
            one.shares = _shares(one, self._worth, self._total)
            one.by_words = sum(one.shares.values())
        for number, source in enumerate(self._sources) if self._vector is not None else ():
            ids = [id for id, one in self._found.items() if one.source == number and one.likeness is None]
            vectors = index.read_vectors(source.database, ids) if ids else {}
            for id, likeness in zip(vectors, likenesses(self._vector or b"", [*vectors.values()]), strict=True):
                self._found[id].likeness = likeness
        for one in self._found.values():
            one.likeness = max(0.0, one.likeness or 0.0)
        self._best_words = max((one.by_words for one in self._found.values()), default=0.0)
        self._compare_meanings()

    def _compare_meanings(self) -> None:
        """Determine how like each candidate's meaning is in relation to the best: by the encoder, if it can be used."""
        encoded = self._read_encoded(self._encoded) if self._encoded else {}
        meanings: dict[str, float] = {id: one.likeness for id, one in self._found.items()}
        floor = 0.0
        if self._encoded and 2 * len(encoded) > len(meanings):
            self._semantic_weight = self._encoded.weight
            # Candidates without a vector of the encoder are compared by the embedded table, on the encoder's scale.
            scale = sum(encoded.values()) / (sum(meanings[id] for id in encoded) or 1.0)
            most = max(encoded.values())
            meanings = {id: encoded.get(id, min(most, scale * likeness)) for id, likeness in meanings.items()}
            floor = _floor_of(meanings.values())
        span = max(meanings.values(), default=0.0) - floor
        for id, one in self._found.items():
            one.alike = meanings[id]
            one.by_meaning = max(0.0, one.alike - floor) / span if span > 0 else 0.0

    def _read_encoded(self, encoded: Encoded) -> dict[str, float]:
        """Return how like the candidates are by the encoder's vectors; candidates without one are left out."""
        found: dict[str, float] = {}
        for number, source in enumerate(self._sources):
            here = [id for id, one in self._found.items() if one.source == number]
            vectors = index.read_vectors(source.database, here, model=encoded.model) if here else {}
            whole = {id: vector for id, vector in vectors.items() if len(vector) == len(encoded.vector)}
            found |= zip(whole, likenesses(encoded.vector, [*whole.values()]), strict=True)
        return found

    def _order(self, ids: Sequence[str], part: Wanted) -> list[_Found]:
        """Return the candidates for a part, best first; without those for which nothing speaks."""
        found = [self._found[id] for id in ids]
        if part.by_relevance:
            return sorted((one for one in found if one.strength > measure_strength()), key=_rank_by_strength)
        return sorted(filter(self._is_found, found), key=self._rank_by_score)

    def _is_found(self, one: _Found) -> bool:
        """Return whether a candidate belongs into the results of a search: by a trigger, by words or by meaning."""
        return bool(one.trigger) or (self._combine(one) > 0 and (one.by_words > 0 or one.alike >= _MIN_LIKENESS))

    def _rank_by_score(self, one: _Found) -> tuple[object, ...]:
        candidate = one.candidate
        return (not one.trigger, -self._combine(one), -candidate.confidence, -candidate.created_at, candidate.id)

    def _combine(self, one: _Found) -> float:
        """Return a candidate's score: BM25 and likeness, each in relation to the best candidate."""
        by_words = one.by_words / self._best_words if self._best_words else 0.0
        return (1 - self._semantic_weight) * by_words + self._semantic_weight * one.by_meaning

    def _estimate_strengths(self) -> None:
        """Determine how much speaks for each candidate, the best ones by their best sentence."""
        for one in self._found.values():
            one.words, one.rarest = weigh_shared_words(self._sentences, one.times, self._weights)
            one.meaning = one.self_meaning = one.likeness
            one.update_strength()
        if len(self._sentences) < 2:
            return  # the sentence is the whole text
        best = sorted(self._found.values(), key=_rank_by_strength)[:BY_SENTENCE]
        for number, source in enumerate(self._sources) if self._vectors else ():
            here = {one.candidate.id: one for one in best if one.source == number}
            for id, vector in (index.read_vectors(source.database, [*here]) if here else {}).items():
                one = here[id]
                one.meaning = one.self_meaning = max((one.likeness, *likenesses(vector, self._vectors)))
                one.update_strength()

    def _compare_with_titles_and_cues(self, also: _Found | None = None) -> None:
        """Determine for the strongest candidates how like a sentence is to what they say they are about."""
        best = sorted(self._found.values(), key=_rank_by_strength)[:BY_SELF]
        for one, learning in self._read([*best, *([also] if also and also not in best else [])]):
            units = map(words, (learning.title, *learning.all_cues))
            one.self_meaning = estimate_self_meaning([self._liken(unit) for unit in units if unit])
            one.update_strength()

    def _liken(self, unit: Sequence[str]) -> float:
        """Return how like the best sentence is to a title or cue: by meaning, or by its words if none is known."""
        vector = embed(unit) if self._vectors else None
        if vector is not None:
            return max(likenesses(vector, self._vectors))
        return max((len(sentence.intersection(unit)) / len(set(unit)) for sentence in self._sentences), default=0.0)

    def _list_vectors(self) -> list[bytes]:
        """Return the vectors of the sentences that say the most; those that share no word with a learning come last."""
        known = {word for word, count in self._total.frequencies.items() if count} - EVERYDAY

        def weigh(sentence: frozenset[str]) -> float:
            return 0.0 if sentence.isdisjoint(known) else sum(map(self._weights.__getitem__, sentence))

        return self._query.list_vectors([*map(weigh, self._sentences)])

    def _read(self, found: Iterable[_Found]) -> list[tuple[_Found, Learning]]:
        """Return candidates with their learnings; without those that have just been purged."""
        wanted = [*found]
        for number, source in enumerate(self._sources):
            ids = [
                one.candidate.id for one in wanted if one.source == number and one.candidate.id not in self._learnings
            ]
            read = learnings.get_all(source.database, ids) if ids else {}
            self._learnings |= {id: _with_scope(learning, source.scope) for id, learning in read.items()}
        return [(one, self._learnings[one.candidate.id]) for one in wanted if one.candidate.id in self._learnings]

    def _make_hits(self, found: Iterable[_Found]) -> dict[str, Hit]:
        """Return the hits of candidates, by their ids."""
        everybody = [*self._found.values()]
        margins = list_margins([one.strength for one in everybody])
        margin_of = {one.candidate.id: margin for one, margin in zip(everybody, margins, strict=True)}
        return {
            learning.id: Hit(
                learning=learning,
                score=self._combine(one),
                matched_fields=_matched_fields(one.candidate.texts, self._worth),
                words=one.shares,
                relevance=estimate_probability(one.strength, margin_of[learning.id]),
                trigger=one.trigger,
                features={**one.list_features(), "margin": margin_of[learning.id]},
            )
            for one, learning in self._read(found)
        }


def _floor_of(likenesses: Collection[float]) -> float:
    """Return the likeness that counts as none: some models find all texts alike. The least like candidate has some."""
    least, most = min(likenesses), max(likenesses)
    return max(0.0, least - (_REST * (most - least) if most > least else most))


def _with_scope(learning: Learning, scope: str) -> Learning:
    return learning if not scope or learning.scope == scope else learning.replace(scope=scope)


def _rank_by_strength(one: _Found) -> tuple[object, ...]:
    candidate = one.candidate
    return (not one.trigger, -one.strength, -candidate.confidence, -candidate.created_at, candidate.id)


def _add_up(every: Sequence[Counts]) -> Counts:
    """Return the counts of several stores as if they were one."""
    if len(every) == 1:
        return every[0]
    frequencies: Counter[str] = Counter()
    for counts in every:
        frequencies.update(counts.frequencies)
    return index.Counts(
        learnings=sum(counts.learnings for counts in every),
        words=sum(counts.words for counts in every),
        frequencies=frequencies,
    )


def _with_frequencies(counts: Counts, more: Mapping[str, int]) -> Counts:
    return counts.replace(frequencies={**counts.frequencies, **more})


def _with_joined(wanted: Sequence[str]) -> list[str]:
    """Return the words and their joined forms, because a word might be an identifier written without separators."""
    return [*wanted, *(JOINED + word for word in wanted if word.isalpha())]


def _most_significant(wanted: Sequence[str], frequencies: Mapping[str, int]) -> tuple[str, ...]:
    """Return the words to search for: all words of a usual text, or the most significant words of a long text.

    Words that occur in learnings come first, the rarest of them before the others. Among equally rare words, those at
    the end of the text come first, because an error at the end of a long log must be found.
    """
    if len(wanted) <= _MAX_WORDS:
        return tuple(wanted)
    last_first = wanted[::-1]
    rarest = sorted(last_first, key=lambda word: frequencies.get(word) or math.inf)
    return tuple(rarest[:_MAX_WORDS])


def _newest_to_search(counts: Counts, chosen: Sequence[str]) -> int | None:
    """Return how many of the newest learnings to search, so that a search for common words is fast; None means all."""
    commonest = max((counts.frequencies[word] for word in chosen), default=0)
    if commonest <= MAX_POSTINGS:
        return None
    return counts.learnings * MAX_POSTINGS // commonest


def _worth_of(wanted: Iterable[str], counts: Counts) -> dict[str, float]:
    """Return how much each word that occurs in any learning is worth: more if fewer learnings contain it."""
    frequencies = {word: counts.frequencies.get(word, 0) for word in wanted}
    size = counts.learnings
    return {
        word: math.log(1 + (max(size, count) - count + 0.5) / (count + 0.5))
        for word, count in frequencies.items()
        if count
    }


def _shares(one: _Found, worth: Mapping[str, float], counts: Counts) -> dict[str, float]:
    """Return how much each wanted word adds to a candidate's score."""
    average_length = counts.words / counts.learnings if counts.words else 1.0
    damping = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * one.candidate.length / average_length)
    return {
        word: worth[word] * one.times[word] * _MAX_SATURATED / (one.times[word] + damping)
        for word in worth.keys() & one.times.keys()
    }


def _matched_fields(texts: Mapping[str, str], worth: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(field for field, text in texts.items() if any(word in worth for word in text.split()))
