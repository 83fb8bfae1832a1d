"""What calls do with a value that they are given, as far as its graph goes: see `memlint.fix.safety.watch`."""

from __future__ import annotations

#: what an expression has of a watched value: nothing, something computed from it, the very tensor (or its container)
CLEAN, COMPUTED, ITSELF = range(3)

#: attributes of a tensor that are the same with and without a graph
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
#: attributes that speak of the graph
GRAPH_ATTRIBUTES = frozenset(["grad", "grad_fn", "requires_grad", "is_leaf", "retains_grad", "output_nr", "_version"])
#: methods that need the graph
WANT_GRAPH = frozenset(
    ["backward", "register_hook", "retain_grad", "requires_grad_", "register_post_accumulate_grad_hook"]
)

#: builtins whose result holds nothing of their arguments
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
#: builtins whose result holds their arguments, or what they hold
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

#: builtins that give the text of their argument, in which a tensor names its graph
BUILTINS_THAT_TELL = frozenset(["str", "repr", "format", "ascii"])
#: builtins that run what they are given
BUILTINS_THAT_RUN = frozenset(["map", "filter", "eval", "exec", "compile", "getattr", "__import__"])
#: builtins by which code sees variables that it does not name
BUILTINS_THAT_LOOK = frozenset(["locals", "vars", "globals", "eval", "exec", "dir"])

#: methods of containers that put something in, take it out or count
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
#: calls that make a container
CONTAINERS = frozenset(["list", "dict", "set", "tuple", "defaultdict", "OrderedDict", "Counter", "deque"])
#: calls that make a tensor, or another thing that nobody else holds
MAKES_NEW = frozenset(["zeros", "ones", "full", "empty", "tensor", "zeros_like", "ones_like", "float", "int"])

#: methods of a logger
LOGS = frozenset(["debug", "info", "warning", "warn", "error", "critical", "exception", "log"])

#: outside of the project: what only looks at its arguments
ENDS_OUTSIDE = ("math.", "statistics.", "logging.", "json.", "pprint.", "sys.stdout.write", "sys.stderr.write", "tqdm.")
#: what passes its arguments on, changing nothing
PASSES_OUTSIDE = ("torch.", "itertools.", "copy.", "collections.", "operator.")
#: and what may want the graph, or hands its arguments to somebody else
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

#: bases that add nothing that runs in a forward
PLAIN_BASES = frozenset(
    ["torch.nn.Module", "torch.nn.modules.Module", "?.nn.Module", "?.object", "object", "abc.ABC", "typing.Generic"]
)
#: what switches gradients on and off
SETS_GRAD_MODE = ("torch.set_grad_enabled", "torch.enable_grad", "torch.inference_mode", "torch.hub.")
#: functions that choose another implementation where no gradients are wanted
FASTER_WITHOUT_GRADIENTS = frozenset(["scaled_dot_product_attention", "multi_head_attention_forward"])
#: names of what makes a module run more, or something else, than its code says
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
        "weight_norm",
        "spectral_norm",
        "functional_call",
    ]
)

#: names by which torch's compilers are called
COMPILES = frozenset(["compile", "script", "script_method", "trace_module"])

#: decorators that change neither what a function is given nor what it returns
PLAIN_DECORATORS = frozenset(
    ["staticmethod", "classmethod", "no_grad", "inference_mode", "enable_grad", "torch", "override", "abstractmethod"]
)
