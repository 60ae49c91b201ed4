"""Results that are kept: one file for each day and processor, one chapter for each section.

In: sections. Out: a Markdown file in which they replace the chapters of the same titles.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_limits, describe_machine, find_processor
from benchmarks.measured import Section

RESULTS = Path(__file__).parent / "results"


def name_results(suffix: str, folder: Path = RESULTS) -> Path:
    """<folder>/<date>-<processor><suffix>; the folder is made."""
    processor = re.sub(r"[^A-Za-z0-9]+", "-", find_processor()).strip("-").lower()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{datetime.date.today().isoformat()}-{processor}{suffix}"


def save_sections(sections: Sequence[Section], folder: Path = RESULTS) -> Path:
    """Writes the sections among those of today's file. Returns: its path."""
    path = name_results(".md", folder)
    chapters = split_chapters(path.read_text(encoding="utf-8")) if path.exists() else {}
    for section in sections:
        text = section.text
        if section.draw is not None:
            text += f"\n\n{section.draw(name_results(f'-{section.title.split()[0].lower()}.png', folder))}"
        chapters[section.title] = text
    today = datetime.date.today().isoformat()
    head = f"# Benchmarks, {today}\n\n{describe_machine()}\n\n{describe_limits()}\n"
    parts = (f"## {title}\n\n{text}\n" for title, text in chapters.items())
    path.write_text("\n".join((head, *parts)), encoding="utf-8")
    return path


def split_chapters(text: str) -> dict[str, str]:
    """Title -> text of each chapter of a file, without what stands before the first one."""
    titled = (part.partition("\n") for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:])
    return {title: body.strip() for title, _, body in titled}
