"""Shared definitions: tokenizer layout, model configuration, corpus reading, the PyTorch model and checkpoint I/O."""
import glob, hashlib, json, lzma, math, os, random, re
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, "corpus")

# ---------------------------------------------------------------- tokenizer
BOS, EOS, PAD = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
USER, ASSI, MASK = "<｜User｜>", "<｜Assistant｜>", "<｜place▁holder▁no▁0｜>"
HEAD_SPECIAL = [BOS, EOS, PAD]                       # ids 0, 1, 2
TAIL_ADDED = [                                       # the last ids, (content, special flag)
    (MASK, True), ("<｜fim▁hole｜>", False), ("<｜fim▁begin｜>", False), ("<｜fim▁end｜>", False),
    (USER, False), (ASSI, False), ("<|EOT|>", True),
    ("<｜tool▁calls▁begin｜>", False), ("<｜tool▁calls▁end｜>", False), ("<｜tool▁call▁begin｜>", False),
    ("<｜tool▁call▁end｜>", False), ("<｜tool▁outputs▁begin｜>", False), ("<｜tool▁outputs▁end｜>", False),
    ("<｜tool▁output▁begin｜>", False), ("<｜tool▁output▁end｜>", False), ("<｜tool▁sep｜>", False),
    ("<think>", False), ("</think>", False)]
VOCAB = 4096
N_TAIL = len(TAIL_ADDED)
BASE_VOCAB = VOCAB - N_TAIL                          # ids below this come from the BPE model
BOS_ID, EOS_ID, PAD_ID = 0, 1, 2
MASK_ID = BASE_VOCAB
USER_ID, ASSI_ID = BASE_VOCAB + 4, BASE_VOCAB + 5

SPLITS = [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
          "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]

CHAT_TEMPLATE = (
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}"
    "{% set ns = namespace(system_prompt='') %}"
    "{%- for message in messages %}{%- if message['role'] == 'system' %}"
    "{%- if ns.system_prompt %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}"
    "{%- else %}{% set ns.system_prompt = message['content'] %}{%- endif %}{%- endif %}{%- endfor %}"
    "{{ bos_token }}{{ ns.system_prompt }}"
    "{%- for message in messages %}"
    "{%- if message['role'] == 'user' %}{{ '<｜User｜>' + message['content'] }}{%- endif %}"
    "{%- if message['role'] == 'assistant' %}{{ '<｜Assistant｜>' + message['content'] + '<｜end▁of▁sentence｜>' }}{%- endif %}"
    "{%- endfor %}"
    "{% if add_generation_prompt %}{{ '<｜Assistant｜>' }}{% endif %}")

def bytes_to_unicode():
    bs = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    cs, n = bs[:], 0
    for b in range(256):
        if b not in bs: bs.append(b); cs.append(256 + n); n += 1
    return dict(zip(bs, map(chr, cs)))

def tokenizer_json(vocab, merges):
    """vocab: token -> id for ids < BASE_VOCAB; merges: list of [a, b]"""
    at = lambda i, c, sp: {"id": i, "content": c, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": sp}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [at(i, c, True) for i, c in enumerate(HEAD_SPECIAL)] + [at(BASE_VOCAB + i, c, sp) for i, (c, sp) in enumerate(TAIL_ADDED)],
        "normalizer": {"type": "Sequence", "normalizers": []},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers":
            [{"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False} for p in SPLITS] +
            [{"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": BOS, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"SpecialToken": {"id": BOS, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                     {"SpecialToken": {"id": BOS, "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {BOS: {"id": BOS, "ids": [BOS_ID], "tokens": [BOS]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": vocab, "merges": merges}}

def tokenizer_config():
    return {"add_bos_token": True, "add_eos_token": False, "bos_token": BOS, "eos_token": EOS, "pad_token": PAD,
            "unk_token": None, "clean_up_tokenization_spaces": False, "model_max_length": 2048,
            "tokenizer_class": "PreTrainedTokenizerFast", "chat_template": CHAT_TEMPLATE}

def train_tokenizer_hf(path, texts):
    """Trains the same layout with the HF tokenizers library (used when no tokenizer.json is shipped)."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers, Regex
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), behavior="isolated") for p in SPLITS] +
                                              [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tr = trainers.BpeTrainer(vocab_size=BASE_VOCAB, special_tokens=HEAD_SPECIAL, show_progress=False,
                             initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator(texts, trainer=tr)
    m = json.loads(t.to_str())["model"]
    merges = [x.split(" ") if isinstance(x, str) else x for x in m["merges"]]
    assert len(m["vocab"]) == BASE_VOCAB, len(m["vocab"])
    json.dump(tokenizer_json(m["vocab"], merges), open(path, "w", encoding="utf-8"), ensure_ascii=False)

# ---------------------------------------------------------------- corpus
def read_shard(path, limit=None):
    raw = lzma.open(path).read() if limit is None else lzma.open(path).read(limit)
    docs = raw.split(b"\0")
    return [d.decode("utf-8", "replace") for d in docs if d]

def pieces(doc):
    """Cuts a document at blank lines into pieces of 2 to 12 kB; yields (text, is_last)."""
    if len(doc) <= 9000:
        yield doc, True
        return
    r = random.Random(int(hashlib.md5(doc[:500].encode("utf-8", "replace")).hexdigest()[:8], 16))
    i = 0
    while i < len(doc):
        want = r.randint(2000, 12000)
        j = i + want
        if j >= len(doc) - 500:
            yield doc[i:], True
            return
        k = doc.find("\n\n", j)
        if k < 0 or k > j + 3000:
            k = doc.find("\n", j)
            k = j if k < 0 or k > j + 3000 else k + 1
        else:
            k += 2
        yield doc[i:k], False
        i = k

def tokenize_docs(tok, docs):
    """-> (uint16 array, piece lengths)"""
    enc = getattr(tok, "encode_batch_fast", tok.encode_batch)
    arrs, lens = [], []
    buf = []
    def flush():
        es = enc([b[0] for b in buf], add_special_tokens=False)
        for e, (t, last) in zip(es, buf):
            ids = e.ids
            a = np.empty(len(ids) + 1 + (1 if last else 0), dtype=np.uint16)
            a[0] = BOS_ID
            a[1:1 + len(ids)] = ids
            if last: a[-1] = EOS_ID
            arrs.append(a); lens.append(len(a))
        buf.clear()
    for d in docs:
        if USER in d:                       # chat documents carry their own end markers
            buf.append((d, False))
        else:
            for p in pieces(d): buf.append(p)
        if len(buf) >= 200: flush()
    if buf: flush()
    return (np.concatenate(arrs) if arrs else np.zeros(0, np.uint16)), np.array(lens, dtype=np.int64)

_TOK = None
def _worker(args):
    global _TOK
    path, tokpath, limit = args
    if _TOK is None:
        from tokenizers import Tokenizer
        _TOK = Tokenizer.from_file(tokpath)
    docs = read_shard(path, limit)
    if limit is not None: docs = docs[:-1] or docs
    a, l = tokenize_docs(_TOK, docs)
    return a, l, sum(len(d.encode("utf-8", "replace")) for d in docs)

def load_tokens(tokpath, smoke=False, procs=16, seed=0):
    """-> train tokens, val tokens (uint16). Call before CUDA is initialised (forks)."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    shards = sorted(glob.glob(os.path.join(CORPUS, "train-*.xz")))
    limit = 400000 if smoke else None
    jobs = [(s, tokpath, limit) for s in (shards[::4] if smoke else shards)] + [(os.path.join(CORPUS, "val.xz"), tokpath, limit)]
    res = None
    if procs > 1:
        try:
            import multiprocessing as mp
            with mp.get_context("fork").Pool(min(procs, len(jobs))) as pool:
                res = pool.map_async(_worker, jobs, chunksize=1).get(timeout=240)
        except Exception as e:
            print("parallel tokenisation failed (%r); going on alone" % (e,), flush=True)
            res = None
    if res is None: res = [_worker(j) for j in jobs]
    val = res[-1][0]
    toks = [r[0] for r in res[:-1]]
    allp = []
    for a, l, _ in res[:-1]:
        ends = np.cumsum(l)
        allp += [a[e - n:e] for e, n in zip(ends.tolist(), l.tolist())]
    np.random.RandomState(seed).shuffle(order := np.arange(len(allp)))
    train = np.concatenate([allp[i] for i in order])
    nb = sum(r[2] for r in res[:-1])
    print("corpus: %.1f MB train text, %d pieces, %.2f M tokens (%.2f bytes/token), val %.2f M tokens" %
          (nb / 1e6, len(allp), len(train) / 1e6, nb / max(1, len(train)), len(val) / 1e6), flush=True)
    return train, val

# ---------------------------------------------------------------- model
CONFIG = dict(
    architectures=["DeepseekV3ForCausalLM"], model_type="deepseek_v3",
    vocab_size=VOCAB, hidden_size=256, intermediate_size=640, moe_intermediate_size=64,
    num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=8,
    n_shared_experts=1, n_routed_experts=16, num_experts_per_tok=4, n_group=4, topk_group=2,
    norm_topk_prob=True, routed_scaling_factor=2.5, scoring_func="sigmoid", topk_method="noaux_tc",
    moe_layer_freq=1, first_k_dense_replace=1,
    q_lora_rank=128, kv_lora_rank=512, qk_nope_head_dim=32, qk_rope_head_dim=64, v_head_dim=32,
    hidden_act="silu", max_position_embeddings=2048, initializer_range=0.02, rms_norm_eps=1e-6,
    rope_theta=10000.0, rope_scaling=None, rope_interleave=True, attention_bias=False, attention_dropout=0.0,
    tie_word_embeddings=False, use_cache=True, bos_token_id=BOS_ID, eos_token_id=EOS_ID, pad_token_id=PAD_ID,
    num_nextn_predict_layers=0, torch_dtype="bfloat16")

import torch
import torch.nn as nn
import torch.nn.functional as F

def rms(x, w, eps):
    xf = x.float()
    return (xf * torch.rsqrt(xf.pow(2).mean(-1, keepdim=True) + eps) * w).to(x.dtype)

def lin(x, w):
    return F.linear(x, w.to(x.dtype))

def rope(x, cos, sin):
    """x [B,T,h,D], interleaved pairs (2i, 2i+1); cos/sin [T,D/2] float32"""
    xf = x.float().unflatten(-1, (x.shape[-1] // 2, 2))
    a, b = xf[..., 0], xf[..., 1]
    c, s = cos[None, :, None, :], sin[None, :, None, :]
    return torch.stack((a * c - b * s, b * c + a * s), dim=-1).flatten(-2).to(x.dtype)

def top_mask(s, k):
    """boolean mask of the k largest of the last axis (ties: lower index first)"""
    n = s.shape[-1]
    i = torch.arange(n, device=s.device)
    a, b = s.unsqueeze(-1), s.unsqueeze(-2)          # a: candidate, b: rival
    beats = (b > a) | ((b == a) & (i[None, :] < i[:, None]))
    return beats.sum(-1) < k

def route(scores, bias, c):
    """sigmoid scores [N,E] -> weights [N,E] (zero where not selected), mask"""
    E, G = c["n_routed_experts"], c["n_group"]
    ch = scores.detach() + bias
    if G > 1:
        g = ch.view(-1, G, E // G)
        gs = torch.where(top_mask(g, 2), g, torch.zeros_like(g)).sum(-1)
        gm = top_mask(gs, c["topk_group"])
        ch = torch.where(gm.unsqueeze(-1).expand(-1, G, E // G).reshape(-1, E), ch, torch.full_like(ch, -1e9))
    m = top_mask(ch, c["num_experts_per_tok"])
    w = scores * m
    if c["norm_topk_prob"]: w = w / (w.sum(-1, keepdim=True) + 1e-20)
    return w * c["routed_scaling_factor"], m

class Layer(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        H, h = c["hidden_size"], c["num_attention_heads"]
        qk, nope, rp, vd = c["qk_nope_head_dim"] + c["qk_rope_head_dim"], c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
        P = lambda *s, std: nn.Parameter(torch.randn(*s) * std)
        one = lambda n: nn.Parameter(torch.ones(n))
        L = c["num_hidden_layers"]
        self.c, self.dense = c, i < c["first_k_dense_replace"]
        sd = lambda fan: 0.6 / math.sqrt(fan)
        so = lambda fan: 0.6 / math.sqrt(fan) / math.sqrt(2 * L)
        self.ln1, self.ln2 = one(H), one(H)
        r = c["q_lora_rank"]
        if r:
            self.q_a, self.q_ln, self.q_b = P(r, H, std=sd(H)), one(r), P(h * qk, r, std=sd(r))
        else:
            self.q = P(h * qk, H, std=sd(H))
        R = c["kv_lora_rank"]
        self.kv_a, self.kv_ln, self.kv_b = P(R + rp, H, std=sd(H)), one(R), P(h * (nope + vd), R, std=sd(R))
        self.o = P(H, h * vd, std=so(h * vd))
        if self.dense:
            I = c["intermediate_size"]
            self.gu, self.down = P(2, I, H, std=sd(H)), P(H, I, std=so(I))
        else:
            E, I, S = c["n_routed_experts"], c["moe_intermediate_size"], c["n_shared_experts"]
            self.gate = P(E, H, std=sd(H))
            self.gu, self.down = P(2, E + S, I, H, std=sd(H)), P(H, E + S, I, std=so(4 * I))

    def forward(self, x, cos, sin, bias, rec=None):
        c, eps = self.c, self.c["rms_norm_eps"]
        B, T, H = x.shape
        h, nope, rp, vd = c["num_attention_heads"], c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
        y = rms(x, self.ln1, eps)
        if c["q_lora_rank"]: q = lin(rms(lin(y, self.q_a), self.q_ln, 1e-6), self.q_b)
        else: q = lin(y, self.q)
        q = q.view(B, T, h, nope + rp)
        kva = lin(y, self.kv_a)
        lat = rms(kva[..., :c["kv_lora_rank"]], self.kv_ln, 1e-6)
        kv = lin(lat, self.kv_b).view(B, T, h, nope + vd)
        kr = rope(kva[..., c["kv_lora_rank"]:].unsqueeze(2), cos, sin)
        q = torch.cat((q[..., :nope], rope(q[..., nope:], cos, sin)), -1).transpose(1, 2)
        k = torch.cat((kv[..., :nope], kr.expand(B, T, h, rp)), -1).transpose(1, 2)
        v = F.pad(kv[..., nope:], (0, nope + rp - vd)).transpose(1, 2)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        a = a.transpose(1, 2)[..., :vd].reshape(B, T, h * vd)
        x = x + lin(a, self.o)
        y = rms(x, self.ln2, eps)
        cnt = None
        if self.dense:
            I = c["intermediate_size"]
            z = lin(y, self.gu.view(2 * I, H))
            x = x + lin(F.silu(z[..., :I]) * z[..., I:], self.down)
        else:
            E, I, S = c["n_routed_experts"], c["moe_intermediate_size"], c["n_shared_experts"]
            sc = torch.sigmoid(F.linear(y.reshape(-1, H).float(), self.gate.float()))
            w, m = route(sc, bias, c)
            cnt = m.float().sum(0)
            if rec is not None: rec.append((w, m))
            z = lin(y.reshape(-1, H), self.gu.view(2 * (E + S) * I, H))
            n = (E + S) * I
            act = F.silu(z[:, :n]) * z[:, n:]
            w = torch.cat((w, torch.ones(w.shape[0], S, device=w.device, dtype=w.dtype)), 1).to(act.dtype)
            act = (act.view(-1, E + S, I) * w.unsqueeze(-1)).view(-1, n)
            x = x + lin(act, self.down.view(H, n)).view(B, T, H)
        return x, cnt

class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        H, V = c["hidden_size"], c["vocab_size"]
        self.embed = nn.Parameter(torch.randn(V, H) * 0.05)
        self.layers = nn.ModuleList([Layer(c, i) for i in range(c["num_hidden_layers"])])
        self.norm = nn.Parameter(torch.ones(H))
        self.head = None if c["tie_word_embeddings"] else nn.Parameter(torch.randn(V, H) * 0.02)
        nm = sum(not l.dense for l in self.layers)
        self.register_buffer("bias", torch.zeros(nm, c["n_routed_experts"]), persistent=False)
        D = c["qk_rope_head_dim"]
        inv = 1.0 / (c["rope_theta"] ** (torch.arange(0, D, 2, dtype=torch.int64).float() / D))
        f = torch.outer(torch.arange(8192).float(), inv)
        self.register_buffer("cos", f.cos(), persistent=False)
        self.register_buffer("sin", f.sin(), persistent=False)

    def body(self, idx, dt, hidden=None, rec=None):
        """-> final-norm hidden [B,T,H], expert counts [n_moe,E]; hidden: list that receives the embedding and each layer's output"""
        T = idx.shape[1]
        x = F.embedding(idx, self.embed).to(dt)
        if hidden is not None: hidden.append(x)
        cos, sin = self.cos[:T], self.sin[:T]
        cnts, j = [], 0
        for l in self.layers:
            if l.dense: x, _ = l(x, cos, sin, None)
            else:
                x, n = l(x, cos, sin, self.bias[j], rec); j += 1
                cnts.append(n)
            if hidden is not None: hidden.append(x)
        x = rms(x, self.norm, self.c["rms_norm_eps"])
        return x, torch.stack(cnts)

    def out_w(self):
        return self.embed if self.head is None else self.head

    def logits(self, idx, dt=torch.float32, hidden=None, rec=None):
        x, _ = self.body(idx, dt, hidden, rec)
        return lin(x, self.out_w()).float()

    def loss(self, x, y, dt):
        h, cnt = self.body(x, dt)
        lg = lin(h, self.out_w()).float()
        return F.cross_entropy(lg.view(-1, lg.shape[-1]), y.reshape(-1)), cnt

# ---------------------------------------------------------------- checkpoint in HF names
def export_state(m):
    """-> dict of HF name -> tensor (bf16; e_score_correction_bias float32)"""
    c, o = m.c, {}
    b = lambda t: t.detach().to(torch.bfloat16).contiguous().cpu()
    o["model.embed_tokens.weight"] = b(m.embed)
    j = 0
    for i, l in enumerate(m.layers):
        p = "model.layers.%d." % i
        o[p + "input_layernorm.weight"] = b(l.ln1)
        o[p + "post_attention_layernorm.weight"] = b(l.ln2)
        a = p + "self_attn."
        if c["q_lora_rank"]:
            o[a + "q_a_proj.weight"], o[a + "q_a_layernorm.weight"], o[a + "q_b_proj.weight"] = b(l.q_a), b(l.q_ln), b(l.q_b)
        else:
            o[a + "q_proj.weight"] = b(l.q)
        o[a + "kv_a_proj_with_mqa.weight"], o[a + "kv_a_layernorm.weight"] = b(l.kv_a), b(l.kv_ln)
        o[a + "kv_b_proj.weight"], o[a + "o_proj.weight"] = b(l.kv_b), b(l.o)
        q = p + "mlp."
        if l.dense:
            o[q + "gate_proj.weight"], o[q + "up_proj.weight"], o[q + "down_proj.weight"] = b(l.gu[0]), b(l.gu[1]), b(l.down)
        else:
            E, I, S, H = c["n_routed_experts"], c["moe_intermediate_size"], c["n_shared_experts"], c["hidden_size"]
            o[q + "gate.weight"] = b(l.gate)
            bias = m.bias[j].detach().float().cpu()
            o[q + "gate.e_score_correction_bias"] = (bias - bias.min()).contiguous(); j += 1
            for e in range(E):
                o[q + "experts.%d.gate_proj.weight" % e] = b(l.gu[0, e])
                o[q + "experts.%d.up_proj.weight" % e] = b(l.gu[1, e])
                o[q + "experts.%d.down_proj.weight" % e] = b(l.down[:, e])
            o[q + "shared_experts.gate_proj.weight"] = b(l.gu[0, E:].reshape(S * I, H))
            o[q + "shared_experts.up_proj.weight"] = b(l.gu[1, E:].reshape(S * I, H))
            o[q + "shared_experts.down_proj.weight"] = b(l.down[:, E:].reshape(H, S * I))
    o["model.norm.weight"] = b(m.norm)
    if m.head is not None: o["lm_head.weight"] = b(m.head)
    return o

def import_state(m, sd):
    """the inverse of export_state, into float32 parameters"""
    c = m.c
    used = set()
    def g(n):
        used.add(n)
        return sd[n].float()
    with torch.no_grad():
        m.embed.copy_(g("model.embed_tokens.weight"))
        j = 0
        for i, l in enumerate(m.layers):
            p = "model.layers.%d." % i
            l.ln1.copy_(g(p + "input_layernorm.weight")); l.ln2.copy_(g(p + "post_attention_layernorm.weight"))
            a = p + "self_attn."
            if c["q_lora_rank"]:
                l.q_a.copy_(g(a + "q_a_proj.weight")); l.q_ln.copy_(g(a + "q_a_layernorm.weight")); l.q_b.copy_(g(a + "q_b_proj.weight"))
            else:
                l.q.copy_(g(a + "q_proj.weight"))
            l.kv_a.copy_(g(a + "kv_a_proj_with_mqa.weight")); l.kv_ln.copy_(g(a + "kv_a_layernorm.weight"))
            l.kv_b.copy_(g(a + "kv_b_proj.weight")); l.o.copy_(g(a + "o_proj.weight"))
            q = p + "mlp."
            if l.dense:
                l.gu[0].copy_(g(q + "gate_proj.weight")); l.gu[1].copy_(g(q + "up_proj.weight")); l.down.copy_(g(q + "down_proj.weight"))
            else:
                E, I, S, H = c["n_routed_experts"], c["moe_intermediate_size"], c["n_shared_experts"], c["hidden_size"]
                l.gate.copy_(g(q + "gate.weight"))
                m.bias[j].copy_(g(q + "gate.e_score_correction_bias")); j += 1
                for e in range(E):
                    l.gu[0, e].copy_(g(q + "experts.%d.gate_proj.weight" % e))
                    l.gu[1, e].copy_(g(q + "experts.%d.up_proj.weight" % e))
                    l.down[:, e].copy_(g(q + "experts.%d.down_proj.weight" % e))
                l.gu[0, E:].copy_(g(q + "shared_experts.gate_proj.weight").view(S, I, H))
                l.gu[1, E:].copy_(g(q + "shared_experts.up_proj.weight").view(S, I, H))
                l.down[:, E:].copy_(g(q + "shared_experts.down_proj.weight").view(H, S, I))
        m.norm.copy_(g("model.norm.weight"))
        if m.head is not None: m.head.copy_(g("lm_head.weight"))
    rest = set(sd) - used
    assert not rest, "unused tensors in the checkpoint: %s" % sorted(rest)[:5]

def save_model(m, out, tokpath):
    from safetensors.torch import save_file
    os.makedirs(out, exist_ok=True)
    sd = export_state(m)
    tmp = os.path.join(out, "model.safetensors.part")
    save_file(sd, tmp, metadata={"format": "pt"})
    os.replace(tmp, os.path.join(out, "model.safetensors"))
    json.dump(m.c, open(os.path.join(out, "config.json"), "w"), indent=2)
    json.dump({"bos_token_id": BOS_ID, "eos_token_id": EOS_ID, "pad_token_id": PAD_ID,
               "do_sample": True, "temperature": 0.6, "top_p": 0.95}, open(os.path.join(out, "generation_config.json"), "w"), indent=2)
    txt = open(tokpath, encoding="utf-8").read()
    open(os.path.join(out, "tokenizer.json"), "w", encoding="utf-8").write(txt)
    json.dump(tokenizer_config(), open(os.path.join(out, "tokenizer_config.json"), "w", encoding="utf-8"), indent=2, ensure_ascii=False)
    return sd

def load_model(d, device="cpu"):
    from safetensors.torch import load_file
    c = json.load(open(os.path.join(d, "config.json")))
    m = Model(c)
    import_state(m, load_file(os.path.join(d, "model.safetensors")))
    return m.to(device).eval()
