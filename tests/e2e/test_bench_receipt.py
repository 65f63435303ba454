"""The bench that is kept in docs/receipts: whole, and what tools/bench-table makes of it. Whether
the numbers are good is not tested."""
import json
import os
import subprocess
import sys
import unittest

import program

RECEIPT = os.path.join(program.SOURCE, "docs", "receipts", "h200-bench-attention.json")
PEERS = os.path.join(program.SOURCE, "bench", "peers-h200.json")
FORMATS = ["bf16", "fp8", "fp8_g128"]


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class BenchReceipt(unittest.TestCase):
    def table(self, receipt):
        tool = os.path.join(program.SOURCE, "tools", "bench-table")
        run = subprocess.run([sys.executable, "-B", tool, receipt], capture_output=True, check=True)
        return run.stdout.decode().splitlines()

    def test_it_has_every_shape_in_every_format_once(self):
        receipt = read(RECEIPT)
        self.assertNotIn("dirty", receipt["commit"])
        self.assertIn("H200", receipt["device"])
        for limit in ("read_gbps", "tensor_tflops", "launch_us", "node_us"):
            self.assertGreater(receipt["limits"][limit], 0)
        rows = [(row["name"], row["kv_format"]) for row in receipt["rows"]]
        names = [row["name"] for row in read(PEERS)["rows"]]
        self.assertEqual(sorted(rows), sorted((name, f) for name in names for f in FORMATS))

    def test_its_numbers_belong_together(self):
        receipt = read(RECEIPT)
        for row in receipt["rows"]:
            self.assertGreater(row["us"], 0)
            self.assertAlmostEqual(row["roof_us"] / row["us"], row["share"], delta=2e-2)
            self.assertLess(row["share"], 1.05)
            self.assertLess(row["gbps"], 1.05 * receipt["limits"]["read_gbps"])

    def test_the_table_has_a_line_a_shape(self):
        lines = self.table(RECEIPT)
        names = [row["name"] for row in read(PEERS)["rows"]]
        self.assertEqual([line.split(" | ")[0] for line in lines[2:2 + len(names)]],
                         ["| " + name for name in names])
        self.assertIn(f"of {len(names)} shapes", lines[-1])


if __name__ == "__main__":
    program.main()
