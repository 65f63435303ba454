"""Many requests at once, of every kind, from clients that stay and clients that leave.

A question is a request whose answer is known: it was asked once alone. The server promises the
same answer in any company, so each answer under load is compared with it, to the last logprob.
"""
import itertools
import json
import os
import random
import re
import subprocess
import sys
import threading
import time

import program
import serving

TEXTS = ("Hello!", "What can you do?", "What does the curl option --verbose do?", "Tell me about bash.",
         'What is the meaning of "small boat"?', "Write a C function named buffer_free. Frees the buffer.",
         "Grüße, 你好, 🚢!")
PROMPTS = ("The weather of", "int main(void)\n{", "The option --verbose", "A small boat is", "#include <", "你好")
PATIENCE = 240  # under a sanitizer, behind others
WAYS_TO_LEAVE = ("close", "half", "reset")


class Question:
    def __init__(self, number, rng, most_texts):
        self.is_chat = rng.random() < 0.5
        self.path = "/v1/chat/completions" if self.is_chat else "/v1/completions"
        self.body = {"seed": 1000 + number, "max_tokens": rng.choice((1, 2, 5, 8, 8, 12, 16, 24, 40)),
                     "priority": rng.randint(-2, 2), "user": f"question {number}"}
        self.add_prompt(number, rng, most_texts)
        self.add_sampling(rng)
        self.add_extras(rng)
        self.answer = None

    def add_prompt(self, number, rng, most_texts):
        words = " ".join(rng.choice(TEXTS + PROMPTS) for _ in range(rng.choice((0, 0, 0, 1, 3, most_texts))))
        if self.is_chat:
            text = f"{words} {number}: {rng.choice(TEXTS)}".strip()
            self.body["messages"] = [{"role": "user", "content": text}]
        else:
            self.body["prompt"] = f"{words} {number} {rng.choice(PROMPTS)}".strip()

    def add_sampling(self, rng):
        kind = rng.randrange(4)
        self.body["temperature"] = (0, 0.7, 1.0, 1.3)[kind]
        if kind == 1:
            self.body.update(top_p=0.9, top_k=40)
        elif kind == 2:
            self.body.update(frequency_penalty=0.5, presence_penalty=0.2)
        elif kind == 3:
            self.body.update(min_p=0.02, repetition_penalty=1.1)

    def add_extras(self, rng):
        if rng.random() < 0.25:
            self.body["n"] = rng.randint(2, 3)
        if rng.random() < 0.3:
            self.body["stop"] = rng.choice(("e", ["\n", " the"], ["ing", "!"]))
        if rng.random() < 0.3:
            self.body["ignore_eos"] = True
        if rng.random() < 0.3:
            self.body.update({"logprobs": True, "top_logprobs": 2} if self.is_chat else {"logprobs": 2})
        if rng.random() < 0.1:
            self.body["logit_bias"] = {"17": -100, "223": 1.5}

    def num_choices(self):
        return self.body.get("n", 1)

    def request(self, name, stream, **more):
        body = {**self.body, "stream": stream, "request_id": name, **more}
        if stream:
            body["stream_options"] = {"include_usage": True}
        return serving.request("POST", self.path, body)


def questions(num, seed, most_texts=40):
    rng = random.Random(seed)
    return [Question(number, rng, most_texts) for number in range(num)]


class Choice:
    def __init__(self):
        self.text, self.end, self.logprobs = "", None, []

    def add(self, piece):
        message = piece.get("delta") or piece.get("message") or {}
        self.text += piece.get("text") or message.get("content") or ""
        if piece["finish_reason"] is not None:
            if self.end:
                raise AssertionError("a choice ended twice")
            self.end = [piece["finish_reason"], piece.get("stop_reason")]
        logprobs = piece.get("logprobs") or {}
        self.logprobs += [[at["token"], at["logprob"], len(at["top_logprobs"])] for at in logprobs.get("content", ())]
        self.logprobs += map(list, zip(logprobs.get("tokens", ()), logprobs.get("token_logprobs", ()),
                                       map(len, logprobs.get("top_logprobs", ()))))


def answer_of(pieces, name):
    """What a reply's JSON, or the events of a stream, say together."""
    choices, usage = {}, None
    for piece in pieces:
        if piece.get("error"):
            raise AssertionError(f"{name}: {piece}")
        if not re.fullmatch(rf"(chat)?cmpl-{name}", piece["id"]):
            raise AssertionError(f"{name} got what is of {piece['id']}")
        for at in piece["choices"]:
            choices.setdefault(at["index"], Choice()).add(at)
        usage = piece["usage"] if piece.get("usage") else usage
    told = [[choices[i].text, choices[i].end, choices[i].logprobs] for i in sorted(choices)]
    return {"choices": told, "prompt": usage["prompt_tokens"], "new": usage["completion_tokens"]}


def read_answer(client, name, stream):
    reply = client.reply("POST")
    if reply.status != 200:
        raise AssertionError(f"{name}: {reply.status} {reply.body}")
    if not stream:
        return answer_of([reply.json()], name)
    events = reply.events()
    if events.pop() != "[DONE]":
        raise AssertionError(f"{name}: the stream has no end")
    return answer_of(map(json.loads, events), name)


def ask_alone(server, asked):
    """The answers to compare with; each question is asked by itself."""
    with server.connect() as client:
        for number, question in enumerate(asked):
            client.send(question.request(f"alone{number}", False))
            question.answer = read_answer(client, f"alone{number}", False)


class Load:
    """num requests by num_clients clients, each on a connection of its own that it keeps."""

    def __init__(self, server, asked, num, num_clients, seed, leaving=0.0, refused=0.0):
        self.server, self.asked, self.num, self.seed = server, asked, num, seed
        self.leaving, self.refused = leaving, refused
        self.counts = {"answered": 0, "left": 0, "refused": 0, "choices": 0, "choices_left": 0}
        self.failures = []
        self.numbers, self.lock = itertools.count(), threading.Lock()
        self.threads = [threading.Thread(target=self.client, daemon=True) for _ in range(num_clients)]

    def start(self):
        for thread in self.threads:
            thread.start()
        return self

    def wait(self, seconds):
        end = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0, end - time.monotonic()))
            if thread.is_alive():
                raise AssertionError(f"requests are not answered: {self.counts}")
        if self.failures:
            raise AssertionError(f"{len(self.failures)} failures, such as {self.failures[:3]}")
        return self.counts

    def is_running(self):
        return any(thread.is_alive() for thread in self.threads)

    def count(self, **more):
        with self.lock:
            for name, number in more.items():
                self.counts[name] += number

    def client(self):
        try:
            connection = None
            for number in self.numbers:
                if number >= self.num:
                    return
                connection = self.one(number, connection or self.server.connect(timeout=PATIENCE))
        except Exception as error:  # whatever it is, the test has to hear of it
            self.failures.append(f"{type(error).__name__}: {error}"[:600])

    def one(self, number, connection):
        """Its connection again, or None where it was left."""
        rng = random.Random(f"{self.seed} {number}")
        question, stream, name = rng.choice(self.asked), rng.random() < 0.5, f"r{self.seed}x{number}"
        dice = rng.random()
        if dice < self.leaving:
            return self.leave(connection, question, stream, name, rng)
        if dice < self.leaving + self.refused:
            return self.be_refused(connection, question, name)
        connection.send(question.request(name, stream))
        got = read_answer(connection, name, stream)
        if got != question.answer:
            raise AssertionError(f"{name} {question.body}, stream {stream}: {got} is not {question.answer}")
        if connection.data:
            raise AssertionError(f"{name}: more than an answer: {connection.data!r}")
        self.count(answered=1, choices=question.num_choices())
        return connection

    def leave(self, connection, question, stream, name, rng):
        data = question.request(name, stream, max_tokens=1000, min_tokens=1000, stop=None)
        is_whole = rng.random() < 0.8
        connection.send(data if is_whole else data[:rng.randrange(1, len(data))])
        if is_whole and rng.random() < 0.7:
            time.sleep(rng.random() * 0.05)
            if stream:
                connection.until(b"data: ")
        way = rng.choice(WAYS_TO_LEAVE)
        if way == "reset":
            connection.reset()
        elif way == "half":
            connection.socket.shutdown(serving.socket.SHUT_WR)
            connection.rest()
        connection.close()
        self.count(left=1, choices_left=question.num_choices() if is_whole else 0)

    def be_refused(self, connection, question, name):
        connection.send(question.request(name, False, temperature=3))
        reply = connection.reply("POST")
        if reply.status != 400 or reply.json()["error"]["param"] != "temperature":
            raise AssertionError(f"{name}: {reply.status} {reply.body}")
        self.count(refused=1)
        return connection


# --- what the server says of itself

def metrics(server):
    """{'name{labels}': number}"""
    text = server.ask("GET", "/metrics").body.decode()
    return {name: float(value) for name, value in re.findall(r"^([a-z_]+(?:\{[^}]*\})?) (\S+)$", text, re.M)}


def ended(counted):
    """Requests of the engine, by their end."""
    return {finish: int(counted[f'mla_requests_ended_total{{finish="{finish}"}}'])
            for finish in ("stop", "length", "abort", "error")}


def num_files(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def rss_bytes(server):
    with open(f"/proc/{server.process.pid}/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid, task=None):
    with open(f"/proc/{pid}/task/{task}/stat" if task else f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class LoadTest(serving.ServeTest):
    """A test case whose tests leave the server as it was before the first request."""

    options = ("--kv-bytes", "24M", "--max-requests", "8", "--log-file", os.devnull)
    num_questions, most_texts = 96, 40

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.first = cls.state(cls.server)
        cls.asked = questions(cls.num_questions, 7, cls.most_texts)
        ask_alone(cls.server, cls.asked)

    @staticmethod
    def state(server):
        held = {**server.held(), "num_pages": server.ledger()["pages"]["num"]}
        time.sleep(0.05)  # for it to close the connection that asked
        return {**held, "files": num_files(server)}

    def tearDown(self):
        self.eventually(lambda: self.state(self.server), self.first)
        pages = self.server.ledger()["pages"]
        self.assertEqual(pages["used"] + pages["cached"] + pages["free"], pages["num"])

    def check_counters(self, before, counts):
        """What was submitted has ended, and who stayed by stop or length; who left may have, too."""
        def told():
            after = ended(metrics(self.server))
            return {finish: after[finish] - before[finish] for finish in after}
        self.eventually(lambda: told()["stop"] + told()["length"] >= counts["choices"], True)
        self.assertEqual(told()["error"], 0)
        self.assertLessEqual(sum(told().values()), counts["choices"] + counts["choices_left"])
        return told()


def stream_client(port, num_streams, num_requests):
    script = os.path.join(program.SOURCE, "tests", "e2e", "stream_client.py")
    command = [sys.executable, "-B", script, *map(str, (port, num_streams, num_requests))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
