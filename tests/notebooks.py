"""The tutorials run in a Jupyter kernel of their own: for the tests, and for ``make tutorials``, which stores them."""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
SHARP = "--InlineBackend.rc={'figure.dpi': 144}"
LIMIT = 300  # seconds, of a cell and until the kernel is there


def execute(notebook: nbformat.NotebookNode, folder: str | Path) -> nbformat.NotebookNode:
    """Run all cells in an empty folder; the outputs are replaced. A cell that fails raises ``CellExecutionError``."""
    notebook.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    client = NotebookClient(
        notebook,
        timeout=LIMIT,
        startup_timeout=LIMIT,
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=[SHARP],
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    notebook.metadata["language_info"] = {"name": "python"}  # not this machine's version
    return notebook


def store(path: Path) -> None:
    """Run a notebook and write it with its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(execute(nbformat.read(path, as_version=4), folder), path)


if __name__ == "__main__":
    for path in [Path(name) for name in sys.argv[1:]] or sorted(TUTORIALS.glob("*.ipynb")):
        print(path.name, flush=True)
        store(path)
