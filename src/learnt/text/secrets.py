"""Find secrets in a text, by their shape or by their context.

By shape: tokens with a published prefix, private key blocks and JWTs, anywhere. By context: the password of an address,
an Authorization header, the value of a name like `api_key`, if it looks like a real secret. In doubt, a value that only
its context makes suspicious stays: placeholders, code, plain words, paths and prose.

The time is linear in the length of the text: every repetition is bounded or ends its expression. An expression is
compiled only when a text contains the letters that all of its matches contain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    Span = tuple[int, int, str]
    """Where a secret begins and ends, and its kind."""

MIN_SHAPE_LENGTH = 18
# A value is judged by its beginning, but removed as a whole.
_JUDGED_LENGTH = 300

# (kind, prefixes, expression after the prefix). A prefix counts if no letter or digit is before it.
_SHAPES = (
    ("1password-token", "ops_eyJ", r"[\w+/=-]{60,}"),
    ("1password-secret-key", "A3-", r"[A-Z0-9]{6}-[A-Z0-9]{6}(?:-[A-Z0-9]{5}){4}"),
    ("age-key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{50,}"),
    ("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("anthropic-key", "sk-ant-", r"[\w-]{20,}"),
    ("atlassian-token", "ATATT3 ATCTT3", r"[\w=-]{40,}"),
    ("atlassian-token", "ATBB", r"[A-Za-z0-9]{32}"),
    ("aws-key-id", "AKIA ASIA ABIA ACCA", r"[A-Z2-7]{16}"),
    ("brevo-key", "xkeysib- xsmtpsib-", r"[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("buildkite-token", "bkua_", r"[0-9a-f]{40}"),
    ("cloudflare-key", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{100,}"),
    ("crates-token", "cio", r"[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("databricks-token", "dapi", r"[0-9a-f]{32}(?:-\d)?"),
    ("digitalocean-token", "doo_v1_ dop_v1_ dor_v1_", r"[0-9a-f]{64}"),
    ("discord-webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/", r"\d{15,20}/[\w-]{40,}"),
    ("docker-token", "dckr_pat_ dckr_oat_", r"[\w-]{24,}"),
    ("doppler-token", "dp.", r"(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    ("dynatrace-token", "dt0c01. dt0s16.", r"[A-Z2-7]{24}\.[A-Z2-7]{64}"),
    ("figma-token", "figd_ figu_ figo_ figoh_", r"[\w-]{36,}"),
    ("fly-token", "fm1_ fm2_ fm1a_ fm1r_", r"[\w+/=,-]{60,}"),
    ("fly-token", "fo1_", r"[\w-]{40,}"),
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{36,}"),
    ("github-token", "github_pat_", r"\w{40,}"),
    (
        "gitlab-token",
        "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glsoat- glimt- glagent- gloas- glffct- glwt- GR1348941",
        r"[\w-]{20,}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?",
    ),
    ("google-key", "AIza", r"[\w-]{35,}"),
    ("google-token", "ya29.", r"[\w.-]{20,}"),
    ("google-token", "1//0", r"[\w-]{40,}"),
    ("google-secret", "GOCSPX-", r"[\w-]{24,}"),
    ("grafana-token", "glsa_", r"[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    ("grafana-token", "glc_", r"[A-Za-z0-9+/=_-]{32,}"),
    ("groq-key", "gsk_", r"[A-Za-z0-9]{40,}"),
    ("heroku-key", "HRKU-", r"[\w-]{36,}"),
    ("hubspot-token", "pat-na1- pat-na2- pat-eu1-", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("huggingface-token", "hf_ api_org_", r"[A-Za-z0-9]{30,}"),
    ("langfuse-key", "sk-lf-", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("langsmith-key", "lsv2_", r"(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    ("langsmith-key", "ls__", r"[0-9a-f]{32}"),
    ("linear-key", "lin_api_ lin_oauth_ lin_wh_", r"[A-Za-z0-9]{32,}"),
    ("mailgun-key", "key-", r"[0-9a-f]{32}"),
    ("neon-key", "napi_", r"[a-z0-9]{40,}"),
    ("netlify-token", "nfp_", r"[A-Za-z0-9]{36}"),
    ("new-relic-key", "NRAK- NRJS- NRII- NRRA- NRSP-", r"[\w-]{19,}"),
    ("notion-token", "ntn_", r"[A-Za-z0-9]{40,}"),
    ("notion-token", "secret_", r"[A-Za-z0-9]{43}"),
    ("npm-token", "npm_", r"[A-Za-z0-9]{36}"),
    ("nvidia-key", "nvapi-", r"[\w-]{50,}"),
    ("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[\w-]{20,}"),
    ("openai-key", "sk-", r"[A-Za-z0-9]{32,}"),
    ("openrouter-key", "sk-or-v1-", r"[0-9a-f]{64}"),
    ("perplexity-key", "pplx-", r"[A-Za-z0-9]{40,}"),
    ("pinecone-key", "pcsk_", r"[A-Za-z0-9]{4,10}_[A-Za-z0-9]{50,}"),
    ("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w=.-]{32,}"),
    ("postman-key", "PMAK-", r"[0-9a-fA-F]{24}-[0-9a-fA-F]{34}"),
    ("pulumi-token", "pul-", r"[0-9a-f]{40}"),
    ("pypi-token", "pypi-", r"[\w-]{50,}"),
    ("replicate-token", "r8_", r"[A-Za-z0-9]{37}"),
    ("resend-key", "re_", r"[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),
    ("rubygems-key", "rubygems_", r"[0-9a-f]{48}"),
    ("sendgrid-key", "SG.", r"[\w-]{16,32}\.[\w-]{30,}"),
    ("sentry-token", "sntrys_", r"[\w+/=-]{40,}"),
    ("sentry-token", "sntryu_", r"[0-9a-f]{64}"),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"[0-9a-fA-F]{32}"),
    ("slack-token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.xoxb- xoxe.xoxp-", r"[\w%-]{13,}"),
    ("slack-token", "xapp-", r"\d-[A-Z0-9]{8,}-\d{8,}-[0-9a-f]{40,}"),
    ("slack-webhook", "hooks.slack.com/", r"(?:services|workflows|triggers)/[\w/+-]{20,}"),
    ("square-token", "sq0atp- sq0csp- sq0idp-", r"[\w-]{22,}"),
    ("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[A-Za-z0-9]{10,}"),
    ("stripe-webhook-secret", "whsec_", r"[A-Za-z0-9+/=]{24,}"),
    ("supabase-key", "sbp_", r"(?:v0_)?[0-9a-f]{40}"),
    ("supabase-key", "sb_secret_", r"[\w-]{20,}"),
    ("tailscale-key", "tskey-", r"[a-z]{3,10}-[A-Za-z0-9]{8,20}-[A-Za-z0-9]{16,}"),
    ("tavily-key", "tvly-", r"[A-Za-z0-9-]{28,}"),
    ("twilio-key", "SK", r"[0-9a-f]{32}"),
    ("vault-token", "hvs. hvb. hvr.", r"[\w-]{24,}"),
    ("xai-key", "xai-", r"[A-Za-z0-9]{60,}"),
    (
        "private-key",
        "LS0tLS1CRUdJTiBSU0EgUFJJVkFURS LS0tLS1CRUdJTiBQUklWQVRF LS0tLS1CRUdJTiBFQyBQUklWQVRF "
        "LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUg LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURS",
        r"[A-Za-z0-9+/=]{20,}",
    ),
)

# (kind, required letters, expression): shapes that do not begin with a fixed prefix.
_OTHER_SHAPES = (
    ("jwt", "eyJ", r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    ("jwt", "eyJ", r"(?:(?<=\\[nrt])|(?<=%20)|(?<=%3[Dd]))eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    ("jwt", "eyJ", r"(?<![\w-])eyJ[\w-]{16,}\.(?:[\w-]*\.){2}[\w-]{16,}\.[\w-]{16,}"),
    ("telegram-token", ":AA", r"(?<!\d)\d{6,12}:AA[\w-]{32,}"),
    ("terraform-token", ".atlasv1.", r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{50,}"),
    ("square-token", "EAAA", r"(?<![\w+/-])EAAA[\w-]{56,}(?![+/=])"),
    ("azure-secret", "Q~", r"(?<![\w.~-])[\w.~-]{3}\dQ~[\w.~-]{31,34}"),
    ("new-relic-key", "NRAL", r"(?<![0-9a-f])[0-9a-f]{36}NRAL"),
    # The first part of a Discord token is a number in base64, which uses few letters.
    (
        "discord-token",
        "",
        r"[MNO][DTjz][AEIMQUYcgk][w-z0-5](?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){4,5}"
        r"[A-Za-z0-9]{0,3}\.[\w-]{6}\.[\w-]{27,}",
    ),
)

# A key is a secret if one of these words comes before it: there are primary keys, too.
_KEYS = tuple(
    "api app application access account admin auth bot client consumer cookie crypto deploy encrypt encryption hmac "
    "ingest integration jwt license master priv private role root secret service session shared signature signing ssh "
    "storage subscription token webhook write".split()
)
# The letters that names of secrets contain, and the expression for a name with its assignment.
_LETTERS_OF_NAMES = tuple("pass pw secret token key auth credential bearer sess connect.sid sig".split())
_NAME = (
    r"(?P<key>pass(?:word|wd|phrase|wort|code)|pwd|secret|token|key|credentials?|bearer"
    r"|(?<![A-Za-z])(?:pass|pw|auth|sig)(?![\w.-])"
    r"|(?-i:(?<![A-Za-z])(?:sessionid|SESSIONID|connect\.sid)|(?<=PHP)SESSID|(?<=\bJ)SESSIONID))"
    r"(?P<rest>[\w.-]{0,40}+)"
    r"(?P<close>\\{0,3}[\"'`]?\]?)"
    r"(?P<sep>:[ \t]{0,2}(?:str|string\??|bytes|SecretStr|Optional\[str\]|&(?:'static )?str)(?: \| None)?"
    r"[ \t]?=[ \t]{0,8}"
    r"|[ \t]{0,20}(?:=>|:=|\?=|===?|!==?|=|:(?!:))[ \t]{0,20}"
    r"|>(?=[^\s<])"
    r"|\((?=[\"'])"
    r"|,[ \t]{0,4}(?=[\"'])"
    r"|,?\s{1,60}[\"']?value[\"']?[ \t]{0,8}[:=][ \t]{0,8}"
    r"|[ \t]{1,8}(?:is|was|ist)[ \t]{1,8}(?::[ \t])?"
    r"|[ \t]{1,8}(?=\S{6}))"
)
# A name that continues with one of these is about a secret and does not hold it.
_ABOUT = frozenset(
    "alg algorithm arn at attempts budget cache callback change changed check class config count counts created "
    "digest duration enabled encoder endpoint env error errors exp expires expiration expiry field file filename files "
    "format func function generator hash hashed hasher header help hint id ids in index info input interval invalid "
    "label len length limit list location manager map max message min mode model name names needed number offset "
    "parser path pattern policy pos position prefix prompt provider ref regex required reset rotation rules scope "
    "size source spec start state status store strength suffix title total ttl type types uri url usage used validator "
    "var version".split()
)
_EMPTY = frozenset(
    "admin auto bcrypt bool boolean bytes change_me changeit changeme default disabled dummy empty enabled encrypted "
    "example false fixme foobar forgot guest hashed hidden incorrect input invalid login masked missing mypassword "
    "mysecret mytoken nil none not_set null object optional pass passphrase passwd password password1 password123 "
    "passwort plain plaintext postgres prompt pwd readonly redacted removed required reset s3cr3t secret secret123 "
    "secrets sensitive string strong test testing text todo token true undefined unknown unset user username weak "
    "wrong".split()
)
_PLACEHOLDER = (
    r"\$\{|\$\(|\{\{|\{%|%\(|#\{|\$[A-Za-z_][\w.:]*-?$|\$env:|%\w+%$|%[sdrv]$|<|@\w+@$|!(?:vault|ref|sub|secret|env|join)"
    r"|(?:op|vault|env|arn|ssm|file|gcp|aws|keyring|keychain|secretsmanager|bws):"
)
_PLACEHOLDER_INSIDE = (
    r"redacted|your[-_ .]|[-_]here$|example|placeholder|(?-i:x{4}|X{4})|\*{3}|\.{3}|…|•|os\.environ|process\.env|getenv"
    r"|env\[|change[-_]?me|replace[-_]?|insert[-_]|dummy|\$\{|\{[a-z_][\w.\[\]]*\}|<[\w -]+>|\{\{"
    r"|0{8}|12345678|abcdef123"
)
# Words, numbers and camel case with separators: names, paths, versions, models.
_WORDS = (
    r"[-_./:+@,~#*!?=]*(?:(?:[A-Z]?[a-z]+(?:[A-Z][a-z]+)*\d{0,4}|[A-Z]+\d{0,4}|\d+[a-z]{0,3}\d?)"
    r"(?:[-_./:+@,~#*!?=]+|$))+"
)
_CAMEL = r"_*[A-Za-z][a-z]+(?:\d{0,2}[A-Z]{1,5}[a-z]{2,})+\d{0,2}$"
_BARE = r"[^\s\"'`<>,;()\[\]{}|\\&]+"
_BARE_REST = r"(?:[^\s\"'`<>,;\\&]|&(?!(?:amp;)?[\w.-]{1,40}=))*"
_QUOTED = {'"': r"(?:[^\"\\\n]|\\.)*", "'": r"(?:[^'\\\n]|\\.)*", "`": r"[^`\\\n]*"}
_QUOTED_WITHIN = r"[^\"'`\\\n]*"
_SCHEMES = "bearer|basic|token|bot|api-?key|key|jwt|oauth|pat|negotiate|splunk|genie-?key|sso-key|x-api-key"
_patterns: dict[str, re.Pattern[str]] = {}
_all_shapes: list[tuple[str, str, str]] = []


def _compile(expression: str) -> re.Pattern[str]:
    pattern = _patterns.get(expression)
    if pattern is None:
        pattern = _patterns[expression] = re.compile(expression, re.ASCII)
    return pattern


def _private_keys(text: str) -> Iterator[Span]:
    """Find private key blocks; one that is cut off ends with its last line of base64."""
    if "PRIVATE KEY" not in text:
        return
    begins = list(_compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----").finditer(text))
    for number, begin in enumerate(begins):
        limit = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        end = _compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----").search(text, begin.end(), limit)
        if end is None:
            gap = r"(?:\\{1,4}[nrt]|[\s\"'+>#|,]){1,60}+"
            lines = rf"(?:{gap}(?:[A-Za-z][A-Za-z-]{{3,20}}: [^\n\\]{{1,100}}|[A-Za-z0-9/][A-Za-z0-9+/=]{{15,}}))+"
            body = _compile(rf"{lines}(?:{gap}[A-Za-z0-9+/=]{{1,64}}(?=[\"'\s]*$|[\\\"'\s]+-))?(?:[\s\\nr]{{0,9}}-+)?")
            if cut_off := body.match(text, begin.end(), limit):
                yield begin.start(), cut_off.end(), "private-key"
        elif _compile(r"[A-Za-z0-9+/]{16}").search(text, begin.end(), end.start()):
            yield begin.start(), end.end(), "private-key"


def _logins(text: str) -> Iterator[Span]:
    """Find the password in scheme://user:password@host, and a token in place of both."""
    if "://" not in text or "@" not in text:
        return
    expression = (
        r"://(?:[^\s:/@\"'`<>]{0,200}:(?!\d{1,5}[/?#])([^\s\"'`<>/]{1,300})|([\w-]{20,300}))@(?=[A-Za-z0-9\[%$_.(-])"
    )
    for match in _compile(expression).finditer(text):
        group = 1 if match[1] else 2
        if not _is_placeholder(match[group]) and (group == 1 or _is_strong(match[2], least=20)):
            yield *match.span(group), "password" if group == 1 else "token"


def _aws_pairs(text: str) -> Iterator[Span]:
    """Find AWS secret keys in a text that also contains a key id."""
    if not ("AKIA" in text or "ASIA" in text) or not _compile(r"A[KS]IA[A-Z2-7]{16}").search(text):
        return
    for match in _compile(r"(?<![\w/+=-])[A-Za-z0-9/+]{40}(?![\w/+=-])").finditer(text):
        if _is_strong(match[0]) and match[0].lower() != match[0] != match[0].upper():
            yield *match.span(), "aws-secret-key"


def _shapes(text: str) -> Iterator[Span]:
    long = " ".join(word for word in text.split() if len(word) >= MIN_SHAPE_LENGTH)
    for kind, letters, expression in _expressions() if long else ():
        if letters in long and (letters or _compile(expression).search(long)):
            yield from _matches(kind, expression, text)


def _expressions() -> list[tuple[str, str, str]]:
    """Return the kind, the required letters and the expression of each shape."""
    if not _all_shapes:
        _all_shapes.extend(_OTHER_SHAPES)
        for kind, prefixes, tail in _SHAPES:
            for prefix in prefixes.split():
                start = re.escape(prefix)
                # The letters come first: searching for an expression that begins with letters is much faster.
                edge = rf"(?:(?<![A-Za-z0-9]{start})|(?<=\\[nrt]{start})|(?<=%[0-9A-Fa-f][0-9A-Fa-f]{start}))"
                # The whole word is removed, so that no new match begins at its end.
                _all_shapes.append((kind, prefix, f"{start}{edge}{tail}[A-Za-z0-9]*"))
    return _all_shapes


def _matches(kind: str, expression: str, text: str) -> Iterator[Span]:
    for match in _compile(expression).finditer(text):
        if not _compile(r"(?i:your[-_]|example)|x{5}|X{5}|\*{5}|(.)\1{7}").search(match[0]):
            yield *match.span(), kind


def _headers(text: str) -> Iterator[Span]:
    """Find the value after `Authorization:`, or after `Bearer` or `Basic` alone."""
    lower = text.lower()
    if "authorization" not in lower and "bearer" not in lower and "basic" not in lower:
        return
    gap = r"[ \t]{0,8}f?\\{0,3}[\"'`]?[ \t]{0,8}"
    expression = (
        rf"(?i)(?:(authorization)\\{{0,3}}[\"'`]?\]?[ \t]{{0,8}}(?:[:=]{gap}(?:(?:{_SCHEMES})[ \t]{{1,8}})?"
        rf"|,{gap}(?:{_SCHEMES})[ \t]{{1,8}})|\b(?:bearer|basic)(?:[ \t]{{1,8}}|%20))"
        r"([^\s\"'`\\,;<>()\[\]{}]{8,})"
    )
    for match in _compile(expression).finditer(text):
        value = match[2]
        if not _is_placeholder(value) and (_is_opaque(value) if match[1] else _is_strong(value, least=16)):
            yield *match.span(2), "authorization"


def _cookies(text: str) -> Iterator[Span]:
    """Find the values of session cookies on a line, after the word `cookie`."""
    if "ookie" not in text and "COOKIE" not in text:
        return
    for match in _compile(r"(?i)cookies?\\{0,3}[\"'`]?[ \t]{0,8}[:= ][ \t]{0,8}([^\n]+)").finditer(text):
        start = match.start(1)
        for pair in match[1].split(";"):
            name, equals, value = pair.partition("=")
            carrier = _compile(r"(?i)sess|sid$|auth|token|jwt|csrf|xsrf|remember|login|sso|secret|identity|^__")
            bare = _compile(r"[^\s\"'`\\]+").match(value)
            if equals and bare and carrier.search(name.strip(" \t\"'")[-60:]) and _is_opaque(bare[0]):
                at = start + len(name) + 1
                yield at, at + bare.end(), "cookie"
            start += len(pair) + 1


def _commands(text: str) -> Iterator[Span]:
    """Find passwords in command lines and in `.netrc`."""
    for letters, expression in (
        ("machine", r"\bmachine\s{1,9}\S{1,200}\s{1,9}login\s{1,9}\S{1,200}\s{1,9}password\s{1,9}(\S{4,200})"),
        ("default", r"\bdefault\s{1,9}login\s{1,9}\S{1,200}\s{1,9}password\s{1,9}(\S{4,200})"),
        ("curl", r"\s(?:-u|--user|--proxy-user)[ =]{0,2}[\"']?[^\s:\"'/]{1,100}:([^\s\"'/]{4,200})"),
        ("sshpass", r"\bsshpass\s{1,9}-p\s{0,9}[\"']?([^\s\"']{4,200})"),
        ("mysql", r"\bmysql[a-z]{0,8}\s[^\n|;&]{0,200}?(?<=\s)-p[\"']?([^\s\"']{4,200})"),
        ("requirepass", r"\brequirepass\s{1,9}[\"']?([^\s\"']{4,200})"),
        ("IDENTIFIED BY", r"\bIDENTIFIED BY\s{1,9}'([^'\n]{4,200})"),
        ("identified by", r"\bidentified by\s{1,9}'([^'\n]{4,200})"),
        ("redis-cli", r"\bredis-cli\s[^\n|;&]{0,200}?(?<=\s)-a\s{1,9}[\"']?([^\s\"']{4,200})"),
    ):
        if letters in text:
            for match in _compile(expression).finditer(text):
                if not match[1].isdigit() and not _is_placeholder(match[1]) and _has_more_than_letters(match[1]):
                    yield *match.span(1), "password"


def _assignments(text: str) -> Iterator[Span]:
    """Find values assigned to a name like `password`, `api_key` or `token`."""
    done = 0
    # A single word such as `session` assigns nothing.
    for position in () if text.isalpha() else _find_positions(text, _LETTERS_OF_NAMES):
        name = _compile("(?i)" + _NAME).match(text, position) if position >= done else None
        if not name or not _names_a_secret(text, name):
            continue
        assigned = _Assignment(text, name)
        if _is_real(assigned):
            done = assigned.end()
            yield assigned.start, done, _kind(assigned.key)
        elif assigned.sep and not assigned.quoted:
            done = assigned.start + len(assigned.value)


def _find_positions(text: str, words: tuple[str, ...]) -> list[int]:
    """Return where the words begin, in upper or lower case."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    positions = []
    for word in words:
        position = lower.find(word)
        while position >= 0:
            positions.append(position)
            position = lower.find(word, position + len(word))
    return sorted(positions)


def _names_a_secret(text: str, name: re.Match[str]) -> bool:
    key, rest, sep = name["key"], name["rest"], name["sep"]
    if rest[:1].isalpha() and (rest[0].islower() or key.isupper()):
        return False
    before = text[max(0, name.start() - 50) : name.start()]
    if key.lower() == "key" and not before.rstrip(" _.-").lower().endswith(_KEYS):
        return False
    other = (
        (name["close"].endswith("]") and "[redacted: " in before)
        or (sep == ":" and before.endswith(":"))
        or before.lower().endswith(("publickey", "public_key_"))
        or (sep == ">" and not _compile(r"<[\w:.-]*$").search(before))
        or (sep.rstrip() == "," and not _compile(r"\([\"'][\w.-]*$").search(before))
    )
    if other:
        return False
    return not rest or _ABOUT.isdisjoint(part.lower() for part in _compile(r"[A-Z]?[a-z]+|[A-Z]+").findall(rest))


class _Assignment:
    """A value and how it is assigned to a name."""

    def __init__(self, text: str, name: re.Match[str]) -> None:
        self.text = text
        self.key = name["key"].lower()
        self.upper = name["key"].isupper()
        self.human = self.key.startswith(("pass", "pw"))
        self.sep = name["sep"].strip()
        self.tight = self.sep == name["sep"]
        self.position = name.start()
        quote = _compile(r"[bru]{0,2}(\\{0,3})(\"\"\"|'''|[\"'`])").match(text, name.end()) if self.sep != ">" else None
        self.quoted = bool(quote)
        self.start = quote.end() if quote else name.end()
        self._body = _compile(_BARE if not quote else _QUOTED_WITHIN if quote[1] else _QUOTED[quote[2][0]])
        match = self._body.match(text, self.start, self.start + _JUDGED_LENGTH)
        self.value = match[0] if match else ""
        self.follows = text[match.end() : match.end() + 1] if match else ""
        if not quote and self.follows not in ("(", "["):
            self.value = self.value.rstrip(".,:?")

    def end(self) -> int:
        """Return where the whole value ends, however long it is."""
        end = self.start + len(self.value)
        if not self.quoted and not self.follows.strip():
            return end
        more = (self._body if self.quoted else _compile(_BARE_REST)).match(self.text, end)
        rest = more[0] if more else ""
        return end + len(rest if self.quoted else rest.rstrip(")]}"))


def _is_real(assigned: _Assignment) -> bool:
    """Return whether an assigned value is a real secret."""
    if (
        len(assigned.value) < (6 if assigned.human else 12)
        or _is_placeholder(assigned.value)
        or _is_identifier(assigned)
    ):
        return False
    if assigned.sep in ("is", "was", "ist", ",", ""):
        return _is_real_without_operator(assigned)
    if assigned.human:
        return _is_password(assigned)
    if assigned.key == "auth":
        return assigned.quoted and assigned.sep != "(" and len(assigned.value) >= 12 and _is_opaque(assigned.value)
    if assigned.key.endswith("sid") or assigned.key in ("sessionid", "sig"):
        return _is_strong(assigned.value, least=16)
    return _is_strong(assigned.value)


def _is_identifier(assigned: _Assignment) -> bool:
    """Return whether a bare value is an identifier of some code."""
    if assigned.quoted:
        return False
    dotted = "." in assigned.value and not assigned.tight
    if (dotted or assigned.follows in ("(", "[")) and assigned.value.lstrip("*&").replace(".", "").isidentifier():
        return True
    return not assigned.tight and bool(_compile(_CAMEL).match(assigned.value))


def _is_real_without_operator(assigned: _Assignment) -> bool:
    """Judge a value without an operator between it and its name: an option of a command, or prose."""
    before = assigned.text[max(0, assigned.position - 40) : assigned.position]
    option = _compile(r"(?:^|[\s\"'`(])--?[\w.-]*$").search(before)
    if option and not assigned.sep:
        return _is_password(assigned) if assigned.human else _is_strong(assigned.value)
    if assigned.key in ("pass", "sig") or assigned.key.endswith(("sid", "sessionid")):
        return False
    if assigned.sep or assigned.quoted:
        return _is_strong(assigned.value, least=8)
    return _is_strong(assigned.value, least=20) and not _compile(r"(?i)[0-9a-f]+$|.*(?:key|pass|secret|token)").match(
        assigned.value
    )


def _is_password(assigned: _Assignment) -> bool:
    """Judge a password that a person may have chosen: shorter, and perhaps a word."""
    value = assigned.value
    if any(letter.isspace() for letter in value) or (assigned.sep == ">" and assigned.follows not in ("<", "")):
        return False
    if assigned.quoted and assigned.sep != "(":
        label = r"[A-Z][a-z]+$|[A-Za-z]+(?:[._|:](?:[A-Za-z]+|\d+))+$|~?/[\w.-]+/|\.{1,2}/|[\d.]*\.[\d.]*$"
        return not _compile(label).match(value)
    if value.isalpha():
        chosen = assigned.sep == "=" and assigned.tight and assigned.upper and not value.isupper()
        return chosen or _is_mixed(value)
    if value.isdigit():
        return len(assigned.key) > 4 and "=" in assigned.sep
    return _has_more_than_letters(value) and not _is_code(value)


def _is_code(value: str) -> bool:
    """Return whether a bare value reads as an identifier, a path, an address or a name of several words."""
    words = _compile(_WORDS).fullmatch(value) and _compile(r"\w+[._]|[a-z]+[-/:]|[\d/~.-]").match(value)
    return bool(
        (words and _compile(r"[\w/.:~-]+$").match(value)) or _compile(r"0[xX][0-9a-fA-F]+$|\w{1,20}://").match(value)
    )


def _kind(key: str) -> str:
    key = key.lower()
    if key.startswith(("pass", "pw")):
        return "password"
    if "key" in key:
        return "key"
    if key.endswith(("sid", "sessionid")):
        return "session"
    return "token" if key in ("token", "bearer", "auth") else "secret"


def _is_placeholder(value: str) -> bool:
    lower = value.lower()
    return (
        not value
        or lower.strip("_-<>[](){}*.$%\"'") in _EMPTY
        or len(set(lower)) <= 2
        or bool(_compile("(?i)" + _PLACEHOLDER).match(value))
        or bool(_compile("(?i)" + _PLACEHOLDER_INSIDE).search(value))
    )


def _is_strong(value: str, *, least: int = 12) -> bool:
    """Return whether a value looks random."""
    if len(value) < least or not value.isascii() or any(letter.isspace() for letter in value) or "://" in value:
        return False
    if not any(letter.isalpha() for letter in value) or _is_placeholder(value) or _compile(_WORDS).fullmatch(value):
        return False
    if _compile(
        r"0[xX][0-9a-fA-F]+$|(?:\\x[0-9a-fA-F]{2})+$|\d{4}-\d\d-\d\d|(?:learn|task|event|brief|attempt)_[0-9a-z]{14}$"
    ).match(value):
        return False
    if any(letter.isdigit() for letter in value):
        return True
    return (
        len(value) >= 16
        and value.lower() != value != value.upper()
        and not any(bracket in value for bracket in "()[]{}")
    )


def _is_opaque(value: str) -> bool:
    """Return whether a value where a secret is expected is more than a word."""
    return (
        len(value) >= 8
        and not _is_placeholder(value)
        and (value[1:] != value[1:].lower() or value.endswith("=") or any(letter.isdigit() for letter in value))
        and not (_compile(_WORDS).fullmatch(value) and not value.endswith("=") and len(value) < 40)
    )


def _has_more_than_letters(value: str) -> bool:
    return _is_mixed(value) or any(not letter.isalpha() and letter not in "-_./:" for letter in value)


def _is_mixed(value: str) -> bool:
    """Return whether the case of the letters changes more often than in words."""
    return len(value) >= 8 and len(_compile(r"[a-z][A-Z]").findall(value)) >= 2 and not _compile(_CAMEL).match(value)


FINDERS: tuple[Callable[[str], Iterator[Span]], ...] = (
    _private_keys,
    _logins,
    _aws_pairs,
    _shapes,
    _headers,
    _cookies,
    _commands,
    _assignments,
)
"""Each yields the secrets of one kind. They run in this order, because a finder must not see earlier secrets."""
