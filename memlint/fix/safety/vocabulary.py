"""The effects of known calls on the graph of an argument (see `memlint.fix.safety.watch`)."""

from __future__ import annotations

from memlint.patterns import lazy_pattern

#: the share of a tracked value in an expression: nothing, something computed from it, the tensor itself (or its
#: container)
CLEAN, COMPUTED, ITSELF = range(3)

#: attributes of a tensor that do not depend on its graph
PLAIN_ATTRIBUTES = frozenset(
    [
        "shape",
        "device",
        "dtype",
        "ndim",
        "is_cuda",
        "layout",
        "itemsize",
        "nbytes",
        "data",
        "is_sparse",
        "is_quantized",
        "names",
        "__class__",
    ]
)
#: attributes that depend on the graph
GRAPH_ATTRIBUTES = frozenset(["grad", "grad_fn", "requires_grad", "is_leaf", "retains_grad", "output_nr", "_version"])
#: methods that need the graph
WANT_GRAPH = frozenset(
    ["backward", "register_hook", "retain_grad", "requires_grad_", "register_post_accumulate_grad_hook"]
)

#: builtins whose result contains nothing of their arguments
BUILTINS_THAT_END = frozenset(
    [
        "float",
        "int",
        "bool",
        "len",
        "print",
        "isinstance",
        "type",
        "range",
        "round",
        "complex",
        "hasattr",
        "callable",
        "hash",
        "bytes",
    ]
)
#: builtins whose result contains their arguments, or the members of those
BUILTINS_THAT_PASS = frozenset(
    [
        "sum",
        "min",
        "max",
        "abs",
        "sorted",
        "list",
        "tuple",
        "set",
        "frozenset",
        "dict",
        "zip",
        "enumerate",
        "reversed",
        "iter",
        "next",
        "divmod",
        "pow",
        "any",
        "all",
    ]
)

#: builtins that return the text of their argument, which shows a tensor's graph
BUILTINS_THAT_TELL = frozenset(["str", "repr", "format", "ascii"])
#: builtins that call their argument, or code in it
BUILTINS_THAT_RUN = frozenset(["map", "filter", "eval", "exec", "compile", "getattr", "__import__"])
#: builtins that read variables without naming them
BUILTINS_THAT_LOOK = frozenset(["locals", "vars", "globals", "eval", "exec", "dir"])

#: methods of containers that add, remove or count members
PUTS = frozenset(
    [
        "append",
        "extend",
        "insert",
        "add",
        "appendleft",
        "extendleft",
        "put",
        "put_nowait",
        "update",
        "setdefault",
        "push",
    ]
)
CONTAINER_ENDS = frozenset(["clear", "remove", "discard", "sort", "reverse", "index", "count", "keys", "rotate"])
CONTAINER_READS = frozenset(
    ["items", "values", "get", "pop", "popleft", "popitem", "copy", "most_common", "elements", "get_nowait"]
)
#: calls that create a container
CONTAINERS = frozenset(["list", "dict", "set", "tuple", "defaultdict", "OrderedDict", "Counter", "deque"])
#: calls that create a tensor or another object that is not shared
MAKES_NEW = frozenset(["zeros", "ones", "full", "empty", "tensor", "zeros_like", "ones_like", "float", "int"])

#: methods of strings, files, progress bars and summary writers that no other object has
METHODS_OF_OTHERS = frozenset(
    [
        "upper",
        "lower",
        "title",
        "strip",
        "lstrip",
        "rstrip",
        "ljust",
        "rjust",
        "zfill",
        "format",
        "join",
        "startswith",
        "endswith",
        "split",
        "rsplit",
        "splitlines",
        "write",
        "writelines",
        "set_postfix",
        "set_postfix_str",
        "set_description",
        "add_scalar",
        "add_scalars",
        "add_image",
        "add_images",
        "add_figure",
        "add_text",
    ]
)
#: methods of a logger
LOGS = frozenset(["debug", "info", "warning", "warn", "error", "critical", "exception", "log"])

#: external functions that only read their arguments
ENDS_OUTSIDE = ("math.", "statistics.", "logging.", "json.", "pprint.", "sys.stdout.write", "sys.stderr.write", "tqdm.")
#: external functions that pass their arguments on unchanged
PASSES_OUTSIDE = ("torch.", "itertools.", "copy.", "collections.", "operator.")
#: external functions that may need the graph, or pass their arguments to other code
WANTS_OUTSIDE = (
    "torch.autograd.",
    "torch.distributed.",
    "torch.save",
    "torch.utils.",
    "torch.nn.parallel.",
    "torch.func.",
    "torch.multiprocessing.",
    "torch.jit.",
    "torch.onnx.",
    "torch.optim.",
    "torch.nn.utils.",
    "torch.vmap",
    "torch.compile",
    "torch.hub.",
    "copy.deepcopy",
)

#: external functions that detach what they show or write, or compute without gradients
SHOWS_OUTSIDE = ("torchvision.utils.make_grid", "torchvision.utils.save_image", "wandb.log", "wandb.Image")
#: external functions and classes that neither run code of the project nor depend on grad mode, nor do their results
SAME_OUTSIDE = (
    *SHOWS_OUTSIDE,
    *ENDS_OUTSIDE,
    "numpy.",
    "time.",
    "random.",
    "os.",
    "re.",
    "csv.",
    "glob.",
    "shutil.",
    "pathlib.",
    "datetime.",
    "warnings.",
    "sys.exit",
    "tqdm",
    "matplotlib.pyplot.",
    "PIL.",
    "cv2.",
    "imageio.",
    "skimage.",
    "pandas.",
    "sklearn.metrics.",
    "torchvision.transforms.",
    "torch.utils.data.",
    "torch.utils.tensorboard.",
    "tensorboardX.",
    "wandb.finish",
)
#: makers of such objects by their names
_SAME_OBJECTS = lazy_pattern(r"transformers\.\w*(Tokenizer|Processor|FeatureExtractor)\w*\.from_pretrained$")
#: functions and methods among them that run what they are given
RUNS_GIVEN = frozenset(
    [
        "accumulate",
        "add_graph",
        "agg",
        "aggregate",
        "apply",
        "apply_along_axis",
        "apply_over_axes",
        "apply_parallel",
        "applymap",
        "call",
        "dropwhile",
        "eval",
        "filterfalse",
        "fromfunction",
        "frompyfunc",
        "groupby",
        "make_scorer",
        "map",
        "pairwise_distances",
        "piecewise",
        "pipe",
        "point",
        "starmap",
        "sub",
        "subn",
        "takewhile",
        "transform",
        "vectorize",
    ]
)
#: classes among them whose objects run what their constructors are given
COMPOSED = frozenset(["Compose", "RandomApply", "RandomChoice", "RandomOrder"])

#: functions that switch gradients on and off
SETS_GRAD_MODE = ("torch.set_grad_enabled", "torch.enable_grad", "torch.inference_mode", "torch.hub.")
#: functions that use another implementation without gradients
FASTER_WITHOUT_GRADIENTS = frozenset(["scaled_dot_product_attention", "multi_head_attention_forward"])
#: names of functions that make a module run other code than its class
CHANGES_MODULES = frozenset(
    [
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
        "register_backward_hook",
        "register_module_forward_hook",
        "register_module_forward_pre_hook",
        "register_parametrization",
        "set_submodule",
        "add_module",
        "register_module",
        "_modules",
        "weight_norm",
        "spectral_norm",
        "functional_call",
    ]
)

#: methods that an iteration runs, and what in them needs gradients
GIVES_ITEMS = frozenset(["__getitem__", "__getitems__", "__iter__", "__next__"])
NEEDS_GRADIENTS = frozenset(["backward", "autograd", "enable_grad", "is_grad_enabled", "requires_grad_"])

#: names of torch's compilers
COMPILES = frozenset(["compile", "script", "script_method", "trace_module"])


def is_same_outside(name: str) -> bool:
    """Whether a library's function or class does the same whether autograd records or not, and so do the objects that
    it makes."""
    return name.startswith(SAME_OUTSIDE) or _SAME_OBJECTS.match(name) is not None
