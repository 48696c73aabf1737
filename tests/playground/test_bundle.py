"""The page as one file: modules become one script, and nothing is loaded from anywhere."""

import base64
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from condensation.playground._bundle import MARK, PAGE, bundle, page

MODULES = {path.relative_to(PAGE).as_posix(): path.read_text(encoding="utf-8") for path in PAGE.rglob("*.js")}
DOCS = Path(__file__).parents[2] / "docs"
FORMS = {
    "main.js": (
        'import { a, b as second } from "./deep/one.js";\nimport * as all from "./deep/one.js";\n'
        'import { c } from "./two.js";\nconsole.log([a, second(), all.K.name, c, all.late()].join(" "));\n'
    ),
    "deep/one.js": (
        'import { c } from "../two.js";\nexport const a = 1;\nexport function b() { return a + c; }\n'
        'export class K {}\nexport async function wait() {}\nexport { c as again } from "../two.js";\n'
        "const own = 7;\nexport { own as late0 };\nexport const late = () => own;\n"
    ),
    "two.js": '/* import { x } from "./nowhere.js"; */\nexport const c = 40;\n',
}


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_all_forms_of_import_and_export_give_what_modules_give(tmp_path):
    script = tmp_path / "all.js"
    script.write_text(bundle(FORMS, "main.js"))
    done = subprocess.run(["node", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "1 41 K 40 7\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('import "./two.js";', "not known"),
        ('import two from "./two.js";', "not known"),
        ("export default 3;", "not known"),
        ("export let x = 3;", "not known"),
        ('const x = await import("./two.js");', "not known"),
        ("const x = import.meta.url;", "not known"),
        ('import { x } from "./none.js";', "no module"),
        ('import { x } from "./deep/three.js";', "import each other: main.js > deep/three.js > main.js"),
    ],
)
def test_what_is_not_understood_is_refused(text, reason):
    modules = FORMS | {"main.js": text, "deep/three.js": 'import { y } from "../main.js";\nexport const x = 1;'}
    with pytest.raises(ValueError, match=reason):
        bundle(modules, "main.js")


def test_every_module_of_the_page_is_in_the_script_once():
    script = bundle(MODULES, "main.js")
    assert sorted(re.findall(r'^modules\["(.+?)"\] = ', script, re.M)) == sorted(MODULES)


def test_the_page_names_no_other_file_and_allows_its_own_script_alone():
    text = page("QUJD")
    assert MARK in text[:4096]
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}';")
    assert "http" not in policy
    before = text[: text.index("<script")]
    assert re.findall(r'(?:src|href)="(?!data:|#|")', before) == []
    assert "@import" not in text
    assert re.findall(r"url\((?!data:)", before) == []


@pytest.mark.parametrize("recording", ["<script>alert(1)</script>", "QUJD</Script>"])
def test_a_recording_that_is_no_base64_does_not_get_into_the_page(recording):
    with pytest.raises(ValueError, match="would end it"):
        page(recording)


def test_the_docs_name_all_that_can_be_hidden_and_the_first_page_embeds_the_tour():
    parts = re.findall(r"^  (\w+): \"", MODULES["embed.js"].split("const PARTS = {")[1].split("};")[0], re.M)
    text = "\n".join(module for name, module in MODULES.items() if name.startswith("views/"))
    views = re.findall(r'^(?:export const view = \{|) +name: "(\w+)"', text, re.M)
    assert len(parts) > 10
    assert {"field", "loss"} < {*views}
    told = (DOCS / "playground.md").read_text(encoding="utf-8")
    assert [name for name in (*parts, *views) if name != "map" and f"`{name}`" not in told] == []
    assert 'src="tour/index.html?embed' in (DOCS / "index.md").read_text(encoding="utf-8")
