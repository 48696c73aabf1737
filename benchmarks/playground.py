"""The playground's speed, measured with the real command and a real browser: ``python benchmarks/playground.py``.

Writes PLAYGROUND.md beside this file.
"""

import asyncio
import json
import statistics
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import websockets
from chromium import chromium, playground

from condensation.playground._messages import unpack

PLAY = "#width=200&speed={speed}"
SECONDS = 10.0
PAGES = 10


def first_picture(driver: Any, address: str) -> float:
    """Seconds from opening the page to its first picture."""
    driver.get("about:blank")
    driver.get(address)
    driver.set_script_timeout(30)
    return driver.execute_async_script(
        "const done = arguments[0]; window.playground.ready.then(() => done("
        "performance.getEntriesByName('first picture')[0].startTime / 1000));"
    )


def frames_a_second(driver: Any, address: str, speed: int) -> tuple[float, float]:
    """Frames drawn and steps trained in a second of play, after two seconds."""
    driver.get("about:blank")
    driver.get(address + PLAY.format(speed=speed))
    driver.execute_async_script(
        "const done = arguments[0]; window.playground.ready.then(() => { window.playground.play(); done(); });"
    )
    time.sleep(2)
    look = "const p = window.playground; return [p.frames, p.state.frame.step, performance.now() / 1000];"
    before = driver.execute_script(look)
    time.sleep(SECONDS)
    frames, steps, seconds = (b - a for a, b in zip(before, driver.execute_script(look), strict=True))
    return frames / seconds, steps / seconds


async def visit(address: str, seconds: float) -> float:
    """Frames a second of a page without a browser, which asks for the next when one has come, 60 times at most."""
    host, frames, number = urlsplit(address).netloc, 0, 1
    async with websockets.connect(f"ws://{host}/live", origin=f"http://{host}", max_size=None) as link:  # type: ignore[arg-type]
        await link.recv()
        await link.send(json.dumps({"id": 1, "do": "open", "settings": {"width": "200"}}))
        await link.recv()
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            number, asked = number + 1, time.perf_counter()
            await link.send(json.dumps({"id": number, "do": "frame", "steps": 10}))
            assert unpack(await link.recv())[0]["kind"] == "frame"  # type: ignore[arg-type]
            frames += 1
            await asyncio.sleep(max(0.0, 1 / 60 - (time.perf_counter() - asked)))
        return frames / seconds


async def visits(address: str, count: int, seconds: float) -> list[float]:
    """Frames a second of several such pages at once."""
    return await asyncio.gather(*(visit(address, seconds) for _ in range(count)))


def main() -> None:
    """Measure, print, write down."""
    rows = []

    def note(what: str, value: str, asked: str) -> None:
        rows.append(f"| {what} | {value} | {asked} |")
        print(rows[-1], flush=True)

    starts = []
    for _ in range(3):
        with playground() as (_, _, seconds):
            starts.append(seconds)
    note("process start until the page can be had", f"{statistics.median(starts):.2f} s", "under 4 s")
    with playground() as (address, _, _), chromium() as driver:
        cold = first_picture(driver, address)
        warm = [first_picture(driver, address) for _ in range(5)]
        note("first picture, at once after the start", f"{cold:.2f} s", "under 1.5 s")
        note("first picture, later", f"{statistics.median(warm):.2f} s", "under 1.5 s")
        for speed in (1, 10, 1000):
            frames, steps = frames_a_second(driver, address, speed)
            note(f"200 neurons, {speed} steps a frame", f"{frames:.0f} frames, {steps:.0f} steps a second", "30 frames")
        driver.get("about:blank")
        found = asyncio.run(visits(address, PAGES, SECONDS))
        note(
            f"{PAGES} pages at once (no browser)",
            f"{min(found):.0f} to {max(found):.0f} frames a second each",
            "usable",
        )
        driver.get(address + PLAY.format(speed=10))
        driver.execute_async_script("const d = arguments[0]; playground.ready.then(() => { playground.play(); d(); });")

        async def beside() -> tuple[int, list[float]]:
            before = driver.execute_script("return playground.frames")
            others = await visits(address, PAGES - 1, SECONDS)
            return driver.execute_script("return playground.frames") - before, others

        frames, others = asyncio.run(beside())
        note(
            f"a browser's page beside {PAGES - 1} others",
            f"{frames / SECONDS:.0f} frames a second, the others {statistics.median(others):.0f}",
            "usable",
        )
    text = (
        "# The playground's speed\n\nMeasured by `python benchmarks/playground.py` with the real command and a "
        "headless Chromium (which draws in software) on the same two cores; a 1-200-1 network on 40 samples, all views "
        "shown.\n\n"
        "| | measured | asked |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    )
    (Path(__file__).parent / "PLAYGROUND.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
