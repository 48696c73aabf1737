"""Keep what a reproduction at the paper's scale found: `python results/collect.py OUT [OUT ...]`.

Takes the folders that `condensation reproduce --scale paper --out OUT` wrote and writes, beside this file, claims.json
(every claim), runs.json (device, versions, seeds and seconds of each figure), figures/ (the pictures as small PNGs) and
README.md (the verdicts). The words of a statement are those of today's code where its rule is still the same.
"""

import json
import shutil
import sys
from collections import Counter
from pathlib import Path

from PIL import Image

from condensation.papers import FIGURES, Section
from condensation.papers._report import PAPERS, VERDICTS

HERE = Path(__file__).parent
CLAIMS = {figure.claim_id(claim.key): claim for figure in FIGURES.values() for claim in figure.claims}


def collect(folders: list[Path]) -> None:
    """Write all of it; a later folder's section takes the place of an earlier one's."""
    found = {}
    for folder in folders:
        for path in sorted((folder / "sections").glob("*.json")):
            section = Section.read(path)
            if section is None:
                sys.exit(f"{path} cannot be read as a section of a report: nothing was changed")
            if section.variant:
                continue
            if section.scale != "paper":
                sys.exit(f"{path} is of the {section.scale} scale, not of the paper's")
            found[section.name] = (section, folder)
    sections = [found[name] for name in FIGURES if name in found]
    if not sections:
        sys.exit(f"no finished figure in {', '.join(map(str, folders))}: nothing was changed")
    shutil.rmtree(HERE / "figures", ignore_errors=True)
    (HERE / "figures").mkdir()
    for section, folder in sections:
        for name in section.pictures:
            shrink(folder / "figures" / f"{name}.png", HERE / "figures" / f"{name}.png")
    for section, _ in sections:
        section.claims[:] = [reword(claim) for claim in section.claims]
    claims = [claim for section, _ in sections for claim in section.claims]
    write("claims.json", claims)
    write("runs.json", [about(section) for section, _ in sections])
    (HERE / "README.md").write_text(page([section for section, _ in sections]))
    missing = [name for name in FIGURES if name not in found]
    print(f"{len(sections)} figures, {len(claims)} claims" + (f"; missing: {', '.join(missing)}" if missing else ""))


def reword(claim: dict) -> dict:
    """A claim in today's words, if the rule is the same."""
    now = CLAIMS.get(claim["id"])
    if now is None or str(now.rule) != claim["expected"]:
        return claim
    return claim | {"where": now.where, "statement": now.text, "quantity": now.quantity, "ours": now.ours}


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
    return f"""# Both papers at their own scale

Written by `python results/collect.py` from `condensation reproduce --scale paper`: `claims.json` has every claim with
its values in each seed, `runs.json` device, versions and time of each figure, `figures/` the pictures.

{chr(10).join(rows)}

{chr(10).join(each)}
"""


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python results/collect.py OUT [OUT ...]")
    collect([Path(name) for name in sys.argv[1:]])
