"""The HTTP of `mla serve`: what is a request, and what is said to what is none."""
import os
import tempfile

import serving
from serving import chat, request


class Http(serving.ServeTest):
    options = ("--max-body", "64K", "--read-timeout", "1")

    def ask(self, data, method="GET"):
        with self.server.connect() as client:
            client.send(data)
            return client.reply(method)

    def test_a_chat_is_answered_plain_and_as_a_stream(self):
        plain = self.server.ask("POST", "/v1/chat/completions", chat())
        self.assertEqual(plain.status, 200)
        stream = self.server.ask("POST", "/v1/chat/completions", chat(stream=True))
        self.assertEqual(stream.headers["content-type"], "text/event-stream; charset=utf-8")
        self.assertEqual(stream.headers["cache-control"], "no-cache")
        self.assertEqual(stream.headers["x-accel-buffering"], "no")
        self.assertEqual(stream.events()[-1], "[DONE]")

    def test_what_is_asked_with_get_is_there(self):
        for path in ("/", "/health", "/ping", "/ready", "/version", "/metrics", "/ledger", "/v1/models"):
            with self.subTest(path=path):
                got = self.server.ask("GET", path)
                self.assertEqual(got.status, 200)
                self.assertTrue(got.body)
                head = self.server.ask("HEAD", path)
                self.assertEqual((head.status, head.body), (200, b""))
                self.assertEqual(head.headers["content-type"], got.headers["content-type"])

    def test_a_head_has_no_body_and_the_connection_lives_on(self):
        with self.server.connect() as client:
            client.send(request("HEAD", "/health") + request("GET", "/health"))
            self.assertEqual(client.reply("HEAD").headers["content-length"], "15")
            self.assertEqual(client.reply().body, b'{"status":"ok"}')

    def test_a_wrong_path_is_404_and_a_wrong_method_405(self):
        self.check_error(self.server.ask("GET", "/nowhere"), 404)
        self.check_error(self.server.ask("POST", "/v1/nowhere", {}), 404)
        wrong = self.server.ask("GET", "/v1/chat/completions")
        self.check_error(wrong, 405)
        self.assertEqual(wrong.headers["allow"], "POST, OPTIONS")
        wrong = self.server.ask("POST", "/health", {})
        self.check_error(wrong, 405)
        self.assertEqual(wrong.headers["allow"], "GET, HEAD, OPTIONS")
        self.check_error(self.server.ask("BREW", "/health"), 405)

    def test_a_browser_of_another_origin_may_ask(self):
        asked = ("Origin: http://a.example", "Access-Control-Request-Headers: x-stainless-os, authorization")
        reply = self.server.ask("OPTIONS", "/v1/chat/completions", headers=asked)
        self.assertEqual((reply.status, reply.body), (204, b""))
        self.assertEqual(reply.headers["access-control-allow-origin"], "*")
        self.assertEqual(reply.headers["access-control-allow-headers"], "x-stainless-os, authorization")
        self.assertEqual(self.server.ask("GET", "/health").headers["access-control-allow-origin"], "*")

    def test_what_is_not_http_is_400(self):
        for data in (b"hello\r\n\r\n", b"GET /health\r\n\r\n", b"GET /health FTP/1.1\r\n\r\n",
                     b"GET health HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /health HTTP/1.1\r\n\r\n",
                     b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
                     b"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n",
                     b"GET /health HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n",
                     b"GET /health HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
                     b"GET /health HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n",
                     b"GET /health HTTP/1.1\nHost: x\n\n", b"\n", b"\xff\xfe\r\n\r\n"):
            with self.subTest(data=data):
                self.check_error(self.ask(data), 400, "invalid_request_error")

    def test_a_body_whose_end_is_in_doubt_is_400(self):
        for lines in ("Content-Length: 2\r\nContent-Length: 2", "Content-Length: 2\r\nTransfer-Encoding: chunked",
                      "Content-Length: +2", "Content-Length: 0x2", "Content-Length: 2, 2", "Content-Length:",
                      "Content-Length: -1", "Content-Length: 99999999999999999999",
                      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"):
            with self.subTest(lines=lines):
                data = f"POST /tokenize HTTP/1.1\r\nHost: x\r\n{lines}\r\n\r\n{{}}".encode()
                self.check_error(self.ask(data), 400)
        for line, status in (("Transfer-Encoding: gzip, chunked", 501), ("Expect: tea", 417),
                             ("Content-Encoding: gzip", 415)):
            with self.subTest(line=line):
                self.check_error(self.ask(request("POST", "/tokenize", {}, [line])), status)
        self.check_error(self.ask(request("GET", "/health", version="2.0")), 505)

    def test_a_chunked_body_is_read(self):
        head = request("POST", "/tokenize", headers=["Transfer-Encoding: chunked"])
        body = b'{"prompt": "Hello, world"}'
        whole = self.server.ask("POST", "/tokenize", body).json()
        pieces = b"".join(b"%x;name=value\r\n%s\r\n" % (1, body[i:i + 1]) for i in range(len(body)))
        with self.server.connect() as client:
            for end in (b"0\r\n\r\n", b"000\r\nTrailer: x\r\n\r\n"):
                client.send(head + pieces + end)
                self.assertEqual(client.reply().json(), whole)
            for byte in head + b"1A\r\n" + body + b"\r\n0\r\n\r\n":
                client.send(bytes([byte]))
            self.assertEqual(client.reply().json(), whole)

    def test_a_chunk_that_lies_is_400(self):
        head = request("POST", "/tokenize", headers=["Transfer-Encoding: chunked"])
        for body in (b"x\r\n", b"\r\n", b"2\r\n{}}\r\n", b"-1\r\n", b"2" + b" " * 300):
            with self.subTest(body=body):
                self.check_error(self.ask(head + body), 400)

    def test_a_body_that_is_too_large_is_413_before_it_is_read(self):
        self.check_error(self.ask(request("POST", "/tokenize", b"x" * 65537)), 413)
        self.check_error(self.ask(b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n"), 413)
        head = request("POST", "/tokenize", headers=["Transfer-Encoding: chunked"])
        self.check_error(self.ask(head + b"fffffff\r\n"), 413)
        self.check_error(self.ask(head + b"8000\r\n" + b"x" * 0x8000 + b"\r\n8001\r\n"), 413)

    def test_headers_that_are_too_large_are_431(self):
        self.check_error(self.ask(request("GET", "/", headers=["A: " + "b" * 40000])), 431)
        self.check_error(self.ask(request("GET", "/", headers=["A: b"] * 200)), 431)
        self.check_error(self.ask(b"GET / HTTP/1.1\r\nA: " + b"b" * 100000), 431)
        self.check_error(self.ask(request("GET", "/" + "a" * 1000)), 414)

    def test_who_is_asked_to_wait_before_the_body_is_told_to_go_on(self):
        body = b'{"prompt": "x"}'
        with self.server.connect() as client:
            client.send(request("POST", "/tokenize", headers=["Expect: 100-continue", f"Content-Length: {len(body)}"]))
            self.assertEqual(client.head()[0], 100)
            client.send(body)
            self.assertEqual(client.reply().status, 200)
            client.send(request("POST", "/tokenize", headers=["Expect: 100-continue", "Content-Length: 99999999"]))
            self.assertEqual(client.head()[0], 413)

    def test_a_request_that_does_not_come_in_time_is_408(self):
        for data in (b"GET /health HT", request("POST", "/tokenize", headers=["Content-Length: 9"]) + b"{",
                     request("POST", "/tokenize", headers=["Transfer-Encoding: chunked"]) + b"5\r\n{"):
            with self.subTest(data=data):
                self.check_error(self.ask(data), 408)

    def test_a_byte_now_and_then_is_not_in_time_either(self):
        with self.server.connect() as client:
            for _ in range(100):
                client.send(b"G")
                if not client.is_silent(0.1):
                    break
            else:
                self.fail("ten seconds are in time")
            self.check_error(client.reply(), 408)

    def test_http_1_0_gets_a_reply_and_an_end(self):
        with self.server.connect() as client:
            client.send(b"GET /health HTTP/1.0\r\n\r\n")
            self.assertEqual(client.reply().status, 200)
            self.assertTrue(client.is_ended())
        with self.server.connect() as client:
            client.send(request("POST", "/v1/chat/completions", chat(stream=True), version="1.0"))
            reply = client.reply()
            self.assertNotIn("transfer-encoding", reply.headers)
            self.assertEqual(reply.events()[-1], "[DONE]")
        with self.server.connect() as client:
            for _ in range(2):
                client.send(request("GET", "/health", headers=["Connection: keep-alive"], version="1.0"))
                self.assertEqual(client.reply().headers["connection"], "keep-alive")

    def test_a_connection_is_kept_until_one_side_says_close(self):
        with self.server.connect() as client:
            for _ in range(3):
                client.send(b"\r\n" + request("POST", "/v1/chat/completions", chat(stream=True)))
                self.assertEqual(client.reply().events()[-1], "[DONE]")
            client.send(request("GET", "/health", headers=["Connection: close"]))
            self.assertEqual(client.reply().headers["connection"], "close")
            self.assertTrue(client.is_ended())

    def test_requests_sent_ahead_are_answered_in_order(self):
        paths = ["/health", "/nowhere", "/version", "/v1/models"] * 25
        with self.server.connect() as client:
            client.send(b"".join(request("GET", path) for path in paths))
            self.assertEqual([client.reply().status for _ in paths], [200, 404, 200, 200] * 25)

    def test_a_target_may_be_a_whole_address_or_have_a_query(self):
        for target in ("http://x/health", "/health?a=b", "/he%61lth", "https://x:1/health?c"):
            with self.subTest(target=target):
                self.assertEqual(self.server.ask("GET", target).status, 200)

    def test_the_log_has_a_line_a_request(self):
        self.server.ask("GET", "/logged%20%22here%0")
        self.server.ask("GET", "/logged%20%22here")
        self.assertRegex(self.server.log_text(), r"(?m)^\S+Z 127\.0\.0\.1 GET /logged\?\?here 404 \d+\.\dms$")


class Keys(serving.ServeTest):
    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as file:
            file.write("# of the team\nfirst-key\n\nsecond-key  \n")
            file.flush()
            cls.server = serving.Server("--api-key-file", file.name, "--cors-origin", "http://a.example")

    def test_without_a_key_only_the_open_paths_answer(self):
        for path in ("/", "/health", "/ready", "/metrics"):
            self.assertEqual(self.server.ask("GET", path).status, 200, path)
        for path in ("/v1/models", "/ledger", "/version"):
            reply = self.server.ask("GET", path)
            self.check_error(reply, 401, "authentication_error")
            self.assertEqual(reply.headers["www-authenticate"], "Bearer")
        self.check_error(self.server.ask("POST", "/v1/chat/completions", chat()), 401)

    def test_only_a_whole_key_is_one(self):
        for key, status in (("first-key", 200), ("second-key", 200), ("first-ke", 401), ("first-key2", 401),
                            ("", 401), ("# of the team", 401), ("x" * 300, 401)):
            reply = self.server.ask("GET", "/v1/models", headers=[f"Authorization: Bearer {key}"])
            self.assertEqual(reply.status, status, key)
        self.assertEqual(self.server.ask("GET", "/v1/models", headers=["Authorization: first-key"]).status, 401)

    def test_the_origin_is_the_one_that_was_given(self):
        reply = self.server.ask("OPTIONS", "/v1/models")
        self.assertEqual(reply.headers["access-control-allow-origin"], "http://a.example")

    def test_a_file_without_a_key_is_refused_at_the_start(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# none\n\n")
            file.flush()
            done = serving.program.run("serve", serving.program.DEMO, "--port", "0", "--api-key-file", file.name)
        self.assertEqual(done.returncode, 1)
        self.assertIn(os.path.basename(file.name), done.stderr.decode())


if __name__ == "__main__":
    serving.main()
