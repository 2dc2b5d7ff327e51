"""The methods of a workspace that bring in what other programs remember."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from lukasa.service import past
from lukasa.service.call import Bound
from lukasa.service.instrument import verb

if TYPE_CHECKING:
    from lukasa.service.past.importing import Brought


class PastMethods(Bound, frozen=True):
    """Bring in files of other programs."""

    @verb("memory", "import")
    def import_past(
        self,
        path: str | Path,
        *,
        format: str = "",
        since: datetime | str | None = None,
        tier: str | None = None,
        mine: bool = False,
        dry_run: bool = False,
        called: str = "",
        watch: Callable[[int, int], None] = lambda done, of: None,
    ) -> Brought:
        """Bring what another program remembers into this workspace alone; with `dry_run`, only say what there is.

        All of it is read before anything is written. `called` is the name of a file that was sent, for provenance. A
        worker observes the conversations. `watch` is told after each thing how many are through, of how many.
        """
        work = past.importing.into(self.ctx, str(path), format=format, since=since, tier=tier, mine=mine, called=called)
        planned = work.plan()
        through = count(1)
        return planned if dry_run else work.run(lambda: watch(next(through), planned.found))
