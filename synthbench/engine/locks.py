"""Who may work in a store: one process at a stage, many runs, and a clean-up while none runs."""

import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from synthbench.base.errors import UserError
from synthbench.engine.leases import CLEANING, RUN, StageBusyError
from synthbench.engine.local_leases import LocalLeases
from synthbench.engine.shared_leases import SECONDS_BETWEEN_LOOKS, SharedLeases


@dataclass(frozen=True)
class Locks:
    """Keep processes out of each other's way in a store.

    `here` are the leases of this machine; a shared store has `shared` ones, too. `say` tells people whom they
    wait for. `mark_used` notes what a run needs; `look_again` forgets what was known before a wait.
    """

    store: str
    here: LocalLeases
    say: Callable[[str], None]
    mark_used: Callable[[Collection[str]], None]
    shared: SharedLeases | None = None
    look_again: Callable[[], None] = lambda: None

    @contextmanager
    def stage(self, identity: str, label: str) -> Iterator[str]:
        """Hold a stage; yield the dead process whose work is taken over, "" if none.

        Raises StageBusyError if another process holds it.
        """
        with ExitStack() as held:
            # Once a lease has expired, two processes of a machine would share the folder of unfinished work.
            left_behind = held.enter_context(self.here.hold(identity, label))
            if self.shared is not None:
                left_behind = held.enter_context(self.shared.hold(identity, label)) or left_behind
            self.look_again()
            yield left_behind

    @contextmanager
    def run(self, label: str, identities: Collection[str]) -> Iterator[None]:
        """Keep clean-ups away while a run works, and mark what it needs as used now.

        Waits for a clean-up that has begun.
        """
        leases = self.shared or self.here
        with leases.hold(f"{RUN}{uuid.uuid4().hex}", label):
            said = ""
            while holder := leases.holder(CLEANING):
                if holder != said:
                    self.say(f"waiting for `clean`: {holder} removes what no experiment uses")
                said = holder
                time.sleep(SECONDS_BETWEEN_LOOKS)
            leases.remove_dead_runs()
            self.mark_used(identities)
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Make new runs wait; raises UserError if a run or another clean-up is at work."""
        leases = self.shared or self.here
        with ExitStack() as held:
            try:
                held.enter_context(leases.hold(CLEANING, "clean"))
            except StageBusyError:
                raise UserError(f"{self.store}: another `clean` is running; nothing was removed") from None
            if holder := leases.worker(self.say):
                raise UserError(f"{self.store}: {holder} works there; nothing was removed")
            leases.remove_dead_runs()
            yield
