"""What people type: curl against `mla serve`."""
import json
import os
import subprocess
import tempfile

import serving

JSON = ("-H", "Content-Type: application/json")


class Curl(serving.ServeTest):
    options = ("--kv-bytes", "64M")

    def curl(self, path, *arguments, status=0):
        """The body, or bodies."""
        url = f"http://127.0.0.1:{self.server.port}{path}"
        done = subprocess.run(["curl", "-sS", "--max-time", "60", *arguments, url], capture_output=True, timeout=120,
                              check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout.decode()

    def chat(self, *arguments, **more):
        return self.curl("/v1/chat/completions", *JSON, "-d", json.dumps(serving.chat(**more)), *arguments)

    def setUp(self):
        self.text = json.loads(self.chat())["choices"][0]["message"]["content"]

    def test_simple_gets(self):
        self.assertEqual(json.loads(self.curl("/v1/models"))["data"][0]["id"], "demo")
        self.assertIn("mla_requests_running 0", self.curl("/metrics"))
        self.assertIn("<html", self.curl("/"))
        self.curl("/nothing", "--fail", status=22)
        self.assertIn("HTTP/1.1 200 OK\r\n", self.curl("/health", "-I"))

    def test_a_stream_without_a_buffer(self):
        lines = self.chat("-N", stream=True).split("\n\n")
        self.assertEqual(lines[-2:], ["data: [DONE]", ""])
        pieces = [json.loads(line[6:])["choices"][0]["delta"].get("content") or "" for line in lines[:-2]]
        self.assertEqual("".join(pieces), self.text)

    def test_http_1_0(self):
        told = self.chat("--http1.0", "-i")
        self.assertNotIn("chunked", told.lower())
        self.assertEqual(json.loads(told.split("\r\n\r\n")[1])["choices"][0]["message"]["content"], self.text)
        told = self.chat("--http1.0", "-i", "-N", stream=True)
        self.assertNotIn("chunked", told.lower())
        self.assertTrue(told.endswith("data: [DONE]\n\n"))

    def test_a_large_body_waits_to_be_asked_for(self):
        with tempfile.NamedTemporaryFile("w") as body:
            json.dump({"prompt": "x " * 300, "max_tokens": 2, "metadata": {"pad": "y" * 3_000_000}}, body)
            body.flush()
            for ask in (("-H", "Expect: 100-continue"), ("-H", "Expect:"), ("-H", "Transfer-Encoding: chunked")):
                told = self.curl("/v1/completions", *JSON, "-i", *ask, "--data-binary", f"@{body.name}")
                self.assertEqual("100 Continue" in told, ask[1] != "Expect:", told[:300])
                self.assertEqual(json.loads(told.split("\r\n\r\n")[-1])["usage"]["completion_tokens"], 2)

    def test_a_body_too_large_is_refused_before_it_is_sent(self):
        with tempfile.NamedTemporaryFile() as body:
            os.truncate(body.name, 32 << 20)
            told = self.curl("/v1/completions", *JSON, "-i", "-w", "%{size_upload}", "-H", "Expect: 100-continue",
                             "--data-binary", f"@{body.name}")
        self.assertIn("HTTP/1.1 413 ", told)
        self.assertTrue(told.endswith("}0"), told)

    def test_several_on_one_connection(self):
        url = f"http://127.0.0.1:{self.server.port}"
        body = json.dumps(serving.chat())
        stream = json.dumps(serving.chat(stream=True))
        used = ("-o", os.devnull, "-w", "%{http_code} %{num_connects}\n")
        told = self.curl("/health", *used, *JSON, "-d", body, f"{url}/v1/chat/completions", "--next",
                         "-sS", *used, *JSON, "-d", stream, f"{url}/v1/chat/completions", "--next",
                         "-sS", *used, *JSON, "-d", "{", f"{url}/tokenize", "--next", "-sS", *used)
        self.assertEqual(told, "200 1\n200 0\n400 0\n200 0\n")

    def test_many_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            self.curl("/v1/chat/completions?[1-20]", "--no-progress-meter", "--parallel", "--parallel-max", "20", *JSON,
                      "-d", json.dumps(serving.chat()), "-o", os.path.join(folder, "#1"))
            for number in range(1, 21):
                with open(os.path.join(folder, str(number)), encoding="utf-8") as file:
                    self.assertEqual(json.load(file)["choices"][0]["message"]["content"], self.text)

    def test_an_error_has_a_body(self):
        told = self.chat("-w", "%{http_code}", temperature=9)
        self.assertEqual(told[-3:], "400")
        self.assertEqual(json.loads(told[:-3])["error"]["param"], "temperature")

    def test_a_client_that_gives_up_leaves_nothing(self):
        before = self.server.held()
        body = json.dumps(serving.long_chat())
        self.curl("/v1/chat/completions", "--max-time", "0.2", *JSON, "-d", body, status=28)
        self.eventually(self.server.held, before)


if __name__ == "__main__":
    serving.main()
