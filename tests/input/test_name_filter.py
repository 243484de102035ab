#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--include and --exclude: the files that `git check-ignore` says of random patterns, one by one; the rules for hidden
files and those beside data; patterns that are refused."""

import os
import pathlib
import random
import shutil
import subprocess
import sys

from ref_protocol import Skip, expect, expect_equal, program, run_in_folders, run_program

NAMES = ["a", "b", "ab", "ba", "a.c", "b.c", "ab.md", "x-1", "x-2", "[a]", "b*", "é", "A", "a b", "..a", "a\\b", ".c", "!a"]
PARTS = ["a", "b", "*", "?", "ab", "*.c", "*.md", "a*", "*b", "x-?", "[a-b]", "[!a]*", "[^b]", "[]a]", "x-[0-9]", "[[:alpha:]]",
         "[[:digit:]-]", "\\*", "\\[a\\]", "b\\*", "é", "*.*", ".*", "??", "a b", "A", "[a-", "a\\\\b", "\\!a", "***", "**"]


class Tool:
    def __init__(self, folder):
        self.folder = folder
        self.process = subprocess.Popen([program("tool_names"), folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def choose(self, include=(), exclude=()):
        """The names, without the folder; or why a pattern is refused."""
        lines = [b"i" + os.fsencode(one) for one in include] + [b"e" + os.fsencode(one) for one in exclude]
        self.process.stdin.write(b"\n".join([*lines, b"", b""]))
        self.process.stdin.flush()
        found = []
        while (line := self.process.stdout.readline().rstrip(b"\n")):
            found.append(os.fsdecode(line))
        if found and found[0].startswith("! "):
            return found[0][2:]
        return {name[len(str(self.folder)) + 1:] for name in found}


def random_pattern(rng):
    parts = [rng.choice(["**"] + PARTS if rng.random() < 0.3 else PARTS) for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4]))]
    return rng.choice(["", "", "/"]) + "/".join(parts) + rng.choice(["", "", "", "/"])


def make_tree(folder, rng):
    for _ in range(160):
        path = folder.joinpath(*(rng.choice(NAMES) for _ in range(rng.randint(1, 4))))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            pass
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def git_ignores(folder, repository, pattern, names):
    (repository / "info/exclude").write_text(pattern + "\n")
    done = subprocess.run(["git", f"--git-dir={repository}", f"--work-tree={folder}", "check-ignore", "--no-index", "--stdin", "-z"],
                          input=b"".join(os.fsencode(name) + b"\0" for name in names), capture_output=True, cwd=folder,
                          env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"})
    expect(done.returncode in (0, 1), done.stderr)
    return {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}


def patterns_choose_what_git_ignores(folder):
    if not shutil.which("git"):
        raise Skip("git not found")
    n_pairs = n_refused = n_matches = 0
    rng = random.Random(int(os.environ.get("SEED", 1)))
    n_patterns = 350 if os.environ.get("TOKMAP_LONG") == "all" else 120
    for number in range(4):
        tree, repository = folder / f"tree-{number}", folder / f"git-{number}"
        tree.mkdir()
        subprocess.run(["git", "init", "-q", "--bare", repository], check=True)
        names = make_tree(tree, rng)
        tool = Tool(tree)
        shown = tool.choose()
        for _ in range(n_patterns):
            pattern = random_pattern(rng)
            chosen = tool.choose([pattern])
            if isinstance(chosen, str) and "no files" not in chosen:
                n_refused += 1
                continue
            wanted = git_ignores(tree, repository, pattern, names)
            expect_equal(chosen, wanted, f"--include {pattern!r}")
            expect_equal(tool.choose([], [pattern]), shown - wanted, f"--exclude {pattern!r}")
            n_pairs, n_matches = n_pairs + len(names), n_matches + len(wanted)
    expect(n_pairs >= 257 * n_patterns and n_matches > n_pairs // 20 and n_refused < 1.14 * n_patterns, (n_pairs, n_matches, n_refused))
    return f"{n_pairs} pairs, {n_matches} match; {n_refused} patterns are refused"


def hidden_files_and_those_beside_data_are_taken_if_included(folder):
    for name in ("README.md", "a.md", ".hidden/b.md", ".c.md", "d.txt", "docs/README", "docs/e.md", "docs/x.partial", "docs/LICENSE"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    tool = Tool(folder)
    expect_equal(tool.choose(), {"a.md", "d.txt", "docs/e.md"}, "without patterns")
    expect_equal(tool.choose(["*.md"]), {"README.md", "a.md", ".hidden/b.md", ".c.md", "docs/e.md"}, "*.md")
    expect_equal(tool.choose(["docs/"]), {"docs/README", "docs/e.md", "docs/LICENSE"}, "docs/")
    expect_equal(tool.choose(["docs/"], ["LICENSE"]), {"docs/README", "docs/e.md"}, "exclude wins")
    expect_equal(tool.choose(["*.md"], [".hidden/", "/a.md"]), {"README.md", ".c.md", "docs/e.md"}, "anchored")
    expect_equal(tool.choose([], ["docs/"]), {"a.md", "d.txt"}, "exclude alone")
    expect_equal(tool.choose(["nothing"]), set(), "nothing is left")


def a_link_does_not_hide_what_matches(folder):
    (folder / "z").mkdir()
    (folder / "z/x.md").touch()
    (folder / "top.txt").touch()
    (folder / "a_link").symlink_to("z")
    (folder / "z/loop").symlink_to("..")
    tool = Tool(folder)
    expect_equal(tool.choose(["z/"]), {"z/x.md"}, "include")
    expect_equal(tool.choose([], ["a_link/*"]), {"z/x.md", "top.txt"}, "exclude")
    deep = folder.joinpath(*["ab"] * 60)
    deep.mkdir(parents=True)
    (deep / "y").touch()
    expect_equal(len(tool.choose([], ["**/a*/" * 12 + "zz"])), 3, "many stars")


def links_between_folders_are_walked_once_for_each_meaning(folder):
    """Each of 40 folders has two links to the next one: 2^40 paths. Counted are the files that a pattern leaves out."""
    n = 40
    for i in range(n):
        (folder / f"dag/d{i}").mkdir(parents=True)
        for name in "ab" if i < n - 1 else "":
            (folder / f"dag/d{i}/{name}").symlink_to(f"../d{i + 1}")
    (folder / f"dag/d{n - 1}/x.png").touch()
    (folder / "dag/d0/r.md").touch()
    dag = "dag/d0"
    for options, said in ((["--exclude", "*.png"], "left out 1 name that --exclude matches"),
                          (["--include", "*.md"], "left out 1 file that no --include matches"),
                          (["--exclude", "/".join(["*"] * n)], "left out 1 name"),
                          (["--include", "a/b/**/b/*.md", "--include", "r.md"], "left out 3 files that no --include matches")):
        done = run_program("tokmap", "pack", dag, *options, "--dry-run", "--json", "-o", "out", cwd=folder, text=True, timeout=60)
        expect(done.returncode == 0 and said in done.stderr, (options, done.stderr))
    # Where the meaning differs, the folder is walked again, and its file is taken under the name that matches.
    tool = Tool(folder / "dag/d0")
    path = "b/a/" + "a/" * (n - 3) + "x.png"
    expect_equal(tool.choose(["/" + path]), {path}, "one path of 2^39")
    expect_equal(len(tool.choose(["/b/a/**/b/x.png"])), 1, "many paths, of which the first is taken")
    expect_equal(len(tool.choose([], ["a/a/**"])), 2, "excluded under some names")


def patterns_that_match_nothing_are_named(folder):
    for name in ("a.txt", "docs/b.md", "docs/c.md", "gone/d.log"):
        (folder / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "in" / name).write_text("text\n")

    def notes(*options):
        done = run_program("tokmap", "pack", "in", *options, "-o", "out", "-f", cwd=folder, text=True)
        expect_equal(done.returncode, 0, done.stderr)
        return [line.split(": ", 1)[1] for line in done.stderr.splitlines() if "matches no name" in line]

    no_name = "matches no name in a folder"
    expect_equal(notes("--exclude", "*.lgo"), [f"*.lgo: --exclude {no_name}"], "a misspelt one")
    expect_equal(notes("--exclude", "*.lgo", "-q"), [], "-q")
    expect_equal(notes("--exclude", "./a.txt", "--exclude", "a//b", "--exclude", "../in", "--exclude", "x", "--include", "y", "--include", "a.*"),
                 [f"y: --include {no_name}", f"./a.txt, a//b, ../in and 1 more: --exclude {no_name}"], "several")
    # One that another one covers has matched.
    expect_equal(notes("--exclude", "*.log", "--exclude", "d.log", "--include", "docs/", "--include", "*.md", "--include", "gone/*"), [], "covered")
    expect_equal(notes("--exclude", "gone/", "--exclude", "*.log"), [f"*.log: --exclude {no_name}"], "in a folder that is excluded")
    done = run_program("tokmap", "plan", "in", "--exclude", "*.lgo", "--cells", "c", "-o", "p", cwd=folder, text=True)
    expect(f"*.lgo: --exclude {no_name}" in done.stderr, done.stderr)


def a_set_ends_at_its_bracket(folder):
    """Where a ] is the first of the set, escaped, or that of a class, another one must follow."""
    for name in "]!^:[a\\":
        (folder / name).touch()
    tool = Tool(folder)
    for pattern, names in (("[]]", "]"), ("[!]]", "!^:[a\\"), ("[^]]", "!^:[a\\"), ("[[:alpha:]]", "a"), ("[\\]]", "]"),
                           ("[a::]", "a:"), ("[[a:]", "[a:"), ("[[:]", "[:")):
        expect_equal(tool.choose([pattern]), set(names), pattern)
    for pattern in ("[", "[]", "[!]", "[^]", "[[:alpha:]", "[[::]", "[\\]"):
        said = tool.choose([pattern])
        expect(isinstance(said, str) and "a [ has no ]" in said, (pattern, said))


def patterns_without_a_meaning_are_refused(folder):
    tool = Tool(folder)
    for pattern, why in (("!a", "! has no meaning"), ("", "is empty"), ("a[b", "a [ has no ]"), ("[a/b]", "a [ has no ]"),
                         ("a\\", "last backslash"), ("a\\/b", "last backslash"), ("a**/b", "must stand alone"),
                         ("x" * 256, "longer than 255"),
                         ("[[=a=]]", "[= and [. have no meaning"), ("b[c[.a.]]", "[= and [. have no meaning"), ("[[.]", "[= and [. have no meaning")):
        said = tool.choose([pattern])
        expect(isinstance(said, str) and why in said, (pattern, said))


if __name__ == "__main__":
    sys.exit(run_in_folders("name_filter_"))
