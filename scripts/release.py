"""Makes what is uploaded: `python scripts/release.py https://HOST/OWNER/jitcore`, in a checkout.

In: the address of the repository, and the files that git tracks. Out: a wheel and a source distribution in
dist/, whose metadata names the address and whose description has links that lead to the version.
"""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: Pages of a project, by the name that package indices show.
PAGES = {"Source": "", "Documentation": "/tree/{tag}/docs", "Changelog": "/blob/{tag}/CHANGELOG.md",
         "Issues": "/issues"}


def make_links_absolute(text: str, home: str, tag: str) -> str:
    """The text of a page, whose links to files lead to the repository."""
    return re.sub(r"\]\((?!#|[a-z]+:)([^)\s]+)\)", rf"]({home}/blob/{tag}/\1)", text)


def add_addresses(setup: str, home: str, tag: str) -> str:
    """setup.cfg with the project's pages."""
    lines = "".join(f"    {name} = {home}{page.format(tag=tag)}\n" for name, page in PAGES.items())
    return setup.replace("[metadata]\n", f"[metadata]\nurl = {home}\nproject_urls =\n{lines}", 1)


def copy_tracked_files(folder: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)


def write_tree(folder: Path, home: str) -> None:
    """The files of a release."""
    copy_tracked_files(folder)
    setup = configparser.RawConfigParser()
    setup.read(ROOT / "setup.cfg")
    tag = "v" + setup["metadata"]["version"]
    for name, change in (("README.md", make_links_absolute), ("setup.cfg", add_addresses)):
        (folder / name).write_text(change((folder / name).read_text(), home, tag))


def main(home: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_tree(Path(folder), home.rstrip("/"))
        subprocess.run([sys.executable, "-m", "build", "--outdir", ROOT / "dist", folder], check=True)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].startswith("https://"):
        sys.exit(__doc__)
    main(sys.argv[1])
