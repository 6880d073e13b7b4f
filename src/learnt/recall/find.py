"""Find learnings in stores: by triggers, by words and by meaning.

Any text can be searched for, and searching for a long text is fast, too. Rare words say the most and are the cheapest
to look up, so they are looked up first, until there are enough candidates. Common words are still used to rank the
candidates. Learnings that mean something similar are found without any common word.

A hit has two figures. Its `score`, at most 1, orders a search: BM25 in relation to the best candidates and likeness of
meaning, added with weights, and a little of the score of what was learnt right before or after it; an encoder's vectors
count beside those of the embedded table. Of two like statements with different values the newer comes first
(`newest.py`). Its `relevance` decides about a brief: the probability that it is wanted (`relevance.py`), always by the
embedded table. All stores count as one, so that a hit in one store can be compared with a hit in another. The same
arguments always produce the same order: nothing here reads the clock or the settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from learnt.model import Hit, Value
from learnt.recall.query import (
    EVERYDAY,
    Query,
    choose_significant,
    is_short_for,
    lessen_longer,
    newest_to_search,
    selectivity_of,
    words_to_look_up,
    worth_of,
)
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
from learnt.text.meaning import MODEL, liken_words, likenesses
from learnt.text.titles import begins
from learnt.text.triggers import Situation, SituationMatcher
from learnt.text.words import JOINED, mark, numbered_words, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from learnt.model import Learning
    from learnt.store.database import Database
    from learnt.store.index import Candidate, Counts, Filter

_MIN_CANDIDATES = 30
_BY_MEANING = 20  # so many candidates are looked for by meaning
_FEW = 50  # reading the words of so few learnings is faster than searching the index
_SATURATION = 0.9
_MAX_SATURATED = _SATURATION + 1
_LENGTH_WEIGHT = 0.75
BY_SENTENCE = 24  # so many candidates are compared with each sentence
BY_SELF = 6  # so many of them by title and cues
_MIN_PREFIX, _MAX_PREFIX, _MAX_COMPLETIONS = 4, 6, 5
_MANY_CUE_WORDS = 20
SEMANTIC_WEIGHT = 0.65
ENCODER_WEIGHT = 0.7
_USUAL = 10  # BM25 is related to the mean of so many best candidates: one exceptional match must not devalue the others
_POWER, _SCALE = 1.5, 2.0  # of likeness: the best candidates of a search then have about 1, as by words
_POWER_WITH_ENCODER = 2
_TABLE_SHARE = 0.3  # how much the table counts beside an encoder: together they find more than either alone
_REST = 0.1  # how much the encoder's likeness of the least like candidate counts
_NEIGHBOURS, _NEIGHBOUR_WEIGHT = 2, 0.1  # what was learnt one after the other is often about the same work
_NEWEST_AMONG, _BY_SELF_IN_SEARCH, _SELF_WEIGHT = 4, 12, 0.75
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


class Highlights(Mapping[str, str]):
    """The texts of a learning's matched fields, with the matched words in `<mark>`; each is marked when it is read."""

    def __init__(self, learning: Learning, fields: tuple[str, ...], words: Collection[str]) -> None:
        self._learning = learning
        self._fields = fields
        self._words = words

    def __getitem__(self, field: str) -> str:
        if field not in self._fields:
            raise KeyError(field)
        return mark(index.text_of(self._learning, field), self._words)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


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
    total = index.add_up([index.counts(source.database, wanted) for source in sources])
    weights = [
        EVERYDAY_WEIGHT if word in EVERYDAY else weigh_word(word, total.frequencies.get(word, 0) + 1, total.learnings)
        for word in wanted
    ]
    return sum(weights), max(weights, default=0.0)


def find_nearest(database: Database, text: str, which: Filter, *, limit: int) -> list[Hit]:
    """Return the learnings that are most like a text by words and meaning, best first, whatever their triggers."""
    search = _Search([Source(database=database, scope="")], Situation(text=text), which, [])
    return search.find_alike(limit)


class _Found:
    """A candidate of one store during a search, with everything that is known about it."""

    __slots__ = (
        "alike by_meaning by_words candidate cued likeness meaning rarest score self_meaning shares source strength "
        "times trigger words"
    ).split()

    def __init__(self, candidate: Candidate, source: int, trigger: str) -> None:
        self.candidate = candidate
        self.source = source
        self.trigger = trigger
        self.times = candidate.match.times
        self.shares: dict[str, float] = {}
        self.by_words = self.by_meaning = self.alike = self.score = 0.0
        self.likeness = max(0.0, candidate.likeness or 0.0)
        self.words = self.rarest = self.meaning = self.self_meaning = self.strength = 0.0
        self.cued = min(1.0, candidate.match.cue_words / _MANY_CUE_WORDS)

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
        self._total = index.add_up(self._counts)
        in_index = dict.fromkeys(form for word in self._query.words for form in forms.get(word, (word,)))
        self._wanted = choose_significant([*in_index], self._total.frequencies)
        self._sentences = [
            frozenset(form for word in sentence for form in forms.get(word, (word,)))
            for sentence in self._query.sentences
        ]
        self._worth = lessen_longer(worth_of(self._wanted, self._total), forms)
        self._weights = self._weigh_words()
        self._common = [word for word in self._weights if self._total.frequencies.get(word)]
        self._vector = self._query.embed_whole(selectivity_of(self._query.words, self._total))
        self._situation = situation
        self._matcher: SituationMatcher | None = None
        self._most = max(_MIN_CANDIDATES, *(3 * part.limit for part in parts), 0)
        self._vectors = self._list_vectors() if self._vector is not None else []
        self._found: dict[str, _Found] = {}
        self._learnings: dict[str, Learning] = {}
        self._about: dict[str, float] = {}
        self._usual_words = self._highest = 1.0
        self._reached_limit = False
        for number in range(len(sources)):
            self._search_source(number)

    def find(self) -> list[list[Hit]]:
        """Return the best hits for each part."""
        chosen = [self._fitting(part) for part in self._parts]
        self._score()
        self._estimate_strengths()
        by_score = [] if all(part.by_relevance for part in self._parts) else self._list_best(_BY_SELF_IN_SEARCH)
        self._read([*self._list_strongest(), *by_score])  # at once
        self._compare_with_titles_and_cues()
        self._add_what_it_is_about(by_score)
        best = [self._order(found, part)[: part.limit] for found, part in zip(chosen, self._parts, strict=True)]
        hits = self._make_hits({one.candidate.id: one for some in best for one in some}.values())
        return [[hits[one.candidate.id] for one in some if one.candidate.id in hits] for some in best]

    def find_alike(self, limit: int) -> list[Hit]:
        """Return the best hits by score, whatever their triggers."""
        self._score()
        self._estimate_strengths()
        for one in self._found.values():
            one.trigger = ""
        best = self._list_best(limit)
        hits = self._make_hits(best)
        return [hits[one.candidate.id] for one in best if one.candidate.id in hits]

    def measure(self, id: str) -> tuple[Hit | None, Hit | None]:
        """Return the hit for one learning, and the best hit for any other one."""
        self._score()
        self._estimate_strengths()
        self._compare_with_titles_and_cues(also=self._found.get(id))
        best = self._list_strongest()
        hits = self._make_hits({one.candidate.id: one for one in (*best, self._found.get(id)) if one}.values())
        others = sorted((hit for other, hit in hits.items() if other != id), key=lambda hit: -hit.relevance)
        return hits.get(id), others[0] if others else None

    def _find_forms(self) -> dict[str, tuple[str, ...]]:
        """Return the words of the text that learnings contain in other forms, with these forms.

        These are identifiers written without separators, and words that begin with the given one: people shorten words
        when they type, so `auth` finds `authentication`. A word that learnings contain as it is must mean the same.
        """
        known = {word for counts in self._counts for word in counts.frequencies}
        forms = {word: (JOINED + word,) for word in self._query.words if word not in known and JOINED + word in known}
        short = [
            word for word in self._query.words if word not in forms and len(word) >= _MIN_PREFIX and word.isalpha()
        ]
        short = [word for word in short if word not in known or (len(word) <= _MAX_PREFIX and word not in EVERYDAY)]
        for number, source in enumerate(self._sources) if short else ():
            completed = index.complete_words(source.database, short, most=_MAX_COMPLETIONS)
            more = {one: count for longer in completed.values() for one, count in longer.items()}
            self._counts[number] = _with_frequencies(self._counts[number], more)
            for word, longer in completed.items():
                found = (one for one in longer if word not in known or is_short_for(word, one))
                forms[word] = (*forms.get(word, ()), *found)
        return {word: (word, *found) if word in known else found for word, found in forms.items() if found}

    def _weigh_words(self) -> dict[str, float]:
        size, frequencies = self._total.learnings, self._total.frequencies
        return {
            word: EVERYDAY_WEIGHT if word in EVERYDAY else weigh_word(word, frequencies.get(word, 0), size)
            for word in dict.fromkeys((*(word for sentence in self._sentences for word in sentence), *self._wanted))
        }

    def _search_source(self, number: int) -> None:
        """Find the candidates of a store."""
        database = self._sources[number].database
        triggers = self._find_triggered(database)
        meanings = [(self._vector, MODEL)] if self._vector is not None and self._semantic_weight else []
        meanings += [(self._encoded.vector, self._encoded.model)] if self._encoded else []
        by_words, alike = self._find(number, self._which, most=self._most, meanings=meanings)
        self._reached_limit = self._reached_limit or len(by_words) >= self._most
        found = {one.number: one for one in (*by_words, *alike)}
        known = {one.id for one in found.values()}
        others = [id for id in (*triggers, *([self._also] if self._also else [])) if id not in known]
        for candidate in (*found.values(), *index.read_candidates(database, others, self._common)):
            if candidate.id not in self._found:  # otherwise it is a copy of a learning in another store
                self._found[candidate.id] = _Found(candidate, number, triggers.get(candidate.id, ""))

    def _find_triggered(self, database: Database) -> dict[str, str]:
        """Return the ids of the learnings in a store with a matching trigger, each with its trigger."""
        if not index.has_triggers(database):
            return {}
        self._matcher = self._matcher or SituationMatcher(self._situation)
        return index.find_by_triggers(database, self._matcher.anchors(), self._matcher.matches, self._which)

    def _find(
        self, number: int, which: Filter, *, most: int, meanings: Sequence[tuple[bytes, str]] = ()
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Return the candidates of a store by words, at most so many, and by meaning."""
        counts = self._counts[number]
        chosen = words_to_look_up(self._wanted, counts.frequencies)
        return index.find(
            self._sources[number].database,
            which,
            weights={word: self._worth[word] for word in chosen},
            limit=most,
            newest=newest_to_search(counts, chosen),
            meanings=meanings,
            near=_BY_MEANING,
            wanted=self._common,
        )

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
            return index.read_candidates(database, ids, self._common)
        return self._find(number, part.which, most=4 * part.limit)[0]

    def _find_numbers(self) -> None:
        """Find the words with numbers in the candidates with these words; no index contains them."""
        names = {word.partition(" ")[0] for word in self._query.numbered}
        likely = [one for one in self._found.values() if not names.isdisjoint(one.times)]
        for one, learning in self._read(likely):
            text = "\n".join(index.text_of(learning, field) for field in index.FIELDS)
            one.times = one.times | dict.fromkeys(self._query.numbered.intersection(numbered_words(text)), 1)
        found = {word: sum(word in one.times for one in likely) for word in self._query.numbered}
        self._worth |= worth_of(found, self._total.replace(frequencies=found))
        self._weights |= {word: weigh_word(word, count, self._total.learnings) for word, count in found.items()}

    def _score(self) -> None:
        """Determine what each word and the meaning add to each candidate's score."""
        if self._query.numbered:
            self._find_numbers()
        for one in self._found.values():
            one.shares = _shares(one, self._worth, self._total)
            one.by_words = sum(one.shares.values())
        if self._vector is not None:
            others = [one for one in self._found.values() if one.candidate.likeness is None]
            known = [(one, vector) for one in others if (vector := one.candidate.vector)]
            for (one, _), likeness in zip(known, likenesses(self._vector, [v for _, v in known]), strict=True):
                one.likeness = max(0.0, likeness)
        best = sorted((one.by_words for one in self._found.values() if one.by_words > 0), reverse=True)[:_USUAL]
        self._usual_words = sum(best) / len(best) if best else 1.0
        self._compare_meanings()
        self._add_neighbours({id: self._combine(one) for id, one in self._found.items()})
        self._highest = max(1.0, *(one.score for one in self._found.values()), 0.0)

    def _add_neighbours(self, scores: Mapping[str, float]) -> None:
        """Determine the candidates' scores: their own, and some of that of the best candidate learnt next to them."""
        in_order = sorted(self._found.items(), key=lambda item: (item[1].source, item[1].candidate.number))
        near = dict.fromkeys(self._found, 0.0)
        for step in range(1, _NEIGHBOURS + 1):
            for (id, one), (other_id, other) in zip(in_order, in_order[step:], strict=False):
                apart = other.candidate.number - one.candidate.number
                if one.source == other.source and 0 < apart <= _NEIGHBOURS:
                    near[id] = max(near[id], scores[other_id] / apart)
                    near[other_id] = max(near[other_id], scores[id] / apart)
        for id, one in self._found.items():
            one.score = scores[id] + _NEIGHBOUR_WEIGHT * near[id]

    def _compare_meanings(self) -> None:
        """Determine how much each candidate's likeness counts: by the encoder, if it can be used."""
        encoded = self._read_encoded(self._encoded) if self._encoded else {}
        for one in self._found.values():
            one.alike = one.likeness
            one.by_meaning = _SCALE * one.likeness**_POWER
        if self._encoded and 2 * len(encoded) > len(self._found):
            self._semantic_weight = self._encoded.weight
            self._compare_by_encoder(encoded)

    def _compare_by_encoder(self, encoded: Mapping[str, float]) -> None:
        # Candidates without a vector of the encoder are compared by the embedded table, on the encoder's scale.
        scale = sum(encoded.values()) / (sum(self._found[id].likeness for id in encoded) or 1.0)
        most = max(encoded.values())
        for id, one in self._found.items():
            one.alike = encoded.get(id, min(most, scale * one.likeness))
        floor = _floor_of([one.alike for one in self._found.values()])
        for one in self._found.values():
            by_encoder = max(0.0, one.alike - floor) / (1 - floor) if floor < 1 else 0.0
            both = _TABLE_SHARE * one.likeness + (1 - _TABLE_SHARE) * by_encoder
            one.by_meaning = _SCALE * both**_POWER_WITH_ENCODER

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
        return self._with_newest_first(sorted(filter(self._is_found, found), key=_rank_by_score))

    def _with_newest_first(self, found: list[_Found]) -> list[_Found]:
        """Return hits in which the newer of two statements comes first if it has another value for what is asked."""
        from learnt.recall.newest import StatedValues, put_newest_first  # briefs do not search by score

        first = self._read(found[:_NEWEST_AMONG])
        statements = [StatedValues(learning, one.candidate.vector) for one, learning in first]
        places = put_newest_first(statements, self._query.text, self._query.words)
        return [*(first[place][0] for place in places), *found[_NEWEST_AMONG:]]

    def _is_found(self, one: _Found) -> bool:
        """Return whether a candidate belongs into the results of a search: by a trigger, by words or by meaning."""
        return bool(one.trigger) or (self._combine(one) > 0 and (one.by_words > 0 or one.alike >= _MIN_LIKENESS))

    def _combine(self, one: _Found) -> float:
        """Return a candidate's score: BM25 in relation to the usual one of the best candidates, and likeness."""
        by_words = one.by_words / self._usual_words
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
        for one in best:
            if one.candidate.vector:
                alike = likenesses(one.candidate.vector, self._vectors)
                one.meaning = one.self_meaning = max((one.likeness, *alike))
                one.update_strength()

    def _list_strongest(self) -> list[_Found]:
        return sorted(self._found.values(), key=_rank_by_strength)[:BY_SELF]

    def _list_best(self, most: int) -> list[_Found]:
        return sorted(self._found.values(), key=_rank_by_score)[:most]

    def _compare_with_titles_and_cues(self, also: _Found | None = None) -> None:
        """Determine for the strongest candidates how like a sentence is to what they say they are about."""
        best = self._list_strongest()
        for one, learning in self._read([*best, *([also] if also and also not in best else [])]):
            one.self_meaning = self._liken_to_units(learning)
            one.update_strength()

    def _liken_to_units(self, learning: Learning) -> float:
        if learning.id not in self._about:
            units = map(_cut_unit, (learning.title, *learning.all_cues))
            self._about[learning.id] = estimate_self_meaning([self._liken(unit) for unit in units if unit])
        return self._about[learning.id]

    def _add_what_it_is_about(self, best: Sequence[_Found]) -> None:
        """Add to the best scores how like a sentence is to what a learning says, and says that it is about."""
        for one, learning in self._read(best):
            one.score += one.meaning - one.likeness
            if not begins(learning.title, learning.observation):
                one.score += _SELF_WEIGHT * self._liken_to_units(learning)
        self._highest = max(self._highest, *(one.score for one in best), 0.0)

    def _liken(self, unit: tuple[str, ...]) -> float:
        """Return how like the best sentence is to a title or cue: by meaning, or by its words if none is known."""
        if self._vectors and (alike := liken_words(unit, self._vectors)):
            return max(alike)
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
                score=one.score / self._highest,
                matched_fields=(fields := one.candidate.match.list_fields()),
                highlights=Highlights(learning, fields, one.shares),
                words=one.shares,
                relevance=estimate_probability(one.strength, margin_of[learning.id]),
                trigger=one.trigger,
                features={**one.list_features(), "margin": margin_of[learning.id]},
            )
            for one, learning in self._read(found)
        }


@lru_cache(maxsize=5_000)
def _cut_unit(text: str) -> tuple[str, ...]:
    """Return the words of a title or a cue."""
    return tuple(words(text))


def _floor_of(likenesses: Collection[float]) -> float:
    """Return the likeness that counts as none: some models find all texts alike. The least like candidate has some."""
    least, most = min(likenesses), max(likenesses)
    return max(0.0, least - (_REST * (most - least) if most > least else most))


def _with_scope(learning: Learning, scope: str) -> Learning:
    return learning if not scope or learning.scope == scope else learning.replace(scope=scope)


def _rank_by_score(one: _Found) -> tuple[object, ...]:
    candidate = one.candidate
    return (not one.trigger, -one.score, -candidate.confidence, -candidate.created_at, candidate.id)


def _rank_by_strength(one: _Found) -> tuple[object, ...]:
    candidate = one.candidate
    return (not one.trigger, -one.strength, -candidate.confidence, -candidate.created_at, candidate.id)


def _with_frequencies(counts: Counts, more: Mapping[str, int]) -> Counts:
    return counts.replace(frequencies={**counts.frequencies, **more})


def _with_joined(wanted: Sequence[str]) -> list[str]:
    """Return the words and their joined forms, because a word might be an identifier written without separators."""
    return [*wanted, *(JOINED + word for word in wanted if word.isalpha())]


def _shares(one: _Found, worth: Mapping[str, float], counts: Counts) -> dict[str, float]:
    """Return how much each wanted word adds to a candidate's score."""
    average_length = counts.words / counts.learnings if counts.words else 1.0
    damping = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * one.candidate.match.length / average_length)
    return {
        word: worth[word] * times * _MAX_SATURATED / (times + damping)
        for word, times in one.times.items()
        if word in worth
    }
