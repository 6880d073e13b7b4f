"""Judge by its wording whether a line beside a statement leaves the statement the agent's own.

The sentence above must be a whole one that shows no text of somebody else: it does not end where a report begins,
points at nothing below it, names no stretch of text without saying what the agent did with it, keeps no distance from
one, and looks like no line of a file, a log or code. The sentence below must not refer back. Only English is
understood; of other languages, the signs and a few words.
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


# Where a text can be from.
_SOURCE = _any(
    """
    [\\w/-]+\\.(?:md|txt|py|js|tsx?|json|ya?ml|toml|log|html?|rst|csv|c|h|go|rs|java|rb|sh|sql|xml|cfg|ini|ipynb)
    read-?me changelog licen[cs]e docs? documentation logs? logfile stdout stderr terminal console tools? commands?
    webpage pages? website site web url links? issues? tickets? pr e-?mails? mails? letter users? customer prompts?
    reviewers? authors? colleagues? maintainers? someone somebody people stranger attacker files? wiki blog posts?
    thread chat conversation transcript briefs? document pdf csv json yaml xml html toml table clipboard article manual
    guide specs? diff patch listing directory folder history output response string header footer row cell record
    fixtures? samples? template sources? inputs? format syntax usage assistant model bot todo (?:sub-?)?agents?
    """,
    "web page",
    "pull request",
    "search results?",
)
# What a stretch of text is called.
_PIECE = _any(
    """
    (?<!command.)lines? text paragraphs? sections? passages? sentences? words comments? docstrings? notes?
    (?<!error.)messages? quotation excerpts? snippets? blocks? instructions? contents? descriptions? bod(?:y|ies)
    reply answers? banner blob payload attachment translation paraphrase examples? entry entries gist advice
    """
)
_TEXT = rf"(?:{_SOURCE}|{_PIECE})"
_STATEMENT = _any(
    r"learnings? sigils? marks? tags? elements? directives? task-done task-failed LEARNING_\w+ injections?"
)
_SPEAKS = _any(
    """
    says? said saying states? stated claims? claimed claiming writes wrote mentions? mentioned suggests?
    suggested recommends? recommended tells? told telling instructs? instructed demands? demanded prints? printed
    printing cites? cited replied replies answered goes declares insists? urges? echoes echoed
    adds asks asked wants wanted means opinion reported greets
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
_REFUSES = r"(?:ignor|disregard|refus|declin|reject|discard|skip|dropp?)\w*"
_IT = r"(?:it|this|that|them|these|those|such)"
_ASKS = r"(?:ask(?:s|ed|ing)?|(?<!\A)tells?|told|(?<!you )wants?|wanted|orders?|ordered|instruct(?:s|ed)?|invites?|"
_ASKS += r"urges?|tries|tried|trying|begs?|request(?:s|ed)?|expects?|attempt(?:s|ed)?|supposed|address\w*|aimed at)"
_DISTANCE = "(?i)" + "|".join(
    (
        _any(
            """
            malicious suspicious untrusted emit bogus forged injected planted trap tricks? tricked unquote foreign
            """,
            "prompt.injection|injection attempt|nice try|copy of|would look like|word (?:for|by) word",
            "(?:for|as an) (?:example|instance)|pass(?:ing)? (?:this|it) on|for (?:\\w+ )?(?:agents|people like us)",
        ),
        # refusing it; what a program refuses to do is something else
        rf"\b{_REFUSES}\W+(?:\w+\W+){{0,3}}?(?:{_IT}\b(?! (?:task|bug|problem|error)\b)|{_PIECE}|{_STATEMENT})",
        rf"\b{_REFUSES}(?<!s)\W+(?:to\b|\Z)",
        r"\bI (?:left|leave|leaving) (?:it|this|that|those|them)\b",
        r"(?:\b(?:not|never|without|nor|no need to|instead of)|n['’]t)\s+(?:\w+\s+){0,2}(?:follow|obey|comply|act|copy|"
        r"adopt|trust|believe|mean|endorse|count|honou?r|heed|mine|my|me|(?:do|doing|did) (?:so|that|this|it|what)|"
        r"execut\w*|report|record|acted|followed|taken|taking|treat|agree|fall|write|say|written|relevant|true)\b",
        r"\b(?:won['’]t|(?:will|did|do|would|can|could) ?(?:not|n['’]t)|cannot)\W*$",
        # repeating it
        r"\bI (?:only |just )?(?:quote|repeat|cite)\b|\bquot(?:ed|ing|ation) (?:from|by|of)\b",
        r"\bquote (?:starts|ends)\b|\b(?:end|start) of (?:the )?quot|\bverbatim\W*$",
        r"\b(?:copied|taken|pasted|repeated) (?:\w+ )?(?:from|out of|here)\b",
        r"\b(?:reproduc|includ|repeat|copy|copied|past|quot)\w* (?:it|them|this|that)\b",
        # what it wants
        r"\b(?:attempt|tr(?:y|ies|ied|ying)) (?:to|at) (?:influenc|plant|trick|talk|mak)",
        rf"\b{_ASKS}\s+(?:\w+\s+){{0,3}}?(?:agents?|readers?|models?|assistants?|everyone|anybody|anyone|tools)\b",
        rf"\b{_ASKS}\s+(?:\w+\s+){{0,3}}?(?:me|us)\b(?! (?:if|whether|know)\b)",
        rf"\b{_ASKS}\s+(?:\w+\s+){{0,3}}?to\s+(?:write|say|output|print|mark|repeat|include|put|give|report|record|state|"
        r"store|save|remember|pass)\b",
    )
)
# Something stands directly below.
_POINTS = "(?i)" + "|".join(
    (
        r"\bthe following\b",
        r"\b(?:(?:with|in|has|had|by) (?:this|these) (?:\w+ )?\w+|as follows|follow(?:s|ing)|below|see (?:here|this)|"
        r"like (?:so|this|that)|in full|as is|literally|beware|look (?:at this|what)|"
        r"(?:next|last) (?:\w+ )?lines?)\W*$",
        r"\bhere(?:['’]s| is| are| was| were| comes?| goes| you go| it (?:is|comes|goes)| they are)\b"
        r"(?! (?:all|what (?:I|we|was|changed)|why|how)\b)",
        rf"\A\W*(?:\w+, )?(?:this|that|it)(?:['’]s| is| was) (?:what|how|from|by|not|(?:\w+\W+){{1,4}}{_TEXT})",
    )
)
_THIS = rf"(?i)\b(?:this|these|those)\b(?=\W*$| (?:in|on|at|from|into|to|as|by|an?|one|back|looks?)\b| {_PIECE})"
_NOUN, _PIECES, _SOURCES = "(?i)" + _TEXT, "(?i)" + _PIECE, "(?i)" + _SOURCE
# The same in other languages, as far as single words show it.
_ABROAD = (
    r"(?i)\b(?:datei\w*|kommentar\w*|hinweis\w*|zeilen?|seite|folgend\w*|steht|fichier|commentaire|ligne|consigne|"
    r"suivante?s?|fichero|archivo|comentario|línea|instrucción|siguientes?|ficheiro|arquivo|comentário|linha|seguintes?|"
    r"riga|commento|istruzion\w|seguent\w|plik\w*|komentarz\w*|файл\w*|комментари\w*|строк\w*|следующ\w*|агент\w*|"
    r"agent\w{0,2}(?=.*[^\x00-\x7f]))\b|代理|エージェント|コメント|评论|에이전트|댓글|次の|以下|ファイル|文件|如下|注释|파일|다음"
)
# The report ends where the reported text should begin.
_SPOKE = rf"(?i)(?<!\bI )(?<!\bwe ){_SPEAKS}(?:\W+\w+){{0,2}}\W*$|\baccording to (?:\w+\W+){{1,4}}$"
_LEADS_ON = r"(?i)\b(?:here|is|are|was|were|gave|with|by|from|of|to|in|has|had|reads?)[^\w.!?。]*$"
_ABOUT_STATEMENTS = rf"(?i){_STATEMENT}|<\w"
_PERCEIVES = "(?i)" + _any(
    """
        found saw see sees noticed spotted encountered got received came hit read reading opened fetched looked decoded
        """
)
_I_DID = rf"(?:\W*|.*, (?:so|and|but) )(?:I|We|we)\b(?!.*{_PERCEIVES.removeprefix('(?i)')})"
_SHOWS = "(?i)" + _any(
    """
        contains? contained containing includes? included holds held has had having shows? showed showing returns?
        returned gives gave displays? displayed lists? listed ends? ended begins? began starts? started carries found
        saw noticed spotted encountered got received came closes
        """,
    "there (?:is|was|are|were)",
)
_ENDS_WITH_NOUN = rf"(?i){_TEXT}\W*$"
_VERB = (
    r"(?i)\b(?:is|are|was|were|am|be|been|has|have|had|can|could|will|would|must|should|may|does|do|did|need|needs|"
    r"let|run|please|now|because|when|if|which|takes|took|(?<!, )\w{2,}ed|"
    r"\w{3,}s (?:the|a|an|its|no|all|every|each|more|fewer))\b|n['’]t\b|\A\W*No\b"
)
_CODE_SPAN = r"`[^`]*`"
_EXPLAINS = r"(?i)\b(?:because|since|when|instead of|but)\b|\w: \w+ \w+|; |, so "
_GREETING = (
    "(?i)" + r"[*_]*(?:hello|hi|dear|hey|q:|a:|thanks(?! to)|regards|best regards|cheers|yours|sincerely|not|end of|"
    r"of course)\b|[*_]*(?:no|well|nope)[.,!]"
)
_BACKWARD = (
    "(?i)"
    + r"[*_]*(?:that|this|it|its|these|those|they|such|above|so|none of|neither|all of (?:this|that|it)|the (?:above|"
    r"former|last|"
    r"previous|preceding|line|text|block|sentence|element|learning|mark|tag|sigil)s?)\b"
)
_SPEAKS_OF_IT = (
    r"(?i)[*_]*(?:it|this|that|these|those|they)(?! (?:is|are) [a-z]+ed(?: again| now)?\W*$)"
    r"(?:['’]s|['’]re| is| was| are| were| looks?| seems?| came| comes| "
    r"belongs?| appears?)\b(?! (?:all|it|done|fixed|finished|now|green|ready|still)\b)"
)
_ABOUT_IT = (
    r"(?i)(?:n['’]t|\b(?:not|never|only|no|against))\b.*\b(?:it|that|this|them)\W*$|"
    r"\b(?:it|that|this|them)\s*\?|and so\b"
)
_ITS = r"(?i)\b(?:it|its|that|them|such)\b"
_FIRST_PERSON = r"(?i)\b(?:I|we|my|our)\b"
_PROGRESS = r"[a-z]+ing\b[^`:]*|(?:ok|OK)\W*"
_EXCEPTION = r"\b\w+(?:Error|Exception|Warning)\b"

_SENTENCE = r"""(?<=[.!?。！？])["'”’»)\]*_`]*\s+"""
_ENDS_SENTENCE = r"""[.!。！…]["'”’»)\]*_`]*\s*\Z|[^\w\s!-~]\s*\Z"""
_TITLE = "(?i)" + _any(
    """
    changes? changed conclusions? did done discovered feedback final finally findings? finished fix future gotchas?
    found handoff helped helpful important insights? know known later learn learned learnings? learnt lessons? mark
    marks next noting observations? outcome overview pitfalls? recap remember remembering report results? root status
    summary takeaways? tests useful verification worth wrap
    """,
    "in mind",
)
_NEXT_AGENT = r"(?i)\b(?:next|future|other|later|any) agents?\b|\b(?:the|my) brief\b|^brief\b|\bthis (?:task|session)\b"
_OF_OTHERS = (
    r"(?i)\b(?:from|of|by|in|at|on|with)\b(?! (?:this|my|our|today|mind|learnings?|what (?:I|we)|"
    r"the (?:task|session|work|project|attempt|start|end|brief|(?:given )?learnings?))\b)|(?<!here)['’]s\b|[(\[]|"
    r"\b(?:it (?!works)\w+|proposed|how|told|write|their|his|her|your|its|these|those)\b"
)
_MAX_LABEL_WORDS = 10
_MAX_SOURCE_WORDS = 8
_MAX_TITLE_WORDS = 10

# A line of a log, of numbered output, of a chat, of key and value.
_PREFIXED = (
    r"\s*(?:\d+\s*[:|→│>\t]|\d{4}[-/]\d\d[-/]\d\d|\d{1,2}:\d\d|\[[^\]]{1,60}\]|[EWID][/:]|"
    r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|Error|ERROR|FATAL|CRITICAL|SEVERE|VERBOSE)(?:\b\s*[:|\]/-]|\s+\S)|"
    r"(?:[\w./-]+\.\w{1,6}|[\w-]+/[\w./-]+)(?::\d+|\(\d+\))?:|[a-z_][\w.-]*\s*[:=]\s|[a-z_][\w.-]*=|"
    r"(?:User|Assistant|Human|System|AI|Agent|Bot|Tool|Output|Response|Observation|Comment|Quote|Source|File|"
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
    return line.rstrip(" \t*_").endswith((":", "：")) and _is_own_title(line)


def _is_own_title(line: str) -> bool:
    """Return whether a heading or label is one for an agent's own statements: about the work, and of nobody else."""
    text = line.strip().lstrip("#").strip(" \t*_:：")
    rest = re.sub(_NEXT_AGENT, "", text)
    return (
        0 < len(text.split()) <= _MAX_LABEL_WORDS
        and not text[:1].islower()
        and bool(re.search(_TITLE, text))
        and not re.search(_OF_OTHERS, text)
        and not re.search(_SOURCES, rest)
        and not re.search(r"\s(?!I\b)[A-Z]\w*(?! \w)", rest if len(text.split()) > 3 else "")
    )


def ends_with_presentation(line: str) -> bool:
    """Return whether the last line of a paragraph says that a text of somebody else begins."""
    if is_label(line) or _is_heading(line) or re.match(BULLET, line) or line.lstrip().startswith("|"):
        return False
    last = _split_sentences(line)[-1]
    return presents(last) or not (_is_whole(last, line) or re.search(POINTS_ON, line) or _looks_foreign(line))


def introduces_foreign(line: str) -> bool:
    """Return whether a line that points on is about a text of somebody else, or names one."""
    if reports(_split_sentences(line)[-1]) or (re.search(_SHOWS, line) and not re.search(_FIRST_PERSON, line)):
        return True
    return names_source(line) and not re.search(_WORK, line)


def reports(sentence: str) -> bool:
    """Return whether a sentence shows a text of somebody else, or keeps its distance from one."""
    if re.search(_DISTANCE, sentence) or re.search(_THIS, sentence) or presents(sentence):
        return True
    if re.search(_ABROAD, sentence):
        return True
    if _is_about_own_work(sentence):
        return False
    bare = re.sub(_CODE_SPAN, "", sentence)
    if re.search(_EXPLAINS, sentence):
        return False
    return bool(re.search(_PIECES, bare) or (re.search(_NOUN, bare) and re.search(_ABOUT_STATEMENTS, bare)))


def presents(sentence: str) -> bool:
    """Return whether a text of somebody else should begin behind a sentence."""
    if re.search(_POINTS, sentence) or re.search(_LEADS_ON, sentence):
        return True
    if re.search(_SPOKE, sentence):
        return not re.match(_I_DID, sentence)
    return not _is_about_own_work(sentence) and _is_title(sentence)


def _is_title(sentence: str) -> bool:
    """Return whether a sentence has no verb and names a text: `The issue, shortened.`"""
    bare = re.sub(_CODE_SPAN, "", sentence)
    return len(bare.split()) <= _MAX_TITLE_WORDS and bool(re.search(_NOUN, bare)) and not re.search(_VERB, bare)


def _is_about_own_work(sentence: str) -> bool:
    return bool(re.search(_WORK, sentence) or re.match(_I_DID, sentence))


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
    if line.lstrip().startswith("|") and not is_adjacent:
        return True  # a table that is over
    if _looks_foreign(line) or re.search(POINTS_ON, line):
        return False
    if _is_heading(line):
        return not line.isascii() or _is_own_title(line)
    sentences = _split_sentences(paragraph)
    if reports(sentences[-1]) or any(re.search(_DISTANCE, sentence) for sentence in sentences[-2:]):
        return False
    return _is_whole(sentences[-1], line)


def is_own_work(paragraph: str) -> bool:
    """Return whether the last sentence of a paragraph reports nothing but the agent's own work."""
    sentence = re.sub(_CODE_SPAN, "", _split_sentences(paragraph)[-1])
    return _is_about_own_work(sentence) and not re.search(_PIECES, sentence) and not re.search(_SHOWS, sentence)


def fits_below(line: str, paragraph: str, *, is_adjacent: bool) -> bool:
    """Return whether a statement above this line, the first of its paragraph, is the agent's own."""
    if is_label(line):
        return True
    body = re.sub(BULLET, "", line.strip(), count=1).lstrip("#*_ \t")
    if _looks_foreign(line) or (body[:1].islower() and not re.match(BULLET, line)) or re.match(_GREETING, body):
        return False
    if _is_heading(line):
        return (not is_adjacent or not line.startswith("# ")) and not names_source(line)
    sentences = _split_sentences(paragraph)
    first = sentences[0]
    if (
        any(re.search(_DISTANCE, sentence) for sentence in sentences[:2])
        or (re.search(_SPOKE, first) and not re.search(_WORK, first))
        or re.search(_ABOUT_IT, first)
        or re.match(_SPEAKS_OF_IT, first)
    ):
        return False
    if names_source(line) and not re.search(_WORK, first):
        return False
    if re.search(_THIS, first) or (re.search(_ITS, first) and re.search(_NOUN, first)):
        return False
    if re.match(_BACKWARD, first) and (re.search(_NOUN, first) or re.search(_ABOUT_STATEMENTS, first)):
        return False
    return bool(
        re.search(_ENDS_SENTENCE, first) or line.rstrip(" *_")[-1:] in ":?" or re.match(rf"{BULLET}|[*][*]", line)
    )


def _split_sentences(text: str) -> list[str]:
    return [sentence for sentence in re.split(_SENTENCE, text.strip()) if sentence.strip()] or [""]


def _is_heading(line: str) -> bool:
    text = line.strip()
    return text.startswith("#") or (text.startswith("**") and text.endswith("**"))


def _is_whole(sentence: str, line: str) -> bool:
    """Return whether the last sentence above a statement is a whole one, or the end of some work."""
    if re.match(_GREETING, sentence):
        return False
    if re.search(_ENDS_SENTENCE, line) or line.rstrip().endswith("?"):
        return True
    if re.search(_ENDS_WITH_NOUN, re.sub(_CODE_SPAN, "x", sentence)):
        return False
    return bool(re.search(_WORK, sentence) or re.search(_EXCEPTION, sentence) or re.fullmatch(_PROGRESS, sentence))


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
