"""The measurement of recall on both databases, from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from bench.recall import SETS

from tests.support.postgres import PostgresServer

ROOT = Path(__file__).resolve().parent.parent


def test_both_databases_are_measured(postgres: PostgresServer, tmp_path: Path) -> None:
    texts = ["Prices are integers in cents", "Close the drawer under its lock"]
    for name in SETS:
        folder = tmp_path / name
        folder.mkdir()
        documents = [{"id": str(number), "group": "shop", "text": text} for number, text in enumerate(texts)]
        (folder / "docs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
        question = {"group": "shop", "text": "In what unit are prices?", "gold": ["0"], "older": ["1"], "newer": ["0"]}
        (folder / "queries.jsonl").write_text(json.dumps(question) + "\n")

    done = subprocess.run(
        [sys.executable, "-m", "bench", "recall-engines"],
        cwd=ROOT,
        env={**os.environ, "LEARNT_BENCH_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("PostgreSQL |") == len(SETS)
    assert "**fails**" not in done.stdout
