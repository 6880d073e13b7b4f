"""Read what a statement affirms, denies and names, so that two statements can be compared without a model.

A statement consists of clauses. A negation (“never”, “not”, “instead of”, also in German, French and Spanish) turns the
rest of its clause into something denied. Reasons, examples and remarks in brackets are details: two statements say the
same if they differ in details only. Specifics are what a statement names: numbers, versions, paths, options,
identifiers, names, and everything in backticks. Any text is read in linear time.
"""

from __future__ import annotations

import re

from learnt.model import Value
from learnt.text.clean import fold
from learnt.text.patterns import lazy_pattern
from learnt.text.titles import begins
from learnt.text.words import STOP_WORDS, stem

_MAX_LENGTH = 20_000
_MAX_STATEMENT = 1_000
_SENTENCE_END = lazy_pattern(r"[.!?](?=\s|$)")
# A token: code, a word with what belongs to it (`#260`, `v1.2`, `a/b.py`, `--flag`), or a sign between clauses.
_TOKEN = lazy_pattern(
    r"`(?P<code>[^`\n]+)`|(?P<word>(?<!\w)--?\w[\w=./:-]*|[#@$~.]?\w(?:[\w./:#@+*=’'-]*[\w*+#/])?(?:\(\))?)"
    r"|(?P<sign>[,;:.!?()\[\]–—]|-{1,2}>|→|(?<=\s)-(?=\s))"
)
# Their stems would be other words: what `s` makes of a protocol is no plural, and `one` would become `on`.
_WITHOUT_STEM = frozenset("https ftps smtps imaps ldaps amqps one".split())
_MAKE_SURE = lazy_pattern(r"(?i)\b(?:make|be) sure(?: that| to)?\b")
# A word in code, or a quoted text without words: a separator or an empty text, which may be the whole difference.
_CODE_WORD = lazy_pattern(r"""(?<!\w)(["'])\W{0,8}?\1|[^\s"']+""")
_SHORT_OPTION = lazy_pattern(r"-[A-Za-z]{1,4}")
_WRITTEN = lazy_pattern(r"[^\W_](?:[\w'-]*\w)?")
_SPECIFIC = lazy_pattern(r"\d|[_/#@$=+*]|\w[.:]\w|^-|[a-z][A-Z]|^[A-Z]{2,}s?$|\(\)$|^\.")
_NEGATING = frozenset(
    "not never no none nor neither cannot avoid avoids avoided avoiding stop skip omit nobody nothing "
    "nicht nie niemals kein keine keinen keinem keiner keines vermeide vermeiden vermeidet "
    "ne pas jamais aucun aucune évite éviter évitez nunca jamás ningún ninguna evita evitar evite evitad".split()
)
# What follows these is denied, and what precedes them is not.
_REJECTING = frozenset("without ohne statt anstatt sans sin".split())
_AUXILIARIES = frozenset(
    "is are was were be been do does did has have had will would shall should can could may might must need ist sind "
    "war wird werden darf dürfen kann können soll sollte muss est sont ne n es son debe deben there to".split()
)
_CONTRACTED_VERBS = frozenset(
    "dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt shouldnt mustnt hasnt havent hadnt".split()
)
_INSTEAD = frozenset("instead rather lieu lugar vez place".split())  # followed by “of”, “than”, “de”
_AFTER_INSTEAD = frozenset("of than de".split())
# A clause with one of these says that what it names does not work.
_FAILING = frozenset(
    "fail fails failed failing breaks broken crashes crashed rejected refused wrong scheitert échoue falla".split()
)
_ENDING = frozenset("but instead aber sondern mais pero sino".split())  # a new clause, with its own sign
_REASONS = frozenset(
    "because since otherwise as so therefore hence weil denn damit sonst parce car sinon porque pues".split()
)
# Small words that can turn a statement round: “turn it on”, “turn it off”.
_PARTICLES = frozenset("off up down out into over under above below".split())
_SMALL = _PARTICLES | {"on", "by", "one"}
# Words that limit a statement: what differs in one of them says something else.
_LIMITING = frozenset(
    "unless if while after before until since least most all some any each every only with without either both one "
    "wenn falls außer während nach vor bis mindestens höchstens alle nur mit ohne "
    "si sauf pendant après avant jusque moins plus tous seulement avec sans "
    "excepto mientras después antes hasta menos todos solo con sin".split()
)
_PLACES = frozenset(
    "in on for when if under during at inside outside unless while within bei für wenn falls auf während unter "
    "dans pour quand lorsque sur en para cuando si".split()
)
_FILLERS = frozenset(
    "always must should need needs needed ought shall may might can could please sure ensure remember note "
    "beware important really very just simply plain ever again then also still actually currently "
    "immer muss müssen soll sollte bitte toujours doit doivent faut siempre debe deben hay "
    "der die das den dem des ein eine einen einem einer und oder ist sind wird werden hier im am von zu mit "
    "le la les un une et ou est sont du des à au aux el los las una y o es son del al con de que se lo "
    "there way thing one it".split()
)
# Words for the same thing in instructions about software, by stem.
_SAME = {
    stem(word): stem(group.split()[0])
    for group in (
        "folder directory dir", "repository repo", "database db",
        "configuration config", "environment env", "documentation docs doc", "dependency deps dep",
        "argument arg args", "parameter param params", "production prod", "authentication auth",
        "kubernetes k8s", "postgresql postgres", "javascript js", "typescript ts", "fail break crash",
        "require need", "delete remove", "permit allow", "forbid prohibit disallow", "variable var",
        "package pkg", "application app", "function func fn", "message msg", "request req", "response resp",
    )
    for word in group.split()
}  # fmt: skip
# At the start of a clause these say only that something is used: “Run `x`”, “Use `x`”.
_USE = frozenset(
    "use run execute call invoke nutze verwende benutze starte utilise utilisez lance lancez usa usar ejecuta".split()
)


class Statement(Value):
    """What a text says, as sets of words; words are stemmed, specifics are as written, in lower case."""

    affirmed: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    details: frozenset[str] = frozenset()
    """The words of reasons, remarks and examples."""
    specifics: frozenset[str] = frozenset()
    """The numbers, names, paths and code among all words."""
    code: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()
    """The words that say where or when it holds."""
    order: tuple[frozenset[str], frozenset[str]] | None = None
    """What comes first and what comes later, if the text says so."""
    clauses: tuple[tuple[str, ...], ...] = ()
    """The words of each clause as they follow each other, without those that say where or when."""
    sequence: tuple[str, ...] = ()
    """The words of the statement as they follow each other."""
    small: frozenset[str] = frozenset()
    """Small words that can turn a statement round: “on”, “off”, “by”."""
    limits: frozenset[str] = frozenset()
    """Words that limit it: “unless”, “while”, “at most”."""

    @property
    def words(self) -> frozenset[str]:
        """The words of the statement itself, without details."""
        return self.affirmed | self.denied

    @property
    def all_words(self) -> frozenset[str]:
        """All words."""
        return self.affirmed | self.denied | self.details


def read_statement(text: str) -> Statement:
    """Return what a text affirms, denies and names."""
    reader = _ClauseReader()
    for token in _TOKEN.finditer(_MAKE_SURE.sub("", text[:_MAX_LENGTH])):
        reader.take(token)
    return reader.end()


def complete_title(title: str, observation: str) -> str:
    """Return what a title states: if it is the cut beginning of the observation, the sentence that it begins."""
    beginning, said = title.rstrip("… "), fold(observation[:_MAX_STATEMENT])
    if len(said) <= len(beginning) or not begins(title, observation):
        return title
    end = _SENTENCE_END.search(said, len(beginning))
    return said[: end.start() if end else len(said)]


class _ClauseReader:
    """Collects the words of a text, clause by clause."""

    def __init__(self) -> None:
        self._affirmed: set[str] = set()
        self._denied: set[str] = set()
        self._details: set[str] = set()
        self._specifics: set[str] = set()
        self._code: set[str] = set()
        self._places: set[str] = set()
        self._order: list[set[str]] = []
        self._clauses: list[dict[str, None]] = [{}]
        self._sequence: list[str] = []
        self._small: set[str] = set()
        self._limits: set[str] = set()
        self._comes_later = False
        self._clause: set[str] = set()
        self._is_denied = self._is_detail = self._is_place = False
        self._depth = 0
        self._last = ""

    def take(self, token: re.Match[str]) -> None:
        """Add a token."""
        if token["sign"]:
            self._take_sign(token["sign"])
        elif token["code"]:
            for word in _list_code_words(token["code"]):
                self._add(_stem_name(word), is_code=True)
        else:
            self._take_word(token["word"])
        self._last = token[0].lower()

    def end(self) -> Statement:
        """Return everything that was read."""
        self._end_clause()
        order = None
        if len(self._order) == 2 and all(self._order):
            first, later = (frozenset(words) for words in self._order)
            order = (later, first) if self._comes_later else (first, later)
        return Statement(
            affirmed=frozenset(self._affirmed),
            denied=frozenset(self._denied),
            details=frozenset(self._details),
            specifics=frozenset(self._specifics),
            code=frozenset(self._code),
            places=frozenset(self._places),
            order=order,
            clauses=tuple(map(tuple, filter(None, self._clauses))),
            sequence=tuple(self._sequence),
            small=frozenset(self._small),
            limits=frozenset(self._limits),
        )

    def _take_sign(self, sign: str) -> None:
        if sign in "([":
            self._depth += 1
        elif sign in ")]":
            self._depth = max(0, self._depth - 1)
        elif self._depth:
            return
        elif sign == ":":
            self._end_clause()
            self._is_detail = self._has_enough()
        elif sign in ".!?;":
            self._end_clause()
            self._is_detail = False
        else:
            self._end_clause()

    def _take_word(self, word: str) -> None:
        plain = word.lower().replace("’", "'")
        plain = "every" if plain == "each" else plain
        if plain in _LIMITING and not self._is_detail and not self._depth:
            self._limits.add(plain)
        is_rejecting = plain in _REJECTING or (plain == "no" and self._last == "with")
        if is_rejecting or (plain in _AFTER_INSTEAD and self._last in _INSTEAD):
            self._end_clause()
            self._is_denied = True
        elif is_negating(plain):
            if plain == "not" and self._last not in _AUXILIARIES:  # “use X, not Y”
                self._end_clause()
            self._is_denied = True
        elif plain in _REASONS and self._has_enough() and (plain not in ("as", "so", "since") or self._last == ","):
            self._end_clause()
            self._is_detail = True
        elif plain in _ENDING:
            self._end_clause()
        elif plain in ("before", "after", "bevor", "nachdem", "avant", "après", "antes", "después"):
            self._note_order(is_later=plain in ("after", "nachdem", "après", "después"))
        else:
            self._is_place = (self._is_place or plain in _PLACES) and plain not in ("and", "to")
            self._take_plain(word, plain)

    def _take_plain(self, word: str, plain: str) -> None:
        if plain in _FAILING and not self._is_denied and self._clause & self._code:
            self._is_denied = True
            return
        if plain in _SMALL and not self._is_detail:
            self._small.add(plain)
        is_filler = plain in STOP_WORDS or plain in _FILLERS or plain in _PLACES
        if (is_filler and plain not in _PARTICLES) or (plain in _USE and not self._clause):
            return
        if is_specific(word, starts=not self._clause):
            self._add(_stem_name(_fold_case(word).removesuffix("'s").strip("'")), is_specific=True)
        else:
            self._add(normalise(plain))

    def _add(self, word: str, *, is_code: bool = False, is_specific: bool = False) -> None:
        if not word:
            return
        if is_code or is_specific:
            self._specifics.add(word)
        if self._is_detail or self._depth:
            self._details.add(word)
            return
        if is_code:
            self._code.add(word)
        if self._is_place:
            self._places.add(word)
        elif not self._order:
            self._clauses[-1][word] = None
        if self._order:
            self._order[-1].add(word)
        self._clause.add(word)
        self._sequence.append(word)

    def _note_order(self, *, is_later: bool) -> None:
        if not self._order and not self._is_detail:
            self._order = [set(self._clause), set()]
            self._comes_later = is_later

    def _has_enough(self) -> bool:
        """Return whether so much has been said that what follows is only a detail."""
        return len(self._affirmed | self._denied | self._clause) >= 3

    def _end_clause(self) -> None:
        # A negation alone denies all that was said: “Run it before the tests: no”.
        if self._is_denied and not self._clause and not self._denied and not self._details:
            self._denied, self._affirmed = self._affirmed, set()
        (self._denied if self._is_denied else self._affirmed).update(self._clause)
        self._clause = set()
        self._clauses.append({})
        self._is_denied = self._is_place = False


def is_negating(word: str) -> bool:
    """Return whether a word of lower-case letters denies what follows it."""
    return word in _NEGATING or word.endswith("n't") or word in _CONTRACTED_VERBS


def is_specific(word: str, *, starts: bool) -> bool:
    """Return whether a word outside code is a number, a path, an identifier or a name."""
    return bool(_SPECIFIC.search(word)) or (not starts and word[0].isupper())


def _list_code_words(code: str) -> list[str]:
    """Return what code consists of; code that is nothing but signs or blanks is a word of its own."""
    words = (word[0] for word in _CODE_WORD.finditer(code))
    return [_fold_case(word.strip(",;") or word) for word in words] or [code]


def _fold_case(word: str) -> str:
    """Return a word in lower case, except for short options: `git branch -d` and `-D` do different things."""
    return word if _SHORT_OPTION.fullmatch(word) else word.lower().replace("’", "'")


def _stem_name(word: str) -> str:
    """Return a name as it is indexed: in code and outside it, `commits` and `commit` are one word."""
    word = word.removesuffix("()").rstrip("/.") or word
    return stem(word) if word.isalpha() and word not in _WITHOUT_STEM else word


def spell(text: str) -> dict[str, str]:
    """Return how the words of a text are first written, by the forms in which statements contain them."""
    spelled: dict[str, str] = {}
    for word in _WRITTEN.findall(text):
        for form in (normalise(word.lower()), _stem_name(word.lower())):
            spelled.setdefault(form, word)
    return spelled


def normalise(word: str) -> str:
    """Return the form in which statements contain a word of lower-case letters: its stem, or that of its synonym."""
    if word in _WITHOUT_STEM:
        return word
    word = stem(word.removesuffix("'s").replace("'", ""))
    return _SAME.get(word, word)
