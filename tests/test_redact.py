"""Secrets leave a text before it is stored, and ordinary text stays as it is.

The secrets are drawn by chance (`tests/support/secrets.py`).
"""

from __future__ import annotations

import json
import random
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learnt.text.redact import may_hold_secrets, redact
from learnt.text.secrets import FINDERS
from tests.support.secrets import LEAST_FOUND, SECRETS, SEED, draw, is_missed, remains, secrets

ORDINARY_LINES = 5_000
MOST_FALSE_ALARMS = 0.005


def test_drawn_secrets_of_every_kind_are_redacted() -> None:
    missed = Counter(secret.kind for secret in secrets() if is_missed(secret))
    print(dict(missed))
    assert missed.total() <= SECRETS * (1 - LEAST_FOUND), missed
    assert max(missed.values(), default=0) <= 4, missed


def test_redacting_twice_changes_nothing_more() -> None:
    for secret in secrets():
        once, _ = redact(secret.text)
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
    note = json.dumps({"log": json.dumps({"note": block[:150]})})
    assert not any(remains(piece, redact(note)[0]) for piece in pieces), "a key within JSON within JSON"
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


@pytest.mark.parametrize("behind", ["", " Then", "</learning>", '"', "')", "`", ")", "]", "}", ",", ";", "|", "\\n"])
def test_a_full_stop_behind_a_value_is_no_part_of_it(behind: str) -> None:
    secret, pieces = draw("{a:32}", random.Random(SEED))
    shown, count = redact(f"it is X-Api-Key: {secret}.{behind}")
    assert count == 1
    assert not any(remains(piece, shown) for piece in pieces)
    assert redact(f"token: parser.next{behind}")[1] == 0


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


@settings(max_examples=400)
@given(st.lists(PIECES | st.text(max_size=3), max_size=12).map("".join))
def test_no_text_with_a_secret_is_passed_over_by_the_quick_look(text: str) -> None:
    for case in (text, text.upper(), text.title()):
        assert may_hold_secrets(case) or not any(list(find(case)) for _, find in FINDERS)


def test_the_quick_look_passes_over_no_drawn_secret() -> None:
    assert all(may_hold_secrets(secret.text) for secret in secrets() if not is_missed(secret))
