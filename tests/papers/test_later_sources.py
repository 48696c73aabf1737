"""The page on later sources names claims that there are, and leaves no claim of these sources out without a word."""

import re
from pathlib import Path

from condensation.papers import FIGURES

PAGE = (Path(__file__).parents[2] / "docs" / "later-sources.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([a-z]\w*(?:-[\w.]+)+)`", PAGE))
OURS = {"ALIGN", "SADDLE", "DROPOUT", "OVERVIEW", "ATTENTION", "ANCHOR"}


def test_each_name_is_that_of_a_claim():
    known = {figure.claim_id(claim.key) for figure in FIGURES.values() for claim in figure.claims}
    assert len(NAMED) > 80
    assert known >= NAMED, sorted(NAMED - known)


def test_each_stated_claim_of_a_source_has_its_line():
    for figure in FIGURES.values():
        if figure.paper not in OURS:
            continue
        stated = {figure.claim_id(claim.key) for claim in figure.claims if not claim.ours}
        alike = {re.sub("^(attn-(?:stages|anchor))-tanh-", r"\1-linear-", each) for each in NAMED}
        alike |= {re.sub("^attn-text-fixed-", "attn-text-free-", each) for each in NAMED}
        assert stated <= NAMED | alike, sorted(stated - NAMED - alike)


def test_each_line_names_a_claim_or_says_why_there_is_none():
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and "tested by" not in line]
    assert len(lines) > 60
    for line in lines:
        assert re.search(r"`[a-z]\w*-|not determined|not tested|not built|tests/", line), line
