"""Programs of one kind in several sizes: statements and expressions of one function."""

from __future__ import annotations

import re
from collections.abc import Callable

HEAD = "import torch\nimport torch.nn as nn\n"
LOOP = """
def train(model, loader, opt):
    total = 0
    for x, y in loader:
        loss = model(x).sum()
        loss.backward()
        opt.step()
        total += loss
    return total
"""
Make = Callable[[int], dict[str, str]]
FAMILIES: dict[str, tuple[Make, tuple[int, ...]]] = {}


def family(*sizes: int) -> Callable[[Callable[[int], str | dict[str, str]]], Make]:
    """Enter what makes the programs of a family: one file, or several by name."""

    def enter(make: Callable[[int], str | dict[str, str]]) -> Make:
        def files(n: int) -> dict[str, str]:
            made = make(n)
            return {"m.py": HEAD + made} if isinstance(made, str) else {key: HEAD + text for key, text in made.items()}

        FAMILIES[make.__name__] = files, sizes
        return files

    return enter


def training(
    *body: str, before: tuple[str, ...] = (), step: tuple[str, ...] = ("loss.backward()", "opt.step()")
) -> str:
    """A training loop with more statements in each round, and before the first one."""
    head = ["    total = 0", *(f"    {line}" for line in before), "    for x, y in loader:"]
    inside = ["        loss = model(x).sum()", *(f"        {line}" for line in (*step, *body))]
    return "\n".join(["\ndef train(model, loader, opt):", *head, *inside, "    return total\n"])


def each(n: int, line: str) -> tuple[str, ...]:
    """A line (or several) for each number, which stands in it as ``@``, and the one after it as ``^``."""
    return tuple(part for i in range(n) for part in line.replace("@", str(i)).replace("^", str(i + 1)).split("\n"))


def text(n: int, lines: str) -> str:
    return "\n".join(each(n, lines)) + "\n"


# ------------------------------------------------------------------------------- statements in one function


@family(250, 500, 1000, 2000)
def withs_in_a_row(n: int) -> str:
    return training(*each(n, "with torch.no_grad():\n    a@ = model(x)"))


@family(250, 500, 1000, 2000)
def tries_in_a_row(n: int) -> str:
    return training(*each(n, "try:\n    a@ = model(x)\nexcept ValueError:\n    a@ = None"))


@family(100, 200, 400, 800)
def loops_in_a_row(n: int) -> str:
    return training(*each(n, "for z@ in range(3):\n    a@ = model(z@)"))


@family(100, 200, 400, 800)
def loops_in_a_function(n: int) -> str:
    return (
        "\ndef t(model, loader):\n    total = 0\n"
        + text(n, "    for x@ in loader:\n        total += model(x@)")
        + "    return total\n"
    )


@family(250, 500, 1000, 2000)
def ifs_in_a_row(n: int) -> str:
    return training(*each(n, "if c@:\n    total = total + loss"))


@family(250, 500, 1000, 2000)
def ifs_of_one_test(n: int) -> str:
    return training(*each(n, "if c:\n    a@ = model(x)\nelse:\n    a@ = loss"))


@family(250, 500, 1000, 2000)
def ifs_that_store(n: int) -> str:
    return training(*each(n, "if c@:\n    kept@.append(loss)"), before=each(n, "kept@ = []"))


@family(100, 200, 400, 800)
def elifs_that_store(n: int) -> str:
    return training("if c: pass", *each(n, "elif y == @: total += loss"))


@family(250, 500, 1000)
def elifs_that_bind(n: int) -> str:
    return training("if c: pass", *each(n, "elif y == @: a@ = model(x)"))


@family(250, 500, 1000)
def elifs_at_the_top(n: int) -> str:
    return (
        "\ndef pick(k, x):\n    if k == -1: return x\n"
        + text(n, "    elif k == @: return x + @")
        + "    return x\n"
        + LOOP
    )


@family(250, 500, 1000)
def cases(n: int) -> str:
    return (
        "\ndef t(model, loader, k):\n    total = 0\n    for x in loader:\n        match x:\n"
        + text(n, "            case @: total = total + model(x)")
        + "    return total\n"
    )


@family(250, 500, 1000)
def stores_in_a_row(n: int) -> str:
    return training(*each(n, "kept@.append(loss)"), before=each(n, "kept@ = []"))


@family(250, 500, 1000)
def stores_in_one_list(n: int) -> str:
    return training(*each(n, "kept.append(loss * @)"), before=("kept = []",))


@family(250, 500, 1000)
def stores_by_key(n: int) -> str:
    return training(*each(n, "kept['a@'] = kept['a@'] + loss"), before=("kept = {}",))


@family(250, 500, 1000)
def sums_in_a_row(n: int) -> str:
    return training(*each(n, "a@ = a@ + loss"), before=each(n, "a@ = 0"))


@family(250, 500, 1000)
def updates_in_a_row(n: int) -> str:
    return (
        "\n@torch.no_grad()\ndef t(model, loader, p):\n"
        + text(n, "    a@ = torch.zeros(9)")
        + "    for x in loader:\n"
        + text(n, "        a@ = a@ * 0.9 + x")
        + "    return a0\n"
    )


@family(250, 500, 1000)
def concatenations_in_a_row(n: int) -> str:
    return (
        "\ndef t(model, loader, p):\n"
        + text(n, "    a@ = torch.zeros(9)")
        + "    for x in loader:\n"
        + text(n, "        a@ = torch.cat([a@, model(x)])")
        + "    return a0\n"
    )


@family(100, 200, 400, 800)
def backwards_in_a_row(n: int) -> str:
    return training(*each(n, "loss@ = model(x).sum()\nloss@.backward()\ntotal += loss@"))


@family(100, 200, 400, 800)
def backwards_under_tests(n: int) -> str:
    return training(*each(n, "if c@:\n    loss@ = model(x).sum()\n    loss@.backward()\n    total += loss@"))


@family(250, 500, 1000, 2000)
def allocations_in_a_row(n: int) -> str:
    return training(*each(n, "a@ = torch.zeros(@, 10).cuda()\nb@ = loss.item() + a@"))


@family(250, 500, 1000)
def asserts(n: int) -> str:
    return training(*each(n, "assert x.shape[0] == @, f'{x}'"))


@family(100, 200, 400, 800)
def breaks(n: int) -> str:
    return training(*each(n, "if c@:\n    total += loss\n    break"))


@family(100, 200, 400, 800)
def continues(n: int) -> str:
    return training(*each(n, "if c@:\n    kept.append(loss)\n    continue"), before=("kept = []",))


@family(100, 200, 400, 800)
def returns(n: int) -> str:
    return (
        "\ndef t(model, x):\n"
        + text(n, "    if x.a@:\n        return model(x) + @")
        + "    return x\n"
        + LOOP.replace("model(x).sum()", "t(model, x)")
    )


@family(100, 200, 400, 800)
def unpackings(n: int) -> str:
    return training(*each(n, "a@, (b@, c@) = model(x), (loss, x)"))


@family(250, 500, 1000)
def deletions(n: int) -> str:
    return training(*each(n, "a@ = model(x)\ndel a@"))


@family(20_000, 40_000, 80_000, 160_000)
def long_names(n: int) -> str:
    words = {"total": "_a", "loss": "attr", "model": "model_", "opt": "é", "x": "n_", "train": "step"}
    made = LOOP + '\nif __name__ == "__main__":\n    train(nn.Linear(1, 1), [], None)\n'
    for word, stem in words.items():
        made = re.sub(rf"\b{word}\b", word + stem * (n // len(stem)), made)
    return made


# ------------------------------------------------------------------------------------ expressions


@family(50, 100, 200, 400)
def long_conditions(n: int) -> str:
    return training("if " + " and ".join(each(n, "c@(x)")) + ":\n            total += loss")


@family(50, 100, 200, 400)
def long_alternatives(n: int) -> str:
    return training("a = " + " or ".join(each(n, "model@(x)")))


@family(50, 100, 200)
def chained_calls(n: int) -> str:
    return training("a = model(x)" + "".join(each(n, ".view(@)")))


@family(50, 100, 200)
def chained_unknown_calls(n: int) -> str:
    return training("a = x" + "".join(each(n, ".m@(loss)")))


@family(25, 50, 100, 180)
def nested_calls(n: int) -> str:
    return training("a = " + "torch.relu(" * n + "model(x)" + ")" * n)


@family(10, 20, 40, 80)
def nested_comprehensions(n: int) -> str:
    return training("a = " + "[" * n + "model(x)" + "".join(each(n, " for i@ in y]")))


@family(5, 10, 20, 40)
def comprehension_of_many_loops(n: int) -> str:
    return training("a = [model(x)" + "".join(each(n, " for i@ in y if i@")) + "]")


@family(250, 500, 1000, 2000)
def many_comprehensions(n: int) -> str:
    return training(*each(n, "a@ = [model(z) for z in x]"))


@family(250, 500, 1000, 2000)
def many_lambdas(n: int) -> str:
    return training(*each(n, "f@ = lambda z: model(z) + loss"))


@family(250, 500, 1000, 2000)
def called_lambdas(n: int) -> str:
    return training(*each(n, "f@ = lambda z: model(z) + @\na@ = f@(x)"))


@family(20, 40, 80, 160)
def nested_lambdas(n: int) -> str:
    return training("a = " + "(lambda z: " * n + "model(z)" + ")(x)" * n)


@family(250, 500, 1000, 2000)
def format_strings(n: int) -> str:
    return training(*each(n, "print(f'{loss} {x:{y}} {model(x)}')"))


@family(500, 1000, 2000)
def keyword_arguments(n: int) -> str:
    return "\ndef g(**words):\n    return words\n" + training("a = g(" + ", ".join(each(n, "a@=model(x)")) + ")")


@family(100, 200, 400, 800)
def conditional_chain(n: int) -> str:
    return training(
        "a = " + "".join(each(min(n, 150), "model(x) if y == @ else ")) + "x", *each(n, "b@ = loss if y else x")
    )


@family(500, 1000, 2000, 4000)
def list_literal(n: int) -> str:
    return training("a = [" + ", ".join(each(n, "model(x)")) + "]")


@family(500, 1000, 2000, 4000)
def arguments(n: int) -> str:
    return training("a = g(" + ", ".join(each(n, "model(x)")) + ")")


@family(100, 200, 400, 800)
def walrus(n: int) -> str:
    return training(*each(n, "if (a@ := model(x)) is not None:\n    total += a@"))
