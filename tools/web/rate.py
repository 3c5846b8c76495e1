"""How many requests one caller may send: a bucket of tokens each, filled evenly."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from advisor.errors import AdvisorError

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS_PER_MINUTE: Final = 60.0
MOST_CALLERS: Final = 10_000


@dataclass
class RateLimit:
    """Requests per minute and caller; a whole minute's worth may come at once.

    Attributes:
        per_minute: requests; None for no limit.
        now: the clock, in seconds.
    """

    per_minute: int | None = None
    now: Callable[[], float] = time.monotonic
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)

    def take(self, caller: str) -> None:
        """Count one request of a caller.

        Raises:
            AdvisorError: ``rate_limited`` when there is none left for now.
        """
        if self.per_minute is None:
            return
        left = self._refilled(caller, self.per_minute)
        if left < 1:
            detail = f"more than {self.per_minute} requests a minute; ask again in {self.wait_s(left)} s"
            raise AdvisorError("rate_limited", detail)
        self._left[caller] = (left - 1, self.now())

    def wait_s(self, left: float = 0.0) -> int:
        """Whole seconds until the next token, for ``Retry-After``."""
        return math.ceil((1 - left) * SECONDS_PER_MINUTE / (self.per_minute or 1))

    def _refilled(self, caller: str, most: int) -> float:
        if caller not in self._left and len(self._left) >= MOST_CALLERS:
            self._left.pop(next(iter(self._left)))
        left, since = self._left.get(caller, (float(most), self.now()))
        return min(float(most), left + (self.now() - since) * most / SECONDS_PER_MINUTE)
