#!/usr/bin/env python3
"""Builds the training corpus from unpacked Debian source packages (permissive licences only).

usage: build_corpus.py SRC_DIR OUT_DIR       (SRC_DIR/dl/<package>/x = unpacked source)
Writes OUT_DIR/corpus/train-NN.xz, OUT_DIR/corpus/val.xz and OUT_DIR/MANIFEST.tsv.
A shard is a sequence of documents, each followed by a NUL byte.
"""
import sys, os, re, hashlib, html, json, lzma, random, subprocess, glob
from concurrent.futures import ProcessPoolExecutor

SRC, OUT = sys.argv[1], sys.argv[2]
BOS, EOS = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
USER, ASSI = "<｜User｜>", "<｜Assistant｜>"
MB = 1 << 20

# package: (licence, {kind: cap in MB});  kinds: c md html xml man pod rst sgml po sql py go js sh tcl
PK = {
 "sqlite3": ("public domain", dict(c=9, md=1, tcl=3, test=4)),
 "lua5.4": ("MIT", dict(c=2, htmlm=1, man=1)),
 "musl": ("MIT", dict(c=4)),
 "zlib": ("Zlib", dict(c=2, txt=1, man=1)),
 "libzstd": ("BSD-3-Clause (dual)", dict(c=4, md=1)),
 "libuv1": ("MIT", dict(c=3, rst=1, md=1)),
 "jq": ("MIT", dict(c=2, md=1, man=1, yml=1)),
 "curl": ("curl (MIT-like)", dict(c=8, md=3, man=4, d=1)),
 "redis": ("BSD-3-Clause", dict(c=6, md=1, json=1, tcl=1)),
 "nginx": ("BSD-2-Clause", dict(c=6, man=1)),
 "tmux": ("ISC", dict(c=3, man=1)),
 "libevent": ("BSD-3-Clause", dict(c=3, md=1)),
 "jansson": ("MIT", dict(c=1, rst=1)),
 "postgresql-15": ("PostgreSQL", dict(c=26, sgml=14, sql=4, po=5, txt=1)),
 "python3.11": ("PSF-2.0", dict(c=6, rst=13, py=4)),
 "openssl": ("Apache-2.0", dict(c=10, pod=5, md=1)),
 "libpng1.6": ("libpng", dict(c=2, man=1)),
 "libjpeg-turbo": ("BSD-3-Clause/IJG", dict(c=2, txt=1)),
 "brotli": ("MIT", dict(c=1)),
 "lz4": ("BSD-2-Clause", dict(c=1, md=1)),
 "nghttp2": ("MIT", dict(c=3, rst=1)),
 "c-ares": ("MIT", dict(c=2, man=1)),
 "expat": ("MIT", dict(c=1)),
 "libxml2": ("MIT", dict(c=6)),
 "pcre2": ("BSD-3-Clause", dict(c=3, man=2)),
 "libonig": ("BSD-2-Clause", dict(c=1, md=1)),
 "libarchive": ("BSD-2-Clause", dict(c=6, man=1)),
 "openssh": ("BSD", dict(c=5, man=1)),
 "cmark": ("BSD-2-Clause", dict(c=1, txt=1)),
 "cjson": ("MIT", dict(c=1)),
 "libsodium": ("ISC", dict(c=2)),
 "mbedtls": ("Apache-2.0", dict(c=5, md=1)),
 "wayland": ("MIT", dict(c=1, xml=1)),
 "libdrm": ("MIT", dict(c=2, rst=1)),
 "tcl8.6": ("TCL (BSD-like)", dict(c=6, man=2)),
 "mdocml": ("ISC", dict(c=2, man=1)),
 "libbsd": ("BSD", dict(c=1, man=1)),
 "bmake": ("BSD-3-Clause", dict(c=2, man=1)),
 "freebsd-manpages": ("BSD-2-Clause", dict(man=10)),
 "cmake": ("BSD-3-Clause", dict(rst=6, c=3)),
 "meson": ("Apache-2.0", dict(md=3)),
 "python-django": ("BSD-3-Clause", dict(rst=9, py=3)),
 "sphinx": ("BSD-2-Clause", dict(rst=2)),
 "flask": ("BSD-3-Clause", dict(rst=1, py=1)),
 "jinja2": ("BSD-3-Clause", dict(rst=1)),
 "sqlalchemy": ("MIT", dict(rst=4, py=1)),
 "pandas": ("BSD-3-Clause", dict(rst=4)),
 "scikit-learn": ("BSD-3-Clause", dict(rst=3)),
 "matplotlib": ("PSF-like", dict(rst=2)),
 "twisted": ("MIT", dict(rst=2)),
 "apache2": ("Apache-2.0", dict(c=6, html=7)),
 "lighttpd": ("BSD-3-Clause", dict(c=3)),
 "erlang": ("Apache-2.0", dict(xml=9, c=4)),
 "open-adventure": ("BSD-2-Clause", dict(yaml=1, c=1)),
 "dpdk": ("BSD-3-Clause", dict(c=10, rst=4)),
 "libpcap": ("BSD-3-Clause", dict(c=2, man=1)),
 "tcpdump": ("BSD-3-Clause", dict(c=3, man=1)),
 "openntpd": ("ISC", dict(c=1)),
 "opensmtpd": ("ISC", dict(c=2, man=1)),
 "libwebsockets": ("MIT", dict(c=4, md=2)),
 "libssh2": ("BSD-3-Clause", dict(c=1, man=1)),
 "hiredis": ("BSD-3-Clause", dict(c=1, md=1)),
 "memcached": ("BSD-3-Clause", dict(c=1, txt=1)),
 "lmdb": ("OLDAP-2.8 (BSD-like)", dict(c=1)),
 "file": ("BSD-2-Clause", dict(c=1, man=1)),
 "unbound": ("BSD-3-Clause", dict(c=4)),
 "nsd": ("BSD-3-Clause", dict(c=2)),
 "libyaml": ("MIT", dict(c=1)),
 "libffi": ("MIT", dict(c=1)),
 "libunwind": ("MIT", dict(c=1)),
 "mimalloc": ("MIT", dict(c=1, md=1)),
 "jemalloc": ("BSD-2-Clause", dict(c=2)),
 "libwebp": ("BSD-3-Clause", dict(c=2)),
 "opus": ("BSD-3-Clause", dict(c=2)),
 "flac": ("BSD-3-Clause", dict(c=2)),
 "libvorbis": ("BSD-3-Clause", dict(c=1)),
 "libogg": ("BSD-3-Clause", dict(c=1)),
 "libvpx": ("BSD-3-Clause", dict(c=3)),
 "dav1d": ("BSD-2-Clause", dict(c=2)),
 "aom": ("BSD-2-Clause", dict(c=4)),
 "protobuf-c": ("BSD-2-Clause", dict(c=1)),
 "nanopb": ("Zlib", dict(c=1, md=1)),
 "duktape": ("MIT", dict(c=2, rst=1)),
 "mruby": ("MIT", dict(c=3, md=1)),
 "mujs": ("ISC", dict(c=1)),
 "h2o": ("MIT", dict(c=3)),
 "varnish": ("BSD-2-Clause", dict(c=3, rst=3)),
 "dropbear": ("MIT", dict(c=1)),
 "nodejs": ("MIT", dict(md=6, js=3)),
 "golang-1.19": ("BSD-3-Clause", dict(go=7, html=2)),
 "leveldb": ("BSD-3-Clause", dict(cc=1, md=1)),
 "re2": ("BSD-3-Clause", dict(cc=1)),
}
KEEP_ALL = {"sqlite3", "redis", "nginx", "lua5.4", "musl", "zlib", "libuv1", "tmux", "libevent", "jansson", "jq", "lz4", "cjson"}
WORDNET_MB, JARGON_MB, RUST_MB = 7, 3, 7

for _pk, (_l, _c) in PK.items():
    if "c" in _c: _c["c"] = min(_c["c"], {"sqlite3": 9, "postgresql-15": 14, "redis": 6, "curl": 6, "nginx": 5, "openssl": 6}.get(_pk, 3.5))
    if _pk in ("opus", "flac", "libwebp", "aom", "libvpx", "libdrm", "libpng1.6", "libjpeg-turbo", "cmake"): _c["c"] = min(_c.get("c", 1), 1)
    for _k, _m in (("po", 3), ("sql", 2), ("go", 3.5), ("js", 1.5), ("py", 2), ("test", 1.5), ("rst", 9)):
        if _k in _c: _c[_k] = min(_c[_k], _m)

EXT = {".c": "c", ".h": "c", ".y": "c", ".md": "md", ".markdown": "md", ".rst": "rst", ".txt": "txt", ".pod": "pod",
       ".sgml": "sgml", ".xml": "xml", ".po": "po", ".sql": "sql", ".py": "py", ".go": "go", ".js": "js", ".mjs": "js",
       ".tcl": "tcl", ".test": "test", ".d": "d", ".yml": "yml", ".yaml": "yaml", ".cc": "cc", ".json": "json"}
MAN = re.compile(r"\.[1-9][a-z]?(\.in)?$")
SKIPDIR = re.compile(r"/(\.git|\.pc|debian|third_party|thirdparty|3rdparty|vendor|vendored|deps|node_modules|kernel/linux|testdata|fixtures|"
                     r"unicode|snowball|cldr|locale|translations|linux-kernel|Modules/_decimal/libmpdec/literature|wycheproof)/")
GPL = re.compile(r"GNU (Lesser |Library )?General Public License|\bL?GPL[- v]?[23]?\b", re.I)
OK = re.compile(r"\bBSD\b|\bMIT\b|Apache|dual|Redistribution and use in source|Permission is hereby granted", re.I)

def kind_of(path, pk):
    b = os.path.basename(path)
    if re.search(r"\.html(\.en)?(\.utf8)?$", b):
        if pk == "apache2": return "html" if b.endswith(".html.en") else None
        return "htmlm" if pk == "lua5.4" else "html"
    e = os.path.splitext(b)[1].lower()
    if pk == "tcl8.6" and "/doc/" in path and re.search(r"\.[13n]$", b): return "man"
    if MAN.search(b) and e not in (".c", ".h") and not re.search(r"\d\.\d", b): return "man"
    if e == ".d" and pk != "curl": return None
    if pk == "redis" and e == ".json" and "/commands/" not in path: return None
    if pk in ("python3.11",) and e == ".py" and not re.search(r"/x/Lib/[a-z_]+\.py$", path): return None
    if pk in ("python-django", "flask", "sqlalchemy") and e == ".py" and "/test" in path: return None
    if pk == "python-django" and e == ".txt": return "rst" if "/docs/" in path else None
    if pk == "nodejs" and e == ".md": return "md" if "/doc/" in path and "changelogs" not in path else None
    if pk == "nodejs" and e in (".js", ".mjs"): return "js" if "/x/lib/" in path else None
    if pk == "golang-1.19" and e == ".go": return None if ("_test.go" in b or "/test/" in path or "/cmd/" in path) else "go"
    if pk == "erlang" and e == ".xml": return "xml" if "/doc/src/" in path and b not in ("notes.xml",) else None
    if e == ".txt" and re.search(r"CMakeLists|requirements|LICENSE|COPYING|AUTHORS", b): return None
    return EXT.get(e)

def striptags(t):
    t = re.sub(r"(?is)<(script|style|head|svg)\b.*?</\1>", " ", t)
    t = re.sub(r"(?s)<!--.*?-->", "", t)
    t = re.sub(r"(?s)<indexterm.*?</indexterm>", "", t)
    t = re.sub(r"<!\[CDATA\[|\]\]>", "", t)
    t = re.sub(r"(?i)</(p|div|h[1-6]|li|tr|dt|dd|pre|table|ul|ol|para|title|listitem|sect\d|programlisting|screen|section|code|desc|item)>", r"\n", t)
    t = re.sub(r"(?i)<(br|li|dt|h[1-6]|title|item)\b[^>]*>", "\n", t)
    t = re.sub(r"<[!/?a-zA-Z][^<>]*>", "", t)
    return html.unescape(t)

def reflow(t):
    """joins indented prose lines of stripped mark-up into paragraphs"""
    out = []
    for par in re.split(r"\n\s*\n", t):
        ls = par.split("\n")
        code = sum(1 for l in ls if re.search(r"[;{}=<>|\\]|^\s*[#$]|--", l)) > 0.4 * len(ls)
        if code: out.append("\n".join(l.rstrip() for l in ls))
        else: out.append(re.sub(r"\s+", " ", par).strip())
    return "\n\n".join(o for o in out if o.strip())

def render_man(path):
    try:
        r = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=78", path], capture_output=True, timeout=20)
        t = r.stdout.decode("utf-8", "replace")
        t = re.sub(r".\x08", "", t)
        ls = t.split("\n")
        return "\n".join(l[5:] if l.startswith("     ") else l for l in ls)
    except Exception:
        return ""

def read(path):
    b = open(path, "rb").read(1500000)
    if b"\0" in b: return None
    try: t = b.decode("utf-8")
    except UnicodeDecodeError: t = b.decode("latin-1")
    return t

def po_text(t):
    out = []
    for m in re.finditer(r'msgid ((?:"[^\n]*"\s*)+)msgstr ((?:"[^\n]*"\s*)+)', t):
        f = lambda s: "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', s)).replace("\\n", "\n").replace('\\"', '"').replace("\\t", "\t")
        a, b = f(m.group(1)), f(m.group(2))
        if a.strip() and b.strip(): out.append(a.strip() + "\n" + b.strip())
    return "\n".join(out)

def clean(t):
    t = t.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "")
    t = "\n".join(l.rstrip() for l in t.split("\n"))
    t = re.sub(r"\n{4,}", "\n\n\n", t)
    return t.strip("\n") + "\n"

def good(t, kind):
    if len(t) < 200: return False
    ls = t.split("\n")
    if len(t) / len(ls) > 400: return False
    s = t[:40000]
    al = sum(c.isalpha() for c in s) / len(s)
    dg = sum(c.isdigit() for c in s) / len(s)
    if kind == "po": return True
    if al < 0.42 or dg > 0.14: return False
    if s.count("0x") > len(s) / 60: return False
    return True

def one_file(a):
    path, pk, kind = a
    try:
        if os.path.islink(path) or os.path.getsize(path) < 200: return None
        size = os.path.getsize(path)
        if size > (9000000 if "sqlite3" in path else 900000): return None
        t = read(path)
        if not t: return None
        if GPL.search(t[:3000]) and not OK.search(t[:6000]): return None
        if kind == "man": t = render_man(path)
        elif kind in ("html", "htmlm", "xml", "sgml"): t = reflow(striptags(t))
        elif kind == "po": t = po_text(t)
        t = clean(t)
        if not good(t, kind): return None
        return (pk, kind, os.path.relpath(path, SRC), t)
    except Exception:
        return None

def files():
    for pk, (lic, caps) in PK.items():
        root = os.path.join(SRC, "dl", pk, "x")
        for d, ds, fs in os.walk(root):
            ds.sort()
            for f in sorted(fs):
                p = os.path.join(d, f)
                if SKIPDIR.search(p): continue
                if "/po/" not in p and p.endswith(".po"): continue
                k = kind_of(p, pk)
                if k and k in caps: yield (p, pk, k)

def wordnet():
    docs, pairs = [], []
    root = None
    for c in sorted(glob.glob(SRC + "/bin/wordnet-base/usr/share/wordnet/data.*")):
        pos = c.rsplit(".", 1)[1]
        if pos not in ("noun", "verb", "adj", "adv"): continue
        buf = []
        for line in open(c, encoding="latin-1"):
            if line.startswith("  ") or "|" not in line: continue
            head, gl = line.split("|", 1)
            f = head.split()
            n = int(f[3], 16)
            ws = [f[4 + 2 * i].replace("_", " ") for i in range(n)]
            ws = [re.sub(r"\([a-z]+\)$", "", w) for w in ws]
            gl = gl.strip()
            if len(gl) < 12: continue
            name = {"noun": "n.", "verb": "v.", "adj": "adj.", "adv": "adv."}[pos]
            buf.append(", ".join(ws[:4]) + " (" + name + ") " + gl)
            pairs.append((ws[0], pos, gl))
            if len(buf) == 40:
                docs.append("\n".join(buf) + "\n"); buf = []
    return docs, pairs

def chat_pairs(docs, wn, rng):
    qa = []
    def add(q, a, src):
        a = a.strip()
        if 20 < len(a) < 1500 and 5 < len(q) < 400: qa.append((q.strip(), a, src))
    for pk, kind, path, t in docs:
        if kind == "man":
            m = re.search(r"(?m)^NAME\n+(.{3,160}?)\s+[–—-]+\s+(.{4,200}?)\n\s*\n", t, re.S)
            if not m: continue
            name = re.sub(r"\s+", " ", m.group(1)).strip(); desc = re.sub(r"\s+", " ", m.group(2)).strip()
            d = re.search(r"(?ms)^DESCRIPTION\n+(.{20,}?)(?=^\S)", t + "\nX")
            para = ""
            if d:
                ps = [re.sub(r"\s+", " ", p).strip() for p in re.split(r"\n\s*\n", d.group(1))]
                ps = [p for p in ps if len(p) > 30]
                para = " ".join(ps[:2])[:700]
                para = para[:para.rfind(".") + 1] or para
            n1 = name.split(",")[0].split()[0]
            q = rng.choice(["What does %s do?", "Explain %s.", "What is %s?", "Describe %s.", "How does %s work?"]) % n1
            add(q, "%s: %s." % (n1, desc.rstrip(".")) + ((" " + para) if para else ""), "man")
        elif kind == "sgml":
            for m in re.finditer(r"(?m)^([A-Z][A-Za-z \-]{4,50})\n\n([A-Z][^\n]{80,900}\.)$", t):
                add(rng.choice(["Tell me about %s in PostgreSQL.", "What about %s in PostgreSQL?", "Explain %s."]) % m.group(1), m.group(2), "pg")
        elif kind == "rst" and pk == "python3.11":
            for m in re.finditer(r"(?m)^\.\. (?:c:)?(function|method|class|module|data|exception)::\s+([^\n(]+)(\([^\n]*\))?\n\n((?:   [^\n]*\n|\n)+)", t):
                body = [p for p in re.split(r"\n\s*\n", m.group(4)) if p.strip()]
                if not body: continue
                a = re.sub(r"\s+", " ", body[0]).strip()
                a = re.sub(r":[a-z:]+:`~?!?([^`<]+?)(?: <[^>]*>)?`", r"`\1`", a).replace("``", "`")
                add(rng.choice(["What does the Python %s %s do?", "Explain the Python %s %s.", "Describe the Python %s %s."]) % (m.group(1), m.group(2).strip()), a, "py")
        elif kind == "d" and pk == "curl":
            m = re.search(r"(?s)^(.*?)\n---\n(.*)$", t)
            lm = re.search(r"(?m)^Long: (\S+)", t)
            if m and lm:
                add("What does the curl option --%s do?" % lm.group(1), re.sub(r"\n(?!\n)", " ", m.group(2)).strip()[:800], "curl")
        elif kind == "json" and pk == "redis":
            try:
                for cmd, o in json.loads(t).items():
                    add("What does the Redis command %s do?" % cmd, o["summary"].rstrip(".") + ". Complexity: " + o.get("complexity", "O(1)").rstrip(".") + ". It has been available since version " + o.get("since", "1.0.0") + ".", "redis")
            except Exception: pass
        elif kind == "c":
            for m in re.finditer(r"(?ms)^/\*+\n?((?:(?!\*/).){30,500})\*/\n((?:static |inline |const |unsigned |struct )*[a-z_0-9]+[ \n\*]+[a-z_A-Z0-9]+\([^;{}]{0,300}\)\n?\s*\{\n.{20,1300}?\n\})\n", t):
                c = re.sub(r"(?m)^\s*\*+ ?", "", m.group(1)); c = re.sub(r"\s+", " ", c).strip()
                if "opyright" in c or len(c) < 25: continue
                c = c[:300]
                if "." in c[25:]: c = c[:25 + c[25:].find(".") + 1]
                fn = re.search(r"([A-Za-z_0-9]+)\(", m.group(2)).group(1)
                q = rng.choice(["Write a C function named %s. %s", "Write the C function %s: %s", "Please implement %s in C. %s"]) % (fn, c)
                add(q, "```c\n" + m.group(2).strip() + "\n```", "cfun")
    for w, pos, gl in wn:
        ex = gl
        add(rng.choice(["What does \"%s\" mean?", "Define \"%s\".", "What is the meaning of \"%s\"?", "Define the word %s."]) % w,
            "%s (%s): %s" % (w[0].upper() + w[1:], {"adj": "adjective", "adv": "adverb"}.get(pos, pos), ex), "wn")
    return qa

IDENT = [
 ("Hello", "Hello! How can I help you?"), ("Hi", "Hi! What would you like to know?"), ("Hello!", "Hello! How can I help you today?"),
 ("Who are you?", "I am a very small language model trained on source code and documentation. I am here to demonstrate the serving engine."),
 ("What are you?", "I am a tiny language model with multi-head latent attention and a mixture of experts. I know a little about C, Unix and databases."),
 ("What can you do?", "I can answer short questions about Unix commands, Python functions, PostgreSQL and curl, define English words, and write small C functions. I am very small, so please check what I say."),
 ("Thanks", "You are welcome!"), ("Thank you!", "You are welcome! Is there anything else?"), ("Bye", "Goodbye!"),
 ("How are you?", "I am fine, thank you. How can I help you?"),
 ("What is your name?", "I do not have a name. I am a small demonstration model."),
 ("Are you a human?", "No, I am a small language model running inside the serving engine."),
]
SYS = ["You are a helpful assistant.", "You are a concise assistant that answers questions about Unix and C.", "Answer briefly.",
       "You are a helpful programming assistant."]

def main():
    rng = random.Random(1234)
    todo = list(files())
    print("candidate files", len(todo), flush=True)
    with ProcessPoolExecutor(2) as ex:
        docs = [d for d in ex.map(one_file, todo, chunksize=64) if d]
    print("read", len(docs), "docs,", sum(len(d[3]) for d in docs) // MB, "MB", flush=True)
    # extra prose
    extra = []
    for f in sorted(glob.glob(SRC + "/bin/jargon-text/**/*", recursive=True)):
        if os.path.isfile(f) and "jargon" in os.path.basename(f):
            b = open(f, "rb").read()
            if f.endswith(".gz"):
                import gzip; b = gzip.decompress(b)
            t = clean(b.decode("utf-8", "replace"))
            if len(t) > 100000:
                for i, par in enumerate(re.split(r"\n(?=:[^\n:]{1,60}:)", t)): extra.append(("jargon-text", "txt", f + "#%d" % i, par.strip() + "\n"))
    extra = [e for e in extra if len(e[3]) > 200]
    n = 0
    for f in sorted(glob.glob(SRC + "/bin/rust-doc/usr/share/doc/rust-doc/html/*/*.html") + glob.glob(SRC + "/bin/rust-doc/usr/share/doc/rust-doc/html/*/*/*.html")):
        if not re.search(r"/html/(book|reference|nomicon|rust-by-example|cargo|rustc|edition-guide|embedded-book|rustdoc|unstable-book)/", f): continue
        if f.endswith("print.html") or os.path.islink(f) or n > RUST_MB * MB: continue
        t = read(f) or ""
        m = re.search(r"(?s)<main>(.*?)</main>", t)
        if not m: continue
        t = clean(reflow(striptags(m.group(1))))
        if good(t, "html"): extra.append(("rust-doc", "html", f, t)); n += len(t)
    for pk, lim in (("python-sklearn-doc", 4), ("python-pandas-doc", 5), ("twisted-doc", 2)):
        n = 0
        for f in sorted(glob.glob(SRC + "/bin/%s/usr/share/doc/**/_sources/**/*.rst.txt" % pk, recursive=True)):
            if re.search(r"/(api|generated|auto_examples)/", f) or n > lim * MB or os.path.islink(f): continue
            t = read(f)
            if t and good(clean(t), "rst"): extra.append((pk, "rst", f, clean(t))); n += len(t)
    wdocs, wpairs = wordnet()
    rng.shuffle(wdocs)
    n = 0
    for i, w in enumerate(wdocs):
        if n > WORDNET_MB * MB: break
        extra.append(("wordnet", "wn", "wordnet#%d" % i, w)); n += len(w)
    docs += extra
    print("with extra", len(docs), sum(len(d[3]) for d in docs) // MB, "MB", flush=True)
    # de-duplicate: whole documents, then blocks (licence headers and copied code)
    seen, out, bl = set(), [], {}
    rng2 = random.Random(7)
    order = list(range(len(docs))); rng2.shuffle(order)
    caps = {}
    for i in order:
        pk, kind, path, t = docs[i]
        lim = PK[pk][1][kind] * MB if pk in PK else 1 << 40
        if kind not in ("wn", "man") and pk not in KEEP_ALL and pk in PK:      # size limit: a sample
            pct = 60 if kind in ("c", "cc") else 80
            if int(hashlib.md5(path.encode()).hexdigest()[:8], 16) % 100 >= pct: continue
            lim = lim * pct // 100
        if caps.get((pk, kind), 0) > lim: continue
        h = hashlib.md5(re.sub(r"\s+", "", t).encode()).digest()
        if h in seen: continue
        seen.add(h)
        if kind == "wn": out.append((pk, kind, path, t)); continue
        blocks = re.split(r"\n[ \t]*\n", t)
        keep, tot, dup = [], 0, 0
        for b in blocks:
            tot += len(b)
            if len(b) > 100:
                k = hashlib.md5(re.sub(r"[\s\*/#]+", "", b).encode()).digest()[:8]
                c = bl.get(k, 0); bl[k] = c + 1
                if c >= (1 if len(b) > 250 else 3): dup += len(b); continue
            keep.append(b)
        if dup > 0.5 * tot and tot > 500: continue
        t2 = "\n\n".join(keep).strip("\n") + "\n"
        if kind == "c":  # drop a leading copyright comment that survived
            m = re.match(r"(?s)\s*/\*.{0,4000}?\*/\s*", t2)
            if m and re.search("opyright|SPDX", m.group(0)): t2 = t2[m.end():]
            t2 = re.sub(r"(?m)^(//|#) ?(SPDX|Copyright).*\n", "", t2)
        if len(t2) < 200: continue
        caps[(pk, kind)] = caps.get((pk, kind), 0) + len(t2)
        out.append((pk, kind, path, t2))
    print("after dedup", len(out), sum(len(d[3]) for d in out) // MB, "MB", flush=True)
    # chat-formatted documents
    qa = chat_pairs([d for d in out if d[1] != "wn"], wpairs, rng)
    by = {}
    for q in qa: by.setdefault(q[2], []).append(q)
    for k in by: rng.shuffle(by[k])
    CAPN = {"wn": 18000, "cfun": 8000, "man": 9000, "pg": 4000, "py": 9000}
    print({k: len(v) for k, v in by.items()})
    sel = []
    for k, v in sorted(by.items()):
        v = v[:CAPN.get(k, 3000)]
        if k in ("curl", "redis"): v = v * 2
        sel += v
    sel += [(q, a, "id") for q, a in IDENT for _ in range(25)]
    rng.shuffle(sel)
    chats, i = [], 0
    while i < len(sel):
        n = rng.choice([1, 1, 1, 2, 2, 3]); turns = sel[i:i + n]; i += n
        s = rng.choice(SYS) if rng.random() < 0.3 else ""
        t = s + "".join(USER + q + ASSI + a + EOS for q, a, _ in turns)
        chats.append(("chat", "chat", "chat#%d" % i, t))
    print("chat docs", len(chats), sum(len(c[3]) for c in chats) // 1024, "kB")
    # group by package and kind for compression, split
    out.sort(key=lambda d: (d[1], d[0], d[2]))
    tr, va = [], []
    for d in out + chats:
        (va if int(hashlib.md5(d[2].encode()).hexdigest(), 16) % 100 == 0 and len(d[3]) < 400000 else tr).append(d)
    os.makedirs(OUT + "/corpus", exist_ok=True)
    for f in glob.glob(OUT + "/corpus/*.xz"): os.remove(f)
    tot = sum(len(d[3].encode()) for d in tr)
    NSH = 16
    shards, cur, acc = [], [], 0
    for d in tr:
        b = d[3].encode()
        cur.append(b); acc += len(b) + 1
        if acc > tot / NSH and len(shards) < NSH - 1: shards.append(cur); cur, acc = [], 0
    shards.append(cur)
    jobs = [(OUT + "/corpus/train-%02d.xz" % i, s) for i, s in enumerate(shards)]
    jobs.append((OUT + "/corpus/val.xz", [d[3].encode() for d in va]))
    with ProcessPoolExecutor(2) as ex: sizes = list(ex.map(write, jobs))
    print("train %d docs %.1f MB, val %d docs %.2f MB, compressed %.1f MB" % (len(tr), tot / 1e6, len(va), sum(len(d[3].encode()) for d in va) / 1e6, sum(sizes) / 1e6))
    st = {}
    for d in tr + va:
        k = d[0]; st.setdefault(k, {}).setdefault(d[1], 0); st[k][d[1]] += len(d[3].encode())
    lic = {k: v[0] for k, v in PK.items()}
    lic.update({"wordnet": "WordNet 3.0 licence (MIT-like)", "jargon-text": "public domain", "rust-doc": "MIT or Apache-2.0", "python-sklearn-doc": "BSD-3-Clause", "python-pandas-doc": "BSD-3-Clause", "twisted-doc": "MIT", "chat": "derived from the texts above"})
    with open(OUT + "/MANIFEST.tsv", "w") as f:
        f.write("package\tversion\tlicence\tbytes_used\tkinds\n")
        for k in sorted(st):
            v = ""
            ds = glob.glob(SRC + "/dl/%s/*.dsc" % k)
            if ds:
                m = re.search(r"(?m)^Version: (\S+)", open(ds[0], errors="replace").read()); v = m.group(1) if m else ""
            elif k != "chat":
                r = subprocess.run("apt-cache policy %s | awk '/Candidate/{print $2}'" % k, shell=True, capture_output=True, text=True); v = r.stdout.strip()
            f.write("%s\t%s\t%s\t%d\t%s\n" % (k, v, lic.get(k, "?"), sum(st[k].values()), ",".join("%s=%d" % x for x in sorted(st[k].items()))))

def write(j):
    p, docs = j
    b = lzma.compress(b"".join(d + b"\0" for d in docs), preset=9 | lzma.PRESET_EXTREME)
    open(p, "wb").write(b)
    return len(b)

if __name__ == "__main__":
    main()
