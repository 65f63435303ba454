"""mla plan: every profile against a second implementation of the sums, the published sizes of
real checkpoints, the demo's own file, the boundary of what fits, and hostile profiles."""
import copy
import glob
import json
import os
import struct
import tempfile

import program
from plan_sums import Rank

PROFILES = sorted(glob.glob(os.path.join(program.SOURCE, "profiles", "*.json")))
DOES_NOT_FIT = 3
CLASSES = ("context session plan binding graph comm weights kv activations drafter server "
           "other").split()

# Bytes and numbers that the checkpoints' own indexes and headers say, tensors only.
PUBLISHED = {
    # profile: (parameters with MTP, bytes with MTP, how far the file is from the sum)
    "deepseek-v2-lite": (15706484224, 2 * 15706484224, 0),
    "deepseek-v3": (684489845504, 2 * 3918786560 + 680571043840 + 4 * 41555600, 0),
    "kimi-k2": (1026408232448, 1029173256720, 6832),  # 112 B a layer that nothing reads
    "youtu-2b": (1961560064, 2 * 1961560064, 0),
}
# The file of Kimi-K3 has a vision encoder, too, of about 0.45 billion parameters in bf16.
K3_BYTES, K3_PARAMETERS, K3_VISION = 1560860324864, 2779931837184, (0.40e9, 0.46e9)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def profile_named(name):
    return load(os.path.join(program.SOURCE, "profiles", name + ".json"))


def name_of(path):
    return os.path.splitext(os.path.basename(path))[0]


class PlanTest(program.ProgramTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, content):
        path = os.path.join(self.folder.name, "profile.json")
        text = content if isinstance(content, (bytes, str)) else json.dumps(content)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def plan(self, profile, *options):
        """The answer, whose exit status has to be as it says."""
        path = profile if isinstance(profile, str) else self.write(profile)
        done = program.run("plan", path, "--json", *options)
        self.assertEqual(done.stderr, b"", done.stderr.decode())
        answer = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if answer["fits"] else DOES_NOT_FIT)
        return answer

    def on_one_rank(self, name):
        """A profile's weights, its MTP layers among them, as one file holds them."""
        profile = profile_named(name)
        profile["ranks"] = {"tensor": 1, "context": 1, "interleave": 1, "expert": 1}
        answer = self.plan(profile)
        drafter = answer["classes"]["drafter"]["parts"].get("weights", 0)
        further = answer["mtp_parameters"]
        return answer["parameters"] + further, answer["classes"]["weights"]["now"] + drafter


class Sums(PlanTest):
    def test_there_are_the_profiles_that_were_asked_for(self):
        names = {name_of(path) for path in PROFILES}
        self.assertLessEqual(
            {"deepseek-v2-lite", "deepseek-v3", "kimi-k2", "glm-4.7-flash", "youtu-2b",
             "kimi-k3", "kimi-k3-16-cards-8-requests", "kimi-k3-16-cards-16-requests"}, names)

    def check(self, profile, answer):
        parts = answer["classes"]["activations"]["parts"]
        workspace = parts["attention workspace"]
        rank = Rank(profile, answer["concurrency"])
        wanted = rank.classes(workspace + parts.get("model arrays", 0))
        found = {name: answer["classes"][name]["now"] for name in CLASSES}
        self.assertEqual(found, {name: wanted[name] for name in CLASSES})
        self.assertEqual(answer["total"], sum(wanted.values()))
        self.assertEqual(answer["parameters"], rank.weights.parameters)
        self.check_tokens(rank, answer["tokens"])
        self.assertEqual(answer["classes"]["session"]["peak"], rank.session(workspace))
        return rank.refusal(wanted, workspace)

    def check_tokens(self, rank, tokens):
        layers = rank.row_bytes * rank.latent_layers
        self.assertEqual(tokens["request_bytes"], rank.request())
        self.assertEqual(tokens["request_pages"], rank.pages())
        self.assertAlmostEqual(tokens["ideal_bytes"], layers / rank.context, delta=0.0006)
        self.assertAlmostEqual(tokens["effective_bytes"], rank.request() / rank.tokens,
                               delta=0.0006)
        self.assertEqual(tokens["ideal_per_gib"], (1 << 30) * rank.context // layers)
        self.assertEqual(tokens["effective_per_gib"],
                         (1 << 30) * rank.tokens // rank.request())

    def test_each_class_of_each_profile_is_the_sum_that_python_makes(self):
        for path in PROFILES:
            for concurrency in (None, 1, 3, 17):
                with self.subTest(profile=name_of(path), concurrency=concurrency):
                    options = ["--concurrency", concurrency] if concurrency else []
                    answer = self.plan(path, *options)
                    refusal = self.check(load(path), answer)
                    self.assertEqual(answer["fits"], refusal is None)
                    if refusal:
                        said = {key: answer["refusal"][key] for key in refusal}
                        self.assertEqual(said, refusal)

    def test_the_classes_have_the_shape_of_the_ledger(self):
        answer = self.plan(PROFILES[0])
        for name in CLASSES:
            of = answer["classes"][name]
            self.assertEqual(set(of), {"now", "peak", "by_space", "parts"})
            self.assertEqual(sum(of["by_space"].values()), of["now"])
            self.assertEqual(sum(of["parts"].values()), of["now"])
        self.assertEqual(answer["classes"]["session"]["now"], 0)
        self.assertGreater(answer["classes"]["session"]["peak"], 0)

    def test_every_assumption_is_named_with_its_reason(self):
        for path in PROFILES:
            answer = self.plan(path)
            profile = load(path)
            for ground in ("assumed", "reported"):
                wanted = {f"{section}.{key}": (value["value"], value[ground])
                          for section, keys in profile.items() if isinstance(keys, dict)
                          for key, value in keys.items()
                          if section != "config" and isinstance(value, dict)
                          and ground in value}
                found = {one["input"]: (one["value"], one["why"]) for one in answer[ground]}
                self.assertEqual(found, wanted)
            text = program.run("plan", path).stdout.decode()
            for one in answer["assumed"]:
                self.assertIn(f"\n  {one['input']} = ", text)

    def test_what_is_not_given_is_named_with_the_value_taken(self):
        profile = profile_named("deepseek-v2-lite")
        del profile["held"]["plan_bytes"], profile["serving"]["page_tokens"]
        defaults = {one["input"]: one["value"] for one in self.plan(profile)["defaults"]}
        self.assertEqual(defaults["held.plan_bytes"], 0)
        self.assertEqual(defaults["serving.page_tokens"], 64)


class Published(PlanTest):
    def test_checkpoints_have_the_published_sizes(self):
        for name, (parameters, size, distance) in PUBLISHED.items():
            with self.subTest(profile=name):
                found = self.on_one_rank(name)
                self.assertEqual(found[0], parameters)
                self.assertEqual(size - found[1], distance)

    def test_glm_has_its_published_number_of_parameters(self):
        self.assertEqual(self.on_one_rank("glm-4.7-flash")[0], 31221488576)

    def test_what_kimi_k3_has_beside_its_text_is_a_vision_encoder(self):
        parameters, size = self.on_one_rank("kimi-k3")
        vision = K3_PARAMETERS - parameters
        self.assertTrue(K3_VISION[0] < vision < K3_VISION[1], vision)
        self.assertEqual(K3_BYTES - size, 2 * vision)

    def test_the_demo_weighs_what_its_file_holds(self):
        profile = self.demo_profile()
        with open(os.path.join(program.DEMO, "model.safetensors"), "rb") as file:
            header = struct.unpack("<Q", file.read(8))[0]
            tensors = json.loads(file.read(header))
            size = file.seek(0, os.SEEK_END) - 8 - header
        numbers = 0
        for name, tensor in tensors.items():
            count = 1
            for dimension in tensor.get("shape", [0]):
                count *= dimension
            numbers += count if name != "__metadata__" else 0
        answer = self.plan(profile)
        self.assertEqual(answer["classes"]["weights"]["now"], size)
        self.assertEqual(answer["parameters"], numbers)

    def demo_profile(self, **serving):
        return {
            "name": "the demo",
            "config": load(os.path.join(program.DEMO, "config.json")),
            "device": {"name": "a CPU", "backend": "cpu", "memory_bytes": 1 << 30,
                       "threads": 1},
            "serving": {"kv_format": "bf16", "max_context_tokens": 1000, "concurrency": 3,
                        **serving},
        }

    def test_the_pages_are_those_that_the_engine_takes(self):
        for kv_format in ("f32", "bf16", "fp8", "fp8_g128"):
            phases = program.memory_phases(self, "--requests", 3, "--context", 1000, "--kv",
                                           kv_format, "--threads", 1)
            answer = self.plan(self.demo_profile(kv_format=kv_format))
            self.assertEqual(answer["classes"]["kv"]["now"], phases["frozen"]["kv"]["now"])

    def test_activations_are_close_to_what_the_engine_takes(self):
        """Not more than it, and short of it by less than a tenth: small lists, and a kernel
        that is not the portable one."""
        for requests in (1, 8):
            phases = program.memory_phases(self, "--requests", requests, "--context", 1000,
                                           "--threads", 1)
            taken = phases["frozen"]["activations"]["now"]
            answer = self.plan(self.demo_profile(concurrency=requests))
            counted = answer["classes"]["activations"]["now"]
            self.assertTrue(0.9 * taken < counted <= taken, (counted, taken))

    def test_the_reported_slabs_and_states(self):
        answer = self.plan(profile_named("kimi-k3-16-cards-8-requests"))
        self.assertEqual(answer["step_rows"], 64)
        self.assertEqual(answer["classes"]["comm"]["parts"]["channel slabs"], 14471168)
        self.assertEqual(answer["tokens"]["ideal_bytes"], 864)
        state = answer["classes"]["kv"]["parts"]["linear states"] // 8
        self.assertEqual(state, 69 * (393216 + 3 * 768 * 3 * 2))
        answer = self.plan(profile_named("kimi-k3-16-cards-16-requests"))
        self.assertEqual(answer["step_rows"], 128)
        self.assertEqual(answer["classes"]["comm"]["parts"]["channel slabs"], 28676096)
        parallel = profile_named("kimi-k3-16-cards-8-requests")
        parallel["speculation"]["rows_per_request"] = 15
        answer = self.plan(parallel)
        self.assertEqual(answer["step_rows"], 120)
        self.assertEqual(answer["classes"]["comm"]["parts"]["channel slabs"], 26900480)


class Boundary(PlanTest):
    def test_the_largest_concurrency_fits_and_one_more_does_not(self):
        for path in PROFILES:
            with self.subTest(profile=name_of(path)):
                largest = self.plan(path)["largest_concurrency"]
                if largest > 0:
                    at = self.plan(path, "--concurrency", largest)
                    self.assertTrue(at["fits"])
                    self.assertEqual(at["largest_concurrency"], largest)
                beyond = self.plan(path, "--concurrency", largest + 1)
                self.assertFalse(beyond["fits"])
                self.assertEqual(beyond["largest_concurrency"], largest)

    def without_fixed_pool(self, name):
        profile = profile_named(name)
        profile["serving"].pop("kv_bytes", None)
        return profile

    def test_a_pool_that_is_not_fixed_is_what_the_hint_says(self):
        for path in PROFILES:
            with self.subTest(profile=name_of(path)):
                hint = self.plan(path)["pool"]["largest_without_fixed"]
                free = self.plan(self.without_fixed_pool(name_of(path)))
                self.assertEqual(free["largest_concurrency"], hint)

    def test_a_byte_too_little_is_refused_with_a_deficit_of_one(self):
        profile = self.without_fixed_pool("kimi-k3-16-cards-8-requests")
        profile["device"]["memory_bytes"] = 1 << 50
        total = self.plan(profile)["total"]
        profile["device"]["memory_bytes"] = total
        answer = self.plan(profile)
        self.assertTrue(answer["fits"])
        self.assertEqual(answer["largest_concurrency"], 8)
        profile["device"]["memory_bytes"] = total - 1
        answer = self.plan(profile)
        self.assertEqual(answer["refusal"]["class"], "other")
        self.assertEqual(answer["refusal"]["deficit"], 1)
        self.assertEqual(answer["refusal"]["total_deficit"], 1)
        self.assertEqual(answer["largest_concurrency"], 7)

    def test_the_first_class_that_does_not_fit_is_named(self):
        """Memory that ends one byte before the end of each class, in the order of life."""
        profile = self.without_fixed_pool("kimi-k3-16-cards-8-requests")
        profile["held"].update(plan_bytes=1 << 30, binding_bytes=1000, server_bytes=2000)
        profile["device"]["memory_bytes"] = 1 << 50
        classes = self.plan(profile)["classes"]
        used = 0
        for name in Rank.ORDER:
            need = classes[name]["peak"]
            if need > 0:
                profile["device"]["memory_bytes"] = used + need - 1
                refusal = self.plan(profile)["refusal"]
                self.assertEqual((refusal["class"], refusal["deficit"]), (name, 1))
                self.assertEqual(refusal["required"], need)
            used += classes[name]["now"]

    def test_a_fixed_pool_holds_so_many_requests(self):
        profile = profile_named("deepseek-v2-lite")
        request = self.plan(profile)["tokens"]["request_bytes"]
        profile["serving"]["kv_bytes"] = 5 * request
        self.assertEqual(self.plan(profile, "--concurrency", 5)["largest_concurrency"], 5)
        refusal = self.plan(profile, "--concurrency", 6)["refusal"]
        self.assertEqual((refusal["class"], refusal["is_pool_fixed"]), ("kv", True))
        self.assertEqual(refusal["available"], 5 * request)
        self.assertEqual(refusal["deficit"], request)
        self.assertEqual(refusal["total_deficit"], 0)
        profile["serving"]["kv_bytes"] = 5 * request - 1
        self.assertEqual(self.plan(profile)["largest_concurrency"], 4)


class Text(PlanTest):
    def test_the_table_says_what_the_json_says(self):
        for path in PROFILES:
            answer = self.plan(path)
            done = program.run("plan", path)
            self.assertEqual(done.returncode, 0 if answer["fits"] else DOES_NOT_FIT)
            text = done.stdout.decode()
            for name in CLASSES:
                self.assertRegex(text, rf"(?m)^  {name} .* {answer['classes'][name]['now']}$")
            if answer["fits"]:
                self.assertIn(f"\nfits; {answer['largest_concurrency']} requests", text)
            else:
                refusal = answer["refusal"]
                self.assertIn(f"\ndoes not fit: {refusal['class']} needs "
                              f"{refusal['required']} B of {refusal['available']} B", text)
                self.assertIn(f" {refusal['deficit']} B too little", text)


class Documentation(PlanTest):
    def setUp(self):
        super().setUp()
        with open(os.path.join(program.SOURCE, "docs", "plan.md"), encoding="utf-8") as file:
            self.text = file.read()

    def test_the_answer_in_the_document_is_the_programs(self):
        path = os.path.join(program.SOURCE, "profiles", "deepseek-v2-lite.json")
        shown = self.text.split("## The answer\n\n```\n")[1].split("\n```\n")[0]
        lines = program.run("plan", path).stdout.decode().split("\n")
        for line in shown.split("\n"):
            if line != "  ...":
                self.assertIn(line, lines)
        refusal = program.run("plan", path, "--concurrency", 140).stdout.decode()
        self.assertIn("\n" + self.text.split("--concurrency 140\n")[1].split("\n")[0], refusal)

    def test_the_table_of_the_sixteen_cards_is_the_programs(self):
        names = ("8-requests", "16-requests", "mxfp4")
        answers = [self.plan(profile_named("kimi-k3-16-cards-" + name)) for name in names]
        rows = {cells[0]: cells[1:] for cells in
                ([cell.strip() for cell in line.strip("|").split("|")]
                 for line in self.text.split("\n") if line.startswith("|"))}
        for i, answer in enumerate(answers):
            wanted = {name: answer["classes"][name]["now"] for name in CLASSES
                      if answer["classes"][name]["now"] > 0}
            wanted.update({
                "all": answer["total"], "memory": answer["memory"],
                "first that does not fit": answer["refusal"]["class"],
                "required": answer["refusal"]["required"],
                "available": answer["refusal"]["available"],
                "deficit": answer["refusal"]["deficit"],
                "largest concurrency": answer["largest_concurrency"],
                "room for a pool beside all else": answer["pool"]["room"],
                "largest, with a pool as large as needed":
                    answer["pool"]["largest_without_fixed"]})
            found = {name: rows[name][i].replace(",", "") for name in wanted}
            self.assertEqual(found, {name: str(value) for name, value in wanted.items()})

    def test_what_it_says_of_a_pool_that_is_not_fixed_is_so(self):
        fits, refused = (profile_named(f"kimi-k3-16-cards-{n}-requests") for n in (8, 16))
        del fits["serving"]["kv_bytes"], refused["serving"]["kv_bytes"]
        answer = self.plan(fits)
        left = answer["memory"] - answer["total"]
        self.assertTrue(answer["fits"])
        self.assertIn(f"{left:,} B left and {answer['largest_concurrency']} are the most",
                      self.text)
        refusal = self.plan(refused)["refusal"]
        said = (f"`{refusal['class']}`, which need {refusal['required']:,} B of "
                f"{refusal['available']:,} B")
        self.assertIn(said, self.text.replace("\n", " "))


def set_at(profile, path, value):
    *parents, last = path.split(".")
    for key in parents:
        profile = profile.setdefault(key, {})
    profile[last] = value


# path in the profile, value, words of the refusal
HOSTILE = [
    ("device.memory_bytes", 0, "device.memory_bytes is 0, outside 1 to"),
    ("device.memory_bytes", -5, "outside 1 to"),
    ("device.memory_bytes", "much", "should be an integer"),
    ("device.memory_bytes", 1.5, "should be an integer"),
    ("device.memory_bytes", None, "device.memory_bytes is missing"),
    ("device.memory_bytes", {"value": 5}, "why it is assumed"),
    ("device.memory_bytes", {"value": 5, "assumed": ""}, "why it is assumed"),
    ("device.memory_bytes", {"value": 5, "assumed": "a", "reported": "b"}, "just a value"),
    ("device.memory_bytes", {"assumed": "a", "reported": "b"}, "just a value"),
    ("device.memory_byte", 5, "device.memory_byte is not an input"),
    ("device.backend", "abacus", "should be one of cpu, cuda"),
    ("device.name", 5, "device.name is 5 and should be a string"),
    ("device.compute_major", 7, "needs 8.0"),
    ("gadgets", {}, "gadgets is not a section"),
    ("held", [], "held is an array and should be an object"),
    ("notes", [5], "notes[0] is 5"),
    ("serving.kv_format", "fp7", "should be one of f32, bf16, fp8, fp8_g128"),
    ("serving.kv_format", "f32", "kv_format f32 is the CPU's"),
    ("serving.concurrency", 65537, "outside 1 to 65536"),
    ("serving.page_tokens", 17, "page_tokens is 17"),
    ("serving.request_tokens", 200000, "more than max_context_tokens"),
    ("serving.max_context_tokens", 163841, "the model's is 163840"),
    ("serving.kv_bytes", 0, "outside 1 to"),
    ("ranks.tensor", 3, "3 tensor ranks do not divide 16 heads"),
    ("ranks.context", 2, "does not divide ranks.tensor"),
    ("ranks.interleave", 7, "does not divide serving.page_tokens"),
    ("ranks.expert", 2, "2 expert ranks do not divide 1 tensor ranks"),
    ("weights.experts", "fp3", "should be one of f32, bf16"),
    ("weights.others", "mxfp4", "should be one of bf16, f32"),
    ("speculation.draft_tokens", 3, "speculation.kind is none"),
    ("speculation.kind", "ngram", "draft_tokens is 0, with a drafter"),
    ("graphs.rows", [4, 2], "graphs.rows[1] is 2 and should be from 5"),
    ("graphs.rows", list(range(1, 66)), "a list of at most 64"),
    ("graphs.rows", 5, "should be a list"),
    ("config", [], "config is an array"),
    ("config.model_type", "gpt2", 'no plan for model_type "gpt2"'),
    ("config.hidden_size", 1 << 40, "hidden_size"),
    ("config.num_hidden_layers", 1025, "num_hidden_layers is 1025"),
    ("config.kv_lora_rank", 500, "latent_dim is 500"),
    ("config.n_routed_experts", 5000, "n_routed_experts is 5000"),
    ("config.text_config", 5, "text_config is 5"),
]


class Hostile(PlanTest):
    def test_every_bad_input_is_refused_in_one_sentence(self):
        sound = profile_named("deepseek-v2-lite")
        self.plan(sound)
        for path, value, words in HOSTILE:
            with self.subTest(path=path, value=value):
                profile = copy.deepcopy(sound)
                set_at(profile, path, value)
                self.refuse("plan", self.write(profile), words=["profile.json", words]
                            if path.split(".")[0] in ("device", "notes") and
                            "compute" not in path else [words])

    def test_kda_layers_are_held_against_the_model(self):
        for layers, words in (([0], "layer 0 of 1 to 93"), ([94], "layer 94"),
                              ([5, 5], "layer 5 twice"), (["x"], 'layer "x"')):
            profile = profile_named("kimi-k3")
            profile["config"]["text_config"]["linear_attn_config"]["kda_layers"] = layers
            self.refuse("plan", self.write(profile), words=[words])

    def test_what_cannot_be_counted_is_refused(self):
        profile = profile_named("deepseek-v2-lite")
        config = profile["config"]
        config.update(hidden_size=1 << 20, num_hidden_layers=1024, n_routed_experts=4096,
                      moe_intermediate_size=1 << 19, n_shared_experts=0)
        self.refuse("plan", self.write(profile), words=["more bytes than can be counted"])
        profile = profile_named("deepseek-v2-lite")
        profile["serving"]["max_context_tokens"] = (1 << 31) - 1
        profile["serving"]["request_tokens"] = (1 << 31) - 1
        profile["config"]["max_position_embeddings"] = 1 << 40
        self.refuse("plan", self.write(profile), "--concurrency", 65536,
                    words=["65536 requests of 2147483647 tokens"])

    def test_what_is_no_json_object_is_refused(self):
        for text in (b"", b"[]", b"{", b"\xff\xfe", b'{"name": 1}', b'{"name": "x"} y',
                     b'{"name": "x", "name": "y"}', b"[" * 100000):
            self.refuse("plan", self.write(text), words=["profile.json"])
        self.refuse("plan", self.write(b" " * ((1 << 20) + 1)))
        self.refuse("plan", os.path.join(self.folder.name, "none.json"), words=["none.json"])
        self.refuse("plan", self.folder.name)

    def test_a_wrong_command_line_is_a_misuse(self):
        self.refuse("plan", status=2)
        self.refuse("plan", PROFILES[0], "--concurrency", 0, status=2)
        self.refuse("plan", PROFILES[0], "--concurrency", 65537, status=2)
        self.refuse("plan", PROFILES[0], "more", status=2)


if __name__ == "__main__":
    program.main()
