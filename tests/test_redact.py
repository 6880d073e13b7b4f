"""Secrets leave a text before it is stored, and ordinary text stays as it is.

Every secret here is drawn by chance from a fixed seed: none is anybody's, and none stands in this file.
"""

from __future__ import annotations

import json
import random
import string
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnt.text.redact import redact

SEED = 20_260
SECRETS = 4_000
LEAST_FOUND = 0.99
ORDINARY_LINES = 5_000
MOST_FALSE_ALARMS = 0.005

LOWER_HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits
BASE64 = ALNUM + "+/"
URL_SAFE = ALNUM + "-_"
UPPER = string.ascii_uppercase + string.digits
BASE32 = string.ascii_uppercase + "234567"
CHOSEN = ALNUM + "!@#%^*-_+=.~"

# Kind: a template of the secret. `{alphabet:length}` is drawn; the rest is the published form.
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
# Kind: (name, template): what only its place tells.
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
# Kind: a phrase that brings its own place.
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


def draw(template: str, chance: random.Random) -> tuple[str, list[str]]:
    """Fill a template; return the text and the pieces that chance gave."""
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
    """Put a secret, or a phrase with its own place, into one of five carriers."""
    if carrier == 2:
        return json.dumps({"id": 7, "note": chance.choice(("{}", "uses {} now")).format(secret), "ok": True})
    if carrier == 3 and "\n" in secret:
        return "value: |\n  " + secret.replace("\n", "\n  ")
    return chance.choice((PROSE, SHELL, (), FILES, LOGS)[carrier]).format(secret)


def named(name: str, secret: str, carrier: int, chance: random.Random) -> str:
    """Give a secret to a name in one of five ways."""
    words, dashed = name.replace("_", " "), name.replace("_", "-")
    ways = (
        (f"The {words} is {secret} for now.", f"Log in with {words}: {secret}", f"We set {name} = `{secret}` there."),
        (f"export {name.upper()}='{secret}'", f"{name.upper()}={secret} make run", f'tool --{dashed} "{secret}" up'),
        (json.dumps({"id": 1, name: secret}), json.dumps({"log": json.dumps({name: secret})}, indent=2)),
        (f"{name}: {secret}", f'{name}: "{secret}"', f"{name} = {secret}", f"{name.upper()}={secret}"),
        (f"10:11:12 WARN retry {name}={secret} in 5s", f"X-{dashed.title()}: {secret}", f"config {name}='{secret}'"),
    )
    return chance.choice(ways[carrier])


def secrets() -> Iterator[tuple[str, str, list[str]]]:
    """Yield the kind of each secret, the text around it, and its random pieces."""
    chance = random.Random(SEED)
    kinds = [*SHAPES, *NAMED, *PHRASES, DISCORD]
    for number in range(SECRETS):
        kind, carrier = kinds[number % len(kinds)], (number // len(kinds)) % 5
        if kind in NAMED:
            name, template = NAMED[kind]
            secret, pieces = draw(template, chance)
            yield kind, named(name, secret, carrier, chance), pieces
            continue
        secret, pieces = discord_token(chance) if kind == DISCORD else draw({**SHAPES, **PHRASES}[kind], chance)
        yield kind, carried(secret, carrier, chance), pieces


def remains(piece: str, text: str) -> bool:
    return any(piece[start : start + 8] in text for start in range(max(1, len(piece) - 7)) if len(piece) >= 8)


def test_drawn_secrets_of_every_kind_are_redacted() -> None:
    missed: Counter[str] = Counter()
    for kind, text, pieces in secrets():
        shown, count = redact(text)
        if not count or any(remains(piece, shown) for piece in pieces):
            missed[kind] += 1
    print(dict(missed))
    assert missed.total() <= SECRETS * (1 - LEAST_FOUND), missed
    assert max(missed.values(), default=0) <= 4, missed


def test_redacting_twice_changes_nothing_more() -> None:
    for _, text, _ in secrets():
        once, _ = redact(text)
        assert redact(once) == (once, 0)


def test_what_stands_around_a_secret_stays() -> None:
    chance = random.Random(SEED)
    for _ in range(200):
        secret, _ = draw("ghp_{a:36}", chance)
        assert redact(f"push with {secret}, then tag.") == ("push with [redacted: github-token], then tag.", 1)
        secret, _ = draw("{a:16}", chance)
        assert redact(f"psql postgres://app:{secret}@db:5432/x?a=b") == (
            "psql postgres://app:[redacted: password]@db:5432/x?a=b",
            1,
        )
        assert redact(f'{{"user": "a", "password": "{secret}"}}') == (
            '{"user": "a", "password": "[redacted: password]"}',
            1,
        )


TRICKY = """
token = parse(x)
token = next(self._tokens)
token = tokens[i + 1]
token = self.lexer.token2
password: str
password: str | None = None
password: SecretStr = Field(default=...)
def reset_password(token):
def login(user, password=None, *, token: str = ""):
connect(user=user, password=password, host=host)
client = Client(api_key=settings.openai_api_key_2, token=auth_token)
api_key = os.environ["OPENAI_API_KEY"]
api_key = os.getenv("OPENAI_API_KEY", "")
const apiKey = process.env.API_KEY ?? "";
password = getpass.getpass("Password for db01: ")
secret = base64.b32encode(os.urandom(20))
secret_key = hashlib.sha256(seed).hexdigest()[:32]
the password is checked by the server
secret: keep it short
The token is valid for 3600 seconds
A token is 40 characters long
The secret is base64-encoded, the key is sha256
Password: at least 12 characters, one digit
password=<your-password>
export GITHUB_TOKEN=<your-token>
export API_KEY=xxxxxxxxxxxxxxxx
password: ********
DB_PASSWORD=${DB_PASSWORD}
DB_PASSWORD=$DB_PASSWORD
password: {{ vault_db_password }}
password: "{{ lookup('env', 'DB_PASSWORD_2') }}"
token: ${{ secrets.GITHUB_TOKEN }}
password = None
"token": null,
password = ""
password = "changeme"
PASSWORD=changeme
api_key: YOUR_API_KEY_HERE
api_key = "your-api-key-1234"
postgresql://user:password@localhost:5432/db
postgresql://$USER:$PASSWORD@$HOST/db
https://user:<token>@github.com/org/repo.git
http://localhost:4873/@scope/package
git@github.com:org/repo.git
ssh://git@github.com:22/org/repo.git
mailto:anna@example.com
Fixed in 3f786850e387550fdab836ed7e6dc881de23001b
commit 3f786850e387550fdab836ed7e6dc881de23001b (HEAD -> main)
id: 123e4567-e89b-12d3-a456-426614174000
session_id: 123e4567-e89b-12d3-a456-426614174000
"sessionId": "123e4567-e89b-12d3-a456-426614174000",
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
--hash=sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg=="
<img src="data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9">
learn_0mfq3k2x9a7b4c is superseded by learn_0mfq3k2x9a7b4d
task=task_0mfq3k2x9a7b4c token=event_0mfq3k2x9a7b4c
max_tokens=4096 temperature=0.7
"max_tokens": 200000, "total_tokens": 123456
tokens: 123456 in, 98765 out
token_count = 1234567890123
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased-v2")
eos_token = "<|endoftext|>"
pad_token="[PAD]"
password_hash = bcrypt.hashpw(password.encode(), salt)
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
secretName: my-app-tls-2024
secretKeyRef: {name: db-credentials-v2, key: password}
token_url = "https://auth.example.org/oauth2/token"
TOKEN_FILE=/var/run/secrets/token2
password_file: /run/secrets/db_password_1
private_key_path = "~/.ssh/id_ed25519"
PWD=/home/anna/code/project1
primary_key=True, foreign_key="user.id"
cache_key = "user:1234:profile:v2"
key = "8f14e45fceea167a5a36dedd4bea2543"
sort_key: created_at_2024
public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB"
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
Authorization: Bearer ${ACCESS_TOKEN}
headers = {"Authorization": f"Bearer {token}"}
Basic authentication is required for this route
Basic Authentication versus Bearer Authentication
bearer token authentication is required
The Authorization header: basic or digest
Set the cookie: theme=dark; lang=en-US; sessions=none
Cookie: consent=accepted2024; theme=dark
git config credential.helper store
credentials: include
credentials = service_account.Credentials.from_service_account_file(path)
docker run -u 1000:1000 image
machine learning login page password reset
pass 1234567 rows to the function
tests pass: 1204, fail: 3
bypass=True compass=north12
author: anna2024software
auth: required
"auth": "oauth2"
risk-averse-disk-layout-with-many-many-parts
task-runner-configuration-for-continuous-integration
sk-circle-fade-dot-container-animation-wrapper
sk-learn is installed as scikit-learn
hf_model_name_with_many_parts = 1
ghp_ is the prefix of GitHub's tokens; sk-ant- is Anthropic's
-----BEGIN PRIVATE KEY----- starts the block
"-----BEGIN RSA PRIVATE KEY-----\\n...\\n-----END RSA PRIVATE KEY-----"
-----BEGIN CERTIFICATE-----
ssh-keygen -t ed25519 -f ~/.ssh/id_ed25519
model: claude-3-5-sonnet-20241022, token_model: gpt-4o-2024-08-06
if token.type == TokenType.STRING2: return token.value
assert token == expected_token_1
reset_token_expires_at = "2026-01-05T10:11:12Z"
password = data["password"]
passwords = load("passwords2024.txt")
"password": "required|min:8|confirmed",
password: { type: String, required: true, minlength: 8 }
<input type="password" name="password" id="password1">
<label for="password">Password</label>
password = forms.CharField(widget=forms.PasswordInput)
--password TEXT  Password of the database user
--token-file PATH  where the token is kept
--api-key KEY    the key
secret/data/myapp/config2
vault kv get -field=password secret/db1
AWS_SECRET_ACCESS_KEY and AWS_ACCESS_KEY_ID must be set
aws_access_key_id = AKIA<your-key-id>
Never log in as root; the secret is in 1Password under "db-prod-2"
CancellationToken token = source.Token;
let token = req.headers["x-access-token"];
String token = jwtTokenProvider.createToken(userName2);
csrf_token: {{ csrf_token() }}
{% csrf_token %}
secrets.token_urlsafe(32)
[redacted: github-token] = kept as it is, [redacted: password] is gone
""".strip().splitlines()


@pytest.mark.parametrize("line", TRICKY)
def test_placeholders_code_and_prose_stay(line: str) -> None:
    assert redact(line) == (line, 0)


def library_lines() -> Iterator[str]:
    root = Path(sysconfig.get_paths()["stdlib"])
    skipped = {"test", "tests", "idle_test", "site-packages", "dist-packages"}
    for path in sorted(root.rglob("*.py")):
        if not skipped & set(path.relative_to(root).parts):
            yield from filter(str.strip, path.read_text(encoding="utf-8", errors="replace").splitlines())


def test_ordinary_lines_raise_few_false_alarms() -> None:
    lines = [*TRICKY, *random.Random(SEED).sample(list(library_lines()), ORDINARY_LINES - len(TRICKY))]
    alarms = [line for line in lines if redact(line)[1]]
    print(alarms)
    assert len(lines) == ORDINARY_LINES
    assert len(alarms) <= ORDINARY_LINES * MOST_FALSE_ALARMS, alarms


def test_a_private_key_goes_as_a_whole_block() -> None:
    chance = random.Random(SEED)
    block, _ = draw("-----BEGIN {k} KEY-----\n{b:64}\n{b:64}\n{b:20}==\n-----END {k} KEY-----", chance)
    assert redact(f"before\n{block}\nafter") == ("before\n[redacted: private-key]\nafter", 1)
    assert redact(json.dumps({"key": block})) == ('{"key": "[redacted: private-key]"}', 1)
    assert redact(f"{block}\n{block}\n") == ("[redacted: private-key]\n[redacted: private-key]\n", 2)


def test_a_private_key_that_is_cut_off_goes_to_its_end() -> None:
    chance = random.Random(SEED)
    block, pieces = draw("-----BEGIN {k} KEY-----\n{b:64}\n{b:64}\n{b:64}\n-----END RSA PRIVATE KEY-----", chance)
    first = block.index("\n") + 20
    for end in range(first, len(block)):
        shown, count = redact(block[:end])
        assert count == 1
        assert not any(remains(piece, shown) for piece in pieces), shown
    assert redact(block[:120] + "\n\nThen the server stopped.")[0].endswith("\n\nThen the server stopped.")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgres://app:{}@db/x", "postgres://app:[redacted: password]@db/x"),
        ("amqps://a:{}@mq:5671/%2f?heartbeat=5", "amqps://a:[redacted: password]@mq:5671/%2f?heartbeat=5"),
        ("redis://:{}@cache:6379/0", "redis://:[redacted: password]@cache:6379/0"),
        ("postgres://a:p@{}@db/x", "postgres://a:[redacted: password]@db/x"),
        (
            "postgres://db/x?password={}&sslmode=require",
            "postgres://db/x?password=[redacted: password]&sslmode=require",
        ),
        (
            "Server=db;User Id=sa;Password={};Encrypt=yes",
            "Server=db;User Id=sa;Password=[redacted: password];Encrypt=yes",
        ),
    ],
)
def test_only_the_password_of_an_address_goes(address: str, shown: str) -> None:
    secret, _ = draw("{a:18}", random.Random(SEED))
    assert redact(address.format(secret)) == (shown, 1)
    assert redact(f'"{address.format(secret)}"') == (f'"{shown}"', 1)


def test_secrets_of_several_commands_go_where_they_stand() -> None:
    assert redact("curl -u anna:x1y2z3 host; machine a login b password p4q5r6") == (
        "curl -u anna:[redacted: password] host; machine a login b password [redacted: password]",
        2,
    )


@pytest.mark.parametrize("piece", ["a", "-", "eyJ", "password=", "password: ", "://a:", "A1b", "token ", "sk-"])
def test_a_megabyte_made_to_be_slow_is_done_with(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    assert redact(text)[1] <= 1


SLOW = (
    "_", " ", "\n", '"', "'", "\\", "0", "=", ":", "@", "eyJa.", "://", "://a:b@", 'password="', "password='x", "token",
    "secret_", "api_key", "key ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n" + 24 * "A" + "\n",
    "ghp_", "Authorization: ", "Authorization: Bearer a1", "Cookie: a=b; ", "cookie", "cookie=sessionid=",
    "machine a login ", "mysql -p", "AKIA", "MTA0", "xoxb-", "LS0tLS1CRUdJTiB", "--password ", "<token>", "Q~", "a.",
    "name: token value: ", "a1-", "%20", "\\n", "&token=", "[redacted: password] ", "password is ", "Bearer ",
)  # fmt: skip


@pytest.mark.parametrize("piece", SLOW)
def test_repeated_pieces_are_done_with_and_settle(piece: str) -> None:
    once, _ = redact(piece * (50_000 // len(piece)))
    assert redact(once) == (once, 0)


PIECES = st.sampled_from(
    [
        *"ab1AZ9=:-_./@\"'`,;&?<>()[]{}$ \n\t\\", "password", "token", "api_key", "= ", ": ", " is ", "://", "user:",
        "ghp_", "sk-ant-", "AKIA", "eyJ", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "Cookie: sid=",
        "Authorization: Bearer ", "a1B2c3D4e5F6g7H8i9J0", "0123456789abcdef0123456789abcdef", "İ", "\ud800", "value: ",
        "[redacted: ", "]", "--", "&x=", "curl -u a:", "machine a login b password ", "AAAABBBBCCCCDDDD",
    ]
)  # fmt: skip


@settings(max_examples=400)
@given(st.lists(PIECES | st.text(max_size=3), max_size=30).map("".join))
def test_any_text_is_redacted_once_and_for_all(text: str) -> None:
    once, count = redact(text)
    assert redact(once) == (once, 0)
    assert count or once == text
