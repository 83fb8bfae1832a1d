"""What the Python containers are made of that a function fills from files, as far as its source tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from memlint.flow.program import Function
from memlint.flow.syntax import last_name, text, walk_expression
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

#: ``text``: a string or number; ``pair``: two of them; ``record``: more, in a container of their own; ``parsed``: what
#: a parser of JSON gave, whatever that is; ``whole``: the text of a file; ``texts``, ``pairs``, ``records``: containers
#: of such; ``split``, ``splits``: lists of strings, of which nobody knows how many there are; ``empty``: a new
#: container; ``""``: unknown
Content = Literal[
    "text", "pair", "record", "split", "parsed", "whole", "texts", "pairs", "records", "splits", "empty", ""
]

_HOLDER: Mapping[Content, Content] = {
    "text": "texts", "pair": "pairs", "record": "records", "parsed": "parsed", "texts": "records", "records": "records",
    "split": "splits", "splits": "records",
}  # fmt: skip
_MEMBER: Mapping[Content, Content] = {
    "texts": "text", "pairs": "pair", "records": "record", "record": "text", "pair": "text", "parsed": "parsed",
    "splits": "split", "split": "text",
}  # fmt: skip
#: functions by qualified name, and what they give
_GIVES: Mapping[str, Content] = {
    **{f"{parser}.{name}": "parsed" for parser in ("json", "ujson", "simplejson") for name in ("load", "loads")},
    "orjson.loads": "parsed",
    **dict.fromkeys(("yaml.safe_load", "yaml.load"), "parsed"),
    **dict.fromkeys(("csv.DictReader", "jsonlines.open", "jsonlines.Reader"), "records"),
    "csv.reader": "splits",
    **dict.fromkeys(("os.listdir", "glob.glob", "glob.iglob", "linecache.getlines"), "texts"),
    **dict.fromkeys(("collections.defaultdict", "collections.OrderedDict"), "empty"),
    "pathlib.Path": "text",
    "io.open": "texts",
    "codecs.open": "texts",
    "gzip.open": "texts",
}  # fmt: skip
#: of these, what reads the content of a file
_READS = lazy_pattern(r"json|yaml|csv|open$|getlines$")
_BUILTINS: Mapping[str, Content] = {
    **dict.fromkeys(("int", "float", "str", "len", "round", "bool", "abs", "ord", "hash"), "text"),
    **dict.fromkeys(("range", "open"), "texts"),
    **dict.fromkeys(("list", "dict", "set", "tuple"), "empty"),
}
#: what gives the members of its argument, in some order
_SAME = frozenset({"list", "tuple", "set", "sorted", "reversed", "iter", "tqdm", "track", "progress_bar"})
#: methods that only strings have, and what they give
_OF_STRINGS: Mapping[str, Content] = {
    **dict.fromkeys(
        ("strip", "rstrip", "lstrip", "lower", "upper", "replace", "zfill", "removeprefix", "removesuffix"), "text"
    ),
    **dict.fromkeys(("startswith", "endswith", "as_posix", "resolve", "absolute", "with_suffix"), "text"),
    **dict.fromkeys(("readlines", "splitlines", "glob", "rglob", "iterdir"), "texts"),
    **dict.fromkeys(("iterrows", "itertuples"), "parsed"),
}  # fmt: skip
#: what ``split()`` gives
_SPLIT: Mapping[Content, Content] = {"whole": "texts", "text": "split"}
#: what a round of ``os.walk`` gives
_WALKED: tuple[Content, ...] = ("text", "texts", "texts")
_MAX_CALLS = 3
#: containers of which each sample may have several objects
MANY: tuple[Content, ...] = ("records", "splits", "parsed")
Places = dict[str, Content]


class Contents:
    """What a function puts into its variables and its object's attributes, by their text (``rows``, ``self.rows``).

    ``made``: the statement that made a place what it is; ``reads``: the content of a file goes into something.
    """

    def __init__(
        self, analyser: Analyser, function: Function, given: Places | None = None, called: tuple[str, ...] = ()
    ) -> None:
        self._analyser = analyser
        self._function = function
        self._called = (*called, function.qual)
        self.places: Places = dict(given or {})
        self.made: dict[str, int] = {}
        self.returned: Content = "empty"
        self.reads = False
        self._shared = {param.name for param in function.params}
        self._block(function.body)

    # ------------------------------------------------------------------------------------ statements

    def _block(self, body: tuple[ir.Stmt, ...]) -> None:
        for statement in body:
            handle = _STATEMENTS.get(type(statement))
            if handle is not None:
                handle(self, statement)

    def _branches(self, *bodies: tuple[ir.Stmt, ...]) -> None:
        """Blocks of which one runs: a place is what some path makes of it, if that is many records."""
        before, ends = dict(self.places), []
        for body in bodies:
            self.places = dict(before)
            self._block(body)
            ends.append(self.places)
        self.places = {}
        for place in {name for end in ends for name in end}:
            found = {end.get(place, "") for end in ends}
            many = [one for one in MANY if one in found]
            known = found - {"empty"}
            self.places[place] = many[0] if many else known.pop() if len(known) == 1 else "empty" if not known else ""

    def _if(self, statement: ir.If) -> None:
        self._branches(statement.body, statement.orelse)

    def _for(self, statement: ir.For) -> None:
        self._bind_member(statement.target, statement.iter, statement.at)
        self._block(statement.body)
        self._block(statement.orelse)

    def _while(self, statement: ir.While) -> None:
        self._block(statement.body)

    def _with(self, statement: ir.With) -> None:
        for item in statement.items:
            content = self.content(item.context)
            if item.target is not None:
                self._bind(item.target, content, statement.at)
        self._block(statement.body)

    def _try(self, statement: ir.Try) -> None:
        self._block((*statement.body, *statement.orelse))
        before = dict(self.places)
        for handler in statement.handlers:
            self._block(handler.body)
        self.places = before
        self._block(statement.final)

    def _assign(self, statement: ir.Assign) -> None:
        for target in statement.targets:
            if isinstance(target, ir.Subscript):
                self._put(target.value, self.content(statement.value), statement.at)
            elif isinstance(target, ir.Display) and isinstance(statement.value, ir.Display):
                for part, value in zip(target.elements, statement.value.elements, strict=False):
                    self._bind(part, self.content(value), statement.at)
            else:
                self._bind(target, self.content(statement.value), statement.at)

    def _annotated(self, statement: ir.AnnAssign) -> None:
        if statement.value is not None:
            self._bind(statement.target, self.content(statement.value), statement.at)

    def _augmented(self, statement: ir.AugAssign) -> None:
        if isinstance(statement.value, ir.Display) and statement.op == "+":
            for part in statement.value.elements:
                self._put(statement.target, self.content(part), statement.at)
            return
        added = self.content(statement.value)
        place = text(statement.target, 200)
        if statement.op == "+" and self.places.get(place) in ("empty", added) and added in MANY:
            self._bind(statement.target, added, statement.at)
        elif added != "text" and self.places.get(place) != added:
            self.places[place] = ""

    def _expression(self, statement: ir.ExprStmt) -> None:
        call = statement.value
        if not isinstance(call, ir.Call) or not isinstance(call.func, ir.Attr) or not call.args:
            return
        if call.func.name in ("append", "add"):
            self._put(call.func.value, self.content(call.args[0]), statement.at)
        elif call.func.name in ("extend", "update"):
            held = self.content(call.args[0])
            self._put(call.func.value, _MEMBER.get(held, ""), statement.at)

    def _return(self, statement: ir.Return) -> None:
        found = self.content(statement.value) if statement.value is not None else "empty"
        if self.returned not in MANY:
            self.returned = found

    def _delete(self, statement: ir.Delete) -> None:
        for target in statement.targets:
            self.places.pop(text(target, 200), None)

    # ------------------------------------------------------------------------------------ places

    def _bind(self, target: ir.Expr, content: Content, at: int) -> None:
        if isinstance(target, ir.Display):
            for part in target.elements:
                self._bind(part, _MEMBER.get(content, ""), at)
        elif isinstance(target, ir.Name | ir.Attr):
            place = text(target, 200)
            self._shared.discard(place)
            self.places[place] = content
            self.made[place] = at

    def _bind_member(self, target: ir.Expr, source: ir.Expr, at: int) -> None:
        """The target of a loop over something."""
        name = last_name(source.func) if isinstance(source, ir.Call) else ""
        args = source.args if isinstance(source, ir.Call) else ()
        parts = target.elements if isinstance(target, ir.Display) else ()
        if name in ("tqdm", "track") and args:
            self._bind_member(target, args[0], at)
        elif name == "enumerate" and len(parts) == 2 and args:
            self._bind(parts[0], "text", at)
            self._bind_member(parts[1], args[0], at)
        elif name == "zip" and len(parts) == len(args):
            for part, arg in zip(parts, args, strict=True):
                self._bind_member(part, arg, at)
        elif name == "walk" and len(parts) == 3:
            for part, content in zip(parts, _WALKED, strict=True):
                self._bind(part, content, at)
        elif name in ("items", "iterrows") and len(parts) == 2 and isinstance(source, ir.Call):
            held = self.content(source.func.value) if name == "items" and isinstance(source.func, ir.Attr) else "parsed"
            self._bind(parts[0], "text", at)
            self._bind(parts[1], _MEMBER.get(held, ""), at)
        else:
            self._bind(target, _MEMBER.get(self.content(source), ""), at)

    def _put(self, container: ir.Expr, content: Content, at: int) -> None:
        """Something goes into a container, or into one that is in a container."""
        if (
            isinstance(container, ir.Call)
            and isinstance(container.func, ir.Attr)
            and container.func.name == "setdefault"
        ):
            self._put(container.func.value, _HOLDER.get(content, ""), at)
            return
        if isinstance(container, ir.Subscript):
            self._put(container.value, _HOLDER.get(content, ""), at)
            return
        place = text(container, 200)
        held = _HOLDER.get(content, "")
        known = self.places.get(place, "")
        if known in ("empty", held):
            if known != held or place not in self.made:
                self.made[place] = at
            self.places[place] = held
        elif known in MANY and held in MANY:
            self.places[place] = "records"
        elif place in self.places:
            self.places[place] = ""

    # ------------------------------------------------------------------------------------ expressions

    def content(self, expr: ir.Expr) -> Content:
        """What an expression is."""
        tell = _EXPRESSIONS.get(type(expr))
        return tell(self, expr) if tell is not None else ""

    def _constant(self, expr: ir.Const) -> Content:
        return "empty" if expr.kind == "None" else "text"

    def _plain(self, expr: ir.Expr) -> Content:
        return "text"

    def _place(self, expr: ir.Name | ir.Attr) -> Content:
        found = self.places.get(text(expr, 200))
        if found is None and isinstance(expr, ir.Attr):
            base = self.content(expr.value)  # ``row.name``, ``path.stem``
            return base if base in ("text", "parsed") else ""
        return found or ""

    def _subscript(self, expr: ir.Subscript) -> Content:
        held = self.content(expr.value)
        if isinstance(expr.index, ir.Slice):
            return held
        return held if held == "text" else _MEMBER.get(held, "")

    def _display(self, expr: ir.Display) -> Content:
        return self._several(list(expr.elements))

    def _dictionary(self, expr: ir.DictDisplay) -> Content:
        if any(key is None for key in expr.keys):
            return ""
        return self._several(list(expr.values), least=1)

    def _several(self, parts: list[ir.Expr], least: int = 3) -> Content:
        """A container that is written down. What is the same in each round of the loops around takes no room."""
        if not parts:
            return "empty"
        found = [self.content(part) or self._outside_loops(part) for part in parts]
        if "" in found:
            return ""
        nested = any(one in ("record", "split", "texts", "pair", "records", "splits") for one in found)
        return "record" if nested or len(parts) >= least else "pair" if len(parts) == 2 else "text"

    def _outside_loops(self, part: ir.Expr) -> Content:
        names = [one.id for one in walk_expression(part) if isinstance(one, ir.Name)]
        plain = isinstance(part, ir.Name | ir.Attr)
        return "text" if plain and all(name in self._shared for name in names) else ""

    def _choice(self, expr: ir.IfExp) -> Content:
        return self._either(expr.body, expr.orelse)

    def _bool(self, expr: ir.BoolOp) -> Content:
        return self._either(expr.left, expr.right)

    def _either(self, *sides: ir.Expr) -> Content:
        found = {self.content(side) for side in sides} - {"empty"}
        return "empty" if not found else found.pop() if len(found) == 1 else ""

    def _binary(self, expr: ir.Binary) -> Content:
        found = {self.content(expr.left), self.content(expr.right)}
        if "whole" in found or "text" in found:
            return "text" if found <= {"text", "parsed", "whole", ""} else ""
        found -= {"empty"}
        return found.pop() if len(found) == 1 else ""

    def _comprehension(self, expr: ir.Comprehension) -> Content:
        before = dict(self.places)
        for one in expr.fors:
            self._bind_member(one.target, one.iter, expr.at)
        found = self.content(expr.element)
        self.places = before
        return _HOLDER.get(found, "")

    def _call(self, expr: ir.Call) -> Content:
        program = self._analyser.program
        kind, what = program.find_expression(self._function.module, expr.func, self._function)
        if kind == "function" and what is not None:
            return self._result(what, expr, 0)
        name = str(what) if kind == "ext" else ""
        if name in _GIVES:
            self.reads = self.reads or _READS.search(name) is not None
            return _GIVES[name]
        last = last_name(expr.func)
        if name.startswith(("os.path.", "posixpath.")):
            return "text"
        if isinstance(expr.func, ir.Name) and kind in ("none", "ext"):
            if last in _SAME and expr.args:
                return self.content(expr.args[0])
            if last == "zip":
                return "pairs" if len(expr.args) == 2 else "records" if all(map(self.content, expr.args)) else ""
            self.reads = self.reads or last == "open"
            return _BUILTINS.get(last, "")
        if isinstance(expr.func, ir.Attr):
            return self._method(expr, expr.func)
        return ""

    def _method(self, expr: ir.Call, func: ir.Attr) -> Content:
        own = self._function.own_name
        if isinstance(func.value, ir.Name) and func.value.id == own and self._function.cls is not None:
            method = self._analyser.program.method(self._function.cls, func.name)
            return self._result(method, expr, 1 if method.takes_self else 0) if method is not None else ""
        held = self.content(func.value)
        if func.name in ("to_dict", "tolist"):
            return _table(expr, func)
        if func.name in ("read", "read_text"):
            return "whole"
        if func.name == "split":
            return _SPLIT.get(held, "")
        if func.name == "open":
            self.reads = True
            return "texts"
        if func.name in ("iterrows", "itertuples", "readlines", "splitlines", "read_text"):
            self.reads = True
        if func.name in ("strip", "rstrip") and held == "whole":
            return "whole"
        if func.name in _OF_STRINGS:
            return _OF_STRINGS[func.name]
        if func.name in ("format", "join") and (held == "text" or isinstance(func.value, ir.Const)):
            return "text"
        if func.name in ("get", "pop"):
            return _MEMBER.get(held, "")
        return {"values": held, "copy": held, "keys": "texts", "items": held}.get(func.name, "")

    def _result(self, function: Function, call: ir.Call, skipped: int) -> Content:
        """What a function of the project returns."""
        if len(self._called) > _MAX_CALLS or function.qual in self._called or function.is_generator:
            return ""
        names = [param.name for param in function.params[skipped:]]
        given: Places = dict(zip(names, map(self.content, call.args), strict=False))
        given.update(
            {word.name: self.content(word.value) for word in call.keywords if word.name in names and word.name}
        )
        inner = Contents(self._analyser, function, given, self._called)
        self.reads = self.reads or inner.reads
        return inner.returned


def _table(expr: ir.Call, func: ir.Attr) -> Content:
    """``frame.to_dict("records")``, ``frame.values.tolist()``: as Python objects, row by row."""
    if func.name == "tolist":
        return "records" if isinstance(func.value, ir.Attr) and func.value.name == "values" and not isinstance(
            func.value.value, ir.Subscript) else ""  # fmt: skip
    words = [*expr.args, *(word.value for word in expr.keywords)]
    return "records" if any(isinstance(one, ir.Const) and one.value == "records" for one in words) else ""


_STATEMENTS: Mapping[type, Callable[[Contents, Any], None]] = {
    ir.If: Contents._if,
    ir.For: Contents._for,
    ir.While: Contents._while,
    ir.With: Contents._with,
    ir.Try: Contents._try,
    ir.Assign: Contents._assign,
    ir.AnnAssign: Contents._annotated,
    ir.AugAssign: Contents._augmented,
    ir.ExprStmt: Contents._expression,
    ir.Return: Contents._return,
    ir.Delete: Contents._delete,
}
_EXPRESSIONS: Mapping[type, Callable[[Contents, Any], Content]] = {
    ir.Const: Contents._constant,
    ir.FormattedString: Contents._plain,
    ir.Compare: Contents._plain,
    ir.Name: Contents._place,
    ir.Attr: Contents._place,
    ir.Subscript: Contents._subscript,
    ir.Display: Contents._display,
    ir.DictDisplay: Contents._dictionary,
    ir.IfExp: Contents._choice,
    ir.BoolOp: Contents._bool,
    ir.Binary: Contents._binary,
    ir.Comprehension: Contents._comprehension,
    ir.Call: Contents._call,
}
