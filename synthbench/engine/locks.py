"""Store-wide locking: one process per stage, many runs at once, clean-ups only while no run is active."""

import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from synthbench.base.errors import UserError
from synthbench.engine.leases import CLEANING, RUN, HeldLease, StageBusyError
from synthbench.engine.local_leases import LocalLeases
from synthbench.engine.shared_leases import SECONDS_BETWEEN_LOOKS, SharedLeases


@dataclass(frozen=True)
class Locks:
    """Coordinates processes that work in one store.

    `here` are this machine's leases; a shared store also has `shared` leases. `say` reports the holder that a
    process waits for. `mark_used` sets the last use of a run's artifacts to now; `look_again` drops listings
    made before a wait.
    """

    store: str
    here: LocalLeases
    say: Callable[[str], None]
    mark_used: Callable[[Collection[str]], None]
    shared: SharedLeases | None = None
    look_again: Callable[[], None] = lambda: None

    @contextmanager
    def stage(self, identity: str, label: str) -> Iterator[str]:
        """Hold a stage; yield a description of the dead process that left it unfinished, "" if none.

        Raises StageBusyError if another process holds it.
        """
        with ExitStack() as held:
            # After a lease expires, two processes on one machine could share the folder of unfinished work.
            left_behind = held.enter_context(self.here.hold(identity, label))
            if self.shared is not None:
                left_behind = held.enter_context(self.shared.hold(identity, label)) or left_behind
            self.look_again()
            yield left_behind

    @contextmanager
    def run(self, label: str, identities: Collection[str]) -> Iterator[str]:
        """Block clean-ups while a run is active, and set the last use of its artifacts to now.

        Waits for an active clean-up. Yields the name of the run's lease.
        """
        leases, name = self.shared or self.here, f"{RUN}{uuid.uuid4().hex}"
        with leases.hold(name, label):
            said = ""
            while holder := leases.holder(CLEANING):
                if holder != said:
                    self.say(f"waiting for `clean`: {holder} removes what no experiment uses")
                said = holder
                time.sleep(SECONDS_BETWEEN_LOOKS)
            leases.remove_dead()
            self.mark_used(identities)
            yield name
            with suppress(UserError):  # the first look began to watch leases, this one finds expired ones
                leases.remove_dead()

    def remove_dead(self, identity: str) -> str:
        """Remove a stage's dead lease from a shared store, so that no new worker waits for its expiry.

        Returns a description of its holder, "" if nothing was removed.
        """
        if self.shared is not None:
            with suppress(UserError):
                return self.shared.remove_dead(identity)
        return ""

    def held(self) -> list[HeldLease]:
        """Return the leases of stages, runs and clean-ups."""
        return (self.shared or self.here).held()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Block new runs; raises UserError if a run or another clean-up is active.

        In a shared store, may wait until dead processes' leases have expired.
        """
        leases = self.shared or self.here
        with ExitStack() as held:
            try:
                held.enter_context(leases.hold(CLEANING, "clean"))
            except StageBusyError:
                raise UserError(f"{self.store}: another `clean` is running; nothing was removed") from None
            if holder := leases.worker(self.say):
                raise UserError(f"{self.store}: {holder} works there; nothing was removed")
            leases.remove_dead()
            yield
