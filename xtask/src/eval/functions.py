"""For each line of stdin, a JSON object with a Python text and line numbers: the outermost functions that hold them."""
import ast
import json
import sys


def functions(node):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child.lineno, child.end_lineno
        else:
            yield from functions(child)


for line in sys.stdin:
    asked = json.loads(line)
    try:
        found = sorted(
            (first, last)
            for first, last in functions(ast.parse(asked["text"]))
            if any(first <= number <= last for number in asked["lines"])
        )
    except (SyntaxError, ValueError):
        found = []
    print(json.dumps(found), flush=True)
