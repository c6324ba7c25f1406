"""The sessions of this machine and of the team's store, for a screen that looks again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlgpt.store import catalog
from rlgpt.store.address import has_store
from rlgpt.store.catalog import Summary

if TYPE_CHECKING:
    from rlgpt.store.reach import Listing


class AllSessions:
    """Not for two threads at once. `patience`: seconds to wait for the team's store."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._listing: Listing | None = None

    def read(self) -> list[Summary]:
        """Newest first; of the store only if one is named, as what reaches it takes long to import. Raises BadPlace."""
        if not has_store():
            return catalog.summaries()
        if self._listing is None:
            from rlgpt.store.reach import Listing

            self._listing = Listing(self._patience)
        return self._listing.summaries()

    @property
    def fault(self) -> str:
        """Why those of the store are not among them; "" where they are."""
        return self._listing.why_missing if self._listing else ""

    def close(self) -> None:
        if self._listing is not None:
            self._listing.close()
            self._listing = None
