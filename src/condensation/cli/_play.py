"""``condensation play``."""

import socket
import sys
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from .._functions import look_in
from ..errors import InputError
from ._output import Maybe, Several, recording_progress

if TYPE_CHECKING:
    from ..playground._server import Server

PORT = 8471
SWITCH = 5e-4  # seconds a thread keeps the interpreter: ten pages then get 21 frames a second each, not 16


def play(
    folders: tyro.conf.Positional[Several[Path]] = (),
    /,
    port: int = PORT,
    host: str = "127.0.0.1",
    token: Maybe[str] = None,
    embed_from: Several[str] = (),
    browser: bool = True,
    trust: bool = False,
    export: Maybe[Path] = None,
    preset: Several[str] = (),
    tour: bool = False,
) -> None:
    """Open the playground: watch neurons condense in a browser.

    24 pages can be open at a time; where other machines can reach the server, 8 from one address, and the work of one
    address is done one task after another. A request must come within 20 seconds.

    With --export nothing is served: the page is written with recorded trainings, which play without a server, from a
    disk or inside of another page (index.html?embed). That takes a few minutes.

    Args:
        folders: your own runs and sweeps, or folders of them, which the page can open. One that cannot be read is
            listed with the reason.
        port: the port of the server; 0 takes a free one.
        host: the address to listen on. Any address except a loopback address needs a token.
        token: the token; a random one if one is needed and none is given. On a loopback address none is needed, but one
            that is given is.
        embed_from: sites whose pages may show this one in a frame, such as https://example.org; no site by default.
        browser: open the page in the browser.
        trust: import the functions that your runs and sweeps name, from the current folder too.
        export: write the page with recordings into this folder, which must be new, empty or written by this option.
        preset: examples of the papers to record, by name, such as fc-fig3-tanh.
        tour: record the tour, too; if no presets and no folders are given, it is recorded anyway.
    """
    if export is not None:
        _export(export, folders, preset, tour or not (preset or folders), trust)
        return
    if preset or tour:
        raise InputError("--preset and --tour say what is recorded: they need --export FOLDER")
    try:
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InputError("the playground needs an extra: pip install 'condensation[play]'") from error
    from ..playground._access import Access
    from ..playground._library import Library
    from ..playground._server import Server

    for name, text in (("host", host), ("token", token)):
        if text is not None and not text.strip():
            raise InputError(f"the {name} is empty: name one, or leave --{name} out")
    if trust:
        look_in(Path())
    access = Access(host, token, embed_from)
    server = Server(access, Library(folders, trust))
    with listen(host, port) as listening:
        _serve(server, listening, host, access.token, browser)


def _export(export: Path, folders: tuple[Path, ...], names: tuple[str, ...], tour: bool, trust: bool) -> None:
    """Record, write the page, and tell where it is."""
    from ..playground._library import Library
    from ..playground._static import check_target, export_page

    check_target(export)
    if trust:
        look_in(Path())
    library = Library(folders, trust)
    with recording_progress() as report:
        path = export_page(export, library, names, tour, report)
    print(f"the page is {path} ({path.stat().st_size / 1e6:.2f} MB): open it in a browser")
    print(f'to embed it: <iframe src="{path.name}?embed" width="100%" height="640"></iframe>')


def _serve(server: "Server", listening: socket.socket, host: str, token: str | None, browser: bool) -> None:
    """Print the address, open the page and serve it until Ctrl-C."""
    from ..playground._connections import PageServer
    from ..playground._server import config_of

    address = f"http://{_named(host)}:{listening.getsockname()[1]}/" + (f"?token={token}" if token else "")
    print(f"the playground is at {address} (Ctrl-C ends it)", flush=True)
    if browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    sys.setswitchinterval(SWITCH)
    PageServer(config_of(server)).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; connections wait until the server is ready."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"port {port} of {host} cannot be used: {reason}; --port 0 takes a free one") from error


def _named(host: str) -> str:
    """The host as an address of the page names it."""
    return f"[{host}]" if ":" in host else socket.gethostname() if host == "0.0.0.0" else host
