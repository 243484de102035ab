# SPDX-License-Identifier: Apache-2.0
"""No module of the Python package decides by the text of an error, or of what a command printed to stderr."""

import ast
import re

SEARCHES = {"search", "match", "fullmatch", "findall", "split", "rsplit", "partition", "rpartition", "startswith", "endswith",
            "find", "index", "count"}
ERROR = re.compile(r"(error|err|exc|damage|detail|failure)s?$")


def _name(node):
    """The last part of a name, as of self.error."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_text(node):
    """Whether it is the text of an error, or of a command's stderr."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and _name(part.func) in ("str", "repr") and part.args and ERROR.search(_name(part.args[0])):
            return True
        if isinstance(part, ast.Attribute) and (part.attr == "stderr" and _name(part.value) != "sys" or
                                                part.attr in ("text", "args") and ERROR.search(_name(part.value))):
            return True
    return False


def places(text):
    """The lines where a text is searched, matched, split or compared."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and any(map(_is_text, [node.left, *node.comparators])):
            yield node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SEARCHES and \
                any(map(_is_text, [node.func.value, *node.args])):
            yield node.lineno


def check(root, breaches):
    for path in sorted((root / "python/tokmap").rglob("*.py")):
        for line in sorted(set(places(path.read_text()))):
            breaches.error(path.relative_to(root), line, "decides by the text of an error: see tokmap_reason in tokmap.h")
