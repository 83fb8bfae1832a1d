"""Programs of one kind in several sizes: classes, objects and files."""

from __future__ import annotations

import copies
from growth_functions import FAMILIES
from growth_statements import LOOP, each, family, text, training

# ------------------------------------------------------------------------------------ classes and objects


@family(250, 500, 1000, 2000)
def instances_in_a_loop(n: int) -> str:
    made = "class M:\n    def __init__(self): self.t = 0\n    def up(self, x): self.t += x\n"
    return made + training(*each(n, "m@.up(loss)"), before=each(n, "m@ = M()"))


@family(100, 200, 400, 800)
def instances_in_a_list(n: int) -> str:
    made = "class M:\n    def __init__(self): self.t = 0\n    def up(self, x): self.t += x\n"
    return made + training("for m in ms:\n            m.up(loss)", before=("ms = [" + ", ".join(["M()"] * n) + "]",))


@family(100, 200, 400, 800)
def instances_by_append(n: int) -> str:
    made = "class M:\n    def __init__(self): self.t = 0\n    def up(self, x): self.t += x\n"
    return made + training("for m in ms:\n            m.up(loss)", before=("ms = []", *each(n, "ms.append(M())")))


@family(100, 200, 400, 800)
def instances_in_a_dict(n: int) -> str:
    made = "class M:\n    def __init__(self): self.t = 0\n    def up(self, x): self.t += x\n"
    return made + training(*each(n, "ms['a@'].up(loss)"), before=("ms = {" + ", ".join(each(n, "'a@': M()")) + "}",))


@family(50, 100, 200, 400)
def instances_that_hold_each_other(n: int) -> str:
    made = "class M:\n    def __init__(self, o): self.o, self.t = o, 0\n    def up(self, x):\n"
    made += "        self.t += x\n        if self.o is not None: self.o.up(x)\n"
    return made + training(f"m{n}.up(loss)", before=("m0 = M(None)", *each(n, "m^ = M(m@)")))


@family(250, 500, 1000)
def modules_made(n: int) -> str:
    return training(*each(n, "a@ = m@(x)"), before=each(n, "m@ = nn.Linear(@, @)"))


@family(100, 200, 400, 800)
def modules_in_modes(n: int) -> str:
    return training(*each(n, "m@.eval()\na@ = m@(x)"), before=each(n, "m@ = nn.Linear(@, @)"))


@family(100, 200, 400, 800)
def optimizers(n: int) -> str:
    return training(
        *each(n, "o@.zero_grad()\nm@(x).sum().backward()\no@.step()"),
        before=each(n, "m@ = nn.Linear(@, @)\no@ = torch.optim.SGD(m@.parameters(), 1)"),
    )


@family(100, 200, 400, 800)
def layers_of_a_module(n: int) -> str:
    made = (
        "\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + text(n, "        self.a@ = nn.Linear(@, @)")
        + "    def forward(self, x):\n"
        + text(n, "        x = self.a@(x)\n        self.h@ = x")
    )
    return made + "        return x\n" + training("opt.step()", before=("model = M()",))


@family(100, 200, 400, 800)
def attributes_of_an_object(n: int) -> str:
    made = (
        "\nclass T:\n    def __init__(self):\n"
        + text(n, "        self.a@ = 0")
        + "    def step(self, loss):\n"
        + text(n, "        self.a@ += loss")
    )
    return made + training("t.step(loss)", before=("t = T()",))


@family(100, 200, 400, 800)
def attributes_over_methods(n: int) -> str:
    made = (
        "\nclass T:\n    def __init__(self):\n"
        + text(n, "        self.a@ = 0")
        + text(n, "    def step@(self, loss):\n        self.a@ += loss")
    )
    return made + training(*each(n, "t.step@(loss)"), before=("t = T()",))


@family(100, 200, 400, 800)
def classes_with_one_method_name(n: int) -> str:
    return text(
        n,
        "class C@:\n    def __init__(self):\n        self.total = 0\n    def update(self, x):\n        self.total += x",
    ) + training(*each(n, "o@.update(loss)"), before=each(n, "o@ = C@()"))


@family(25, 50, 100, 200)
def super_chain(n: int) -> str:
    made = "class C0(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    made += "    def forward(self, x):\n        return x\n"
    return (
        made
        + text(
            n,
            "class C^(C@):\n    def __init__(self):\n        super().__init__()\n        self.l@ = nn.Linear(1, 1)\n"
            "    def forward(self, x):\n        return self.l@(super().forward(x))",
        )
        + LOOP
    )


@family(100, 200, 400, 800)
def subclasses(n: int) -> str:
    made = "class B(nn.Module):\n    def forward(self, x):\n        return self.f(x)\n"
    made += "    def f(self, x):\n        return x\n"
    return (
        made
        + text(n, "class C@(B):\n    def f(self, x):\n        self.kept = x\n        return x")
        + "def run(m: B, x):\n    return m(x)\n"
        + LOOP
    )


@family(100, 200, 400, 800)
def nested_classes(n: int) -> str:
    return (
        "\nclass Outer:\n"
        + text(n, "    class C@:\n        def f(self, x):\n            self.kept = x\n            return x")
        + LOOP
    )


@family(100, 200, 400, 800)
def local_classes(n: int) -> str:
    return (
        "\ndef make():\n"
        + text(
            n, "    class C@:\n        def f(self, x):\n            self.kept = x\n            return x\n    c@ = C@()"
        )
        + "    return c0\n"
        + LOOP
    )


@family(100, 200, 400, 800)
def properties(n: int) -> str:
    made = [f"    @property\n    def a{i}(self):\n        return self.b{i}" for i in range(n)]
    return (
        "\nclass T:\n" + "\n".join(made) + "\n" + training(*each(n, "kept.append(t.a@)"), before=("t, kept = T(), []",))
    )


@family(100, 200, 400, 800)
def dataclass_fields(n: int) -> str:
    return (
        "from dataclasses import dataclass\n@dataclass\nclass D:\n"
        + text(n, "    a@: torch.Tensor = None")
        + training("kept.append(D(" + ", ".join(each(n, "a@=loss")) + "))", before=("kept = []",))
    )


# ---------------------------------------------------------------------------------------------- files


@family(500, 1000, 2000, 4000)
def module_variables(n: int) -> str:
    return text(n, "G@ = [@]") + "\ndef use(x):\n" + text(n, "    x = x + G@[0]") + "    return x\n" + LOOP


@family(250, 500, 1000)
def global_stores(n: int) -> str:
    return text(n, "G@ = []") + training(*each(n, "G@.append(loss)"))


@family(250, 500, 1000)
def global_statements(n: int) -> str:
    return text(n, "G@ = 0") + text(n, "def f@(x):\n    global G@\n    G@ = G@ + x") + LOOP


@family(500, 1000, 2000)
def used_imports(n: int) -> str:
    return (
        text(n, "from pkg.mod@ import name@")
        + "\ndef use(x):\n"
        + text(n, "    x = name@(x)")
        + "    return x\n"
        + LOOP
    )


@family(500, 1000, 2000, 4000)
def suppressions(n: int) -> str:
    return text(n, "x@ = @  # noqa: MEM101") + LOOP


@family(250, 500, 1000)
def suppressed_findings(n: int) -> str:
    return text(n, LOOP.replace("train", "train@").replace("total += loss", "total += loss  # memlint: ignore[MEM101]"))


@family(500, 1000, 2000)
def long_docstrings(n: int) -> str:
    return LOOP + text(20, 'def f@(x):\n    """' + "loss total += model(x)\n    " * n + '"""\n    return x')


@family(500, 1000, 2000)
def other_alphabet(n: int) -> str:
    return "# → ∇\n" + LOOP + text(n, "def f@(x):\n    y = x + @\n    return y")


@family(50, 100, 200, 400)
def files_that_import_each_other(n: int) -> dict[str, str]:
    return {
        f"m{i}.py": "".join(f"from m{(i + step) % n} import f{(i + step) % n}\n" for step in (1, 2, 3))
        + f"\ndef f{i}(model, x):\n    return f{(i + 1) % n}(model, x) + f{(i + 2) % n}(model, x)\n"
        + (LOOP.replace("model(x).sum()", "f0(model, x)") if not i else "")
        for i in range(n)
    }


@family(25, 50, 100, 200)
def files_in_a_package(n: int) -> dict[str, str]:
    init = "".join(f"from .m{i} import f{i}\n" for i in range(n))
    return {
        "pkg/__init__.py": init,
        **{
            f"pkg/m{i}.py": f"from pkg import f{(i + 1) % n}\n\ndef f{i}(model, x):\n"
            f"    return f{(i + 1) % n}(model, x)\n{LOOP}"
            for i in range(n)
        },
    }


@family(50, 100, 200, 400)
def module_table(n: int) -> dict[str, str]:
    main = (
        "".join(f"import m{i}\n" for i in range(n))
        + "\nTABLE = {"
        + ", ".join(f"'m{i}': m{i}.Net" for i in range(n))
        + "}\n\ndef make(name):\n    return TABLE[name]()\n"
        + LOOP.replace("model(x)", "make(y)(x)")
    )
    return {
        "main.py": main,
        **{
            f"m{i}.py": "class Net(nn.Module):\n    def forward(self, x):\n        self.kept = x\n        return x\n"
            for i in range(n)
        },
    }


@family(50, 100, 200, 400)
def files_with_findings(n: int) -> dict[str, str]:
    return {f"m{i}.py": LOOP.replace("train", f"train{i}") for i in range(n)}


@family(50, 100, 200, 400)
def files_with_one_function_name(n: int) -> dict[str, str]:
    return {f"m{i}.py": LOOP + f"\ndef evaluate(model, x):\n    return model(x) + {i}\n" for i in range(n)}


@family(50, 100, 200, 400)
def files_with_one_class_name(n: int) -> dict[str, str]:
    net = "class Net(nn.Module):\n    def forward(self, x):\n        self.kept = x\n        return x\n"
    net += "    def step(self, x):\n        return self.forward(x)\n"
    return {f"m{i}.py": net + LOOP.replace("model(x).sum()", "model.step(x)") for i in range(n)}


@family(20, 40, 80, 160)
def files_of_training_code(n: int) -> dict[str, str]:
    """What people write, each copy under names of its own."""
    return {f"part_{i // 50}/m{i}.py": copies.copy_at(i) for i in range(n)}


@family(20, 40, 80, 160)
def training_code_in_one_file(n: int) -> str:
    return "\n".join(copies.copy_at(i) for i in range(n))


@family(25, 50, 100, 200)
def copied_projects(n: int) -> dict[str, str]:
    """Folders with the same files, classes and methods."""
    net = "class Net(nn.Module):\n    def forward(self, x):\n        self.kept = x\n        return x\n"
    net += "".join(f"    def step_{k}(self, x):\n        return self.forward(x)\n" for k in range(8))
    used = "".join(f"\n\ndef use_{k}(model, x):\n    return model.step_{k}(x)\n" for k in range(8))
    files = {"model.py": net, "train.py": LOOP, "use.py": used}
    return {f"p{i}/{name}": content for i in range(n) for name, content in files.items()}


@family(10, 20, 40, 80)
def files_on_many_paths_of_imports(n: int) -> dict[str, str]:
    """Each file imports the next two, so that the paths are exponentially many."""
    files = {
        f"nets/m{i}.py": f"from .m{i + 1} import f{i + 1}\nfrom .m{i + 2} import f{i + 2}\n" * (i < n - 2)
        + LOOP.replace("train", f"f{i}")
        for i in range(n)
    }
    main = 'import nets\n\nif __name__ == "__main__":\n    nets.f0(None, None, None)\n'
    other = "import nets\n\n\ndef f_of(f0):\n    return nets.other.f0, " + ", ".join(f"nets.f{i}" for i in range(n))
    return {"main.py": main, "other.py": other + "\n", "nets/__init__.py": "from .m0 import f0\n", **files}


__all__ = ["FAMILIES"]
