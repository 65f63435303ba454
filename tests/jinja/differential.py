"""Random templates over random messages: ours must print the bytes that Python's jinja2 prints.
A template that jinja2 refuses must be refused; one that we do not support must say so. The seeds
are always the same unless MLA_TEST_SEED says otherwise: jinja2 works out constants when it compiles,
and then refuses some templates that would never come to the place, which we do not."""
import json
import os
import random
import subprocess
import sys

try:
    import environment
except ImportError as error:
    print(f"skipped: no jinja2 for this Python ({error})")
    sys.exit(77)

MAX_SHOWN = 25
WORDS = ["a", "b", "content", "role", "user", "<think>x</think>y", " pad ", "é", "\n", "1", "",
         "it's", 'say "x"', "tab\there", "日本", "\\", "</think>", "-3", "2.5", "Zed", "zed"]


def random_json(rng, depth):
    kind = rng.randrange(9 if depth > 0 else 6)
    if kind < 3:
        return rng.choice(WORDS) + rng.choice(WORDS)
    if kind == 3:
        return rng.choice([0, 1, -1, 7, 2 ** 40, -13])
    if kind == 4:
        return rng.choice([0.5, 1e20, -2.0, 1e-7, 3.14, 100.0, 123456789.125])
    if kind == 5:
        return rng.choice([None, True, False])
    if kind < 8:
        return [random_json(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(WORDS[:6]): random_json(rng, depth - 1) for _ in range(rng.randrange(4))}


NAMES = ["x", "y", "z", "u", "v", "w", "messages", "missing", "m", "loop.index0", "ns.v"]
FILTERS = ["trim", "length", "string", "list", "first", "last", "tojson", "default('d')", "d(1, true)",
           "join(', ')", "int", "float", "abs", "upper", "lower", "title", "capitalize", "safe", "unique|list",
           "replace('a', 'bb')", "indent(2)", "indent(3, true, true)", "sort", "reverse|list", "items|list",
           "map('string')|list", "select|list", "reject('none')|list", "selectattr('role')|list",
           "map(attribute='content')|list", "tojson(indent=2)", "min", "max", "sum", "dictsort",
           "tojson(ensure_ascii=True)", "sort(reverse=true)", "select('string')|join"]
TESTS = ["defined", "undefined", "none", "string", "mapping", "sequence", "iterable", "boolean", "true",
         "false", "number", "integer", "float", "even", "odd", "divisibleby(3)", "eq(1)", "in [1, 'a']",
         "callable", "ge 1"]
METHODS = ["split()", "split('a')", "split('a', 1)", "strip()", "lstrip('a ')", "rstrip()", "startswith('a')",
           "endswith(('a', 'b'))", "replace('a', '-')", "get('role')", "get('x', 1)", "keys()", "values()|list",
           "items()|list", "upper()", "lower()", "title()", "splitlines()", "find('a')", "rsplit('a', 1)",
           "count('a')", "removeprefix('a')", "isdigit()", "index", "append(1)"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]


def random_expression(rng, depth):
    kind = rng.randrange(14) if depth > 0 else rng.randrange(3)
    inner = lambda: random_expression(rng, depth - 1)
    if kind == 0:
        return rng.choice(NAMES)
    if kind == 1:
        return json.dumps(rng.choice(WORDS), ensure_ascii=rng.random() < 0.3)
    if kind == 2:
        return rng.choice(["0", "1", "2", "3.5", "true", "none", "False", "-1", "1e3", "10"])
    if kind == 3:
        return f"({inner()} {rng.choice(BINARY)} {inner()})"
    if kind == 4:
        return f"{inner()} {rng.choice(BINARY)} {inner()}"
    if kind in (5, 6):
        return f"({inner()})|{rng.choice(FILTERS)}"
    if kind == 7:
        return f"(({inner()}) is {rng.choice(['', 'not '])}{rng.choice(TESTS)})"
    if kind == 8:
        base = rng.choice([rng.choice(NAMES), json.dumps(rng.choice(WORDS))])
        return f"{base}.{rng.choice(METHODS)}"
    if kind == 9:
        return f"({inner()} if {inner()} else {inner()})"
    if kind == 10:
        part = lambda: rng.choice(["", "", "0", "1", "-1", "2", "-2", "5"])
        return f"{rng.choice(NAMES)}[{part()}:{part()}{rng.choice(['', ':', ':-1', ':2'])}]"
    if kind == 11:
        return f"({inner()})[{inner()}]"
    if kind == 12:
        return "[" + ", ".join(inner() for _ in range(rng.randrange(3))) + "]"
    return "{'role': " + inner() + ", " + "'content': " + inner() + "}"


def random_tag(rng, text, closer):
    left, right = rng.choice(["", "", "-", "+"]), rng.choice(["", "", "-"] + ["+"] * (closer == "%}"))
    return "{" + {"%}": "%", "}}": "{", "#}": "#"}[closer] + left + text + right + closer


def random_body(rng, depth):
    out = []
    for _ in range(rng.randrange(1, 4)):
        kind = rng.randrange(11) if depth > 0 else rng.randrange(4)
        block = lambda text: random_tag(rng, f" {text} ", "%}")
        inner = lambda: random_body(rng, depth - 1)
        value = lambda: random_expression(rng, rng.randrange(3))
        if kind < 2:
            out.append(rng.choice(["text", " ", "\n", "  \n  ", "\n\n", "\t", "{ }", "é\n"]))
        elif kind == 2:
            out.append(random_tag(rng, f" {value()} ", "}}"))
        elif kind == 3:
            out.append(random_tag(rng, " note ", "#}"))
        elif kind == 4:
            out.append(block(f"if {value()}") + inner() + block("else") + inner() + block("endif"))
        elif kind == 5:
            out.append(block(f"if {value()}") + inner() + block(f"elif {value()}") + inner() + block("endif"))
        elif kind == 6:
            test = f" if {value()}" if rng.random() < 0.3 else ""
            rest = block("else") + inner() if rng.random() < 0.3 else ""
            jump = rng.choice(["", "", block("if loop.index > 1") + block(rng.choice(["break", "continue"]))
                               + block("endif")])
            out.append(block(f"for m in {rng.choice(['messages', 'x', 'y', value()])}{test}") + jump + inner()
                       + rest + block("endfor"))
        elif kind == 7:
            out.append(block(f"set {rng.choice(['u', 'w', 'ns.v'])} = {value()}"))
        elif kind == 8:
            out.append(block(f"macro f(a, b={value()})") + inner() + "{{ a }}" + block("endmacro")
                       + "{{ f(" + value() + ") }}")
        elif kind == 9:
            out.append(block("set v") + inner() + block("endset") + "{{ v }}")
        else:
            out.append(rng.choice([block("raw") + " {{ x }} " + block("endraw"),
                                   block("filter upper") + "abc" + block("endfilter"),
                                   "{{ loop.first }}{{ loop.last }}", block("generation") + inner()
                                   + block("endgeneration")]))
    return "".join(out)


def job_of(seed):
    rng = random.Random(seed)
    fields = {name: random_json(rng, 2) for name in ("x", "y", "z")}
    fields["messages"] = [{"role": rng.choice(["user", "system"]), "content": random_json(rng, 1)}
                          for _ in range(rng.randrange(4))]
    return {"template": "{% set ns = namespace(v=1) %}" + random_body(rng, 2), "own": {"bos_token": "<s>"},
            "fields": fields}


def ours(jobs):
    lines = "".join(json.dumps(job) + "\n" for job in jobs)
    done = subprocess.run([os.environ["MLA_RENDER"]], input=lines.encode(), capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def theirs(job):
    try:
        return environment.render(job["template"], job["own"], job["fields"]), None
    except Exception as error:  # whatever it is, it is a refusal
        return None, f"{type(error).__name__}: {error}"


def is_supported(answer):
    return not any(word in answer.get("error", "") for word in ("not supported", "are supported", "is supported",
                                                               "does not fit", "has no order here", "is no number"))


def main():
    first = int(os.environ.get("MLA_TEST_SEED", 1))
    num = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    print(f"seeds {first} to {first + num - 1}")
    jobs = [job_of(seed) for seed in range(first, first + num)]
    counts = {"same": 0, "both refuse": 0, "not supported": 0}
    bad = 0
    for seed, job, answer in zip(range(first, first + num), jobs, ours(jobs)):
        text, error = theirs(job)
        if not is_supported(answer):
            counts["not supported"] += 1
        elif text is None and "error" in answer:
            counts["both refuse"] += 1
        elif text is not None and answer.get("text") == text:
            counts["same"] += 1
        elif text is not None and (" at 0x" in text or "Markup(" in text):
            counts["not supported"] += 1  # an address, or the class of what is safe
        else:
            bad += 1
            if bad <= MAX_SHOWN:
                print(f"seed {seed}: {job['template']!r}\n  fields {job['fields']!r}\n  ours   {answer!r}\n"
                      f"  theirs {text!r} {error}")
    print(counts, f"{bad} differ")
    return 1 if bad or counts["same"] < num // 5 else 0


if __name__ == "__main__":
    sys.exit(main())
