"""`mla attend` against double precision, for every KV format and instruction set."""
import os
import tempfile

import numpy as np

import attend_case
import program

SEED = int(os.environ.get("MLA_TEST_SEED", "20260731"))
FORMATS = ["f32", "bf16", "fp8", "fp8_g128"]
BOUND = 4e-6  # of sum(p |v|): f32 steps, see docs/numerics.md for the sharp one
LSE_BOUND = 1e-5


def isas():
    with tempfile.TemporaryDirectory() as directory:
        attend_case.Case(np.random.default_rng(0), [1], [1]).write(directory)
        has_avx2 = program.run("attend", directory, "--isa", "avx2").returncode == 0
    if not has_avx2 and "avx2" in os.environ.get("MLA_REQUIRE", ""):
        raise SystemExit("MLA_REQUIRE names avx2, which this machine does not run")
    return ["c", "avx2"] if has_avx2 else ["c"]


ISAS = isas()


class Attend(program.ProgramTest):
    def setUp(self):
        print(f"MLA_TEST_SEED={SEED}", flush=True)
        self.rng = np.random.default_rng(SEED)

    def attend(self, case, *options):
        with tempfile.TemporaryDirectory() as directory:
            case.write(directory)
            self.assertEqual(self.succeed("attend", directory, *options), b"")
            return (np.load(os.path.join(directory, "out.npy")),
                    np.load(os.path.join(directory, "lse.npy")))

    def check(self, case, out, lse):
        want_out, want_lse, size = case.expected()
        self.assertEqual((out.dtype, lse.dtype), (np.float32, np.float32))
        self.assertEqual((out.shape, lse.shape), (want_out.shape, want_lse.shape))
        empty = np.isneginf(want_lse)
        np.testing.assert_array_equal(np.isneginf(lse), empty)
        np.testing.assert_array_equal(out[empty], 0)
        self.assertTrue(np.isfinite(out).all())
        worst = np.max(np.abs(out - want_out) - BOUND * size, initial=-1)
        self.assertLessEqual(worst, 0, f"{case.json}")
        errors = np.abs(lse[~empty] - want_lse[~empty])
        self.assertLessEqual(np.max(errors / (1 + np.abs(want_lse[~empty])), initial=0),
                             LSE_BOUND, f"{case.json}")

    def check_everywhere(self, make):
        for kv_format in FORMATS:
            case = make(kv_format)
            for isa in ISAS:
                with self.subTest(kv_format=kv_format, isa=isa):
                    self.check(case, *self.attend(case, "--isa", isa))

    def test_decode_of_ragged_lengths_with_garbage_past_them(self):
        lens = [1, 0, 17, 130, -5, 64, 200]
        self.check_everywhere(
            lambda kv: attend_case.Case(self.rng, lens, [1] * len(lens), kv_format=kv))

    def test_extend_of_ragged_rows_under_the_causal_mask(self):
        lens, rows = [5, 33, 3, 90, 0], [5, 2, 6, 0, 1]
        self.check_everywhere(
            lambda kv: attend_case.Case(self.rng, lens, rows, heads=6, page=48, kv_format=kv))

    def test_windows_without_and_with_the_causal_mask(self):
        for causal in (False, True):
            self.check_everywhere(
                lambda kv: attend_case.Case(self.rng, [70, 20], [3, 1], kv_format=kv, window=19,
                                            causal=causal))

    def test_one_token_a_page_and_another_geometry(self):
        self.check_everywhere(
            lambda kv: attend_case.Case(self.rng, [70, 9], [2, 1], page=1, latent=256, rope=32,
                                        kv_format=kv))

    def test_every_query_type(self):
        for dtype in ("f32", "bf16", "e4m3"):
            self.check_everywhere(
                lambda kv: attend_case.Case(self.rng, [40, 3], [1, 1], kv_format=kv,
                                            query_dtype=dtype))

    def test_page_numbers_outside_the_pool_mask_their_tokens_only(self):
        def make(kv_format):
            case = attend_case.Case(self.rng, [50, 16], [1, 1], kv_format=kv_format)
            case.lose_page(0, 1, 2**31 - 1)
            case.lose_page(1, 0, -1)
            return case
        self.check_everywhere(make)

    def test_no_query_rows_at_all(self):
        case = attend_case.Case(self.rng, [5], [0])
        out, lse = self.attend(case)
        self.assertEqual((out.shape, lse.shape), ((0, 4, 512), (0, 4)))

    def test_bits_do_not_depend_on_threads(self):
        case = attend_case.Case(self.rng, [700, 3], [2, 3], heads=5, kv_format="bf16")
        one, all_of_them = self.attend(case, "--threads", 1), self.attend(case)
        np.testing.assert_array_equal(one[0], all_of_them[0])
        np.testing.assert_array_equal(one[1], all_of_them[1])

    def refuse_case(self, change, *words):
        case = attend_case.Case(self.rng, [5], [1], kv_format="fp8")
        with tempfile.TemporaryDirectory() as directory:
            case.write(directory)
            change(case, directory)
            self.refuse("attend", directory, words=words)
            self.assertFalse(os.path.exists(os.path.join(directory, "out.npy")))

    def test_bad_files_are_refused_by_name(self):
        def rewrite(name, array):
            return lambda _, d: np.save(os.path.join(d, name), array)

        def remove(name):
            return lambda _, d: os.remove(os.path.join(d, name))

        def set_key(key, value):
            def change(case, directory):
                case.json[key] = value
                case.write(directory)
            return change

        def write_json(text):
            def change(_, directory):
                with open(os.path.join(directory, "case.json"), "w", encoding="utf-8") as file:
                    file.write(text)
            return change

        self.refuse_case(remove("q.npy"), "q.npy")
        self.refuse_case(remove("kv_scale.npy"), "kv_scale.npy")
        self.refuse_case(rewrite("kv_scale.npy", np.zeros(1, np.float32)), "kv_scale.npy", 0)
        self.refuse_case(rewrite("q.npy", np.zeros((1, 4, 576))), "q.npy", "<f8")
        self.refuse_case(rewrite("q.npy", np.zeros((1, 5, 576), np.float32)), "q.npy", 5, 4)
        self.refuse_case(rewrite("query_starts.npy", np.array([0, 2], np.int32)), 2, 1)
        self.refuse_case(rewrite("context_lens.npy", np.array([0, 2], np.int32)), 2, 1)
        self.refuse_case(rewrite("context_lens.npy", np.zeros(1, np.float32)), "int32")
        self.refuse_case(set_key("kv_format", "int4"), "int4")
        self.refuse_case(set_key("heads", 0), "heads", 0)
        self.refuse_case(set_key("causal", 1), "causal")
        self.refuse_case(set_key("softmax_scale", 0), "softmax_scale")
        self.refuse_case(set_key("page_tokens", 17), 17)
        self.refuse_case(write_json("{"), "case.json")
        self.refuse_case(write_json("{}"), "case.json", "heads")

    def test_a_pipe_is_no_array_and_is_not_waited_for(self):
        def pipe(_, directory):
            os.remove(os.path.join(directory, "kv.npy"))
            os.mkfifo(os.path.join(directory, "kv.npy"))
        self.refuse_case(pipe, "kv.npy")

    def test_bad_options_are_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            attend_case.Case(self.rng, [5], [1]).write(directory)
            self.refuse("attend", directory, "--isa", "sse", status=2, words=["sse"])
            self.refuse("attend", directory, "--device", "tpu", status=2, words=["tpu"])
            self.refuse("attend", directory, "--threads", "0", status=2, words=["0"])
            self.refuse("attend", directory, "--device", "cuda", words=["CUDA"])
            self.refuse("attend", directory + "/nowhere", words=["nowhere"])
            self.refuse("attend", status=2, words=["DIR"])


if __name__ == "__main__":
    program.main()
