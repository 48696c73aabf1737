"""Clients of a server: those who share a limit on pages and on work.

On a loopback address each page is a client of its own. Where others can reach the server, all pages from one address
are one client: it has at most ``MOST_PAGES_OF_CLIENT`` pages, and one task in each thread pool at a time. So whoever
asks for heavy work without end waits for his own work, and the others wait for one task of his at most.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ._executors import POOLS

MOST_PAGES = 24  # fewer than the number of compiled programs that are kept
MOST_PAGES_OF_CLIENT = 8


@dataclass
class Client:
    """One client: how many pages it has open, and its turn in each thread pool."""

    pages: int = 0
    turns: dict[str, asyncio.Lock] = field(default_factory=lambda: {pool: asyncio.Lock() for pool in POOLS})


class Clients:
    """All clients that have pages open; ``shared`` where the pages of one address are one client."""

    def __init__(self, shared: bool) -> None:
        self.shared = shared
        self.open: dict[str, Client] = {}  # by address

    @property
    def pages(self) -> int:
        """Pages that are open."""
        return sum(client.pages for client in self.open.values())

    def refusal(self, address: str) -> str:
        """Why no further page may be opened from an address; empty if one may."""
        if self.pages >= MOST_PAGES:
            return f"{MOST_PAGES} pages are open already; close one"
        if self.shared and address in self.open and self.open[address].pages >= MOST_PAGES_OF_CLIENT:
            return f"{MOST_PAGES_OF_CLIENT} pages are open from this address already; close one"
        return ""

    @contextmanager
    def page(self, address: str) -> Iterator[Client]:
        """A page while it is open, as one of its client."""
        client = self.open.setdefault(address, Client())
        client.pages += 1
        try:
            yield client if self.shared else Client()
        finally:
            client.pages -= 1
            if not client.pages:
                del self.open[address]
