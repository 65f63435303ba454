#!/usr/bin/env python3
"""Reference outputs of the saved checkpoint, computed by Hugging Face transformers.

  python3 reference.py --model $OUT/model --out $OUT/ref
Writes reference.json, tokenizer_vectors.json, chat_vectors.json, heldout.txt, logits.npz.
Exit status 0 only if HF loads the checkpoint and agrees with the training model.
"""
import argparse, json, math, os, random, sys, time
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
import numpy as np
import torch
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common as C

T0 = time.time()
def say(*x): print("[ref %5.1f]" % (time.time() - T0), *x, flush=True)

def manual_fill(m, sd):
    own = dict(m.named_parameters()); own.update(dict(m.named_buffers()))
    miss = []
    with torch.no_grad():
        for n, t in own.items():
            if n in sd: t.copy_(sd[n])
            elif n.endswith("mlp.experts.gate_up_proj") or n.endswith("mlp.experts.down_proj"):
                base, kind = n.rsplit(".", 1)
                E = t.shape[0]
                if kind == "down_proj": w = torch.stack([sd["%s.%d.down_proj.weight" % (base, e)] for e in range(E)])
                else: w = torch.stack([torch.cat([sd["%s.%d.gate_proj.weight" % (base, e)], sd["%s.%d.up_proj.weight" % (base, e)]], 0) for e in range(E)])
                if w.shape != t.shape: w = w.transpose(1, 2)
                t.copy_(w)
            elif "inv_freq" not in n: miss.append(n)
    return miss

def load_hf(d, dtype, dev):
    from transformers import DeepseekV3ForCausalLM
    m = None
    for kw in ({"dtype": dtype, "attn_implementation": "eager", "experts_implementation": "eager"},
               {"dtype": dtype, "attn_implementation": "eager"}, {"torch_dtype": dtype, "attn_implementation": "eager"}):
        try:
            m = DeepseekV3ForCausalLM.from_pretrained(d, **kw)
            break
        except Exception as e:
            say("from_pretrained(%s) failed: %s: %s" % (", ".join(kw), type(e).__name__, str(e)[:300]))
            m = None
    if m is None:                                        # build from the configuration, fill by hand
        from transformers import DeepseekV3Config
        from safetensors.torch import load_file
        c = {k: v for k, v in json.load(open(os.path.join(d, "config.json"))).items() if k not in ("architectures", "model_type", "torch_dtype", "rope_theta", "rope_scaling")}
        try: cfg = DeepseekV3Config(**c, rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
        except Exception: cfg = DeepseekV3Config(**c, rope_theta=10000.0)
        cfg._attn_implementation = "eager"
        m = DeepseekV3ForCausalLM(cfg).to(dtype)
        say("filled by hand; not found:", manual_fill(m, load_file(os.path.join(d, "model.safetensors"))))
    m = m.to(dev).eval()
    say("HF model:", type(m).__name__, "dtype", next(m.parameters()).dtype, "attention", getattr(m.config, "_attn_implementation", "?"),
        "experts", getattr(m.config, "_experts_implementation", "?"), "parameters", sum(p.numel() for p in m.parameters()))
    return m

@torch.no_grad()
def hf_logits(m, ids, dev, **kw):
    o = m(input_ids=torch.tensor([ids], device=dev), use_cache=False, **kw)
    return o

@torch.no_grad()
def greedy(m, ids, n, dev):
    past, cur, out, lps, mar = None, torch.tensor([ids], device=dev), [], [], []
    for _ in range(n):
        o = m(input_ids=cur, past_key_values=past, use_cache=True)
        past = o.past_key_values
        lp = torch.log_softmax(o.logits[0, -1].float(), -1)
        v, i = lp.topk(2)
        t = int(i[0])
        out.append(t); lps.append(round(float(v[0]), 5)); mar.append(round(float(v[0] - v[1]), 5))
        if t == C.EOS_ID: break
        cur = torch.tensor([[t]], device=dev)
    return out, lps, mar

PROMPTS = [
    ("c_function", "static int\ncompare_strings(const void *a, const void *b)\n{\n"),
    ("c_main", "#include <stdio.h>\n#include <stdlib.h>\n\nint main(int argc, char *argv[])\n{\n"),
    ("c_comment", "/*\n * Returns the number of bytes written, or -1 on error.\n */\n"),
    ("c_tabs", "\tfor (i = 0; i < n; i++) {\n\t\tif (p[i] == NULL)\n\t\t\t"),
    ("prose", "The server listens on the port given by the"),
    ("man", "NAME\n  strlcpy - size-bounded string copying\n\nSYNOPSIS\n"),
    ("sql", "CREATE TABLE users (\n    id integer PRIMARY KEY,\n"),
    ("python_doc", ".. function:: sorted(iterable)\n\n   Return a new sorted list from the items in"),
    ("unicode_de_ru", "ungültige Größe für Parameter\nневерный размер параметра\n"),
    ("unicode_zh_ja", "could not open file \"%s\": %m\n无法打开文件 \"%s\": %m\nファイル\"%s\""),
    ("chat", [{"role": "user", "content": "What does the Python function os.path.join do?"}]),
    ("chat_turns", [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": "Hello"},
                    {"role": "assistant", "content": "Hello! How can I help you?"}, {"role": "user", "content": "Define \"river\"."}]),
]

CONVS = [
    ([{"role": "user", "content": "Hello"}], True),
    ([{"role": "user", "content": "What does ls do?"}], False),
    ([{"role": "system", "content": "Answer briefly."}, {"role": "user", "content": "Define \"tree\"."}], True),
    ([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi! What would you like to know?"}, {"role": "user", "content": "Explain printf."}], True),
    ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], False),
    ([{"role": "system", "content": "S1"}, {"role": "system", "content": "S2"}, {"role": "user", "content": "U"}], True),
    ([{"role": "user", "content": "  spaces  \n\nand\tnewlines\n"}], True),
    ([{"role": "user", "content": "Schreibe \"Größe\" — 你好, мир! 🙂"}], True),
    ([{"role": "user", "content": "Write a C function named add. It returns the sum of a and b."}, {"role": "assistant", "content": "```c\nint add(int a, int b)\n{\n\treturn a + b;\n}\n```"},
      {"role": "user", "content": "Thanks"}, {"role": "assistant", "content": "You are welcome!"}, {"role": "user", "content": "Now 3 arguments"}], True),
    ([{"role": "user", "content": "quotes ' \" \\ {{ braces }} {% raw %} <｜User｜> inside"}], True),
]

def test_strings(valdocs):
    s = ["", " ", "  ", "   ", "\n", "\n\n", "\n\n\n", "\t", "\t\t", " \n", "\n ", "\n\t", "\r\n", "\r\n\r\n", "a", "A", "ab", " a", "a ", " a ", "a\n", "a\nb", "a\n\nb", "a  b", "a   b", "a\tb",
         "hello world", "Hello, World!", "HELLO WORLD", "The quick brown fox jumps over the lazy dog.", "don't can't won't it's I'm you're we've they'll he'd", "don’t “quoted” text — dash … ellipsis",
         "0", "1", "12", "123", "1234", "12345", "123456", "1234567890", "3.14159", "1e-10", "0x1F", "0xdeadbeef", "1,000,000", "v1.2.3-rc4", "2024-01-31T23:59:59Z", "192.168.0.1:8080", "100%", "$5.00", "a1b2c3", "x86_64", "int32_t", "２３４", "٣٤٥", "½ ² Ⅷ",
         "int main(void) { return 0; }", "#include <stdio.h>", "#define MAX(a,b) ((a)>(b)?(a):(b))", "for (int i = 0; i < n; ++i) {\n    sum += a[i];\n}\n", "if (!p) return -1;", "p->next = q->prev;", "a[i++] = *--p;", "x = y == z ? w : v;", "/* comment */", "// comment", "char *s = \"a\\n\\\"b\\\"\";",
         "std::vector<std::string> v;", "def f(x):\n    return x ** 2\n", "    indented", "        deeper", "\tTab\tTab\t", "trailing   ", "trailing\n\n   ", "a.b.c", "foo_bar_baz", "fooBarBaz", "FOO_BAR", "__attribute__((unused))", "-O2 -g -Wall", "--long-option=value", "/usr/local/bin", "C:\\Windows\\System32", "https://example.com/a?b=c&d=e#f", "user@example.org",
         "!!!", "...", "---", "===", "***", "((((", "))))", "<<<>>>", "{}", "[]", "&&||", "~`!@#$%^&*()_+-={}|[]\\:\";'<>?,./", ".a", "!a", "?Abc", "_a", "'s", "\"quoted\"", "-abc", "#abc", "@abc",
         "ungültige Größe", "naïve café résumé", "e\u0301 combining", "a\u0300\u0301\u0302", "Привет, мир!", "Ελληνικά", "עברית שלום", "العربية", "हिन्दी में", "ไทย", "한국어 문장", "日本語のテキスト", "中文字符测试", "漢字kanji混在text", "ひらがなカタカナ", "全角ＡＢＣ１２３", "中文，标点。符号！", "ー々〆", "😀", "😀😃😄", "👨\u200d👩\u200d👧\u200d👦", "🇩🇪🇫🇷", "👍🏽", "text 🙂 text", "™®©", "€£¥", "→←↑↓", "∑∫√∞≠≤", "─│┌┐",
         "\u00a0", "a\u00a0b", "\u2003\u2003x", "\u200b", "a\u200bb", "\u200d", "\ufeff", "\ufeffabc", "\ufffd", "a\ufffd\ufffdb", "\u2028", "\u0085", "\x00", "a\x00b", "\x01\x02\x03", "\x1b[31mred\x1b[0m", "\x7f", "\x0b\x0c", "\u0300", "\U0010ffff", "\ue000", "\U0001f9ff\ufe0f", "ÿþ", "Ã©",
         "<｜begin▁of▁sentence｜>", "a<｜end▁of▁sentence｜>b", "<｜User｜>Hi<｜Assistant｜>", "<think>x</think>", "<|EOT|>", "<｜User>", "< ｜User｜>", "｜User｜", "▁", "Ġ", "ĠĠ", "Ċ",
         "supercalifragilisticexpialidocious", "antidisestablishmentarianism", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "                                        ", "\n" * 20, "ab" * 40, "=" * 80, "1" * 40, "AbCdEfGhIj", "camelCaseWithNumbers123AndMore456"]
    r = random.Random(5)
    docs = [d for d in valdocs if len(d) > 400]
    while len(s) < 176:
        d = r.choice(docs); i = r.randrange(len(d) - 200)
        s.append(d[i:i + r.choice([5, 17, 40, 90, 180])])
    blocks = [(0x20, 0x7e), (0x20, 0x7e), (0xa0, 0x17f), (0x370, 0x3ff), (0x400, 0x4ff), (0x5d0, 0x5ea), (0x600, 0x6ff), (0x900, 0x97f), (0x2000, 0x206f), (0x2190, 0x21ff), (0x3040, 0x30ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0x1f300, 0x1f64f), (9, 13)]
    while len(s) < 210:
        t = ""
        for _ in range(r.randrange(2, 7)):
            lo, hi = r.choice(blocks)
            t += "".join(chr(r.randint(lo, hi)) for _ in range(r.randrange(1, 7)))
        s.append(t)
    return s

def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", required=True); ap.add_argument("--out", required=True)
    ap.add_argument("--smoke", action="store_true")
    ap.add_argument("--cpu", action="store_true")
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    J = lambda n, o: json.dump(o, open(os.path.join(a.out, n), "w", encoding="utf-8"), ensure_ascii=False, indent=None, separators=(",", ":"))
    dev = "cuda" if torch.cuda.is_available() and not a.cpu else "cpu"
    import transformers, tokenizers
    say("torch", torch.__version__, "transformers", transformers.__version__, "tokenizers", tokenizers.__version__, dev)
    from tokenizers import Tokenizer
    tok = Tokenizer.from_file(os.path.join(a.model, "tokenizer.json"))
    assert tok.get_vocab_size() == C.VOCAB, tok.get_vocab_size()
    for i, c in enumerate(C.HEAD_SPECIAL): assert tok.token_to_id(c) == i
    assert tok.token_to_id(C.USER) == C.USER_ID and tok.token_to_id(C.ASSI) == C.ASSI_ID and tok.token_to_id(C.MASK) == C.MASK_ID
    enc = lambda s: tok.encode(s, add_special_tokens=False).ids
    notes = []
    valdocs = C.read_shard(os.path.join(C.CORPUS, "val.xz"))

    # tokenizer vectors
    hft = None
    try:
        from transformers import PreTrainedTokenizerFast, AutoTokenizer
        try: hft = AutoTokenizer.from_pretrained(a.model)
        except Exception as e:
            notes.append("AutoTokenizer failed: %r" % (e,))
            hft = PreTrainedTokenizerFast(tokenizer_file=os.path.join(a.model, "tokenizer.json"), bos_token=C.BOS, eos_token=C.EOS, pad_token=C.PAD, chat_template=C.CHAT_TEMPLATE)
    except Exception as e:
        notes.append("no HF tokenizer object: %r" % (e,))
    vec, bad, badrt = [], 0, 0
    for s in test_strings(valdocs):
        ids = enc(s)
        w = tok.encode(s).ids
        if w != [C.BOS_ID] + ids: notes.append("BOS is not added to %r" % s[:20])
        if hft is not None:
            try:
                if list(hft.encode(s, add_special_tokens=False)) != ids or list(hft.encode(s)) != [C.BOS_ID] + ids: bad += 1
            except Exception as e:
                bad += 1
                if bad < 3: notes.append("HF encode: %r" % (e,))
        d = tok.decode(ids, skip_special_tokens=False)
        if d != s: badrt += 1
        vec.append({"text": s, "ids": ids})
    r = random.Random(9)
    u2b = {u: b for b, u in C.bytes_to_unicode().items()}
    dec = []
    for k in range(24):
        ids = [r.randrange(3, C.BASE_VOCAB if k % 2 else 259) for _ in range(r.randrange(1, 12))]
        raw = b"".join(bytes(u2b[ch] for ch in tok.id_to_token(i)) for i in ids)
        dec.append({"ids": ids, "bytes_hex": raw.hex(), "text": tok.decode(ids, skip_special_tokens=False)})
    J("tokenizer_vectors.json", {"add_special_tokens": False, "encode": vec, "decode": dec})
    say("tokenizer vectors: %d, HF tokenizer differs on %d, decode is not the text on %d" % (len(vec), bad, badrt))
    if bad: notes.append("HF tokenizer object differs from tokenizer.json on %d strings" % bad)

    # chat template
    chat = []
    def render(msgs, gen):
        if hft is not None and getattr(hft, "chat_template", None):
            return hft.apply_chat_template(msgs, tokenize=False, add_generation_prompt=gen)
        import jinja2
        return jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(C.CHAT_TEMPLATE).render(messages=msgs, add_generation_prompt=gen, bos_token=C.BOS, eos_token=C.EOS)
    for msgs, gen in CONVS:
        t = render(msgs, gen)
        chat.append({"messages": msgs, "add_generation_prompt": gen, "text": t, "ids": enc(t)})
    J("chat_vectors.json", chat)
    say("chat vectors:", len(chat), repr(chat[3]["text"])[:160])

    # models
    tm = C.load_model(a.model, dev)
    m = load_hf(a.model, torch.float32, dev)
    text = next((d for d in valdocs if d.startswith("#include") and len(d) > 2000), valdocs[0])
    pid = ([C.BOS_ID] + enc(text))[:64]
    ids256 = ([C.BOS_ID] + enc(text[:3000]))[:256]
    def compare(mm):
        worst = 0.0
        for ids in (ids256, [C.BOS_ID] + enc(render(*CONVS[3])[len(C.BOS):])):
            x = hf_logits(mm, ids, dev).logits[0].float()
            with torch.no_grad(): y = tm.logits(torch.tensor([ids], device=dev))[0]
            worst = max(worst, float((x - y).abs().max() / y.abs().max()))
        return worst
    w = compare(m)
    say("HF float32 against the training model: largest logit difference %.2e of the largest logit" % w)
    if not w < 1e-3:
        notes.append("from_pretrained gave other logits (%.3g); weights were filled in by hand" % w)
        from safetensors.torch import load_file
        sd = {k: v.to(dev) for k, v in load_file(os.path.join(a.model, "model.safetensors")).items()}
        miss = manual_fill(m, sd)
        w = compare(m)
        say("after filling by hand: %.2e, not found %s" % (w, miss))
    ok = w < 1e-3

    # full logits, hidden states, routing
    o = hf_logits(m, pid, dev, output_hidden_states=True)
    full = o.logits[0].float().cpu().numpy()
    hid, rec = [], []
    with torch.no_grad(): tl = tm.logits(torch.tensor([pid], device=dev), hidden=hid, rec=rec)
    try:
        hs = o.hidden_states
        dh = [float((hs[i][0].float() - hid[i][0]).abs().max()) for i in range(len(hid) - 1)]
        say("hidden states (embedding and layers but the last), largest differences:", ["%.1e" % x for x in dh])
    except Exception as e: notes.append("hidden states: %r" % (e,))
    routes_w = np.stack([x[0].float().cpu().numpy() for x in rec])
    np.savez_compressed(os.path.join(a.out, "logits.npz"), ids=np.array(pid, np.int32), logits=full.astype(np.float32),
                        hidden=np.stack([x[0].float().cpu().numpy() for x in hid]).astype(np.float32), router_weights=routes_w.astype(np.float32))
    R = {"torch": torch.__version__, "transformers": transformers.__version__, "tokenizers": tokenizers.__version__, "device": torch.cuda.get_device_name() if dev == "cuda" else "cpu",
         "hf_vs_training_model_rel": w, "logits_npz": "ids [64]; logits [64,V] (HF float32, eager); hidden [L+1,64,H] (embedding, then each decoder layer's output, before the final norm); router_weights [MoE layers,64,E] (0 = not selected)"}

    # top-5 log-probabilities
    pick = [next((d for d in valdocs if d.startswith(k) and len(d) > 1500), None) for k in ("static", "The ", C.USER)]
    pick = [p for p in pick if p] + [d for d in valdocs if len(d) > 2000][:3]
    R["top5"] = []
    for d in pick[:3]:
        ids = ([C.BOS_ID] + enc(d))[:200]
        lp = torch.log_softmax(hf_logits(m, ids, dev).logits[0].float(), -1)
        v, i = lp.topk(5, -1)
        nxt = [round(float(lp[t, ids[t + 1]]), 5) for t in range(len(ids) - 1)]
        R["top5"].append({"ids": ids, "text": tok.decode(ids, skip_special_tokens=False), "top_ids": i.tolist(), "top_logprobs": [[round(z, 5) for z in q] for q in v.tolist()], "next_logprob": nxt})

    # greedy generations
    mb = load_hf(a.model, torch.bfloat16, dev)
    R["greedy"] = []
    n = 16 if a.smoke else 64
    for name, p in PROMPTS:
        t = p if isinstance(p, str) else render(p, True)
        ids = ([C.BOS_ID] + enc(t)) if isinstance(p, str) else enc(t)
        g, lps, mar = greedy(m, ids, n, dev)
        full_ids = ids + g
        am = hf_logits(m, full_ids, dev).logits[0, len(ids) - 1:-1].argmax(-1).tolist()
        nocache = sum(x != y for x, y in zip(am, g))
        gb, _, _ = greedy(mb, ids, n, dev)
        k = next((i for i, (x, y) in enumerate(zip(g, gb)) if x != y), min(len(g), len(gb)))
        R["greedy"].append({"name": name, "prompt": t, "prompt_ids": ids, "ids": g, "text": tok.decode(g, skip_special_tokens=False), "logprobs": lps, "margins": mar,
                            "min_margin": min(mar), "finish": "stop" if g[-1] == C.EOS_ID else "length", "differs_without_cache": nocache, "bf16_ids": gb, "bf16_same_prefix": k})
        say("%-14s %2d tokens, min margin %.4f, without cache %d differ, bf16 same for %d: %r" % (name, len(g), min(mar), nocache, k, R["greedy"][-1]["text"][:70]))
    try:
        ids = R["greedy"][0]["prompt_ids"]
        q = m.generate(torch.tensor([ids], device=dev), attention_mask=torch.ones(1, len(ids), dtype=torch.long, device=dev), max_new_tokens=n, do_sample=False, temperature=None, top_p=None)[0].tolist()[len(ids):]
        say("generate() gives the same tokens:", q == R["greedy"][0]["ids"])
    except Exception as e: notes.append("generate(): %r" % (e,))

    # perplexity of held-out text
    held, nb = [], 0
    lim = 20000 if a.smoke else 200000
    r = random.Random(11); order = list(range(len(valdocs))); r.shuffle(order)
    for i in order:
        d = valdocs[i]
        if C.USER in d or "<｜" in d: continue
        d = d[:8000]
        held.append(d); nb += len(d.encode("utf-8"))
        if nb >= lim: break
    ht = "\n".join(held).encode("utf-8")[:lim].decode("utf-8", "ignore")
    open(os.path.join(a.out, "heldout.txt"), "w", encoding="utf-8", newline="").write(ht)
    ids = enc(ht)
    W = 1023
    wins = [ids[i:i + W] for i in range(0, len(ids), W)]
    def ppl(mm):
        nll = []
        for x in wins:
            s = [C.BOS_ID] + x
            lp = torch.log_softmax(hf_logits(mm, s, dev).logits[0, :-1].float(), -1)
            nll.append(float(-lp.double().gather(1, torch.tensor(x, device=dev)[:, None]).sum()))
        return nll
    n32, n16 = ppl(m), ppl(mb)
    N = len(ids)
    R["perplexity"] = {"protocol": "heldout.txt as one string, no special tokens; cut into windows of 1023 tokens; each window is preceded by BOS and every token of it is scored",
                       "bytes": len(ht.encode()), "tokens": N, "nll": sum(n32), "nll_bf16": sum(n16), "ppl": math.exp(sum(n32) / N), "ppl_bf16": math.exp(sum(n16) / N),
                       "bits_per_byte": sum(n32) / math.log(2) / len(ht.encode()), "window_nll": [round(x, 4) for x in n32], "first_ids": ids[:50]}
    say("held-out: %d bytes, %d tokens, nll %.3f, perplexity %.4f (bf16 %.4f), %.4f bits per byte" % (len(ht.encode()), N, sum(n32), R["perplexity"]["ppl"], R["perplexity"]["ppl_bf16"], R["perplexity"]["bits_per_byte"]))
    xb = hf_logits(mb, pid, dev).logits[0].float().cpu().numpy()
    R["bf16_vs_f32"] = {"max_abs": float(np.abs(xb - full).max()), "mean_abs": float(np.abs(xb - full).mean()), "argmax_same": int((xb.argmax(-1) == full.argmax(-1)).sum()), "positions": len(pid)}
    R["notes"] = notes
    J("reference.json", R)
    say("bf16 against float32:", R["bf16_vs_f32"])
    for x in notes: say("NOTE", x)
    say("reference", "OK" if ok else "FAILED: HF and the training model disagree")
    sys.exit(0 if ok else 1)

if __name__ == "__main__":
    main()
