"""While the demo scores a window, the process holds what the ledger says, within 10 % and
16 MiB."""
import json
import os
import subprocess
import time

import program

ALLOWED = (0.10, 16 * 2**20)
PAGE = os.sysconf("SC_PAGESIZE")


def resident(pid):
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def score(*options):
    """The answer, and the most that the process held while it ran."""
    path = os.path.join(program.DATA, "score.txt")
    command = [program.PROGRAM, "score", program.DEMO, path, "--json", "--max-windows", "1",
               *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        most = 0
        while process.poll() is None:
            most = max(most, resident(process.pid))
            time.sleep(0.002)
        return json.loads(process.stdout.read()), most


class ProcessMemory(program.ProgramTest):
    def test_resident_memory_agrees_with_the_ledger(self):
        for kv_format in ("f32", "bf16", "fp8"):
            with self.subTest(kv_format):
                answer, most = score("--kv", kv_format)
                named = sum(cell["now"] for name, cell in answer["memory"].items()
                            if name != "other")
                print(f"{kv_format}: the process held {most} bytes, the ledger names {named}",
                      flush=True)
                self.assertGreater(most, 0)
                self.assertLessEqual(abs(most - named), ALLOWED[0] * named + ALLOWED[1])


if __name__ == "__main__":
    program.main()
