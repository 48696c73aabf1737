"""The tutorials: each notebook of docs/tutorials/ as a page, made from the cells and the outputs that it stores.

The notebook itself is copied to the site too, so that a reader can download it. ``make tutorials`` runs the notebooks
and stores their outputs.
"""

import json
import re
from base64 import b64decode
from pathlib import Path
from textwrap import indent

TUTORIALS = Path(__file__).with_name("tutorials")
NOTEBOOK = re.compile(r"(\]\([^)#:\s]+)\.ipynb(#[^)\s]*)?\)")  # a link to a notebook


def on_files(files, config):
    """Add a page for each notebook, and its pictures."""
    from mkdocs.exceptions import PluginError
    from mkdocs.structure.files import File

    for path in sorted(TUTORIALS.glob("*.ipynb")):
        try:
            made = page_of(path)
        except (KeyError, ValueError) as error:
            raise PluginError(f"{path.name} cannot be shown: {error}") from error
        for name, content in made.items():
            files.append(File.generated(config, f"tutorials/{name}", content=content))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to notebooks, which a reader of the repository follows, as links to their pages."""
    return NOTEBOOK.sub(r"\1.md\2)", markdown)


def page_of(path):
    """The page of a notebook as Markdown, and its pictures, by file name."""
    pictures, blocks = {}, []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            blocks.append(source)
            continue
        if cell["execution_count"] is None:
            raise ValueError("a cell was not run; make tutorials runs them all")
        shown = [fenced("python", source), *(output_of(each, path.stem, pictures) for each in cell["outputs"])]
        block = "\n\n".join(shown)
        folded = cell["metadata"].get("jupyter", {}).get("source_hidden", False)
        blocks.append('??? note "An answer"\n' + indent(block, "    ") if folded else block)
    title, _, rest = blocks[0].partition("\n")
    if not title.startswith("# "):
        raise ValueError("its first cell must begin with a heading, such as # Count honestly")
    button = f'<p><a class="md-button" href="{path.name}" download>Download this notebook</a></p>'
    return {f"{path.stem}.md": "\n\n".join([title, button, rest.strip(), *blocks[1:]]) + "\n"} | pictures


def output_of(output, name, pictures):
    """What a cell printed or drew, as Markdown; a picture is kept under a file name."""
    if output["output_type"] == "stream":
        return fenced("text", "".join(output["text"]).rstrip("\n"))
    data = output.get("data", {})
    if "image/png" in data:
        file = f"{name}-{len(pictures) + 1}.png"
        pictures[file] = b64decode("".join(data["image/png"]))
        return f"![Picture {len(pictures)} of this tutorial]({file})"
    if "text/plain" in data:
        return fenced("text", "".join(data["text/plain"]))
    raise ValueError(f"the page has no form for an output of type {output['output_type']}")


def fenced(language, text):
    """A block of code or text; whatever it holds, it does not end the block."""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`{3,}", text))])
    return f"{fence}{language}\n{text}\n{fence}"
