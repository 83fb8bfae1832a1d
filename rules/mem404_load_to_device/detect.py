"""Checkpoints that ``torch.load`` restores on the device that they were saved from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal

from memlint.sdk import lazy_pattern
from memlint.sdk.project import (
    Analyser,
    Function,
    Summary,
    argument,
    in_tests,
    is_collected,
    is_program,
    names_an_accelerator,
    touches_an_accelerator,
    tree_of,
)
from memlint.sdk.syntax import (
    calls,
    ir,
    kept,
    last_name,
    mentions,
    names_bound_by,
    parts,
    parts_of,
    statement_at,
    text,
    walk_expression,
    walk_statements,
)
from memlint.sdk.values import OutsideCall

from .beside_models import KEEPS, meets_its_model
from .loaded_states import Taken, bound, contains, held_by, load_state_dict, taken_by
from .rule import LoadedToDevice

#: names of checkpoints, and names that may also mean a whole model
_CHECKPOINT = lazy_pattern(
    r"ckpt|checkpoint|check_point|weight|state_?dict|(^|[^a-z])states?($|[^a-z])|pretrain|restor|resum|snapshot"
)
_MODEL = lazy_pattern(r"model|(^|_)(net|network|encoder|decoder|generator|discriminator|backbone)s?($|_)")
#: names of other data in such files, which is on the device of its creation
_DATA = lazy_pattern(
    r"data|feat|embed|emb($|_)|label|cache|split|vocab|tokens?($|_)|token_?id|ind(ex|ices)|mask|stat(s|istics)|graph|edge"
    r"|result|metric|logit|latent|sample|batch|image|video|audio|mel($|_|s)|prompt|target|score|predict|output|hidden"
    r"|activation|history|manifest|meta|log(s?)($|_)|tensors?($|_)|inputs?($|_)|(^|_)args|config|hparams|buffer|replay|prior|class_?weight"
)
_DISTRIBUTED = lazy_pattern(r"init_process_group|DistributedDataParallel|\blocal_rank\b")
#: code of the file that moves data to the host before it is saved
_SAVES_ON_HOST = lazy_pattern(
    r"weights_to_cpu|state_dict_to_cpu|\.cpu\(\)\.state_dict\("
    r"|(:|\] *=) *v(al(ue)?)?(\.detach\(\))?\.cpu\(\)|param\.cpu\(\)"
)
#: code that saves a whole model: ``torch.save(self, path)``
_SAVES_WHOLE = lazy_pattern(
    r"\b(?:torch|t)\.save\(\s*(?:obj\s*=\s*)?(?:self|(?:\w+\.)*(?:\w+_)?(?:model|net|network)(?:\.module)?)\s*,"
)
_FIRST = lazy_pattern(r"main_process|is_main|is_master|is_rank_?(zero|0)|rank\W{0,3} *== *0|rank in \[-1, 0\]")
#: names of schedules, which consist of numbers
_COUNTS = lazy_pattern(r"sched|trainer_state|rng")
_SEVERAL = lazy_pattern(r"dist|ddp|rank|world|multi")
#: methods of a whole tensor or model: nothing is copied out of the loaded object
_OF_ONE = frozenset(
    {"cpu", "to", "cuda", "numpy", "eval", "train", "float", "half", "double", "requires_grad_", "tolist"}
)
_PARTS = frozenset({"state_dict", "children", "modules", "parameters", "named_parameters", "eval", "train", "forward"})
_TAKES = frozenset({"from_pretrained", "Parameter", "register_buffer"})
_READS = frozenset({"items", "keys", "get", "pop", "values"})
CALLS = frozenset({"torch.load"})


def detect(analyser: Analyser, summary: Summary) -> Iterator[LoadedToDevice]:
    """The checkpoints that one function loads without a device."""
    if _is_run_as_test(analyser, summary.function):
        return  # memory does not matter in a test
    for at, call in sorted(summary.notes.outside.items()):
        if call.name != "torch.load" or not _leaves_it_open(summary, call.expr):
            continue
        path = argument(call.expr, 0, "f")
        statement = statement_at(summary.function.body, at)
        if path is None or statement is None:
            continue
        into = load_state_dict(statement, call.expr)
        taken = taken_by(analyser, summary.function, statement, call.expr)
        if not (into is not None or _is_checkpoint(analyser, summary, call, path, statement, taken)):
            continue
        file = summary.module.text
        if "cpu" in text(path, 200).lower() or "cpu" in summary.module.key.lower() or _SAVES_ON_HOST.search(file):
            continue
        if not touches_an_accelerator(analyser, summary):
            continue
        if into is not None and _COUNTS.search(f"{text(into.func)} {text(path, 200)}".lower()):
            continue
        distributed = (
            _DISTRIBUTED.search(file) is not None
            and not any(_is_alone(test) for test in call.tests)
            and not _starts_the_others(summary)
            and not _places_elsewhere(summary, call)
        )
        if not distributed and not meets_its_model(analyser, summary.function, call.expr, statement, taken):
            continue
        given = argument(call.expr, 1, "map_location")
        yield LoadedToDevice(
            site=summary.site(at),
            function=summary.function.qual,
            text=text(call.expr),
            distributed=distributed and "rank" not in text(path, 200).lower(),
            given=summary.site(given.at) if given is not None else None,
            doubt=_doubt(analyser, summary, call.expr, into),
            beside=_beside(taken),
            name=held_by(summary.function, statement),
        )


def _beside(taken: list[Taken]) -> Literal["model", "nothing", "assigned"]:
    """What is on the device together with the checkpoint."""
    if not taken:
        return "nothing"
    return "assigned" if all(one.assigns for one in taken) else "model"


def _is_run_as_test(analyser: Analyser, function: Function) -> bool:
    """Whether only a test runner calls a function, or the function lies in a folder of tests."""
    if is_program(analyser.program, function.module.key):
        return False
    if in_tests(function.module.key):
        return True
    if function.node is None or not function.name.startswith("test_") or not is_collected(function.module.key):
        return False
    return not analyser.facts.calls_of(function)


def _is_alone(test: ir.Expr) -> bool:
    """Whether a test shows that a single process runs this: ``not dist.is_initialized()`` (or the other branch of that
    test), ``is_main_process``."""
    said = text(test, 200).lower()
    if isinstance(test, ir.Unary) and test.op == "not":
        return _SEVERAL.search(said) is not None
    return _FIRST.search(said) is not None


def _starts_the_others(summary: Summary) -> bool:
    """Whether the function starts the processes itself, so that it loads only once."""
    return any(last_name(call.func) == "spawn" for call in calls(summary.function.body))


def _places_elsewhere(summary: Summary, call: OutsideCall) -> bool:
    """Whether another branch gives each process's device: ``if gpu is None: torch.load(path)``."""
    return any(
        isinstance(statement, ir.If)
        and any(statement.test is test for test in call.tests)
        and any(argument(other, 1, "map_location") is not None for other in calls(statement.orelse))
        for statement in walk_statements(summary.function.body, into_definitions=False)
    )


def _leaves_it_open(summary: Summary, expr: ir.Call) -> bool:
    """Whether no device is given: ``map_location`` is missing or None, at least if there is an accelerator."""
    if any(word.name is None for word in expr.keywords) or any(isinstance(arg, ir.Starred) for arg in expr.args):
        return False
    given = argument(expr, 1, "map_location")
    if given is None or _is_none(given):
        return True
    if isinstance(given, ir.IfExp):
        return _asks_for_accelerator(given.test) and _is_none_or_host((given.body, given.orelse))
    return isinstance(given, ir.Name) and _is_none_beside_accelerator(summary, given.id)


def _is_none(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and expr.kind == "None"


def _is_none_or_host(sides: tuple[ir.Expr, ...]) -> bool:
    """Whether one branch is None and each other one the host: ``None if torch.cuda.is_available() else "cpu"``."""
    others = [side for side in sides if not _is_none(side)]
    return len(others) < len(sides) and all(_is_host(side) for side in others)


def _is_host(expr: ir.Expr) -> bool:
    """Whether a ``map_location`` is the host: ``"cpu"``, ``torch.device("cpu")``, ``lambda storage, loc: storage``."""
    if isinstance(expr, ir.Lambda):
        return isinstance(expr.body, ir.Name) and bool(expr.params) and expr.body.id == expr.params[0].name
    if isinstance(expr, ir.Call):
        return last_name(expr.func) == "device" and len(expr.args) == 1 and _is_host(expr.args[0])
    return isinstance(expr, ir.Const) and expr.value == "cpu"


def _asks_for_accelerator(test: ir.Expr) -> bool:
    """Whether a test is for an accelerator: ``torch.cuda.is_available()``, ``not args.use_cuda``."""
    return not isinstance(test, ir.BoolOp) and names_an_accelerator(text(test, 200))


def _is_none_beside_accelerator(summary: Summary, name: str) -> bool:
    """Whether a variable is None, and the host if there is no accelerator, in the same function."""
    if any(param.name == name for param in summary.function.params):
        return False
    given: list[ir.Expr] = []
    guarded: set[int] = set()
    for statement in walk_statements(summary.function.body, into_definitions=False):
        if isinstance(statement, ir.If) and _asks_for_accelerator(statement.test):
            guarded |= {inner.at for inner in (*statement.body, *statement.orelse)}
        if name not in names_bound_by(statement):
            continue
        if not isinstance(statement, ir.Assign) or not all(isinstance(one, ir.Name) for one in statement.targets):
            return False
        if not _is_none(statement.value) and statement.at not in guarded:
            return False
        given.append(statement.value)
    return _is_none_or_host(tuple(given))


# -------------------------------------------------------------------------------------- what is loaded


def _is_checkpoint(
    analyser: Analyser, summary: Summary, call: OutsideCall, path: ir.Expr, statement: ir.Stmt, taken: list[Taken]
) -> bool:
    """Whether names, or the uses of the result, show that parameters are loaded."""
    if _of_one_tensor(statement, call.expr):
        return False
    names = bound(statement)
    if any(name in summary.modules_by_use or _gives_parts(summary, name) for name in names):
        return False  # a whole model has no other one beside it
    if any(_is_loaded_from(summary, call, name) for name in names):
        return False
    if taken or len(names) > 1:
        return bool(taken)  # the members of a record may be anything
    if any(_is_used_itself(summary, name) for name in names):
        return False
    if not any(_is_dictionary(summary, name) for name in names) and _may_be_an_object(analyser, summary, statement):
        return False
    said = " ".join((*names, _words_of(path))).lower()
    if _DATA.search(_last_words(said)):
        return False
    if _CHECKPOINT.search(said):
        return not _is_whole_model(summary, names)
    of_loader = re.search(r"load|restor|resum", summary.function.name.lower()) is not None
    if of_loader and _CHECKPOINT.search(summary.function.name.lower()):
        return (
            not any(_is_own(summary.function, name) for name in names)
            and not _DATA.search(summary.function.name.lower())
            and not _is_whole_model(summary, names)
        )
    named = _MODEL.search(said) is not None
    return named and any(_is_dictionary(summary, name) for name in names)


def _is_own(function: Function, name: str) -> bool:
    """Whether an attribute holds objects that the class creates itself: ``self.seen = []``."""
    cls = function.cls
    if cls is None or not function.takes_self or name.count(".") != 1 or not name.startswith(f"{function.own_name}."):
        return False
    return any(
        isinstance(one, ir.Assign)
        and isinstance(one.value, ir.Display | ir.DictDisplay | ir.Comprehension)
        and any(isinstance(target, ir.Attr) and target.name == name.rpartition(".")[2] for target in one.targets)
        for method in cls.methods.values()
        for one in walk_statements(method.body)
    )


def _may_be_an_object(analyser: Analyser, summary: Summary, statement: ir.Stmt) -> bool:
    """Whether the file may contain a whole model: some code of the project saves one, or a class returns the loaded
    object as its instance."""
    if summary.function.name == "__new__" and isinstance(statement, ir.Return):
        return True
    return _some_file_saves_whole(analyser)


@kept
def _some_file_saves_whole(analyser: Analyser) -> bool:
    """Whether the project saves whole models somewhere."""
    sources, files = analyser.program.project.sources, analyser.program.words.files("save")
    return any(_saves_whole(sources[key].text) for key in files if not in_tests(key))


def _saves_whole(source: str) -> bool:
    """Whether the code of a file, without comments and strings, saves a whole model."""
    if _SAVES_WHOLE.search(source) is None:
        return False
    tree = tree_of(source)
    return tree is None or any(
        isinstance(node, ast.Call) and _SAVES_WHOLE.match(ast.unparse(node)) is not None for node in ast.walk(tree)
    )


def _last_words(said: str) -> str:
    """A name without ``args.`` and the like."""
    return re.sub(r"\b(args|self|config|cfg|opts?|hparams)\.", "", said)


def _words_of(expr: ir.Expr) -> str:
    """The names and strings in a path."""
    inside = list(walk_expression(expr))
    found = [part.id for part in inside if isinstance(part, ir.Name)]
    found += [part.name for part in inside if isinstance(part, ir.Attr)]
    found += [part.value for part in inside if isinstance(part, ir.Const) and isinstance(part.value, str)]
    return " ".join(one for one in found if one not in ("os", "path", "join", "self", "args", "config", "data_dir"))


def _of_one_tensor(statement: ir.Stmt, expr: ir.Call) -> bool:
    """Whether the loaded object is moved at once, or is no dictionary: ``torch.load(path).cpu()``, ``{k: v.cpu() for k,
    v in torch.load(path).items()}``."""
    for part in parts_of(statement):
        if isinstance(part, ir.Attr) and part.value.at == expr.at and part.value is expr and part.name in _OF_ONE:
            return True
        if isinstance(part, ir.Comprehension) and any(contains((one.iter,), expr) for one in part.fors):
            return any(isinstance(inner, ir.Attr) and inner.name in _OF_ONE for inner in walk_expression(part))
    return False


def _gives_parts(summary: Summary, name: str) -> bool:
    """Whether the function calls a model's methods on a name: ``name.state_dict()``, ``name.children()``."""
    attributes = (call.func for call in calls(summary.function.body) if isinstance(call.func, ir.Attr))
    return any(attr.name in _PARTS and text(attr.value, 200) == name for attr in attributes)


def _is_used_itself(summary: Summary, name: str) -> bool:
    """Whether the program works with the loaded tensors themselves: ``Embedding.from_pretrained(weights)``,
    ``table["x"].to(device)``."""
    for call in calls(summary.function.body):
        if last_name(call.func) in _TAKES and any(mentions(arg, name) for arg in call.args):
            return True
        if isinstance(call.func, ir.Attr) and call.func.name in ("to", "cuda") and mentions(call.func.value, name):
            return True
    return False


def _is_loaded_from(summary: Summary, call: OutsideCall, name: str) -> bool:
    """Whether a checkpoint is later loaded from the loaded value: ``args.ckpt = torch.load(args.factor)["ckpt"]``."""
    binding = [one.at for one in walk_statements(summary.function.body) if name in bound(one)]
    paths = {
        at: argument(other.expr, 0, "f") for at, other in summary.notes.outside.items() if other.name == "torch.load"
    }
    return any(
        path is not None
        and call.expr.at < at
        and text(path, 200) == name
        and not any(call.expr.at < between < at for between in binding)
        for at, path in paths.items()
    )


def _is_dictionary(summary: Summary, name: str) -> bool:
    """Whether an object is read by string keys, as no model is."""
    return any(
        text(part.value, 200) == name
        for part in parts(summary.function.body)
        if (isinstance(part, ir.Subscript) and isinstance(part.index, ir.Const) and part.index.kind == "str")
        or (isinstance(part, ir.Attr) and part.name in _READS)
    )


def _is_whole_model(summary: Summary, names: list[str]) -> bool:
    """Whether the loaded object may be a whole pickled model, by its name, and is not read by keys: ``model =
    torch.load(checkpoint)``."""
    return any(
        _MODEL.search(name.rsplit(".", 1)[-1].lower())
        and not _CHECKPOINT.search(name.rsplit(".", 1)[-1].lower())
        and not _is_dictionary(summary, name)
        for name in names
    )


def _doubt(analyser: Analyser, summary: Summary, expr: ir.Call, into: ir.Call | None) -> str:
    """Why another device for the loaded object may change the program, as a clause; "" for no reason."""
    elsewhere = "other values that are read from it are then on the host"
    if into is None or len(into.args) != 1 or into.args[0].at != expr.at or into.args[0] is not expr:
        return elsewhere
    if any(word.name != "strict" for word in into.keywords) or not isinstance(into.func, ir.Attr):
        return elsewhere
    receiver = text(into.func.value, 200)
    last = receiver.rsplit(".", 1)[-1].lower()
    if KEEPS.search(last) or (receiver not in summary.modules_by_use and not _MODEL.search(last)):
        return "its receiver may keep the tensors on the device on which they are loaded"
    if analyser.methods_named("load_state_dict", summary.function):
        return "a `load_state_dict` of this project may keep the tensors on the device on which they are loaded"
    return ""
