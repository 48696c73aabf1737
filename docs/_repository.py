"""Files of the repository that the site shows too, and links to them.

A file outside of docs/ has the same path in the site as in the repository. So a link that a reader of the repository
can follow, such as ``../benchmarks/SWEEPS.md`` in docs/sweeps.md, is followed in the site as well.
"""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
SHOWN = (
    *("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/*.md", "results/figures/*.png"),
    *("examples/*", "examples/experiments/*"),
)
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def on_files(files, config):
    """Add the files that are shown."""
    for path in (path for pattern in SHOWN for path in sorted(ROOT.glob(pattern)) if path.is_file()):
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links between files of the repository as links between pages of the site."""
    here = PurePosixPath(page.file.src_uri)

    def follow(link):
        source = here if (ROOT / here).exists() else "docs" / here
        target = normpath(source.parent / link[1])
        return f"]({relpath(target.removeprefix('docs/'), here.parent)}{link[2] or ''})"

    return LINK.sub(follow, markdown)
