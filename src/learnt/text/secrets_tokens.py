"""Find secrets by their shape alone: tokens with a published prefix, random words after a short name, private keys.

A prefix counts if no letter or digit is before it, except an escape such as `\\n`, `%20` or a terminal colour. What
follows it must look random; its published length and alphabet are not checked, because vendors change them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from learnt.text.secrets_values import WORDS, compile_once, is_drawn, is_random, long_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from learnt.text.secrets_values import Span

# Prefixes that begin nothing but a secret: 12 random characters after one are enough.
_PREFIXES = """
1password-token ops_          adafruit-key aio_              adobe-secret p8e-
age-key AGE-SECRET-KEY-       aiven-token AVNS_              amazon-token amzn.mws.
anthropic-key sk-ant-         anyscale-key esecret_ aph0_    apify-token apify_api_ apify_proxy_
axiom-token xaat- xapt-       bedrock-key bedrock-api-key-   brevo-key xkeysib- xsmtpsib-
browserbase-key bb_live_      buildkite-token bkua_ bkct_ bkaj_ bkps_ bkpt_
cerebras-key csk-             circleci-token CCIPAT_ CCIPRJ_ clerk-key ak_live_ ak_test_
clojars-token CLOJARS_        cloudflare-key cfk_ cfat_ cfut_ cfoat_ v1.0-
cockroach-key CCDB1_          contentful-token CFPAT-        cursor-key crsr_
datadog-key ddp_ ddw_         daytona-key dtn_               deepsource-token dsp_
defined-token dnkey-          dependency-track-key odt_      depot-token depot_project_ depot_org_ depot_user_
digitalocean-token doo_v1_ dop_v1_ dor_v1_                   docker-token dckr_pat_ dckr_oat_
doppler-token dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. duffel-token duffel_live_ duffel_test_
dynatrace-token dt0c01. dt0s01. dt0s16.                      figma-token figd_ figu_ figo_ figoh_ figp_
flutterwave-key FLWSECK- FLWSECK_TEST-                       fly-token fm1_ fm2_ fm1a_ fm1r_ fo1_
frameio-token fio-u-          github-token ghp_ gho_ ghu_ ghs_ ghr_ github_pat_
gitlab-token glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glsoat- glimt- glagent- gloas- glffct- glwt-
google-token ya29. AQ.Ab8     google-secret GOCSPX-          grafana-token glsa_ glc_
groq-key gsk_                 heroku-key HRKU-               honeycomb-key hcaik_ hcalk_ hcamk_
hubspot-token pat-na1- pat-na2- pat-eu1- pat-ap1-            huggingface-token hf_ api_org_
infracost-key ico-            jina-key jina_                 langfuse-key sk-lf- pk-lf-
langsmith-key lsv2_pt_ lsv2_sk_ ls__                         lightspeed-token lip_
linear-key lin_api_ lin_oauth_ lin_wh_                       mailersend-token mlsn.
midtrans-key Mid-server- SB-Mid-server-                      mongodb-secret mdb_sa_sk_
n8n-key n8n_api_              neon-key napi_                 netlify-token nfp_ nfc_ nfo_ nfu_ nfb_
new-relic-key NRAK- NRJS- NRBR- NRII- NRRA- NRSP- NRAA- NRIQ- notion-token ntn_
npm-token npm_                nvidia-key nvapi-              omise-key skey_
onesignal-key os_v2_app_ os_v2_org_                          openai-key sk- sess-
ory-token ory_pat_ ory_at_ ory_rt_ ory_ac_ ory_wak_ ory_apikey_
packagist-token packagist_ort_ packagist_oat_ packagist_uut_ packagist_upt_
paddle-key pdl_live_apikey_ pdl_sdbx_apikey_ pdl_ntfset_     pagerduty-key pdus+ pdeu+
perplexity-key pplx-          pinecone-key pcsk_             pixie-key px-api- px-dep-
plaid-token access-sandbox- access-production- access-development-
planetscale-token pscale_tkn_ pscale_pw_ pscale_oauth_       polar-token polar_oat_ polar_pat_ polar_whs_
posthog-key phx_ phs_ phr_ pha_                              postman-key PMAK- PMAT-
prefect-key pnu_ pnb_         pubnub-key sec-c-              pulumi-token pul-
pypi-token pypi-              ramp-secret ramp_sec_          razorpay-key rzp_live_ rzp_test_
readme-key rdme_              render-key rnd_                replicate-token r8_
rootly-key rootly_            rubygems-key rubygems_         runpod-key rpa_
salad-key salad_cloud_        scalingo-token tk-us- tk-eu-   scrapfly-key scp-live- scp-test-
sendgrid-key SG.              sentry-token sntrys_ sntryu_   settlemint-token sm_aat_ sm_pat_ sm_sat_
shippo-token shippo_live_ shippo_test_                       shopify-token shpat_ shpca_ shppa_ shpss_ shptka_ shpua_
slack-token xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-
snyk-token snyk_uat. snyk_sat. snyk_                         socket-token sktsec_
sonar-token sqp_ squ_ sqa_ sqco_                             sourcegraph-token sgp_ sgs_ slk_ sgd_
square-token sq0atp- sq0csp- sq0idp-                         stackhawk-key hawk.
stripe-key sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ ek_live_ ek_test_
stripe-webhook-secret whsec_  stytch-secret secret-live- secret-test-
supabase-key sbp_ sb_secret_  tailscale-key tskey-           tavily-key tvly-
teamwork-token tkn.v1_ twp_   together-key tgp_v1_           trigger-key tr_dev_ tr_prod_ tr_stg_ tr_pat_
typeform-token tfp_           ubidots-key BBFF- BBUS-        upcloud-token ucat_
vault-token hvs. hvb. hvr.    vercel-token vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_
voiceflow-key VF.DM. VF.WS.   wandb-key wandb_v1_            xai-key xai-
xata-key xau_                 xendit-key xnd_production_ xnd_development_
chromatic-token chpt_         dbt-token dbtu_ dbtc_          e2b-key e2b_
elastic-key essu_ essa_       fleetbase-key flb_live_        inngest-key signkey-prod- signkey-test-
intra42-secret s-s4t2ud- s-s4t2af-                           ionic-token ion_
jsr-token jsrp_ jsrd_ jsrs_   llamacloud-key llx-            luma-key luma-
mem0-key m0-                  netbird-token nbp_             nightfall-key NF-
retool-key retool_            svix-key testsk_               statsig-key secret- console-
fireworks-key fw_             gocardless-token live_         mailgun-key key-
octopus-key API-              resend-key re_                 appsync-key da2-
firecrawl-key fc-             yandex-token y0_
"""
# (kind, first letters, expression after them): tokens whose prefix is glued to the rest.
_GLUED = (
    ("1password-secret-key", "A3-", r"[A-Z0-9]{6}-[A-Z0-9]{6}(?:-[A-Z0-9]{5}){4}"),
    ("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("alibaba-key-id", "LTAI", r"[A-Za-z0-9]{12,24}(?![A-Za-z0-9])"),
    ("atlassian-token", "ATATT3 ATCTT3 ATBB", r"[\w=-]{20,}"),
    ("aws-key-id", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}"),
    ("aws-key", "ABSK", r"[A-Za-z0-9+/]{100,}={0,2}"),
    ("aws-token", "IQoJb3JpZ2lu FwoGZXIvYXdz", r"[A-Za-z0-9+/=%]{80,}"),
    ("artifactory-token", "AKCp cmVmd", r"[A-Za-z0-9]{56,}"),
    ("baidu-key", "ALTAK-", r"[A-Za-z0-9]{16,}/[0-9a-f]{40}"),
    ("clickhouse-key", "4b1d", r"[A-Za-z0-9]{38}(?![A-Za-z0-9])"),
    ("databricks-token", "dapi", r"[0-9a-f]{32}(?:-\d)?"),
    ("dropbox-token", "sl.", r"[\w-]{60,}"),
    ("easypost-key", "EZAK EZTK", r"[A-Za-z0-9]{54}"),
    ("facebook-token", "EAA", r"[A-Za-z0-9]{80,}"),
    ("gitlab-token", "GR1348941", r"[\w-]{20,}"),
    ("google-key", "AIza", r"[\w-]{35,}"),
    ("harness-token", "pat. sat.", r"[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    ("instagram-token", "IGQV IGAA", r"[\w-]{80,}"),
    ("launchdarkly-key", "sdk- api- mob-", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("mandrill-key", "md-", r"(?=[\w-]{0,20}[A-Z])(?=[\w-]{0,20}\d)[\w-]{22}(?![\w-])"),
    ("mapbox-token", "sk.eyJ tk.eyJ", r"[\w-]{20,}\.[\w-]{16,}"),
    ("mercadopago-token", "APP_USR- TEST-", r"\d{10,20}-\d{6}-[0-9a-f]{32}-\d{4,}"),
    ("nuget-key", "oy2", r"[a-z0-9]{43}(?![A-Za-z0-9])"),
    ("crates-token", "cio", r"(?=[A-Za-z]{0,31}\d)[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("scaleway-key", "SCW", r"[A-Z0-9]{17}(?![A-Za-z0-9])"),
    ("square-token", "EAAA", r"[\w-]{56,}(?![+/=])"),
    ("tencent-key-id", "AKID", r"[A-Za-z0-9]{32,36}(?![A-Za-z0-9])"),
    ("yandex-key", "AQVN", r"[\w-]{34,38}(?![\w-])"),
    ("yandex-token", "t1.", r"[A-Z0-9a-z_-]{60,}={0,2}\.[\w-]{80,}={0,2}"),
    ("zoho-token", "1000.", r"[0-9a-f]{32}\.[0-9a-f]{32}"),
    ("jwt", "eyJ", r"[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}|[\w-]{16,}\.(?:[\w-]*\.){2}[\w-]{16,}\.[\w-]{16,}"),
    ("grafana-token", "eyJrIjoi", r"[A-Za-z0-9]{60,}={0,2}"),
    ("cloudflare-token", "eyJhIjoi", r"[A-Za-z0-9]{100,}={0,2}"),
    ("twilio-key", "SK", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("twitter-token", "AAAAAAAAAAAAAAAAAAAA", r"A{0,4}[A-Za-z0-9%]{60,}"),
    ("bitwarden-token", "0.", r"[0-9a-f]{8}-[0-9a-f-]{27}\.[A-Za-z0-9]{24,}:[A-Za-z0-9+/=]{20,}"),
    ("vault-token", "s.", r"(?=[A-Za-z]{0,23}\d)(?=[a-z0-9]{0,23}[A-Z])[A-Za-z0-9]{24}(?![\w.-])"),
    ("adyen-key", "AQE", r"[A-Za-z0-9+/=]{40,}-[\w+/=-]{30,}"),
    # The beginnings of private keys in base64.
    (
        "private-key",
        "LS0tLS1CRUdJTi",
        r"(?:BSU0Eg|BQUklW|BFQyBQ|BPUEVOU1NI|BFTkNSWVBU|BEU0EgU|BQR1AgUFJJ)[A-Za-z0-9+/=]{40,}",
    ),
)
_PATH = r"[\w./@-]*/(?=[A-Za-z_-]*\d)[\w-]{20,}"  # with a random part
# For a sign that all contain: (kind, required letters, expression): tokens with other characters, and addresses.
_SHAPES = {
    "/": (
        ("google-token", "1//0", r"1//0[\w-]{40,}"),
        (
            "webhook",
            "hook",
            rf"ook(?<=[Hh]ook)s?\w{{0,3}}[./]((?={_PATH}|(?:[\w.-]+/)?(?:catch|services)/)[\w./@+-]{{16,}})",
        ),
        ("asana-token", "/1", r"/1(?<=[0-2]/1)\d{14,16}(?:/\d{16})?:[0-9a-f]{32}"),
        ("webhook", "/with/key/", r"/with/key/[\w-]{20,}"),
    ),
    "~": (
        ("openshift-token", "sha256~", r"sha256~[\w-]{43}(?![\w-])"),
        ("azure-secret", "Q~", r"(?<![.~_-])[\w.~-]{3}\dQ~[\w.~-]{31,34}"),
    ),
    ":": (
        ("twitch-token", "oauth:", r"oauth:[a-z0-9]{30}(?![\w-])"),
        ("rancher-token", "token-", r"token-[a-z0-9]{5}:[a-z0-9]{54}"),
        ("telegram-token", ":AA", r"(?<!\d)\d{6,12}:AA[\w-]{32,}"),
    ),
    "$": (
        ("braintree-token", "access_token$", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
        ("password-hash", "$", r"\$(?:apr1|1|2[abxy]|5|6|7|y|argon2id?|scrypt|pbkdf2[\w-]*|bcrypt)\$[\w./=,$+-]{20,}"),
    ),
    "|": (
        ("amazon-token", "Atz", r"Atz[ar]\|[\w+/=|-]{60,}"),
        ("convex-key", "|ey", r"(?:prod|dev|preview):[a-z0-9-]{4,60}\|ey[\w+/=-]{20,}"),
    ),
    "SHA": (("password-hash", "SHA", r"\{S?SHA\d*\}[A-Za-z0-9+/]{20,}={0,2}"),),
}
# Whole runs of letters: Discord (a number in base64 uses few letters), Mailgun, Mailchimp, New Relic, MaxMind,
# Terraform, RapidAPI, Azure.
_WHOLE = (
    r"[MNO][DTjz][AEIMQUYcgk][w-z0-5](?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){4,5}[A-Za-z0-9]{0,3}\.[\w-]{6}\.[\w-]{27,}"
    r"|[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}$|[0-9a-f]{32}-us\d{1,2}$|[0-9a-fA-F]{36}NRAL$|[0-9A-Za-z]{40,44}-NRMA$"
    r"|[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk|[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{50,}"
    r"|[0-9a-f]{10}msh[0-9a-f]{15}p1[0-9a-f]{5}jsn[0-9a-f]{12}|[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}"
    r"|[A-Za-z0-9]{70,80}AZDO[A-Za-z0-9]{4}|[A-Za-z0-9]{42}AzSe[A-Za-z0-9]{6}"
)
# Prefixes that also begin ordinary names need a long random run after them.
_COMMON = frozenset(
    "sk- key- sess- snyk_ fw_ re_ secret- console- retool_ m0- "
    "API- live_ ls__ fc- da2- hawk. access- v1.0- pul- phs_ xai- ico- ops_ SG. csk-".split()
)
# Words before a random value that mark it as a secret. The weak ones also occur before ids.
_MARKS = frozenset("sk rk pat key apikey token secret sec oat uat sat pw skey privkey".split())
_WEAK_MARKS = frozenset("live test prod api access refresh auth admin svc app bot sbx sandbox priv usr user".split())
_ALL_MARKS = _MARKS | _WEAK_MARKS | {"atlasv1"}
_NO_VENDOR = r"(?:sha|md|crc|blake)\d*|data|img|image|font|chunk|bundle|hash|integrity|h1|v\d+|cp\d+|commit|rev|go"
_TAIL = r"[\w-]+(?:(?:\.\w{2})?\.[\w-]{6,})*={0,2}"
_TAIL_BASE64 = r"[\w+/=-]+(?:\.[\w+/=-]{6,})*"
_BASE64 = ("ops_", "fm", "glc_", "sntrys_", "whsec_", "sec-c-", "pdus+", "pdeu+", "bedrock")
_COLOUR = r"\[\d[\d;]{0,8}m"  # what follows the escape character of a terminal
_ESCAPE = rf"(?:{_COLOUR}|\\[nrt]|%[0-9A-F]{{2}})$"
_LEAST = 12
_MOST_PARTS, _JUDGED = 20, 300
_LEAST_RANDOM = 16
_RUN = r"[A-Za-z0-9](?<![A-Za-z0-9_.+-].)[A-Za-z0-9_.+-]{9,}+"
_NEAR = 2_000
_table: dict[str, list[tuple[str, str]]] = {}
_glued: dict[str, list[tuple[str, str]]] = {}
_starts: set[str] = set()


def published() -> dict[str, list[tuple[str, str]]]:
    """Return the published prefixes and their kinds by the first word of the prefix."""
    if not _table:
        kind = ""
        for word in _PREFIXES.split():
            if word[-1] not in "_-.+" and "Ab8" not in word:
                kind = word
                continue
            _starts.add(word[:3])
            _table.setdefault(compile_once("[-_.+]").split(word)[0], []).append((word, kind))
        for kind, beginnings, tail in _GLUED:
            for beginning in beginnings.split():
                # The whole word is removed, so that no new match begins at its end.
                expression = re.escape(beginning) + f"(?:{tail})[A-Za-z0-9]*"
                _starts.add(beginning[:3])
                _glued.setdefault(compile_once("[-_.]").split(beginning)[0][:2], []).append((kind, expression))
        for rows in _table.values():
            rows.sort(key=lambda row: -len(row[0]))
    return _table


def find_tokens(text: str) -> Iterator[Span]:
    """Find tokens with a published format, and random words after a short name."""
    long = long_words(text)
    for sign, shapes in _SHAPES.items() if long else ():
        for kind, letters, expression in shapes if sign in long else ():
            if letters in long:
                yield from _find_shape(text, kind, expression)
    yield from _find_runs(text, long)


def _find_shape(text: str, kind: str, expression: str) -> Iterator[Span]:
    for match in compile_once(expression).finditer(text):
        start = match.start(match.lastindex or 0)
        before = text[max(0, start - 9) : start]
        if before[-1:].isalnum() and text[start].isalnum() and not compile_once(_ESCAPE).search(before):
            continue
        if not _is_example(match[0]):
            rest = compile_once("[A-Za-z0-9]*").match(text, match.end())
            yield start, rest.end() if rest else match.end(), kind


def _is_example(token: str) -> bool:
    return bool(compile_once(r"(?i:your[-_]|example)|x{5}|X{5}|\*{5}|([^A])\1{7}").search(token))


def _find_runs(text: str, long: str) -> Iterator[Span]:
    """Find tokens in the runs of letters, digits and separators."""
    table = published()
    done = at = 0
    first = compile_once("[-_.+]").split
    if "[" in long:
        long = compile_once(_COLOUR).sub(" ", long)
    for run in compile_once(_RUN).findall(long):
        known = run[:2] in _starts or (run[:3] in _starts and (run[:2] in _glued or first(run, 1)[0] in table))
        if not known and not _may_be_random(run):
            continue
        near = text.find(run, at, at + _NEAR)  # a search in a long text has a cost of its own
        at = near if near >= 0 else text.find(run, at)
        found = _find_in_run(text, at, at + len(run), table) if at >= done else None
        if found:
            done = found[1]
            yield found
        at += len(run)


def _may_be_random(run: str) -> bool:
    """Return quickly whether a run without a published prefix may be a token, and no name, word, hash or id."""
    if len(run) < _LEAST_RANDOM or (run.isalnum() and run.islower() and "msh" not in run):
        return False
    if compile_once(r"[A-Za-z0-9](?<![A-Za-z0-9].)[A-Za-z0-9]{29}").search(run):
        return True
    if not compile_once(r"[A-Za-z0-9](?<![A-Za-z0-9].)[A-Za-z0-9]{15}").search(run):
        return False
    parts = compile_once("[-_.+]").split(run.lower())
    return not _ALL_MARKS.isdisjoint(parts) or len(run) >= 38 or (run[0] in "MNO" and len(parts) > 2)


def _find_in_run(text: str, start: int, end: int, table: dict[str, list[tuple[str, str]]]) -> Span | None:
    run = text[start:end].rstrip("._+-")
    parts = compile_once("[-_.+]").split(run)
    found = _find_prefix(text, start, parts, table)
    if not found and max(map(len, parts)) >= _LEAST_RANDOM:
        return _find_named(text, start, start + len(run), parts)
    return found


def _find_prefix(text: str, start: int, parts: list[str], table: dict[str, list[tuple[str, str]]]) -> Span | None:
    """Return the token with a published prefix in a run of letters."""
    for part in parts[:_MOST_PARTS]:
        if part in table:
            for prefix, kind in table[part]:
                if text.startswith(prefix, start):
                    end = _end_of_token(text, start, prefix)
                    if end:
                        return start, end, kind
        if part[:2] in _glued:
            for kind, expression in _glued[part[:2]]:
                match = compile_once(expression).match(text, start)
                if match and not _is_example(match[0]):
                    return start, match.end(), kind
        start += len(part) + 1
    return None


def _end_of_token(text: str, start: int, prefix: str) -> int:
    """Return where the token with this prefix ends; 0 if it is none."""
    letters = _TAIL_BASE64 if prefix.startswith(_BASE64) else _TAIL
    begin = start + len(prefix)
    # A tail is judged by its beginning, but removed as a whole.
    match = compile_once(letters).match(text, begin, begin + _JUDGED)
    if not match or not _is_tail(prefix, match[0]):
        return 0
    whole = compile_once(letters).match(text, begin)
    return whole.end() if whole else match.end()


def _is_tail(prefix: str, tail: str) -> bool:
    if prefix in _COMMON:
        return is_random(tail, least=20, known=True)
    return len(tail) >= _LEAST and is_drawn(tail)


def _find_named(text: str, start: int, end: int, parts: list[str]) -> Span | None:
    """Return the random rest of a run after a word such as `sk` or `key`, or after any short name if it is long."""
    if compile_once(_WHOLE).match(text, start, end):
        return start, end, "token"
    if (
        len(parts) == 1
        or "+" in text[start:end]
        or text[start - 1 : start] in ("+", "/")
        or text[end : end + 1] in ("+", "/")
    ):
        return None  # a part of base64 or of a path
    name = ""
    for word, value in pairwise(parts[: _MOST_PARTS + 1]):
        name = word if compile_once(r"[a-z][a-z0-9]{1,13}$|[A-Z][A-Z0-9]{1,7}$").match(word) else name
        if len(value) < _LEAST_RANDOM or not name or not (word == name or word.isdigit()):
            continue
        mark = name.lower()
        known, weak = mark in _MARKS, mark in _WEAK_MARKS
        if not (known or weak) and (compile_once(_NO_VENDOR).fullmatch(mark) or text[end : end + 1] == "="):
            continue
        if is_random(value, least=16 if known or weak else 30, known=known):
            return start, end, "token"
    # A tail in URL-safe base64 has its own separators.
    name, tail = parts[0], "".join(parts[1:4])
    if (
        len(parts) <= 4
        and len(tail) >= 36
        and not tail.islower()
        and "." not in text[start:end].rstrip(".")
        and compile_once(r"[a-z][a-z0-9]{1,9}$").match(name)
    ):
        if compile_once(_NO_VENDOR).fullmatch(name) or not is_random(tail, least=36, known=False):
            return None
        if not compile_once(WORDS).fullmatch(text[start + len(name) + 1 : end]):
            return start, end, "token"
    return None


def find_private_keys(text: str) -> Iterator[Span]:
    """Find private key blocks and files; a block that is cut off ends with its last line of base64."""
    yield from _find_key_files(text)
    label = r"[A-Za-z0-9 -]{0,40}(?:PRIVATE KEY(?: BLOCK)?|OpenVPN [\w -]{0,20}key(?: V\d)?)[ -]-{3,4}"
    begins = list(compile_once(rf"-{{4,5}} ?BEGIN {label}").finditer(text))
    for number, begin in enumerate(begins):
        limit = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        end = compile_once(rf"-{{4,5}} ?END {label}").search(text, begin.end(), limit)
        if end is None:
            lines = rf"(?:{_GAP}(?:[A-Za-z][A-Za-z-]{{3,20}}: [^\n\\]{{1,100}}|[A-Za-z0-9/][A-Za-z0-9+/=]{{15,}}))+"
            body = compile_once(
                rf"{lines}(?:{_GAP}[A-Za-z0-9+/=]{{1,64}}(?=[\"'\s]*$|[\\\"'\s]+-))?(?:[\s\\nr]{{0,9}}-+)?"
            )
            if cut_off := body.match(text, begin.end(), limit):
                yield begin.start(), cut_off.end(), "private-key"
        elif compile_once(r"[A-Za-z0-9+/]{16}").search(text, begin.end(), end.start()):
            yield begin.start(), end.end(), "private-key"


# What is between two lines of a key: also quotes, joints, the marks of a quotation, and line numbers.
_GAP = r"(?:(?:\\{1,8}[nrt]|[\s\"'+>#|,]){1,60}+(?:\d{1,5}(?:\t|\\+t|[:|] ?)[ \t]{0,8})?)"


def _find_key_files(text: str) -> Iterator[Span]:
    """Find the secret lines of PuTTY's key files, and the secret numbers of a JSON web key."""
    if "Private-" in text:
        expression = rf"Private-Lines: ?\d{{1,4}}((?:{_GAP}[A-Za-z0-9+/=]{{8,80}}(?![A-Za-z0-9+/:-]))+)"
        for match in compile_once(expression).finditer(text):
            gap = compile_once(_GAP).match(match[1])
            yield match.start(1) + (gap.end() if gap else 0), match.end(), "private-key"
        for match in compile_once(r"Private-(?:MAC|Hash): ?([0-9a-f]{32,64})").finditer(text):
            yield *match.span(1), "private-key"
    if '"kty' in text:
        for match in compile_once(r"\"(?:d|p|q|dp|dq|qi|k)\\{0,3}\"\s?:\s?\\{0,3}\"([\w-]{20,})").finditer(text):
            yield *match.span(1), "private-key"
