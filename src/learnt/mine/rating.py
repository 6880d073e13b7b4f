"""Rate how much a sentence reads like a lesson, and how much like a report of finished work.

A lesson holds beyond the task in which it was found: it is in the present, about a thing in general, and says what must
be, what does not work, under which condition, and why. A report is in the past or about `now`, says `I`, counts and
measures; plans, offers and questions speak of the future and to one person. Each of these features has a weight, and a
sentence's rating is their sum. Features are written for English; what is the same in German, French and Spanish is
added, as far as single words show it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from learnt.model import Value
from learnt.text.verbs import base_of, is_auxiliary, is_base_form, is_foreign, is_past, is_present, list_words

CODE = "§"  # stands for code and names, so that their letters are not read as words
_CODE_SPAN = re.compile(r"(?<!`)(`++)[^`]++\1(?!`)")
# Names in plain text: paths, files, options, identifiers, constants, calls.
_NAME = re.compile(
    r"(?<![\w/])(?:[\w@.-]+/[\w@./*{}-]*\w/?|/[\w{}-]+(?:/[\w{}-]*)*|--?[a-zA-Z][\w-]+|\w+_\w+|[a-z]+[A-Z]\w*|"
    r"[A-Z][a-z]+[A-Z]\w*|[A-Z]{3,}[\w-]*|\w+\(\)|\.?\w[\w-]*\.[a-z]{1,5}(?![\w.])|@\w+)"
)
_PROPER_NOUN = re.compile(r"(?<=[\w,;)§] )[A-Z][a-z]+|\b[A-Z]{2}\b|\b[a-z]+\d[\w.]*|\bport \d+|\bversion \d")


class _Feature(NamedTuple):
    name: str
    weight: float
    pattern: str


_FEATURES = (
    # what must be, and what must not
    _Feature(
        "demand",
        2.0,
        r"\b(?:must(?! have\b)|(?:has|have|needs?|ought) to\b|requires?|(?:is|are) (?:required|mandatory|needed|necessary)|"
        r"(?:hard )?requirement|belongs?|may only|the (?:right|correct|proper|safe|only) way|"
        r"muss|müssen|darf|dürfen|gehör(?:t|en)|verlangt|braucht|brauchen|doit|doivent|il faut|exige|"
        r"debe|deben|hay que|tiene que|requiere)\b",
    ),
    _Feature(
        "advice",
        1.5,
        r"\b(?:should(?! (?:work|be (?:fine|ok|good|ready|enough|visible|back)|now|have|I|we)\b)|needs?(?! to\b)|expects?|"
        r"wants? (?:to|an?|the|its)|better to|prefer|(?:is|are) (?:meant|supposed|expected) to|sollten?|sollen|solltest|devrait|conviene)\b",
    ),
    _Feature(
        "prohibition",
        2.0,
        r"(?:^|[.;:,–] |\b(?:please|so|then|and) )(?:do not|don['’]t|never (?!\w+s\b))\b|^avoid\b|"
        r"\b(?:(?:must|should|may|shall|can) never|(?:must|should|shall) ?n['’o]t|not allowed|forbidden|"
        r"no (?:\w+ )?(?:\w+) (?:may|should|must)|nie|niemals|kein\w{0,2} .{3,40} (?:verwenden|benutzen|ändern)|jamais|"
        r"nunca|jamás)\b",
    ),
    _Feature(
        "limit",
        1.5,
        r"\b(?:(?:does|do|is|are|can|will) ?(?:not|n['’]t)|cannot|can['’]t|won['’]t|there(?:['’]s| is| are) no|no effect|"
        r"never|nothing|nobody|none of|only|at most|at least|apart from|except|read-only|unless|even (?:if|though|when|in)|"
        r"regardless|lacks?|refus(?:es?)|ignor(?:es?|ed)|rejects?|nicht|nur|ne .{1,30} pas|que par|seulement|sólo|solo|no (?:se|acepta|"
        r"puede|hay|funciona))\b|\bread[- ]only\b",
    ),
    _Feature(
        "choice",
        1.5,
        r"\b(?:instead of|rather than|in place of|as opposed to|(?<!or )not (?:with|in|on|from|the|a|just)\b|anstatt|statt|"
        r"au lieu de|en lugar de|en vez de)\b|, (?:not|never) ",
    ),
    _Feature(
        "decision", 2.0, r"\b(?:we|it was|they) (?:have |had )?(?:decided|agreed|chose|settled|opted)\b|\bfrom now on\b"
    ),
    _Feature(
        "no demand",
        -5.0,
        r"\b(?:(?:nothing|nobody|no one|none|no \w+)\b[^,.;]{0,25} (?:needs?|has|have|is needed|necessary)\b|no (?:\w+ )?need|unnecessary|"
        r"(?:do|does|is|are) ?(?:not|n['’]t) (?:\w+ )?(?:need|have to|needed|necessary|required)|(?:only|all (?:we|you|i)) "
        r"(?:need|have) to)\b",
    ),
    # cause and consequence
    _Feature(
        "consequence",
        1.0,
        r"\b(?:otherwise|or else|therefore|thus|hence|which means|that means|which is why|that is why|so that|without (?:it|"
        r"that|them)|as a result|sonst|deshalb|daher|sinon|donc|por eso|así que|de lo contrario|si no)\b|"
        r"[,;:–—] (?:so|or)\b",
    ),
    _Feature(
        "cause",
        1.0,
        r"\b(?:because|since(?! (?:the|last|then|\d))|due to|as (?:it|they|the|there)\b|the reason|on purpose|"
        r"weil|denn|parce que|car|puisque|porque|ya que)\b|: (?:the|it|they|there|we)\b",
    ),
    _Feature(
        "effect",
        1.0,
        r"\b(?:fails?|breaks?|hangs?|crash(?:es)?|dies|drops?|loses?|leaks?|overwrites?|times out|stops?|corrupts?|"
        r"deadlocks?|swallows?|vanish(?:es)?|(?:gets?|is|are)\b[^.;,]{0,30} (?:lost|dropped|killed|overwritten|ignored|rejected|cached|"
        r"generated|shared|inlined|excluded|restricted|stripped)|comes? back|forever|twice|werden .{0,60}überschrieben|"
        r"schlägt fehl|échoue(?:nt)?|manquent?|falla)\b",
    ),
    _Feature(
        "scope",
        1.0,
        r"\b(?:any|every|each|all (?!good|green|set|of)|always|whenever|whoever|anything|everything|everywhere|in tests|"
        r"this (?:repo(?:sitory)?|project|code ?base|service|package|workspace|image|account|table)|from now on|"
        r"next time|in (?:the )?future|by default|jede\w?|alle|immer|chaque|tou(?:s|t|te|tes)|toujours|cada|todos|"
        r"siempre)\b",
    ),
    _Feature(
        "condition",
        0.5,
        r"\b(?:when|if|unless|after|before|until|as long as|while|once|without|first|during|under|wenn|falls|sobald|vor|"
        r"nach|avant|après|quand|lorsque|cuando|antes|después|con)\b",
    ),
    _Feature(
        "announcement",
        2.0,
        r"\b(?:gotcha|pitfall|the (?:trap|catch)|caveat|lesson|note that|worth (?:knowing|noting|remembering)|keep in mind|"
        r"beware|be aware|turn(?:s|ed) out|watch out|for the future|for future (?:changes|work|reference)|for next time|important|remember|please|"
        r"for future changes|achtung|wichtig|bitte|attention|importante?|ojo|cuidado)\b|^note:",
    ),
    # reports
    _Feature(
        "first person",
        -3.0,
        r"\b(?:I|I['’](?:m|ve|d|ll)|my|me|myself|ich|mein\w*|je(?! nach| desto)|mon|ma|mes|nos|he \w+[ai]do)\b|\bj['’]",
    ),
    _Feature(
        "now",
        -2.5,
        r"\b(?<!from )now\b(?! on\b)|\b(?:works|passes|runs|builds|starts|compiles|is|are) (?:fine |well )?again\b|"
        r"\b(?:previously|formerly|used to|jetzt|wieder|maintenant|désormais|ahora)\b",
    ),
    _Feature(
        "perfect", -1.5, r"\b(?:has|have|had) (?:\w+ )?been\b|\b(?:has|have) (?:now |already |also )?\w+(?:ed|en)\b"
    ),
    _Feature(
        "happened", -0.75, r"\b(?:was|were|had|did|didn['’]t|wasn['’]t|weren['’]t|couldn['’]t|wurden?|hatten?|fue)\b"
    ),
    _Feature(
        "plan",
        -3.0,
        r"\b(?:(?:i|we)['’]ll|(?:i|we) (?:will|would|could|can|might|plan|suggest|propose|recommend)|i (?:must|need|have to|cannot|can['’]t)|let me|let us|let['’]s|we (?:want|wanted|now need|like|should) |"
        r"next steps?|my suggestion|todo|open points?|follow[- ]up|will (?:follow|be (?:added|done))|would (?:need|be|have)|"
        r"(?:we|you|it|i|they|that)['’]d|could|might|just needs? to|should be (?:added|fixed|cleaned|updated|removed|changed)|"
        r"may be able|can be (?:deleted|removed|done|added|tried)|later on|for later|in a (?:second|next|separate)|possible)\b",
    ),
    _Feature(
        "address",
        -3.0,
        r"\b(?:you (?:asked|said|described|mentioned|wanted|want|named|were|would|like|prefer|see|gave|told)|"
        r"your (?!\w+ (?:must|has|have|needs?))|as (?:discussed|requested|described|agreed|asked|suggested|planned)|"
        r"let me know|tell me|the (?:ticket|reviewer|user) )\b|\byour\b",
    ),
    _Feature("question", -10.0, r"\?"),
    _Feature(
        "answer",
        -4.0,
        r"^(?:yes|no|nope|agreed?|correct|exactly|right|sure|good (?:point|question|catch)|you['’]re right)\b",
    ),
    _Feature(
        "example",
        -2.0,
        r"\b(?:session|step|option|case|scenario|phase|approach|thread|user|agent|worker|commit) (?:[A-Z]|\d+)\b|→|"
        r"\b(?:for example|e\.g\. if|imagine|suppose|say)\b",
    ),
    _Feature(
        "dismissal",
        -3.0,
        r"\b(?:that['’]s|this is|which is|it['’]s|is) (?:fine|ok|okay|academic|expected|harmless|intended|intentional|by design|"
        r"acceptable|unlikely)\b|\b(?:wo|does)n['’]t (?:really )?matter\b|\bnot a (?:concern|problem|issue)\b",
    ),
    _Feature("future", -1.0, r"\bwill\b(?! (?:not|never|fail|break|hang|be (?:lost|ignored|overwritten|rejected)))"),
    _Feature(
        "about the work",
        -2.0,
        r"\bthe (?:\w+ )?(?:fix|issue|bug|concern|question|difference|solution|approach|change|plan|diagnostics?|finding|challenge|consideration|problem|risk|downside|"
        r"suggestion|alternative|trade-?off|idea) (?:is|isn['’]t|was|would|should|here|are|adds|makes|says|uses)\b|\bplan says\b",
    ),
    _Feature("hypothesis", -1.5, r"\b(?:would|sometimes|usually|often|in theory)\b"),
    _Feature(
        "guess",
        -2.0,
        r"\b(?:maybe|perhaps|probably|presumably|seems?|appears?|apparently|possibly|i (?:think|believe|guess|suspect)|not sure|"
        r"suspect|unclear|vielleicht|wohl|peut-être|quizás)\b",
    ),
    _Feature(
        "here and now",
        -1.0,
        r"\b(?:currently|current|at the moment|as of now|for now|so far|yet|still|today|yesterday|last (?:week|night|tuesday|month)|"
        r"this (?:time|run|morning|change|commit|pr|branch|pull request|patch|release|diff|ticket|week|test)|these tests|"
        r"the (?:new|remaining|failing|flaky)\b)",
    ),
    _Feature(
        "completion",
        -3.0,
        r"\b(?:tests?|suite|checks?|builds?|jobs?|specs?|lint(?:er)?|ci) (?:\w+ )?(?:pass(?:es|ed)?|(?:is|are) (?:green|clean|fine|happy))\b|"
        r"^(?:all good|done|finished|that was it|everything (?:is|works))\b|"
        r"^(?:the|both|all|every) [\w -]{2,40} (?:works?|builds?|runs?|starts?|deploys?|compiles?|loads?|connects?)\b[^,;]{0,30}[.!]$|"
        r"\b(?:in place|is (?:done|complete|finished|ready|live|fixed|resolved|solved|open)|no (?:functional )?changes?|"
        r"nothing (?:else )?changed|(?<!be )passed|as expected|verified|and it (?:is|does))\b",
    ),
    _Feature(
        "hearsay",
        -2.0,
        r"(?<!§ )\b(?:says?|said|claims?|according to|suggests|recommends|tells|documentation|readme|docs (?:say|state))\b",
    ),
    _Feature("place", -2.0, r"\blines? \d+|(?:§|\.\w{1,5}):\d+|(?<!\w)#\d+|\b[0-9a-f]{7,40}\b"),
    _Feature(
        "figures",
        -1.0,
        r"\d+(?:[.,]\d+)? ?(?:%|ms|s|MB|GB|kB|KB|minutes|seconds|lines|files)\b.*\d|\bfrom \d[\d.,]* \w* ?to \d",
    ),
)
_COMPILED = tuple((feature, re.compile(feature.pattern, re.IGNORECASE)) for feature in _FEATURES)
_RULES = frozenset("demand advice prohibition limit choice order announcement".split())
_REPORTS = frozenset(
    "first person,now,perfect,plan,address,question,answer,example,dismissal,about the work,completion,past,result".split(
        ","
    )
)
_DONE = frozenset("now perfect completion result".split())
REPORT_LABEL = re.compile(
    r"^(?:(?:the )?fix|nothing to \w+|(?:short )?answer|(?:new|current|old) behaviou?r|to be clear|options?|approach|bottom line|tl;dr|"
    r"quick fix|pr|feedback|package|plan|changed|changes|files?|tests?|summary|results?|status|done|open|added|removed|fixed|suite|size|image|coverage|"
    r"next|verified|runtime|screenshots?|also|geändert|modifié|cambios)\b[^.]{0,20}[:.]",
    re.IGNORECASE,
)
_OPENING = r"(?:(?:so|then|and|but|also|therefore|hence|thus|always|please|just|simply|instead|first|next time|in future|in (?:the )?future|from now on),? )*"
_ORDER = re.compile(
    rf"^{_OPENING}(?:(?:when|if|after|before|in|on|for|to|with|whenever|while|once|inside|under|as|at|until)\b"
    r"(?:[^,]*, |[^,]*? (?=(?:always|never|please) )))?"
    rf"{_OPENING}(?P<verb>[a-z]+)\b(?! (?:of|is|are|was|that|which|has|must|should)\b)",
    re.IGNORECASE,
)
_NEVER = re.compile(rf"^{_OPENING}(?:never (?!\w+s\b)|do not|don['’]t|avoid)\b", re.IGNORECASE)
_CONJUNCTIONS = frozenset("but so because which while when since as if that until before after".split())
_PAST_AUXILIARIES = frozenset(
    "was were had did didn't wasn't weren't couldn't wurde wurden hatte hatten war waren fue".split()
)
# Sentences that start so are about what was said before.
_ANAPHORA = re.compile(
    r"^(?:(?:and|but|so|also|then|therefore|hence|thus|still|yet|however|importantly|notably|unfortunately)\b,? ?)*"
    r"(?:otherwise|instead|as such|as a result|(?:because of|without|with|after|before|by|for|if|until|since|from|due to|when) "
    r"(?:this|that|it|them|so|not|these|there (?:is|are)n['’]t|they)\b|for (?:this|that) reason|in (?:this|that|such a?) (?:case|event|way)|"
    r"(?:(?:in|with|on|for|under) [\w§. -]{2,30},? )?(?:it|its|they|their|them|he|she|these|those|such|this|that|both|neither|"
    r"the (?:same|other|latter|former)|here|there(?!['’]s no| (?:is|are) no)|one of them|each of them|either|which|"
    r"das|dies\w*|es|sie|er|dabei|dadurch|damit|deshalb|daher|cela|ça|c['’]est|ce|il(?! faut)|elle|ils|esto|eso|ello|así))"
    r"(?:['’](?:s|re|ll|d))?(?![\w/.-])(?! (?:repo(?:sitory)?|project|code ?base|service|package|workspace|app(?:lication)?|image)\b)",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"\b(?:on|in|with|into|to|for|from|of|at|under) (?:(?:that|those|these) (?!is\b|are\b|way\b)\w+|"
    r"this (?:case|situation|commit|change|context|line|function|test|file)\b)|"
    r"\b(?:for|of|with|like|than|about) (?:this|that|these|those)\b(?! \w+ing\b)(?=[ ,.;]*(?:$|[,.;]|to\b))",
    re.IGNORECASE,
)
# An order or a demand about `it`, before anything is named that it could be.
_ABOUT_IT = re.compile(r"^[^§]{0,30}\b(?:it|them|(?:that|those) \w+)\b", re.IGNORECASE)
# Words that announce what was found out and are not part of it.
_ANNOUNCES = re.compile(
    r"^(?:(?:so|and|but|well|ah|also),? )?(?:(?:it )?turn(?:s|ed) out(?: that)?,? |"
    r"(?:please )?(?:note|remember|beware|be aware|keep in mind)(?: that|[:,]) |"
    r"the (?:gotcha|lesson|catch|trap|point|problem|reason|cause|culprit|crux|difficulty|key|thing)\b[^.:;,]{0,40} (?:is|was) that |"
    r"it took (?:me )?(?:a while|some time|a moment)[^.:;,]{0,30} that |"
    r"(?:i|we)(?: have|['’]ve)? (?:also )?(?:learn(?:ed|t)|found(?: out)?|noticed|realised|realized|discovered|understood|saw) that |"
    r"(?:make|be) sure (?:to|that you) |(?:in (?:the )?future|next time|from now on|for (?:the )?future),? )",
    re.IGNORECASE,
)
_TOPIC = re.compile(r"^(?:about|regarding|concerning|as for|on) [^.:;!?§`]{2,50}: (?=\S)", re.IGNORECASE)
_LABEL = re.compile(r"^(?P<label>[A-Z][^.:;!?§`]{2,60}?)(?: ?:| –| —) (?=\S)")
_LABEL_WORD = re.compile(
    r"\b(?:note|notice|nb|important|lessons?|gotchas?|caveat|tip|warning|beware|remember|learning|understood|takeaways?|detail|"
    r"things?|knowing|noting|mind|ran into|trap|pitfall|catch|future|cause|reason|background|why|went wrong|next time|"
    r"heads[- ]up|fyi|attention|rule|convention|achtung|hinweis|wichtig|merke|importante?|ojo|nota|cuidado|"
    r"remarque)\b",
    re.IGNORECASE,
)
_CONNECTIVE = re.compile(
    r"^(?:(?:so(?! that\b)|also|therefore|thus|however|importantly|notably|unfortunately|basically|and|but),? )(?=[\w`])",
    re.IGNORECASE,
)
_MAX_LABEL_WORDS = 8
_SHOULD_HAVE = re.compile(r"^(?:i|we) should have ([a-z]+)\b", re.IGNORECASE)


class Rating(Value):
    """How much a sentence reads like a lesson, and why."""

    total: float
    features: tuple[str, ...]

    @property
    def is_rule(self) -> bool:
        """Whether it says what to do, what must be, or what does not work."""
        return any(name in _RULES for name in self.features)

    @property
    def is_order(self) -> bool:
        """Whether it tells the reader what to do."""
        return any(name in ("order", "prohibition", "demand", "advice") for name in self.features)

    @property
    def is_done(self) -> bool:
        """Whether it tells what was done."""
        return any(name in _DONE for name in self.features) or {"first person", "past"} <= set(self.features)

    @property
    def is_report(self) -> bool:
        """Whether it tells what was done, or speaks to one person."""
        return any(name in _REPORTS for name in self.features)


def hide_code(sentence: str) -> str:
    """Return a sentence with a sign in place of code and names."""
    return _NAME.sub(CODE, _CODE_SPAN.sub(CODE, sentence))


@lru_cache(maxsize=2_000)
def rate(sentence: str) -> Rating:
    """Return how much a sentence reads like a lesson."""
    prose = hide_code(sentence)
    found = [(feature.name, feature.weight) for feature, pattern in _COMPILED if pattern.search(prose)]
    found += _rate_mood(prose)
    found += _rate_names(prose)
    return Rating(total=sum(weight for _, weight in found), features=tuple(name for name, _ in found))


def _rate_mood(prose: str) -> list[tuple[str, float]]:
    """Return the features of a sentence's verbs: an order, the present, the past."""
    if REPORT_LABEL.match(prose):
        return [("result", -3.0)]
    words, tense = list_words(prose), find_tense(prose)
    if words and is_past(words[0]) and not is_base_form(words[0]) and tense != "present":
        return [("result", -4.0)]
    if is_order(prose):
        return [("order", 2.0)]
    return [(tense, 0.5 if tense == "present" else -2.0)] if tense else []


def is_order(prose: str) -> bool:
    """Return whether a sentence, without its code, tells the reader to do something."""
    if _NEVER.match(prose):
        return True
    order = _ORDER.match(prose)
    return order is not None and is_base_form(order["verb"])


def find_tense(prose: str) -> str:
    """Return whether the first predicate of a sentence is in the `present` or in the `past`; empty if there is none.

    In “a flag shared between threads must be volatile” the first form of the past is no predicate, because another
    predicate follows in the same clause.
    """
    past = False
    for word in re.findall(r"[,;:]|\band (?:it|that|this|they|we|i|then)\b|[^\W\d_]+(?:['’][^\W\d_]+)?", prose.lower()):
        if past and (word in ",;:" or word in _CONJUNCTIONS or word.startswith("and ")):
            return "past"
        if word in _PAST_AUXILIARIES:
            return "past"
        if is_auxiliary(word) or is_present(word):
            return "present"
        past = past or is_past(word)
    return "past" if past else "present" if is_foreign(list_words(prose)) else ""


def _rate_names(prose: str) -> list[tuple[str, float]]:
    """Return whether a sentence names something."""
    if CODE in prose:
        return [("name", 1.0)]
    return [("proper noun", 0.5)] if _PROPER_NOUN.search(prose) else [("no name", -1.0)]


def strip_announcement(sentence: str) -> tuple[str, bool]:
    """Return a sentence without the words that announce a lesson, and whether it had such words."""
    rest = _TOPIC.sub("", _strip_label(sentence))
    while (shorter := _ANNOUNCES.sub("", rest, count=1)) != rest:
        rest = shorter
    if rest == sentence and (past := _SHOULD_HAVE.match(sentence)) and is_past(past[1]):
        rest = base_of(past[1]) + sentence[past.end() :]
    return capitalise(_CONNECTIVE.sub("", rest)), rest != sentence


def capitalise(sentence: str) -> str:
    """Return a sentence with a capital letter, unless it starts with a name such as `urllib3` or `os.path`."""
    word = re.match(r"[^\W\d_]+(?:['’]\w+)?(?=[\s,]|: |$)", sentence)
    return sentence[:1].upper() + sentence[1:] if word and word[0].islower() else sentence


def _strip_label(sentence: str) -> str:
    label = _LABEL.match(sentence)
    if label and len(label["label"].split()) <= _MAX_LABEL_WORDS and _LABEL_WORD.search(label["label"]):
        return sentence[label.end() :]
    return sentence


def stands_alone(sentence: str) -> bool:
    """Return whether a sentence can be understood without the one before it."""
    prose = hide_code(sentence)
    if _ANAPHORA.match(prose) or _POINTS_BACK.search(prose):
        return False
    return not (_ABOUT_IT.match(prose) and (is_order(prose) or prose.lower().startswith("you ")))


def starts_with_reference(sentence: str) -> bool:
    """Return whether a sentence starts with a word for what was said before."""
    return _ANAPHORA.match(hide_code(sentence)) is not None
