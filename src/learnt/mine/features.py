"""The features by which a sentence is rated: what makes it read like a lesson, and what like a report or a plan.

Each feature has a weight and the words that show it, as alternatives of a regular expression between `·`. They are
written for English. German, French and Spanish words stand behind them, as far as single words show the same. A
feature counts once, however often its words occur. `§` stands for code and names.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from learnt.text.patterns import lazy_pattern


class Feature(NamedTuple):
    """What speaks for or against a lesson, and how much."""

    name: str
    weight: float
    pattern: re.Pattern[str]


def _feature(name: str, weight: float, words: str, others: str = "") -> Feature:
    """Return a feature that is shown by whole words, or by `others`, an expression for signs and beginnings."""
    alternatives = "|".join(word.strip() for word in words.replace("\n", " · ").split("·") if word.strip())
    patterns = [rf"\b(?:{alternatives})(?!\w)"] if alternatives else []
    return Feature(name, weight, lazy_pattern("|".join(filter(None, (*patterns, others))), re.IGNORECASE))


_NOT = r"(?:not|n['’]t)"

_WHAT_MUST_BE = (
    _feature(
        "demand",
        2.0,
        r"""must(?! have\b| be \w+ing\b) · (?:has|have|needs?|ought) to · requires?
        (?:is|are) (?:required|mandatory|needed|necessary)
        requirement · belongs? · may only · the (?:right|correct|proper|safe|only) way
        muss · müssen · darf · dürfen · gehör(?:t|en) · verlangt · braucht · brauchen
        doit · doivent · il faut · exige · debe · deben · hay que · tiene que · requiere""",
    ),
    _feature(
        "advice",
        1.5,
        r"""should(?! (?:work|be (?:fine|ok|good|ready|enough|visible|back)|now|have|I|we)\b) · needs?(?! to\b|[.,;]|$)
        expects?
        wants? (?:to|an?|the|its) · better to · prefer · (?:is|are) (?:meant|supposed|expected) to
        sollten? · sollen · solltest · devrait · conviene""",
    ),
    _feature(
        "prohibition",
        2.0,
        rf"""(?:must|should|may|shall|can) never · (?:must|should|shall) ?{_NOT} · not allowed · forbidden
        no (?:\w+ )?\w+ (?:may|should|must) · nie · niemals · kein\w{{0,2}} .{{3,40}} (?:verwenden|benutzen|ändern)
        jamais · nunca · jamás""",
        r"(?:^|[.;:,–] |\b(?:please|so|then|and) )(?:do not|don['’]t|never (?!\w+s\b))\b|^avoid\b",
    ),
    _feature(
        "limit",
        1.5,
        rf"""(?:does|do|is|are|can|will) ?{_NOT} · cannot · can['’]t · won['’]t · there(?:['’]s| is| are) no · no effect
        never · nothing · nobody · none of · only · at most · at least · apart from · except · read[- ]only · unless
        even (?:if|though|when|in) · regardless · lacks? · refuses? · ignore[sd]? · rejects?
        nicht · nur · ne .{{1,30}} pas · seulement · sólo · solo · no (?:se|acepta|puede|hay|funciona)""",
    ),
    _feature(
        "choice",
        1.5,
        r"""instead of · rather than · in place of · as opposed to · (?<!or )not (?:with|in|on|from|the|a|just)
        anstatt · statt · au lieu de · en lugar de · en vez de""",
        r", (?:not|never) ",
    ),
    _feature(
        "decision", 2.0, r"(?:we|it was|they) (?:have |had )?(?:decided|agreed|chose|settled|opted) · from now on"
    ),
    _feature(
        "no demand",
        -5.0,
        rf"""(?:nothing|nobody|no one|none|no \w+)\b[^,.;]{{0,25}} (?:needs?|has|have|is needed|necessary)
        no (?:\w+ )?need · unnecessary · (?:only|all (?:we|you|i)) (?:need|have) to
        (?:do|does|is|are) ?{_NOT} (?:\w+ )?(?:need|have to|needed|necessary|required)""",
    ),
)
_WHY_AND_WHERE = (
    _feature(
        "consequence",
        1.0,
        r"""otherwise · or else · therefore · thus · hence · (?:which|that) means · (?:which|that) is why · so that
        without (?:it|that|them) · as a result · sonst · deshalb · daher · sinon · donc · por eso · así que
        de lo contrario · si no""",
        r"[,;:–—] (?:so|or)\b",
    ),
    _feature(
        "cause",
        1.0,
        r"""because · since(?! (?:the|last|then|\d)) · due to · as (?:it|they|the|there) · the reason · on purpose
        weil · denn · parce que · car · puisque · porque · ya que""",
        r": (?:the|it|they|there|we)\b",
    ),
    _feature(
        "effect",
        1.0,
        r"""fails? · breaks? · hangs? · crash(?:es)? · dies · drops? · loses? · leaks? · overwrites? · times out
        stops?
        corrupts? · deadlocks? · swallows? · vanish(?:es)? · comes? back · forever · twice
        (?:gets?|is|are)\b[^.;,]{0,30} (?:lost|dropped|killed|overwritten|ignored|rejected|cached|generated)
        (?:gets?|is|are)\b[^.;,]{0,30} (?:shared|inlined|excluded|restricted|stripped)
        werden .{0,60}überschrieben · schlägt fehl · échoue(?:nt)? · manquent? · falla""",
    ),
    _feature(
        "scope",
        1.0,
        r"""any · every · each · all (?!good|green|set|of)(?=\w) · always · whenever · whoever · anything · everything
        everywhere · in tests · from now on · next time · in (?:the )?future · by default
        this (?:repo(?:sitory)?|project|code ?base|service|package|workspace|image|account|table)
        jede\w? · alle · immer · chaque · tou(?:s|t|te|tes) · toujours · cada · todos · siempre""",
    ),
    _feature(
        "condition",
        0.5,
        r"""when · if · unless · after · before · until · as long as · while · once · without · first · during · under
        wenn · sobald · avant · après · quand · lorsque · cuando · antes · después""",
    ),
    _feature(
        "announcement",
        2.0,
        r"""gotcha · pitfall · the (?:trap|catch) · caveat · lesson · note that · worth (?:knowing|noting|remembering)
        keep in mind · beware · be aware · turn(?:s|ed) out · watch out · for the future · for next time · important
        for future (?:changes|work|reference) · remember · please · achtung · wichtig · bitte · attention · importante?
        ojo · cuidado""",
        "^note:",
    ),
)
_WHAT_WAS_DONE = (
    _feature(
        "first person",
        -3.0,
        r"""I · I['’](?:m|ve|d|ll) · my · me · myself · ich · mein\w* · je(?! nach| desto) · mon · ma · mes · nos
        he \w+[ai]do""",
        r"\bj['’]",
    ),
    _feature(
        "now",
        -2.5,
        r"""(?<!from )now(?! on\b) · (?:works|passes|runs|builds|starts|compiles|is|are) (?:fine |well )?again
        previously
        formerly · used to · jetzt · wieder · maintenant · désormais · ahora""",
    ),
    _feature(
        "perfect",
        -1.5,
        r"(?:has|have|had) (?:\w+ )?been · (?:has|have) (?:now |already |also )?\w+(?:ed|en)",
    ),
    _feature(
        "happened",
        -0.75,
        r"was · were · had · did · didn['’]t · wasn['’]t · weren['’]t · couldn['’]t · wurden? · hatten? · fue",
    ),
    _feature(
        "completion",
        -3.0,
        r"""(?:tests?|suite|checks?|builds?|jobs?|specs?|lint(?:er)?|ci) (?:\w+ )?pass(?:es|ed)?
        (?:tests?|suite|checks?|builds?|jobs?|specs?|lint(?:er)?|ci) (?:\w+ )?(?:is|are) (?:green|clean|fine|happy)
        in place · is (?:done|complete|finished|ready|live|fixed|resolved|solved|open) · no (?:functional )?changes?
        nothing (?:else )?changed · (?<!be )passed · as expected · verified · and it (?:is|does)""",
        r"^(?:all good|done|finished|that was it|everything (?:is|works))\b|"
        r"^(?:the|both|all|every) [\w -]{2,40} (?:works?|builds?|runs?|starts?|deploys?|compiles?|loads?|connects?)\b"
        r"[^,;]{0,30}[.!]$",
    ),
    _feature(
        "here and now",
        -1.0,
        r"""current(?:ly)? · existing · at the moment · as of now · for now · so far · yet · still · today · yesterday
        last (?:week|night|tuesday|month) · the (?:new|remaining|failing|flaky) · these tests
        this (?:time|run|morning|change|commit|pr|branch|pull request|patch|release|diff|ticket|week|test)""",
    ),
    _feature("place", -2.0, r"lines? \d+ · [0-9a-f]{7,40}", r"(?:§|\.\w{1,5}):\d+|(?<!\w)#\d+"),
    _feature(
        "figures",
        -2.0,
        r"from \d[\d.,]* \w* ?to \d+ · \d of (?:the |our )?\d+ · of the \d+",
        r"\d(?: ?%| ?(?:ms|s|MB|GB|kB|KB|minutes|seconds|lines|files)\b)[^%]{0,200}\d",
    ),
)
_WHAT_IS_TALKED_ABOUT = (
    _feature(
        "plan",
        -3.0,
        r"""(?:i|we)['’]ll · (?:i|we) (?:will|would|could|can|might|plan|suggest|propose|recommend) · let (?:me|us)
        let['’]s
        i (?:must|need|have to|cannot|can['’]t) · we (?:want|wanted|now need|like|should) · next steps? · my suggestion
        todo · open points? · follow[- ]up · will (?:follow|be (?:added|done)) · would (?:need|be|have)
        (?:we|you|it|i|they|that)['’]d · could · might · just needs? to · may be able · possible
        should be (?:added|fixed|cleaned|updated|removed|changed) · can be (?:deleted|removed|done|added|tried)
        later on · for later · in a (?:second|next|separate)""",
    ),
    _feature(
        "address",
        -3.0,
        r"""you (?:asked|said|described|mentioned|wanted|want|named|were|would|like|prefer|see|gave|told) · your
        as (?:discussed|requested|described|agreed|asked|suggested|planned) · let me know · tell me
        please (?:have a look|take a look|review|check|confirm|decide|approve|let|tell)
        the (?:ticket|reviewer|user)""",
    ),
    _feature("question", -10.0, "", r"\?"),
    _feature(
        "answer",
        -4.0,
        "",
        r"^(?:yes|no(?=[,.!])|nope|agreed?|correct|exactly|right|sure|good (?:point|question|catch)|you['’]re right)\b",
    ),
    _feature(
        "example",
        -2.0,
        r"""(?:session|step|option|case|scenario|phase|approach|thread|user|agent|worker|commit) (?:[A-Z]|\d+)
        for example · e\.g\. if · imagine · suppose · say""",
        "→",
    ),
    _feature(
        "dismissal",
        -3.0,
        r"""(?:that['’]s|this is|which is|it['’]s|is) (?:fine|ok|okay|academic|expected|harmless|intended|intentional)
        (?:that['’]s|this is|which is|it['’]s|is) (?:by design|acceptable|unlikely) · not a (?:concern|problem|issue)
        (?:wo|does)n['’]t (?:really )?matter""",
    ),
    _feature("future", -1.0, r"will(?! (?:not|never|fail|break|hang|be (?:lost|ignored|overwritten|rejected)))"),
    _feature(
        "about the work",
        -2.0,
        r"""the (?:\w+ )?(?:fix|issue|bug|concern|question|difference|solution|approach|change|plan|"
        r"diagnostics?) (?:is|was)
        the (?:\w+ )?(?:finding|challenge|consideration|problem|risk|downside|suggestion|alternative|idea) (?:is|was)
        the (?:\w+ )?(?:fix|issue|bug|change|plan|solution|approach|problem) (?:isn['’]t|would|should|here|adds|makes)
        plan says""",
    ),
    _feature("hypothesis", -1.5, "would · sometimes · usually · often · in theory"),
    _feature(
        "guess",
        -2.0,
        r"""maybe · perhaps · probably · presumably · seems? · appears? · apparently · possibly · not sure · suspect
        i (?:think|believe|guess|suspect) · unclear · vielleicht · wohl · peut-être · quizás""",
    ),
    _feature(
        "hearsay",
        -2.0,
        r"""(?<!§ )says? · said · claims? · according to · suggests · recommends · tells · documentation · readme
        docs (?:say|state)""",
    ),
)

FEATURES = (*_WHAT_MUST_BE, *_WHY_AND_WHERE, *_WHAT_WAS_DONE, *_WHAT_IS_TALKED_ABOUT)
