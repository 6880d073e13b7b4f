"""Find in a check's output what the check demands: a rule that was broken, not an error in unfinished code.

A demand says what must be (`must`, `not allowed`, `every route needs one`), what is missing (`no license header`), what
to do instead (`use X`, `declare it in Y`) or which limit was exceeded. What a compiler, an interpreter or a comparison
in a test says about the code (a wrong type, an unknown name, `expected 3, got 4`) is no demand. Any output can be read;
only the beginning and the end of a long one are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from learnt.mine.complaint import generalise
from learnt.mine.norms import has_duty, states_rule
from learnt.model import Value
from learnt.text.clean import clean, fold
from learnt.text.sentences import is_whole
from learnt.text.triggers import beginning_and_end
from learnt.text.verbs import is_base_form, list_words

_HALF_OUTPUT_LENGTH = 10_000
_MAX_LINE_LENGTH = 500
_MAX_LINES = 400
_MAX_DEMANDS = 3
_MIN_WORDS = 3
_MIN_RULE_WORDS = 4
_MAX_RULE_LENGTH = 160
_POINTS_BACK = re.compile(r"\b(?:one|it|them|this|that|its|these)\b", re.IGNORECASE)
PATH = re.compile(
    r"(?<![\w/.])\.?\.?/?(?:[\w.@+-]+/)+[\w.@*+-]*|(?<![\w/.@-])\.?[\w-]+(?:\.[\w-]+)*\.[a-z]\w{0,9}(?![\w(])|"
    r"\.\w[\w.-]+\w"
)
# What stands in front of a message: signs, times, a level, who says it, and the place.
_SIGNS = r"(?:\*\* \(\w+\) |\[[\w.-]+:[\w:.-]+\] |[\s|│┃║>✖✗✘×•*⧗❯↗→!=^~-]+|E\s{2,})"
_LEVEL = (
    r"(?:\[?(?i:error|err|warning|warn|fatal|fail(?:ed|ure)?|info|note|remote|denied|violation)\]?(?:\[[\w-]+\])?"
    r"(?::|\s+•|\s{2,}(?=\S)|!)\s*)"
)
_TOOL = r"(?:\[?[a-z][\w.@-]*[a-z0-9]\]?(?:\[[\w-]+\])?: (?=\S+ ))"
_EXCEPTION = r"(?:(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failure|Violation): )"
_POSITION = r"(?:(?P<file>[\w.@+/-]+\.\w{1,8})(?::\d+(?::\d+)?:?|\(\d+,\d+\):?| line \d+:?|:)(?: - |\s+|(?<=:)(?=\S)))"
_TEST = r"(?:FAILED \S+ - )"
_NUMBERS = r"(?:\d+:\d+\s+|\d{1,2}:\d\d:\d\d\S*\s+)"
_LINT_CODE = r"(?:\[?[A-Z]\]?:? (?=[A-Z↗])|[A-Z][\w-]*/[\w/-]+: |(?:\w*file(?::\d+)? )?[A-Z]{1,5}\d{2,5}:? )"
_PREFIX = re.compile(rf"(?:{_SIGNS}|{_TEST}|{_NUMBERS}|{_LEVEL}|{_POSITION}|{_EXCEPTION}|{_LINT_CODE}|{_TOOL})")
_RULE_ENDS = (
    re.compile(r"\s{2,}(?P<rule>@?[\w-]+(?:/[\w-]+)*)$"),  # eslint
    re.compile(r"\s+\((?P<rule>[a-z][a-z0-9]+(?:[-_][a-z0-9]+)*)\)$"),  # golangci-lint, tflint
    re.compile(r"\s+\[(?P<rule>[\w/-]+)\]$"),  # commitlint, mypy
    re.compile(r" • \S+ • (?P<rule>\w+)$"),  # dart
)
# What is said about code that is wrong or not finished, about formatting, and about machines and networks.
_ABOUT_CODE = re.compile(
    r"syntax|unexpected (?:token|end|eof|identifier|character|keyword|indent|string)|undefined|unresolved|undeclared|"
    r"not (?:been )?(?:defined|declared in this scope)|unused|never (?:used|read|closed|initiali[sz]ed)|"
    r"imported but|assignable|"
    r"incompatible|mismatch|cannot find (?:name|symbol|module|type|value|function|['`])|could not (?:find|"
    r"resolve|compile)|"
    r"no (?:module|attribute|method|such|overload|matching)\b|has no (?:attribute|member|method|field|property)|"
    r"positional argument|(?:many|few) arguments|missing (?:return|semicolon|argument|parenthes|bracket|'[;,)]|"
    r"\d|import|"
    r"required (?:positional )?(?:argument|param|prop)|property|initiali)|is missing in type|required in type|"
    r"expected ?[:;,'\"`(\[{<]|expected .* (?:got|received|but|found|actual)|unreachable|moved value|borrow|"
    r"lifetime|null pointer|"
    r"import cycle|build constraints|cannot use|does not implement|parse error|"
    r"no new variables|missing cases|duplicate of|occurrences|stutters|always nil|"
    r"\bgot\b.*\bwant|\bwant(?:ed)?\b.*\bgot|= \S+, want|no tests|"
    r"segmentation|trailing|whitespace|blank line|indentation|\bformatt|code style|line (?:is )?too long|"
    r"\btimed? ?out\b|\beconn|"
    r"\b(?:connection|service unavailable|network|refused)\b|command not found|no such file|"
    r"failed to (?:compile|solve|fetch|copy)|"
    r"does not compile|redeclared|duplicate (?:identifier|definition)|already (?:declared|defined)|sort(?:ed|"
    r"ing)? imports|import.* sorted",
    re.IGNORECASE,
)
_ABSENT = re.compile(
    r"\bmissing\b|\black(?:s|ing)?\b|\b(?:has|have|had|with|contains?) no\b|\bwithout\b|"
    r"\bnot (?:yet |been |explicitly )*(?:\w+ed|found|set|in|part of|under)\b.* (?:in|under|by|to|with|for) |"
    r"^no \w+|\bdoes(?: not|n't) (?:have|contain|match|follow|start|end|use|include)\b|\bnot up[- ]to[- ]date\b|"
    r"\bout of date\b|"
    r"\boutdated\b|\bstale\b|\bnot (?:yet )?reflected\b",
    re.IGNORECASE,
)
_FORBIDDEN = re.compile(
    r"\b(?:not (?:allowed|permitted|supported here)|forbidden|banned|prohibited|disallow\w*|restricted|"
    r"deprecated|rejected:|violat\w+|"
    r"unexpected use|do(?: not|n't) |avoid\b|avoided|discouraged|may not|should be|should not|no calls)",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"\b(?:threshold|size limit|limit (?:has|of|is)|budget|minimum|maximum|quota|"
    r"exceeds? (?:the )?(?:\w+ )?"
    r"(?:limit|budget|maximum|\d+ ?[km]?b))\b|below (?:the )?(?:required|minimum|threshold|\d)",
    re.IGNORECASE,
)
_INSTEAD = re.compile(
    r"\b(?:instead|rather than|in favou?r of)\b|(?:[;:,.(—–] ?|^)(?:please )?(?P<verb>[a-z]+)\b", re.IGNORECASE
)
# What follows the verb of an order; `Get returns …` is none.
_OBJECT = re.compile(r" (?!returns?\b|is\b|has\b|was\b|does\b|should\b|must\b|can\b|needs\b)\S")
_SUMMARY = re.compile(
    r"^(?:make(?:\[\d+\])?: \*\*\*|fail\s+\S*[./]\S|npm ERR|elifecycle|exit code|command failed|husky|"
    r"\d+ (?:problems?|issues?|errors?|failed|files?)\b|"
    r"found \d+|build failed|tests?:|run `?\w+ (?:with )?--|process completed|script failed|(?:failed|passed)$)",
    re.IGNORECASE,
)
_TEST_RUN = re.compile(
    r"^(?:FAILED|ERROR) \S+::|^--- FAIL|^E {2,}\S|\b\d+ (?:failed|failing|failures?|passed|passing)\b|"
    r"Tests? run:|Tests:\s|"
    r"Failure/Error|^\s*● |Failed asserting|Traceback \(most recent|^\s+at \S+ ?\(|^test \S+ \.\.\. FAILED|"
    r"^(?:[a-z_]\w*\.)*[A-Z]\w+(?:Error|Exception): |^Failure:",
    re.MULTILINE,
)
_COMPILER = re.compile(
    r"\berror\[?(?:TS|E0|CS|C)\d{3,5}\b|error: could not compile|\[(?:arg-type|attr-defined|return-value|"
    r"assignment|name-defined|call-arg)\]$"
)
_QUOTED_SENTENCE = re.compile(r"(?<=\s)['\"“](\S+(?: [^'\"”\s]+){3,})['\"”](?=\s|$)")
_CLAUSE_END = re.compile(r" ?[:;] |\. | \(|\)(?=\s|$)")
# Columns of a report: the last one is the message.
_COLUMN_END = re.compile(r" (?:\||-) ")
# Hints, commands that are echoed, and quoted source code.
_ASIDE = re.compile(
    r"^\W*(?:help|note|hint|tip)\b|^(?:\[[\w:.-]+\] )?\$ |^\s*(?://|/\*|#|\* )|:=|==|=>|[{};]\s*$|"
    r"\w\([\"'`]| -> |\bfunc \w|\b(?-i:INFO|DEBUG|TRACE)\b",
    re.IGNORECASE,
)
_HEADING_PATH = re.compile(r"^(?:/|\.{0,2}/)?(?:[\w.@+-]+/)+[\w.@+-]+\.\w{1,8}:?$")


class Demand(Value):
    """What a check demands."""

    message: str
    file: str = ""
    """The file that it complains about."""
    rule: str = ""
    """The name that the check has for the broken rule."""
    is_rule: bool = False
    """Whether it says what holds in general, so that it is worth knowing whatever was done about it."""

    @property
    def is_limit(self) -> bool:
        """Whether a limit was exceeded: then what was done about it says little about the next time."""
        return _LIMIT.search(self.message) is not None

    @property
    def is_timeless(self) -> bool:
        """Whether it is true after the check has passed, too: a duty or an order, not what is missing in one "
        "place."""
        is_state = _ABSENT.search(self.message) or self.is_limit
        return self.is_rule or ((has_duty(self.message) or prescribes(self.message)) and not is_state)

    @property
    def names(self) -> tuple[str, ...]:
        """The files and folders that the message names."""
        return tuple(
            name for name in PATH.findall(self.message) if name != self.file and f"{name}<" not in self.message
        )


def is_test_run(output: str) -> bool:
    """Return whether an output is a test run's or a crash's: then most of what it says is about unfinished code."""
    return _TEST_RUN.search(output) is not None


def read_demands(output: str, folder: str = "") -> list[Demand]:
    """Return what a check demands, without repetitions."""
    demands: list[Demand] = []
    file = ""
    for line in _list_lines(output):
        if _HEADING_PATH.match(line.strip()):
            file = line.strip().rstrip(":")
            continue
        demand = _read_line(line, file, folder)
        if demand is not None and not any(_repeats(demand, other) for other in demands):
            demands.append(demand)
    return demands[:_MAX_DEMANDS]


def _list_lines(output: str) -> Iterator[str]:
    lines = clean(beginning_and_end(output, _HALF_OUTPUT_LENGTH)).split("\n")
    kept = lines if len(lines) <= _MAX_LINES else [*lines[: _MAX_LINES // 2], *lines[-_MAX_LINES // 2 :]]
    return (line[:_MAX_LINE_LENGTH] for line in dict.fromkeys(kept) if line.strip())


def _read_line(line: str, file: str, folder: str) -> Demand | None:
    if _COMPILER.search(line) or _SUMMARY.match(line.strip(" \t✖✗×│┃>")) or _ASIDE.search(line):
        return None
    message, rule = line.strip(), ""
    for pattern in _RULE_ENDS:
        if match := pattern.search(message):
            message, rule = message[: match.start()], rule or match["rule"]
    place = 0
    while prefix := _PREFIX.match(message, place):
        if prefix.end() == place or prefix.end() >= len(message):
            break
        file = prefix["file"] or file
        place = prefix.end()
    message, named = _drop_columns(_strip(generalise(message[place:], folder)))
    file = file or named
    if not is_demand(message):
        return None
    is_rule = any(states_rule(clause, is_prose=False) for clause in split_clauses(message))
    return Demand(message=message, file=generalise(file, folder), rule=rule, is_rule=is_rule)


def _drop_columns(message: str) -> tuple[str, str]:
    """Return the last column of a report's line, and the file that the line is about; empty if it names none first."""
    columns = _COLUMN_END.split(message)
    if len(columns) > 1 and demands(columns[-1]):
        paths = PATH.findall(" ".join(columns[:-1]))
        return _strip(columns[-1]), paths[0] if paths else ""
    path = PATH.match(message)
    return message, path[0] if path and "." in path[0] and not path[0].startswith("/") else ""


def _strip(message: str) -> str:
    message = fold(message).strip(" .:")
    return message[1:-1] if message[:1] == "(" and message.find(")") == len(message) - 1 else message


def is_demand(message: str) -> bool:
    """Return whether a message demands something, and is not about unfinished code."""
    return len(list_words(message)) >= _MIN_WORDS and not _ABOUT_CODE.search(message) and demands(message)


def is_put_in_words(message: str) -> bool:
    """Return whether a message says in words what holds or what to do."""
    return any(states_rule(clause, is_prose=False) for clause in split_clauses(message)) or prescribes(message)


def demands(message: str) -> bool:
    """Return whether a message demands something."""
    patterns = (_ABSENT, _FORBIDDEN, _LIMIT)
    return any(pattern.search(message) for pattern in patterns) or prescribes(message) or has_duty(message)


def prescribes(message: str) -> bool:
    """Return whether a message says what to do: `use X instead`, `…; declare it in Y`."""
    for match in _INSTEAD.finditer(message):
        verb = match["verb"]
        if verb is None or (is_base_form(verb) and _goes_on(message, match)):
            return True
    return False


def _goes_on(message: str, match: re.Match[str]) -> bool:
    """Return whether a verb is an order: words follow, and at the beginning of a message it is capitalised."""
    is_start = match.start() > 0 or (message[:1].isupper() and not message[1:2].isupper())
    return is_start and _OBJECT.match(message, match.end()) is not None


def split_clauses(message: str) -> list[str]:
    """Return the parts of a message that may be sentences of their own."""
    quoted = [match[1] for match in _QUOTED_SENTENCE.finditer(message)]
    return [fold(piece).strip(" .,:") for piece in (*quoted, *_CLAUSE_END.split(message)) if piece.strip()]


def find_whole_rule(demand: Demand) -> str:
    """Return what a demand says in general, as a sentence that can be understood alone; empty if there is none."""
    clauses = split_clauses(demand.message)
    rules = [clause for clause in clauses if states_rule(clause, is_prose=False)]
    orders = [clause for clause in clauses[1:] if _is_order(clause)]
    candidates = (*rules, demand.message, *orders) if demand.is_timeless else (*rules, *orders)
    return next((sentence for rule in candidates if _stands_alone(sentence := _capitalise(rule))), "")


def _is_order(clause: str) -> bool:
    """Return whether a clause says what to do, whatever stands before it: `Use a token from tokens.css`."""
    first = next(iter(list_words(clause)), "")
    return first[:1].isupper() and is_base_form(first) and not clause.endswith("instead")


def _stands_alone(sentence: str) -> bool:
    is_clear = not _POINTS_BACK.search(sentence) or prescribes(sentence)
    is_long_enough = len(list_words(sentence)) > _MIN_RULE_WORDS
    return is_clear and is_long_enough and len(sentence) <= _MAX_RULE_LENGTH and is_whole(sentence)


def _capitalise(text: str) -> str:
    """Return a text that starts like a sentence; a name stays as it is."""
    return text[:1].upper() + text[1:] if text.split(" ", 1)[0].isalpha() else text


def _repeats(demand: Demand, other: Demand) -> bool:
    first, second = ({word.lower() for word in list_words(text.message)} for text in (demand, other))
    return 2 * len(first & second) >= min(len(first), len(second))
