"""Keep what a reproduction at the paper's scale found: `python results/collect.py [OUT ...]`.

Takes the folders that `condensation reproduce --scale paper --out OUT` wrote. What is kept of other figures stays;
without a folder all that is kept is written anew. Beside this file stand claims.json (every claim), runs.json (device,
versions, seeds and seconds of each figure), figures/ (the pictures as small PNGs) and README.md (the verdicts). The
verdicts also go into the package, for the report of the quick scale. The words of a statement are those of today's
code where its rule or its quantity is still the same, and its verdict is judged anew from its seeds.
"""

import json
import math
import sys
from collections import Counter
from pathlib import Path

from PIL import Image

from condensation import papers
from condensation.papers import FIGURES, Section, judge
from condensation.papers._claims import Rule, revision
from condensation.papers._report import PAPERS, VERDICTS

HERE = Path(__file__).parent
TABLE = Path(papers.__file__).with_name("paper_scale.json")  # shipped: the report shows it beside the quick scale
CLAIMS = {figure.claim_id(claim.key): claim for figure in FIGURES.values() for claim in figure.claims}


def collect(folders: list[Path]) -> None:
    """Write all of it; a later folder's section takes the place of an earlier one's, and of what is kept."""
    sections, pictures = kept(), {}
    for folder in folders:
        for path in sorted((folder / "sections").glob("*.json")):
            section = Section.read(path)
            if section is None:
                sys.exit(f"{path} cannot be read as a section of a report: nothing was changed")
            if section.variant:
                continue
            if section.scale != "paper":
                sys.exit(f"{path} is of the {section.scale} scale, not of the paper's")
            sections[section.name] = section
            pictures |= {name: folder / "figures" / f"{name}.png" for name in section.pictures}
    sections = {name: sections[name] for name in FIGURES if name in sections}
    if not sections:
        sys.exit(f"no finished figure in {', '.join(map(str, folders))}: nothing was changed")
    for name, source in pictures.items():
        shrink(source, HERE / "figures" / f"{name}.png")
    for section in sections.values():
        section.claims[:] = [reword(claim) for claim in section.claims if claim["id"] in CLAIMS]
    claims = [claim for section in sections.values() for claim in section.claims]
    write("claims.json", claims)
    write("runs.json", [about(section) for section in sections.values()])
    table = {claim["id"]: {name: claim[name] for name in ("expected", "verdict", "holds")} for claim in claims}
    TABLE.write_text(json.dumps(table, ensure_ascii=False) + "\n")
    (HERE / "README.md").write_text(page([*sections.values()]))
    missing = [name for name in FIGURES if name not in sections]
    print(f"{len(sections)} figures, {len(claims)} claims" + (f"; missing: {', '.join(missing)}" if missing else ""))


def kept() -> dict[str, Section]:
    """The sections that are kept beside this file, as far as they are."""
    claims, sections = json.loads((HERE / "claims.json").read_text()), {}
    for run in json.loads((HERE / "runs.json").read_text()):
        own = [claim for claim in claims if claim["figure"] == run["name"]]
        fields = {name: value for name, value in run.items() if name != "code"}
        title = FIGURES[run["name"]].title
        sections[run["name"]] = Section(**fields, title=title, key=run["code"], claims=own)
    return sections


def reword(claim: dict) -> dict:
    """A claim in today's words, if its rule or its quantity is the same: then its seeds are judged by the new rule."""
    now = CLAIMS[claim["id"]]
    if str(now.rule) != claim["expected"]:
        if now.quantity != claim["quantity"] or not claim["holds"]:
            return claim
        claim = by_rule(claim, now.rule)
    words = {"where": now.where, "statement": now.text, "quantity": now.quantity, "ours": now.ours}
    figure = FIGURES[claim["figure"]]
    return claim | words | {"chosen": figure.chosen, "verdict": judge(claim["holds"]), "why": why_now(claim)}


def why_now(claim: dict) -> str:
    """The reason with how the claim was judged before; values that fail are those of today's judgement."""
    why, before = claim["why"], revision(claim["id"])
    if why.startswith("Expected "):
        seeds = zip(claim["measured"]["seeds"], claim["holds"], strict=True)
        failing = [f"{math.nan if value is None else value:.3g}" for value, holds in seeds if holds is False]
        why = f"Expected {claim['expected']}; found where it fails: {', '.join(failing)}." if failing else ""
    return why if before in why else " ".join(filter(None, (before, why)))


def by_rule(claim: dict, rule: Rule) -> dict:
    """A claim whose seeds are judged by another rule; one that decided nothing still does not."""

    def judged(measured: dict, before: list) -> list:
        seeds = zip(measured["seeds"], measured["valid"], before, strict=True)
        return [None if was is None else ok and rule.holds(math.nan if x is None else x) for x, ok, was in seeds]

    again = claim | {"expected": str(rule), "holds": judged(claim["measured"], claim["holds"])}
    if control := claim.get("untrained"):
        holds = judged(control, control["holds"])
        again["untrained"] = control | {"holds": holds, "verdict": judge(holds)}
    return again


def shrink(source: Path, target: Path) -> None:
    """A picture with a palette of 256 colours."""
    picture = Image.open(source).convert("RGB")
    picture.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(target, optimize=True)


def about(section: Section) -> dict:
    """How a figure was made."""
    kept = ("name", "status", "reason", "scale", "seeds", "seconds", "device", "versions", "missing")
    return {name: getattr(section, name) for name in kept} | {"code": section.key.split("-")[0]}


def write(name: str, content: list) -> None:
    """A JSON file beside this one."""
    (HERE / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def page(sections: list[Section]) -> str:
    """The verdicts by paper and by figure."""
    rows = ["| | " + " | ".join(VERDICTS) + " |", "| --- |" + " --- |" * len(VERDICTS)]
    for paper, said in PAPERS.items():
        for ours, whose in ((False, f"{paper} ({said})"), (True, f"{paper}, additional questions")):
            counts = Counter(
                claim["verdict"]
                for section in sections
                for claim in section.claims
                if claim["paper"] == paper and claim.get("ours", False) == ours
            )
            if counts:
                rows.append(f"| {whose} | " + " | ".join(str(counts[verdict]) for verdict in VERDICTS) + " |")
    each = [
        "| figure | seeds or draws | seconds | " + " | ".join(VERDICTS) + " |",
        "| --- |" + " --- |" * (2 + len(VERDICTS)),
    ]
    for section in sections:
        counts = Counter(claim["verdict"] for claim in section.claims)
        seeds = " to ".join(map(str, dict.fromkeys(section.seeds)))
        numbers = " | ".join(str(counts[verdict] or "") for verdict in VERDICTS)
        each.append(f"| {section.name}: {section.title} | {seeds} | {section.seconds:.0f} | {numbers} |")
    return f"""# The papers at their own scale

Written by `python results/collect.py` from `condensation reproduce --scale paper`: `claims.json` has every claim with
its values in each seed, `runs.json` device, versions and time of each figure, `figures/` the pictures. Seconds are
those of the last time it was made: what had been trained by then, in other processes or before, is not in them.

{chr(10).join(rows)}

{chr(10).join(each)}
"""


if __name__ == "__main__":
    collect([Path(name) for name in sys.argv[1:]])
