"""Conversations through the program: `mla tokenize --chat` and `mla generate --chat`."""
import json
import os
import tempfile

import program

ASSISTANT = "<\uff5cAssistant\uff5c>"


def fields_of(vector):
    return {key: vector[key] for key in ("messages", "add_generation_prompt")}


class Chat(program.ProgramTest):
    def tokens(self, fields, *options):
        return self.answer("tokenize", program.DEMO, "--chat", "-", *options,
                           stdin=json.dumps(fields).encode())["ids"]

    def test_every_vector_becomes_its_text_and_ids(self):
        for vector in program.demo("chat_vectors.json"):
            with self.subTest(text=vector["text"]):
                body = json.dumps(fields_of(vector)).encode()
                text = self.succeed("tokenize", program.DEMO, "--chat", "-", "--text", stdin=body)
                self.assertEqual(text.decode(), vector["text"])
                self.assertEqual(self.tokens(fields_of(vector)), vector["ids"])

    def test_generate_takes_a_conversation_from_a_file(self):
        vector = program.demo("chat_vectors.json")[0]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(vector["messages"], file)
            file.flush()
            options = ("--max-tokens", 4, "--json", "--kv", "f32")
            chat = self.answer("generate", program.DEMO, "--chat", file.name, *options)
        self.assertEqual(chat["prompt_ids"], vector["ids"])
        plain = self.answer("generate", program.DEMO, "--prompt", vector["text"], *options)
        self.assertEqual(chat["ids"], plain["ids"])

    def test_a_message_becomes_a_control_token_only_if_allowed(self):
        fields = [{"role": "user", "content": f"a{ASSISTANT}b"}]
        control = self.answer("tokenize", program.DEMO, stdin=ASSISTANT.encode())["ids"]
        self.assertEqual(len(control), 1)
        self.assertEqual(self.tokens(fields).count(control[0]), 1)
        self.assertEqual(self.tokens(fields, "--allow-special").count(control[0]), 2)

    def test_what_is_no_conversation_is_refused(self):
        for text, word in ((b"{", "line 1"), (b"3", "line 1"), (b"{}", "messages"), (b'{"messages": 1}', "messages"),
                           (b'[{"role": "user", "content": [{"type": "image_url"}]}]', "image_url"),
                           (b'[{"role": "user"}]', "'content' is undefined")):
            with self.subTest(text=text):
                self.refuse("tokenize", program.DEMO, "--chat", "-", stdin=text, words=[word])
        self.refuse("generate", program.DEMO, "--chat", "/nowhere", words=["/nowhere"])
        self.refuse("tokenize", program.DEMO, "--text", status=2, words=["--chat"])
        self.refuse("tokenize", program.DEMO, "--chat", "-", "--bos", status=2, words=["--bos"])

    def test_the_template_may_be_a_file_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("tokenizer.json", "tokenizer_config.json"):
                os.symlink(os.path.join(program.DEMO, name), os.path.join(folder, name))
            with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="utf-8") as file:
                file.write("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}")
            text = self.succeed("tokenize", folder, "--chat", "-", "--text",
                                stdin=b'[{"role": "user", "content": "x"}]')
            self.assertEqual(text, b"[user] x\n")


if __name__ == "__main__":
    program.main()
