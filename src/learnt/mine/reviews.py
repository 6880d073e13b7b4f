"""Read what reviews reject, and learn the rules behind it.

A review is a text with remarks: each has a label (`[P1]`, `nit`, `severity: high`), the place that it is about, or is a
quotation with an answer. What a reviewer says about one place teaches nothing. A sentence that holds in general does,
and so does a finding that was fixed or that comes back, put as the rule that it broke: what was fixed is not said as if
it were still true. A finding that comes back names all its places.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from learnt.mine.complaint import generalise
from learnt.mine.norms import states_rule
from learnt.model import TITLE_LIMIT, Discovery, Value
from learnt.text.clean import clean, fold
from learnt.text.sentences import (
    CODE,
    HEADING,
    ITEM,
    PARAGRAPH,
    QUOTE,
    Block,
    read_blocks,
    split_sentences,
    strip_markup,
)
from learnt.text.verbs import base_of, is_auxiliary, is_base_form, is_past, is_present, list_words
from learnt.text.words import words

_MAX_REVIEW_LENGTH = 200_000
_MAX_FINDINGS = 100
_MAX_FINDING_LENGTH = 600
_MIN_FINDING_LENGTH = 20
_MAX_QUOTE_LENGTH = 160
_MAX_ANSWER_LENGTH = 120
_MAX_HEADER_LENGTH = 90
_MAX_PLACES = 5
_MAX_SENTENCES = 40
_MAX_SIGNS = 4
_MAX_THREAD_LENGTH = 4_000
_MAX_EXCERPT_LENGTH = 1_000
_FILE = re.compile(
    r"`?\b((?:[\w.-]+/)*[\w-]+\.(?:[cm]?[jt]sx?|pyi?|go|rs|java|rb|kts?|cs|c|h|cc|cpp|hpp|swift|scala|exs?|php|"
    r"lua|sql|sh|ya?ml|"
    r"toml|json|md|html|css|scss|vue|svelte|tf|proto|gradle|dart|xml))\b`?(?::\d+(?:-\d+)?)?"
)
_PLACE = re.compile(rf"(?:{_FILE.pattern}(?:,? (?:line|ligne|línea|Zeile) \d+)?|\bDockerfile\b)", re.IGNORECASE)
_LABELS = (
    "must[- ]fix|should[- ]fix|blocker|blocking|critical|high|major|medium|moderate|minor|low|nit(?:pick)?|severity|"
    "bug|security|"
    "hoch|mittel|niedrig|kritisch|élevée?|gravité|moyenne?|faible|grave|alta|media|baja|P[0-4]"
)
_SEVERITY_WORD = re.compile(rf"\b({_LABELS})\b", re.IGNORECASE)
_SEVERITY = (
    ("must-fix", "must fix|must-fix|blocker|blocking|critical|security|kritisch|P0"),
    ("high", "high|major|bug|hoch|élevée?|grave|alta|P1"),
    ("low", "minor|low|nit|nitpick|niedrig|faible|baja|P3|P4"),
)
_NO_FINDING = re.compile(
    r"^(?:no (?:issues|findings|problems)|looks good|lgtm|approved?|all good|none\b|✅|verified|confirmed|\[x\])",
    re.IGNORECASE,
)
_LABEL = re.compile(rf"^(?:\W*+(?:{_LABELS})\b[^\w`]*+)++", re.IGNORECASE)
# The beginning of a remark: a label, a person, or words that announce it.
_ANNOUNCED = re.compile(
    rf"^\W*(?:(?:{_LABELS})\b(?:\W|$)|@\w+|(?:finding|review(?:er)?|comment|remark|befund|anmerkung|kommentar|"
    rf"remarque|"
    r"commentaire|comentario|observación)\b)",
    re.IGNORECASE,
)
_LABELLED_LINE = re.compile(
    rf"^\W*(?:\d+[.)]\W*)?(?:{_LABELS})\b|\bseverity\b|\bgravité\b", re.IGNORECASE | re.MULTILINE
)
_GRAVITY = re.compile(rf"\W*(?:{_LABELS})\W", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[,;:] ")
# What is so today, or is about to be done, is no rule.
_ABOUT_THE_PRESENT = re.compile(
    r"\b(?:now|currently|already|no longer|any ?more|still|yet|so far|intentional(?:ly)?|let me|"
    r"we (?:need|want|have to)|we'd|we'll|would)\b",
    re.IGNORECASE,
)
_NAMES_SEVERITY = re.compile(rf"\bseverity:? ?\w|\((?:{_LABELS})\)|\[(?:{_LABELS})\]|gravité", re.IGNORECASE)
# The beginning of an answer, which tells what was done; most start with a verb in the past.
_ANSWERED = re.compile(r"^\W*(?:(?:author|reply|response|answer|antwort|réponse|respuesta|autor)\b[^:\n]{0,30}:\W*)?")
_ANSWER_WORDS = frozenset(
    "done change changes fix resolution response behoben erledigt geändert umgesetzt korrigiert corrigé résolu fait "
    "resuelto corregido hecho arreglado both".split()
)
_ANSWER_LABEL = re.compile(r"^\W*\w+(?: (?:in|by|with) `?[0-9a-f]{6,40}`?)?\s*(?:[:,.]\s+|[:,.]?$)")
_NO_ANSWERS = frozenset("let given read set".split())
_HEADER_END = re.compile(r": |:$|\. | [—–-] |\n|> |\) |, ")
# A place on a line of its own, which was joined with the sentence below it.
_PLACE_ABOVE = re.compile(rf"^\W*(?:{_FILE.pattern})\W*\s(?=[A-Z`]\S* )")
_HEADER_WORDS = frozenset(
    "finding review reviewer comment remark on of line fix should in and correctness performance style severity "
    "befund zu zeile remarque sur ligne comentario en".split()
)
_DETAILS = re.compile(r"`[^`]*`|\"[^\"]*\"|\b[\w./-]+\.\w{1,5}\b(?::\d+)*|\d+")
_MIN_SHARED_WORDS = 0.6
_MIN_OVERLAP = 0.5
# What something has not got: `the HTTP call in `a.py` lacks a timeout`.
_ABSENCE = re.compile(
    r"^(?P<what>(?:`[^`]{1,80}`|[^.;:,`]){1,80}?) (?:lacks?|misses|(?:has|have|had) no|(?:does|do)(?: not|n't) have|"
    r"(?:is|are) missing|(?:is|are) without|comes? without) (?P<thing>[^.;:,]{2,60})",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:the|this|that|these|those|a|an|our|new|one|some) ", re.IGNORECASE)
_NEEDS_ARTICLE = re.compile(r"^(?!a |an |the |any |its |their |\w+s\b)(?=[a-z])", re.IGNORECASE)
_WHERE = re.compile(r" (?:in|of|at|on|within|from) .*$")
_CODE = re.compile(r"`[^`]+`")


class ReviewFinding(Value):
    """Something that a review wants changed."""

    text: str
    file: str = ""
    severity: str = ""


class ReviewRemark(Value):
    """What a reviewer says about a place, and what was answered."""

    sentences: tuple[str, ...] = ()
    file: str = ""
    is_answered: bool = False
    answer: str = ""
    """What was done about it, as far as the answer says so."""


def read_findings(review: str) -> tuple[ReviewFinding, ...]:
    """Return the findings in a review, in order: list items and paragraphs with a label or a place."""
    blocks = (block for block in read_blocks(clean(review[:_MAX_REVIEW_LENGTH])) if block.kind in (ITEM, PARAGRAPH))
    return tuple(islice(filter(None, map(_read_finding, blocks)), _MAX_FINDINGS))


def observe_reviews(review: str, improvement: str) -> Iterator[Discovery]:
    """Yield the rules behind the findings in a review that the improvement reports as fixed, with the fix."""
    sentences = [
        sentence
        for line in clean(improvement[:_MAX_REVIEW_LENGTH]).split("\n")
        for sentence in split_sentences(line)
        if len(sentence) >= _MIN_FINDING_LENGTH
    ]
    for finding in read_findings(review):
        finding_words = _list_words(finding.text)
        closing = max(sentences, key=lambda sentence: _measure_overlap(finding_words, sentence), default="")
        if finding_words and _measure_overlap(finding_words, closing) >= _MIN_OVERLAP:
            yield _describe_finding(finding, "constraint", [finding], fix=generalise(closing)[:_MAX_FINDING_LENGTH])


def find_recurring(
    review: Sequence[ReviewFinding], earlier: Sequence[Sequence[ReviewFinding]] = ()
) -> Iterator[Discovery]:
    """Yield the rules behind a review's findings that come back, in other places or earlier reviews, each once."""
    yielded: list[frozenset[str]] = []
    for finding in review:
        finding_words = _list_words(finding.text)
        if not finding_words or any(_are_alike(finding_words, other) for other in yielded):
            continue
        alike = [
            [other for other in others if _are_alike(finding_words, _list_words(other.text))]
            for others in (review, *earlier)
        ]
        again = [other for others in alike for other in others]
        reviews = sum(map(bool, alike))
        if reviews > 1 or len(_list_places(again)) > 1:
            yielded.append(finding_words)
            yield _describe_finding(finding, "pattern", again, reviews=reviews)


def read_thread(text: str) -> list[ReviewRemark]:
    """Return the answered remarks of a review thread: a short text that starts with a remark, and tells what was done.

    Nothing for any other text.
    """
    if len(text) > _MAX_THREAD_LENGTH:
        return []
    remarks: list[ReviewRemark] = []
    is_open = False  # whether the next paragraph belongs to the last remark
    for block in read_blocks(clean(text)):
        if block.kind not in (ITEM, PARAGRAPH, QUOTE, HEADING):
            is_open = is_open and block.kind == CODE
            continue
        plain = strip_markup(block.text)
        starts = _starts_remark(block, plain)
        if not remarks and not starts:
            return []
        if remarks and not starts and _is_answer(block, plain):
            last = remarks[-1]
            remarks[-1] = last.replace(is_answered=True, answer=last.answer or _read_answer(plain))
            is_open = False
        elif is_open and not (starts and remarks[-1].is_answered):
            remarks[-1] = _extend(remarks[-1], plain)
        else:
            remarks.append(_extend(ReviewRemark(), plain))
            is_open = True
    return [remark for remark in remarks[:_MAX_FINDINGS] if remark.is_answered]


def read_remarks(text: str) -> list[ReviewRemark]:
    """Return the remarks in a review that say how grave they are, for example in a list that a person pastes."""
    if not _LABELLED_LINE.search(text):
        return []
    remarks: list[ReviewRemark] = []
    is_open = False
    for block in read_blocks(clean(text[:_MAX_REVIEW_LENGTH])):
        plain = strip_markup(block.text) if block.kind in (ITEM, PARAGRAPH, QUOTE) else ""
        if plain and (_GRAVITY.match(plain) or _NAMES_SEVERITY.search(plain[:_MAX_HEADER_LENGTH])):
            remarks.append(_extend(ReviewRemark(), plain))
            is_open = True
        elif plain and is_open and block.kind != ITEM:
            remarks[-1] = _extend(remarks[-1], plain)
        else:
            is_open = False
    return remarks[:_MAX_FINDINGS]


def find_rules(remark: ReviewRemark) -> list[str]:
    """Return the sentences of a remark that hold in general."""
    return [
        sentence
        for sentence in remark.sentences
        if states_rule(sentence) and not _ABOUT_THE_PRESENT.search(_CLAUSE_END.split(sentence)[0])
    ]


def describe_remark(remark: ReviewRemark, rules: Sequence[str], answer: str) -> Discovery:
    """Return the rules that a reviewer states, with what he rejected and what was done about it."""
    text = _capitalise(rules[0])
    orders = [sentence for sentence in remark.sentences if is_order(sentence) and sentence not in rules]
    is_cut = len(text) > TITLE_LIMIT
    further = [_capitalise(rule) for rule in (*rules[0 if is_cut else 1 :][:1], *orders[:1])]
    worked = ". ".join(further) or (f"Do as the accepted change did: {answer}" if answer else "")
    return Discovery(
        type="constraint",
        rule="review",
        text=generalise(text),
        worked=generalise(worked),
        excerpt=generalise(" ".join(remark.sentences))[:_MAX_EXCERPT_LENGTH],
        files=(remark.file,) if remark.file else (),
        observed=generalise(_tell_rejection(remark, rules, answer)),
        advice=generalise(f"{worked or text}."),
    )


def is_order(sentence: str) -> bool:
    """Return whether a sentence tells somebody to do something: `Please record it with …`, `Hash it before …`."""
    found = list_words(sentence.removeprefix("Please ").removeprefix("please "))
    return len(found) > 3 and is_base_form(found[0])


def _extend(remark: ReviewRemark, text: str) -> ReviewRemark:
    match = _FILE.search(text) if not remark.file else None
    stripped = map(_strip_header, split_sentences(text[: 4 * _MAX_FINDING_LENGTH]))
    sentences = [sentence for sentence in stripped if sentence and not _is_header(sentence)]
    return remark.replace(
        sentences=(*remark.sentences, *sentences)[:_MAX_SENTENCES], file=(match and match[1]) or remark.file
    )


def _read_answer(text: str) -> str:
    """Return what was done, without a label such as `Resolution:` or `Done,`; empty if only that it was done."""
    for sentence in split_sentences(text)[:2]:
        start = _ANSWERED.match(sentence.lower())
        rest = _ANSWER_LABEL.sub("", sentence[start.end() if start else 0 :]).rstrip(" .:")
        if len(list_words(rest)) > 2 or "`" in rest:
            return rest[:_MAX_ANSWER_LENGTH]
    return ""


def _capitalise(sentence: str) -> str:
    sentence = sentence.strip().rstrip(" .")
    return sentence[:1].upper() + sentence[1:]


def _starts_remark(block: Block, plain: str) -> bool:
    """Return whether a block starts like a remark: with a label, a place, or as a quotation."""
    place = _PLACE.search(plain[:_MAX_HEADER_LENGTH])
    is_placed = place is not None and place.start() < _MAX_SIGNS
    is_labelled = _NAMES_SEVERITY.search(plain[:_MAX_HEADER_LENGTH]) is not None
    return block.kind == QUOTE or is_placed or is_labelled or _ANNOUNCED.match(plain) is not None


def _is_answer(block: Block, plain: str) -> bool:
    if block.kind in (QUOTE, HEADING):
        return False
    start = _ANSWERED.match(plain.lower())
    found = list_words(plain[start.end() if start else 0 :][:80])
    first = found[0].lower() if found else ""
    return first in _ANSWER_WORDS or (is_past(first) and first not in _NO_ANSWERS)


def _strip_header(sentence: str) -> str:
    """Return a sentence without the label, the place and the person in front of it."""
    for _ in range(3):
        ends = list(_HEADER_END.finditer(sentence[:_MAX_HEADER_LENGTH]))
        cut = next((end for end in reversed(ends) if _is_header(sentence[: end.start()])), None)
        if cut is None:
            break
        sentence = sentence[cut.end() :].lstrip(" —–:-")
    return _PLACE_ABOVE.sub("", _LABEL.sub("", sentence))


def _is_header(text: str) -> bool:
    """Return whether nothing is left of a text without labels, places and persons, so that it states nothing."""
    rest = _PLACE.sub(" ", _CODE.sub(lambda code: code[0] if _FILE.search(code[0]) else "x", text))
    rest = _SEVERITY_WORD.sub(" ", re.sub(r"@\w+|[!#]\d+", " ", rest))
    left = [word for word in list_words(rest) if word.lower() not in _HEADER_WORDS]
    return (rest != text and not left) or (_ANNOUNCED.match(text) is not None and len(left) <= 2)


def _tell_rejection(remark: ReviewRemark, rules: Sequence[str], fix: str) -> str:
    """Tell what was rejected, as something of the past."""
    others = [text for text in remark.sentences if text not in rules and not is_order(text)]
    defect = next((text for text in others if len(list_words(text)) > 2), "")
    defect = (
        re.sub(rf"\W*{_PLACE.pattern}\W*$", "", defect) if _PLACE.search(defect[-_MAX_HEADER_LENGTH // 2 :]) else defect
    )
    place = f" in `{remark.file}`" if remark.file else ""
    what = f": “{_shorten(defect)}”" if defect else ""
    answer = f" Then it was changed: {fix}." if fix else ""
    return f"A review rejected a change{place}{what}.{answer}"


def _read_finding(block: Block) -> ReviewFinding | None:
    text = fold(block.text.replace("**", ""))
    file, severity_word = _FILE.search(text), _SEVERITY_WORD.search(text[:60])
    if len(text) < _MIN_FINDING_LENGTH or _NO_FINDING.match(text) or not (file or severity_word):
        return None
    if block.kind == PARAGRAPH and not (_LABEL.match(text) or _starts_remark(block, text)):
        return None
    severity = next(
        (name for name, pattern in _SEVERITY if severity_word and re.search(pattern, severity_word[0], re.IGNORECASE)),
        "",
    )
    return ReviewFinding(text=text[:_MAX_FINDING_LENGTH], file=file[1] if file else "", severity=severity)


def _describe_finding(
    finding: ReviewFinding, type: str, alike: Sequence[ReviewFinding], *, fix: str = "", reviews: int = 1
) -> Discovery:
    """Return the rule that a finding broke, and all places in which it was found."""
    said = generalise(_strip_header(finding.text)).strip(" -–—:")
    places = _list_places(alike)
    where = _join(f"`{place}`" for place in places[:_MAX_PLACES])
    who = f"{reviews} reviews" if reviews > 1 else "a review"
    rejected = f"{who[:1].upper()}{who[1:]} rejected{where and f' in {where}'}: “{said.rstrip(' .')}”."
    return Discovery(
        type=type,
        rule="review",
        text=_put_as_rule(said, fix, who, where),
        worked=fix.rstrip(" ."),
        excerpt=f"{rejected} It was changed: {fix}" if fix else rejected,
        files=tuple(places),
    )


def _put_as_rule(said: str, fix: str, who: str, where: str) -> str:
    """Return what to do or avoid, from what a finding complains about."""
    rule = next((sentence for sentence in split_sentences(said) if states_rule(sentence)), "")
    if rule:
        return _capitalise(rule)
    first = next(iter(split_sentences(said)), said).rstrip(" .")
    if absence := _ABSENCE.match(first):
        thing = absence["thing"].strip()
        article = "an " if thing[:1].lower() in "aeiou" else "a "
        thing = _NEEDS_ARTICLE.sub(article, thing) if thing[:1] != "`" else thing
        return f"Give {_name_kind(absence['what'])} {thing}: {who} rejected {where or 'a change'} without it"
    place = where and f" in {where}"
    if order := _put_as_order(fix):
        return f"{order}: {who} asked for it{place}"
    subject, _, rest = first.partition(" ")
    if subject.startswith("`") and rest and is_present(rest.split(" ", 1)[0]):
        return f"Avoid code that {rest}: {who} rejected it{place}"
    return f"Avoid this: “{first}”, {who} rejected it{place}"


def _put_as_order(fix: str) -> str:
    """Return what was done as what to do: `Log the error` for `I logged the error.`; empty if that is not possible."""
    done = fix.removeprefix("I ").removeprefix("have ").rstrip(" .")
    first, _, rest = done.partition(" ")
    if is_past(first) and is_base_form(base_of(first)) and not any(map(is_auxiliary, list_words(rest)[:4])):
        done = f"{base_of(first).capitalize()} {rest}"
    return done if is_order(done) else ""


def _name_kind(what: str) -> str:
    """Return a thing as one of its kind: `every HTTP call` for `the HTTP call in a.py`."""
    kind = _WHERE.sub("", _ARTICLE.sub("", what.strip()))
    names = [name for name in _CODE.findall(kind) if not _FILE.search(name)]
    rest = fold(_CODE.sub(" ", kind))
    if not rest:
        return f"code like {names[0]}" if names else "such code"
    return rest if rest.endswith("s") else f"every {rest}"


def _shorten(text: str) -> str:
    text = text.rstrip(" .")
    return text if len(text) <= _MAX_QUOTE_LENGTH else f"{text[:_MAX_QUOTE_LENGTH].rpartition(' ')[0]} …"


def _list_places(findings: Iterable[ReviewFinding]) -> list[str]:
    return list(dict.fromkeys(finding.file for finding in findings if finding.file))


def _join(names: Iterable[str]) -> str:
    listed = list(names)
    return " and ".join((", ".join(listed[:-1]), listed[-1])) if len(listed) > 1 else "".join(listed)


def _list_words(text: str) -> frozenset[str]:
    """Return the words in a finding, without files, numbers and code."""
    return frozenset(words(_DETAILS.sub(" ", _LABEL.sub("", text))))


def _are_alike(first: frozenset[str], second: frozenset[str]) -> bool:
    return len(first & second) >= max(_MIN_SHARED_WORDS * len(first | second), 3)


def _measure_overlap(finding_words: frozenset[str], line: str) -> float:
    """Return the share of a finding's words that are in a line."""
    return len(finding_words & set(words(line))) / max(len(finding_words), 1)
