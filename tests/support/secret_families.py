# ruff: noqa: E501 (published formats and commands are not broken)
"""Secrets of vendors, programs, files and people, drawn from published formats and put where they are met.

The list was made from what vendors publish and from the manuals of programs, not from the rules of the redactor.
Every secret is generated, so none of them is real. `{a:36}` is random: see `ALPHABETS`; `{p}` is a password as people
and password managers make it. A case is missed if eight characters of a random piece are left (or all of a short one).
"""

from __future__ import annotations

import json
import random
import re
import string
from base64 import b64encode
from collections.abc import Iterator
from typing import NamedTuple

from learnt.text.redact import redact

LEAST_FOUND = 0.95
LEAST_FOUND_IN_FAMILY = 0.8
_ALNUM = string.ascii_letters + string.digits
ALPHABETS = {
    "a": _ALNUM, "A": string.ascii_letters, "b": _ALNUM + "+/", "d": string.digits, "h": "0123456789abcdef",
    "H": "0123456789ABCDEF", "l": string.ascii_lowercase + string.digits, "u": _ALNUM + "-_",
    "U": string.ascii_uppercase + string.digits, "x": string.ascii_uppercase + "234567",
    "s": _ALNUM + "!@#%^*-_+=.~",
}  # fmt: skip

# Tokens that are known by their own shape, wherever they are.
TOKENS = {
    "code hosting": "ghp_{a:36} gho_{a:36} ghs_{a:36} github_pat_{a:22}_{a:59} glpat-{u:20} gldt-{u:20} glrt-{u:20} "
    "glcbt-64_{u:20} glsoat-{u:20} glffct-{u:20} glagent-{u:50} gloas-{h:64} GR1348941{u:20} ATBB{a:32} ATCTT3xFfG{u:170}",
    "ci": "CCIPAT_{a:22}_{h:40} bkua_{h:40} sqp_{h:40} squ_{h:40} sgp_{h:16}_{h:40} pnu_{a:36} pul-{h:40} tk-us-{u:48} "
    "{a:14}.atlasv1.{a:67} API-{U:26} dp.pt.{a:43} dp.st.prd.{a:43} pat.{a:22}.{h:24}.{a:20}",
    "registries": "npm_{a:36} pypi-AgEIcHlwaS5vcmc{u:150} rubygems_{h:48} cio{a:32} oy2{l:43} dckr_pat_{u:27} "
    "CLOJARS_{h:60} AKCp{a:69} cmVmdGtu{a:56} dckr_oat_{u:32}",
    "models": "sk-{a:20}T3BlbkFJ{a:20} sk-proj-{u:74}T3BlbkFJ{u:74} sk-ant-api03-{u:93}AA sk-ant-oat01-{u:93}AA hf_{A:34} "
    "gsk_{a:52} r8_{a:37} pplx-{a:48} xai-{a:80} sk-or-v1-{h:64} AIza{u:35} nvapi-{u:64} tgp_v1_{u:43} fw_{a:24} "
    "jina_{h:32}{a:28} voyage-{a:43} pcsk_{a:6}_{a:63} lsv2_pt_{h:32}_{h:10} ABSK{b:120} csk-{l:48}",
    "cloud": "AKIA{x:16} ASIA{x:16} LTAI{a:20} AKID{a:32} dop_v1_{h:64} doo_v1_{h:64} dor_v1_{h:64} GOCSPX-{u:28} "
    "ya29.{u:120} v1.0-{h:24}-{h:146} tskey-auth-{a:17}-{a:32} fo1_{u:43} fm2_{b:120} HRKU-AA{u:58} nfp_{a:36} "
    "{a:3}8Q~{a:34} SCW{U:17} EAAGm0PX4ZCps{a:120} cfut_{a:48} rnd_{a:28}",
    "data": "dapi{h:32} pscale_tkn_{u:43} pscale_pw_{u:43} pscale_oauth_{u:43} sbp_{h:40} napi_{a:64} sb_secret_{a:22}_{a:8} "
    "4b1d{a:38} dnkey-{U:26}-{U:52} xau_{a:44} mdb_sa_sk_{u:40} tfp_{a:44}_{a:14} pat{a:14}.{h:64} key{a:14}",
    "chat": "xoxb-{d:12}-{d:13}-{a:24} xoxp-{d:12}-{d:12}-{d:13}-{h:32} xapp-1-A{U:10}-{d:13}-{h:64} "
    "https://hooks.slack.com/services/T{U:10}/B{U:10}/{a:24} {d:10}:AA{u:33} MTk4NjIyNDgzNDcxOTI1MjQ4.G{a:5}.{u:38} "
    "https://discord.com/api/webhooks/{d:18}/{u:68} "
    "https://acme.webhook.office.com/webhookb2/{h:8}-{h:4}-{h:4}-{h:4}-{h:12}@{h:8}-{h:4}-{h:4}-{h:4}-{h:12}/IncomingWebhook/{h:32}/{h:8}-{h:4}-{h:4}-{h:4}-{h:12}",
    "payment": "sk_live_{a:24} rk_live_{a:24} sk_test_51{a:97} whsec_{a:32} sq0atp-{u:22} sq0csp-{u:43} EAAA{u:60} "
    "access_token$production${l:16}${h:32} rzp_live_{a:14} shpat_{h:32} shpss_{h:32} shppa_{h:32} FLWSECK-{h:32}-X "
    "duffel_live_{u:43} EZAK{a:54} shippo_live_{h:40} live_{u:40} AQE{a:60}-{b:44}-{u:16} p8e-{l:32} test_{h:35}",
    "mail": "SG.{u:22}.{u:43} key-{h:32} xkeysib-{h:64}-{a:16} {h:32}-us12 re_{a:8}_{a:24} SK{h:32} md-{u:22} mlsn.{h:64} "
    "{h:32}-{h:8}-{h:8}",
    "observability": "NRAK-{U:27} NRJS-{h:19} {h:32}FFFFNRAL sntryu_{h:64} sntrys_eyJpYXQiOjE3{a:100}_{b:43} glsa_{a:32}_{h:8} "
    "glc_eyJ{a:80} phx_{a:43} dt0c01.{U:24}.{U:64} hcaik_01{l:58} lip_{a:40} PMAK-{h:24}-{h:34} "
    "https://0123:{h:32}@o1.ingest.sentry.io/45",
    "work": "secret_{a:43} ntn_{d:11}{a:35} lin_api_{a:40} figd_{u:40} ATATT3xFfGF0{u:180} pat-eu1-{h:8}-{h:4}-{h:4}-{h:4}-{h:12} "
    "fio-u-{u:64} sl.{u:135} CFPAT-{u:43} rdme_{l:70} ops_eyJ{a:260} A3-{U:6}-{U:6}-{U:5}-{U:5}-{U:5}-{U:5}",
    "vaults": "hvs.{u:95} hvb.{u:140} s.{a:24} AGE-SECRET-KEY-1{U:58} sha256~{u:43} eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOi{a:40}.{u:43}",
}  # fmt: skip

# Values that are known by their name only, as the vendor's documentation names them.
NAMED = {
    "cloud": "AWS_SECRET_ACCESS_KEY={b:40} aws_session_token={b:200} AZURE_CLIENT_SECRET={a:34} AZURE_STORAGE_KEY={b:86}== "
    "LINODE_TOKEN={h:64} HCLOUD_TOKEN={a:64} CLOUDFLARE_API_TOKEN={u:40} CF_API_KEY={h:37} FASTLY_API_TOKEN={u:32} "
    "VULTR_API_KEY={U:36} OS_PASSWORD={p} ALICLOUD_SECRET_KEY={a:30} NETLIFY_AUTH_TOKEN={a:43} VERCEL_TOKEN={a:24} "
    "HEROKU_API_KEY={h:8}-{h:4}-{h:4}-{h:4}-{h:12}",
    "observability": "DD_API_KEY={h:32} DATADOG_APP_KEY={h:40} NEW_RELIC_LICENSE_KEY={h:40} AMPLITUDE_API_KEY={h:32} "
    "SEGMENT_WRITE_KEY={a:32} MIXPANEL_TOKEN={h:32} MIXPANEL_API_SECRET={h:32} SPLUNK_HEC_TOKEN={h:8}-{h:4}-{h:4}-{h:4}-{h:12} "
    "LOGZIO_TOKEN={A:32} ROLLBAR_ACCESS_TOKEN={h:32} BUGSNAG_API_KEY={h:32} PAGERDUTY_TOKEN=u+{a:18} HONEYCOMB_API_KEY={a:22}",
    "mail and sms": "TWILIO_AUTH_TOKEN={h:32} POSTMARK_SERVER_TOKEN={h:8}-{h:4}-{h:4}-{h:4}-{h:12} MAILJET_SECRET_KEY={h:32} "
    "SMTP_PASSWORD={p} VONAGE_API_SECRET={a:16} MESSAGEBIRD_ACCESS_KEY={a:25} SPARKPOST_API_KEY={h:40}",
    "payment": "ADYEN_HMAC_KEY={H:64} PAYPAL_CLIENT_SECRET={u:80} PLAID_SECRET={h:30} BRAINTREE_PRIVATE_KEY={h:32} "
    "COINBASE_API_SECRET={a:32} MOLLIE_API_KEY=live_{a:30} KLARNA_PASSWORD={p} GOCARDLESS_ACCESS_TOKEN=live_{u:40}",
    "ci": "TRAVIS_TOKEN={a:22} CODECOV_TOKEN={h:8}-{h:4}-{h:4}-{h:4}-{h:12} BUILDKITE_AGENT_TOKEN={h:50} DRONE_TOKEN={a:32} "
    "CIRCLE_TOKEN={h:40} BITBUCKET_APP_PASSWORD={a:20} SNYK_TOKEN={h:8}-{h:4}-{h:4}-{h:4}-{h:12} COVERALLS_REPO_TOKEN={a:33} "
    "SONAR_TOKEN={h:40} NUGET_API_KEY=oy2{l:43} CARGO_REGISTRY_TOKEN={a:35} DOCKERHUB_PASSWORD={p}",
    "models": "COHERE_API_KEY={a:40} MISTRAL_API_KEY={a:32} AZURE_OPENAI_API_KEY={h:32} ELEVENLABS_API_KEY={h:32} "
    "DEEPSEEK_API_KEY=sk-{h:32} TOGETHER_API_KEY={h:64} WANDB_API_KEY={h:40} STABILITY_API_KEY=sk-{a:48} AI21_API_KEY={a:32}",
    "data": "SNOWFLAKE_PASSWORD={p} SUPABASE_JWT_SECRET={b:86}== PGPASSWORD={p} MYSQL_ROOT_PASSWORD={p} REDIS_PASSWORD={p} "
    "MONGO_INITDB_ROOT_PASSWORD={p} ALGOLIA_ADMIN_KEY={h:32} CONFLUENT_API_SECRET={b:64} ELASTIC_PASSWORD={a:20} "
    "POSTGRES_PASSWORD={p} CLICKHOUSE_PASSWORD={p} RABBITMQ_DEFAULT_PASS={p} MINIO_SECRET_KEY={a:40}",
    "work": "JIRA_API_TOKEN={a:24} TRELLO_API_TOKEN={h:64} ASANA_CLIENT_SECRET={h:32} ZENDESK_TOKEN={a:40} OKTA_API_TOKEN=00{u:40} "
    "AUTH0_CLIENT_SECRET={u:64} INTERCOM_ACCESS_TOKEN={b:60} DROPBOX_APP_SECRET={l:15} FIGMA_TOKEN={h:6}-{h:8}-{h:4}-{h:4}-{h:4}-{h:12} "
    "TWITTER_API_SECRET={a:50} FACEBOOK_APP_SECRET={h:32} LINKEDIN_CLIENT_SECRET={a:16} SPOTIFY_CLIENT_SECRET={h:32} "
    "GOOGLE_MAPS_API_KEY=AIza{u:35} MAPBOX_SECRET_TOKEN=sk.eyJ1Ijoi{a:60}.{a:22}",
    "frameworks": "SECRET_KEY=django-insecure-{s:50} RAILS_MASTER_KEY={h:32} SECRET_KEY_BASE={h:128} APP_KEY=base64:{b:43}= "
    "NEXTAUTH_SECRET={b:43}= JWT_SECRET={p} SESSION_SECRET={a:32} ENCRYPTION_KEY={h:64} COOKIE_SECRET={u:43} "
    "FLASK_SECRET_KEY={h:48} DJANGO_SECRET_KEY={s:50} VAULT_UNSEAL_KEY={b:44} BASIC_AUTH_PASSWORD={p} signing_key={b:44} "
    "webhook_secret={a:32} private_key_password={p} keystore_pass={p} db_pwd={p} adminPassword={p} clientSecret={a:40} "
    "api-token={a:32} Passphrase={p}",
}  # fmt: skip

# Passwords and keys in the places that programs and files have for them, one in each line.
PLACES = {
    "command line": """
mysql -h db1 -u root -p{p} shop
mysqldump -uroot -p'{p}' shop > shop.sql
mariadb --user=root --password={p} -e 'show tables'
psql "host=db1 user=app password={p} dbname=shop"
PGPASSWORD={p} pg_dump -h db1 shop
sshpass -p {p} ssh root@10.0.0.5
sshpass -p '{p}' scp a.tgz web1:/srv
redis-cli -h cache -a {p} ping
curl -u anna:{p} https://api.internal/v1
curl --user "anna:{p}" -X POST https://api.internal/v1
curl -H "Authorization: Bearer {a:40}" https://api.internal
curl -H 'X-Api-Key: {a:32}' https://api.internal
curl -H "PRIVATE-TOKEN: {u:20}" https://gitlab.internal/api/v4/projects
docker login -u anna -p {p} registry.internal
docker login --username anna --password {p}
helm registry login -u anna -p {p} registry.internal
podman login -u=anna -p={p} quay.internal
kubectl create secret generic db --from-literal=password={p}
kubectl create secret docker-registry reg --docker-username=a --docker-password={p}
oc login -u admin -p {p} https://api.ocp.internal:6443
oc login --token=sha256~{u:43}
mongosh -u admin -p {p} --authenticationDatabase admin
mongodump --host db1 --username admin --password '{p}'
ldapsearch -x -D "cn=admin,dc=acme" -w {p} -b dc=acme
ldappasswd -D cn=admin -w {p} -s {p} uid=anna
smbclient //nas/share -U anna%{p}
mount -t cifs //nas/s /mnt -o username=anna,password={p}
net use Z: \\\\fs1\\share {p} /user:anna
net user anna {p} /add
wget --user=anna --password={p} https://files.internal/a.zip
wget --http-password={p} https://files.internal/a.zip
rsync --password-file=<(echo {p}) a b
echo "anna:{p}" | chpasswd
echo 'root:{p}' | sudo chpasswd
echo {p} | sudo -S apt update
echo "{p}" | passwd --stdin anna
htpasswd -b .htpasswd anna {p}
htpasswd -cb /etc/nginx/.htpasswd anna '{p}'
openssl enc -aes-256-cbc -k {p} -in a -out b
openssl rsa -in key.pem -passin pass:{p}
openssl pkcs12 -export -passout pass:{p} -in a.pem
zip -P {p} out.zip a b
7z x a.7z -p{p}
unzip -P {p} a.zip
gpg --batch --passphrase {p} -d a.gpg
sqlcmd -S db1 -U sa -P {p} -Q "select 1"
bcp shop.dbo.t out t.dat -S db1 -U sa -P '{p}'
sqlplus scott/{p}@//db1:1521/XE
rabbitmqctl add_user anna {p}
rabbitmqadmin -u anna -p {p} list queues
influx -username admin -password {p}
cqlsh db1 -u cassandra -p {p}
mosquitto_pub -h mq -u anna -P {p} -t a -m b
az login --service-principal -u http://app -p {a:34} --tenant t1
az storage blob list --account-name a --account-key {b:86}==
aws configure set aws_secret_access_key {b:40}
gh auth login --with-token <<< {a:40}
vault login {a:24}
vault kv put secret/db password={p}
consul kv put db/password {p}
heroku config:set SECRET_KEY_BASE={h:64}
flyctl secrets set DB_PASSWORD={p}
ansible-playbook site.yml -e "ansible_become_pass={p}"
terraform apply -var="db_password={p}"
keytool -genkey -keystore a.jks -storepass {p} -keypass {p}
nmcli dev wifi connect Home password {p}
wpa_passphrase Home {p}
lftp -u anna,{p} ftp.internal
ncftp -u anna -p {p} ftp.internal
git clone https://anna:{p}@git.internal/a.git
git clone https://oauth2:{a:26}@git.internal/a.git
svn checkout --username anna --password {p} https://svn.internal/a
twine upload -u anna -p {p} dist/*
npm config set //registry.npmjs.org/:_authToken={a:36}
npm login --password={p}
cargo login {a:35}
gem push a.gem --key {h:48}
nuget push a.nupkg -ApiKey {l:46}
dotnet user-secrets set "Db:Password" "{p}"
snmpwalk -v3 -u anna -A {p} -X {p} host1
ipmitool -H bmc1 -U admin -P {p} power status
xfreerdp /u:anna /p:{p} /v:win1
rdesktop -u anna -p {p} win1
evil-winrm -i win1 -u anna -p '{p}'
plink -pw {p} root@web1
psexec \\\\win1 -u anna -p {p} cmd
impacket-smbclient acme/anna:{p}@10.0.0.5
kinit anna <<< '{p}'
cryptsetup luksOpen /dev/sda2 data <<< "{p}"
restic -r s3:b --password-command "echo {p}" backup /srv
borg init --encryption=repokey # BORG_PASSPHRASE={p}
sudo mysqladmin -u root password '{p}'
createuser app && psql -c "ALTER USER app WITH PASSWORD '{p}'"
mysql -e "CREATE USER 'app'@'%' IDENTIFIED BY '{p}'"
snowsql -a acme -u anna --password {p}
http -a anna:{p} https://api.internal
ab -A anna:{p} https://api.internal/
ssh-keygen -t ed25519 -N {p} -f key
ssh-keygen -p -P '{p}' -N '{p}' -f key
expect -c 'send "{p}\\r"' # password prompt
tool --client-secret {a:40} --api-key={a:32}
tool --access-token "{a:40}"
""",
    "files": """
db1.internal:5432:shop:app:{p}
*:*:*:postgres:{p}
machine api.internal login anna password {p}
machine api.internal\\n  login anna\\n  password {p}
//registry.npmjs.org/:_authToken={a:36}
//npm.internal/:_password={b:24}
_auth={b:32}
[pypi]\\nusername = __token__\\npassword = {a:60}
[client]\\nuser=root\\npassword={p}
network={{\\n  ssid="Home"\\n  psk="{p}"\\n}}
wpa_passphrase={p}
psk={p}
anna:{{SHA}}{b:27}=
anna:$apr1${a:8}${a:22}
anna:$2y$10${a:53}
root:$6${a:16}${a:86}:19000:0:99999:7:::
jdbc:postgresql://db1:5432/shop?user=app&password={p}
jdbc:mysql://db1/shop?user=root&password={p}&useSSL=false
jdbc:sqlserver://db1:1433;databaseName=shop;user=sa;password={p};
jdbc:oracle:thin:scott/{p}@db1:1521:XE
Server=db1;Database=shop;User Id=sa;Password={p};
Data Source=db1;Initial Catalog=shop;uid=sa;pwd={p}
DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={b:86}==;EndpointSuffix=core.windows.net
Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={b:43}=
https://acme.blob.core.windows.net/c/a.txt?sv=2022-11-02&se=2027-01-01&sr=b&sp=r&sig={b:43}%3D
https://s3.amazonaws.com/b/k?X-Amz-Credential=AKIA{x:16}/20260101/eu/s3&X-Amz-Signature={h:64}
postgres://app:{p}@db1:5432/shop
mongodb+srv://app:{p}@cluster0.abc.mongodb.net/shop
redis://:{p}@cache:6379/0
amqps://app:{p}@mq:5671/vh
mysql+pymysql://root:{p}@db1/shop
ldap://cn=admin:{p}@ldap.internal
smtp://mailer:{p}@smtp.internal:587
ftp://anna:{p}@ftp.internal/a
{{"auths":{{"registry.internal":{{"auth":"{b:40}"}}}}}}
kind: Secret\\ndata:\\n  password: {b:24}
kind: Secret\\nstringData:\\n  password: {p}
environment:\\n  - MYSQL_ROOT_PASSWORD={p}
environment:\\n  POSTGRES_PASSWORD: {p}
db_password = "{p}"
variable "token" {{ default = "{a:40}" }}
<add key="Password" value="{p}" />
<add key="ClearTextPassword" value="{p}" />
<password>{p}</password>
<property name="hibernate.connection.password" value="{p}"/>
<server><id>nexus</id><username>anna</username><password>{p}</password></server>
spring.datasource.password={p}
spring:\\n  datasource:\\n    password: {p}
requirepass {p}
masterauth {p}
ansible_ssh_pass={p}
web1 ansible_host=10.0.0.5 ansible_user=root ansible_password={p}
IDENTIFIED BY '{p}'
SetEnv DB_PASS {p}
define('DB_PASSWORD', '{p}');
$config['password'] = '{p}';
'password' => '{p}',
password => "{p}"
:password: {p}
"Password": "{p}",
DB_PASSWORD := {p}
set password {p}
enable secret {p}
snmp-server community {p} RO
bindpw {p}
rootpw {p}
preshared-key = {b:43}=
PrivateKey = {b:43}=
PresharedKey = {b:43}=
"private_key": "-----BEGIN PRIVATE KEY-----{nl}{b:64}{nl}{b:40}{nl}-----END PRIVATE KEY-----{nl}"
Authorization: Basic {b:32}
Authorization: Bearer {a:40}
Proxy-Authorization: Basic {b:28}
Cookie: sessionid={l:32}; theme=dark
Set-Cookie: session={u:60}; HttpOnly
X-Auth-Token: {h:32}
x-api-key: {a:40}
const client = new Client({{ apiKey: "{a:32}" }});
client = Client(token="{a:32}")
auth=("anna", "{p}")
requests.get(url, auth=HTTPBasicAuth("anna", "{p}"))
conn = psycopg2.connect(host="db1", user="app", password="{p}")
smtp.login("mailer@acme.io", "{p}")
DriverManager.getConnection("jdbc:h2:mem", "sa", "{p}");
os.environ["DB_PASSWORD"] = "{p}"
process.env.API_KEY = "{a:32}";
ENV API_TOKEN {a:32}
ARG NPM_TOKEN={a:36}
setx API_KEY {a:32}
$env:API_KEY = "{a:32}"
set -x API_TOKEN {a:32}
""",
    "english": """
The password for the staging database is {p}, ask Tom.
the root password is {p}
My password: {p}
Use {p} as the password.
log in as admin with password {p}
login with anna / {p}
credentials: anna / {p}
user: anna pass: {p}
username admin, password {p}
The wifi password was changed to {p} yesterday.
We rotated the API key; the new one is {a:32}.
the API token for the billing service is {a:32}
Set the passphrase to "{p}" and retry.
The PIN / password of the vault: {p}
admin password = {p}
Password:\\n{p}
The new secret is:\\n\\n{p}
API key:\\n```\\n{a:32}\\n```
pw: {p}
pwd {p} works on prod
you can sign in with anna@acme.io and {p} as password
the client secret should be {a:40}
the shared secret between both is `{p}`
access key AKIA{x:16} and secret {b:40}
| user | password |\\n|---|---|\\n| anna | {p} |
| name | value |\\n|---|---|\\n| DB password | {p} |
host,user,password\\ndb1,app,{p}
user\\tpassword\\nanna\\t{p}
password{p_spaces}{p}
""",
    "german": """
Das Passwort für die Datenbank ist {p}.
Das Kennwort lautet {p}
Passwort: {p}
Kennwort:\\n{p}
Das neue Passwort vom Server heißt jetzt {p}.
Zugangsdaten: anna / {p}
Melde dich mit {p} als Passwort an.
Der API-Schlüssel ist {a:32}.
Der Zugangsschlüssel lautet: {a:32}
Benutzer: anna, Passwort: {p}
Das WLAN-Passwort ist {p}
Das Geheimnis ist {p}
| Benutzer | Passwort |\\n|---|---|\\n| anna | {p} |
Admin-Kennwort = {p}
das Token für den Dienst ist {a:32}
Das Root-Passwort wurde auf {p} geändert.
""",
    "french": """
Le mot de passe de la base est {p}.
Mot de passe : {p}
mot de passe :\\n{p}
Le mot de passe pour le serveur, c'est {p}
Identifiants : anna / {p}
Utilisez {p} comme mot de passe.
La clé API est {a:32}.
La clé secrète est {a:40}
Le jeton d'accès est {a:32}
utilisateur anna, mot de passe {p}
| utilisateur | mot de passe |\\n|---|---|\\n| anna | {p} |
Le code secret du coffre est {p}
mdp: {p}
Le mot de passe a été changé en {p} hier.
""",
    "spanish": """
La contraseña de la base de datos es {p}.
Contraseña: {p}
contraseña:\\n{p}
La clave del servidor es {p}
Credenciales: anna / {p}
Usa {p} como contraseña.
La clave API es {a:32}.
El token de acceso es {a:32}
usuario anna, contraseña {p}
| usuario | contraseña |\\n|---|---|\\n| anna | {p} |
La clave secreta es {a:40}
La nueva contraseña del wifi es {p}
El secreto compartido es {p}
La contraseña se cambió a {p} ayer.
""",
}
BLOCKS = {
    "pem": "-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----",
    "pem cut": "-----BEGIN {kind}PRIVATE KEY-----\n{body}\n",
    "pgp": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{body}\n=ab12\n-----END PGP PRIVATE KEY BLOCK-----",
    "ssh2": "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: \"a\"\n{body}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
    "putty": "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: a\nPublic-Lines: 1\nAAAAC3NzaC1l\n"
    "Private-Lines: 4\n{body}\nPrivate-MAC: 00ff",
    "openvpn": "<tls-auth>\n#\n# 2048 bit OpenVPN static key\n#\n-----BEGIN OpenVPN Static key V1-----\n{hex}\n"
    "-----END OpenVPN Static key V1-----\n</tls-auth>",
    "openvpn key": "<key>\n-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n</key>",
}  # fmt: skip
_KEY_KINDS = ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA ")
_WORDS = "amber Autumn Berlin castle Dragon falcon Ginger harbor Island juniper Kitten lemon Monkey orange Paris Summer".split()
_MARKS = "!#*-.?_"

# Ways to meet a token that is known by its own shape.
_CARRIERS = (
    "The deploy failed because {} was revoked last week.", "I pasted {} by mistake, sorry.", "it is {}.",
    "Ich habe {} im Log gefunden.", "J'ai trouvé {} dans le journal.", "Encontré {} en el registro.",
    "$ tool run --with {} --verbose", "tool '{}'", "SETTING={}", 'setting: "{}"', "  - {}", "| thing | {} |",
    "2026-01-05T10:11:12Z INFO client sends {} to host status=200", 'connect("{}")', "thing:\n  {}", "<b>{}</b>",
    "({})", "see `{}`", "first,{},last", "#{}", "url?thing={}&page=2", "\x1b[32m{}\x1b[0m",
)  # fmt: skip
# Ways to give a value a name.
_NAMINGS = (
    "{name}={value}", "export {name}={value}", "{name}='{value}' make run", 'set {name}="{value}"', "{lower}: {value}",
    "{lower} = \"{value}\"", '"{camel}": "{value}",', "  - name: {name}\n    value: {value}", "{words}: {value}",
    "The {words} is {value} now.", "| {words} | {value} |", "10:11:12 WARN retry {lower}={value} in 5s",
    "tool --{dashed} {value} up", "{words}:\n{value}", '{lower}="{value}",', "const {camel} = '{value}';",
    "docker run -e {name}={value} app", "{name}:\n  {value}", "ENV {name} {value}", "'{lower}' => '{value}',",
)  # fmt: skip


class Case(NamedTuple):
    """A text with a secret: the family, the text, and the random pieces of the secret."""

    family: str
    text: str
    pieces: list[str]


def draw(template: str, chance: random.Random) -> tuple[str, list[str]]:
    """Fill in a template; return the text and its random pieces."""
    pieces: list[str] = []

    def fill(match: re.Match[str]) -> str:
        if match[0] == "{p_spaces}":
            return " " * 12
        drawn = (
            _password(chance) if match[0] == "{p}" else "".join(chance.choices(ALPHABETS[match[1]], k=int(match[2])))
        )
        pieces.append(drawn)
        return drawn

    filled = re.sub(r"\{p\}|\{p_spaces\}|\{(\w):(\d+)\}", fill, template)
    return filled, pieces


def _password(chance: random.Random) -> str:
    """Draw a password: random, or words with a number and a mark."""
    word, other = chance.sample(_WORDS, 2)
    number, mark = chance.randrange(10, 2030), chance.choice(_MARKS)
    return chance.choice(
        (
            "".join(chance.choices(_ALNUM, k=chance.randrange(10, 20))) + str(number),
            "k" + "".join(chance.choices(_ALNUM + "!#%*-_+=.", k=14)) + "7x",
            f"{word.title()}{number}{mark}" if chance.random() < 0.7 else f"{word}{mark}{number}",
            f"{word}-{other.lower()}-{number}",
            f"{word[0].upper()}@{word[1:]}{number}" if chance.random() < 0.5 else f"{word}{other.title()}{number}",
        )
    ).replace("@", "0")


def cases(seed: int) -> Iterator[Case]:
    """Yield cases of every family."""
    chance = random.Random(seed)
    for family, templates in TOKENS.items():
        for template in templates.split():
            for text, pieces in _carry(template, chance):
                yield Case(f"token: {family}", text, pieces)
    for family, templates in NAMED.items():
        for template in templates.split():
            for text, pieces in _name(template, chance):
                yield Case(f"name: {family}", text, pieces)
    for family, lines in PLACES.items():
        for line in lines.strip().splitlines():
            for plain in (True, False):
                text, pieces = draw(
                    line.replace("{{", "{")
                    .replace("}}", "}")
                    .replace("\\n", "\n")
                    .replace("\\t", "\t")
                    .replace("{nl}", "\\n"),
                    chance,
                )
                yield Case(f"place: {family}", text if plain else _quote(text, chance), pieces)
    yield from _blocks(chance)
    yield from _pieces(chance)


def _carry(template: str, chance: random.Random) -> Iterator[tuple[str, list[str]]]:
    for carrier in chance.sample(_CARRIERS, 2):
        secret, pieces = draw(template, chance)
        yield carrier.replace("{}", secret), pieces
    secret, pieces = draw(template, chance)
    yield _quote(chance.choice(_CARRIERS).replace("{}", secret), chance), pieces


def _name(template: str, chance: random.Random) -> Iterator[tuple[str, list[str]]]:
    name, _, value = template.partition("=")
    parts = re.split(r"[_-]|(?<=[a-z])(?=[A-Z])", name)
    names = {
        "name": name, "lower": "_".join(parts).lower(), "words": " ".join(parts), "dashed": "-".join(parts).lower(),
        "camel": parts[0].lower() + "".join(part.title() for part in parts[1:]),
    }  # fmt: skip
    for number, naming in enumerate(chance.sample(_NAMINGS, 3)):
        secret, pieces = draw(value, chance)
        text = naming
        for key, word in {**names, "value": secret}.items():
            text = text.replace("{" + key + "}", word)
        yield text if number else _quote(text, chance), pieces


def _quote(text: str, chance: random.Random) -> str:
    """Return the text as it is in a transcript: a JSON string, or one within another."""
    line = json.dumps({"type": "tool_result", "content": f"$ cat notes\n{text}\nok"})
    way = chance.randrange(4)
    if way == 0:
        return json.dumps({"log": line})
    if way == 1:
        return line.replace('\\"', "\\u0022").replace("&", "\\u0026").replace("'", "\\u0027").replace("<", "\\u003c")
    return line


def _blocks(chance: random.Random) -> Iterator[Case]:
    for family, template in BLOCKS.items():
        for way in range(6):
            body = ["".join(chance.choices(ALPHABETS["b"], k=64)) for _ in range(4)]
            digits = ["".join(chance.choices(ALPHABETS["h"], k=32)) for _ in range(16)]
            text = template.replace("{kind}", chance.choice(_KEY_KINDS))
            text = text.replace("{body}", "\n".join(body)).replace("{hex}", "\n".join(digits))
            if way == 1:
                text = "  " + text.replace("\n", "\n  ")
            elif way == 2:
                text = "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(text.split("\n"), 1))
            elif way == 3:
                text = "\n".join(f"> {line}" for line in text.split("\n"))
            elif way:
                text = _quote(text, chance)
            yield Case(f"block: {family}", text, digits if "{hex}" in template else body)


def _pieces(chance: random.Random) -> Iterator[Case]:
    """Yield tokens cut in two, and texts with secrets in base64."""
    templates = [template for family in TOKENS.values() for template in family.split() if "://" not in template]
    joints = (
        "{a}\n{b}",
        "{a}\\\n{b}",
        '"{a}" + "{b}"',
        "'{a}' +\n    '{b}'",
        '"{a}"\n"{b}"',
        '"{a}" \\\n  "{b}"',
        "'{a}' . '{b}'",
    )
    for template in chance.sample([template for template in templates if len(template) < 60], 40):
        secret, pieces = draw(template, chance)
        cut = len(secret) - len(pieces[-1]) + len(pieces[-1]) // 2
        joint = chance.choice(joints)
        text = "key = " + joint.replace("{a}", secret[:cut]).replace("{b}", secret[cut:])
        yield Case("split", text, [*pieces[:-1], secret[cut - 8 : cut], secret[cut : cut + 8]])
    for template in (
        chance.sample(templates, 20)
        + ["DB_PASSWORD={p}\nDB_USER=app", "postgres://app:{p}@db1/shop", "password: {p}"] * 7
    ):
        secret, _ = draw(template, chance)
        code = b64encode(secret.encode()).decode()
        yield Case(
            "base64",
            chance.choice(("{}", "echo {} | base64 -d", "data: {}", '"content": "{}"')).replace("{}", code),
            [code],
        )


def is_missed(case: Case) -> bool:
    """Return whether the redactor leaves a part of a secret."""
    shown, count = redact(case.text)
    return not count or any(_remains(piece, shown) for piece in case.pieces)


def _remains(piece: str, text: str) -> bool:
    size = min(8, len(piece))
    return size >= 4 and any(piece[start : start + size] in text for start in range(len(piece) - size + 1))
