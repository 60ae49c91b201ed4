"""The documentation: links lead somewhere, and the README's commands are the ones that are tested."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def name_anchors(page):
    """The anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_exist(page):
    for link in LINK.findall(CODE.sub("", page.read_text())):
        if re.match(r"[a-z]+:|api/", link):  # pages of the reference are made with the site
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), link
        assert not anchor or target.suffix != ".md" or anchor in name_anchors(target), link


def test_the_site_shows_every_page():
    """Each stands in the table of contents of the index of its folder."""
    for index in ROOT.glob("docs/**/index.md"):
        shown = [line for table in re.findall(r"^```\{toctree\}$(.*?)^```$", index.read_text(), re.MULTILINE | re.DOTALL)
                 for line in table.split()]
        pages = {str(page.relative_to(index.parent).with_suffix("")) for page in index.parent.glob("*.md")} - {"index"}
        pages |= {f"{page.parent.name}/index" for page in index.parent.glob("*/index.md")}
        assert pages <= {*shown}, pages.difference(shown)


def test_readme_gives_the_tested_commands():
    readme = (ROOT / "README.md").read_text()
    for script in re.findall(r"^ *bash (\S+)", readme, re.MULTILINE):
        assert (ROOT / script).exists(), script
    assert re.search(r"^ *bash scripts/demo.sh$", readme, re.MULTILINE)
    assert re.search(r"^ *bash scripts/test.sh$", readme, re.MULTILINE)
    assert "scripts/test.sh" in (ROOT / ".ci" / "run").read_text()
