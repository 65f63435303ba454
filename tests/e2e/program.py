"""Runs the program under test, whose path is in MLA_PROGRAM."""
import json
import os
import subprocess
import sys
import unittest

PROGRAM = os.environ["MLA_PROGRAM"]
SOURCE = os.environ["MLA_SOURCE"]
DEMO = os.path.join(SOURCE, "models", "demo")
DATA = os.path.join(SOURCE, "tests", "data", "demo")


def run(*arguments, stdin=b""):
    """The finished process, its output in bytes."""
    command = [PROGRAM, *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=540)


class ProgramTest(unittest.TestCase):
    """A test case that can say what a run of the program has to be."""

    def succeed(self, *arguments, stdin=b""):
        done = run(*arguments, stdin=stdin)
        self.assertEqual(done.returncode, 0, f"mla {arguments}: {done.stderr.decode()}")
        self.assertEqual(done.stderr, b"")
        return done.stdout

    def answer(self, *arguments, stdin=b""):
        return json.loads(self.succeed(*arguments, stdin=stdin))

    def refuse(self, *arguments, stdin=b"", status=1, words=()):
        """Non-zero, nothing on stdout, and one line on stderr that has these words."""
        done = run(*arguments, stdin=stdin)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, status, f"mla {arguments}: {text}")
        self.assertEqual(done.stdout, b"")
        self.assertRegex(text, r"\Amla[^\n]*: [^\n]+\n\Z", "not exactly one line")
        for word in words:
            self.assertIn(str(word), text)


def demo(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        return json.load(file)


def memory_phases(test, *options):
    """The classes of each phase of `mla memory` on the demo, in order."""
    snapshots = test.answer("memory", DEMO, "--json", *options)
    return {snapshot["phase"]: snapshot["classes"] for snapshot in snapshots}


def main():
    unittest.main(argv=[sys.argv[0], "-v"])
