"""`mla qualify attention`: every case of the matrix by its name, what the receipt holds, and
that it is there whole or not at all."""
import json
import os
import re
import tempfile

import program

HEADER = ["commit", "device", "driver", "compiler", "passed", "prepare", "ledger", "cases",
          "not_shown"]
TRANSIENT = ("session", "plan", "binding", "graph", "kv", "activations")


def names():
    return program.run("qualify", "attention", "--list").stdout.decode().splitlines()


class Qualify(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "receipt.json")
        cls.done = program.run("qualify", "attention", "--device", "cpu", "--out", cls.path)
        with open(cls.path, encoding="utf-8") as file:
            cls.receipt = json.load(file)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def high_bytes(self):
        """Less than 4 GiB only where the receipt says so."""
        for sentence in self.receipt["not_shown"]:
            if found := re.search(r"beyond 4 GiB: .* begin at ([0-9]+)", sentence):
                self.assertLess(self.receipt["ledger"]["device_free_bytes_before"], 2 ** 33)
                return int(found[1])
        return 2 ** 32

    def test_the_cpu_passes_all_18_cases(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout.decode())
        self.assertEqual(self.done.stderr, b"")
        self.assertEqual(list(self.receipt), HEADER)
        self.assertIs(self.receipt["passed"], True)
        self.assertEqual(len(self.receipt["cases"]), 18)
        for case in self.receipt["cases"]:
            self.assertIs(case["passed"], True, case["name"])
            self.assertNotIn("failure", case)
        self.assertEqual(self.done.stdout.decode().splitlines()[-1], "18 cases passed")

    def test_names_are_unique_and_those_of_the_list(self):
        self.assertEqual([case["name"] for case in self.receipt["cases"]], names())
        self.assertEqual(len(set(names())), 18)

    def test_the_page_of_receipts_lists_them(self):
        path = os.path.join(program.SOURCE, "docs", "receipts", "README.md")
        with open(path, encoding="utf-8") as file:
            listed = re.findall(r"^\| `([^`]+ dcp[0-9]+ [^`]+)` \|", file.read(), re.M)
        self.assertEqual(listed, names())

    def test_a_kept_receipt_has_these_cases_and_they_passed(self):
        folder = os.path.join(program.SOURCE, "docs", "receipts")
        for file in os.listdir(folder):
            if file.endswith("-qualify-attention.json"):
                with open(os.path.join(folder, file), encoding="utf-8") as kept:
                    receipt = json.load(kept)
                self.assertEqual(list(receipt), HEADER, file)
                self.assertEqual([case["name"] for case in receipt["cases"]], names(), file)
                self.assertTrue(all(case["passed"] for case in receipt["cases"]), file)
                self.assertIs(receipt["passed"], True, file)
                self.assertNotIn("dirty", receipt["commit"], file)

    def test_errors_are_measured_and_within_their_bounds(self):
        for case in self.receipt["cases"]:
            self.assertGreater(case["error"], 0, case["name"])
            self.assertLessEqual(case["error"], case["bound"])
            self.assertAlmostEqual(case["error"] / case["bound"] / case["share"], 1, delta=1e-4)
            for size in ("ordinary", "large"):
                self.assertGreater(case[size]["values"], 33 * 6 * 512)
                self.assertEqual(case[size]["wrong"], 0)
                self.assertLessEqual(case[size]["lse"]["share"], 1)
            shares = [case[size]["output"]["share"] for size in ("ordinary", "large")]
            self.assertEqual(case["share"], max(shares))

    def test_each_case_is_what_its_name_says(self):
        for case in self.receipt["cases"]:
            formats, ranks, kind = case["name"].split()
            words = {"bf16": " bf16 q:bf16 ", "fp8": " fp8 q:e4m3 ",
                     "bf16-on-fp8": " fp8 q:bf16 "}[formats]
            row_bytes = 1152 if formats == "bf16" else 576
            plans = [case["plan"]] + ([case["shard_plan"]] if ranks == "dcp16" else [])
            for plan in plans:
                self.assertIn(words, plan)
                self.assertIn(" h96 " if ranks == "dcp16" else " h6 ", plan)
                padding = 192 * row_bytes // 576 if kind == "padded" else 0
                self.assertIn(f" s{64 * row_bytes + padding} ", plan)
            self.assertEqual("o:f32" in case["plan"], kind == "f32-replay")
            if kind == "high-pages":
                self.assertGreater(case["pool_reach_bytes"], self.high_bytes())
            else:
                self.assertLess(case["pool_reach_bytes"], 2 ** 24)
            if ranks == "dcp16":
                self.assertIn("o:f32", case["shard_plan"])
                self.assertLessEqual(case["from_one_device"]["share"], 1)
            runs = 3 * 2 + 5 if kind == "f32-replay" else 4
            self.assertEqual(case["runs"], 2 * runs * (1 + 32 * (ranks == "dcp16")))

    def test_the_ledger_is_empty_before_and_after_and_not_during(self):
        ledger = self.receipt["ledger"]
        self.assertIs(ledger["balanced"], True)
        self.assertGreater(ledger["during"]["classes"]["session"]["now"], 0)
        for name in TRANSIENT:
            self.assertEqual(ledger["before"]["classes"][name]["now"], 0, name)
            self.assertEqual(ledger["after"]["classes"][name]["now"], 0, name)
            self.assertGreater(ledger["after"]["classes"][name]["peak"], 0, name)
        self.assertGreater(ledger["after"]["classes"]["kv"]["peak"], self.high_bytes())

    def test_it_says_what_made_it_and_what_it_does_not_show(self):
        prepare = self.receipt["prepare"]
        self.assertEqual(prepare["plans"], 27)
        self.assertEqual(prepare["plans_compiled"] + prepare["plans_from_cache"], 27)
        self.assertEqual(self.receipt["driver"], "none")
        self.assertTrue(any("GPU" in sentence for sentence in self.receipt["not_shown"]))

    def test_nothing_is_left_beside_the_receipt(self):
        self.assertEqual(os.listdir(self.folder.name), ["receipt.json"])

    def test_a_place_that_cannot_be_written_is_refused_before_the_work(self):
        path = os.path.join(self.folder.name, "missing", "receipt.json")
        self.refuse("qualify", "attention", "--out", path, words=[path])

    def test_a_wrong_command_line_is_refused(self):
        self.refuse("qualify", status=2, words=["missing"])
        self.refuse("qualify", "model", status=2, words=["model"])
        self.refuse("qualify", "attention", "--device", "tpu", status=2, words=["tpu"])


if __name__ == "__main__":
    program.main()
