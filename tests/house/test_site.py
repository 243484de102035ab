#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The site of `make docs`, which installs Sphinx: two runs give the same bytes, no page loads anything from elsewhere, and
links lead to files and to places in them."""

import html.parser
import os
import pathlib
import re
import subprocess
import sys

from ref_protocol import Skip, expect, run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TOKMAP_BUILD", ROOT / "build"))
PYTHON = BUILD / "docs-venv/bin/python"


class Page(html.parser.HTMLParser):
    """ids; links: of <a>; loads: what a browser fetches to show it."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids.add(given.get("id"))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(given["href"])
        elif given.get("src"):
            self.loads.append(given["src"])


def make_site(place):
    if not PYTHON.exists():
        raise Skip("no Sphinx: make docs")
    for command in (["docs/site/pages.py", place / "pages"],
                    ["-m", "sphinx", "-q", "-W", "-c", "docs/site", "-d", place / "trees", place / "pages", place / "site"]):
        done = subprocess.run([PYTHON, *command], cwd=ROOT, capture_output=True, text=True)
        expect(done.returncode == 0, done.stdout + done.stderr)
    return {path.relative_to(place / "site"): path for path in (place / "site").rglob("*") if path.is_file()}


def links_between_pages_lead_to_pages_and_files(folder):
    """Without Sphinx too: what pages.py makes of links in the documents."""
    sys.path.insert(0, str(ROOT / "docs/site"))
    import pages

    documents = {f"{name}.md" for names in pages.MENU.values() for name in names}
    headers = {f"c/{path.stem}.md" for path in (ROOT / "include").glob("*.h")}
    manuals = {f"manual/{path.stem}.md" for path in (ROOT / "docs/man").glob("*.[1357]")}
    n_links = 0
    for name in sorted(path for path in documents if (ROOT / path).exists()):
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)", pages.with_links((ROOT / name).read_text(), ROOT / name, folder)):
            found = os.path.normpath(os.path.join(os.path.dirname(name), target))
            n_links += 1
            expect(found in documents | headers | manuals | {"index.md"} or (folder / found).exists(), f"{name}: there is no {target}")
    expect(n_links > 100, f"only {n_links} links")


def two_runs_give_the_same_bytes(folder):
    first, second = (make_site(folder / name) for name in ("a", "b"))
    expect(set(first) == set(second), "other files")
    for name in first:
        expect(first[name].read_bytes() == second[name].read_bytes(), f"{name} differs")
    expect(len(first) > 60, f"only {len(first)} files")
    check_links(first)
    for path in sorted(ROOT.glob("docs/man/*.1")):
        check_options(path, first[pathlib.Path("manual", f"{path.stem}.html")])


def check_options(manual, path):
    """A link can lead to each option, and each section is a heading."""
    text = manual.read_text().replace("\\-", "-")
    options = set(re.findall(r"^\.TP\n\.BR?[^\n]*?(--[a-z][a-z0-9-]*)", text.partition(".SH OPTIONS")[2], re.MULTILINE))
    titles = {re.sub(r"[^a-z0-9-]", "", title.strip('"').lower().replace(" ", "-")) for title in re.findall(r"^\.S[HS] (.*)", text, re.MULTILINE)}
    expect(options | titles <= Page(path).ids, f"{path.name} lacks {sorted((options | titles) - Page(path).ids)}")


def check_links(files):
    """Links lead to places, and nothing is loaded from elsewhere."""
    pages = {path.resolve(): Page(path) for name, path in files.items() if name.suffix == ".html"}
    n_links = 0
    for path, page in pages.items():
        for target in page.loads:
            expect(not re.match(r"\w+:|//", target) or target.startswith("data:"), f"{path.name} loads {target}")
        for target in page.links + page.loads:
            name, _, anchor = re.sub(r"\?v=\w+", "", target).partition("#")
            if re.match(r"\w+:", target):
                continue
            n_links += 1
            found = (path.parent / name).resolve() if name else path
            expect(found.exists(), f"{path.name}: there is no {name}")
            expect(not anchor or found not in pages or anchor in pages[found].ids, f"{path.name}: there is no {target}")
    for path in files.values():
        if path.suffix == ".css":
            expect(not re.search(r"url\([\"']?(https?:)?//|@import", path.read_text()), f"{path.name} loads from elsewhere")
    expect(n_links > 1000, f"only {n_links} links")


sys.exit(run_in_folders("site_"))
