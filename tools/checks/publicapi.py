"""What the public headers declare: functions marked MLA_API, and types."""
import glob
import re

from ctext import code_of


def headers():
    found = sorted(glob.glob("include/mla/*.h"))
    if not found:
        raise SystemExit("no public headers under include/mla/")
    return found


def declarations(path):
    """Yields (name, first line, last line) of each declaration at file level, 0-based."""
    code = code_of(open(path, encoding="utf-8").read())
    code = re.sub(r"^[ \t]*#.*?(?<!\\)$", lambda m: re.sub(r"[^\n]", " ", m.group()), code,
                  flags=re.M | re.S)
    for match in re.finditer(r"\bMLA_API\b[^;]*;", code):
        name = re.search(r"(\w+)\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", match.group()))
        yield _placed(code, match, name.group(1))
    for match in re.finditer(r"\btypedef\b[^;{]*(?:\{[^}]*\})?[^;]*;", code):
        yield _placed(code, match, re.findall(r"\w+", match.group())[-1])


def _placed(code, match, name):
    return name, code.count("\n", 0, match.start()), code.count("\n", 0, match.end())


def function_names():
    """Names that libmla.so must export, no more and no less."""
    names = set()
    for path in headers():
        code = code_of(open(path, encoding="utf-8").read())
        for declaration in re.findall(r"^MLA_API\b[^;]*;", code, re.M):
            names.add(re.search(r"(\w+)\s*\(", declaration).group(1))
    return names
