"""`mla bench`: its keys and that its numbers belong together. How fast is not tested here."""
import program

KEYS = ["name", "heads", "rows", "requests", "context", "kv_format", "us", "gflops", "gbps",
        "share"]
FORMATS = {"f32", "bf16", "fp8", "fp8_g128"}


class Bench(program.ProgramTest):
    def bench(self, *arguments):
        report = self.answer("bench", *arguments, "--rounds", 1, "--json")
        self.assertEqual(list(report), ["commit", "device", "limits", "rows"])
        fma = report["limits"]["fma_gflops"]
        self.assertGreater(fma, 0)
        self.assertGreater(report["limits"]["read_gbps"], 0)
        for row in report["rows"]:
            self.assertEqual(list(row)[:len(KEYS)], KEYS)
            self.assertGreater(row["us"], 0)
            self.assertAlmostEqual(row["share"], row["gflops"] / fma, delta=2e-3)
        return report["rows"]

    def test_attention_has_the_promised_rows(self):
        rows = self.bench("attention")
        for heads in (16, 128):
            found = {row["kv_format"] for row in rows if (row["heads"], row["rows"],
                     row["requests"], row["context"]) == (heads, 1, 1, 4096)}
            self.assertEqual(found, FORMATS)

    def test_attention_counts_its_work(self):
        for row in self.bench("attention", "--threads", 1):
            if row["rows"] == 1:
                flops = row["requests"] * row["heads"] * 4096 * (2 * 576 + 2 * 512)
                self.assertAlmostEqual(row["gflops"] * row["us"] * 1e3 / flops, 1, delta=1e-2)

    def test_model_has_prefill_and_decode_for_1_and_8(self):
        rows = self.bench("model", program.DEMO)
        self.assertEqual({(row["name"], row["requests"]) for row in rows},
                         {("prefill", 1), ("prefill", 8), ("decode", 1), ("decode", 8)})
        for row in rows:
            tokens = row["requests"] * row["rows"]
            self.assertAlmostEqual(row["tokens_per_s"] * row["us"] * 1e-6 / tokens, 1, delta=1e-2)

    def test_text_is_a_table(self):
        lines = self.succeed("bench", "model", program.DEMO, "--rounds", 1).decode().splitlines()
        self.assertEqual(len(lines), 4 + 4)
        self.assertIn("tokens/s", lines[3])


if __name__ == "__main__":
    program.main()
