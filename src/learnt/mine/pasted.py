"""What in a prompt a person has probably typed, and what may be pasted: logs, mails, documents, quoted text.

Light enough to be loaded wherever a mark is counted: no expression is compiled before it is needed.
"""

from __future__ import annotations

import re

from learnt.debrief.own_words import own_words
from learnt.text.clean import clean
from learnt.text.sentences import HEADING, TABLE, read_blocks, read_sentences

MAX_PROMPT = 20_000
MAX_OWN_LENGTH, _MAX_OWN_LINES = 2_500, 40
# Lines of a log, a trace or a shell.
_FOREIGN_LINE = (
    r"\s*(?:\w*(?:Error|Exception|Warning)\b(?::| \()|Traceback \(|at [\w.$<>]+\(|\[?\d{4}-\d\d-\d\d|\[?(?:ERROR|WARN|"
    r"WARNING|INFO|DEBUG|FATAL|CRITICAL|TRACE)\b|[$❯%] \S|[\w.-]+@[\w.-]+[:~]|[\w./\\-]+:\d+(?::\d+)?:|(?:From|To|"
    r"Subject|Date|Cc): |[+-]{3} [ab]/|@@ )"
)
# Asks to work on a text, which follows.
_ABOUT_TEXT = (
    r"(?i)\b(?:explain|summari[sz]e|translate|proofread|paraphrase|rewrite|review|tl;?dr|(?:is|if|whether) (?:this|it) "
    r"(?:is )?(?:correct|right|ok)|fix the (?:typo|grammar|wording)|make (?:it|this) better|what does (?:this|that|"
    r"it) (?:mean|say)|read (?:this|the following)|following|below|here(?:['’]s| is| are)|see this|pasted?|copied|"
    r"from the|according to|erkläre?|fasse?\b.*\bzusammen|übersetze?|folgende\w*|hier (?:ist|sind)|laut|explique|"
    r"résume|traduis|voici|ci-dessous|selon|explica|resume|traduce|aquí (?:está|tienes)|según)\b"
)


def list_typed_sentences(prompt: str) -> list[str]:
    """Return the sentences of a prompt that a person has probably typed; nothing that follows an introduction."""
    text = clean(prompt)[:MAX_PROMPT]
    if text.lstrip().startswith(("/", "<")) or looks_pasted(text):  # a command, or what a client has put in
        return []
    own, foreign_from, typed = own_words(text), find_foreign(text), []
    for sentence in read_sentences(text):
        if sentence.start >= foreign_from:
            break
        if own[sentence.start : sentence.end].strip() and not is_foreign_line(sentence.text):
            typed.append(sentence.text)
        if announces_text(sentence.text) or sentence.text.endswith(":"):
            foreign_from = min(foreign_from, end_of_line(text, sentence.end))
    return typed


def is_foreign_line(line: str) -> bool:
    """Return whether a line is of a log, a trace, a mail or a shell."""
    return bool(re.match(_FOREIGN_LINE, line))


def announces_text(sentence: str) -> bool:
    """Return whether a sentence asks to work on a text, which follows it."""
    return bool(re.search(_ABOUT_TEXT, sentence))


def find_foreign(text: str) -> int:
    """Return where the first line of a log, a trace, a mail or a shell starts; the end of the text if there is none."""
    start = 0
    for line in text.split("\n"):
        if is_foreign_line(line):
            return start
        start += len(line) + 1
    return len(text)


def looks_pasted(text: str) -> bool:
    """Return whether a prompt is so long, or so much a document, that a person has hardly typed all of it."""
    if len(text) > MAX_OWN_LENGTH or text.count("\n") > _MAX_OWN_LINES:
        return True
    return any(block.kind in (HEADING, TABLE) for block in read_blocks(text))


def end_of_line(text: str, position: int) -> int:
    """Return where the line that contains a position ends."""
    end = text.find("\n", position)
    return len(text) if end < 0 else end
