#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""reference.py - prints docs/python.md: every public name of the package, from its signature and docstring."""

import ast
import dataclasses
import importlib
import inspect
import operator
import pathlib
import re
import sys
import textwrap
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tokmap  # noqa: E402

HEAD = """<!-- Made by python/reference.py. Change the docstrings instead. -->

# The Python package
"""
GROUPS = (
    ("Datasets", ("open", "Dataset", "View", "Document", "Input", "Segment", "Span", "Writer", "Lane",
                  "LaneWriter")),
    ("Packing", ("pack", "PackReport", "PackProgress")),
    ("Loading", ("Loader", "Source", "DocumentList", "Order", "Rows", "Ranks", "Reading", "Resume", "Record", "Slots", "Batch", "Row", "Samples",
                 "Sample", "megatron_source")),
    ("Looking back at a run", ("Run", "TracedRow", "TracedDocument", "Share")),
    ("GPUs (experimental)", ("Stage", "DeviceBatch", "DeviceArray", "Filled", "count_devices")),
    ("Tokenizers", ("Tokenizer",)),
    ("Measuring", ("measure", "Measurement")),
    ("Checking a resume", ("check_resume", "ResumeCheck", "WrongStep")),
    ("Errors", ()),  # all others
)
DROP_INS = (
    ("torch", ("IterableDataset", "data_loader", "MapDataset", "profiled")), ("lightning", ("DataModule",)),
    ("huggingface", ("CausalLMDataset", "IterableDataset", "Callback")), ("megatron", ("datasets", "GPTDataset")),
    ("torchtitan", ("DataLoader", "DataLoader.Config")), ("olmo_core", ("DataLoader", "DataLoaderConfig")),
)


def stand_in(_, name):
    if name.startswith("__"):
        raise AttributeError(name)
    return StandInClass(name, (), {"__class_getitem__": classmethod(lambda cls, key: cls)})


class StandInClass(type):
    __getattr__ = stand_in


class StandIn(types.ModuleType):
    """A framework, so that the modules that need it can be imported without it."""

    __path__ = []
    __getattr__ = stand_in


for framework in ("torch", "torch.profiler", "torch.utils", "torch.utils.data", "lightning", "tyro", "torchtitan",
                  "torchtitan.components", "torchtitan.components.dataloader", "olmo_core", "olmo_core.data",
                  "olmo_core.distributed", "olmo_core.distributed.parallel", "olmo_core.distributed.utils",
                  "olmo_core.exceptions", "transformers", "datasets", "datasets.iterable_dataset"):
    sys.modules[framework] = StandIn(framework)
    parent, _, child = framework.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, sys.modules[framework])


def parameters_of(function):
    """Its parameters as they are written in the source, and what it returns."""
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if isinstance(node, ast.ClassDef):  # a dataclass
        return [ast.unparse(line) for line in node.body if isinstance(line, ast.AnnAssign)], "None"
    given = node.args
    named = given.posonlyargs + given.args
    defaults = [None] * (len(named) - len(given.defaults)) + list(given.defaults)
    found = list(zip(named, defaults))
    if given.kwonlyargs:
        found += [("*", None), *zip(given.kwonlyargs, given.kw_defaults)]
    texts = [arg if isinstance(arg, str) else ast.unparse(arg) + (f" = {ast.unparse(value)}" if value else "")
             for arg, value in found if isinstance(arg, str) or arg.arg != "self"]
    texts += [f"**{ast.unparse(given.kwarg)}"] if given.kwarg else []
    return texts, ast.unparse(node.returns).strip("'") if node.returns else "None"


# Types that are words, by the names that the code has for them.
WORDS = {name: str(value).replace("typing.", "") for name, value in vars(tokmap._loader.options).items()
         if str(value).startswith("typing.Literal")}


def signature(name, function):
    """On one line if it fits, else on lines of at most 100 columns."""
    texts, result = parameters_of(function)
    texts = [re.sub(r"(?<=: )\w+(?= =|$)", lambda found: WORDS.get(found[0], found[0]), text) for text in texts]
    end = ")" if result == "None" else f") -> {result}"
    line = f"{name}({', '.join(texts)}{end}"
    if len(line) <= 100:
        return line
    whole = ", ".join(text.replace(" ", "\0") for text in texts)  # lines end between parameters
    lines = textwrap.wrap(whole, 96, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join([f"{name}(", *(line.replace("\0", " ") for line in lines), end])


OPTION = re.compile(r"([a-z_]+(?:, [a-z_]+)*) {2,}(\S.*)")


def documented(text, margin=True):
    """A docstring as Markdown. `name    text` becomes an item of a list, other indented blocks become code."""
    lines, state = [], "text"
    for line in (inspect.cleandoc(text) if margin else text).splitlines():
        option = OPTION.fullmatch(line)
        if not line:
            lines.append("")
        elif line.startswith("    ") and state == "list":
            lines[-1] += " " + line.strip()
        elif line.startswith("    "):
            lines += ["```python"] if state != "code" else []
            lines.append(line[4:])
            state = "code"
        else:
            if state == "code":
                while lines[-1] == "":
                    lines.pop()
                lines += ["```", ""]
            if option and state != "list" and lines[-1:] != [""]:
                lines.append("")
            names = option and ", ".join(f"`{name}`" for name in option[1].split(", "))
            lines.append(f"- {names}: {option[2]}" if option else line)
            state = "list" if option else "text"
    if state == "code":
        lines.append("```")
    return "\n".join("\n".join(textwrap.wrap(line, 108, subsequent_indent="  ")) if line.startswith("- ") else line
                     for line in lines)


def members(cls):
    names = [name for base in cls.__mro__ if base.__module__.startswith("tokmap") for name in vars(base)]
    for name in dict.fromkeys(names):
        member = inspect.getattr_static(cls, name)
        if not name.startswith("_") and isinstance(member, property):
            yield f"`{name}`", None, member
        elif not name.startswith("_") and inspect.isfunction(member):
            yield f"`{name}()`", signature(f"{cls.__name__}.{name}", member), member


def entry(name, value):
    lines = [f"### `{name}`", ""]
    if inspect.isclass(value) and issubclass(value, Exception):
        bases = ", ".join(f"`{base.__name__}`" for base in value.__bases__)
        return "\n".join([*lines, f"{documented(value.__doc__)} Derives from {bases}.", ""])
    is_tuple = inspect.isclass(value) and issubclass(value, tuple)
    has_init = inspect.isclass(value) and not is_tuple and not dataclasses.is_dataclass(value)
    function = value.__init__ if has_init else value
    own = name not in ("Batch", "Row", "DeviceBatch", "DeviceArray")  # made by the package
    if is_tuple:
        lines += ["```python", f"{name}({', '.join(value._fields)})", "```", ""]
    elif own:
        lines += ["```python", signature(name.rpartition(".")[2], function), "```", ""]
    lines += [documented(value.__doc__), ""]
    for title, call, member in members(value) if inspect.isclass(value) and not is_tuple else ():
        lines += [f"#### {title}", ""] + (["```python", call, "```", ""] if call else [])
        lines += [documented(member.__doc__), ""]
    return "\n".join(lines)


def main():
    names = [name for name in tokmap.__all__]
    grouped = {name for _, group in GROUPS for name in group}
    parts = [HEAD, documented(ast.get_docstring(ast.parse(inspect.getsource(tokmap)), clean=False), margin=False), ""]
    for title, group in GROUPS:
        chosen = [name for name in group if name in names] or [n for n in names if n not in grouped and not group]
        if chosen:
            parts += [f"## {title}", "", *(entry(name, getattr(tokmap, name)) for name in chosen)]
    parts += ["## Frameworks", "", "[frameworks.md](frameworks.md) shows how to use these, and others without a module.", ""]
    for module, names in DROP_INS:
        found = importlib.import_module(f"tokmap.{module}")
        parts += [entry(f"tokmap.{module}.{name}", operator.attrgetter(name)(found)) for name in names]
    print("\n".join(parts).strip())


if __name__ == "__main__":
    main()
