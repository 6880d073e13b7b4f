"""Judge the texts in files with rules: what asks for something, what only describes, and a title for each rule.

A text asks for something if it has a word for duty, prohibition or preference (in English, German, French, Spanish,
Chinese or Japanese), or a sentence that starts with a verb in its base form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from learnt.model import TITLE_LIMIT
from learnt.text.clean import fold
from learnt.text.fence import QUOTING
from learnt.text.sentences import is_whole, split_sentences, strip_markup
from learnt.text.shorten import shorten
from learnt.text.verbs import is_auxiliary, is_base_form, list_words

_MIN_WORDS = 2
_ALSO_VERBS = ("ask", "test", "lint", "benchmark", "favor", "favour")  # at the start of a rule they are verbs
_MIN_WORDS_STANDING = 4
_MAX_LABEL_WORDS = 4
_MAX_WORDS_BEFORE_VERB = 6
_MAX_CODE_IN_TITLE = 60
_NEGATIVE = re.compile(
    r"\b(?:not|never|cannot|avoid|without|forbidden|prohibited|\w+n['’]t|nicht|nie|niemals|keine?[nmrs]?|vermeide\w*|"
    r"verboten|ne|pas|jamais|éviter|évitez|interdit|nunca|jamás|evit\w+|prohibido)\b|不要|禁止|不得|しない|ないで",
    re.IGNORECASE,
)
_DUTY = re.compile(
    r"\b(?:must|should|shall|always|only|please|instead|rather than|prefer(?:red|ably|s)?|require[sd]?|mandatory|needs?"
    r"|make sure|ensure|remember|important|recommended|expected|allowed|has to|have to|ought|before|unless|"
    r"because|otherwise|weil|sonst|parce que|sinon|porque|"
    r"muss|müssen|soll(?:te|ten|en)?|immer|nur|bitte|statt|darf|dürfen|bevorzug\w+|zwingend|vor dem|"
    r"doi(?:t|vent)|toujours|faut|uniquement|préfér\w+|utilise[rz]?|plutôt|avant de|"
    r"debe[ns]?|siempre|sólo|solo|hay que|prefer\w+|usar?|utiliza\w*|antes de)\b|"
    r"必须|必須|始终|总是|应该|必ず|ください|使用",
    re.IGNORECASE,
)
# What may precede the verb of a demand: a label, or a clause that says when it applies.
_LEAD = re.compile(
    r"(?:[^.:!?`]{1,60}[:–—]|(?:first|then|next|finally|also),?|"
    r"(?:when|if|before|after|for|in|wenn|vor|bei|quand|si|cuando)\b[^,]{3,120},)\s+",
    re.IGNORECASE,
)
_SITUATION = re.compile(
    r"(?:to|when|whenever|before|after|if|for|while|in case|during|wenn|bevor|vor|nach|bei|beim|um|zum|zur|für|falls|"
    r"quand|lorsque|avant|après|pour|si|cuando|antes|después|para|al)\b",
    re.IGNORECASE,
)
_CONTINUES = re.compile(
    r"(?:so|and|or|but|because|which|that|e\.g|i\.e|und|oder|weil|damit|sodass|et|ou|car|y|o|porque)\b|"
    r"(?i:then|next|finally|afterwards|after that|otherwise|dann|danach|anschließend|sonst|ensuite|puis|enfin|luego)\b"
)
_PRONOUN = re.compile(
    r"(?:they|it|this|these|those|both|sie|diese|ils|elles|estos|estas)\b|(?:\w+ ){1,2}(?:them|it)\b", re.IGNORECASE
)
# Words for a procedure in what is above a list.
_PROCEDURE = re.compile(
    r"\b(?:steps?|how|(?:work)?flow|procedure|process|following|follows|like this|in this order|ablauf|schritte?|"
    r"vorgehen|folgend\w*|wie folgt|reihenfolge|étapes?|procédure|suivant\w*|comment|pasos?|proceso|siguiente|cómo)\b",
    re.IGNORECASE,
)
# What an item that holds at any time starts with, or says.
_LASTING = re.compile(
    r"(?:[^.:;!?`]{1,40}:\s+)?(?:please |bitte )?(?:never|always|do not|don['’]t|avoid|prefer|use|keep|follow|ensure|"
    r"an?|the|they|these|we|no|all|every|each|only|nie|niemals|immer|keine?[nmrs]?|vermeide\w*|nutze\w*|"
    r"verwende\w*|bevorzug\w*|alle|jede\w*|nur|toujours|ne|jamais|évite[rz]?|utilise[rz]?|siempre|nunca|evit\w+|usa\w*)\b|"
    r"[^.]*\b(?:must|should|shall|never|always|muss|müssen|sollen?|darf|dürfen|niemals|doi(?:t|vent)|deben?)\b",
    re.IGNORECASE,
)
_LABELLED = re.compile(r"[^\W\d_][^.:;!?`,]{1,40}: ")
_IMPORT = re.compile(r"@[\w~./-]+/?[\w.-]+")
_QUESTION = re.compile(r"[^.!?`]*\?(?:\s|$)")
_LINK = re.compile(r"!?\[[^\[\]]*\]\([^()\s]*[^()]*\)|<?https?://[^\s<>]+>?")
_LINK_FIRST = re.compile(r"\s*(?:[^\w\s\[]+\s*)?(?:\[[^\[\]]*\]\([^()]*\)|https?://\S+)")
_INDEX_ENTRY = re.compile(r"\s*\[[^\[\]]*\]\([\w./-]+\.md\)\s*[:–—-]\s")
_NAME = re.compile(
    r"`[^`\s]+`|`[A-Z][^`]*`|(?:\.{0,2}/)?[\w@.*{}\[\]-]+(?:/[\w@.*{}\[\]-]*)+|[\w@.-]+\.[a-z]{1,5}(?=\s|:)"
)
_AFTER_NAME = re.compile(r"\s*(?:[-–—:→(]|is\b|are\b|contains?\b|enthält\b|contient\b|contiene\b)")
_ROLE = re.compile(
    r"(?:you are|you're|act as|your (?:role|task|job) is|du bist|sie sind|tu es|vous êtes|eres)\b|"
    r"this (?:file|document) (?:provides|contains|gives|describes|is)\b|guidance (?:for|to) (?:claude|codex|gemini|ai)",
    re.IGNORECASE,
)
_LICENSE = re.compile(
    r"permission is hereby granted|licensed under|all rights reserved|copyright \(c\)|copyright ©|©|"
    r"without warranty of any kind|spdx-license-identifier",
    re.IGNORECASE,
)
_SIGIL = re.compile(r"\bLEARNING_(?:NOT_)?HELPFUL\b|</?(?:learning|task-done|task-failed|failure-report)\b", re.I)
_LABEL = re.compile(
    r"(?:why|reason|rationale|because|how to apply|how|example|examples|e\.g\.|note|see|exception|warum|grund|"
    r"begründung|anwendung|beispiel|hinweis|ausnahme|pourquoi|raison|exemple|por qué|motivo|razón|ejemplo)\s*:",
    re.IGNORECASE,
)
# What a client or a model could take for a role, or a page for markup; other tags may be placeholders, and stay.
_TAGS = "|".join((*QUOTING, *(
    "system user assistant human tool developer instructions? important critical rules? note warning details summary "
    "div span p br hr b i u em strong kbd sub sup code pre center font img a learning task-done task-failed "
    "failure-report difficulty-estimate retry-suggestion next-model"
).split()))  # fmt: skip
_MARKUP = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>|<[|｜][^<>|｜]*[|｜]>|<</?SYS>>|\[/?INST\]", re.IGNORECASE)
_COMMENT = re.compile(r"<!--(?:[^-]|-(?!->))*+-->")  # that was not on one line
_CODE_SPAN = re.compile(r"(`+[^`]+`+)")
_BULLET_SIGN = re.compile(r"^(?:\[[ xX]\]\s+|>\s+|[^\w\s`\"'“«„(\[{@$./~<>*_#+:-]+\s*)+")
_CUT = re.compile(
    r"\b(?:whether|if|that|to|the|a|an|and|or|of|with|by|for|as|when|be|is|are|ob|dass|wenn|und|oder|si|que|et|y)$",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\s+(?:\(|per |see |at )?<?https?://\S+")
_AFTER_COMMAND = re.compile(r"\s+(?:#|//)\s.*")


def plain_text(text: str) -> str:
    """Return a text on one line, without emphasis, links' addresses, markup, and signs at its start."""
    stop = text.rfind("-->") + 3 if "-->" in text else 0  # behind it, no comment is closed
    pieces = _CODE_SPAN.split(_COMMENT.sub(" ", text[:stop]) + text[stop:])
    pieces[::2] = [_MARKUP.sub(" ", piece) for piece in pieces[::2]]
    return fold(_BULLET_SIGN.sub("", strip_markup("".join(pieces))))


def asks_for_something(text: str, *, strictly: bool = False) -> str:
    """Return `not` for a text with a prohibition, `do` for one with another demand, and nothing for a description.

    With `strictly`, a verb after a label is no demand: `Purpose: give shops a till` describes.
    """
    prose = _CODE_SPAN.sub("`x`", text)
    if _NEGATIVE.search(prose):
        return "not"
    if _DUTY.search(prose) or any(_starts_with_verb(part, strictly=strictly) for part in split_sentences(prose)):
        return "do"
    return ""


def _starts_with_verb(sentence: str, *, strictly: bool) -> bool:
    lead = None if strictly else _LEAD.match(sentence)
    for part in (sentence, *([sentence[lead.end() :]] if lead else ())):
        words = list_words(part[:60])
        if words and part.lstrip("\"'“(").startswith(words[0]) and _is_verb(words[0]):
            return True
    return False


def _is_verb(word: str) -> bool:
    return is_base_form(word) or word.lower() in _ALSO_VERBS


def split_demands(text: str) -> list[str]:
    """Return the sentences of a paragraph if each of them asks for something by itself, and else the paragraph."""
    sentences = split_sentences(text)
    are_demands = all(is_self_standing(sentence) and asks_for_something(sentence) for sentence in sentences)
    return sentences if are_demands and not any(map(needs_subject, sentences[1:])) else [text]


def is_lasting(text: str) -> bool:
    """Return whether a numbered item is a rule that holds at any time, rather than a step."""
    if _CONTINUES.match(text) or names_situation(text):
        return False
    states = any(map(is_auxiliary, list_words(text)[:_MAX_WORDS_BEFORE_VERB])) or _LABELLED.match(text)
    return _LASTING.match(text) is not None or (bool(states) and not _starts_with_verb(text, strictly=True))


def introduces_steps(text: str) -> bool:
    """Return whether a text above a list says that its items follow each other."""
    return _PROCEDURE.search(text) is not None


def names_situation(text: str) -> bool:
    """Return whether a text says when or what for, as in `To release:`."""
    return _SITUATION.match(text) is not None


def needs_subject(text: str) -> bool:
    """Return whether a text speaks of something that only its heading names."""
    return _PRONOUN.match(text) is not None


def is_self_standing(text: str) -> bool:
    """Return whether an item can be understood without the one above it."""
    if _CONTINUES.match(text):
        return False
    return len(text.split()) >= _MIN_WORDS_STANDING and (bool(asks_for_something(text)) or is_whole(text))


def is_label(text: str) -> bool:
    """Return whether a paragraph is the reason or an example for the one above it."""
    return _LABEL.match(text) is not None


def describes_name(text: str) -> bool:
    """Return whether a text says what a file, a folder or a name in the code is, as in `src/` - the application.

    What a command does is worth knowing, so `make db` - create the database is none.
    """
    name = _NAME.match(text)
    return name is not None and _AFTER_NAME.match(text, name.end()) is not None


def find_reason_against(text: str, *, has_more: bool) -> str:
    """Return why a text is no rule whatever its place; empty if it may be one."""
    if _LICENSE.search(text):
        return "license text"
    if _SIGIL.search(text):
        return "markup for learnt, not a rule"
    if _ROLE.match(text):
        return "describes a role or the file itself"
    if _IMPORT.fullmatch(text) or re.fullmatch(rf"(?:see|read) {_IMPORT.pattern}\.?", text, re.IGNORECASE):
        return "refers to another file"
    if _QUESTION.match(text):
        return "a question"
    if not has_more and _is_word_list(text):
        return "a list of words"
    if text.endswith((":", "：")) and not has_more:
        return "says nothing by itself"
    return "" if len(re.findall(r"\w+", text)) > _MIN_WORDS else "says too little"


def _is_word_list(text: str) -> bool:
    parts = text.rstrip(".").split(", ")
    return len(parts) > _MIN_WORDS and all(len(part.split()) <= _MIN_WORDS for part in parts)


def is_link(text: str) -> bool:
    """Return whether a text, as it stands in the file, consists of links, or of a link and what it leads to."""
    rest = _LINK.sub(" ", text)
    if rest == text:
        return False
    is_only_link = len(list_words(rest)) < _MIN_WORDS_STANDING or _INDEX_ENTRY.match(text) is not None
    return is_only_link or (_LINK_FIRST.match(text) is not None and not asks_for_something(rest))


def is_cut(text: str) -> bool:
    """Return whether a text ends where its sentence goes on, so that what follows makes no sense without it."""
    return _CUT.search(text) is not None


def make_title(text: str, *, intros: Sequence[str] = (), code: str = "", room: int = 0) -> str:
    """Return a complete title for a rule: its first sentence, after what introduces it if there is room.

    If that asks for nothing, the sentence that does is added, or is the title. If the text introduces code, its last
    sentence is the rule. `room` is how many characters the title must leave.
    """
    limit = TITLE_LIMIT - room
    sentences = split_sentences(text) or [text]
    introduces = text.endswith((":", "："))
    sentence = sentences[-1 if introduces else 0]
    demand = "" if introduces or asks_for_something(sentence) else next(filter(asks_for_something, sentences), "")
    if demand:
        both = f"{sentence} {demand}"
        sentence = both if len(both) <= limit or not is_self_standing(demand) or needs_subject(demand) else demand
    elif not introduces and len(sentence.split()) < _MAX_LABEL_WORDS and len(sentences) > 1:
        longer = f"{sentence} {sentences[1]}"
        sentence = longer if len(longer) <= limit or len(sentence.split()) <= _MIN_WORDS else sentence
    if sentence.count("(") > sentence.count(")"):  # a full stop in brackets ended it
        sentence = sentence[: sentence.rfind("(")]
    sentence = sentence.rstrip(" .;,:：")
    if introduces and code:
        sentence = _add_code(sentence, code)
    introduced = ": ".join((*intros[-1:], sentence))
    return introduced if len(introduced) <= limit else shorten(_ADDRESS.sub("", sentence), limit)


def _add_code(sentence: str, code: str) -> str:
    """Return a sentence with the command below it, or alone if it makes sense alone and the code is longer."""
    lines = [_AFTER_COMMAND.sub("", line.strip().removeprefix("$ ")) for line in code.split("\n") if line.strip()]
    commands = [line for line in lines if line and not line.startswith(("#", "//"))]
    is_short = bool(commands) and len(commands[0]) <= _MAX_CODE_IN_TITLE and "`" not in commands[0]
    if not is_short or (len(commands) > 1 and is_whole(sentence)):
        return sentence
    more = f" ({len(commands)} lines)" if len(commands) > 1 else ""
    return f"{sentence}: `{commands[0]}`{more}"
