"""Fit the coefficients of relevance to labelled prompts: `python -m tools.fit_relevance [--write] [--bars 0.3,0.4]`.

A project is a folder with learnings.jsonl, prompts.jsonl and cues.jsonl (training/briefs/README.md). Those in
training/briefs are used, and those below LEARNT_BENCH_DATA/briefs-dev if that is set. Each project counts twice, with
its learnings' cues and without any, because most learnings have none.

Everything is measured through `Memory`. The table shows each project with coefficients that were fitted to the others.
`--write` fits to all projects and writes src/learnt/recall/coefficients.py.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

from learnt import Memory
from learnt.recall import coefficients, find
from learnt.recall.relevance import FEATURES, list_margins, measure_strength

ROOT = Path(__file__).resolve().parent.parent
COEFFICIENTS = ROOT / "src" / "learnt" / "recall" / "coefficients.py"
FINE_WEIGHT = 0.3  # what is not amiss speaks for a learning, but less than what is wanted
RIDGE = 1e-3
DAY_MS = 86_400_000
BEGINNING_MS = 1_790_000_000_000


class Project(NamedTuple):
    """Learnings, their cues and labelled prompts."""

    name: str
    learnings: list[dict[str, Any]]
    prompts: list[dict[str, Any]]
    cues: dict[str, list[str]]


class Row(NamedTuple):
    """A prompt and a learning: what speaks for it, and whether it is wanted (1) or not (0), with a weight."""

    features: tuple[float, ...]
    wanted: int
    weight: float


class Said(NamedTuple):
    """A prompt, and the learnings in its brief with their relevance."""

    prompt: dict[str, Any]
    ids: dict[str, float]


Group = list[Row]  # all learnings for one prompt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the coefficients fitted to all projects")
    parser.add_argument("--bars", default="", help="show the figures for these values of `brief_relevance`, too")
    parser.add_argument("--no-table", action="store_true", help="do not fit without each project")
    parser.add_argument("--only", default="", help="show only these projects in the table (they are still fitted to)")
    options = parser.parse_args()
    projects = [read_project(folder) for folder in find_folders()]
    find.BY_SENTENCE = find.BY_SELF = max(len(project.learnings) for project in projects)  # compare every learning
    if options.bars:
        os.environ["LEARNT_BRIEF_RELEVANCE"] = min(options.bars.split(","))
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(HOME=home, XDG_CONFIG_HOME=home, XDG_DATA_HOME=home)
        stores = {
            (project.name, cues): Store(project, Path(home), cues=cues)
            for project in projects
            for cues in (False, True)
        }
        if not options.no_table:
            shown = [project for project in projects if not options.only or project.name in options.only.split(",")]
            show_table(projects, shown, stores, [float(bar) for bar in options.bars.split(",") if bar])
        fit_to(projects, stores)
    if options.write:
        write_coefficients()
    print(format_coefficients())


def find_folders() -> list[Path]:
    data = os.environ.pop("LEARNT_BENCH_DATA", "")  # no setting of learnt: it would be refused
    roots = [ROOT / "training" / "briefs", *([Path(data) / "briefs-dev"] if data else [])]
    return [path.parent for root in roots for path in sorted(root.rglob("prompts.jsonl"))]


def read_project(folder: Path) -> Project:
    def lines(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines() if line.strip()]

    cues = {entry["id"]: entry["cues"] for entry in lines("cues.jsonl")}
    return Project(folder.name, lines("learnings.jsonl"), lines("prompts.jsonl"), cues)


class Store:
    """A project's learnings in a store of their own."""

    def __init__(self, project: Project, home: Path, *, cues: bool) -> None:
        self._project = project
        folder = home / f"{project.name}-{cues}"
        folder.mkdir()
        self._memory = Memory.open(folder)
        self._names: dict[str, str] = {}
        self._briefs = 0
        for number, entry in enumerate(project.learnings):
            self._add(entry, project.cues[entry["id"]] if cues else [], BEGINNING_MS + number * DAY_MS)

    def _add(self, entry: dict[str, Any], cues: list[str], created_at: int) -> None:
        fields = ("context", "observation", "implication", "action", "tags", "category", "kind")
        given = {field: entry[field] for field in fields if entry.get(field)}
        triggers = {kind: patterns for kind, patterns in (entry.get("triggers") or {}).items() if patterns}
        if triggers:
            given["triggers"] = triggers
        learning = self._memory.add(entry["title"], cues=cues, created_at=created_at, **given)
        self._names[learning.id] = entry["id"]

    @cached_property
    def groups(self) -> list[Group]:
        """What speaks for each learning, for each prompt; this does not depend on the coefficients."""
        return [*self._measure()]

    def _measure(self) -> Iterator[Group]:
        for prompt in self._project.prompts:
            hits = self._memory.search(
                prompt["prompt"], limit=len(self._names), min_confidence=0, paths=prompt.get("paths") or ()
            )
            found = {
                self._names[hit.learning.id]: tuple(float(hit.features[name]) for name in FEATURES) for hit in hits
            }
            nothing = (0.0,) * len(FEATURES)
            yield [_label(prompt, name, found.get(name, nothing)) for name in self._names.values()]

    def brief(self) -> list[Said]:
        """Return what briefs say for each prompt."""
        self._briefs += 1
        said = []
        for prompt in self._project.prompts:
            brief = self._memory.brief(
                prompt["prompt"], task=f"task_{prompt['id'].lower()}x{self._briefs}", paths=prompt.get("paths") or ()
            )
            considered = {entry["id"]: entry for entry in brief.receipt["considered"]}
            entries = [considered[id] for id in brief.learning_ids]
            said.append(
                Said(prompt, {self._names[one["id"]]: 1.0 if one["trigger"] else one["relevance"] for one in entries})
            )
        return said


def _label(prompt: dict[str, Any], name: str, features: tuple[float, ...]) -> Row:
    if name in prompt["wanted"]:
        return Row(features, 1, 1.0)
    if name in prompt["fine"]:
        return Row(features, 1, FINE_WEIGHT)
    return Row(features, 0, 1.0)


def show_table(
    projects: Sequence[Project],
    shown: Sequence[Project],
    stores: dict[tuple[str, bool], Store],
    bars: Sequence[float],
) -> None:
    """Print what briefs say in each project, with coefficients that were fitted to the others."""
    everything: dict[bool, list[Said]] = {False: [], True: []}
    print("| project | cues | bar | hit | precision | silent | said |\n|---|---|--:|--:|--:|--:|--:|")
    for project in shown:
        fit_to([other for other in projects if other is not project], stores)
        for cues in (False, True):
            said = stores[project.name, cues].brief()
            everything[cues] += said
            show_rows(project.name, cues, bars, said)
    for cues, said in everything.items():
        show_rows("all", cues, bars, said)


def show_rows(name: str, cues: bool, bars: Sequence[float], said: Sequence[Said]) -> None:
    for bar in bars or [0.0]:
        above = [Said(one.prompt, {id: value for id, value in one.ids.items() if value >= bar}) for one in said]
        show_row(name, cues, bar, above)


def show_row(name: str, cues: bool, bar: float, said: Sequence[Said]) -> None:
    asked = [one for one in said if one.prompt["wanted"]]
    unasked = [one for one in said if not one.prompt["wanted"]]
    count = sum(len(one.ids) for one in said)
    good = sum(id in one.prompt["wanted"] + one.prompt["fine"] for one in said for id in one.ids)
    hit = sum(bool(set(one.prompt["wanted"]) & set(one.ids)) for one in asked) / len(asked)
    silent = sum(all(id in one.prompt["fine"] for id in one.ids) for one in unasked) / len(unasked)
    figures = f"{hit:.2f} | {good / max(1, count):.2f} | {silent:.2f} | {count / len(said):.1f}"
    print(f"| {name} | {'yes' if cues else 'no'} | {bar:g} | {figures} |", flush=True)


def fit_to(projects: Sequence[Project], stores: dict[tuple[str, bool], Store]) -> None:
    """Fit the coefficients to some projects; from then on the product uses them."""
    used = [stores[project.name, cues] for project in projects for cues in (False, True)]
    groups = [group for store in used for group in store.groups]
    use(fit([row for group in groups for row in group]))
    strengths = [
        [measure_strength(**cast(Any, dict(zip(FEATURES, row.features, strict=True)))) for row in group]
        for group in groups
    ]
    second = [
        Row((strength, margin), row.wanted, row.weight)
        for group, some in zip(groups, strengths, strict=True)
        for row, strength, margin in zip(group, some, list_margins(some), strict=True)
    ]
    intercept, strength, margin = fit(second)
    coefficients.PROBABILITY_INTERCEPT = round(intercept, 3)
    coefficients.PROBABILITY_STRENGTH = round(strength, 3)
    coefficients.PROBABILITY_MARGIN = round(margin, 3)


def use(values: Sequence[float]) -> None:
    for name, value in zip(("INTERCEPT", *map(str.upper, FEATURES)), values, strict=True):
        setattr(coefficients, name, round(value, 3))


def fit(rows: Sequence[Row]) -> list[float]:
    """Return the coefficients of a logistic regression, the intercept first, by Newton's method."""
    size = len(rows[0].features) + 1
    values = [0.0] * size
    for _ in range(12):
        gradient = [-RIDGE * value for value in values]
        curvature = [[RIDGE * (here == there) for here in range(size)] for there in range(size)]
        for row in rows:
            features = (1.0, *row.features)
            exponent = sum(value * feature for value, feature in zip(values, features, strict=True))
            probability = 1 / (1 + math.exp(-max(-30.0, min(30.0, exponent))))
            error, slope = row.weight * (row.wanted - probability), row.weight * probability * (1 - probability)
            for here, feature in enumerate(features):
                gradient[here] += error * feature
                for there in range(here + 1):
                    curvature[here][there] += slope * feature * features[there]
        for here in range(size):
            for there in range(here):
                curvature[there][here] = curvature[here][there]
        values = [value + step for value, step in zip(values, solve(curvature, gradient), strict=True)]
    return values


def solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Return the solution of linear equations, by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(len(rows)):
        pivot = max(range(column, len(rows)), key=lambda number: abs(rows[number][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for number in range(len(rows)):
            if number != column:
                factor = rows[number][column] / rows[column][column]
                rows[number] = [here - factor * there for here, there in zip(rows[number], rows[column], strict=True)]
    return [row[-1] / row[number] for number, row in enumerate(rows)]


def format_coefficients() -> str:
    names = [name for name in vars(coefficients) if name.isupper()]
    return "\n".join(f"{name} = {getattr(coefficients, name)}" for name in names) + "\n"


def write_coefficients() -> None:
    docstring = COEFFICIENTS.read_text(encoding="utf-8").partition("\n\n")[0]
    COEFFICIENTS.write_text(f"{docstring}\n\n{format_coefficients()}", encoding="utf-8")


if __name__ == "__main__":
    main()
