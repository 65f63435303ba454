"""Output that cannot be written is one line and a failure, whatever was asked for."""
import os
import subprocess

import program

GENERATE = ["generate", program.DEMO, "--prompt", "int"]
COMMANDS = [
    ["help"], ["help", "score"], ["--version"], ["generate", "--help"], ["doctor"],
    ["doctor", "--json"], ["tokenize", program.DEMO], ["memory", program.DEMO], GENERATE,
    [*GENERATE, "--max-tokens", "3", "--json"],
]


class Output(program.ProgramTest):
    def check(self, command, stdout, reason, **options):
        done = subprocess.run([program.PROGRAM, *command], stdin=subprocess.DEVNULL,
                              stdout=stdout, stderr=subprocess.PIPE, timeout=120, **options)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 1, text)
        self.assertRegex(text, rf"\Amla[^\n:]*: standard output cannot be written: {reason}\n\Z")

    def test_a_full_disk_is_said(self):
        for command in COMMANDS:
            with self.subTest(command), open("/dev/full", "wb") as full:
                self.check(command, full, "No space left on device")

    def test_a_reader_that_left_is_said(self):
        for command in COMMANDS:
            with self.subTest(command):
                reading, writing = os.pipe()
                os.close(reading)
                with os.fdopen(writing, "wb") as pipe:
                    self.check(command, pipe, "Broken pipe")

    def test_no_output_at_all_is_said(self):
        for command in COMMANDS:
            with self.subTest(command):
                self.check(command, None, "Bad file descriptor", preexec_fn=lambda: os.close(1))


if __name__ == "__main__":
    program.main()
