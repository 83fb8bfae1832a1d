"""The screen: which modules can matter at all. It never decides a finding, only what need not be looked at."""

from __future__ import annotations

from memlint.flow.program import Program

#: top-level packages whose values are tensors, modules, optimizers or loaders
TORCH_FAMILY = frozenset({
    "torch", "torchvision", "torchaudio", "torchtext", "torchmetrics", "pytorch_lightning", "lightning", "lightning_fabric", "ignite",
    "accelerate", "transformers", "diffusers", "timm", "fairseq", "apex", "deepspeed", "monai", "kornia", "fastai", "dgl", "torch_geometric",
    "pytorch_transformers", "pytorch_pretrained_bert", "peft", "trl", "detectron2", "mmcv", "mmengine", "mmdet", "colossalai", "catalyst",
    "pyro", "botorch", "gpytorch", "stable_baselines3", "segmentation_models_pytorch", "efficientnet_pytorch", "einops", "sentence_transformers",
    "flair", "allennlp", "poutyne", "skorch", "avalanche", "pytorch3d", "open_clip", "clip", "torchdata", "torchrl", "tianshou", "habana_frameworks",
    "xformers", "bitsandbytes", "schedulefree", "composer", "pytorch_forecasting", "torch_scatter", "torch_sparse", "torchtune", "intel_extension_for_pytorch",
})


def relevant_modules(program: Program, keys: list[str]) -> frozenset[str]:
    """Those of ``keys`` that know the torch family, or import (at any distance) a module of the project that does."""
    known: dict[str, bool] = {}

    def knows(key: str, trail: frozenset[str]) -> bool:
        if key in known:
            return known[key]
        if key in trail:
            return False
        index = program.module(key).index
        found = not index.complete or any(item.level == 0 and item.module.split(".", 1)[0] in TORCH_FAMILY for item in index.imports)
        if not found:
            inner = trail | {key}
            for item in index.imports:
                targets = {program.resolve(item.module, key, item.level)}
                if item.name is not None and item.name != "*":
                    dotted = f"{item.module}.{item.name}" if item.module else item.name
                    targets.add(program.resolve(dotted, key, item.level))
                if any(target is not None and target != key and knows(target, inner) for target in targets):
                    found = True
                    break
        if found or not trail:
            known[key] = found
        return found

    return frozenset(key for key in keys if knows(key, frozenset()))
