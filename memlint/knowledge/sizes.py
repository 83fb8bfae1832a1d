"""Which functions and classes of libraries make models whose activations are large."""

from __future__ import annotations

import fnmatch
import functools

from memlint.knowledge import read


@functools.lru_cache(maxsize=1024)
def is_large(maker: str) -> bool:
    """Whether a library's function or class, by its qualified name, makes a model whose activations are large for any
    input: a pretrained transformer, an autoencoder of pictures, a detector."""
    return any(fnmatch.fnmatchcase(maker, name) for row in read("sizes.toml")["large"] for name in row["names"])
