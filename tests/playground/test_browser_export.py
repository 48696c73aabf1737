"""What is taken along is what was shown: pictures that open, and experiments that train to the same weights."""

import io
import re
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from browser import Keys, until, visible_views
from PIL import Image
from reference import same

from condensation import Experiment, find_lines, train

pytestmark = pytest.mark.browser
SETTINGS = "#layers=tanh,x_tanh&width=15&seed=7&optimizer=adam&rate=0.001"


def saved(page, downloads, act):
    """The file that something gives to the user."""
    for old in downloads.iterdir():
        old.unlink()

    def new():
        return [
            path
            for path in downloads.iterdir()
            if path.suffix in (".png", ".svg", ".toml", ".py") and path.stat().st_size
        ]

    act()
    (path,) = until(new, "the file")
    return path


def export(page, downloads, kind):
    def act():
        page.click("#export")
        page.click(f"[data-export={kind}]")

    path = saved(page, downloads, act)
    assert not page.one("#export-menu").is_displayed()
    return path


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_png_is_a_picture_of_all_cards(page, downloads, theme):
    page.go(f"#theme={theme}").reach(30)
    path = export(page, downloads, "png")
    assert path.name == "condensation-step30.png"
    picture = Image.open(io.BytesIO(path.read_bytes()))
    picture.load()
    assert picture.format == "PNG"
    box = page.one("#cards").rect
    assert picture.width == pytest.approx(2 * (box["width"] + 32), abs=40)
    colours = picture.convert("RGB").getcolors(2**24)
    assert len(colours) > 50
    ground = max(colours)[1]
    assert (sum(ground) > 600) == (theme == "light")


@pytest.mark.parametrize(
    "fragment", ["", "#inputs=2&formula=x1*x2&n=49", "#data=digits&n=40&layers=tanh&width=4&optimizer=gd&rate=0.2"]
)
def test_the_svg_is_the_same_picture_in_lines(page, downloads, fragment):
    page.go(fragment).reach(10)
    text = export(page, downloads, "svg").read_text()
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    said = " ".join("".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text"))
    for name in visible_views(page):
        assert page.text(f"[data-view={name}] h2") in said
    assert "step 10" in said
    assert page.state("opened.title").split()[0] in said
    drawn = re.sub(r"data:[^\"]*", "", text)
    assert not re.search(r"NaN|undefined|Infinity|\bnull\b", drawn)
    links = re.findall(r'(?:href|src)="([^"]*)"', text)
    assert all(link.startswith(("data:", "#")) for link in links)
    assert float(root.get("width")) > 500


def test_one_card_is_saved_alone(page, downloads):
    page.go().reach(5)
    path = saved(page, downloads, lambda: page.click("[data-view=loss] .save"))
    assert path.name == "condensation-loss-step5.png"
    one = Image.open(path)
    assert one.width < 2 * page.one("#cards").rect["width"]
    assert len(one.convert("RGB").getcolors(2**24)) > 5


def test_the_toml_trains_to_the_weights_on_the_page(page, downloads):
    page.go(SETTINGS).reach(25)
    path = export(page, downloads, "toml")
    assert path.name == "condensation-step25.toml"
    experiment = Experiment.from_toml(path.read_text())
    assert experiment.steps == 25
    assert "# seed 7" in path.read_text()
    same(page.weights, train(experiment, seeds=[7]).weights("dense1", 25, 7))


def test_the_program_runs_and_prints_what_the_page_shows(page, downloads, tmp_path):
    page.go(SETTINGS).reach(25)
    path = export(page, downloads, "python")
    assert path.name == "condensation-step25.py"
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300, cwd=tmp_path, check=True)
    lines = find_lines(page.weights)
    shown = f"step 25: loss {page.state('frame.loss'):.4g}, {lines.count} lines, k_eff {lines.k_eff:.3g}"
    assert shown in done.stdout
    assert page.state("frame.lines.k_eff") == pytest.approx(lines.k_eff, rel=1e-5)


def test_the_menu_goes_by_keys(page, downloads):
    page.go()
    page.js("document.querySelector('#export').focus()")
    page.key(Keys.ENTER)
    assert page.one("#export-menu").is_displayed()
    page.key(Keys.ESCAPE)
    assert not page.one("#export-menu").is_displayed()
    page.key(Keys.ENTER, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    path = saved(page, downloads, lambda: page.key(Keys.ENTER))
    assert path.suffix == ".toml"
    assert np.isfinite(page.weights).all()
