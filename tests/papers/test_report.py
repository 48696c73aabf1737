"""The report's page and its small pictures, from sections made by hand."""

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from matplotlib.figure import Figure

from condensation.cli._reproduce import COLOURS, row_of
from condensation.drawing._strip import WIDTH, accepted, strip
from condensation.papers import Claim, Finding, PaperFigure, PerSeed, Rule, Section, Variant
from condensation.papers._report import VERDICTS, number, write_report

VOID = {"meta", "br", "img", "input", "link", "hr"}


class Page(HTMLParser):
    """A page read back: it fails where tags do not balance."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, str | None]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.headings: list[int] = []
        self.texts: dict[str, str] = {}
        self.seen: set[str] = set()
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.seen.add(tag)
        if "id" in found:
            self.ids.append(str(found["id"]))
        self.links += [str(found[name]) for name in ("href", "src") if name in found]
        if tag == "img":
            self.images.append(found)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append((tag, found.get("id")))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open[-1][0] == tag, f"</{tag}> closes {self.open[-1]}"
        self.open.pop()

    def handle_data(self, data):
        for _, name in self.open:
            if name:
                self.texts[name] = self.texts.get(name, "") + data


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


def test_every_claim_is_there_with_its_verdict_and_anchors_lead_somewhere(sections, tmp_path):
    page = Page(write_report(sections, tmp_path))
    for section in sections:
        for one in section.claims:
            assert one["statement"] in page.texts[f"claim-{one['id']}"]
            assert one["verdict"] in page.texts[f"claim-{one['id']}"]
            assert one["why"] in page.texts[f"claim-{one['id']}"]
            assert one["statement"] in page.texts[section.name]
            assert f"#claim-{one['id']}" in page.links
        assert f"#{section.name}" in page.links
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)


def test_the_page_needs_no_other_file_and_no_script(sections, tmp_path):
    page = Page(write_report(sections, tmp_path))
    assert not page.seen & {"script", "link", "iframe"}
    assert all(re.match("#|data:image/png;base64,|(figures|data|runs)/|claims.json$", link) for link in page.links)
    for path in ("claims.json", "data/fc-fig3.parquet", "figures/fc-fig3-time.pdf", "runs/0123456789abcdef/run.json"):
        assert path in page.links
    first, other = page.images
    assert first["alt"] == "FC Fig. 3: lines. Cosine <similarity>."
    assert other["alt"] == "FC Fig. 3: lines. Against training time"
    assert (first["width"], first["height"]) == ("20", "12")


def test_headings_go_down_by_one(sections, tmp_path):
    levels = Page(write_report(sections, tmp_path)).headings
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_what_is_given_is_escaped(sections, tmp_path):
    bad = "<script>alert(1)</script>"
    claims = [one | {"statement": bad, "id": f"x{k}"} for k, one in enumerate(sections[0].claims)]
    text = write_report(
        [replace(sections[0], claims=claims, title=bad, caption=bad, variant=bad, notes=[bad])], tmp_path
    )
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    Page(text)


def test_what_failed_or_was_not_run_says_why(sections, tmp_path):
    page = Page(write_report(sections, tmp_path))
    assert "Failed: ValueError: <no> shape" in page.texts["cnn-fig1"]
    assert "Not run: cifar10 cannot be had" in page.texts["cnn-fig2"]
    assert "Made smaller at the quick scale: 640 images" in page.texts["fc-fig3"]
    assert "eps 1e-30" in page.texts["fc-fig3_eps-1e-30"]


def test_variants_are_not_counted_with_the_papers_settings(sections, tmp_path):
    text = " ".join(re.sub("<[^>]*>", "", write_report(sections, tmp_path)).split())
    assert "Of 5 claims, with the settings of the papers, 1 is reproduced, 1 in part, 1 not; 2 were not run." in text


def test_a_control_that_holds_is_marked(sections, tmp_path):
    page = Page(write_report(sections, tmp_path))
    assert "holds too" in page.texts["claim-fc-fig3-some"]
    assert "0 of 10" in page.texts["claim-fc-fig3-all"]
    assert "holds too" not in page.texts["claim-fc-fig3-all"]


def test_a_page_of_nothing_and_a_picture_that_is_gone(sections, tmp_path):
    assert "Nothing is finished yet." in write_report([], tmp_path)
    (tmp_path / "figures" / "fc-fig3.png").unlink()
    page = Page(write_report(sections, tmp_path))
    assert "fc-fig3.png is not in the folder" in page.texts["fc-fig3"]
    assert len(page.images) == 1


def test_the_filter_knows_all_verdicts(sections, tmp_path):
    assert {f"show-{verdict.replace(' ', '-')}" for verdict in VERDICTS} <= set(
        Page(write_report(sections, tmp_path)).ids
    )


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
