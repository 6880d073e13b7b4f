"""Secrets as vendors, programs and people write them, drawn by chance: none is anybody's.

Nine families, each in seven carriers. The forms are written down from what vendors publish and from the manuals of the
programs, not from the rules that find them.
"""

from __future__ import annotations

import json
import random
import textwrap
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import NamedTuple

from learnt.text.redact import redact
from tests.support.secrets import draw, remains

LEAST_FOUND = 0.95
LEAST_FOUND_IN_FAMILY = 0.85

# Vendor: the published form of its tokens, in the notation of `draw`.
VENDORS = {
    "adafruit": "aio_{a:28}", "adobe": "p8e-{u:32}", "airtable": "pat{a:14}.{h:64}", "aiven": "AVNS_{u:19}",
    "alibaba": "LTAI5t{a:18}", "anthropic": "sk-ant-api03-{u:93}AA", "apify": "apify_api_{a:36}",
    "appsync": "da2-{l:26}", "artifactory": "AKCp{a:69}", "asana": "1/12{d:14}:{h:32}",
    "atlassian": "ATATT3{u:60}={h:8}", "aws": "AKIA{32:16}", "axiom": "xaat-{h:8}-{h:4}-{h:4}-{h:4}-{h:12}",
    "azure devops": "{a:76}AZDO{a:4}", "bedrock": "ABSK{b:120}=", "bitbucket": "ATBB{a:32}",
    "braintree": "access_token$production${l:16}${h:32}", "brevo": "xkeysib-{h:64}-{a:16}", "buildkite": "bkua_{h:40}",
    "cerebras": "csk-{l:48}", "circleci": "CCIPAT_{a:22}_{h:40}", "circleci project": "CCIPRJ_{a:22}_{h:40}",
    "clickhouse": "4b1d{a:38}", "clickup": "pk_{d:8}_{U:32}", "clojars": "CLOJARS_{h:60}",
    "cloudflare origin": "v1.0-{h:24}-{h:146}", "contentful": "CFPAT-{u:43}", "crates": "cio{a:32}",
    "databricks": "dapi{h:32}", "dependency track": "odt_{a:32}", "digitalocean": "dop_v1_{h:64}",
    "docker": "dckr_pat_{u:27}", "doppler": "dp.st.prd.{a:43}", "dropbox": "sl.{u:140}",
    "duffel": "duffel_live_{u:43}", "dynatrace": "dt0c01.{32:24}.{32:64}", "easypost": "EZAK{a:54}",
    "elevenlabs": "sk_{h:48}", "facebook": "EAACEdEose0cBA{a:120}", "figma": "figd_{u:40}", "firecrawl": "fc-{h:32}",
    "fireworks": "fw_{a:24}", "flutterwave": "FLWSECK-{h:32}-X", "fly": "fo1_{u:43}", "frame.io": "fio-u-{u:64}",
    "github": "ghp_{a:36}", "github app": "ghs_{a:36}", "gitlab": "glpat-{u:20}", "gitlab runner": "glrt-{u:20}",
    "google": "AIza{u:35}", "google client": "GOCSPX-{u:28}", "grafana": "glsa_{a:32}_{h:8}", "groq": "gsk_{a:52}",
    "harness": "pat.{u:22}.{h:24}.{a:20}", "heroku": "HRKU-AA{u:58}", "honeycomb": "hcaik_{l:58}",
    "hubspot": "pat-na1-{h:8}-{h:4}-{h:4}-{h:4}-{h:12}", "hugging face": "hf_{A:34}", "infracost": "ico-{a:32}",
    "ionic": "ion_{a:42}", "jina": "jina_{a:60}", "langfuse": "sk-lf-{h:8}-{h:4}-{h:4}-{h:4}-{h:12}",
    "langsmith": "lsv2_pt_{h:32}_{h:10}", "launchdarkly": "sdk-{h:8}-{h:4}-{h:4}-{h:4}-{h:12}",
    "linear": "lin_api_{a:40}", "llamacloud": "llx-{a:48}", "mailchimp": "{h:32}-us14", "mailersend": "mlsn.{h:64}",
    "mailgun": "key-{h:32}", "mandrill": "md-{a:22}", "mapbox": "sk.eyJ1Ijoi{a:60}.{u:22}",
    "maxmind": "{a:6}_{a:29}_mmk", "mercado pago": "APP_USR-{d:16}-{d:6}-{h:32}-{d:9}", "mollie": "live_{a:30}",
    "mongodb": "mdb_sa_sk_{a:40}", "neon": "napi_{l:64}", "netlify": "nfp_{a:36}", "new relic": "NRAK-{U:27}",
    "notion": "ntn_{d:11}{a:35}", "npm": "npm_{a:36}", "nuget": "oy2{l:43}", "nvidia": "nvapi-{u:64}",
    "octopus": "API-{U:26}", "onesignal": "os_v2_app_{l:58}", "openai": "sk-proj-{u:74}T3BlbkFJ{u:74}",
    "openrouter": "sk-or-v1-{h:64}", "openshift": "sha256~{u:43}", "ory": "ory_pat_{a:32}",
    "paddle": "pdl_live_apikey_01{l:24}_{a:22}_{a:3}", "pagerduty": "pdus+_0X{u:40}", "perplexity": "pplx-{a:48}",
    "pinecone": "pcsk_{a:6}_{a:63}", "plaid": "access-production-{h:8}-{h:4}-{h:4}-{h:4}-{h:12}",
    "planetscale": "pscale_tkn_{u:43}", "polar": "polar_oat_{a:43}", "posthog": "phx_{a:43}",
    "postman": "PMAK-{h:24}-{h:34}", "prefect": "pnu_{a:36}", "pubnub": "sec-c-{b:48}", "pulumi": "pul-{h:40}",
    "pypi": "pypi-AgEIcHlwaS5vcmc{u:100}", "rapidapi": "{h:10}msh{h:15}p1{h:5}jsn{h:12}",
    "razorpay": "rzp_live_{a:14}{d:2}", "readme": "rdme_{l:70}", "render": "rnd_{a:28}", "replicate": "r8_{a:37}",
    "resend": "re_{a:8}_{a:24}", "rubygems": "rubygems_{h:48}", "runpod": "rpa_{U:40}", "scaleway": "SCW{U:17}",
    "segment": "sgp_{a:64}", "sendgrid": "SG.{u:22}.{u:43}", "sentry": "sntryu_{h:64}", "shippo": "shippo_live_{h:40}",
    "shopify": "shpat_{h:32}", "slack": "xoxb-{d:12}-{d:13}-{a:24}", "sonar": "squ_{h:40}",
    "sourcegraph": "sgp_{h:16}_{h:40}", "square": "sq0atp-{u:22}", "stripe": "sk_live_{a:24}",
    "stripe restricted": "rk_live_{a:99}", "supabase": "sbp_{h:40}", "tailscale": "tskey-auth-k{a:16}-{a:32}",
    "tavily": "tvly-dev-{a:32}", "telegram": "{d:10}:AA{u:33}", "tencent": "AKID{a:32}",
    "terraform": "{a:14}.atlasv1.{u:67}", "together": "tgp_v1_{u:43}", "trigger.dev": "tr_prod_{a:24}",
    "typeform": "tfp_{a:44}", "vault": "hvs.{u:90}", "vercel": "vcp_{a:56}", "voiceflow": "VF.DM.{h:24}.{a:16}",
    "voyage": "pa-{u:43}", "xai": "xai-{a:80}", "xendit": "xnd_production_{a:48}", "yandex": "y0_{u:58}",
    "zoho": "1000.{h:32}.{h:32}", "unlisted": "zmtk_{a:40}", "unlisted key": "acme_sk_{a:32}",
    "unlisted live": "orbit_live_{a:32}",
}  # fmt: skip
# A command line that carries a password, as its manual has it.
COMMANDS = (
    "mysql -u root -p{} shop", "mysql -h db1 -uapp -p'{}' -e 'select 1'",
    "mysqldump -u backup -p{} --all-databases > all.sql", "mysqladmin -u root --password={} status",
    "mariadb -u app -p{} shop", "MYSQL_PWD={} mysql -u root shop", "sshpass -p {} ssh deploy@web1",
    "sshpass -p'{}' scp a.tgz deploy@web1:/srv", "SSHPASS={} sshpass -e ssh web1",
    "ldapsearch -x -D cn=admin,dc=corp -w {} -b dc=corp", "ldapadd -x -D cn=admin -w '{}' -f new.ldif",
    "curl -u anna:{} https://api.internal/v1", "curl --user 'anna:{}' https://api.internal/v1",
    "curl -s -x proxy:3128 -U anna:{} https://api.internal",
    "wget --user=anna --password={} https://files.internal/a.tgz", "docker login -u anna -p {} registry.internal",
    "docker login registry.internal --username anna --password {}", "podman login -u anna -p '{}' quay.internal",
    "helm registry login reg.internal -u anna -p {}", "echo {} | docker login -u anna --password-stdin",
    "redis-cli -h cache -a {} ping", "redis-cli -a '{}' -n 2 keys '*'",
    "mongo -u root -p {} --authenticationDatabase admin", "mongosh --host db -u app -p '{}' shop",
    "mongodump --uri mongodb://app:{}@db1/shop", "psql postgresql://app:{}@db.internal:5432/shop",
    "PGPASSWORD={} psql -h db -U app shop", "pg_dump 'host=db user=app password={} dbname=shop'",
    "smbclient //nas/backup -U anna%{}", "smbclient -U 'CORP/anna%{}' -L nas",
    "mount -t cifs //nas/b /mnt -o user=anna,password={}", "htpasswd -b /etc/nginx/.htpasswd anna {}",
    "htpasswd -bc .htpasswd anna '{}'", "htpasswd -nb anna {}", "echo 'anna:{}' | chpasswd",
    "echo anna:{} | sudo chpasswd", "echo {} | sudo -S systemctl restart web", "echo '{}' | passwd --stdin anna",
    "wpa_passphrase HomeNet {}", "wpa_passphrase 'Home Net' '{}'", "nmcli dev wifi connect HomeNet password {}",
    "sqlcmd -S db1 -U sa -P {} -Q 'select 1'", "bcp shop.dbo.t out t.csv -S db -U sa -P {}", "sqlplus app/{}@orcl",
    "lftp -u anna,{} sftp://files.internal", "zip -P {} -r a.zip docs", "unzip -P {} a.zip", "7z x -p{} a.7z",
    "openssl enc -aes-256-cbc -d -in a.enc -pass pass:{}", "openssl rsa -in a.key -passin pass:{}",
    "gpg --batch --passphrase {} -d a.gpg", "keytool -list -keystore a.jks -storepass {}",
    "ipmitool -H bmc -U root -P {} power status", "plink -ssh web1 -l anna -pw {}", "xfreerdp /v:win1 /u:anna /p:{}",
    "net user anna {} /add", "cmdkey /add:srv /user:anna /pass:{}", "snmpwalk -v3 -u mon -A {} -l authNoPriv sw1",
    "rabbitmqctl add_user app {}", "mosquitto_pub -u dev -P {} -t a -m 1", "cqlsh -u app -p {} db1",
    "cypher-shell -u neo4j -p {}", "twine upload -u anna -p {} dist/*", "http -a anna:{} GET api.internal/v1",
    "mc alias set lab https://minio.internal anna {}", "kubectl create secret generic db --from-literal=password={}",
    "az login --service-principal -u app1 -p {} --tenant t1", "git clone https://anna:{}@git.internal/team/app.git",
    "ansible-playbook site.yml -e ansible_password={}", "vncviewer host -passwd-text --password={}",
    "rclone obscure {}", "influx -username admin -password {}",
    "svn co --username anna --password {} https://svn.internal/app", "psql -c \"ALTER USER app WITH PASSWORD '{}'\"",
    "mysql -e \"CREATE USER a@b IDENTIFIED BY '{}'\"", 'subprocess.run(["mysql", "-u", "root", "-p{}", "shop"])',
    'CMD ["redis-server", "--requirepass", "{}"]', "ConvertTo-SecureString '{}' -AsPlainText -Force",
    "etcdctl --user root:{} get k",
)  # fmt: skip
# What a file with a form of its own holds.
FILES = (
    "db.internal:5432:shop:app:{}", "*:*:*:postgres:{}", "localhost:5432:*:anna:{}",
    "machine api.internal login anna password {}", "machine api.internal\n  login anna\n  password {}",
    "jdbc:mysql://db:3306/shop?user=app&password={}&useSSL=true", "jdbc:postgresql://db/shop?user=app&password={}",
    "jdbc:sqlserver://db:1433;databaseName=shop;user=sa;password={};encrypt=true",
    "jdbc:oracle:thin:app/{}@//db:1521/orcl", "network={{\n  ssid=\"HomeNet\"\n  psk=\"{}\"\n}}", "wpa_passphrase={}",
    "[client]\nuser=root\npassword={}", "spring.datasource.password={}", "<add key=\"Password\" value=\"{}\" />",
    "<password>{}</password>", "Server=db;Database=shop;User Id=sa;Password={};",
    "app:{}@tcp(db:3306)/shop?parseTime=true", "amqp://app:{}@mq:5672/%2f", "redis://default:{}@cache:6379",
    "ftp://anna:{}@files.internal/a", "requirepass {}", "masterauth {}", "rcon.password={}", "smtp_password: '{}'",
    "ansible_become_pass: {}", "DB_PASS={}", "POSTGRES_PASSWORD={}", "MAIL_PASSWORD=\"{}\"",
    "\"adminPassword\": \"{}\"", "db_password = \"{}\"",
    "sasl.jaas.config=org.apache.kafka.ScramLoginModule required username=\"app\" password=\"{}\";",
    "identity anna\n: PSK \"{}\"", "rpcuser=a\nrpcpassword={}", "http.proxy=http://anna:{}@proxy:3128",
    "export HTTPS_PROXY=http://anna:{}@proxy:3128", "user = \"anna:{}\"\nurl = \"https://api.internal\"\n# curl -K",
)  # fmt: skip
# What people write to each other.
PROSE = (
    "The password for the staging database is {}.", "the root password is {} now", "Password for anna: {}",
    "The new password is `{}`, please change it.", "I set the admin password to {} yesterday.",
    "password has been changed to {}", "The wifi password is \"{}\".", "you can log in as anna with password {} today",
    "use {} as the password for the vault", "passphrase of the key is {}", "credentials: anna / {}",
    "user anna, pw {}", "login: anna password: {}", "pw: {}", "pass = {}", "Das Passwort lautet {}.",
    "Das Passwort für den Server ist {}", "Passwort: {}", "Das neue Kennwort lautet: {}", "Kennwort für anna: {}",
    "Bitte mit dem Passwort {} anmelden.", "Nimm {} als Passwort.", "Zugangsdaten: anna / {}",
    "Le mot de passe est {}.", "le mot de passe de la base est {}", "Mot de passe : {}", "Voici le mdp : {}",
    "le nouveau mot de passe pour anna est « {} »", "connecte-toi avec le mot de passe {}",
    "utilise {} comme mot de passe", "La contraseña es {}.", "la contraseña del servidor es {}", "Contraseña: {}",
    "la nueva contraseña para anna es \"{}\"", "usa {} como contraseña", "La clave de acceso es {}",
    "entra con la contraseña {} por favor", "clave: {}",
)  # fmt: skip
BELOW = (
    "The password is:\n{}", "Password:\n{}\n", "Here is the password:\n\n    {}\n\nDelete this mail.",
    "The password is\n```\n{}\n```", "Root password:\n  - {}", "Das Passwort lautet:\n{}", "Passwort:\n\n{}",
    "Kennwort:\n> {}", "Le mot de passe est :\n{}", "Mot de passe :\n  {}", "La contraseña es:\n{}",
    "Contraseña:\n    {}\n", "password: |\n  {}\n", "password: >-\n  {}",
)  # fmt: skip
TABLES = (
    "| user | password |\n|---|---|\n| anna | {} |",
    "| Host | Benutzer | Passwort |\n| --- | --- | --- |\n| web1 | anna | `{}` |",
    "| setting | value |\n|---|---|\n| db password | {} |",
    "+------+------------+\n| user | password   |\n+------+------------+\n| anna | {} |\n+------+------------+",
    " user | password \n------+----------\n anna | {}\n(1 row)",
    "| utilisateur | mot de passe |\n|:--|:--|\n| anna | {} |",
    "| usuario | contraseña |\n|---|---|\n| anna | **{}** |", "user,password\nanna,{}\n",
    "host;user;password\nweb1;anna;{}", "user\tpassword\nanna\t{}",
    "│ user │ password │\n├──────┼──────────┤\n│ anna │ {} │", "| password | {} |", "| **Passwort** | `{}` |",
)  # fmt: skip
WORDS = (
    "Sommer",
    "Falcon",
    "hunter",
    "Blue",
    "tiger",
    "Kaffee",
    "Soleil",
    "verano",
    "Winter",
    "dragon",
    "Maple",
    "rocket",
)


class Form(NamedTuple):
    """A secret in its carrier: its family, the text, and the pieces that must not stay."""

    family: str
    carrier: str
    text: str
    pieces: list[str]


def password(chance: random.Random) -> str:
    """Draw a password as generators and people make them."""
    sort = chance.randrange(4)
    if sort == 0:
        return "".join(
            chance.choices("abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=chance.randrange(12, 25))
        )
    if sort == 1:
        middle = "".join(chance.choices("abcdefghjkmnpqrsABCDEFGHJKLMNPQ23456789!#%*+=?_", k=chance.randrange(9, 18)))
        return chance.choice("aBcDk") + middle + chance.choice("xY7") + str(chance.randrange(10))
    word = chance.choice(WORDS)
    if sort == 2:
        return f"{word}{chance.randrange(10, 3000)}{chance.choice('!#?*+')}"
    return (
        f"{word.replace('o', '0').replace('e', '3').replace('i', '1')}-{chance.choice(WORDS)}{chance.randrange(100)}!"
    )


def escape(text: str, chance: random.Random) -> str:
    """Write a text as a transcript has it: as a string of JSON, perhaps within JSON, perhaps with needless escapes."""
    once = json.dumps({"type": "tool_result", "content": f"ok\n{text}\ndone"}, ensure_ascii=chance.random() < 0.5)
    way = chance.randrange(4)
    if way == 1:
        return json.dumps({"message": once})
    if way == 2:
        return once.replace("-", "\\u002d").replace("+", "\\u002b")
    return once.replace("/", "\\/") if way == 3 else once


CARRIERS: dict[str, Callable[[str, random.Random], str]] = {
    "prose": lambda text, chance: chance.choice(
        ("We saw {} in the old notes.", "It fails with {}\nand nobody knows why.", "- note: {}", "{}", "(see {})")
    ).replace("{}", text),
    "shell": lambda text, chance: chance.choice(("$ {}", "anna@web1:~$ {}", "+ {}", "# {}", "> {}")).replace(
        "{}", text
    ),
    "transcript": escape,
    "env": lambda text, chance: f"DEBUG=1\n{chance.choice(('SETTING', 'NOTE', 'export LAST'))}={text}\nPORT=80",
    "yaml": lambda text, chance: f"steps:\n  - run: |\n{textwrap.indent(text, '      ')}\n  - name: next",
    "table": lambda text, chance: f"| step | note |\n|---|---|\n| 3 | {text} |\n| 4 | done |",
    "log": lambda text, chance: (
        f"2026-01-05T10:11:{chance.randrange(60):02}Z WARN [worker-{chance.randrange(9)}] {text}"
    ),
}
IN_LINE = ("prose", "shell", "transcript", "env", "yaml", "table", "log")
IN_BLOCK = ("plain", "transcript", "yaml")


def carry(text: str, carrier: str, chance: random.Random) -> str:
    return text if carrier == "plain" else CARRIERS[carrier](text, chance)


def forms(seed: int) -> Iterator[Form]:
    """Yield the secrets of all families, the same for the same seed."""
    chance = random.Random(seed)
    for vendor, template in VENDORS.items():
        for carrier in chance.sample(IN_LINE, 4):
            token, pieces = draw(template, chance)
            yield Form("published prefix", carrier, carry(token, carrier, chance), pieces or [vendor])
    for family, templates, carriers in (
        ("command", COMMANDS, ("plain", "shell", "transcript", "yaml", "log")),
        ("file", FILES, IN_BLOCK),
        ("prose", PROSE, ("plain", "transcript", "log", "yaml")),
        ("next line", BELOW, ("plain", "transcript")),
        ("table", TABLES, ("plain", "transcript")),
    ):
        for template in templates:
            for carrier in carriers:
                secret = password(chance)
                text = template.replace("{{", "{").replace("}}", "}").replace("{}", secret)
                yield Form(family, carrier, carry(text, carrier, chance), [secret])
    for make, family in ((key_files, "key file"), (split_tokens, "split"), (wrapped_tokens, "base64")):
        for text, pieces in make(chance):
            for carrier in ("plain", "transcript"):
                yield Form(family, carrier, carry(text, carrier, chance), pieces)


def key_files(chance: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Yield keys as PuTTY, OpenVPN, OpenSSL, OpenSSH and WireGuard write them."""
    lines = "\n".join(["{b:64}"] * 3)
    hexes = "\n".join(["{h:32}"] * 16)
    for version, mac in (("2", 40), ("3", 64)):
        text, pieces = draw(f"Private-Lines: 4\n{lines}\n{{b:40}}==\nPrivate-MAC: {{h:{mac}}}", chance)
        head, _ = draw("Encryption: none\nComment: anna\nPublic-Lines: 1\nAAAAB3NzaC1yc2E{b:40}\n", chance)
        yield f"PuTTY-User-Key-File-{version}: ssh-rsa\n{head}{text}", pieces
    for _ in range(3):
        yield draw(f"-----BEGIN OpenVPN Static key V1-----\n{hexes}\n-----END OpenVPN Static key V1-----", chance)
        yield draw(
            f"<tls-auth>\n#\n# 2048 bit OpenVPN static key\n#\n-----BEGIN OpenVPN Static key V1-----\n{hexes}", chance
        )
        yield draw(
            f"-----BEGIN {{k}} KEY-----\n{lines}\n{{b:30}}==\n-----END {{k}} KEY-----".replace("{k}", "RSA PRIVATE"),
            chance,
        )
        yield draw(
            f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{lines}\n={{b:4}}\n-----END PGP PRIVATE KEY BLOCK-----", chance
        )
        yield draw("[Interface]\nAddress = 10.0.0.2/24\nPrivateKey = {b:43}=\n", chance)
        yield draw("[Peer]\nPublicKey = abc\nPresharedKey = {b:43}=\n", chance)
        text, pieces = draw('{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS", "d": "{u:43}"}', chance)
        yield text, pieces


def split_tokens(chance: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Yield tokens that a program puts together, or that a line broke."""
    for template in (
        "ghp_{a:36}",
        "sk_live_{a:40}",
        "glpat-{u:24}",
        "npm_{a:36}",
        "xoxb-{d:12}-{d:13}-{a:24}",
        "hf_{a:34}",
    ):
        for way in (
            'token = "{}" + "{}"', "const t = '{}' + '{}';", 't = ("{}"\n     "{}")', "$t = '{}' . '{}';",
            'local t = "{}" .. "{}"', 't = "{}" \\\n    "{}"', "TOKEN={}\\\n{}", "it was {}\n{}",
            "token: >-\n  {}\n  {}", "the token\n{}\n{}\nis gone",
        ):  # fmt: skip
            token, _ = draw(template, chance)
            cut = chance.randrange(12, len(token) - 10)
            yield way.replace("{}", token[:cut], 1).replace("{}", token[cut:], 1), [token[8:cut], token[cut:]]


def wrapped_tokens(chance: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Yield tokens and passwords in base64, as headers, registries and Kubernetes want them."""
    for template in (
        "ghp_{a:36}",
        "sk_live_{a:24}",
        "glpat-{u:20}",
        "AKIA{32:16}",
        "xoxb-{d:12}-{d:12}-{a:24}",
        "dckr_pat_{u:27}",
    ):
        token = b64encode(draw(template, chance)[0].encode()).decode()
        secret = b64encode(password(chance).encode()).decode()
        login = b64encode(f"anna:{password(chance)}".encode()).decode()
        for text, hidden in (
            (f"apiVersion: v1\nkind: Secret\nmetadata: {{}}\ndata:\n  token: {token}\n  pass: {secret}\n", token),
            (f"apiVersion: v1\ndata:\n  pass: {secret}\nkind: Secret\ntype: Opaque\n", secret),
            (f"kind: Secret\nstringData:\n  url: {secret}\n", secret), (f"echo {token} | base64 -d", token),
            (f"TOKEN_B64={token}", token), (f"it is {token} in base64", token),
            (f"Authorization: Basic {login}", login),
            (f"curl -H 'Authorization: Basic {login}' https://api.internal", login),
            (f"//reg.internal/:_auth={login}", login),
            (json.dumps({"auths": {"reg.internal": {"auth": login}}}), login),
        ):  # fmt: skip
            yield text, [hidden.rstrip("=")]


def is_missed(form: Form) -> bool:
    """Say whether the redactor leaves a secret, or a good part of it."""
    shown, count = redact(form.text)
    return not count or any(piece in shown or remains(piece, shown) for piece in form.pieces)
