"""Functions, methods and layers of torch by their effect on the shape."""

from __future__ import annotations

#: functions and methods whose result has the shape of their first operand
SAME = frozenset({
    "DoubleTensor", "FloatTensor", "LongTensor", "Tensor", "Variable", "abs", "array", "as_tensor", "asarray",
    "ascontiguousarray", "astype", "bool", "clamp", "clip", "clone", "contiguous", "copy", "cos", "cpu", "cuda",
    "data", "detach", "double", "dropna", "dropout", "elu", "exp", "fillna", "float", "from_numpy", "gelu", "half",
    "int", "leaky_relu", "log", "log1p", "log_softmax", "logsigmoid", "long", "neg", "normalize", "numpy",
    "ones_like", "pow", "rand_like", "randn_like", "relu", "relu_", "requires_grad_", "reset_index", "round",
    "selu", "sigmoid", "silu", "sin", "softmax", "softplus", "sqrt", "square", "tanh", "tensor", "to", "type",
    "type_as", "zeros_like",
})  # fmt: skip
#: layers of torch.nn whose output has the shape of their input
SAME_LAYERS = frozenset({
    "AlphaDropout", "BatchNorm1d", "CELU", "Dropout", "ELU", "GELU", "Hardswish", "Hardtanh", "Identity",
    "LayerNorm", "LeakyReLU", "LogSigmoid", "Mish", "PReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax",
    "Softplus", "Softsign", "Tanh",
})  # fmt: skip
REDUCE = frozenset({"sum", "mean", "amax", "amin", "norm", "std", "var", "prod", "logsumexp", "argmax", "argmin"})
WITH_INDICES = frozenset({"max", "min", "median"})
