"""The recorded tour of the playground, as a page of the site.

The recording is kept in assets/tour.txt, since it takes minutes to make: ``make tour`` makes it anew when the tour has
changed. The page around it is that of the playground as it is now.
"""

import sys
from pathlib import Path

from condensation.playground._bundle import page

RECORDING = Path(__file__).parent / "assets" / "tour.txt"


def on_files(files, config):
    """Add the page."""
    from mkdocs.structure.files import File

    content = page(RECORDING.read_text(encoding="utf-8"))
    files.append(File.generated(config, "tour/index.html", content=content))
    return files


def main():
    """Record the tour."""
    from condensation.playground._library import Library
    from condensation.playground._recorder import record

    def report(name, done, total):
        print(f"{done} of {total} {name}", file=sys.stderr)

    RECORDING.write_text(record(Library(), (), tour=True, report=report), encoding="utf-8")


if __name__ == "__main__":
    main()
