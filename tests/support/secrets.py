"""4,000 secrets of every published kind in five carriers: prose, shell, JSON, settings and logs.

Every secret is generated from a fixed seed, so none of them is real, and none is in this file.
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterator
from typing import NamedTuple

from learnt.text.redact import redact

SEED = 20_260
SECRETS = 4_000
CARRIERS = 5
LEAST_FOUND = 0.99

LOWER_HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits
BASE64 = ALNUM + "+/"
URL_SAFE = ALNUM + "-_"
UPPER = string.ascii_uppercase + string.digits
BASE32 = string.ascii_uppercase + "234567"
CHOSEN = ALNUM + "!@#%^*-_+=.~"

# For each kind: a template. `{alphabet:length}` is random; the rest is the published format.
SHAPES = {
    "aws key id": "AKIA{32:16}",
    "aws temporary key id": "ASIA{32:16}",
    "github classic": "ghp_{a:36}",
    "github oauth": "gho_{a:36}",
    "github user": "ghu_{a:36}",
    "github server": "ghs_{a:36}",
    "github refresh": "ghr_{a:76}",
    "github fine-grained": "github_pat_{a:22}_{a:59}",
    "gitlab personal": "glpat-{u:20}",
    "gitlab deploy": "gldt-{u:20}",
    "gitlab runner": "glrt-{u:20}",
    "gitlab trigger": "glptt-{h:40}",
    "gitlab routable": "glpat-{u:27}.01.{l:9}",
    "slack bot": "xoxb-{d:12}-{d:13}-{a:24}",
    "slack user": "xoxp-{d:12}-{d:12}-{d:13}-{h:32}",
    "slack app": "xapp-1-A{U:10}-{d:13}-{h:64}",
    "slack webhook": "https://hooks.slack.com/services/T{U:10}/B{U:10}/{a:24}",
    "stripe live": "sk_live_{a:24}",
    "stripe long": "sk_live_51{a:97}",
    "stripe restricted": "rk_test_{a:24}",
    "stripe webhook": "whsec_{a:32}",
    "openai legacy": "sk-{a:20}T3BlbkFJ{a:20}",
    "openai project": "sk-proj-{u:74}T3BlbkFJ{u:74}",
    "openai service": "sk-svcacct-{u:74}T3BlbkFJ{u:74}",
    "openai admin": "sk-admin-{u:58}T3BlbkFJ{u:58}",
    "anthropic": "sk-ant-api03-{u:93}AA",
    "google key": "AIza{u:35}",
    "google access": "ya29.{u:120}",
    "google client": "GOCSPX-{u:28}",
    "npm": "npm_{a:36}",
    "pypi": "pypi-AgEIcHlwaS5vcmc{u:120}",
    "sendgrid": "SG.{u:22}.{u:43}",
    "twilio key": "SK{h:32}",
    "mailgun": "key-{h:32}",
    "digitalocean": "dop_v1_{h:64}",
    "heroku": "HRKU-AA{u:58}",
    "hugging face": "hf_{A:34}",
    "databricks": "dapi{h:32}",
    "doppler": "dp.pt.{a:43}",
    "doppler service": "dp.st.prd.{a:43}",
    "linear": "lin_api_{a:40}",
    "notion": "ntn_{d:11}{a:35}",
    "notion old": "secret_{a:43}",
    "postman": "PMAK-{h:24}-{h:34}",
    "shopify": "shpat_{h:32}",
    "shopify shared": "shpss_{h:32}",
    "square access": "EAAA{u:60}",
    "square client": "sq0csp-{u:43}",
    "telegram": "{d:10}:AA{u:33}",
    "vault service": "hvs.{u:90}",
    "vault batch": "hvb.{u:138}",
    "terraform": "{a:14}.atlasv1.{u:67}",
    "azure client": "{a:3}8Q~{a:34}",
    "azure storage": "AccountKey={b:86}==",
    "age": "AGE-SECRET-KEY-1{U:58}",
    "jwt": "eyJ{u:33}.eyJ{u:70}.{u:43}",
    "grafana service": "glsa_{a:32}_{h:8}",
    "grafana cloud": "glc_{b:80}",
    "new relic": "NRAK-{U:27}",
    "new relic licence": "{h:36}NRAL",
    "planetscale": "pscale_pw_{u:43}",
    "planetscale token": "pscale_tkn_{u:43}",
    "supabase": "sbp_{h:40}",
    "supabase secret": "sb_secret_{u:31}",
    "fly": "fm2_{b:300}",
    "fly old": "fo1_{u:43}",
    "figma": "figd_{u:40}",
    "atlassian": "ATATT3xFfGF0{u:170}={U:8}",
    "sentry user": "sntryu_{h:64}",
    "sentry organisation": "sntrys_eyJ{b:120}_{b:43}",
    "groq": "gsk_{a:52}",
    "xai": "xai-{a:80}",
    "perplexity": "pplx-{a:48}",
    "replicate": "r8_{a:37}",
    "langsmith": "lsv2_pt_{h:32}_{h:10}",
    "1password": "ops_eyJ{b:400}",
    "docker hub": "dckr_pat_{u:27}",
    "openrouter": "sk-or-v1-{h:64}",
    "netlify": "nfp_{a:36}",
    "rubygems": "rubygems_{h:48}",
    "tailscale": "tskey-auth-k{a:16}-{a:32}",
}
# For each kind: a name and a template. Only the name shows that the value is a secret.
NAMED = {
    "aws secret": ("aws_secret_access_key", "{b:40}"),
    "twilio token": ("twilio_auth_token", "{h:32}"),
    "heroku old": ("heroku_api_key", "{h:8}-{h:4}-{h:4}-{h:4}-{h:12}"),
    "cloudflare token": ("cloudflare_api_token", "{u:40}"),
    "cloudflare key": ("cloudflare_api_key", "{h:37}"),
    "mailgun new": ("mailgun_api_key", "{h:32}-{h:8}-{h:8}"),
    "linear webhook": ("webhook_secret", "{h:40}"),
    "password": ("db_password", "{c:16}"),
    "short password": ("password", "{c:10}"),
    "api key": ("api_key", "{a:24}"),
    "secret token": ("secret_token", "{a:32}"),
    "client secret": ("client_secret", "{u:40}"),
    "access token": ("access_token", "{a:40}"),
    "refresh token": ("refreshToken", "{u:48}"),
    "signing key": ("signing_key", "{h:64}"),
}
# For each kind: a phrase that already contains the context of the secret.
PHRASES = {
    "private key": "-----BEGIN {k} KEY-----\n{b:64}\n{b:64}\n{b:64}\n{b:44}\n-----END {k} KEY-----",
    "private key, cut off": "-----BEGIN {k} KEY-----\n{b:64}\n{b:64}\n{b:30}",
    "postgres address": "postgresql://app:{c:16}@db.internal:5432/shop",
    "mongo address": "mongodb+srv://root:{a:20}@cluster0.mongodb.net/?retryWrites=true",
    "redis address": "redis://:{h:32}@cache:6379/0",
    "git address": "https://oauth2:{u:26}@git.internal/team/app.git",
    "password option": "postgresql://db/x?user=app&password={a:16}&sslmode=require",
    "bearer": "Authorization: Bearer {u:40}",
    "basic": "Authorization: Basic {b:32}==",
    "token header": "Authorization: token {h:40}",
    "key header": "X-Api-Key: {a:32}",
    "session cookie": "Cookie: theme=dark; sessionid={l:32}; lang=en",
    "set cookie": "Set-Cookie: connect.sid=s%3A{u:32}.{a:43}; Path=/; HttpOnly",
    "netrc": "machine api.internal login deploy password {a:20}",
    "docker login": '"auths": {"registry.internal": {"auth": "{b:40}"}}',
    "kubeconfig key": "client-key-data: LS0t{b:400}",
    "option": "tool login --user anna --password {a:14} --verbose",
    "option with sign": "tool --api-key={a:32} run",
    "query": "GET /v1/items?page=2&access_token={a:40}&sort=asc",
    "curl user": "curl -u anna:{a:18} https://api.internal/v1",
}
DISCORD = "discord"

PROSE = (
    "The deploy failed because {} was revoked last week.",
    "Use {} when you call the service, it works.",
    "I found `{}` in the old notes; it still works",
    "it is {}.",
)
SHELL = (
    "export SERVICE_VALUE={}",
    "curl -sS -H 'X-Thing: {}' https://api.internal/v1",
    '$ tool run --with "{}" --verbose',
    "echo {} | tool import -",
)
FILES = ("value: {}", 'SETTING="{}"', "[service]\nsetting = {}", "  - name: thing\n    value: '{}'", "SETTING={}")
LOGS = (
    "2026-01-05T10:11:12Z INFO client sends {} to host=api.internal status=200",
    "GET https://api.internal/v1/x?thing={}&page=2 HTTP/1.1",
    "X-Thing: {}",
    "[worker-3] retry 2: {}",
)


class Secret(NamedTuple):
    """A secret: its kind, the text around it, and its random pieces."""

    kind: str
    text: str
    pieces: list[str]


def draw(template: str, chance: random.Random) -> tuple[str, list[str]]:
    """Fill in a template; return the text and its random pieces."""
    alphabets = {
        "a": ALNUM, "A": string.ascii_letters, "b": BASE64, "c": CHOSEN, "d": string.digits, "h": LOWER_HEX,
        "l": string.ascii_lowercase + string.digits, "u": URL_SAFE, "U": UPPER, "32": BASE32,
    }  # fmt: skip
    template = template.replace("{k}", chance.choice(("PRIVATE", "RSA PRIVATE", "OPENSSH PRIVATE", "EC PRIVATE")))
    text = ""
    pieces: list[str] = []
    while True:
        before, mark, rest = template.partition("{")
        alphabet, colon, length = rest.partition("}")[0].partition(":")
        text += before
        if not mark:
            return text, pieces
        if not colon or alphabet not in alphabets:
            text, template = text + mark, rest
            continue
        piece = "".join(chance.choices(alphabets[alphabet], k=int(length)))
        text, template = text + piece, rest.partition("}")[2]
        pieces.append(piece)


def discord_token(chance: random.Random) -> tuple[str, list[str]]:
    from base64 import b64encode

    number = b64encode(str(chance.randrange(10**17, 10**18)).encode()).decode().rstrip("=")
    pieces = ["".join(chance.choices(URL_SAFE, k=length)) for length in (6, 38)]
    return ".".join((number, *pieces)), [number, *pieces]


def carried(secret: str, carrier: int, chance: random.Random) -> str:
    """Insert a secret, or a phrase that contains its context, into one of five carriers."""
    if carrier == 2:
        return json.dumps({"id": 7, "note": chance.choice(("{}", "uses {} now")).format(secret), "ok": True})
    if carrier == 3 and "\n" in secret:
        return "value: |\n  " + secret.replace("\n", "\n  ")
    return chance.choice((PROSE, SHELL, (), FILES, LOGS)[carrier]).format(secret)


def named(name: str, secret: str, carrier: int, chance: random.Random) -> str:
    """Assign a secret to a name in one of five ways."""
    words, dashed = name.replace("_", " "), name.replace("_", "-")
    ways = (
        (f"The {words} is {secret} for now.", f"Log in with {words}: {secret}", f"We set {name} = `{secret}` there."),
        (f"export {name.upper()}='{secret}'", f"{name.upper()}={secret} make run", f'tool --{dashed} "{secret}" up'),
        (json.dumps({"id": 1, name: secret}), json.dumps({"log": json.dumps({name: secret})}, indent=2)),
        (f"{name}: {secret}", f'{name}: "{secret}"', f"{name} = {secret}", f"{name.upper()}={secret}"),
        (f"10:11:12 WARN retry {name}={secret} in 5s", f"X-{dashed.title()}: {secret}", f"config {name}='{secret}'"),
    )
    return chance.choice(ways[carrier])


def secrets() -> Iterator[Secret]:
    """Yield all secrets, which are the same in every run."""
    chance = random.Random(SEED)
    kinds = [*SHAPES, *NAMED, *PHRASES, DISCORD]
    for number in range(SECRETS):
        kind, carrier = kinds[number % len(kinds)], (number // len(kinds)) % CARRIERS
        if kind in NAMED:
            name, template = NAMED[kind]
            secret, pieces = draw(template, chance)
            yield Secret(kind, named(name, secret, carrier, chance), pieces)
            continue
        secret, pieces = discord_token(chance) if kind == DISCORD else draw({**SHAPES, **PHRASES}[kind], chance)
        yield Secret(kind, carried(secret, carrier, chance), pieces)


def remains(piece: str, text: str) -> bool:
    """Return whether a text still contains eight characters of a piece."""
    return any(piece[start : start + 8] in text for start in range(max(1, len(piece) - 7)) if len(piece) >= 8)


def is_missed(secret: Secret) -> bool:
    """Return whether the redactor leaves a part of a secret."""
    shown, count = redact(secret.text)
    return not count or any(remains(piece, shown) for piece in secret.pieces)
