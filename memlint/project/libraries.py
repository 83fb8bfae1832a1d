"""Names of installed libraries that may also be the name of a project's file beside an importer."""

from __future__ import annotations

# fmt: off
#: libraries that `import name` means even if the importer's folder contains `name.py`
LIBRARIES = frozenset((
    "absl", "accelerate", "albumentations", "apex", "av", "boto3", "bs4", "catalyst", "clearml", "click", "clip",
    "comet_ml", "cupy", "cv2", "dask", "datasets", "deepspeed", "detectron2", "dgl", "diffusers", "dill", "docker",
    "easydict", "einops", "evaluate", "fairscale", "fairseq", "faiss", "fastai", "fastapi", "flash", "flash_attn",
    "flask", "flax", "fsspec", "ftfy", "gensim", "gin", "git", "gradio", "gym", "gymnasium", "h5py", "horovod",
    "hydra", "ignite", "imageio", "imgaug", "jax", "jieba", "joblib", "jsonlines", "keras", "kornia", "librosa",
    "lightgbm", "lightning", "lightning_fabric", "lmdb", "logbook", "loguru", "lpips", "matplotlib", "mlflow",
    "mmcv", "mmdet", "mmengine", "mmseg", "monai", "mpi4py", "msgpack", "munch", "neptune", "networkx", "nltk",
    "nni", "numba", "numpy", "omegaconf", "onnx", "onnxruntime", "open3d", "open_clip", "openai", "optuna",
    "orjson", "pandas", "peft", "pettingzoo", "PIL", "plotly", "polars", "prettytable", "psutil", "pydantic",
    "pytest", "pytorch_lightning", "ray", "regex", "requests", "rich", "rouge", "sacrebleu", "safetensors",
    "scipy", "seaborn", "sentence_transformers", "sentencepiece", "setuptools", "simplejson", "skimage", "sklearn",
    "soundfile", "spacy", "stable_baselines3", "streamlit", "sympy", "tabulate", "tensorboard", "tensorboardX",
    "tensorflow", "termcolor", "tiktoken", "timm", "tokenizers", "torch", "torch_geometric", "torch_scatter",
    "torch_sparse", "torchaudio", "torchdata", "torchmetrics", "torchtext", "torchtune", "torchvision", "tqdm",
    "transformers", "tree", "triton", "trl", "typer", "ujson", "visdom", "vllm", "wandb", "webdataset", "xarray",
    "xformers", "xgboost", "yacs", "yaml", "zarr",
))
# fmt: on
