"""Who may come in: the page of this server, from this machine; from others with a token.

- On a loopback address the ``Host`` of every request must be this machine's name, so that a page of elsewhere cannot
  reach in through a name of its own (DNS rebinding).
- On any other address every request needs the token: once in the page's address, then in a cookie.
- A websocket comes only from a page of this server: its ``Origin`` must be the ``Host``.
"""

import ipaddress
import secrets
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

COOKIE = "condensation_token"


class Doors:
    """The rules of one server."""

    def __init__(self, host: str, token: str | None = None) -> None:
        self.loopback = is_loopback(host)
        self.token = token or (None if self.loopback else secrets.token_urlsafe(24))

    def knows_host(self, headers: Mapping[str, str]) -> bool:
        """Whether the request names this machine."""
        return not self.loopback or is_loopback(_split(f"//{headers.get('host', '')}").hostname or "")

    def cookie(self, headers: Mapping[str, str]) -> str:
        """The name of the cookie: one for each port, as browsers do not tell ports apart."""
        host = headers.get("host", "")
        return f"{COOKIE}_{host.rpartition(':')[2] if ':' in host else 80}"

    def knows_token(self, query: Mapping[str, str], cookies: Mapping[str, str], headers: Mapping[str, str]) -> bool:
        """Whether the request has the token, if one is needed."""
        if self.token is None:
            return True
        given = [query.get("token", ""), cookies.get(self.cookie(headers), "")]
        return any(secrets.compare_digest(one.encode(), self.token.encode()) for one in given)

    def is_own_page(self, headers: Mapping[str, str]) -> bool:
        """Whether a websocket is opened by a page of this server."""
        origin = _split(headers.get("origin", ""))
        return origin.scheme in ("http", "https") and origin.netloc == headers.get("host", "")


def _split(address: str) -> SplitResult:
    """The parts of an address; of one that cannot be read, nothing."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
