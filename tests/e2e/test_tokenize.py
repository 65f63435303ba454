"""`mla tokenize` against the reference's vectors, both ways."""
import json

import program


class Tokenize(program.ProgramTest):
    def encode(self, text, *options):
        return self.answer("tokenize", program.DEMO, *options, stdin=text.encode())["ids"]

    def decode(self, text):
        return self.succeed("tokenize", program.DEMO, "--decode", stdin=text.encode())

    def test_every_vector_becomes_its_ids(self):
        for vector in program.demo("tokenizer_vectors.json")["encode"]:
            with self.subTest(text=vector["text"]):
                self.assertEqual(self.encode(vector["text"]), vector["ids"])

    def test_every_vector_becomes_its_text(self):
        for vector in program.demo("tokenizer_vectors.json")["decode"]:
            with self.subTest(ids=vector["ids"]):
                raw = bytes.fromhex(vector["bytes_hex"])
                self.assertEqual(self.decode(json.dumps({"ids": vector["ids"]})),
                                 raw.decode(errors="replace").encode())

    def test_special_tokens_of_a_chat_are_parsed(self):
        for vector in program.demo("chat_vectors.json"):
            with self.subTest(text=vector["text"]):
                self.assertEqual(self.encode(vector["text"]), vector["ids"])

    def test_bos_is_added_once(self):
        plain = self.encode("Hello")
        self.assertEqual(self.encode("Hello", "--bos"), [0] + plain)
        bos = self.decode("0").decode()
        self.assertEqual(self.encode(bos + "Hello", "--bos"), [0] + plain)

    def test_nothing_is_no_ids_and_back(self):
        self.assertEqual(self.encode(""), [])
        self.assertEqual(self.decode('{"ids": []}'), b"")
        self.assertEqual(self.decode(""), b"")

    def test_ids_come_as_an_object_an_array_or_numbers(self):
        wanted = self.decode('{"ids": [270, 78, 309]}')
        for text in ("[270, 78, 309]", "270 78 309", "270,78,309\n", " 270\n78\n309"):
            self.assertEqual(self.decode(text), wanted)

    def test_a_character_over_several_tokens_is_whole(self):
        text = "na\u00efve \u4f60\u597d \U0001f600"
        self.assertEqual(self.decode(json.dumps({"ids": self.encode(text)})), text.encode())

    def test_what_is_no_text_and_no_ids_is_refused(self):
        demo = program.DEMO
        self.refuse("tokenize", demo, stdin=b"abc\xffdef", words=["3"])
        for text in (b"270 x", b"-1", b"4294967296", b"{", b'{"ids": ["a"]}', b'{"a": 1}',
                     b"[1.5]", b'{"ids": [-1]}', b"99999999"):
            with self.subTest(text=text):
                self.refuse("tokenize", demo, "--decode", stdin=text)


if __name__ == "__main__":
    program.main()
