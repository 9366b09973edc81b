"""Look through built pages: every internal link and anchor is there, and no page fetches anything from a network.

``python docs/check.py docs/_build/html`` prints what is wrong and exits with status 1, or says how much it has seen.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself when it shows a page; a link in an <a> waits for a click.
FETCHED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "input": ("src",),
    "link": ("href",),
    "use": ("href", "xlink:href"),
    "image": ("href", "xlink:href"),
}
# Relations of <link> that say something and fetch nothing.
TOLD = {"canonical", "next", "prev", "search", "index", "author", "license", "top", "up", "genindex"}
REMOTE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
STYLED = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
SCRIPTED = re.compile(
    r"""(?:fetch|importScripts|import|sendBeacon|WebSocket|EventSource)\(\s*["'`]((?:https?|wss?):[^"'`]+)"""
)


class Page(HTMLParser):
    """What a page names, links to and fetches."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self._within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchors, links and fetches of one element."""
        given = {name: value or "" for name, value in attrs}
        self._within = tag if tag in ("style", "script") else ""
        self.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        if tag in ("a", "area") and "href" in given:
            self.links.append(given["href"])
        told = tag == "link" and not set(given.get("rel", "").lower().split()) - TOLD
        for name in FETCHED.get(tag, ()):
            if not given.get(name):
                continue
            parts = [part.split()[0] for part in given[name].split(",")] if name == "srcset" else [given[name]]
            (self.links if told else self.fetched).extend(parts)
        self.fetched += STYLED.findall(given.get("style", ""))

    def handle_data(self, data: str) -> None:
        """Note what style sheets and scripts within the page fetch."""
        if self._within == "style":
            self.fetched += STYLED.findall(data)
        elif self._within == "script":
            self.fetched += SCRIPTED.findall(data)


def problems(folder: Path) -> Iterator[str]:
    """Say everything that is wrong with the pages in a folder, one line each."""
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(folder.rglob("*.html"))}
    if not pages:
        yield f"{folder}: no pages"
    for file, page in pages.items():
        where = file.relative_to(folder)
        for address in page.fetched:
            if REMOTE.match(address):
                yield f"{where}: fetches {address}"
        for address in [*page.links, *(each for each in page.fetched if not REMOTE.match(each))]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target = target / "index.html"
            if not target.is_file():
                yield f"{where}: {address} is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{where}: {address} has no such anchor"
    for file in sorted([*folder.rglob("*.css"), *folder.rglob("*.js"), *folder.rglob("*.svg")]):
        text = file.read_text(encoding="utf-8", errors="replace")
        found = STYLED.findall(text) if file.suffix != ".js" else SCRIPTED.findall(text)
        if file.suffix == ".svg":
            found += [each for each in Page(text).fetched if REMOTE.match(each)]
        for address in found:
            yield f"{file.relative_to(folder)}: fetches {address}"


def main(folder: Path) -> int:
    """Check a folder of built pages; 0 if all is well."""
    found = list(problems(folder.resolve()))
    for line in found:
        print(line, file=sys.stderr)
    if not found:
        pages = sum(1 for _ in folder.rglob("*.html"))
        print(f"{pages} pages: every internal link and anchor is there, and nothing is fetched from a network.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
