"""Programs of one kind in several sizes: functions, what they are given, and how they call each other."""

from __future__ import annotations

from growth_statements import FAMILIES, LOOP, each, family, text, training


@family(1000, 2000, 4000, 8000, 16000)
def functions(n: int) -> str:
    return LOOP + text(n, "def f@(x):\n    y = x + @\n    return y")


@family(500, 1000, 2000, 4000)
def functions_with_a_loop(n: int) -> str:
    return text(n, LOOP.replace("train", "train@").replace("total += loss", "total += loss.item()"))


@family(500, 1000, 2000)
def functions_with_findings(n: int) -> str:
    return text(n, LOOP.replace("train", "train@"))


@family(500, 1000, 2000)
def methods_with_findings(n: int) -> str:
    body = LOOP.replace("train(model", "train@(self, model").replace("\n", "\n    ")
    return "\nclass Trainer:\n" + text(n, body)


@family(250, 500, 1000, 2000)
def functions_that_save(n: int) -> str:
    return text(n, "def f@(model, x, path):\n    out = model(x)\n    torch.save(out, path)\n    return out.detach()")


@family(250, 500, 1000, 2000)
def functions_without_guard(n: int) -> str:
    return text(
        n,
        "def evaluate@(model, loader):\n    model.eval()\n    hits = 0\n"
        "    for x, y in loader:\n        hits += (model(x) == y).sum()\n    return hits",
    )


@family(250, 500, 1000)
def functions_called_from_main(n: int) -> str:
    body = text(n, "def f@(model, x):\n    loss = model(x).sum()\n    return loss")
    return (
        body
        + "\nif __name__ == '__main__':\n    model, x = nn.Linear(1, 1), torch.zeros(1)\n"
        + text(n, "    a@ = f@(model, x)")
        + LOOP
    )


@family(250, 500, 1000)
def program_with_findings(n: int) -> str:
    body = text(n, LOOP.replace("train", "train@"))
    return (
        body
        + "\nif __name__ == '__main__':\n    model, loader, opt = None, [], None\n"
        + text(n, "    train@(model, loader, opt)")
    )


@family(250, 500, 1000)
def unused_definitions_of_a_program(n: int) -> str:
    return text(n, LOOP.replace("train", "train@")) + "\nif __name__ == '__main__':\n    train0(None, [], None)\n"


@family(50, 100, 200, 400)
def forwarded_parameters(n: int) -> str:
    names = ", ".join(each(n, "a@"))
    return (
        f"\ndef f0({names}):\n    return a0.sum()\n"
        + text(20, f"def f^({names}):\n    return f@({names})")
        + LOOP.replace("model(x).sum()", "f20(" + ", ".join(["model(x)"] * n) + ")")
    )


@family(100, 200, 400, 800)
def parameters_with_defaults(n: int) -> str:
    return (
        "\ndef f("
        + ", ".join(each(n, "a@=None"))
        + "):\n"
        + text(n, "    if a@ is not None:\n        a@ = a@ + 1")
        + "    return a0\n"
        + LOOP.replace("model(x).sum()", "f(model(x))")
    )


@family(100, 200, 400, 800)
def callers_of_one(n: int) -> str:
    return (
        "\ndef f(model, x):\n    return model(x).sum()\n"
        + text(n, "def g@(model, x):\n    return f(model, x + @)")
        + LOOP
    )


@family(100, 200, 400, 800)
def flags(n: int) -> str:
    return (
        "\ndef f(model, x, k):\n    if k == 0:\n        return model(x).sum()\n    return x\n"
        + text(n, "def g@(model, x):\n    return f(model, x, @)")
        + LOOP
    )


@family(25, 50, 100, 200)
def decorators_in_a_row(n: int) -> str:
    made = text(n, "def d@(f):\n    def w(*a, **k):\n        return f(*a, **k)\n    return w")
    above = "".join(f"@d{i}\n" for i in range(n))
    return f"{made}{above}def g(model, x):\n    return model(x).sum()\n" + LOOP.replace("model(x).sum()", "g(model, x)")


@family(250, 500, 1000)
def decorated_functions(n: int) -> str:
    return (
        "def d(f):\n    def w(*a, **k):\n        return f(*a, **k)\n    return w\n"
        + text(n, "@d\ndef f@(model, x):\n    return model(x)")
        + LOOP
    )


@family(100, 200, 400, 800)
def generators(n: int) -> str:
    return (
        "\ndef g0(model, loader):\n    for x in loader:\n        yield model(x)\n"
        + text(n, "def g^(model, loader):\n    for x in g@(model, loader):\n        yield x")
        + LOOP.replace("in loader", f"in g{n}(model, loader)")
    )


@family(100, 200, 400, 800)
def nested_functions(n: int) -> str:
    return training(*each(n, "def f@(z):\n    return model(z) + loss\na@ = f@(x)"))


@family(100, 200, 400, 800)
def closures_over_a_list(n: int) -> str:
    return training(*each(n, "def f@(z):\n    kept.append(z)\nf@(loss)"), before=("kept = []",))


@family(6, 12, 24, 48)
def mutual(n: int) -> str:
    calls = "".join(each(n, "    x = f@(model, x)\n"))
    return "".join(f"def f{i}(model, x):\n{calls}    return x + model(x)\n" for i in range(n)) + LOOP.replace(
        "model(x).sum()", "f0(model, x)"
    )


@family(10, 20, 40, 80)
def mutual_pairs(n: int) -> str:
    return (
        text(n, "def f@(model, x):\n    return g@(model, x) + f^(model, x)\ndef g@(model, x):\n    return f@(model, x)")
        + f"def f{n}(model, x):\n    return f0(model, x) + model(x)\n"
        + LOOP.replace("model(x).sum()", "f0(model, x)")
    )


@family(6, 12, 24, 48)
def mutual_methods(n: int) -> str:
    calls = "".join(each(n, "        x = self.f@(x)\n"))
    return (
        "\nclass M(nn.Module):\n"
        + "".join(f"    def f{i}(self, x):\n        self.kept{i} = x\n{calls}        return x\n" for i in range(n))
        + LOOP.replace("model(x).sum()", "M().f0(x)")
    )


__all__ = ["FAMILIES"]
