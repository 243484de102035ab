# SPDX-License-Identifier: Apache-2.0
"""The layers of the Python package: a folder imports from itself and from those before it, and no module is in a circle
of imports. Imports for types alone count too."""

import ast

# From the ground up. What lies beside the folders is above them all.
LAYERS = ["_c", "_data", "_device", "_loader", "_run", "_frameworks", "_tools"]


def _module(package, parts):
    """The file of a module or of a package, without its suffix."""
    path = package.joinpath(*parts)
    if path.with_suffix(".py").is_file():
        return "/".join(parts)
    return "/".join([*parts, "__init__"]) if path.is_dir() else None


def imports(package, path):
    """Each module of the package that a file imports, also late and for types, and its line."""
    folder = path.relative_to(package).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            places = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module.split(".") if node.module else []
            base = ["tokmap", *folder[:len(folder) + 1 - node.level], *base] if node.level else base
            places = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for name, *parts in places:
            found = _module(package, parts) or _module(package, parts[:-1]) if name == "tokmap" else None
            if found:
                yield found, node.lineno


def _layer(module):
    folder = module.split("/")[0]
    return LAYERS.index(folder) if folder in LAYERS else len(LAYERS)


def _circle(graph):
    """One circle of modules, or None."""
    done = set()

    def walk(module, way):
        if module in way:
            return [*way[way.index(module):], module]
        if module in done:
            return None
        done.add(module)
        return next(filter(None, (walk(other, [*way, module]) for other in sorted(graph.get(module, ())))), None)

    return next(filter(None, (walk(module, []) for module in sorted(graph))), None)


def check(root, breaches):
    package, graph = root / "python/tokmap", {}
    for folder in sorted(path.name for path in package.glob("_*") if path.is_dir() and path.name[1] != "_"):
        if folder not in LAYERS:
            breaches.error(f"python/tokmap/{folder}", 1, "is no layer of tests/house/python_layers.py")
    for path in sorted(package.rglob("*.py")):
        module = path.relative_to(package).with_suffix("").as_posix()
        for other, line in imports(package, path):
            graph.setdefault(module, set()).add(other)
            if _layer(other) > _layer(module):
                breaches.error(path.relative_to(root), line, f"imports {other}: {module.split('/')[0]} may not use "
                                                             f"{other.split('/')[0]}")
    circle = _circle(graph)
    if circle:
        breaches.error(f"python/tokmap/{circle[0]}.py", 1, f"a circle of imports: {' -> '.join(circle)}")
