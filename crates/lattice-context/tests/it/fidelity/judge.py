"""Judges outlines of Python by Python's own parser: but for the bodies of functions they say what the files say.

    judge.py FILES OUTLINES

Prints how much was compared and every difference.
"""

import ast
import json
import pathlib
import sys


class Stripped(ast.NodeTransformer):
    """Leaves of every function its signature, its decorators and its docstring."""

    def __init__(self):
        self.signatures = 0
        self.imports = 0

    def visit_FunctionDef(self, node):
        self.signatures += 1
        documented = ast.get_docstring(node, clean=False) is not None
        node.body = node.body[:1] if documented else []
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self.signatures += 1
        return self.generic_visit(node)

    def visit_Import(self, node):
        self.imports += 1
        return node

    visit_ImportFrom = visit_Import


def stripped(path):
    counts = Stripped()
    tree = counts.visit(ast.parse(path.read_bytes(), str(path)))
    return [ast.dump(part) for part in tree.body], counts


def main(files, outlines):
    total = {"files": 0, "imports": 0, "signatures": 0, "problems": []}
    for outline in sorted(outlines.rglob("*.py")):
        name = outline.relative_to(outlines)
        try:
            (here, counts), (there, _) = stripped(files / name), stripped(outline)
        except SyntaxError as error:
            total["problems"].append(f"{name}: {error}")
            continue
        total["files"] += 1
        total["imports"] += counts.imports
        total["signatures"] += counts.signatures
        if here != there:
            pairs = zip(here + [""], there + [""])
            one, other = next((pair for pair in pairs if pair[0] != pair[1]), ("more", "less"))
            at = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), 0)
            total["problems"].append(f"{name}: {one[max(at - 80, 0):at + 80]} became {other[max(at - 80, 0):at + 80]}")
    json.dump(total, sys.stdout)


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
