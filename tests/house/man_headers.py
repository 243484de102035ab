#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""man_headers.py [--write] - the man page of each public header, docs/man/NAME.h.3, which is made from the header. Compares
the pages with the headers, or writes them. `make install` makes a link to the page for each of its calls, by the lines
that begin with .\\" call."""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = sorted((ROOT / "include").glob("*.h"))
OVERVIEW = (ROOT / "docs/man/libtokmap.3").read_text()
SECTION = re.compile(r"/\* ---- (.*) ---- \*/")
RULE = re.compile(r"(\w+)  +(\S.*)")


def literal(text):
    """As it is in the header, with no other dashes and quotes in any output."""
    for plain, roff in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("`", "\\(ga"), ("^", "\\(ha"), ("~", "\\(ti")):
        text = text.replace(plain, roff)
    return lines_of_text(text.splitlines())


def lines_of_text(lines):
    return "".join("\\&" * line.startswith(".") + line + "\n" for line in lines)


def prose(text):
    """Paragraphs as roff fills them, in lines that mandoc does not call long."""
    return lines_of_text(textwrap.wrap(literal(" ".join(text.split())), 79, break_long_words=False, break_on_hyphens=False))


def code(text):
    return ".nf\n" + literal(text) + ".fi\n"


def plain(comment):
    """The text of a comment, without its marks."""
    lines = re.sub(r"^/\*|\*/$", "", comment.strip()).splitlines()
    return "\n".join(re.sub(r"^ ?\*? ?", "", line, count=1) if i else line.strip() for i, line in enumerate(lines)).strip()


def introduction(text):
    """The first comment: what the header is for, an example, and rules that begin with a word."""
    paragraphs = re.split(r"\n\s*\n", text)
    out = ".SH DESCRIPTION\n" + prose(paragraphs[0].partition(" - ")[2])
    for paragraph in paragraphs[1:]:
        if paragraph.startswith("    "):
            out += ".PP\n" + code(textwrap.dedent(paragraph))
        elif not RULE.match(paragraph):
            out += ".PP\n" + prose(paragraph)
        else:
            for rule in re.split(r"\n(?=\w)", paragraph):
                word, said = rule.split(None, 1)
                out += f".TP\n.B {word}\n" + prose(said)
    return out


def items(text):
    """(comment or None, code or None) of all that follows the first comment, in order. What is for C++ alone is left out."""
    text = re.sub(r"#ifdef __cplusplus\n(.*?)#endif\n", lambda m: m[1].partition("#else\n")[2], text, flags=re.S)
    text = re.sub(r"#(ifndef|endif|include)\b.*\n|^#define (\w+_H|TOKMAP_API .*)\n", "", text, flags=re.M)
    at = 0
    comment = None
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text.startswith("/*", at):
            if comment:
                yield comment, None
            end = text.index("*/", at) + 2
            comment, at = text[at:end], end
        else:
            match = re.compile(r"#define(?:\\\n|.)*\n|(?:[^;{}]|\{(?:[^{}]|\{[^{}]*\})*\})*;").match(text, at)
            yield comment, match[0].strip()
            comment, at = None, match.end()
    if comment:
        yield comment, None


def describe(comment, declaration):
    section = SECTION.fullmatch(comment or "")
    if section and declaration is None:
        return ".SH " + section[1].upper() + "\n"
    if section:
        return ".SH " + section[1].upper() + "\n" + describe(None, declaration)
    if declaration is None:
        return ".PP\n" + prose(plain(comment))
    call = re.search(r"TOKMAP_API .*?(\w+)\(", declaration, re.S)
    declaration = re.sub(r" +\\$", " \\\\", declaration.replace("TOKMAP_API ", ""), flags=re.M)
    if call:
        shown = " ".join(declaration.split())
        lines = textwrap.wrap(shown, 76, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        shown = f'.\\" call {call[1]}\n.PP\n.ft B\n' + code("\n".join(lines)) + ".ft R\n"
    else:
        shown = ".PP\n" + code(declaration)
    said = prose(plain(comment)) if comment else ""
    return shown + (".RS 4\n" + said + ".RE\n" if said else "")


def make_page(header):
    text = header.read_text().partition("\n")[2]
    first, _, rest = text.partition("*/")
    about = plain(first + "*/")
    date = re.search(r"^\.TH LIBTOKMAP 3 (.*)$", OVERVIEW, re.M)[1]
    summary = about.split("\n\n")[0].partition(" - ")[2].rstrip(".")
    out = ('.\\" SPDX-License-Identifier: Apache-2.0\n.\\" Made from include/%s by tests/house/man_headers.py --write.\n'
           ".TH %s 3 %s\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B #include <%s>\n" %
           (header.name, header.name.upper(), date, header.name, " ".join(summary.split()), header.name))
    out += introduction(about)
    for comment, declaration in items(rest):
        out += describe(comment, declaration)
    out = re.sub(r'(\.SH .*\n(?:\.\\" .*\n)?)\.PP\n', r"\1", out)  # which mandoc calls an empty paragraph
    return out + ".SH SEE ALSO\n.BR libtokmap (3)\n"


def main():
    wrong = []
    for header in HEADERS:
        page = ROOT / "docs/man" / (header.name + ".3")
        made = make_page(header)
        if "--write" in sys.argv:
            page.write_text(made)
        elif not page.exists() or page.read_text() != made:
            wrong.append(page.name)
    if wrong:
        sys.exit(f"not what the headers say: {', '.join(wrong)}: write them with tests/house/man_headers.py --write")


main()
