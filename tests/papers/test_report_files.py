"""The report as a folder: its size, its links, the commands and TOML files that make its figures again."""

import os
import re
import shlex
from dataclasses import asdict, replace
from urllib.parse import unquote

import fuzzing
import pytest
from html_page import Page
from whole_report import fill

from condensation import Dense, Experiment, InputError, papers
from condensation._writing import write_json
from condensation.papers import FIGURES, Claim, Drawing, PaperFigure, PerSeed, Section, Variant, at_most, reproduce
from condensation.papers._pages import write_pages
from condensation.papers._reproduce import finished
from condensation.papers._rerun import command, write_experiments
from condensation.papers._variant import NotRun
from condensation.papers.fc.experiments import fig3
from condensation.sweeps import Sweep

MEGABYTE = 10**6


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A report of real size, and its folder."""
    folder = tmp_path_factory.mktemp("whole")
    sections = fill(folder)
    write_pages(sections, folder)
    return sections, folder


def opened(folder):
    """All pages of a report, by path."""
    return {path: Page(path.read_text()) for path in (folder / "index.html", *folder.glob("pages/*.html"))}


def broken(folder):
    """Links and anchors that lead nowhere."""
    found, lost = opened(folder), []
    for path, page in found.items():
        for link in page.links:
            if re.match("data:|https://arxiv.org/abs/", link):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / unquote(file)).resolve() if file else path
            known = found[target].ids if target in found else None
            if not target.exists() or (anchor and known is not None and unquote(anchor) not in known):
                lost.append((path.name, link))
    return lost


@pytest.mark.trials
def test_the_first_page_of_the_whole_report_is_light(whole):
    sections, folder = whole
    assert (folder / "index.html").stat().st_size < MEGABYTE
    page = Page((folder / "index.html").read_text())
    claims = [claim for section in sections for claim in section.claims]
    assert len(claims) > 400
    assert {f"claim-{claim['id']}" for claim in claims} <= {*page.ids}
    assert len(page.images) == sum(bool(section.pictures) for section in sections)


@pytest.mark.trials
def test_all_links_of_the_whole_report_lead_somewhere(whole):
    assert broken(whole[1]) == []


@pytest.mark.trials
def test_each_page_has_its_command_and_its_toml_with_a_copy_button(whole):
    sections, folder = whole
    for section in sections:
        text = (folder / "pages" / f"{section.name}.html").read_text()
        assert f"<code>condensation reproduce {section.name} --scale paper</code>" in text
        assert text.count('class="copy"') == 1 + len(section.experiments)
        for entry in section.experiments:
            assert (folder / entry["file"]).read_text().splitlines()[0] in text


@pytest.mark.sampled(10)
@pytest.mark.parametrize("scale", ["quick", "paper"])
@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_the_toml_of_a_figure_is_what_it_trains(figure, scale, tmp_path):
    try:
        declared = [*figure.experiments(scale).values(), *figure.evidence(scale).values()]
    except NotRun as reason:
        pytest.skip(str(reason))
    entries = write_experiments(figure, figure.name, tmp_path, scale, None, Variant())
    kind = Sweep if isinstance((declared or [None])[0], Sweep) else Experiment
    files = [tmp_path / entry["file"] for entry in entries]
    assert {kind.load(file).fingerprint() for file in files} == {each.fingerprint() for each in declared}
    assert len(files) == len({*files}) == len([*tmp_path.rglob("*.toml")])
    for file, entry in zip(files, entries, strict=True):
        assert shlex.split(entry["command"])[1:3] == ["train" if kind is Experiment else "sweep", file.name]


def test_a_variant_is_in_command_and_toml(tmp_path):
    variant, figure = Variant(eps=1e-30, init_scale=0.1, rotated=True, optimizer="adam"), FIGURES["fc-fig3"]
    entries = write_experiments(figure, "own", tmp_path, "quick", 7, variant)
    assert {entry["seeds"] for entry in entries} == {7}
    given = [Experiment.load(tmp_path / entry["file"]) for entry in entries]
    assert given == [variant.apply(each) for each in figure.experiments("quick").values()]


@pytest.mark.parametrize(
    ("seeds", "variant"),
    [
        (None, Variant()),
        (50, Variant(eps=1e-30, init_scale=0.1, rotated=True)),
        (1, Variant("normalised_gd", 3e-4, threshold=0.8, output_scale=10.0, dtype="float32")),
    ],
)
def test_the_command_asks_for_the_same_again(seeds, variant, monkeypatch):
    asked = {}
    monkeypatch.setattr(papers, "reproduce", lambda names, **given: asked.update(given, names=names) or [])
    code, _, failed = fuzzing.told(*shlex.split(command("fc-fig3", "quick", seeds, variant))[1:])
    assert code == 0, failed
    assert (asked["names"], asked["scale"], asked["seeds"]) == (("fc-fig3",), "quick", seeds)
    assert asked["variant"] == variant


def test_an_experiment_without_toml_says_so(tmp_path):
    class Own(PaperFigure):
        name, title, paper, claims = "own", "An own function", "FC", ()

        @classmethod
        def experiments(cls, scale):
            return {"plain": fig3("tanh"), "own": fig3("tanh").replace(network=Dense((5, 50, 1), lambda x: x))}

    plain, own = write_experiments(Own, "own", tmp_path, "quick", None, Variant())
    assert own["file"] == ""
    assert "cannot be named as module:function" in own["reason"]
    section = Section("own", "Own", "key", "done", experiments=[plain, own], command="condensation reproduce own")
    (tmp_path / "claims.json").write_text("[]")
    write_pages([section], tmp_path)
    said = Page((tmp_path / "pages" / "own.html").read_text()).texts["main"]
    assert f"It has no TOML: {own['reason']}" in said
    (tmp_path / plain["file"]).unlink()
    write_pages([section], tmp_path)
    said = Page((tmp_path / "pages" / "own.html").read_text()).texts["main"]
    assert f"The file {plain['file']} is not in the folder" in said


def test_the_report_grows_and_pages_of_former_figures_go(tmp_path):
    sections = fill(tmp_path, ["fc-fig1", "fc-fig3", "fc-fig5"])
    pages = tmp_path / "pages"
    write_pages(sections[:1], tmp_path, complete=False)
    before = (pages / "fc-fig1.html").stat().st_mtime_ns
    write_pages(sections[:2], tmp_path, complete=False)
    assert broken(tmp_path) == []
    assert (pages / "fc-fig1.html").stat().st_mtime_ns == before  # only what is new
    write_pages(sections, tmp_path)
    assert "fc-fig3.html" in Page((pages / "fc-fig1.html").read_text()).links
    (pages / "fc-fig3.html").unlink()
    later = before + 10**12
    os.utime(tmp_path / "sections" / "fc-fig5.json", ns=(later, later))
    (pages / "fc-fig5.html").write_text("an old one")
    write_pages(sections[1:], tmp_path, complete=False)
    assert {path.stem for path in pages.iterdir()} == {"fc-fig3", "fc-fig5"}
    assert "an old one" not in (pages / "fc-fig5.html").read_text()
    assert broken(tmp_path) == []


def test_a_rerun_takes_the_place_of_former_toml_files(tmp_path):
    figure = FIGURES["fc-fig3"]
    write_experiments(figure, figure.name, tmp_path, "quick", None, Variant())
    entries = write_experiments(figure, figure.name, tmp_path, "quick", None, Variant(eps=1e-4))
    assert {tmp_path / entry["file"] for entry in entries} == {*tmp_path.rglob("*.toml")}


class Odd(PaperFigure):
    """A figure that trains nothing."""

    name, title, paper = "my_figure: 50% & more #1?", "A figure <of one's own>", "Mine & yours"
    claims = (
        Claim("a b", "text", "a statement", "a quantity", at_most(1), lambda figure: PerSeed([0.5]), trained=False),
    )

    def draw(self):
        return Drawing("a caption", {})


def test_a_name_with_odd_characters_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setitem(FIGURES, Odd.name, Odd)
    for _ in range(2):
        (section,) = reproduce([Odd.name], out=tmp_path)
        assert (section.status, section.claims[0]["verdict"]) == ("done", "reproduced")
        assert broken(tmp_path) == []
        assert [path.stem for path in tmp_path.glob("pages/*")] == [Odd.name]
        assert Odd.title in Page((tmp_path / "index.html").read_text()).texts["contents"]
    assert shlex.split(section.command)[2] == Odd.name


def test_a_name_that_is_no_file_name_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(FIGURES, "a/b", Odd)
    with pytest.raises(InputError, match="has no slash: 'a/b'"):
        reproduce(["a/b"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_section_that_has_the_name_of_another_file_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setitem(FIGURES, Odd.name, Odd)
    out = tmp_path / "out"
    (section,) = reproduce([Odd.name], out=out)
    write_json(out / "sections" / f"{Odd.name}.json", asdict(replace(section, name="../../elsewhere")))
    assert finished(out) == []
