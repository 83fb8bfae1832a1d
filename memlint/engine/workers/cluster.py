"""Workers on other machines: those of a Dask cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor
from typing import Any

from memlint.config import ConfigError

SCHEME = "dask://"
#: seconds to wait for a scheduler
PATIENCE = 10


@contextlib.contextmanager
def cluster(address: str) -> Iterator[tuple[Callable[[], Executor], Callable[[BaseException], bool]]]:
    """A function that creates an executor over a cluster's workers, and one that recognises the loss of a worker.
    ``address``: ``dask://HOST:PORT`` of the scheduler. Raises ConfigError if the extra is not installed, or no
    scheduler answers."""
    try:
        import distributed
    except ImportError:
        raise ConfigError("--executor dask://… needs Dask: install torch-memlint[distributed]") from None
    try:
        connect: Any = distributed.Client
        client = connect("tcp://" + address.removeprefix(SCHEME), timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--executor {address}: no scheduler answers: {error}") from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise ConfigError(f"--executor {address}: the scheduler has no workers")
        try:
            # a worker's result also depends on files, and may change
            yield lambda: client.get_executor(pure=False), lambda error: isinstance(error, distributed.KilledWorker)
        except (OSError, CancelledError, TimeoutError) as error:
            raise ConfigError(f"--executor {address}: the cluster is gone: {error or type(error).__name__}") from None
