"""A long play in a real browser: the memory of server and page must not grow. ``python benchmarks/soak.py [minutes]``.

First as many networks are opened as the caches of compiled programs hold. Then a page plays without end, is opened with
ever new networks and scrubbed, as a lecture would do it. The server's memory goes up and down, as what was compiled is
forgotten every so often: peaks of the first and of the second half are compared, and more than 10% and 60 MB of growth
is a failure (exit code 1).
"""

import asyncio
import json
import random
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import psutil
import websockets
from chromium import chromium, playground

from condensation.playground._messages import unpack

MINUTES = 30.0
FILLING = 72
KINDS = [
    {},
    {"layers": "x2_tanh"},
    {"layers": "tanh", "optimizer": "adam", "rate": "5e-4"},
    {"layers": "tanh", "optimizer": "flow", "rate": "0.05"},
    {"layers": "tanh,x_tanh"},
    {"inputs": "2", "formula": "x1*x2", "n": "100", "spacing": "random"},
]
MOST_GROWTH, LEAST = 1.10, 60.0


def megabytes(process: psutil.Process) -> float:
    """Memory of a process that is its own."""
    return process.memory_full_info().uss / 2**20


def heap(driver: Any) -> float:
    """The page's memory after a collection of garbage."""
    driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    return driver.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"] / 2**20


async def fill(address: str) -> None:
    """Open more networks than are kept compiled."""
    host = urlsplit(address).netloc
    async with websockets.connect(f"ws://{host}/live", origin=f"http://{host}", max_size=None) as link:  # type: ignore[arg-type]
        await link.recv()
        for width in range(20, 20 + FILLING):
            settings = KINDS[width % len(KINDS)] | {"width": str(width)}
            look = {"do": "frame", "steps": 1, "settled": True}
            for request in ({"do": "open", "settings": settings}, {"do": "layer", "layer": "dense1"}, look, look):
                await link.send(json.dumps({"id": width, **request}))
                assert unpack(await link.recv())[0]["kind"] != "error"  # type: ignore[arg-type]


def act(driver: Any, stream: random.Random) -> None:
    """Something that a user does."""
    settings = stream.choice(KINDS) | {"width": str(stream.randrange(20, 120)), "seed": str(stream.randrange(99))}
    speed = stream.choice([1, 10, 100, 1000])
    hash_ = "&".join(f"{name}={value}" for name, value in (settings | {"speed": str(speed)}).items())
    driver.execute_script("location.hash = arguments[0]", hash_)
    time.sleep(3)
    driver.execute_script("playground.play()")
    time.sleep(stream.uniform(5, 20))
    driver.execute_script("playground.player.seek(arguments[0])", stream.randrange(200))
    time.sleep(1)
    driver.execute_script("playground.play()")
    time.sleep(stream.uniform(2, 5))


def main(minutes: float) -> int:
    """Play, look at the memory, judge."""
    stream, rows = random.Random(0), []
    with playground() as (address, process, _), chromium() as driver:
        server = psutil.Process(process.pid)
        asyncio.run(fill(address))
        driver.get(address)
        time.sleep(5)
        began = time.perf_counter()
        while (passed := (time.perf_counter() - began) / 60) < minutes:
            act(driver, stream)
            frames, said = driver.execute_script(
                "return [playground.frames, document.querySelector('main').dataset.step]"
            )
            rows.append(
                {"minutes": round(passed, 2), "server": megabytes(server), "page": heap(driver), "frames": frames}
            )
            print(json.dumps(rows[-1]), "step", said, flush=True)
    grew = {}
    for part in ("server", "page"):
        before = max(row[part] for row in rows if row["minutes"] <= minutes / 2)
        after = max((row[part] for row in rows if row["minutes"] > minutes / 2), default=before)
        grew[part] = after - before > LEAST and after > MOST_GROWTH * before
        print(f"{part}: at most {before:.0f} MB in the first half, {after:.0f} MB in the second")
    return int(any(grew.values()))


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES))
