"""A Dask client as the rest of the package uses it: what is sent, gathered, and lost on the way.

All state of a run is in this process, and a task is a pure function of what it was sent. Whatever
is lost is therefore sent again: single tasks by the scheduler, everything after a connection broke
by :meth:`Cluster.gather`.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._types import Array
from ..errors import ClusterError, InvalidProblem
from ..version import __version__
from ..wording import first_line, shown
from . import tasks

if TYPE_CHECKING:
    from distributed import Client, Future
else:
    Client = Future = Any

#: Bytes of an array that one task may carry: Dask warns of more, and the scheduler keeps them.
SLAB = 8_000_000
#: Bytes of the tasks of one call that are no reason to warn.
WARN_BYTES = 32 * SLAB
#: Times that a task is tried again where it raised, and that all is sent again after a loss.
RETRIES, RESENDS = 2, 5
#: Seconds that a client has to find its scheduler again.
RECONNECT_SECONDS = 10.0
#: Seconds between two looks at the number of workers.
LOOK_SECONDS = 5.0

#: What a task is given: futures stand for what they are the future of.
Sent: TypeAlias = Any
#: Submits tasks and returns their futures; called again if they are lost.
Ask: TypeAlias = Callable[[], list[Future]]

_INSTALL = 'a Dask cluster needs Dask (pip install "epsilot[distributed]").'
#: What every worker is asked, in words that one without the package understands.
_WHICH = "__import__('epsilot').__version__"


class Cluster:
    """The workers of a client.

    Parameters
    ----------
    client : distributed.Client
        A client that waits for its answers.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._held: dict[tuple[int, int], tuple[object, Future]] = {}
        self._slots, self._looked = 1, -np.inf

    @classmethod
    def of(cls, client: object = None) -> Cluster:
        """Return the cluster of a client, by default the one that Dask would use."""
        try:
            from distributed import Client, default_client
        except ImportError:
            raise InvalidProblem(_INSTALL) from None
        if client is None:
            try:
                client = default_client()
            except ValueError:
                raise InvalidProblem(
                    "there is no Dask client; make one (client = distributed.Client(...)), or "
                    "pass client=."
                ) from None
        if not isinstance(client, Client):
            raise InvalidProblem(
                f"client is {shown(client)}; it must be a distributed.Client (make one with "
                "distributed.Client(address))."
            )
        if client.asynchronous:
            raise InvalidProblem(
                "client is asynchronous; it must wait for its answers (make it with "
                "asynchronous=False, or call from a thread of its own)."
            )
        cluster = cls(client)
        cluster.check()
        return cluster

    # -- the workers -------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """Whether the scheduler is there."""
        return bool(self.client.status == "running")

    @property
    def slots(self) -> int:
        """Tasks that the workers can do at a time, at least one."""
        if time.monotonic() - self._looked > LOOK_SECONDS and self.is_connected:
            self._slots = max(1, sum(self.client.nthreads().values()))
            self._looked = time.monotonic()
        return self._slots

    def check(self) -> None:
        """Refuse workers that have another epsilot than this process, or none.

        One that goes away while it is asked is not judged.
        """
        if not self.is_connected:
            raise self._gone()
        for worker, found in self.client.run(eval, _WHICH, on_error="return").items():
            if isinstance(found, OSError):
                continue
            if isinstance(found, BaseException):
                raise ClusterError(f"the worker {worker} {tasks.WITHOUT} ({found}).")
            if found != __version__:
                raise ClusterError(tasks.other_version(worker, found, __version__))

    # -- what is sent ------------------------------------------------------------------------

    def send(self, x: Array) -> Future:
        """Send an array; the task that carries it is the way to have it again."""
        if x.nbytes <= SLAB:
            return self.submit(tasks.keep, x)
        step = max(1, SLAB * len(x) // x.nbytes)
        slabs = [self.send(x[start : start + step]) for start in range(0, len(x), step)]
        return self.submit(tasks.join, slabs)

    def hold(self, x: Array) -> Future:
        """Send an array that does not change, once; the workers keep it as long as this object."""
        return self.once(x, 0, lambda: self.send(x))

    def once(self, owner: object, place: int, ask: Callable[[], Future]) -> Future:
        """Return the future of something that an owner has; what is lost is asked for again."""
        key = id(owner), place
        if key not in self._held:
            self._held[key] = owner, ask()
        return self._held[key][1]

    def drop(self, kept: Iterable[object]) -> None:
        """Forget what workers hold of all owners but those that are named."""
        names = {id(x) for x in kept}
        self._held = {key: pair for key, pair in self._held.items() if key[0] in names}

    def submit(self, function: Callable[..., object], *args: Sent) -> Future:
        """Submit a task."""
        return self.client.submit(function, *args, pure=False, retries=RETRIES)

    def map(self, function: Callable[..., object], *args: Sequence[Sent]) -> list[Future]:
        """Submit a task for each place of the arguments."""
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": WARN_BYTES}):
            found: list[Future] = self.client.map(function, *args, pure=False, retries=RETRIES)
        return found

    # -- what comes back ---------------------------------------------------------------------

    def gather(self, ask: Ask, futures: list[Future] | None = None) -> list[Any]:
        """Return the results of the tasks that ``ask`` submits; if all are lost, ask again.

        ``futures`` are those of a first time that it was asked.
        """
        for _ in range(RESENDS):
            if not self.is_connected:
                raise self._gone()
            try:
                return list(self.client.gather(ask() if futures is None else futures))
            except Exception as error:
                self._recover(error)
                futures = None
        raise ClusterError(
            f"the workers of {self._address} were lost {RESENDS} times in one task; look for what "
            "ends them (a limit of memory?), and resume from the checkpoint if there is one."
        )

    def _recover(self, error: Exception) -> None:
        """Prepare to send all again after a loss; other errors are raised as what they are."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.client import ClosedClientError
        from distributed.comm import CommClosedError

        lost = CancelledError, ClosedClientError, CommClosedError, KilledWorker
        if isinstance(error, ModuleNotFoundError) and "epsilot" in str(error):
            raise ClusterError(f"a worker {tasks.WITHOUT} ({error}).") from None
        if not isinstance(error, lost):
            raise error
        self._held.clear()
        ends = time.monotonic() + RECONNECT_SECONDS
        while not self.is_connected:
            if self.client.status != "connecting" or time.monotonic() > ends:
                raise self._gone() from None
            time.sleep(0.05)

    @property
    def _address(self) -> str:
        scheduler = self.client.scheduler
        return scheduler.address if scheduler is not None else "the cluster"

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"the Dask scheduler at {self._address} is gone; start it again and make a new client "
            "(a run with checkpoint=... can then be resumed)."
        )


def connected(address: str, seconds: float = 10.0) -> Client:
    """Return a client of the scheduler at an address."""
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise InvalidProblem(_INSTALL) from None
    try:
        # A client that finds nobody would go on looking while it is thrown away.
        socket.create_connection(get_address_host_port(address, strict=True), seconds).close()
        return Client(address, timeout=seconds, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InvalidProblem(
            f"no Dask scheduler answers at {shown(address)} ({first_line(error)}); start one with "
            "'dask scheduler' and give the address that it prints."
        ) from None
