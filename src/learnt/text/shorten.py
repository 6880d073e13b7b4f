"""Shorten a sentence to a title: whole clauses are dropped, never half of one.

In this order: what only introduces the sentence (“It turns out that …”), remarks in brackets, the last clauses
(reasons, relative clauses, additions), the middle of long code, the last phrases. What remains must be a sentence and
say the same: a condition (“unless …”, “if …”, “only …”) is not dropped. If nothing helps, the text is cut behind a
word, and ends with an ellipsis.
"""

from __future__ import annotations

import re

from learnt.model import TITLE_LIMIT
from learnt.text.clean import fold
from learnt.text.sentences import is_whole
from learnt.text.verbs import is_auxiliary, is_base_form, is_present, is_progressive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_CODE = re.compile(r"`[^`]*`")
_LEADING = re.compile(
    r"(?i)^(?:(?:note|notice|beware|remember|keep in mind|be aware|mind|it turns? out|turns? out|it turned out|"
    r"turned out|i (?:found|learn(?:ed|t)|noticed|discovered|realised|realized)|we (?:found|learn(?:ed|t)|noticed)|"
    r"the (?:key |main |important )?(?:lesson|takeaway|learning|insight|point|catch|trick)(?: here)? (?:is|was)|"
    r"es stellte sich heraus|merke|achtung|il s'avère|à noter|resulta|ten en cuenta|ojo)"
    r"(?:,? (?:that|dass|que))?[:,]? |"
    r"(?:lessons?(?: learn(?:ed|t))?|learning|takeaway|important|warning|caution|gotcha|pitfall|tip|hint|fyi|nb|note|"
    r"wichtig|hinweis|attention|importante|nota)\s*[:!–—-] ?|"
    r"(?:also|so|and|but|however|therefore|thus|hence|in general|generally|basically|in short|finally|additionally|"
    r"furthermore|moreover|going forward|for (?:the )?(?:future|next time)|as a result|in practice|"
    r"außerdem|also|donc|además),? |please )"
)
_BRACKETS = re.compile(r"\s\([^()]*\)")
# Where a clause ends that can be dropped with everything behind it.
_BOUNDARY = re.compile(
    r"\s*(?:[;:–—]|\s--?\s|\.\s|,)\s*|"
    r"\s+(?:because|since|so that|otherwise|which|where|while|whereas|although|though|even though|due to|in order to|"
    r"therefore|weil|denn|damit|sodass|obwohl|parce que|puisque|car|afin|porque|ya que|aunque)\s+",
    re.IGNORECASE,
)
_AND = re.compile(r"\s+(?:and|und|et|y)\s+(?=(\S+))", re.IGNORECASE)
_LABEL = re.compile(r"([^:`]{3,60}): +(?=\S)")
_OPEN_END = re.compile(r"(?:^|[:;–—] )(?:when|if|while|where|wenn|falls|quand|si|cuando)\b[^,:;]*$", re.IGNORECASE)
_PHRASE = re.compile(
    r"\s+(?:for|with|in|on|at|by|from|into|via|through|during|under|within|across|as|to|per|für|mit|bei|aus|von|"
    r"pour|avec|dans|sur|para|con|en)\s+",
    re.IGNORECASE,
)
# Behind a boundary, these change what the sentence says.
_CONDITION = re.compile(
    r"\s*(?:unless|except|if|when(?:ever)?|until|only|without|but|instead|rather|before|after|nor|or|"
    r"wenn|falls|außer|nur|ohne|bevor|nachdem|sondern|aber|sauf|si|quand|seulement|sans|mais|avant|après|"
    r"excepto|salvo|solo|sólo|cuando|sin|pero|antes|después)\b",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(r"\b(?:that|whether|which|who|how|why|dass|ob|que|qui|quien)\s", re.IGNORECASE)
_SPAN_LENGTHS = (48, 40, 32, 24)
_MIN_LENGTH = 20
_MAX_LENGTH = 1_000
_TRAILING = " :;,.–—-"


def shorten(text: str, limit: int = TITLE_LIMIT) -> str:
    """Return a sentence that fits into a title and says the same, as far as possible."""
    text = _strip(fold(text[:_MAX_LENGTH]))
    if len(text) <= limit:
        return text
    for candidate in _list_candidates(text):
        if len(candidate) <= limit:
            return candidate
    return _cut(_drop_leading(_drop_brackets(text)), limit)


def _list_candidates(text: str) -> Iterator[str]:
    """Yield shorter and shorter sentences; the first that fits is the best."""
    without = _drop_leading(text)
    bare = _drop_brackets(without)
    yield without
    yield bare
    yield from _drop_clauses(bare, _BOUNDARY)
    unlabelled = _drop_label(bare)
    if unlabelled != bare:
        yield unlabelled
        yield from _drop_clauses(unlabelled, _BOUNDARY)
    for length in _SPAN_LENGTHS:
        compact = _shorten_code(bare, length)
        yield compact
        yield from _drop_clauses(compact, _BOUNDARY)
    yield from _drop_clauses(bare, _PHRASE)
    yield from _drop_clauses(_shorten_code(bare, _SPAN_LENGTHS[-1]), _PHRASE)


def _drop_leading(text: str) -> str:
    """Return a sentence without the words that only introduce it."""
    while (leading := _LEADING.match(text)) and len(text) - leading.end() >= _MIN_LENGTH:
        text = text[leading.end() :].lstrip(_TRAILING)
        text = text[:1].upper() + text[1:]
    return text


def _drop_brackets(text: str) -> str:
    masked = _mask(text)
    kept, position = "", 0
    for bracket in _BRACKETS.finditer(masked):
        kept += text[position : bracket.start()]
        position = bracket.end()
    return _strip(kept + text[position:])


def _drop_clauses(text: str, boundary: re.Pattern[str]) -> Iterator[str]:
    """Yield the sentence without its last clause, then without the last two, and so on."""
    masked = _mask(text)
    ends = [end.span() for end in boundary.finditer(masked)]
    if boundary is _BOUNDARY:
        ends += [end.span() for end in _AND.finditer(masked) if _starts_clause(end[1])]
    for start, end in sorted(ends, reverse=True):
        head = _strip(text[:start])
        is_sentence = len(head) >= _MIN_LENGTH and not _OPEN_END.search(head) and is_whole(head) and _ends_clause(head)
        last = head.rpartition(" ")[2]
        is_open = is_progressive(last) or is_present(last) or (masked[start:end].strip() == "to" and is_base_form(last))
        is_torn = boundary is _PHRASE and is_open  # “… it needs”: what?
        is_limited = _CONDITION.match(masked[end:]) and masked[start:end].strip() not in (";", ".")
        if is_sentence and not is_torn and not is_limited:
            yield head


def _ends_clause(head: str) -> bool:
    """Return whether the last clause has a verb, so that it is not cut between its subject and its predicate."""
    subordinate = list(_SUBORDINATE.finditer(head))
    if not subordinate:
        return True
    words = re.findall(r"[^\W\d_]+(?:['’]\w+)?", head[subordinate[-1].end() :].lower())
    return any(is_auxiliary(word) or is_present(word) for word in words)


def _starts_clause(word: str) -> bool:
    """Return whether the word behind “and” is a verb, so that another clause follows and not another thing."""
    return word in ("never", "then", "not", "always") or is_auxiliary(word) or is_present(word) or is_base_form(word)


def _drop_label(text: str) -> str:
    """Return a sentence without the label in front of it, if the label is no sentence itself."""
    label = _LABEL.match(text)
    rest = text[label.end() :] if label else ""
    if label is None or is_whole(label[1]) or not is_whole(rest):
        return text
    return rest[:1].upper() + rest[1:]


def _mask(text: str) -> str:
    """Return a text with its code replaced by letters, so that signs in it are not read."""
    return _CODE.sub(lambda code: "`" + "x" * (len(code[0]) - 2) + "`", text)


def _shorten_code(text: str, length: int) -> str:
    pieces = text.split("`")
    return "`".join(_cut_middle(piece, length) if number % 2 else piece for number, piece in enumerate(pieces))


def _cut_middle(text: str, limit: int) -> str:
    """Return the text without its middle, because the end of a path or a command is the most informative part."""
    if len(text) <= limit:
        return text
    return text[: limit // 3].rstrip() + "…" + text[-(limit - limit // 3 - 1) :].lstrip()


def _strip(text: str) -> str:
    """Return a sentence without the full stop at its end."""
    return text.strip().rstrip(_TRAILING)


def _cut(text: str, limit: int) -> str:
    space = text.rfind(" ", limit // 2, limit)
    cut = text[: space if space > 0 else limit - 1].rstrip(" ,;:(")
    return (cut + "`" if cut.count("`") % 2 else cut)[: limit - 1] + "…"
