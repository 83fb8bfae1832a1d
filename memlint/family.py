"""What a file must import, reach by imports or name for there to be anything to find in it."""

from __future__ import annotations

from memlint.patterns import lazy_pattern

#: top-level packages whose values are tensors, modules, optimizers or loaders
TORCH_FAMILY = frozenset(
    {
        "torch",
        "torchvision",
        "torchaudio",
        "torchtext",
        "torchmetrics",
        "pytorch_lightning",
        "lightning",
        "lightning_fabric",
        "ignite",
        "accelerate",
        "transformers",
        "diffusers",
        "timm",
        "fairseq",
        "apex",
        "deepspeed",
        "monai",
        "kornia",
        "fastai",
        "dgl",
        "torch_geometric",
        "pytorch_transformers",
        "pytorch_pretrained_bert",
        "peft",
        "trl",
        "detectron2",
        "mmcv",
        "mmengine",
        "mmdet",
        "colossalai",
        "catalyst",
        "pyro",
        "botorch",
        "gpytorch",
        "stable_baselines3",
        "segmentation_models_pytorch",
        "efficientnet_pytorch",
        "einops",
        "sentence_transformers",
        "flair",
        "allennlp",
        "poutyne",
        "skorch",
        "avalanche",
        "pytorch3d",
        "open_clip",
        "clip",
        "torchdata",
        "torchrl",
        "tianshou",
        "habana_frameworks",
        "xformers",
        "bitsandbytes",
        "schedulefree",
        "composer",
        "pytorch_forecasting",
        "torch_scatter",
        "torch_sparse",
        "torchtune",
        "intel_extension_for_pytorch",
    }
)

#: what is done to tensors, modules and optimizers: a file that imports none of these libraries may be given some
TENSOR_WORDS = lazy_pattern(r"\.(?:backward|cpu|cuda|detach_?|eval|item|no_grad|requires_grad_?|zero_grad)\b")
#: methods that a training step calls in torch and in few other frameworks: a file that calls both trains with torch,
#: whatever it imports, unless that is one of the others
TRAINING_CALLS = frozenset({"backward", "zero_grad"})
OTHER_FRAMEWORKS = frozenset(
    {"jittor", "megengine", "micrograd", "mindspore", "minitorch", "oneflow", "paddle", "tinygrad"}
)
