"""Requests that something happened to on the way, over real sockets: each gets replies that are
HTTP, or an end; and the server goes on as it was. MLA_TEST_SEED replays, MLA_TEST_CASES is how
many."""
import json
import os
import random
import threading

import load
import serving

NUM_CASES = int(os.environ.get("MLA_TEST_CASES", "400"))
NUM_CLIENTS = 24
STATUSES = {200, 204, 400, 404, 405, 408, 411, 413, 414, 415, 417, 429, 431, 501, 503, 505}
PIECES = (b"\r\n", b"\n", b"\r", b"\0", b" ", b":", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"{", b"]",
          b'"', b"\\u", b"\\ud800", b"-1", b"1e999", b"99999999999999999999", b"null", b"Content-Length: 5\r\n",
          b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"HTTP/2.0",
          b"GET / HTTP/1.1\r\n\r\n", b"A" * 40000, b"[" * 100)


def good_requests():
    chat, body = serving.chat(tokens=3), json.dumps(serving.chat(tokens=2)).encode()
    yield serving.request("POST", "/v1/chat/completions", chat)
    yield serving.request("POST", "/v1/chat/completions", {**chat, "stream": True, "n": 2, "logprobs": True})
    yield serving.request("POST", "/v1/completions", {"prompt": ["a", "b"], "max_tokens": 2, "stop": ["x"], "logprobs": 1})
    yield serving.request("POST", "/tokenize", {"prompt": "Grüße 你好"})
    yield serving.request("POST", "/detokenize", {"tokens": [5, 6, 7]})
    yield serving.request("GET", "/v1/models/demo")
    yield serving.request("GET", "/metrics") + serving.request("GET", "/ready")
    yield (b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x;a=b\r\n%s\r\n0\r\nT: t\r\n\r\n"
           % (len(body), body))


def mutated(rng, seeds):
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        to = min(len(data), at + rng.choice((1, 2, 8, 50)))
        kind = rng.randrange(6)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at:at] = rng.choice(PIECES)
        elif kind == 2:
            del data[at:to]
        elif kind == 3:
            data[at:at] = data[at:to]
        elif kind == 4:
            other = rng.choice(seeds)
            data[at:] = other[rng.randrange(len(other)):]
        else:
            data[at:to] = rng.randbytes(to - at)
    return bytes(data)


class Mutations(load.LoadTest):
    maxDiff = None
    options = ("--kv-bytes", "24M", "--max-requests", "8", "--read-timeout", "0.5", "--idle-timeout", "0.5",
               "--log-file", os.devnull)
    num_questions = 8

    def replies(self, data, rng):
        """The statuses that came before the end. A reset may swallow what was under way."""
        statuses = []
        with self.server.connect() as client:
            try:
                cut = rng.randrange(len(data) + 1)
                client.send(data[:cut])
                client.send(data[cut:])
                while client.data or client.more():
                    statuses.append(client.reply().status)
            except (ConnectionResetError, BrokenPipeError):
                pass
        return statuses

    def run_cases(self, first, seed, seeds, told):
        for number in range(first, NUM_CASES, NUM_CLIENTS):
            rng = random.Random(f"{seed} {number}")
            data = mutated(rng, seeds)
            try:
                told[number] = self.replies(data, rng)
            except Exception as error:  # whatever it is, the test has to hear of it
                told[number] = f"{type(error).__name__} {error}"[:300], data[:2000]

    def test_whatever_comes(self):
        seed = int(os.environ.get("MLA_TEST_SEED", random.randrange(1 << 32)))
        print(f"MLA_TEST_SEED={seed}", end=" ", flush=True)
        seeds, told = list(good_requests()), {}
        threads = [threading.Thread(target=self.run_cases, args=(i, seed, seeds, told)) for i in range(NUM_CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        self.assertEqual(len(told), NUM_CASES)
        wrong = {number: at for number, at in told.items() if isinstance(at, tuple) or not STATUSES.issuperset(at)}
        self.assertEqual(list(wrong.items())[:2], [], f"{len(wrong)} are wrong")
        for status in (200, 400, 408):
            self.assertTrue(any(status in at for at in told.values()), f"never {status}")
        load.Load(self.server, self.asked, 16, 8, seed).start().wait(60)

    def test_text_that_is_not_utf_8_is_refused(self):
        for bad in (b"\xff", b"\xc3(", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe4\xbd"):
            for path, body in (("/v1/chat/completions", b'{"messages":[{"role":"user","content":"a%sb"}]}'),
                               ("/v1/completions", b'{"prompt":"a%sb"}'), ("/v1/completions", b'{"prompt":"a","stop":"%s"}'),
                               ("/tokenize", b'{"prompt":"%s"}'), ("/tokenize", b'{"%s":1,"prompt":"a"}')):
                self.check_error(self.server.ask("POST", path, body % bad), 400, "invalid_request_error")
            with self.server.connect() as client:
                client.send(b"GET /v1/models/%s HTTP/1.1\r\nHost: x\r\nX-Any: %s\r\n\r\n" % (bad, bad))
                status = client.head()[0]
            self.assertIn(status, (400, 404))

    def test_bodies_that_are_too_large_come_many_at_once(self):
        peak = load.rss_bytes(self.server)
        clients = [self.server.connect() for _ in range(100)]
        for number, client in enumerate(clients):
            if number % 2:
                client.send(b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n" + b"x" * 1000)
            else:
                client.send(b"POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3fffffff\r\n{")
        for client in clients:
            self.assertEqual(client.reply("POST").status, 413)
            self.assertTrue(client.is_ended())
            client.close()
        self.assertLess(load.rss_bytes(self.server) - peak, 16 << 20)


if __name__ == "__main__":
    serving.main()
