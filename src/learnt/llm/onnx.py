"""Sentence models in ONNX, with the packages `onnxruntime` and `tokenizers`.

A model's folder holds `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`, as published sentence models do;
`tools/export_encoder.py` writes one. If the model returns a vector for each token, they are averaged, unless
`1_Pooling/config.json` says that the first one counts.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import threading
from collections.abc import Sequence
from typing import Any

from learnt.errors import ModelFailed
from learnt.system.installation import install_command

_FILES = ("model.onnx", os.path.join("onnx", "model.onnx"))
_MAX_TOKENS = 256
_MAX_THREADS = 4
_SAMPLES, _SAMPLE_BYTES = 64, 4_096
_BATCH = 8
_INPUTS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
_PACKAGES = ("numpy", "onnxruntime", "tokenizers")


class OnnxModel:
    """A sentence model, which is loaded when it is first used."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.expanduser(folder)
        paths = [os.path.join(self._folder, name) for name in _FILES]
        self._path = next((path for path in paths if os.path.isfile(path)), "")
        if not self._path or not os.path.isfile(os.path.join(self._folder, "tokenizer.json")):
            raise ModelFailed(
                f"{self._folder} has no model.onnx and tokenizer.json",
                hint="`tools/export_encoder.py` writes such a folder; see docs/encoders.md",
            )
        self._loading = threading.Lock()
        self._loaded: tuple[Any, Any, Any] | None = None

    def identify(self) -> str:
        """Return a name that is the same for the same model on every machine."""
        size = os.path.getsize(self._path)
        digest = hashlib.sha256(str(size).encode())
        with open(self._path, "rb") as file:
            for number in range(_SAMPLES):
                file.seek(size * number // _SAMPLES)
                digest.update(file.read(_SAMPLE_BYTES))
        return f"{os.path.basename(os.path.normpath(self._folder))}-{digest.hexdigest()[:8]}"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vector of each text."""
        shortest_first = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        vectors: dict[int, list[float]] = {}
        for start in range(0, len(texts), _BATCH):
            places = shortest_first[start : start + _BATCH]  # texts of similar length, because all are padded
            vectors |= zip(places, self._embed([texts[place] for place in places]), strict=True)
        return [vectors[place] for place in range(len(texts))]

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        numpy, tokenizer, session = self._load()
        encodings = tokenizer.encode_batch(list(texts))
        inputs = {
            name: numpy.array([getattr(encoding, column) for encoding in encodings], dtype=numpy.int64)
            for name, column in _INPUTS.items()
        }
        wanted = {one.name for one in session.get_inputs()}
        names = [one.name for one in session.get_outputs()]
        output = "sentence_embedding" if "sentence_embedding" in names else names[0]
        (vectors,) = session.run([output], {name: rows for name, rows in inputs.items() if name in wanted})
        return self._pool(vectors, inputs["attention_mask"]).tolist()  # type: ignore[no-any-return]

    def _pool(self, vectors: Any, mask: Any) -> Any:
        """Return one vector for each text."""
        if vectors.ndim == 2:
            return vectors
        pooling = self._read_settings(os.path.join("1_Pooling", "config.json"))
        if pooling.get("pooling_mode_cls_token"):
            return vectors[:, 0]
        weights = mask[:, :, None].astype(vectors.dtype)
        return (vectors * weights).sum(axis=1) / weights.sum(axis=1).clip(min=1)

    def _load(self) -> tuple[Any, Any, Any]:
        """Return numpy, the tokenizer and the session."""
        with self._loading:
            if self._loaded is None:
                try:
                    numpy, runtime, tokenizers = map(importlib.import_module, _PACKAGES)
                except ImportError as error:
                    reason = f"an ONNX encoder needs a package that cannot be loaded: {error}"
                    raise ModelFailed(reason, hint=install_command("onnx")) from None
                errors: tuple[type[Exception], ...] = (*_errors_of(runtime), OSError, ValueError)
                try:
                    self._loaded = (numpy, self._load_tokenizer(tokenizers), self._load_session(runtime))
                except errors as error:
                    reason = f"the model in {self._folder} cannot be loaded: {error}"
                    raise ModelFailed(reason, hint="export it again; see docs/encoders.md") from None
            return self._loaded

    def _load_tokenizer(self, tokenizers: Any) -> Any:
        tokenizer = tokenizers.Tokenizer.from_file(os.path.join(self._folder, "tokenizer.json"))
        stated = self._read_settings("sentence_bert_config.json").get("max_seq_length")
        tokenizer.enable_truncation(stated if isinstance(stated, int) and stated > 0 else _MAX_TOKENS)
        own = tokenizer.padding or {}
        tokenizer.enable_padding(pad_id=own.get("pad_id", 0), pad_token=own.get("pad_token", "[PAD]"))
        return tokenizer

    def _load_session(self, runtime: Any) -> Any:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = min(_MAX_THREADS, os.cpu_count() or 1)
        return runtime.InferenceSession(self._path, options, providers=["CPUExecutionProvider"])

    def _read_settings(self, name: str) -> dict[str, Any]:
        try:
            with open(os.path.join(self._folder, name), encoding="utf-8") as file:
                content = json.load(file)
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}


def _errors_of(runtime: Any) -> tuple[type[Exception], ...]:
    """Return the runtime's errors, which have no common base."""
    state = runtime.capi.onnxruntime_pybind11_state
    return tuple(one for one in vars(state).values() if isinstance(one, type) and issubclass(one, Exception))
