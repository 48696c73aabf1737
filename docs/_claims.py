"""The pages on claims: all of them in one table that can be filtered, and a page for each figure.

They are made from results/ when the site is built. A figure's page has its pictures, its claims with verdict and
reason, the command that makes it again, and its experiments as TOML.
"""

import json
import re
from collections import Counter
from html import escape
from pathlib import Path

from mkdocs.structure.files import File

from condensation.errors import InputError
from condensation.papers import FIGURES
from condensation.papers._report import PAPERS, RULE, SOURCES, VERDICTS, found, share
from condensation.papers._rerun import to_toml

RESULTS = Path(__file__).parents[1] / "results"
CLAIMS = json.loads((RESULTS / "claims.json").read_text(encoding="utf-8"))
RUNS = {run["name"]: run for run in json.loads((RESULTS / "runs.json").read_text(encoding="utf-8"))}
SHOWN = [name for name in FIGURES if name in RUNS]


def on_config(config):
    """List the figures' pages under *Claims*, by paper."""
    claims = next(entry["Claims"] for entry in config.nav if "Claims" in entry)
    for paper in PAPERS:
        pages = [{FIGURES[name].title: f"claims/{name}.md"} for name in SHOWN if FIGURES[name].paper == paper]
        if pages:
            claims.append({f"Figures of {paper}": pages})
    return config


def on_files(files, config):
    """Add the pages and the files of the experiments."""
    made = {"claims/index.md": table_of_claims()}
    for name in SHOWN:
        experiments = toml_of(name)
        made[f"claims/{name}.md"] = page_of(name, experiments)
        made |= {f"claims/{file}": text for file, text in experiments.items()}
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def table_of_claims():
    """All claims with their filters."""
    rows = "\n".join(map(row_of, CLAIMS))
    rules = "; ".join(f"{badge(verdict)} {escape(RULE[verdict])}" for verdict in VERDICTS)
    return f"""# Claims

Each statement of the papers, at the papers' own scale, judged over several seeds of data and initialization.
The reason stands where a statement does not hold. Follow a figure to its pictures, its command and its settings.
[How to read a verdict](../reading-a-verdict.md) · [what was found, in words](../findings.md)

{counts()}

<p>{rules}.</p>
<form id="claim-filters">
{choice("verdict", VERDICTS)}
{choice("paper", [paper for paper in PAPERS if any(claim["paper"] == paper for claim in CLAIMS)])}
{choice("figure", SHOWN)}
<label>words <input name="words" type="search" placeholder="x tanh x"></label>
<span id="claims-shown">{len(CLAIMS)} of {len(CLAIMS)}</span>
</form>
<table id="claims">
<thead><tr><th>figure</th><th>statement</th><th>verdict</th><th>holds in</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
"""


def counts():
    """How many claims have which verdict, by paper; additional questions apart."""
    rows = ["| statements | " + " | ".join(VERDICTS) + " |", "| --- |" + " --- |" * len(VERDICTS)]
    for paper, about in PAPERS.items():
        for ours, whose in ((False, f"{paper}, {about}"), (True, f"{paper}, additional questions")):
            own = Counter(claim["verdict"] for claim in CLAIMS if (claim["paper"], claim["ours"]) == (paper, ours))
            if own:
                rows.append(f"| {whose} | " + " | ".join(str(own[verdict]) for verdict in VERDICTS) + " |")
    return "\n".join(rows)


def row_of(claim):
    """A claim as a row of the table."""
    link = f"{claim['figure']}.html#{claim['id']}"
    why = f'<span class="why">{escape(claim["why"])}</span>' if claim["why"] else ""
    return (
        f'<tr data-verdict="{claim["verdict"]}" data-paper="{claim["paper"]}" data-figure="{claim["figure"]}">'
        f'<td><a href="{link}">{claim["figure"]}</a></td><td>{statement(claim)}{why}</td>'
        f"<td>{badge(claim['verdict'])}</td><td>{share(claim['holds'])}</td></tr>"
    )


def page_of(name, experiments):
    """The page of a figure."""
    figure, run = FIGURES[name], RUNS[name]
    own = [claim for claim in CLAIMS if claim["figure"] == name]
    pictures = sorted(path.stem for path in (RESULTS / "figures").glob("*.png") if belongs(path.stem, name))
    shown = "\n\n".join(f"![{figure.title}: {picture}](../../results/figures/{picture}.png)" for picture in pictures)
    chosen = f"What the text leaves open and we chose: {escape(figure.chosen)}.\n" if figure.chosen else ""
    claims = "\n\n".join(map(claim_block, own))
    device = "two CPU cores" if run["device"] == "cpu" else run["device"]
    return f"""# {figure.title}

{sources(figure.paper)}

{shown}

Make it again, with pictures, claims and a report in `out/`:

```sh
condensation reproduce {name}                 # at the quick scale
condensation reproduce {name} --scale paper   # with the captioned settings
```

A *table* that a reason names stands in that report. It took {run["seconds"]:.0f} s at the paper's scale on {device}.
[All claims](index.md) · [how to read a verdict](../reading-a-verdict.md)

## Claims

{claims}

{chosen}
{settings(name, experiments)}"""


def sources(paper):
    """The papers with links."""
    return "\n\n".join(
        f'{source["authors"]}, "{source["title"]}", {source["journal"]}'
        + (f", [arXiv:{source['arxiv']}](https://arxiv.org/abs/{source['arxiv']})." if source["arxiv"] else ".")
        for source in SOURCES.get(paper, ())
    )


def claim_block(claim):
    """A claim with its numbers and its reason."""
    measured, untrained = claim.get("measured") or {}, claim.get("untrained")
    values = f", found {found(measured)}" if found(measured) else ""
    facts = [
        f"holds in {share(claim['holds'])}",
        f"{escape(claim['quantity'])}: expected {escape(claim['expected'])}{values}",
        escape(claim["where"]) + (", an additional question" if claim["ours"] else ""),
    ]
    if untrained:
        facts.append(f"untrained networks: holds in {share(untrained['holds'])}")
    why = f'<p class="why">{escape(claim["why"])}</p>' if claim["why"] else ""
    return (
        f'<div class="claim" id="{claim["id"]}"><p>{badge(claim["verdict"])} <strong>{statement(claim)}</strong></p>'
        f'<p class="how">{" · ".join(facts)}</p>{why}</div>'
    )


def settings(name, experiments):
    """The experiments of a figure as TOML, folded."""
    declared = FIGURES[name].experiments("paper")
    if not declared:
        return ""
    seeds = RUNS[name]["seeds"][0]
    blocks = "\n\n".join(
        f'??? note "{file}"\n    [Save the file]({file}), then `condensation train {file} --seeds {seeds}`.\n\n'
        + "\n".join(f"    {line}".rstrip() for line in ["```toml", *text.splitlines(), "```"])
        for file, text in experiments.items()
    )
    rest = len(declared) - len(experiments)
    note = f"\n\nThe data of {rest} of its {len(declared)} experiments are arrays that code makes: they have no TOML."
    return f"## Settings\n\nEach experiment at the paper's scale.\n\n{blocks}{note if rest else ''}\n"


def toml_of(name):
    """The experiments of a figure as TOML by file name, those without arrays."""
    texts = {}
    for key, experiment in FIGURES[name].experiments("paper").items():
        try:
            text = to_toml(experiment)
        except InputError:  # arrays cannot stand in TOML
            continue
        slug = re.sub(r"[^a-z0-9_.]+", "-", f"{name}-{key}".lower()).strip("-")
        texts[f"{slug}.toml"] = text
    return texts


def belongs(picture, name):
    """Whether a picture is of a figure and not of another whose name begins alike."""
    owners = [other for other in FIGURES if picture == other or picture.startswith(f"{other}-")]
    return max(owners, key=len, default="") == name


def statement(claim):
    """What is claimed."""
    return escape(claim["statement"])


def badge(verdict):
    """A verdict in its colour."""
    return f'<span class="verdict {verdict.replace(" ", "-")}">{verdict}</span>'


def choice(name, values):
    """A filter."""
    options = "".join(f"<option>{value}</option>" for value in values)
    return f'<label>{name} <select name="{name}"><option value="">all</option>{options}</select></label>'
