"""The graph walk, the tracker and what is found in values, against what is really freed."""

from __future__ import annotations

from measured import measured


def test_a_walk_finds_the_bytes_that_are_freed_when_the_value_goes() -> None:
    result = measured(
        """
        class Stash(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                ctx.kept = {"list": [x * 2]}
                return x.exp()

            @staticmethod
            def backward(ctx, grad):
                return grad

        def mlp():
            return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)), lambda m, x: m(x)

        def convolution():
            model = nn.Sequential(nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.GELU())
            return model, lambda m, x: m(x[:, None]).flatten(1)

        def attention():
            layer = nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
            return layer, lambda m, x: m(x[None])[0]

        def recurrent():
            return nn.LSTM(32, 16), lambda m, x: m(x[:, None])[0]

        def stash():
            return nn.Linear(32, 8), lambda m, x: Stash.apply(m(x))

        def autocast():
            def run(m, x):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    return m(x)
            return mlp()[0], run

        def views():
            return mlp()[0], lambda m, x: m(x)[3:5].view(-1)

        def checkpoint():
            from torch.utils.checkpoint import checkpoint
            return mlp()[0], lambda m, x: checkpoint(m, x, use_reentrant=False)

        result = {}
        for make in (mlp, convolution, attention, recurrent, stash, autocast, views, checkpoint):
            for backward in (False, True):
                torch.manual_seed(0)
                model, run = make()
                x = torch.randn(16, 32)
                run(model, x).sum().backward()  # gradients are there
                ledger = Ledger()
                with tracker(ledger, torch):
                    loss = run(model, x).square().sum() if make is not views else run(model, x)
                    if backward:
                        loss.sum().backward()
                    old = Old(torch)
                    known = {id(loss)}
                    before = ledger.total
                    storages = {}
                    found = [each for _, each in walk([loss], set(), torch).storages]
                    for storage in storages_of(found, torch):
                        if storage._cdata in ledger.alive:
                            storages[storage._cdata] = storage.nbytes()
                    found = sum(storages.values())
                    del loss, old, storage
                    gc.collect()
                    result[f"{make.__name__} {backward}"] = [found, before - ledger.total]
        """
    )
    # what a checkpoint holds is behind its hooks, and its recomputation makes no difference
    assert {name: found for name, (found, freed) in result.items() if found != freed} == {}
    assert result["mlp False"][0] > result["mlp True"][0]


def test_the_tracker_counts_what_lives_to_the_byte() -> None:
    result = measured(
        """
        import copy, pickle, io
        ledger = Ledger()
        result = []

        def held(make):
            before = ledger.total
            value = make()
            after = ledger.total - before
            del value
            gc.collect()
            result.append([after, ledger.total - before])

        with tracker(ledger, torch):
            held(lambda: torch.zeros(10))
            held(lambda: torch.zeros(10)[2:4].view(1, 2))
            held(lambda: torch.zeros(10).add_(1))
            held(lambda: (torch.zeros(4), [torch.ones(2, dtype=torch.float64)]))
            held(lambda: torch.zeros(1000).resize_(10))
            held(lambda: torch.zeros(10).resize_(1000))
            held(lambda: torch.zeros(10, device="meta"))
            held(lambda: copy.deepcopy(torch.zeros(10)))
            held(lambda: torch.split(torch.zeros(10), 5))
            held(lambda: torch.zeros(4, 4).to_sparse())

            def loaded():
                file = io.BytesIO()
                torch.save(torch.zeros(10), file)
                file.seek(0)
                return torch.load(file)

            held(loaded)
        """
    )
    assert [after for _, after in result] == [0] * len(result)
    live = [now for now, _ in result]
    assert live[:9] == [40, 40, 40, 32, 4000, 4000, 0, 40, 40]
    assert live[10] == 40


def test_tensors_are_found_in_values_and_nothing_of_the_program_is_called() -> None:
    result = measured(
        """
        import collections, dataclasses, functools, types
        t = torch.zeros(1)

        class Base:
            __slots__ = ("__hidden", "unset")
            def __init__(self):
                self.__hidden = t

        class Derived(Base):
            __slots__ = ()

        class Plain:
            def __init__(self):
                self.value = t

        class Callable(Plain):
            def __call__(self):
                raise AssertionError

        @dataclasses.dataclass
        class Data:
            value: object

        class Wild:
            def __init__(self):
                self.__dict__["value"] = t
            def __getattr__(self, name):
                raise AssertionError(name)
            def __iter__(self):
                raise AssertionError
            def __eq__(self, other):
                raise AssertionError
            __hash__ = None
            @property
            def __class__(self):
                raise AssertionError
            @property
            def loss(self):
                raise AssertionError

        class Liar(list):
            def __iter__(self):
                raise AssertionError
            def __len__(self):
                raise AssertionError

        module = nn.Sequential(nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))))
        cyclic = [t]
        cyclic.append(cyclic)
        values = [
            t, [t], (t,), {"a": t}, {1: [(t,)]}, {"a": {"b": {"c": t}}}, collections.deque([t]),
            collections.defaultdict(list, a=[t]), collections.OrderedDict(a=t), types.SimpleNamespace(a=t),
            collections.namedtuple("Pair", "a b")(1, t), Derived(), Plain(), Callable(), Data(t), Data(Data([t])),
            Wild(), Liar([t]), (lambda value: lambda: value)(t), functools.partial(print, t), Plain().__init__, cyclic,
            None, 3, "text", b"", range(9), (n for n in "a"), object(), type, module,
        ]
        result = [len(list(tensors_in(value, torch))) for value in values]
        """
    )
    assert result == [1] * 22 + [0] * 8 + [7]


def test_a_site_follows_wrapped_and_sparse_tensors_and_leaves_old_ones_out() -> None:
    result = measured(
        """
        old_tensor = torch.zeros(100)
        watch = SiteWatch(1, 0, 10)
        watch.old = Old(torch)
        kept = []
        result = []
        for value in (old_tensor[3:], torch.zeros(10), torch.eye(4).to_sparse(), nn.Linear(4, 4)):
            kept.append(value)
            watch.begin((1, len(kept)), ())
            watch.add(value, torch)
        watch.check("window", [], {})
        result.append([sum(alive.values()) for alive in watch.windows[0]["alive"]])
        kept.clear()
        del value
        gc.collect()
        watch.check("window", [], {})
        result.append([sum(alive.values()) for alive in watch.windows[1]["alive"]])
        """
    )
    assert result[0] == [0, 40, 4 * 4 + 2 * 4 * 8, 80]
    assert result[1] == [0, 0, 0, 0]


def test_nodes_of_two_threads_that_count_alike_are_two() -> None:
    result = measured(
        """
        import threading
        made = []

        def make():
            x = torch.zeros(2, requires_grad=True)
            made.append((x.exp().mul(2)).sum())

        for _ in range(2):
            worker = threading.Thread(target=make)
            worker.start()
            worker.join()
        x = torch.zeros(2, requires_grad=True)
        made.append(x.sin().cos().tan())
        known = set()
        result = [walk([each], known, torch).nodes for each in made]
        """
    )
    assert result[2] == 3


def test_tensors_without_memory_count_for_nothing() -> None:
    result = measured(
        """
        from torch._subclasses.fake_tensor import FakeTensorMode

        ledger = Ledger()
        with tracker(ledger, torch):
            with FakeTensorMode():
                fake = [torch.randn(1024) * 2 for _ in range(3)]
                fake += [each.view(-1)[:8] for each in fake]
            meta = torch.empty(1024, device="meta") + 1
            fakes = [ledger.total, ledger.peak, len(ledger.alive)]
            true = torch.zeros(256)
            result = [fakes, ledger.total]
        """
    )
    assert result == [[0, 0, 0], 1024]


def test_what_a_function_calls_its_own_is_no_parameter() -> None:
    result = measured(
        """
        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.variable = "its own"
                ctx.kept = x * 2
                return x.exp()

            @staticmethod
            def backward(ctx, grad):
                return grad

        x = torch.randn(16, requires_grad=True)
        found = walk([Own.apply(x)], set(), torch)
        held = [each for _, each in found.storages]
        result = [found.nodes, sorted(storage.nbytes() for storage in storages_of(held, torch))]
        """
    )
    assert result == [1, [64, 64, 64]]


def test_a_graph_that_is_kept_twice_is_kept() -> None:
    result = measured(
        """
        watch = SiteWatch(1, 0, 4)
        kept = []
        result = []

        def hit(value, number):
            kept.append(value)
            watch.begin((1, number), ())
            watch.add(value, torch)

        x = torch.zeros(2, requires_grad=True)
        for number in range(2):
            loss = x.exp().sum()
            hit(loss, number)
            hit(loss, number)
        watch.check("window", [], {})
        result.append(watch.windows[0]["nodes"])
        kept.clear()
        del loss
        gc.collect()
        watch.check("window", [], {})
        result.append(watch.windows[1]["nodes"])
        """
    )
    assert result == [[2, 0, 2, 0], [0, 0, 0, 0]]


def test_what_backward_has_freed_is_no_more_held_though_others_keep_it() -> None:
    result = measured(
        """
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                return 2 * ctx.saved_tensors[0] * grad

        layer = nn.Linear(8, 4)
        layer(torch.zeros(1, 8)).sum().backward()
        gradients = [layer.weight.grad, layer.bias.grad]
        old = Old(torch)

        def bytes_after(retain, stores_input=False, hits=1, own=False):
            watch = SiteWatch(1, 0, 9)
            watch.old = old
            x, total = torch.randn(2, 8), 0.0
            for number in range(hits):
                y = Square.apply(layer(x)) if own else layer(x).pow(2)
                loss = y.sum()
                watch.begin((1, number), ())
                watch.add((loss, x) if stores_input else loss, torch)
                total = total + loss
                loss.backward(retain_graph=retain or number < hits - 2)
            del y, loss
            watch.let_go(torch)
            watch.check("window", [], {})
            return [sum(alive.values()) for alive in watch.windows[0]["alive"]], len(watch.followed())

        result = [
            bytes_after(False),
            bytes_after(False, own=True),
            bytes_after(True),
            bytes_after(False, stores_input=True),
            # the first hit's graph is not freed, and saves what the others saved as well
            bytes_after(False, hits=3),
            bytes_after(False, hits=2),
        ]
        """
    )
    freed, freed_by_own, retained, stored, shared, shared_and_freed = result
    assert freed == freed_by_own == [[0], 0]
    assert retained == [[2 * 8 * 4 + 2 * 4 * 4], 2]
    assert stored == [[2 * 8 * 4], 1]
    assert shared == [[2 * 8 * 4 + 2 * 4 * 4, 0, 0], 2]
    assert shared_and_freed == [[0, 0], 0]


def test_later_hits_of_what_was_kept_before_leave_nothing() -> None:
    result = measured(
        """
        watch = SiteWatch(1, 0, 4)
        state = torch.zeros(2, requires_grad=True).exp()
        for number in range(40):
            watch.begin((1, number), ())
            watch.add(state, torch)
            if number == 4:
                watch.check("window", [], {})
                watch.survives = False
        result = watch.late.data(watch.hits)
        """
    )
    assert result == []


def test_losses_are_noted_whatever_they_are_given_as() -> None:
    result = measured(
        """
        from memlint.measure.loops.losses import Losses

        class Strict(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                if func is torch.Tensor.detach:
                    raise TypeError("nobody but me")
                return super().__torch_function__(func, types, args, kwargs or {})

        losses = Losses(torch)
        x = torch.ones(3, requires_grad=True)
        x.sum().backward()
        torch.autograd.backward(each for each in [x.sum() * 2])
        (x.sum() * 3).as_subclass(Strict).backward()
        torch.autograd.backward([x.sum().to(torch.complex64) * 4], [torch.ones((), dtype=torch.complex64)])
        result = [losses.data()[:3], x.grad.tolist()]
        """
    )
    assert result == [[3, 6, 9], [10, 10, 10]]
