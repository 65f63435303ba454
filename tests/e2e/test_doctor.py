"""`mla doctor`, `mla help` and the program's manners on its command line."""
import os
import unittest

import program


class Doctor(program.ProgramTest):
    def test_json_has_every_part(self):
        found = self.answer("doctor", "--json")
        self.assertEqual(list(found), ["version", "commit", "build", "cpu", "cuda", "topology",
                                       "memory", "huge_pages", "libraries"])
        if not found["libraries"]["libcuda"]:
            self.assertIn("libcuda.so.1", found["cuda"]["none"])
        self.assertIn("c", found["cpu"]["isa"])
        self.assertEqual(found["cpu"]["allowed_cpus"], len(os.sched_getaffinity(0)))
        self.assertEqual(set(found["libraries"]), {"libcuda", "libnvrtc", "libnccl", "libmpi"})
        self.assertTrue(all(isinstance(v, bool) for v in found["libraries"].values()))
        self.assertIsInstance(found["topology"]["hwloc"], bool)

    def test_isa_is_what_the_kernel_says(self):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next(line for line in file if line.startswith("flags")).split()
        isa = self.answer("doctor", "--json")["cpu"]["isa"]
        self.assertEqual("avx2" in isa, {"avx2", "fma", "f16c"} <= set(flags))

    def test_memory_is_what_the_kernel_says(self):
        with open("/proc/meminfo", encoding="utf-8") as file:
            total = int(file.readline().split()[1]) * 1024
        self.assertEqual(self.answer("doctor", "--json")["memory"]["total_bytes"], total)

    def test_text_names_the_same_parts(self):
        text = self.succeed("doctor").decode()
        for word in ("version", "cpu", "topology", "hwloc", "libcuda"):
            self.assertIn(word, text)
        self.assertNotRegex(text, r"(?m)[ \t]$")
        self.assertRegex(text, r"(?m)^memory\n  total  +[0-9.]+ [KMGT]iB$")


class CommandLine(program.ProgramTest):
    def test_help_lists_every_subcommand(self):
        text = self.succeed("help").decode()
        for name in ("generate", "score", "tokenize", "attend", "memory", "doctor", "bench"):
            self.assertIn(f"\n  {name} ", text)
            options = self.succeed(name, "--help")
            self.assertIn("Usage: mla " + name, options.decode())
            self.assertEqual(self.succeed("help", name), options)
            self.assertEqual(self.succeed(name, "-h"), options)

    def test_version_is_one_line(self):
        self.assertRegex(self.succeed("--version").decode(), r"\Amla \d+\.\d+\.\d+ \(.+\)\n\Z")

    def test_misuse_is_one_line_and_status_2(self):
        demo = program.DEMO
        self.refuse(status=2, words=["help"])
        self.refuse("frobnicate", status=2, words=["frobnicate"])
        self.refuse("help", "frobnicate", status=2, words=["frobnicate"])
        self.refuse("doctor", "surplus", status=2, words=["surplus"])
        self.refuse("generate", status=2, words=["MODEL"])
        self.refuse("generate", demo, status=2, words=["--prompt"])
        self.refuse("generate", demo, "--frobnicate", status=2, words=["frobnicate"])
        self.refuse("generate", demo, "--prompt", status=2, words=["prompt"])
        self.refuse("score", demo, status=2, words=["FILE"])
        self.refuse("bench", status=2, words=["attention"])
        self.refuse("bench", "weather", status=2, words=["weather"])

    def test_values_of_options_are_checked(self):
        bad = [("--kv", "int4"), ("--threads", "0"), ("--threads", "two"), ("--max-tokens", "0"),
               ("--max-tokens", "-3"), ("--temperature", "-1"), ("--temperature", "nan"),
               ("--top-p", "1.5"), ("--top-k", "-1"), ("--min-p", "x"), ("--seed", "1e3")]
        for option, value in bad:
            with self.subTest(option=option, value=value):
                self.refuse("generate", program.DEMO, "--prompt", "a", "--json",
                            f"{option}={value}", status=2, words=[option, value])

    def test_a_newline_in_a_value_stays_on_the_line(self):
        self.refuse("generate", program.DEMO, "--prompt", "a", "--kv", "a\nb", status=2)


if __name__ == "__main__":
    program.main()
