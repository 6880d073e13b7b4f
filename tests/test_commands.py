"""Which commands are the same, which failure tells of the command, and which success stands in place of it."""

from __future__ import annotations

import pytest

from learnt.mine.missteps import command_key, is_misstep, is_question, may_replace, replaces

CHECKS = """
    pytest -q; python -m pytest; python -m unittest; python tests/test_a.py; poetry run pytest; coverage run -m pytest
    nosetests; flake8 src; pylint src; black --check .; isort --check .; bandit -r .; uvx ruff check; hatch test; tox
    invoke test; pre-commit run --all-files; docker compose run web pytest; bash -c "pytest -x"; npm test; npm t
    npm run test:unit; npm run ci; prettier --check .; npx prettier --check .; biome check; stylelint a.css; node --test
    npx playwright test; npx cypress run; ./gradlew test; ./mvnw test; mvn test; sbt test; ktlint; detekt; make ci
    bin/rails test; ./vendor/bin/pest; swift test; flutter test; dart analyze; bazel test //...; terraform validate
    hadolint Dockerfile; yamllint .; markdownlint .; go test ./...; cargo clippy; make test; make build; cargo build
    docker compose build; make; bash ./test.sh
"""
COMMANDS = """
    npm ci; npm install; git format-patch HEAD; git commit -m test; pip install pytest; python -m pip install pytest
    uv add ruff; cat tests/test_a.py; ls tests; ./deploy.sh --env prod; az boards query --wiql x; make deploy
    psql -f test/seed.sql; node build.js; gh pr view; python manage.py migrate; docker run web; curl http://x/test
    kubectl get pods
"""


def listed(text: str) -> list[str]:
    return [one.strip() for line in text.strip().splitlines() for one in line.split(";")]


@pytest.mark.parametrize("command", listed(CHECKS))
def test_the_failure_of_a_check_tells_of_the_code(command: str) -> None:
    assert not is_misstep(command, "1 failed")


@pytest.mark.parametrize("command", listed(COMMANDS))
def test_the_failure_of_anything_else_tells_of_the_command(command: str) -> None:
    assert is_misstep(command, "no")
    assert may_replace(command)


@pytest.mark.parametrize(
    ("failed", "worked", "error"),
    [
        ("ship --fast now", "ship --safe now", ""),
        ("./ship --fast", "./ship --safe", ""),
        ("az boards query --wiq x", "az boards query --wiql x", "unrecognized arguments: --wiq"),
        ("make deploy", "make release", "No rule to make target"),
        ("make deploy", "make deploy ENV=prod", "ENV is not set"),
        ("npm install", "npm ci", ""),
        ("npm ci", "npm install", "no lock file"),
        ("npm run bild", "npm run build", "Missing script: bild"),
        ("yarn add left-pad", "npm install left-pad", "this project is configured to use npm"),
        ("git psuh", "git push", "git: 'psuh' is not a git command"),
        ("./run.sh", "bash run.sh", "Permission denied"),
        ("deploy-old", "deploy-new", "deploy-old: command not found"),
        ("python app.py", "python3 app.py", "python: command not found"),
        ("cargo build --featurs x", "cargo build --features x", "error: unexpected argument '--featurs' found"),
        ("go build -tag x", "go build -tags x", "flag provided but not defined: -tag"),
    ],
)
def test_what_worked_stands_in_place_of_what_failed(failed: str, worked: str, error: str) -> None:
    assert is_misstep(failed, error)
    assert may_replace(worked)
    assert replaces(failed, worked, error)


@pytest.mark.parametrize(
    ("failed", "worked"),
    [
        ("git push", "git status"),
        ("docker run web", "docker ps"),
        ("python app.py", "python -c 'import y'"),
        ("node a.js", "node b.js"),
        ("python step1.py", "python step2.py"),
        ("make deploy", "make clean"),
        ("npm start", "npm ls"),
        ("./scripts/deploy.sh prod", "cat scripts/deploy.sh"),
        ("ship --fast", "ls"),
    ],
)
def test_what_does_something_else_stands_in_place_of_nothing(failed: str, worked: str) -> None:
    assert not replaces(failed, worked, "no")


@pytest.mark.parametrize(
    "written",
    [
        "ship  now",
        "ship now > out.txt",
        "ship now 2> errors.txt",
        "ship now >>log 2>&1",
        "ship now &> all.txt",
        "ship now 2>&1 | tail -3",
        "(ship now)",
        "bash -lc 'ship now'",
        "cd /shop && ship now",
        "timeout 5 ship now",
        "# at last\nship now",
    ],
)
def test_a_command_is_the_same_however_it_is_written(written: str) -> None:
    assert command_key(written, "/shop", "/shop") == command_key("ship now", "/shop", "/shop")


@pytest.mark.parametrize(
    "written", ["sudo ship now", "SHOP=prod ship now", "ship later", "cd web && ship now", "ship now && rest", ""]
)
def test_a_command_that_does_something_else_is_another_one(written: str) -> None:
    assert command_key(written, "/shop", "/shop") != command_key("ship now", "/shop", "/shop")


@pytest.mark.parametrize(
    "command",
    [
        "kubectl get pods | grep web",
        "command -v jq",
        "grep -q sale a.py",
        "nc -z host 80",
        "git diff --exit-code",
        "sudo grep x y",
    ],
)
def test_a_command_that_fails_in_silence_may_only_say_no(command: str) -> None:
    assert is_question(command)
    assert not is_question("ship now")
