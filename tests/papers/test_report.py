"""The report's pages and its small pictures, from sections made by hand."""

import math
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from html_page import Page
from matplotlib.figure import Figure

from condensation.cli._reproduce import COLOURS, row_of
from condensation.drawing._strip import WIDTH, accepted, strip
from condensation.papers import Claim, Finding, PaperFigure, PerSeed, Rule, Section, Variant
from condensation.papers._pages import figure_page, first_page
from condensation.papers._report import SOURCES, VERDICTS, number


def claim(
    name, values, rule=("exactly", 1), *, valid=None, decided=None, untrained=None, paper="FC", figure="fc-fig3", why=""
):
    own = type("Own", (PaperFigure,), {"name": figure, "paper": paper})
    bound = Claim(name, "Fig. 3", f"statement of {name}", "lines", Rule(*rule), lambda figure: PerSeed([]))
    measured = None if values is None else PerSeed(values, valid, decided)
    control = None if untrained is None else PerSeed(untrained)
    return Finding(own, bound, "quick", Variant(), measured, control, why).to_plain()


@pytest.fixture
def sections(tmp_path):
    (tmp_path / "figures").mkdir()
    picture = Figure(figsize=(0.5, 0.3))
    for name in ("fc-fig3", "fc-fig3-time"):
        picture.savefig(tmp_path / "figures" / f"{name}.png", dpi=40)
    claims = [
        claim("all", [1] * 10, untrained=[0] * 10),
        claim("some", [1, 1, 2, 3], untrained=[1, 1, 0, 0], why="where <b>bold</b> & so on"),
        claim("none", [0.06, 0.07], ("at most", 0.05)),
    ]
    made = Section(
        "fc-fig3", "FC Fig. 3: lines", "key", "done", seeds=(4, 10), reduced="640 images",
        caption="Cosine <similarity>.", settings={"network": "5-50-1"},
        tables=[{"title": "A table", "header": ["x", "y"], "rows": [["1", "<2>"]]}],
        claims=claims, pictures=["fc-fig3", "fc-fig3-time"], data=["data/fc-fig3.parquet"],
        runs={"tanh": "runs/0123456789abcdef", "threshold 0.8": "runs/0123456789abcdef"},
        notes=["a warning <i>"], seconds=12.3, versions={"jax": "0.10"}, device="cpu:0",
    )  # fmt: skip
    failed = claim("a", None, paper="CNN", figure="cnn-fig1", why="ValueError: <no> shape")
    missing = claim("a", None, paper="CNN", figure="cnn-fig2", why="cifar10 cannot be had")
    varied = {"id": "fc-fig3-all_eps-1e-30", "figure": "fc-fig3_eps-1e-30", "variant": "eps 1e-30"}
    return [
        made,
        Section("cnn-fig1", "CNN Fig. 1", "key", "failed", reason="ValueError: <no> shape", claims=[failed]),
        Section("cnn-fig2", "CNN Fig. 2", "key", "not run", reason="cifar10 cannot be had", claims=[missing]),
        replace(made, name="fc-fig3_eps-1e-30", variant="eps 1e-30", claims=[claims[0] | varied], pictures=[]),
    ]


def pages(sections, folder):
    """The first page, and those of the figures by name."""
    figures = {section.name: Page(figure_page(section, sections, folder)) for section in sections}
    return Page(first_page(sections, folder)), figures


def test_every_claim_is_there_with_its_verdict_and_anchors_lead_somewhere(sections, tmp_path):
    first, figures = pages(sections, tmp_path)
    for section in sections:
        own = figures[section.name]
        for one in section.claims:
            for page, name in ((first, f"claim-{one['id']}"), (own, one["id"])):
                assert one["statement"] in page.texts[name]
                assert one["verdict"] in page.texts[name]
                assert one["why"] in page.texts[name] or one["why"] == section.reason
            assert one["statement"] in first.texts[section.name]
            assert f"pages/{section.name}.html#{one['id']}" in first.links
            assert f"#{one['id']}" in own.links
        assert f"#{section.name}" in first.links
    for page in (first, *figures.values()):
        assert len(page.ids) == len(set(page.ids))
        assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)


def test_a_page_needs_no_other_file_and_no_other_host(sections, tmp_path):
    first, figures = pages(sections, tmp_path)
    for page in (first, *figures.values()):
        assert not page.seen & {"link", "iframe", "object"}
        assert all(re.match("data:image/(png|webp);base64,", str(image["src"])) for image in page.images)
        assert {link for link in page.links if ":" in link and not link.startswith("data:")} <= {
            f"https://arxiv.org/abs/{source['arxiv']}" for some in SOURCES.values() for source in some
        }
        assert page.scripts == [None]  # the source stands in the page
        assert "default-src 'none'" in page.policy
    one = figures["fc-fig3"]
    for path in ("data/fc-fig3.parquet", "figures/fc-fig3-time.pdf", "runs/0123456789abcdef"):
        assert f"../{path}" in one.links
    assert "claims.json" in first.links
    large, other = one.images
    assert large["alt"] == "FC Fig. 3: lines. Cosine <similarity>."
    assert other["alt"] == "FC Fig. 3: lines. Against training time"
    assert (large["width"], large["height"]) == ("20", "12")


def test_figures_link_to_their_paper_and_their_neighbours(sections, tmp_path):
    first, figures = pages(sections, tmp_path)
    assert {"https://arxiv.org/abs/2105.11686", "https://arxiv.org/abs/2305.09947"} <= {*first.links}
    assert "https://arxiv.org/abs/2305.09947" in figures["cnn-fig1"].links
    assert {"fc-fig3.html", "cnn-fig2.html", "../index.html#cnn-fig1"} <= {*figures["cnn-fig1"].links}


def test_the_sources_are_those_of_the_readme_and_of_the_page_of_later_sources():
    root = Path(__file__).parents[2]
    readme, page = (
        " ".join((root / path).read_text(encoding="utf-8").split()) for path in ("README.md", "docs/later-sources.md")
    )
    for paper, sources in SOURCES.items():
        told = readme if paper in {"FC", "CNN", "BEYOND", "PHASES"} else page
        for source in sources:
            assert source["title"] in told
            assert f"arXiv:{source['arxiv']}" in told or not source["arxiv"]


def test_headings_go_down_by_one(sections, tmp_path):
    first, figures = pages(sections, tmp_path)
    for page in (first, *figures.values()):
        assert page.headings[0] == 1
        assert page.headings.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(page.headings))


def test_what_is_given_is_escaped(sections, tmp_path):
    bad = "<script>alert(1)</script>"
    claims = [one | {"statement": bad, "id": f"x{k}", "why": bad} for k, one in enumerate(sections[0].claims)]
    entry = {"names": [bad], "file": "", "files": [], "seeds": 1, "command": "", "reason": bad, "evidence": False}
    worst = replace(
        sections[0], claims=claims, title=bad, caption=bad, variant=bad, notes=[bad], command=bad, experiments=[entry]
    )
    for text in (first_page([worst], tmp_path), figure_page(worst, [worst], tmp_path)):
        assert text.count("<script") == 1  # our own
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
        Page(text)


def test_what_failed_or_was_not_run_says_why(sections, tmp_path):
    first, figures = pages(sections, tmp_path)
    for page in (first, figures["cnn-fig1"]):
        assert "Failed: ValueError: <no> shape" in page.texts["main"]
    assert "Not run: cifar10 cannot be had" in first.texts["cnn-fig2"]
    assert "Not run: cifar10 cannot be had" in figures["cnn-fig2"].texts["main"]
    assert "Made smaller at the quick scale: 640 images" in figures["fc-fig3"].texts["main"]
    assert "eps 1e-30" in first.texts["fc-fig3_eps-1e-30"]
    assert "eps 1e-30" in figures["fc-fig3_eps-1e-30"].texts["main"]


def test_variants_are_not_counted_with_the_papers_settings(sections, tmp_path):
    text = " ".join(re.sub("<[^>]*>", "", first_page(sections, tmp_path)).split())
    assert "Of 5 claims, with the settings of the papers, 1 is reproduced, 1 in part, 1 not; 2 were not run." in text
    text = " ".join(re.sub("<[^>]*>", "", first_page(sections[-1:], tmp_path)).split())
    assert "Of 1 claim, with other settings than the captioned ones, 1 is reproduced" in text


def test_a_control_that_holds_is_marked(sections, tmp_path):
    first, figures = pages(sections, tmp_path)
    own = figures["fc-fig3"]
    assert "untrained networks pass too" in first.texts["claim-fc-fig3-some"]
    assert "untrained networks pass too" not in first.texts["claim-fc-fig3-all"]
    assert "holds too" in own.texts["fc-fig3-some"]
    assert "0 of 10" in own.texts["fc-fig3-all"]
    assert "holds too" not in own.texts["fc-fig3-all"]


def test_a_page_of_nothing_and_a_picture_that_is_gone(sections, tmp_path):
    assert "Nothing is finished yet." in first_page([], tmp_path)
    (tmp_path / "figures" / "fc-fig3.png").write_bytes(b"no picture")
    assert Page(first_page(sections, tmp_path)).images == []
    (tmp_path / "figures" / "fc-fig3.png").unlink()
    first, figures = pages(sections, tmp_path)
    assert first.images == []
    assert "fc-fig3.png is not in the folder" in figures["fc-fig3"].texts["main"]
    assert len(figures["fc-fig3"].images) == 1


def test_the_contents_and_the_filters_know_all_figures_and_verdicts(sections, tmp_path):
    first, _ = pages(sections, tmp_path)
    assert first.hidden >= {"filters", "nothing"}  # until the script shows them
    found = {one["verdict"] for section in sections for one in section.claims}
    assert {f"show-{verdict.replace(' ', '-')}" for verdict in found} <= set(first.ids)
    for section in sections:
        assert section.title.removeprefix("FC ").removeprefix("CNN ") in first.texts["contents"]
        assert section.variant in first.texts["contents"]


def dots(picture):
    kinds = re.findall(r'class="seed (\w+)"', picture)
    return {kind: kinds.count(kind) for kind in ("holds", "fails", "void")}


def places(picture):
    found = re.findall(r'c[xy]="([^"]*)"', picture)
    return [(float(x), float(y)) for x, y in zip(found[::2], found[1::2], strict=True)]


@pytest.mark.parametrize(
    ("values", "rule", "valid", "found"),
    [
        ([3, 1, 1, 1, 2], ("exactly", 1), None, (3, 2, 0)),
        ([1, 1, 1, 2], ("exactly", 1), [True, False, True, False], (2, 0, 2)),
        ([0.1, math.nan, 0.2], ("at most", 0.15), None, (1, 1, 0)),
        ([5], ("exactly", 5), None, (1, 0, 0)),
        ([1] * 10, ("at least", 1), None, (10, 0, 0)),
        ([0] * 10, ("at most", 0), None, (10, 0, 0)),
        ([1e-31, 1e-15], ("at most", 0.01), None, (2, 0, 0)),
        ([1e30, -1e30], ("at least", 0), None, (1, 1, 0)),
        ([2] * 100, ("exactly", 3), None, (0, 100, 0)),
    ],
)
def test_a_strip_has_a_dot_a_seed(values, rule, valid, found):
    picture = strip(claim("a", values, rule, valid=valid))
    Page(picture)
    assert tuple(dots(picture).values()) == found
    assert "<title>holds in" in picture
    assert len(set(places(picture))) == len(places(picture))
    assert all(0 <= x <= WIDTH for x, _ in places(picture))
    assert not re.search("nan|inf", picture)


def test_a_seed_that_decides_nothing_is_a_cross_and_is_not_counted():
    undecided = claim("a", [1, 1, 2], decided=[True, False, False])
    assert tuple(dots(strip(undecided)).values()) == (1, 0, 2)
    assert "holds in 1 of 1 seeds" in strip(undecided)
    assert undecided["verdict"] == "not decided"


def test_every_verdict_has_a_row_in_the_table_of_the_command():
    rows = [row_of(claim("a", values, decided=decided)) for values, decided in (([1, 2], [True, False]), (None, None))]
    rows += [row_of(claim("a", [1, 2, 2, 2], decided=[True, False, False, False])), row_of(claim("a", [2, 2]))]
    assert [row[3] for row in rows] == ["1 of 1; 1 not decided", "\N{EN DASH}", "1 of 1; 3 not decided", "0 of 2"]
    assert set(COLOURS) == set(VERDICTS)


@pytest.mark.parametrize("values", [None, [], [math.nan, math.nan]])
def test_a_strip_of_no_seeds_is_empty(values):
    assert strip(claim("a", values)) == ""


@pytest.mark.parametrize("rule", [Rule("exactly", 3), Rule("at most", 0.05), Rule("at least", -0.02)])
def test_a_rule_is_read_as_it_is_written(rule):
    assert accepted(str(rule)) == rule


def test_numbers_are_short_and_do_not_seem_whole_when_they_are_not():
    assert [number(value) for value in (None, 0, 12345, 0.5, 0.99998, 1.37e-15, -2)] == [
        "\N{EN DASH}", "0", "12345", "0.5", "0.99998", "1.37 \N{MULTIPLICATION SIGN} 10⁻¹⁵", "\N{MINUS SIGN}2",
    ]  # fmt: skip
