"""Words that exclude each other: `enable` and `disable`, `big` and `small`, the members of a series such as colours.

Two statements with one of them each do not say the same, however alike the words are. They contradict each other only
if the words are complementary, such as `enable` and `disable`, and all else is the same: two headers can have two
colours or sizes.
"""

from __future__ import annotations

from functools import cache

from learnt.text.statements import normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# What is the one is not the other.
_OPPOSITES = (
    # switches and rights
    "enable:disable activate:deactivate allow:forbid allow:deny allow:block permit:refuse grant:deny grant:revoke "
    "accept:reject accept:refuse accept:decline approve:reject approve:deny true:false yes:no lock:unlock "
    "block:unblock mount:unmount connect:disconnect attach:detach bind:unbind include:exclude require:forbid "
    "required:optional mandatory:optional opt-in:opt-out subscribe:unsubscribe support:oppose agree:disagree "
    # what is made and undone
    "add:remove add:delete insert:remove insert:delete create:delete create:destroy build:destroy keep:remove "
    "keep:delete keep:drop keep:discard install:uninstall upgrade:downgrade import:export encrypt:decrypt "
    "encode:decode compress:decompress serialize:deserialize pack:unpack wrap:unwrap zip:unzip load:unload merge:split "
    "join:split fill:empty cover:uncover tie:untie assemble:disassemble fix:break repair:break commit:revert "
    "apply:revert open:close open:shut show:hide reveal:hide push:pull read:write "
    # beginning, end and growth
    "start:stop start:end start:finish begin:end begin:stop begin:finish continue:stop resume:pause "
    "succeed:fail pass:fail increase:decrease increase:reduce expand:collapse upgrade:rollback "
    # states
    "awake:asleep sleep:wake live:die dead:alive eat:fast speak:silent talk:silent noisy:silent loud:quiet clean:dirty "
    "full:empty empty:crowded possible:impossible right:wrong correct:wrong correct:incorrect valid:invalid "
    "legal:illegal complete:incomplete consistent:inconsistent secure:insecure visible:invisible visible:hidden "
    "active:inactive present:absent same:different equal:different known:unknown safe:dangerous busy:idle near:far "
    "close:far remember:forget hit:miss catch:miss like:dislike win:lose "
    # amounts, frequencies and places
    "more:less more:fewer most:least many:few all:none always:never everybody:nobody everyone:nobody minimum:maximum "
    "min:max above:below inside:outside indoors:outdoors indoor:outdoor before:after with:without day:night "
    "often:rarely often:seldom "
    # software
    "public:private internal:external local:remote online:offline uppercase:lowercase ascending:descending "
    "synchronous:asynchronous sync:async mutable:immutable stateful:stateless serial:parallel sequential:parallel "
    "tab:space absolute:relative eager:lazy strict:lenient explicit:implicit static:dynamic manual:automatic "
    "manually:automatically temporary:permanent singular:plural signed:unsigned sparse:dense whitelist:blacklist "
    "allowlist:denylist higher:lower faster:slower larger:smaller longer:shorter"
)
# There is something between the two, or each can be true of something else: a small dog and a big dog.
_CONTRARIES = (
    "big:small big:little large:small large:little huge:tiny long:short tall:short high:low fast:slow quick:slow "
    "quickly:slowly new:old young:old fresh:stale thick:thin wide:narrow deep:shallow wet:dry hot:cold warm:cold "
    "warm:cool rich:poor strong:weak hard:soft sharp:blunt rough:smooth bright:dark bright:dim light:dark light:heavy "
    "better:worse best:worst good:bad happy:sad cheap:expensive early:late first:last easy:hard easy:difficult "
    "simple:complex similar:different sit:stand lie:stand walk:run laugh:cry smile:frown love:hate like:hate "
    "enter:leave enter:exit arrive:leave arrive:depart give:take buy:sell lend:borrow find:lose catch:drop catch:throw "
    "send:receive raise:lower lift:drop rise:fall ascend:descend climb:descend float:sink advance:retreat "
    "forward:backward top:bottom front:back left:right horizontal:vertical grow:shrink extend:shorten widen:narrow "
    "accelerate:slow strengthen:weaken improve:worsen heat:cool freeze:melt "
    "upper:lower foreground:background "
    "on:off up:down in:out into:out inside:out over:under on:under onto:off forward:back upstairs:downstairs"
)
# Directions say which way something goes, not whether it happens: only with a switch do they contradict each other.
_DIRECTIONS = "on:off up:down in:out into:out"
_SWITCHES = "turn switch set put flip toggle keep leave scale log sign opt roll power be"
_NEGATIVE_BEGINNINGS = ("un", "non", "dis", "de")
_MIN_ROOT = 4
# One word of a series excludes the others; what stands together here is one member.
_SERIES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fifteen twenty thirty fifty hundred "
    "thousand million",
    "first second third fourth fifth sixth last",
    "black white red green blue yellow orange purple violet pink brown grey/gray cyan magenta turquoise beige silver "
    "golden",
    "monday tuesday wednesday thursday friday saturday sunday",
    "january february march april may june july august september october november december",
    "spring summer autumn/fall winter",
    "morning noon/midday afternoon evening night/midnight",
    "north south east west",
    "second minute hour day week month year quarter",
    "hourly daily/nightly weekly monthly yearly/annually",
    "byte kilobyte/kb megabyte/mb gigabyte/gb terabyte/tb",
    "production/live staging development/dev testing/qa sandbox",
    "man/male/boy/gentleman/father/son/husband/brother/he woman/female/girl/lady/mother/daughter/wife/sister/she",
    "get post put patch delete head",
    "debug info warning error critical/fatal",
    "client server",
    "frontend backend",
    "upstream downstream",
    "input output",
)


@cache
def _read_pairs(text: str) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(map(normalise, pair.split(":"))) for pair in text.split())


@cache
def _read_series() -> dict[str, list[tuple[int, int]]]:
    """Return in which series and as which member of it each word stands."""
    members: dict[str, list[tuple[int, int]]] = {}
    for number, series in enumerate(_SERIES):
        for member, words in enumerate(series.split()):
            for word in words.split("/"):
                members.setdefault(normalise(word), []).append((number, member))
    return members


def find_opposites(some: Iterable[str], others: Iterable[str], shared: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return two words, one of each, that are opposites, such as `enable` and `disable`; empty if there are none.

    `shared` are the words that both have: `on` and `off` are opposites beside `turn`, but not beside `jump`.
    """
    others = tuple(others)
    opposites, directions = _read_pairs(_OPPOSITES), _read_pairs(_DIRECTIONS)
    may_switch = not shared.isdisjoint(map(normalise, _SWITCHES.split()))
    for word in some:
        for other in others:
            pair = frozenset((word, other))
            if pair in directions:
                if may_switch:
                    return pair
            elif pair in opposites or _is_denial(word, other) or _is_denial(other, word):
                return pair
    return frozenset()


def exclude_each_other(word: str, other: str) -> bool:
    """Return whether two words cannot stand for the same: opposites of any kind, or members of a series."""
    pair = frozenset((word, other))
    if pair in _read_pairs(_OPPOSITES) or pair in _read_pairs(_CONTRARIES):
        return True
    if _is_denial(word, other) or _is_denial(other, word):
        return True
    members = _read_series()
    places, other_places = members.get(word, ()), members.get(other, ())
    return any(
        number == other_number and member != other_member
        for number, member in places
        for other_number, other_member in other_places
    )


def _is_denial(word: str, root: str) -> bool:
    """Return whether a word is another one with a beginning that denies it: `unsafe` and `safe`."""
    # Both are stems, and the stem of the longer word may have lost an `e` that the other has kept.
    end = root.removesuffix("e")
    return len(root) >= _MIN_ROOT and any(word.removesuffix("e") == start + end for start in _NEGATIVE_BEGINNINGS)
