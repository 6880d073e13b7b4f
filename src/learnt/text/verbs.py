"""Recognise verbs in a sentence, as far as that is possible without knowing a word's place in it.

Enough for telling a sentence from a heading or a fragment, and an order from a report: a list of verbs that are common
in talk about software, with their regular forms, the auxiliaries of four languages, and the endings that only verbs
have. A word that can be a noun as well (`build`, `test`) counts as a verb only where a verb would stand.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

# Words that make a predicate wherever they stand: English, then German, French and Spanish.
_AUXILIARIES = (
    "is are was were be been has have had do does did can could must should shall will would may might ought cannot "
    "isn't aren't wasn't weren't hasn't haven't hadn't don't doesn't didn't can't couldn't mustn't shouldn't won't "
    "wouldn't needn't needs need it's that's there's let's i'm we're you're they're i've we've you've they've i'll "
    "we'll you'll they'll it'll "
    "ist sind war waren wird werden wurde wurden hat haben hatte hatten muss müssen musst müsst darf dürfen kann "
    "können soll sollen sollte sollten wollen braucht brauchen gibt geht gilt heißt läuft liegt steht schlägt macht "
    "est sont était étaient sera seront ont avait faut doit doivent peut peuvent devrait fait font va vont existe "
    "es era eran está están fue ser será hay debe deben debería puede pueden tiene tienen hace van falla se nimmt "
    "gehört gehören verlangt erwartet benötigt benötigen funktioniert funktionieren fehlt fehlen kommt kommen bleibt "
    "bleiben nutzt verwendet scheitert liefert liest schreibt laufen fonctionne fonctionnent échoue manque manquent "
    "exige utilise nécessite renvoie attend funciona funcionan necesita necesitan acepta espera requiere devuelve "
    "fallan"
)
# Verbs whose base form starts an order; regular forms are added.
_VERBS = (
    "abort accept access acquire activate add adjust affect align allow alter analyse analyze appear append apply "
    "archive arrive assert assign assume attach attempt avoid await backport base become begin behave belong block "
    "boot bootstrap break bring buffer build bump bundle bypass cache call cancel capture care carry cast catch cause "
    "change check choose claim clean clear click clone close coerce collapse collect collide come commit compare "
    "compile complain complete compress compute configure confirm conflict connect consider consist consume contain "
    "continue convert copy corrupt count cover crash create cut deadlock deal debug decide declare decline decode "
    "decorate decrease default defer define delay delegate delete deliver deny depend deploy deprecate derive describe "
    "deserialize destroy detach detect determine differ disable disagree disappear discard disconnect dispatch display "
    "document double download drain drift drop dump duplicate edit eliminate embed emit enable encode encounter end "
    "enforce ensure enter escape evaluate evict exceed exclude execute exhaust exist exit expand expect expire explode "
    "export expose extend extract fail fall feed fetch fill filter find finish fire fit fix flag flatten flip flush "
    "follow forbid force forget fork format forward freeze generate get give go grab grant group grow guarantee guard "
    "guess hand handle hang happen hash help hide hit hold honor honour ignore implement import improve include "
    "increase "
    "increment indicate infer inherit initialise initialize inject inline insert inspect install instantiate intercept "
    "interpolate interpret introduce invalidate invoke isolate join jump keep kill know lack land launch lead leak "
    "learn leave let lie limit link lint list listen live load localise localize lock log look loop lose lower "
    "maintain make manage mangle map mark mask match matter mean measure merge migrate mind mirror miss mix mock "
    "modify monitor mount move mutate name need nest normalise normalize note notice obey observe occur offer omit "
    "open opt optimise optimize order override overwrite own pack package pad panic parse pass paste patch perform "
    "permit persist pick pin pipe place plan play point poll pop populate prefer prefix prepare prepend present "
    "preserve press prevent print produce prohibit promise promote propagate protect provide prune publish pull purge "
    "push put query queue quit quote raise reach react read rebase rebuild receive recommend recompile reconnect "
    "record recover recreate redirect reduce refactor refer reference refresh refuse regenerate register reject relax "
    "release reload rely remain remember remove rename render reopen repeat replace reply report represent reproduce "
    "request require rerun reserve reset resolve respect respond restart restore restrict retain retry return reuse "
    "revert review rewrite roll rotate round route run save scale scan schedule search see seem select send separate "
    "serialise serialize serve set share shift ship show shut sign signal simplify sit skip sleep sort specify speed "
    "spell spend split squash stack stage stand start stash state stay stick stop store stream strip subclass submit "
    "succeed suggest supply support suppress surface swallow swap switch sync synchronise synchronize take target tell "
    "terminate throw tie time toggle tolerate touch trace track transform translate treat trigger trim truncate trust "
    "try tune turn type undo uninstall unlock unpack unset update upgrade upload use validate vanish verify version "
    "view violate wait wake walk want warn wash watch win wipe wire wonder work wrap write yield zero "
    "brauchen geben verwenden benutzen nutzen setzen lassen beachten vermeiden "
    "utiliser utilisez utilise lancer lancez ajouter éviter évitez "
    "usar usa use ejecutar ejecuta evitar evita añadir"
)
_IRREGULAR = (
    "became:become began:begin broke:break broken:break brought:bring built:build came:come caught:catch chose:choose "
    "chosen:choose dealt:deal did:do done:do drew:draw drove:drive fell:fall felt:feel fed:feed forgot:forget "
    "found:find froze:freeze frozen:freeze gave:give given:give went:go gone:go grew:grow held:hold hid:hide "
    "hidden:hide hung:hang kept:keep knew:know known:know led:lead left:leave lost:lose made:make meant:mean met:meet "
    "overrode:override overwrote:overwrite overwritten:overwrite ran:run rewrote:rewrite rewritten:rewrite said:say "
    "sat:sit sent:send slept:sleep spent:spend spoke:speak stood:stand stuck:stick taken:take took:take threw:throw "
    "thrown:throw told:tell tried:try understood:understand undid:undo was:be woke:wake won:win written:write "
    "wrote:write put:put set:set cut:cut hit:hit let:let read:read shut:shut split:split"
)
_PARTICIPLE = r"(?:ized|ised|ified|ated|ened|cted|pted|shed|ched|ssed|rred|lled|nned|pped|tted|ored|ured|ined|ited)$"
_PRESENT = r"(?:izes|ises|ifies|lates|rates|nates|tates|cates|duces|solves|serves|quires|pends|ceeds|sumes|mits)$"
# Words behind which a base form is the predicate.
_BEFORE_VERBS = frozenset("i we you they to please never always not just who which that".split())
_FOREIGN = frozenset(
    "der das den dem des ein eine einen und oder nicht nur mit ohne von zu für im am le les des une et ou pas avec "
    "sans "
    "pour dans du au el los las una y no con sin para por del que".split()
)
_MIN_FOREIGN_WORDS = 6
_WORD = r"[^\W\d_]+(?:['’-][^\W\d_]+)*"


@cache
def _auxiliaries() -> frozenset[str]:
    return frozenset(_AUXILIARIES.split())


@cache
def _bases() -> frozenset[str]:
    return frozenset(_VERBS.split())


@cache
def _past_forms() -> dict[str, str]:
    """Return verbs in the past, and their base forms."""
    regular = {form: verb for verb in _bases() for form in _inflect(verb, "ed")}
    return regular | dict(pair.split(":") for pair in _IRREGULAR.split())


@cache
def _present_forms() -> frozenset[str]:
    return frozenset(form for verb in _bases() for form in _inflect(verb, "s"))


@cache
def _progressive_forms() -> frozenset[str]:
    return frozenset(form for verb in _bases() for form in _inflect(verb, "ing"))


def _inflect(verb: str, ending: str) -> tuple[str, ...]:
    """Return how a regular verb is written with an ending; of doubtful spellings, both."""
    if ending == "s":
        hissing = verb.endswith(("s", "x", "z", "ch", "sh", "o"))
        return (
            (f"{verb[:-1]}ies",) if verb[-1] == "y" and verb[-2] not in "aeou" else (verb + ("es" if hissing else "s"),)
        )
    if verb.endswith("e") and not verb.endswith("ee"):
        return (verb[:-1] + ending,)
    if verb[-1] == "y" and verb[-2] not in "aeou" and ending == "ed":
        return (f"{verb[:-1]}ied",)
    return (verb + ending, verb + verb[-1] + ending)


def is_auxiliary(word: str) -> bool:
    """Return whether a word makes a predicate wherever it stands: `is`, `must`, `doesn't`, `muss`."""
    return word.lower().replace("’", "'") in _auxiliaries()


def is_base_form(word: str) -> bool:
    """Return whether a word is the base form of a known verb: `use`."""
    return word.lower() in _bases()


def is_present(word: str) -> bool:
    """Return whether a word is a known verb, or looks like one, in the third person: `uses`, `serialises`."""
    word = word.lower()
    return word in _present_forms() or re.search(_PRESENT, word) is not None


def is_past(word: str) -> bool:
    """Return whether a word is a known verb, or looks like one, in the past: `used`, `wrote`, `normalised`."""
    word = word.lower()
    return word in _past_forms() or re.search(_PARTICIPLE, word) is not None


def base_of(word: str) -> str:
    """Return the base form of a verb in the past, in lower case; another word as it is."""
    return _past_forms().get(word.lower(), word.lower())


def is_progressive(word: str) -> bool:
    """Return whether a word is a known verb with `-ing`: `using`."""
    return word.lower() in _progressive_forms()


def has_predicate(words: list[str]) -> bool:
    """Return whether the words of a sentence, in order, contain what looks like its predicate."""
    if not words:
        return False
    if any(map(is_auxiliary, words)) or is_base_form(words[0]) or is_foreign(words):
        return True
    pairs = list(pairwise(words))
    return any(is_present(word) or is_past(word) for _, word in pairs) or any(
        is_base_form(word) and (before.lower() in _BEFORE_VERBS or before.endswith("s")) for before, word in pairs
    )


def is_foreign(words: list[str]) -> bool:
    """Return whether a sentence is in another language, whose verbs are not known here."""
    return len(words) >= _MIN_FOREIGN_WORDS and sum(word.lower() in _FOREIGN for word in words) >= 2


def list_words(text: str) -> list[str]:
    """Return the words of a text, without numbers and signs."""
    return re.findall(_WORD, text)
