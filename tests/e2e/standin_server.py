"""A server that answers as `mla serve` does, as far as `mla qualify serving` asks, and can do one
thing wrong. It makes its answers up from the prompt, and its pages are only counted."""
import hashlib
import http.server
import json
import os
import threading
import time

PAGE_TOKENS, CONTEXT, CHAT_TOKENS = 64, 2048, 12
NUM_PAGES = 4 * 4 + 2 * 3
STEP_SECONDS = 0.0005
HOLD_SECONDS = 0.15  # of the prompts that fill the pool, so that what waits is seen to


class Engine:
    """Pages and counters, with one lock."""

    def __init__(self, wrong):
        self.wrong = wrong
        self.turn = threading.Condition()
        self.used = self.running = self.waiting = 0
        self.prompt_tokens = self.new_tokens = self.num_streams = 0
        self.kv_bytes, self.server_bytes, self.allocations, self.start = 5000, 900, 40, 1234.0
        self.num_seen = 0
        self.is_dead = False

    def is_mixed(self, ask):
        """Once a run, at the first coding answer beside others."""
        return ask.get("cache_salt") == "mixed" and "messages" in ask

    def begin(self, pages, prompt_tokens):
        with self.turn:
            self.waiting += 1
            while self.used + pages > NUM_PAGES and self.wrong != "admits_too_many":
                self.turn.wait()
            self.waiting -= 1
            self.running += 1
            self.used += pages
            self.prompt_tokens += prompt_tokens

    def end(self, pages, ask):
        with self.turn:
            self.running -= 1
            self.used -= pages
            if ask.get("cache_salt") == "mixed" and self.num_seen == 0:
                self.num_seen = 1
                self.go_wrong()
            self.is_dead = self.wrong == "dies" and ask.get("cache_salt") == "beyond"
            self.turn.notify_all()

    def go_wrong(self):
        self.used += self.wrong == "leaks_a_page"
        self.kv_bytes += self.wrong == "grows_a_class"
        self.server_bytes += self.wrong == "keeps_memory"
        self.allocations += self.wrong == "allocates"
        self.start += self.wrong == "restarts"
        self.prompt_tokens += 192 * (self.wrong == "reads_a_prompt_twice")

    def ledger(self):
        moment = self.wrong == "grows_a_class_for_a_moment" and self.running > 3
        classes = {"kv": self.kv_bytes + moment, "server": self.server_bytes + self.running,
                   "other": int(time.monotonic() * 1000)}
        return {"phase": "serving", "rss": 1,
                "classes": {name: {"now": now, "peak": 0} for name, now in classes.items()},
                "pages": {"num": NUM_PAGES, "tokens": PAGE_TOKENS, "bytes": 294912,
                          "used": self.used, "cached": 0, "free": NUM_PAGES - self.used,
                          "reserved": 0}}

    def metrics(self):
        lines = {"mla_requests_running": self.running, "mla_requests_waiting": self.waiting,
                 'mla_kv_pages{state="used"}': self.used,
                 'mla_kv_pages{state="reserved"}': 0,
                 "mla_prompt_tokens_total": self.prompt_tokens,
                 "mla_generation_tokens_total": self.new_tokens,
                 'mla_requests_ended_total{finish="abort"}': 0,
                 'mla_requests_ended_total{finish="error"}': 0,
                 'mla_memory_allocations_total{class="kv",space="host"}': self.allocations,
                 'mla_memory_allocations_total{class="server",space="host"}':
                     int(time.monotonic() * 1000),
                 "mla_start_time_seconds": self.start, "mla_process_id": os.getpid()}
        return "".join(f"{name} {value}\n" for name, value in lines.items())


def words_of(engine, ask):
    """Decided by the prompt alone. A model may say anything, also NUL."""
    prompt = json.dumps(ask.get("messages") or ask["prompt"])
    words = "\0" + hashlib.sha256(prompt.encode()).hexdigest()
    salt = ask["cache_salt"]
    if engine.wrong == "changes_an_answer" and engine.is_mixed(ask):
        words = words[::-1]
    if engine.wrong == "changes_a_long_answer" and salt == "beyond":
        words = words[::-1]
    return [words[i % len(words)] for i in range(ask["max_tokens"])]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine = None

    def log_message(self, *_):
        pass

    def send(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body.encode())
        self.close_connection = True

    def send_json(self, status, value):
        self.send(status, "application/json", json.dumps(value))

    def do_GET(self):
        with self.engine.turn:
            if self.engine.is_dead:
                self.close_connection = True
                return None
            if self.path == "/ledger":
                return self.send_json(200, self.engine.ledger())
            return self.send(200, "text/plain", self.engine.metrics())

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def event(self, value):
        self.chunk("data: " + (value if isinstance(value, str) else json.dumps(value)) + "\n\n")

    def refuse(self, required):
        words = (f"available {CONTEXT}, required {required}, deficit {required - CONTEXT}"
                 if self.engine.wrong != "refuses_without_numbers" else "it does not fit")
        self.send_json(400, {"error": {"message": words}})

    def do_POST(self):
        ask = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        num_prompt = CHAT_TOKENS if "messages" in ask else len(ask["prompt"])
        required = num_prompt + ask["max_tokens"]
        if required > CONTEXT:
            if self.engine.wrong != "accepts_everything":
                return self.refuse(required)
            ask["max_tokens"] = 1
        pages = -(-(num_prompt + ask["max_tokens"] - 1) // PAGE_TOKENS)
        self.engine.begin(pages, num_prompt)
        try:
            self.answer(ask, num_prompt)
        finally:
            self.engine.end(pages, ask)
        return None

    def answer(self, ask, num_prompt):
        words = words_of(self.engine, ask)
        if self.engine.wrong == "ends_early" and self.engine.is_mixed(ask):
            words = words[:-1]
        time.sleep(STEP_SECONDS * num_prompt / 8 +
                   HOLD_SECONDS * (ask["cache_salt"] == "beyond"))
        if ask.get("stream"):
            self.stream(ask, words, num_prompt)
        else:
            self.plain(ask, words, num_prompt)

    def count(self, num):
        with self.engine.turn:
            self.engine.new_tokens += num

    @staticmethod
    def usage(words, num_prompt):
        return {"prompt_tokens": num_prompt, "completion_tokens": len(words)}

    def plain(self, ask, words, num_prompt):
        time.sleep(STEP_SECONDS * len(words))
        self.count(len(words))
        if self.engine.wrong == "loses_an_answer" and ask["cache_salt"] == "beyond":
            self.close_connection = True
            return
        self.send_json(200, {"choices": [{"text": "".join(words), "finish_reason": "length"}],
                             "usage": self.usage(words, num_prompt)})

    def stream(self, ask, words, num_prompt):
        is_wrong = self.engine.wrong == "errs_in_a_stream" and self.engine.is_mixed(ask)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        self.chunk(": a comment\n\n")
        for i, word in enumerate(words):
            time.sleep(STEP_SECONDS)
            self.count(1)
            if is_wrong and i == 3:
                self.event({"error": {"message": "the engine has failed"}})
                break
            end = "length" if i == len(words) - 1 else None
            text = {"delta": {"content": word}} if "messages" in ask else {"text": word}
            self.event({"choices": [{**text, "finish_reason": end}], "usage": None})
        else:
            self.event({"choices": [], "usage": self.usage(words, num_prompt)})
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64  # otherwise a connection may have to ask again, after a second


def make(wrong):
    """An http.server on a port that the kernel chose. wrong: what it does wrong, or None."""
    kind = type("Handler", (Handler,), {"engine": Engine(wrong)})
    return Server(("127.0.0.1", 0), kind)
