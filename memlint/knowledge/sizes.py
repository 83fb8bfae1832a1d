"""How many parameters a published model has, by its name."""

from __future__ import annotations

import fnmatch
import functools

from memlint.knowledge import read
from memlint.patterns import lazy_pattern

#: a size in a name: "7b", "1.3B", "560m"; what is made of several ("8x7b") or counts samples ("laion2b") is none
_SIZE = lazy_pattern(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")
_EACH = {"b": 1_000_000_000, "m": 1_000_000}
#: classes that load a part of a checkpoint, or none of its parameters
_OF_PART = lazy_pattern(r"Text|Vision|Encoder(?!Decoder)|Tokenizer|Processor|Config|Extractor|Autoencoder|Adapter|Peft")


@functools.lru_cache(maxsize=1024)
def parameters_of(name: str, loader: str) -> int | None:
    """Of a checkpoint's name, such as ``meta-llama/Llama-2-7b-hf``, that a class ``loader`` loads; None for what is not
    known."""
    if _OF_PART.search(loader):
        return None
    own = name.lower().rstrip("/").rsplit("/", 1)[-1]
    for pattern, by, count in _rows("model"):
        if fnmatch.fnmatchcase(own, pattern):
            return count if by in ("", loader) else None
    said = _SIZE.search(own)
    return int(float(said[1]) * _EACH[said[2]]) if said is not None else None


def parameters_made_by(function: str) -> int | None:
    """Of what a library's function makes, by its qualified name."""
    return next((count for name, _, count in _rows("function") if name == function), None)


@functools.cache
def _rows(kind: str) -> tuple[tuple[str, str, int], ...]:
    rows = read("sizes.toml")[kind]
    return tuple((name, raw.get("class", ""), raw["millions"] * 1_000_000) for raw in rows for name in raw["names"])


@functools.lru_cache(maxsize=1024)
def is_large(maker: str) -> bool:
    """Whether a library's function or class, by its qualified name, makes a model whose activations are large for any
    input: a pretrained transformer, an autoencoder of pictures, a detector."""
    return any(fnmatch.fnmatchcase(maker, name) for row in read("sizes.toml")["large"] for name in row["names"])
