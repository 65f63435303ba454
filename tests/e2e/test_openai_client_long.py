"""The official Python client of OpenAI against `mla serve`.

./dev test --all installs the client into build/clients; without it this fails, unless
MLA_OFFLINE=1 says that it cannot be had.
"""
import asyncio
import os
import sys
import time

import program
import serving

CLIENTS = os.path.join(program.SOURCE, "build", "clients")
SKIPPED = 77


def enter_clients():
    """Goes on with the Python that has the client."""
    python = os.path.join(CLIENTS, "bin", "python")
    if os.path.realpath(sys.prefix) == os.path.realpath(CLIENTS):
        return
    if os.path.exists(os.path.join(CLIENTS, "ready")):
        os.execv(python, [python, "-B", *sys.argv])
    print(f"the openai client is not in {CLIENTS}: ./dev test --all installs it")
    if os.environ.get("MLA_OFFLINE") == "1":
        print("skipped: MLA_OFFLINE=1")
    sys.exit(SKIPPED if os.environ.get("MLA_OFFLINE") == "1" else 1)


if __name__ == "__main__":
    enter_clients()

import httpx  # noqa: E402
import openai  # noqa: E402

MODEL = "demo"
HELLO = [{"role": "user", "content": "Hello!"}]
CURL = [{"role": "user", "content": "What does the curl option --verbose do?"}]
LONG = {"max_tokens": 1900, "extra_body": {"ignore_eos": True}}


class Client(serving.ServeTest):
    options = ("--kv-bytes", "64M", "--max-requests", "8")

    def setUp(self):
        self.client = openai.OpenAI(base_url=f"http://127.0.0.1:{self.server.port}/v1", api_key="none", max_retries=0,
                                    timeout=serving.DEADLINE)
        self.before = self.server.held()

    def tearDown(self):
        self.client.close()
        self.eventually(self.server.held, self.before)

    def check_cancelled(self):
        """Though the client may keep its connection."""
        def of_engine():
            return {name: number for name, number in self.server.held().items() if name != "server"}
        self.eventually(of_engine, {name: number for name, number in self.before.items() if name != "server"})

    def chat(self, messages=HELLO, **more):
        return self.client.chat.completions.create(
            model=MODEL, messages=messages, **{"temperature": 0, "max_tokens": 24, **more})

    def complete(self, prompt="The weather", **more):
        return self.client.completions.create(
            model=MODEL, prompt=prompt, **{"temperature": 0, "max_tokens": 12, **more})


class Chat(Client):
    def test_plain_and_stream_say_the_same(self):
        plain = self.chat(CURL)
        self.assertEqual(plain.object, "chat.completion")
        self.assertEqual(plain.choices[0].message.role, "assistant")
        chunks = list(self.chat(CURL, stream=True))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual("".join(at.choices[0].delta.content or "" for at in chunks), plain.choices[0].message.content)
        self.assertEqual(chunks[-1].choices[0].finish_reason, plain.choices[0].finish_reason)
        self.assertEqual({at.object for at in chunks}, {"chat.completion.chunk"})
        self.assertEqual(len({at.id for at in chunks}), 1)

    def test_usage_comes_when_it_is_asked_for(self):
        plain = self.chat().usage
        self.assertEqual(plain.total_tokens, plain.prompt_tokens + plain.completion_tokens)
        chunks = list(self.chat(stream=True, stream_options={"include_usage": True}))
        self.assertEqual(chunks[-1].choices, [])
        told = chunks[-1].usage
        self.assertEqual((told.prompt_tokens, told.completion_tokens), (plain.prompt_tokens, plain.completion_tokens))
        self.assertTrue(all(at.usage is None for at in chunks[:-1]))
        self.assertTrue(all(at.usage is None for at in self.chat(stream=True)))

    def test_logprobs(self):
        plain = self.chat(logprobs=True, top_logprobs=3).choices[0]
        told = plain.logprobs.content
        end = [] if plain.finish_reason == "length" else [told.pop()]
        self.assertLessEqual(len(end), 1)
        self.assertEqual(b"".join(bytes(at.bytes) for at in told).decode(), plain.message.content)
        for at in told:
            self.assertEqual(len(at.top_logprobs), 3)
            self.assertEqual((at.top_logprobs[0].token, at.top_logprobs[0].logprob), (at.token, at.logprob))
        chunks = self.chat(stream=True, logprobs=True, top_logprobs=3)
        streamed = [at for chunk in chunks if chunk.choices[0].logprobs for at in chunk.choices[0].logprobs.content]
        self.assertEqual(streamed, told + end)

    def test_stop_and_n(self):
        free = self.chat(CURL).choices[0].message.content
        stop = free[8:11]
        held = self.chat(CURL, stop=stop).choices[0]
        self.assertEqual((held.message.content, held.finish_reason), (free[:free.index(stop)], "stop"))
        several = self.chat(CURL, n=3, temperature=1, seed=7).choices
        self.assertEqual([at.index for at in several], [0, 1, 2])
        self.assertGreater(len({at.message.content for at in several}), 1)
        self.assertEqual(self.chat(CURL, temperature=1, seed=8).choices[0].message.content, several[1].message.content)
        texts = ["", "", ""]
        for chunk in self.chat(CURL, n=3, temperature=1, seed=7, stream=True):
            texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
        self.assertEqual(texts, [at.message.content for at in several])

    def test_a_seed_repeats_an_answer(self):
        def ask(seed):
            return self.chat(CURL, temperature=1.2, seed=seed).choices[0].message.content
        first = ask(1)
        self.assertEqual(ask(1), first)
        self.assertGreater(len({first, *(ask(seed) for seed in range(2, 6))}), 1)

    def test_the_stream_helper_of_the_client(self):
        with self.client.chat.completions.stream(model=MODEL, messages=HELLO, max_tokens=200, temperature=0) as stream:
            for _ in stream:
                pass
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].message.content, self.chat(max_tokens=200).choices[0].message.content)

    def test_a_conversation_in_parts(self):
        answer = self.chat([{"role": "system", "content": "Be short."},
                            {"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "text", "text": "!"}]},
                            {"role": "assistant", "content": "Hi."}, *CURL])
        self.assertTrue(answer.choices[0].message.content)


class Completions(Client):
    def test_plain_and_stream_say_the_same(self):
        plain = self.complete()
        self.assertEqual(plain.object, "text_completion")
        chunks = list(self.complete(stream=True))
        self.assertEqual("".join(at.choices[0].text for at in chunks), plain.choices[0].text)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "length")

    def test_prompts_n_and_echo(self):
        several = self.complete(["The weather", "int main"], n=2, echo=True).choices
        self.assertEqual([at.index for at in several], [0, 1, 2, 3])
        self.assertTrue(several[0].text.startswith("The weather"))
        self.assertTrue(several[3].text.startswith("int main"))
        self.assertEqual(several[0].text, "The weather" + self.complete().choices[0].text)

    def test_logprobs(self):
        plain = self.complete(logprobs=2).choices[0]
        told = plain.logprobs
        self.assertEqual(len(told.tokens), 12)
        self.assertEqual("".join(told.tokens), plain.text)
        self.assertEqual(told.text_offset[0], 0)
        self.assertEqual([plain.text[a:b] for a, b in zip(told.text_offset, told.text_offset[1:])], told.tokens[:-1])
        self.assertEqual([max(at.values()) for at in told.top_logprobs], told.token_logprobs)
        streamed = [token for chunk in self.complete(logprobs=2, stream=True) if chunk.choices[0].logprobs
                    for token in chunk.choices[0].logprobs.tokens]
        self.assertEqual(streamed, told.tokens)

    def test_token_ids_and_what_is_added_for_other_servers(self):
        ids = self.tokenize("The weather")
        self.assertEqual(self.complete(ids).choices[0].text, self.complete().choices[0].text)
        told = self.complete(extra_body={"return_token_ids": True, "top_k": 1, "min_p": 0.0, "ignore_eos": True})
        self.assertEqual(len(told.choices[0].token_ids), 12)

    def tokenize(self, text):
        reply = httpx.post(f"http://127.0.0.1:{self.server.port}/tokenize", json={"model": MODEL, "prompt": text})
        self.assertEqual(reply.status_code, 200, reply.text)
        told = reply.json()
        self.assertEqual(told["count"], len(told["tokens"]))
        self.assertEqual(told["max_model_len"], 2048)
        return told["tokens"]

    def test_tokenize_and_back(self):
        with httpx.Client(base_url=f"http://127.0.0.1:{self.server.port}") as client:
            for text in ("Hello!", "Grüße, 你好, 🚢", "  two  spaces\n"):
                told = client.post("/tokenize", json={"model": MODEL, "prompt": text, "add_special_tokens": False})
                back = client.post("/detokenize", json={"model": MODEL, "tokens": told.json()["tokens"]})
                self.assertEqual(back.json()["prompt"], text)
            chat = client.post("/tokenize", json={"model": MODEL, "messages": HELLO}).json()
            self.assertEqual(chat["count"], self.chat(HELLO).usage.prompt_tokens)


class Errors(Client):
    def error(self, kind, call):
        with self.assertRaises(kind) as caught:
            call()
        return caught.exception

    def test_a_wrong_value_is_a_bad_request(self):
        error = self.error(openai.BadRequestError, lambda: self.chat(temperature=3))
        self.assertEqual((error.status_code, error.param, error.type), (400, "temperature", "invalid_request_error"))
        error = self.error(openai.BadRequestError, lambda: self.chat([]))
        self.assertEqual(error.param, "messages")
        error = self.error(openai.BadRequestError, lambda: self.complete(max_tokens=0))
        self.assertEqual(error.param, "max_tokens")

    def test_what_is_not_served_is_refused_by_name(self):
        tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
        error = self.error(openai.BadRequestError, lambda: self.chat(tools=tools))
        self.assertEqual((error.param, error.code), ("tools", "unsupported_parameter"))
        kind = {"type": "json_object"}
        error = self.error(openai.BadRequestError, lambda: self.chat(response_format=kind))
        self.assertEqual((error.param, error.code), ("response_format", "unsupported_parameter"))

    def test_what_can_never_fit_is_said_with_numbers(self):
        error = self.error(openai.BadRequestError, lambda: self.chat(max_tokens=5000))
        self.assertEqual(error.code, "context_length_exceeded")
        for number in ("5000", "2048"):
            self.assertIn(number, error.message)

    def test_another_model_is_not_found(self):
        error = self.error(openai.NotFoundError, lambda: self.client.completions.create(model="gpt-4o", prompt="x"))
        self.assertEqual(error.code, "model_not_found")
        self.error(openai.NotFoundError, lambda: self.client.models.retrieve("gpt-4o"))
        self.error(openai.NotFoundError, lambda: self.client.embeddings.create(model=MODEL, input="x"))

    def test_the_models(self):
        listed = self.client.models.list()
        self.assertEqual([at.id for at in listed], [MODEL])
        self.assertEqual(self.client.models.retrieve(MODEL).id, MODEL)


class Keys(Client):
    options = ("--kv-bytes", "64M", "--api-key-file", "KEYS")

    @classmethod
    def setUpClass(cls):
        folder = serving.tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = os.path.join(folder.name, "keys")
        with open(path, "w", encoding="utf-8") as file:
            file.write("secret\n")
        cls.server = serving.Server("--kv-bytes", "64M", "--api-key-file", path)

    def setUp(self):
        self.client = openai.OpenAI(base_url=f"http://127.0.0.1:{self.server.port}/v1", api_key="secret", max_retries=0)
        self.addCleanup(self.client.close)

    def tearDown(self):
        pass

    def test_only_the_right_key_is_answered(self):
        self.assertTrue(self.chat().choices)
        wrong = self.client.with_options(api_key="wrong")
        with self.assertRaises(openai.AuthenticationError) as caught:
            wrong.chat.completions.create(model=MODEL, messages=HELLO)
        self.assertEqual(caught.exception.status_code, 401)
        with self.assertRaises(openai.AuthenticationError):
            wrong.models.list()


class Cancel(Client):
    def running(self):
        return self.server.held()["running"]

    def test_closing_a_stream_ends_its_request(self):
        stream = self.chat(stream=True, **LONG)
        self.assertTrue(next(iter(stream)).choices)
        stream.close()
        self.check_cancelled()

    def test_a_block_that_is_left_ends_its_request(self):
        with self.complete(stream=True, **LONG) as stream:
            for chunk in stream:
                self.assertTrue(chunk.choices)
                break
        self.check_cancelled()

    def test_a_timeout_ends_its_request(self):
        hasty = self.client.with_options(timeout=0.05)
        with self.assertRaises(openai.APITimeoutError):
            hasty.completions.create(model=MODEL, prompt="x", **LONG)
        self.check_cancelled()


class Queue(Client):
    options = ("--kv-bytes", "64M", "--max-requests", "1", "--max-waiting", "1")

    def test_a_full_queue_is_a_rate_limit_and_a_retry_is_answered(self):
        streams = [self.chat(stream=True, **LONG) for _ in range(2)]
        self.eventually(lambda: self.server.held()["waiting"], 1)
        with self.assertRaises(openai.RateLimitError) as caught:
            self.chat()
        self.assertEqual((caught.exception.code, caught.exception.response.headers["retry-after"]), ("queue_full", "1"))
        for stream in streams:
            stream.close()
        patient = self.client.with_options(max_retries=5)
        self.assertTrue(patient.completions.create(model=MODEL, prompt="x", max_tokens=2).choices)


class Async(Client):
    def test_fifty_at_once_are_answered_as_if_alone(self):
        prompts = [f"The weather of day {i}" for i in range(50)]
        alone = [self.complete(prompt, seed=3, temperature=1).choices[0].text for prompt in prompts]

        async def ask(client, number):
            more = {"model": MODEL, "prompt": prompts[number], "seed": 3, "temperature": 1, "max_tokens": 12}
            if number % 2 == 0:
                return (await client.completions.create(**more)).choices[0].text
            return "".join([at.choices[0].text async for at in await client.completions.create(stream=True, **more)])

        async def ask_all():
            async with openai.AsyncOpenAI(base_url=self.client.base_url, api_key="x", max_retries=0) as client:
                return await asyncio.gather(*(ask(client, i) for i in range(50)))

        self.assertEqual(asyncio.run(ask_all()), alone)

    def test_a_task_that_is_cancelled_ends_its_request(self):
        async def cancel():
            async with openai.AsyncOpenAI(base_url=self.client.base_url, api_key="x", max_retries=0) as client:
                task = asyncio.create_task(client.completions.create(model=MODEL, prompt="x", **LONG))
                end = time.monotonic() + serving.DEADLINE
                while self.server.held()["running"] == self.before["running"] and time.monotonic() < end:
                    await asyncio.sleep(0.01)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task

        asyncio.run(cancel())
        self.check_cancelled()


if __name__ == "__main__":
    serving.main()
