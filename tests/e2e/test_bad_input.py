"""Bad models and bad prompts: each is one sentence and a status, never anything else."""
import json
import os
import shutil
import struct
import subprocess
import tempfile

import program


class BadInput(program.ProgramTest):
    def setUp(self):
        self.room = tempfile.TemporaryDirectory()
        self.addCleanup(self.room.cleanup)
        self.model = os.path.join(self.room.name, "model")
        shutil.copytree(program.DEMO, self.model, copy_function=shutil.copyfile)

    def path(self, name):
        return os.path.join(self.model, name)

    def refuse_model(self, *words):
        self.refuse("generate", self.model, "--prompt", "a", "--max-tokens", "1", "--json",
                    words=words)
        self.refuse("memory", self.model, "--json", words=words)

    def edit_json(self, name, change):
        with open(self.path(name), encoding="utf-8") as file:
            value = json.load(file)
        change(value)
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(value, file)

    def edit_header(self, change):
        path = self.path("model.safetensors")
        with open(path, "rb") as file:
            length = struct.unpack("<Q", file.read(8))[0]
            header, data = json.loads(file.read(length)), file.read()
        change(header)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data)

    def test_a_model_directory_that_is_a_file(self):
        self.refuse("generate", self.path("config.json"), "--prompt", "a", words=["config.json"])

    def test_a_model_directory_that_is_not_there(self):
        self.refuse("generate", self.room.name + "/none", "--prompt", "a", words=["none"])

    def test_broken_json(self):
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            with self.subTest(name):
                shutil.copyfile(os.path.join(program.DEMO, name), self.path(name))
                with open(self.path(name), "r+", encoding="utf-8") as file:
                    file.truncate(90)
                self.refuse_model(name)
                shutil.copyfile(os.path.join(program.DEMO, name), self.path(name))

    def test_a_missing_file(self):
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            with self.subTest(name):
                os.rename(self.path(name), self.path("away"))
                self.refuse_model(name.split(".")[-1])
                os.rename(self.path("away"), self.path(name))

    def test_another_architecture(self):
        self.edit_json("config.json", lambda c: c.update(model_type="llama",
                                                         architectures=["LlamaForCausalLM"]))
        self.refuse_model("lama")

    def test_truncated_weights(self):
        with open(self.path("model.safetensors"), "r+b") as file:
            file.truncate(os.path.getsize(file.name) - 1)
        self.refuse_model("model.safetensors")

    def test_a_huge_header(self):
        with open(self.path("model.safetensors"), "r+b") as file:
            file.write(struct.pack("<Q", 2**62))
        self.refuse_model("model.safetensors")

    def test_overlapping_tensors(self):
        def change(header):
            names = [name for name in header if name != "__metadata__"]
            twins = [n for n in names if header[n]["shape"] == header[names[0]]["shape"]]
            header[twins[-1]]["data_offsets"] = header[twins[0]]["data_offsets"]
        self.edit_header(change)
        self.refuse_model("overlaps")

    def test_a_wrong_dtype(self):
        def change(header):
            header["model.norm.weight"]["dtype"] = "I16"
        self.edit_header(change)
        self.refuse_model("model.norm.weight")

    def test_a_missing_and_a_left_over_tensor(self):
        def rename(header):
            header["model.norm.scale"] = header.pop("model.norm.weight")
        self.edit_header(rename)
        self.refuse_model("model.norm.")

    def test_a_prompt_that_is_not_utf8(self):
        with open(self.path("prompt"), "wb") as file:
            file.write(b"good\xff")
        self.refuse("generate", self.model, "--prompt-file", self.path("prompt"), "--json",
                    words=["UTF-8", 4])

    def test_a_context_too_long(self):
        prompt = "int x;\n" * 2000
        self.refuse("generate", self.model, "--prompt", prompt, "--json", words=[2048])
        self.refuse("generate", self.model, "--prompt", "int", "--max-tokens", 2048, "--json",
                    words=[2048, 2050])

    def test_an_empty_prompt_is_bos_alone(self):
        answer = self.answer("generate", self.model, "--prompt", "", "--max-tokens", "1", "--json")
        self.assertEqual(answer["prompt_ids"], [0])

    def test_a_prompt_file_that_is_not_there(self):
        self.refuse("generate", self.model, "--prompt-file", "/nowhere", words=["/nowhere"])

    def test_a_file_that_is_there_and_cannot_be_opened_is_not_passed_over(self):
        for name in ("tokenizer_config.json", "generation_config.json", "model.safetensors"):
            with self.subTest(name):
                os.rename(self.path(name), self.path("away"))
                os.symlink(name, self.path(name))
                self.refuse_model(name, "symbolic links")
                os.remove(self.path(name))
                os.symlink("nowhere", self.path(name))
                self.refuse_model(name, "No such file")
                os.replace(self.path("away"), self.path(name))

    def test_a_text_without_an_end(self):
        for command in (["score", self.model, "/dev/zero"],
                        ["generate", self.model, "--prompt-file", "/dev/zero"]):
            self.refuse(*command, words=["/dev/zero", 2**28])

    def test_weights_that_are_cut_short_while_they_are_used(self):
        command = [program.PROGRAM, "generate", self.model, "--prompt", "int", "--seed", "1",
                   "--temperature", "9"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.read(1)
            os.truncate(self.path("model.safetensors"), 4096)
            errors = process.communicate(timeout=120)[1].decode()
        self.assertEqual(process.returncode, 1, errors)
        self.assertRegex(errors, r"\Amla: a file became shorter [^\n]+\n\Z")


if __name__ == "__main__":
    program.main()
