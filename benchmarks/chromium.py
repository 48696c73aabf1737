"""The playground's command and a headless Chromium, for measurements."""

import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def playground(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str], float]]:
    """The running command: its address, its process, and the seconds until its page could be had."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "condensation", "play", "--no-browser", "--port", "0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split(" at ")[1].split()[0]
        urllib.request.urlopen(address, timeout=60).read()
        yield address, process, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def chromium(width: int = 1440, height: int = 900) -> Iterator[Any]:
    """A driver of a headless Chromium."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--window-size={width},{height}"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()
