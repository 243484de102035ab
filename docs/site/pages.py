#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pages.py FOLDER - puts the pages of the site together in FOLDER, for Sphinx: the documents of this tree, the headers
and the pages of the manual as documents, and the charts of docs/BENCHMARKS.md, drawn from bench/results."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import report_charts  # noqa: E402
from report_table import short_number  # noqa: E402

# The parts of the menu. README is the first page.
MENU = {
    "Use": ["docs/tutorial", "docs/concepts", "docs/recipes", "docs/frameworks", "docs/from-megatron", "docs/trained-on", "docs/resume",
            "docs/commands", "docs/SHARED", "docs/TOKENIZERS", "docs/agents"],
    "Reference": ["docs/python", "docs/from-c", "c", "manual", "docs/FORMAT", "docs/FORMAT-EXAMPLES", "docs/ORDER", "docs/VERSIONS"],
    "Figures": ["docs/BENCHMARKS", "bench/results/README", "bench/scale/README"],
    "Project": ["CHANGELOG", "CONTRIBUTING", "AGENTS", "CODE_OF_CONDUCT", "docs/ARCHITECTURE", "docs/debugging", "docs/GLOSSARY",
                "docs/DECISIONS", "SECURITY"],
}
# Charts by their name in docs/BENCHMARKS.md: (title, result, unit, [(bar, name of the row)]).
LOADERS, TOKENIZERS = "loaders-epyc-2core.json", "tokenize-epyc-2core.json"
CHARTS = {
    "loaders": [("Loading from memory, tokens a second", LOADERS, "M/s", [
        (bar, f"{name}, 32 x 4096 tokens, speed") for bar, name in (
            ("tokmap", "tokmap-i64"), ("NumPy, tuned", "numpy-i64-tuned"), ("DataLoader, tuned",
             "dataloader-i64-getitems-w0"), ("DataLoader", "dataloader-i64-w0"), ("nanoGPT", "nanogpt"), ("Megatron", "megatron-w0"))]),
                ("Loading from disk, tokens a second", LOADERS, "M/s", [
        (bar, f"{name}, 32 x 8192 tokens, speed") for bar, name in (
            ("tokmap", "tokmap-direct"), ("NumPy, tuned", "numpy-u16-willneed"), ("DataLoader", "dataloader-i64-w0"),
            ("nanoGPT", "nanogpt"), ("Megatron", "megatron-w0"))]),
                ("Time to the first batch of 10^9 tokens", LOADERS, "ms", [
        (bar, f"{name}, 1e+09 tokens, to the first batch") for bar, name in (
            ("tokmap", "tokmap-i64"), ("nanoGPT", "nanogpt"), ("DataLoader", "dataloader-i64-w0"), ("Megatron", "megatron-w0"))])],
    "tokenizers": [(f"Tokenizing English with {family}, first pass, one thread", TOKENIZERS, "MB/s", [
        (system, f"{family} novels {system} cold") for system in ("tokmap", "gigatoken", "tiktoken", "tokenizers")])
        for family in ("gpt2", "o200k")],
}

CHARTS["first"] = CHARTS["loaders"] + CHARTS["tokenizers"][:1]  # in place of the picture of README, which picture.py draws


def bars_of(result, names):
    medians = {}
    for row in json.loads((ROOT / "bench/results" / result).read_text())["rows"]:
        name = f"{row['tokenizer']} {row['text']} {row['system']} cold" if "cold" in row else row.get("name")
        medians[name] = row.get("cold", row).get("median")
    return [(bar, medians[name]) for bar, name in names]


def chart(name):
    figures = ""
    for title, result, unit, names in CHARTS[name]:
        bars, scale = bars_of(result, names), 1e6 if unit == "M/s" else 1
        most = max(value for _, value in bars)
        drawn = report_charts.draw_bars(title, [
            (bar, f"{short_number(value / scale)} {unit}", "", "peer" if i else "ours", 0, value / most, 0)
            for i, (bar, value) in enumerate(bars)])
        figures += f"<figure><figcaption>{title}</figcaption>{drawn}</figure>\n"
    return f'```{{raw}} html\n<div class="charts">\n{figures}</div>\n```\n'


def drawing(name):
    """A picture that picture.py has drawn, in both schemes; the theme shows one of them."""
    drawn = "".join(f'<div class="only-{scheme}">\n{(ROOT / f"docs/{name}-{scheme}.svg").read_text()}</div>\n' for scheme in ("light", "dark"))
    return f"```{{raw}} html\n{drawn}```\n"


def header(path):
    """A header as a page: a heading for each of its parts and names, comments as text, the rest as code."""
    text = path.read_text()
    first, _, rest = text.partition("*/\n")[2].partition("*/\n")
    page = f"# {path.name}\n\n```text\n{re.sub(r'^(/[*]| [*]) ?', '', first, flags=re.MULTILINE)}\n```\n"
    rest = rest[rest.rindex("#include"):].partition("\n")[2].rpartition("#ifdef __cplusplus")[0]
    for part in re.split(r"\n\n|\n(?=/\*)", rest.replace('#ifdef __cplusplus\nextern "C" {\n#endif\n', "")):
        comment, code = re.match(r"((?:/\*.*?\*/\n?)?)(.*)", part, re.DOTALL).groups()
        words = " ".join(re.sub(r"^/\*| \*/$|^ \*", "", comment.strip(), flags=re.MULTILINE).split())
        if words.startswith("----"):
            page += f"\n## {words.strip('- ')}\n"
            continue
        name = re.search(r"\b(tokmap_\w+)\(|^} (\w+);|^typedef .*\b(\w+);", code, re.MULTILINE)
        page += f"\n### {next(filter(None, name.groups()))}\n" if name and "\n## " in page else ""
        page += "\n" + re.sub(r"([*<_`])", r"\\\1", words) + "\n" if words else ""
        page += f"\n```c\n{code.strip()}\n```\n" if code.strip() else ""
    return page


def option(match):
    """The name of an option in the list of options, with its own place."""
    name = re.search(r"--[a-z][a-z0-9-]*", re.sub(r"<.*?>", "", match[1]))
    words = re.sub(r"</?a\b.*?>", "", match[1])
    return f'<dt id="{name[0]}"><a href="#{name[0]}">{words}</a></dt>' if name else f"<dt>{words}</dt>"


def manual(path, others):
    """A page of the manual: its sections as headings, options as places that links lead to."""
    done = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", path], check=True, capture_output=True, text=True)
    text = done.stdout.partition('<div class="manual-text">')[2].rpartition("</div>")[0]
    text = re.sub(r"</?section.*?>|<br/>\n", "", text)
    text = re.sub(r"<dt.*?>(.*?)</dt>", option, text, flags=re.DOTALL)
    for name in set(re.findall(r'<dt id="(.*?)"', text)):
        text = text.replace(f"<b>{name}</b>", f'<a href="#{name}"><b>{name}</b></a>')
    text = re.sub(r"<b>([\w-]+)</b>\((\d)\)", lambda m: f'<a href="{m[1]}.html">{m[0]}</a>' if f"{m[1]}.{m[2]}" in others else m[0], text)
    page = f"# {path.stem}({path.suffix[1:]})\n"
    parts = re.split(r"<h([12]).*?><a.*?>(.*?)</a></h\1>", text, flags=re.DOTALL)
    for level, title, body in zip(parts[1::3], parts[2::3], parts[3::3]):
        title = " ".join(title.split())
        page += f"\n#{'#' * int(level)} {title.capitalize() if level == '1' else title}\n"
        page += f'\n```{{raw}} html\n<div class="manual">\n{body.strip()}\n</div>\n```\n' if body.strip() else ""
    return page


def menu(caption, pages):
    return f"\n```{{toctree}}\n:caption: {caption}\n:hidden:\n:maxdepth: 1\n\n" + "\n".join(pages) + "\n```\n"


def with_links(text, page, folder):
    """Headers become their pages, folders words, and other files are copied beside the page."""
    def link(match):
        words, name, anchor = match.groups()
        target = (page.parent / name).resolve()
        if not target.exists() or target.suffix == ".md" and target.parent != ROOT:
            return match[0]
        to_root = "../" * len(page.relative_to(ROOT).parts[1:])
        if target.parent == ROOT / "include":
            return f"[{words}]({to_root}c/{target.name[:-2]}.md)"
        if target.is_dir() or target.name == "llms.txt":  # which lies beside the first page
            return words
        if target == ROOT / "README.md":
            return f"[{words}]({to_root}index.md{anchor})"
        copy = folder / target.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix != ".md":
            shutil.copyfile(target, copy)
        return match[0]
    return re.sub(r"\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)", link, text)


def main(folder):
    if folder.exists() and not (folder / "index.md").exists():
        sys.exit(f"pages.py: {folder} was not made by it")
    shutil.rmtree(folder, ignore_errors=True)
    pages = {name: (ROOT / f"{name}.md") for names in MENU.values() for name in names if "/" in name or name.isupper()}
    texts = {f"{name}.md": with_links(path.read_text(), path, folder) for name, path in pages.items()}
    texts["docs/BENCHMARKS.md"] = re.sub(r"<!-- chart: (\w+) -->\n", lambda m: chart(m[1]), texts["docs/BENCHMARKS.md"])
    texts["docs/resume.md"] = re.sub(r"<picture>.*?</picture>\n", lambda _: drawing("resume"), texts["docs/resume.md"], flags=re.DOTALL)
    headers, manuals = sorted((ROOT / "include").glob("*.h")), sorted((ROOT / "docs/man").glob("*.[1357]"))
    texts.update({f"c/{path.stem}.md": header(path) for path in headers})
    texts.update({f"manual/{path.stem}.md": manual(path, {other.name for other in manuals}) for path in manuals})
    texts["c.md"] = "# The C headers\n\n" + "".join(f"- [{p.name}](c/{p.stem}.md)\n" for p in headers) + menu(
        "C", [f"c/{p.stem}" for p in headers])
    texts["manual.md"] = "# The manual\n\n" + "".join(f"- [{p.stem}({p.suffix[1:]})](manual/{p.stem}.md)\n" for p in manuals) + \
        menu("Manual", [f"manual/{p.stem}" for p in manuals])
    readme = re.sub(r"<picture>.*?</picture>\n", lambda _: chart("first"), (ROOT / "README.md").read_text(), flags=re.DOTALL)
    texts["index.md"] = with_links(readme, ROOT / "README.md", folder) + "".join(
        menu(caption, names) for caption, names in MENU.items())
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
