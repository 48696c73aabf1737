"""What a release is made of says one thing: version, date, workflows."""

import datetime
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from condensation import __version__

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+) \((\d{4}-\d\d-\d\d)\)")


def read(path: Path) -> dict:
    return yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)  # "on" is a key, not True


def test_the_changes_the_citation_and_the_package_name_one_version():
    first, *headings = HEADING.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert first == "Unreleased"
    found = [VERSION.fullmatch(heading) for heading in headings]
    assert all(found), f"a version is written as 1.2.3 (2026-01-31): {headings}"
    released = [
        (tuple(map(int, match.groups()[:3])), datetime.date.fromisoformat(match[4])) for match in found if match
    ]
    assert sorted(released, reverse=True) == released, "the newest comes first"
    cited = read(ROOT / "CITATION.cff")
    assert f"{cited['version']} ({cited['date-released']})" == headings[0]
    assert cited["version"] == __version__
    assert cited["license"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"]


def steps(workflow: dict) -> list[dict]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_little_and_calls_what_exists(path):
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in path.read_text(encoding="utf-8")
    writing = {name for name, job in workflow["jobs"].items() if "write" in job.get("permissions", {}).values()}
    assert writing <= {"publish", "show"}, "only a job that publishes may write, and it runs none of our code"
    assert [step for name in writing for step in workflow["jobs"][name]["steps"] if "run" in step] == []
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert [action for action in used if not re.search(r"@(release/)?v\d+$", action)] == []
    targets = {*re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)}
    lines = "\n".join(step.get("run", "") for step in steps(workflow))
    called = {
        word for line in re.findall(r"^make (.+)$", lines, re.MULTILINE) for word in line.split() if "=" not in word
    }
    assert called <= targets


def test_every_declared_python_is_tested():
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    declared = {kind.rsplit(" ", 1)[1] for kind in classifiers if "Python :: 3." in kind}
    tested = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["newest"]["strategy"]["matrix"]["python"]
    assert declared == {*tested}


def test_pre_commit_formats_with_the_ruff_of_the_linter():
    hooks = read(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    needed = {package for hook in hooks for package in hook["additional_dependencies"] if package.startswith("ruff==")}
    (pinned,) = re.findall(r"^ruff==.+$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert needed == {pinned}
