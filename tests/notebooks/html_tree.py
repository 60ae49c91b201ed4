"""Reading HTML that notebooks are given: whether its tags are balanced, and what is in it."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

#: Elements without an end tag are written as `<path .../>`, which the parser tells apart.
ALLOWED = {"caption", "details", "div", "g", "p", "path", "pre", "rect", "summary", "svg", "table", "td", "text", "th",
           "title", "tr"}


class Tree(HTMLParser):
    """Attributes: tags, how often each is there; texts, in order; hints, what pointers show; paths, of edges."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open, self.tags = [], Counter()
        self.texts, self.hints, self.paths = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.handle_startendtag(tag, attributes)

    def handle_startendtag(self, tag, attributes):
        assert tag in ALLOWED, tag
        self.tags[tag] += 1
        values = dict(attributes)
        assert len(values) == len(attributes) and not any(name.startswith("on") for name in values)
        self.hints += [values["title"]] if "title" in values else []
        self.paths += [values["d"]] if tag == "path" else []

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "\n".join(self.texts)
