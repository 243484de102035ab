# SPDX-License-Identifier: Apache-2.0
"""Finds expressions whose value depends on the order in which a compiler evaluates their operands: a call that may
write an object through a pointer, beside another use of the object, as in `*find(v, &bits) |= bits`. C says which
comes first only at `;`, `&&`, `||`, `?` and the comma operator, and that arguments come before their call.

A rule of lint_rules.py. It reads code without comments, knows from prototypes through which parameters a function may
write, and takes every `&x` that a function without a prototype gets for written. It does not see writes to globals, through other
names of an object, or to what the object points to. The arguments of a macro of the tests are expressions of their
own."""

import re

CONTROL = {"if", "while", "for", "switch"}
NOT_CALLS = CONTROL | {"return", "sizeof", "case", "else", "do"}
MACRO_OF_TESTS = re.compile(r"[A-Z][A-Z0-9_]+")
PATH = r"[A-Za-z_]\w*(?:(?:\.|->)\w+)*"
ARGUMENT = re.compile(rf"(?:\([\w *]+\))?(&?)({PATH})(?:\[[^\]]*\])?")
FUNCTION = re.compile(r"^(?!#|return)(?:\w+[ *]+)+(\w+)\(((?:[^();]|\([^()]*\))*)\)\s*[;{]", re.MULTILINE)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)


def split_arguments(text):
    arguments, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            arguments.append("")
        else:
            arguments[-1] += c
    return [argument.strip() for argument in arguments]


def writes(parameter):
    return bool(re.search(r"[*\[]", parameter)) and not re.match(r"const\b", parameter) and "(" not in parameter


def read_prototypes(sources):
    """{function: for each of its parameters, whether the function may write through it}."""
    return {match.group(1): [writes(parameter) for parameter in split_arguments(match.group(2))]
            for code in sources.values() for match in FUNCTION.finditer(code)}


def end_directives(code):
    """The body of a macro becomes a statement; line breaks stay."""
    def statement(match):
        text = re.sub(r"\\\n", " \n", match.group())
        head = re.match(r"\s*#\s*define\s+\w+(\([^)]*\))?", text)
        return ";" + re.sub(r"[^\n]", " ", head.group())[1:] + text[head.end():] + ";" if head else ";"
    return DIRECTIVE.sub(statement, code)


class Code:
    def __init__(self, text, of_tests):
        self.text, self.of_tests, self.closing, self.opening, stack = text, of_tests, {}, {}, []
        for i, c in enumerate(text):
            if c in "([":
                stack.append(i)
            elif c in ")]" and stack:
                self.closing[stack[-1]], self.opening[i] = i, stack[-1]
                stack.pop()

    def word_before(self, at):
        if self.text[at] != "(":
            return ""
        before = self.text[max(0, at - 80):at].rstrip()
        begin = len(before)
        while begin > 0 and (before[begin - 1].isalnum() or before[begin - 1] in "_])"):
            begin -= 1
        return before[begin:]

    def is_call(self, at):
        word = self.word_before(at)
        return bool(word) and word not in NOT_CALLS and not (self.of_tests and MACRO_OF_TESTS.fullmatch(word))

    def ends_operand(self, at, in_call):
        text = self.text
        return (text[at] in ";{}?:" or text[at] == "," and not in_call or
                text[at:at + 2] in ("&&", "||") or text[at - 1:at + 1] in ("&&", "||"))

    def beside(self, first, last, in_call):
        """What is evaluated before or after text[first:last + 1], and where the group around both begins or None."""
        before, after = first - 1, last + 1
        while before >= 0 and not self.ends_operand(before, in_call) and before not in self.closing:
            opened = self.opening.get(before)
            if opened is not None and self.word_before(opened) in CONTROL:
                break
            before = (before if opened is None else opened) - 1
        while (after < len(self.text) and not self.ends_operand(after, in_call) and
               after not in self.opening):
            after = self.closing.get(after, after) + 1
        return self.text[before + 1:first], self.text[last + 1:after]

    def groups_around(self, at):
        groups = []
        while at >= 0 and self.text[at] not in ";{}":
            if at in self.opening:
                at = self.opening[at]
            elif at in self.closing:
                groups.append(at)
            at -= 1
        return groups

    def unsequenced(self, first, last):
        """The texts that C lets a compiler evaluate before or after the call text[first:last + 1]."""
        texts = []
        for group in self.groups_around(first - 1) + [None]:
            in_call = group is not None and self.is_call(group)
            left, right = self.beside(first, last, in_call)
            texts += [re.sub(rf"{PATH}(\[[^\]]*\])?(\.|->)$", "", left), right]  # not where the function is found
            if group is None or self.word_before(group) in CONTROL:
                return " \n ".join(texts)
            first = group - len(self.word_before(group))
            last = self.closing.get(group, group)


def is_used(path, is_address, text):
    if path not in text:  # the usual case, without compiling expressions
        return False
    path = re.escape(path)
    text = re.sub(r"\bsizeof \(?[^)\n]*", "", text)
    text = re.sub(rf"(?<![\w.>*&]){path}((->|\.)\w+(\.\w+)*)?\s*=(?!=)", "", text)  # assigned when all is evaluated
    value = rf"(?<![\w.>&]){path}\b(?!\s*\()" if is_address else rf"(?<![\w.>]){path}(->|\[)|(^|[^\w)\] ]\s*)\*{path}\b"
    in_call = rf"\w\((?:[^()]*,)?\s*&?{path}\s*[,)]"
    return re.search(f"{value}|{in_call}", text) is not None


def find_unsequenced(text, prototypes, of_tests):
    """Yields (line, what is used, the function that may write it)."""
    code = Code(end_directives(text), of_tests)
    for opened, closed in code.closing.items():
        name = code.word_before(opened)
        if not code.is_call(opened) or not re.fullmatch(PATH, name):
            continue
        arguments = split_arguments(code.text[opened + 1:closed])
        known = prototypes.get(name, [])
        beside = None
        for k, argument in enumerate(arguments):
            match = ARGUMENT.fullmatch(argument)
            if match and (known[k] if k < len(known) else match.group(1)):
                beside = code.unsequenced(opened - len(name), closed) if beside is None else beside
                if is_used(match.group(2), bool(match.group(1)), beside):
                    yield code.text.count("\n", 0, opened) + 1, match.group(2), name
