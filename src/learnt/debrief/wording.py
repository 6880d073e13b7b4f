"""Judge by its wording whether a line beside a statement leaves the statement the agent's own.

The line above must be about the agent's own work: it reports no text of somebody else, keeps no distance from one,
names no source, points at nothing with "this", and looks like no line of a file, a log or code. The line below must not
refer back. Only English is understood; of other languages, only the signs are.
"""

from __future__ import annotations

import re

# What begins to show foreign text, with or without a colon: prompts, headers, patches, here-documents.
SHOWS_TEXT = (
    "(?i)"
    + r"\s*(?:[$❯➜λ]\s+\S|[%#]\s+(?:cat|less|head|tail|grep|rg|git|curl|wget|ls|find|sed|awk|echo|gh|npm|pip|python|"
    r"docker)\b|"
    r">>>\s|In \[\d+\]:|Out\[\d+\]:|PS [A-Z]:|[\w.-]+@[\w.-]+[:\s]\S*[$#%]\s|(?:cat|curl|wget|head|tail|grep|rg|"
    r"less) \S+|"
    r"(?:From|To|Cc|Subject|Date|Sent|Author|Reply-To|Message-ID|Content-Type|Merge|Commit|Signed-off-by)\s*:\s|"
    r"commit [0-9a-f]{7,}|diff -|index [0-9a-f]{6,}|@@ |(?:---|\+\+\+) [ab/]|HTTP/\d|(?:GET|POST|PUT) /|"
    r"On .{4,80} wrote:?\s*$|-{2,}\s*(?:Original|Forwarded|Begin)|Begin forwarded)|.*<<-?\s*['\"]?\w"
)
POINTS_ON = r"[:：,;|>=(\[{&\\/+<–—→↓⬇«„“-][\s*_`]*\Z"
OWN_VOICE = r"\s*(?:[-*•]\s+)?[*_]*(?:I|We|My|Our)(?:['’]\w+)?\s"
BULLET = r"[ \t]*+(?:[-*•+]|\d{1,9}[.)])[ \t]++"


def _any(words: str, *phrases: str) -> str:
    """Return an expression for any of these words and phrases."""
    return rf"\b(?:{'|'.join((*words.split(), *phrases))})\b"


_TEXT = _any(
    """
    [\\w/-]+\\.(?:md|txt|py|js|tsx?|json|ya?ml|toml|log|html?|rst|csv|c|h|go|rs|java|rb|sh|sql|xml|cfg|ini|ipynb)
    read-?me changelog licen[cs]e comments? docstrings? docs? documentation logs? logfile output stdout stderr terminal
    console tools? commands? webpage pages? website site web url links? issues? tickets? pr messages? e-?mails?
    mails? letter users? customer prompts? reviewers? authors? colleagues? maintainers? someone somebody people stranger
    attacker files? lines? text notes? section paragraph string response reply answers? snippet excerpt quotes?
    quotation wiki blog posts? thread chat conversation transcript briefs? instructions? payload body header footer
    description attachment document pdf csv json yaml xml html toml table row cell record fields? fixtures? samples?
    template contents? sources? article manual guide specs? diff patch listing directory folder history
    clipboard translation inputs? examples? format syntax usage entry entries words assistant model bot memory todo
    """,
    "web page",
    "pull request",
    "search results?",
)
_STATEMENT = _any(
    r"learnings? sigils? marks? tags? elements? directives? task-done task-failed LEARNING_\w+ injections?"
)
_SPEAKS = _any(
    """
    says? said saying states? stated claims? claimed claiming writes wrote mentions? mentioned suggests?
    suggested recommends? recommended tells? told telling instructs? instructed demands? demanded prints? printed
    printing quotes? quoted quoting cites? cited replied replies answered goes declares insists? urges? echoes echoed
    adds follows asks asked wants wanted means opinion
    """
)
# What an agent reports of its own work.
_WORK = "(?i)" + _any(
    """
        done finished complete completed ready fixed fixes fix works? worked working pass passes passed passing green
        added changed updated moved removed renamed implemented created built wrote rewrote refactored replaced
        corrected merged committed pushed deployed installed checked tested verified ran run reviewed cleaned documented
        migrated solved resolved succeeded succeeds covers? covered modified edited touched failed fails missing
        locked blocked broken stopped
        closed opened saved counted use uses now again all nothing
        """,
    "gave up",
)
_DISTANCE = (
    "(?i)"
    + r"\b(?:ignor|disregard|refus|inject|malicious|suspicious|untrusted|verbatim|emit|foreign|bogus|forged)|"
    + _any(
        """
        quote quoted quoting quotation unquote planted trap tricks? tricked pasted repeat repeated repeating copied
        excerpt
        """,
        r"word (?:for|by) word|nice try|copy of|(?:for|as an) (?:example|instance)|would look like|"
        r"pass(?:ing)? (?:this|it) on",
        r"I (?:declined?|reject(?:ed)?|discarded|(?:skipped|dropped|left) (?:it|this|that))|as (?:requested|demanded|"
        r"asked)",
        r"(?:not|n['’]t|never|without|nor|no need to|instead of)\s+(?:\w+\s+){0,2}(?:follow|obey|comply|act|copy|"
        r"adopt|trust|"
        r"believe|mean|endorse|count|honou?r|heed|mine|my|me|(?:do|doing|did) (?:so|that|this|it|what)|execut\w*|apply|"
        r"report|record|acted|followed|taken|taking|treat|agree|fall|write|say|written|relevant|true)",
        r"(?:asks?|asked|asking|tells?|told|wants?|wanted|orders?|ordered|instructs?|instructed|invites?|urges?|"
        r"tries|tried|"
        r"trying|begs?|requests?|requested|expects?|attempts?|attempted)\s+(?:\w+\s+){0,3}?(?:me|us|agents?|you|"
        r"readers?|"
        r"models?|assistants?|everyone|anybody|anyone)",
        r"(?:asked|asks?|asking|told|wants?|wanted|supposed|trying|tried|tries)\s+(?:\w+\s+){0,3}?to\s+(?:write|say|"
        r"output|"
        r"print|mark|repeat|include|put|give|report|record|state|store|save|remember|pass)",
    )
    + r"|\b(?:won['’]t|(?:will|did|do|would|can|could) ?(?:not|n['’]t)|cannot)\W*$"
)
_REPORT = (
    "(?i)"
    + rf"(?<!\bI )(?<!\bwe ){_SPEAKS}|"
    + _any(
        "beware",
        r"written (?:in|on|into|by|there|down)",
        r"according to|the following|as follows|as below|like (?:so|this|that)|here (?:it|they|he|she) (?:is|"
        r"are|goes|comes)|see (?:below|"
        r"here|this)",
        r"reads? (?:as|like|thus|so)|here (?:is|are|was|were|comes) (?:what|its?|their|his|her)|look (?:at this|what)",
    )
    + rf"|{_TEXT}.*\breads?\W*$|\b(?:below|here|is|are|was|were|gave|with|by|from|of|to|in|has|had)\W*$"
)
# Somebody else, or something that is yet to come.
_OTHERS = (
    "(?i)" + r"\b(?:he|she|his|her|him|their|them|who|somebody|someone|everybody)\b|"
    r"\bthey\b(?! (?:all )?(?:pass|work|run|are|succeed))"
)
_POINTS = (
    "(?i)"
    + r"\b(?:this|these|those)\b(?! (?:task|session|bug|change|fix|module|project|repo|code|way|function|feature|"
    r"attempt|time|"
    r"case|turn|migration|problem|race|error|works?|fix(?:es|ed)|(?:is|was) (?:all|done|fixed|finished))\b)"
)
_NOUN = "(?i)" + _TEXT
_ABOUT_STATEMENTS = rf"(?i){_STATEMENT}|<\w"
_SHOWS = "(?i)" + _any(
    """
        contains? contained containing includes? included holds held has had having shows? showed showing returns?
        returned gives gave displays? displayed lists? listed ends? ended begins? began starts? started carries found
        saw noticed spotted encountered got received came
        """,
    "there (?:is|was|are|were)",
)
_ENDS_WITH_NOUN = rf"(?i){_TEXT}\W*$"
_CODE_SPAN = r"`[^`]*`"
_GREETING = (
    "(?i)"
    + r"[*_]*(?:hello|hi|dear|hey|q:|a:|thanks|regards|best regards|cheers|yours|sincerely|not|end of|of course)\b|"
    r"[*_]*(?:no|well|nope)[.,!]"
)
_BACKWARD = (
    "(?i)"
    + r"[*_]*(?:that|this|it|its|these|those|they|such|above|so|none of|neither|all of (?:this|that|it)|the (?:above|"
    r"former|last|"
    r"previous|preceding|line|text|block|sentence|element|learning|mark|tag|sigil)s?)\b"
)
_ABOUT_IT = (
    r"(?i)(?:n['’]t|\b(?:not|never|only|no|against))\b.*\b(?:it|that|this|them)\W*$|"
    r"\b(?:it|that|this|them)\s*\?|and so\b"
)
_IT = r"(?i)\b(?:it|its|that|them|such)\b"
_FIRST_PERSON = r"(?i)\b(?:I|we|my|our)\b"
_PROGRESS = r"[a-z]+ing\b[^`:]*|(?:ok|OK)\W*"
_EXCEPTION = r"\b\w+(?:Error|Exception|Warning)\b"

_SENTENCE = r"""(?<=[.!?。！？])["'”’»)\]*_`]*\s+"""
_ENDS_SENTENCE = r"""[.!。！…]["'”’»)\]*_`]*\s*\Z|[^\w\s!-~]\s*\Z"""
_ENGLISH = r"[\s!-~’“”‘–—…]*"
_LABEL_WORDS = frozenset(
    """
    a agent agents all also an and are attempt be best changes conclusion conclusions did difficulty discovered done
    each end ended estimate few feedback final finally findings finished first for found from future general going good
    handoff have helped helpful here i important insight insights is key knowing know learned learning learnings learnt
    lesson lessons main mark marks more my new next not notable note notes of on one other others our out outcome
    overall project points recap remember report result results s second session several some status sum summary
    takeaway takeaways task tasks the things third this three time to today two up ve we what will work worth wrap
    """.split()
)
_FROM_OTHERS = r"(?i)\bfrom\b(?! (?:this|my|our|today|the (?:task|session|work|project|attempt))\b)"
_HEADING_WORDS = frozenset(
    """
    changes conclusion conclusions done feedback final findings finished fix handoff insights learned learning learnings
    learnt lesson lessons marks next outcome recap report result results root status summary takeaways tests
    verification wrap changed did overview notes
    """.split()
)
_LABEL_WORD = r"[^\W\d_]+"
_MAX_LABEL_WORDS = 10
_MAX_SOURCE_WORDS = 8

# A line of a log, of numbered output, of a chat, of key and value.
_PREFIXED = (
    r"\s*(?:\d+\s*[:|→│>\t]|\d{4}[-/]\d\d[-/]\d\d|\d{1,2}:\d\d|\[[^\]]{1,60}\]|[EWID][/:]|"
    r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE|VERBOSE)(?:\b\s*[:|\]/-]|\s+\S)|"
    r"(?:[\w./-]+\.\w{1,6}|[\w-]+/[\w./-]+)(?::\d+|\(\d+\))?:|[a-z_][\w.-]*\s*[:=]\s|[a-z_][\w.-]*=|"
    r"(?:User|Assistant|Human|System|AI|Agent|Bot|Tool|Output|Result|Response|Observation|Comment|Quote|Source|File|"
    r"Input|"
    r"Prompt|Reply|Message|Answer|Line|Row|Note|Title|Body|Description|Content|Text|License|Page \w+)\s?:\s)"
)
_CODE = (
    r".*[;{}\\]\s*$|(?:def|class|import|from|return|function|const|let|var|public|private|static|package|export|"
    r"#include|"
    r"elif|else|try|except|async|await|select|insert|create)\b[^.]*$|[\w.\[\]]+\s*[-+:|]?=[^=].*|[\w.]+\([^)]*\)\s*$|"
    r"[-d][rwx-]{9}\b.*|total \d+\s*$"
)
_PATH = r"\s*[`*_]*[\w@~.-]*(?:[/\\][\w@~./\\-]*|\.\w{1,8})[`*_]*\s*"


def is_label(line: str) -> bool:
    """Return whether a line with a colon is a heading for an agent's own statements, such as `What I learned:`."""
    text = line.strip().lstrip("#").strip(" \t*_:：")
    words = re.findall(_LABEL_WORD, text)
    return (
        line.rstrip(" \t*_").endswith((":", "："))
        and 0 < len(words) <= _MAX_LABEL_WORDS
        and text[:1].isupper()
        and all(word.lower() in _LABEL_WORDS for word in words)
        and not re.search(_FROM_OTHERS, text)
    )


def introduces_foreign(line: str) -> bool:
    """Return whether a line that points on is about a text of somebody else, or names one."""
    if reports(_split_sentences(line)[-1]) or (re.search(_SHOWS, line) and not re.search(_FIRST_PERSON, line)):
        return True
    return names_source(line) and not re.search(_WORK, line)


def is_title_of_foreign(line: str) -> bool:
    """Return whether a line that is a paragraph by itself only names the text that follows."""
    if re.search(_ENDS_SENTENCE, line) or _is_heading(line) or re.match(BULLET, line):
        return False
    return names_source(line) and not re.search(_WORK, line)


def reports(sentence: str) -> bool:
    """Return whether a sentence is about a text of somebody else, or keeps its distance from one."""
    if re.search(_DISTANCE, sentence) or re.search(_REPORT, sentence):
        return True
    if not re.search(_NOUN, sentence):
        return False
    if re.search(_ABOUT_STATEMENTS, re.sub(_CODE_SPAN, "", sentence)):
        return True
    return bool(re.search(_SHOWS, sentence) and (re.search(_OTHERS, sentence) or re.search(_POINTS, sentence)))


def names_source(line: str) -> bool:
    """Return whether a line only names where a text is from: `Tool output`, `README.md, line 3`."""
    if re.fullmatch(_PATH, line):
        return True
    return (
        len(line.split()) <= _MAX_SOURCE_WORDS and bool(re.search(_NOUN, line)) and not re.search(_FIRST_PERSON, line)
    )


def fits_above(line: str, paragraph: str, *, is_adjacent: bool) -> bool:
    """Return whether a statement below this line, the last of its paragraph, is the agent's own."""
    if is_label(line):
        return True
    if re.match(BULLET, line) and not is_adjacent:
        return not re.match(SHOWS_TEXT, line)  # a list that is over
    if _looks_foreign(line) or re.search(POINTS_ON, line):
        return False
    if _is_heading(line):
        return _is_own_heading(line)
    sentences = _split_sentences(paragraph)
    if reports(sentences[-1]) or any(re.search(_DISTANCE, sentence) for sentence in sentences[-2:]):
        return False
    return _is_about_own_work(sentences[-1], line)


def fits_below(line: str, paragraph: str, *, is_adjacent: bool) -> bool:
    """Return whether a statement above this line, the first of its paragraph, is the agent's own."""
    body = re.sub(BULLET, "", line.strip(), count=1).lstrip("#*_ \t")
    if _looks_foreign(line) or (body[:1].islower() and not re.match(BULLET, line)) or re.match(_GREETING, body):
        return False
    if _is_heading(line):
        return (not is_adjacent or not line.startswith("# ")) and not names_source(line)
    sentences = _split_sentences(paragraph)
    first = sentences[0]
    if (
        any(re.search(_DISTANCE, sentence) for sentence in sentences[:2])
        or re.search(_REPORT, first)
        or re.search(_ABOUT_IT, first)
    ):
        return False
    if names_source(line) and not re.search(_WORK, first):
        return False
    if re.search(_POINTS, first) or (re.search(_IT, first) and re.search(_NOUN, first)):
        return False
    if re.match(_BACKWARD, first) and (re.search(_NOUN, first) or re.search(_ABOUT_STATEMENTS, first)):
        return False
    return bool(re.search(_ENDS_SENTENCE, first) or line.rstrip(" *_")[-1:] in ":?" or re.match(BULLET, line))


def _split_sentences(text: str) -> list[str]:
    return [sentence for sentence in re.split(_SENTENCE, text.strip()) if sentence.strip()] or [""]


def _is_heading(line: str) -> bool:
    text = line.strip()
    return text.startswith("#") or (text.startswith("**") and text.endswith("**"))


def _is_own_heading(line: str) -> bool:
    words = {word.lower() for word in re.findall(_LABEL_WORD, line)}
    foreign = re.sub(_NOUN, lambda match: "" if match[0].lower() in _HEADING_WORDS else "\0", line)
    return "\0" not in foreign and bool(words & _HEADING_WORDS or not line.isascii()) and not reports(line)


def _is_about_own_work(sentence: str, line: str) -> bool:
    """Return whether the last sentence above a statement is one about the agent's own work."""
    works = re.search(_WORK, sentence)
    if re.match(_GREETING, sentence) or re.search(_POINTS, sentence):
        return False
    if re.search(_OTHERS, sentence) and not (works and re.match(OWN_VOICE, sentence)):
        return False
    if not re.fullmatch(_ENGLISH, sentence.rstrip()[:-1]):
        return bool(re.search(_ENDS_SENTENCE, line))
    if re.search(_ENDS_SENTENCE, line):
        return bool(works) or not re.search(_NOUN, sentence)
    if re.search(_ENDS_WITH_NOUN, sentence):
        return False
    return bool(works or re.search(_EXCEPTION, sentence) or re.fullmatch(_PROGRESS, sentence))


def _looks_foreign(line: str) -> bool:
    """Return whether a line looks like one of a file, a log, a listing or code."""
    text = line.strip()
    body = re.sub(BULLET, "", text, count=1).lstrip("#*_` \t")
    if not any(map(str.isalnum, body)) or not _may_start(body[:1]):
        return True
    return bool(
        re.match(SHOWS_TEXT, text) or re.match(_PREFIXED, body) or re.fullmatch(_CODE, body) or text.startswith("+")
    )


def _may_start(letter: str) -> bool:
    """Return whether prose may start with this: a letter, a digit, a quotation mark, an emoji; no sign of a listing."""
    is_drawing = "\u2190" <= letter <= "\u23cf" or "\u2500" <= letter <= "\u25ff"
    return letter.isalnum() or letter in "\"'“‘«„" or (letter > "\u2030" and not is_drawing)
