"""The redactor finds secrets as vendors, programs and people write them, and leaves code and logs alone."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from learnt.text.redact import PROGRAMS, redact
from learnt.text.secrets_places import OPTIONS
from tests.support.ordinary import MOST_FALSE_ALARMS, code_files, code_lines, log_line
from tests.support.secret_cases import LEAST_FOUND, LEAST_FOUND_IN_FAMILY, Case, cases, is_missed

SEED = 20_261
CODE_FILES, CODE_LINES, LOG_LINES = 100, 20_000, 5_000


@pytest.fixture(scope="module")
def drawn() -> list[Case]:
    return list(cases(SEED))


def test_secrets_of_every_family_are_redacted(drawn: list[Case]) -> None:
    families = Counter(case.family for case in drawn)
    missed = [case for case in drawn if is_missed(case)]
    left = Counter(case.family for case in missed)
    found = {family: round(1 - left[family] / families[family], 3) for family in families}
    print(f"seed {SEED}: {len(drawn):,} cases, {len(missed)} missed", found)
    assert len({case.text for case in drawn}) >= 2_000
    assert len(missed) <= len(drawn) * (1 - LEAST_FOUND), [case.text for case in missed]
    assert min(found.values()) >= LEAST_FOUND_IN_FAMILY, found


def test_what_is_redacted_once_stays_so(drawn: list[Case]) -> None:
    for case in drawn:
        once, _ = redact(case.text)
        assert redact(once) == (once, 0)


def test_the_quick_look_passes_over_no_case_that_is_found(drawn: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    missed = [case for case in drawn if is_missed(case)]
    monkeypatch.setattr("learnt.text.redact.may_hold_secrets", lambda _: True)
    assert [case.text for case in missed if not is_missed(case)] == []


def test_the_quick_look_knows_each_program_with_a_password() -> None:
    names = {name.partition("+")[0] for names, option, _ in OPTIONS for name in names.split() if option[0] not in "pPw"}
    assert [name for name in sorted(names) if not any(letters in name for letters in PROGRAMS)] == []


def test_a_sample_of_code_and_logs_raises_no_false_alarm_too_many() -> None:
    chance = random.Random(SEED)
    code = list(code_lines(chance.sample(code_files(), CODE_FILES)))
    lines = chance.sample(code, min(len(code), CODE_LINES)) + [log_line(chance) for _ in range(LOG_LINES)]
    alarms = [line for line in lines if redact(line)[1]]
    print(f"seed {SEED}: {len(lines):,} lines, {len(alarms)} false alarms", alarms)
    assert len(alarms) <= max(1, len(lines) * MOST_FALSE_ALARMS), alarms


ORDINARY = """
the password is checked by the server, see line 12
Passwort lautet wie folgt: siehe Tresor
le mot de passe est obligatoire
la contraseña es obligatoria
Set the password to a value of 12 characters
mysql -p shop
docker run -p 8080:80 nginx
mkdir -p out/a1b2c3 && ssh -p 2222 anna@web1
curl -u "$USER:$PASSWORD" https://api.internal
sshpass -p "$PW" ssh web1
redis-cli -a $REDIS_PASSWORD ping
ldapsearch -x -W -D cn=admin
echo "$TOKEN" | docker login -u anna --password-stdin
| user | password |
| password | <your password> |
kind: Secret
"sha512-" + base64(digest)
toolu_01A09q90qw90lq917835lq9 and msg_01XFDUDYJgAACzvnptvVoYEL are ids
cargo login
net user anna /delete
print("The key" + "board is broken")
"NextToken": "eyJOZXh0VG9rZW4iOiBudWxsLCAiYm90b190cnVuY2F0ZV9hbW91bnQiOiAyfQ==",
"nextPageToken": "AAAAKgAAAAEAAAAAA1Gp1BelJq+PmHvAnDxJYbup8",
aws acm list-certificates --max-items 2 --next-token 9f4d9f69-275a-41fe-b58e-2b837bd9ba48
--lock-token 7b3bcec2-1f0a-4c1d-9e2f-563bf47249f0 --change-token 12cs345-67cd-890b-1cd2-c3a4567d89f1
"ClientToken": "4752b573-40a6-4eac-a8a4-a72058761219", "RequestToken": "20999d87-e304-4725-ad84-832dcbfd7fc5"
<input name="csrf_token" value="x7Kp2mQ9vB4nR8sT1wY6"> csrfmiddlewaretoken=x7Kp2mQ9vB4nR8sT1wY6
"output_token": "StreamDescription.Shards[-1].ShardId2",
--ipam-pool-allocation-id ipam-pool-alloc-0e66a1f730da54791b99465b79e7d1e89
--subnets "subnet-0e2907431c9988b72" "subnet-04ad87f71c6e5ab4d"
password: FilterOrBool = False,
token = r"[-!#$%&'*+.^_`|~0-9a-zA-Z]+"
Extra command line arguments to pass to the fortran77 compiler.
self.serv.add_feature("AUTH CRAM-MD5")
echo 'hello world' | base64 > EncodedMessage
splitpasswd('user+1:a+b')
The ID of the subnet used for the endpoint1.
host = 'bf1d:cb48:4513:d1f1:efdd:b290:9ff9:64be'
'secret': 'V1SecretProjection', 'service_account_token': 'V1ServiceAccountTokenProjection'
# credentials to be usable, these are used by oauth2client.
cluster.masterAuth = self.messages.MasterAuth2(
syn keyword winbatchImplicit n3captureprt n3chgpassword n3detach n3dirattrget
headers["authorization"] = "GoogleLogin Auth=" + self.Auth
#define GL_STENCIL_PASS_DEPTH_PASS		0x0B96
SEC_PKCS12AddKeyForCert(SEC_PKCS12ExportContext *p12ctxt,
_SECRET_NAMESPACE = 'oauth2client:secrets#ns'
--credential-source-file=$PATH_TO_OIDC_ID_TOKEN --workforce-pool-user-project=projects1
password = base64.b16encode(random_bytes[8:])
uses: acme/node16@v3 and python:3.11-slim@sha256:0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9
cargo test -p crate-2 && tox -p auto && ssh -p 2222 web1 && git log -p 1a2b3c4
""".strip().splitlines()


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_lines_with_the_same_words_stay(line: str) -> None:
    assert redact(line) == (line, 0)


SLOW = (
    "ghp_a\n", " -p", "mysql -p", "password for a ", "password\n", "| password | a |\n", "user,password\n", "\\u002d",
    "%2D", "\"a1b2c3\" + ", "'x1y2z3'\n", "a1\\\n", "kind: Secret\ndata:\n", "Private-Lines: 3\n",
    "echo a1b2 | sudo -S ", "<<< a ", "htpasswd -b a ", "aGVsbG8gd29ybGQgaGVsbG8g", "key_", "x as the password ",
    "credentials: a / ", "a:5432:b:c:", "eyJa\n",
)  # fmt: skip


@pytest.mark.parametrize("piece", SLOW)
def test_a_text_made_to_be_slow_is_done_with_and_settles(piece: str) -> None:
    once, _ = redact(piece * (50_000 // len(piece)))
    assert redact(once) == (once, 0)
