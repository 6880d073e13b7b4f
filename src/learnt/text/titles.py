"""Make titles from texts, and compare texts.

A title is the first sentence of a text, cut to the maximum length of a title. The same rule applies to texts by agents
and by people, so both can be looked up by their titles.

There are six ways to compare texts: `text_key` (the same words in the same order, for lookups in the store),
`letters_key` (the same letters, for titles in one brief), `line_key` (the same except for case and white space, for
lines that people edit), `key_of` (for names of agents and categories), `share_most_words` (mostly the same words, for
learnings in one brief) and `normalised_error` (the same error in two runs).
"""

from __future__ import annotations

import re
from collections.abc import Set

from learnt.model import TITLE_LIMIT, digest
from learnt.text.clean import fold

# The expressions are compiled when first needed, because a brief loads this module but does not need them. A sentence
# ends with a full stop or the like and perhaps a closing quotation mark, before the end of the line or a word that
# could start a sentence.
_SENTENCE_END = (
    r"""(?i)(?<!\be\.g)(?<!\bi\.e)(?<!\bcf)(?<!\bvs)[.!?…]["')\]*_`]*(?=$| ["'(\[*_`]*([^\W\d_]))|[。！？]"""
)
# These details differ between two runs: temporary files, addresses, ids, line numbers, times.
_VARYING = r"/(?:tmp|private/tmp|var/folders|var/tmp)/[^\s'\":,;)\]]*|\b0x[0-9a-f]+|\b[0-9a-f-]*\d[0-9a-f-]*\b"
# These are the paths of tasks' worktrees, and our own ids.
_OUR_NAMES = r"\S*/worktrees/task_\w+|\b(?:task|attempt|learn|brief|esc)_[a-z0-9]{8,}\b"
_SIGNS = r"`[^\w`\n]+`|(?<!\S)`?-[A-Za-z]\b(?!-)"
_MIN_SHARED_WORDS = 0.8
AGENT_ENDED_PREFIX = "the agent "  # a text that only says how an agent ended begins like this
REFUTED_PREFIX = (
    "said to be done, but "  # why an attempt failed whose agent said that the task is done begins like this
)

OWN_LINE = "learnt: "  # a line of ours on the stderr of an agent that `learnt work` has started begins like this


def first_sentence(line: str) -> str:
    """Return the first sentence of a folded line, or the start of the line if no sentence ends soon."""
    line = line[: 2 * TITLE_LIMIT]  # a title is cut before that
    for end in re.finditer(_SENTENCE_END, line):
        if not end[1] or not end[1].islower():
            return line[: end.end()]
    return line


def cut_title(text: str) -> str:
    """Return the text cut to the maximum length of a title, at the end of a word if possible."""
    if len(text) <= TITLE_LIMIT:
        return text
    space = text.rfind(" ", TITLE_LIMIT // 2, TITLE_LIMIT + 1)
    return fold(text[: space if space > 0 else TITLE_LIMIT])


def begins(title: str, text: str) -> bool:
    """Return whether a title is only the beginning of a text, perhaps cut."""
    return fold(text[: 2 * TITLE_LIMIT]).startswith(title.rstrip("… "))


def cut_text(text: str, limit: int) -> str:
    """Return the text cut to a length, at the end of a sentence or at least of a word, if there is one."""
    if len(text) <= limit:
        return text
    end = max(text.rfind(end, limit // 2, limit) for end in (". ", "! ", "? ", "。", "\n"))
    if end < 0:
        end = text.rfind(" ", limit // 2, limit)
    return text[: end + 1 or limit].rstrip()


def cut_words(text: str, limit: int) -> str:
    """Return the text cut to a length, with an ellipsis; not in the middle of a word, if words are separated."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    started = re.search(r"\w+$", head) if text[len(head)].isalnum() else None
    if started and started.start() > limit // 3:
        head = head[: started.start()]
    return f"{head.rstrip(' ,;:(')}…"


def cut_start(text: str, limit: int) -> str:
    """Return the end of a text; not from the middle of a word, if words are separated."""
    if len(text) <= limit:
        return text
    ending = text[-limit:]
    rest = re.search(r"^\w+", ending) if text[-limit - 1].isalnum() else None
    return ending[rest.end() :].lstrip() if rest and rest.end() < limit // 3 else ending


def text_key(text: str) -> str:
    """Return a short digest that ignores case, white space and punctuation."""
    return digest(_normalise(text) or text.strip())[:24]


def has_same_signs(one: str, other: str) -> bool:
    """Return whether code of two texts with the same words has the same separators and short options.

    What stands in backticks without any word, such as `;`, and the case of `-D` can be the whole difference.
    """
    return re.findall(_SIGNS, one) == re.findall(_SIGNS, other)


def letters_key(text: str) -> str:
    """Return only the letters and digits of a text, in lower case."""
    return _normalise(text).replace(" ", "")


def line_key(text: str) -> str:
    """Return a text on one line, in lower case."""
    return fold(text).lower()


def key_of(name: str) -> str:
    """Return a name in lower case, with `-` for underscores and blanks."""
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())


def share_most_words(ours: Set[str], theirs: Set[str]) -> bool:
    """Return whether two texts share nearly all of their words."""
    return len(ours & theirs) > _MIN_SHARED_WORDS * max(len(ours), len(theirs))


def normalised_error(text: str) -> str:
    """Return an error without the details that differ from run to run.

    The result is empty for a text that only says how an agent ended, not why.
    """
    if text.startswith(AGENT_ENDED_PREFIX):
        return ""
    plain = re.sub(_VARYING, " ", re.sub(_OUR_NAMES, " ", text.casefold()))
    return _normalise(re.sub(r"\d+", " ", plain))


def _normalise(text: str) -> str:
    """Return the text in lower case, words separated by single spaces."""
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()
