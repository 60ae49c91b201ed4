"""Builds the documentation site: `python scripts/build_site.py`; pages lie in build/site/html afterwards.

In: docs, notebooks, the pages at the root, and the docstrings. Out: HTML. A warning is an error. Sources are
copied first, so that the clone stays as it is: pages are generated beside them, and links to files of the
repository lead to those.
"""

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "site"
#: Folders that pages link to.
LINKED = ("jitcore", "backends", "benchmarks", "tests", "scripts")
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")
#: Pages that pictures are taken of, and how wide and high.
SCREENSHOTS = {"index.html": (1280, 900), "api/jitcore.random.html": (1280, 1600),
               "howto/see_what_was_fused.html": (1280, 1600), "performance.html": (500, 1600)}


def prepare() -> Path:
    """The folder that Sphinx reads."""
    shutil.rmtree(BUILD / "repository", ignore_errors=True)
    source = BUILD / "repository" / "docs"
    shutil.copytree(ROOT / "docs", source, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ("README.md", "setup.cfg", *LINKED):
        (source.parent / path).symlink_to(ROOT / path)
    shutil.copytree(ROOT / "notebooks", source / "notebooks", ignore=shutil.ignore_patterns(".ipynb*"))
    for page in PAGES:
        shutil.copy(ROOT / page, source / page.lower())
    for page in (*source.rglob("*.md"), *source.rglob("*.ipynb")):
        page.write_text(mend_links(page, page.read_text(encoding="utf-8")), encoding="utf-8")
    load_reference().write_reference(source / "api")
    return source


def mend_links(page: Path, text: str) -> str:
    """Links between pages that lie elsewhere in the repository, and names in place of links to folders and to
    tables of results."""
    text = re.sub(r"\]\((\.\./)?docs/", r"](\1", text)
    text = re.sub(r"\]\((\.\./)*(CHANGELOG|CONTRIBUTING)\.md", lambda found: found[0].lower(), text)
    text = re.sub(r"\]\(\.\./((?:\.\./)*)notebooks/", r"](\1notebooks/", text)
    return re.sub(r"\[([^\]]*)\]\(([\w./-]+)\)",
                  lambda found: found[0] if is_shown(page, found[2]) else found[1], text)


def is_shown(page: Path, target: str) -> bool:
    """Whether the site has what a page links to: a page, a notebook, a file that is no page."""
    path = Path(os.path.normpath(page.parent / target))
    return not path.is_dir() and (path.suffix != ".md" or path.is_relative_to(BUILD / "repository" / "docs"))


def load_reference():
    """The module docs/reference.py."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def take_screenshots() -> None:
    """Pictures of a few pages in build/site/screenshots, by the Chromium that is installed."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        print("No screenshots: there is no Chromium here.")
        return
    folder = BUILD / "screenshots"
    folder.mkdir(exist_ok=True)
    for page, (width, height) in SCREENSHOTS.items():
        picture = folder / f"{Path(page).stem}-{width}.png"
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}"]
        subprocess.run([browser, *options, f"--screenshot={picture}", (BUILD / "html" / page).as_uri()],
                       check=True, capture_output=True, timeout=60)
        print(picture.relative_to(ROOT))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--no-execution", action="store_true", help="run no cells, to look at pages")
    parser.add_argument("--screenshots", action="store_true", help="pictures of some pages, by Chromium")
    arguments = parser.parse_args()
    from sphinx.cmd.build import build_main

    options = ["-D", "nb_execution_mode=off"] if arguments.no_execution else ["-W", "--keep-going"]
    folders = ["-d", str(BUILD / "doctrees"), str(prepare()), str(BUILD / "html")]
    status = build_main(["-q", *options, "-b", "html", *folders])
    if arguments.screenshots:
        take_screenshots()
    return status


if __name__ == "__main__":
    sys.exit(main())
