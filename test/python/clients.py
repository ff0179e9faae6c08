"""The official clients, driven by lines of JSON; a client is imported when the first line names it.

A line in is {"client", "run", "origin", "key", "model"}; the line out is what a user of the client sees, or
{"error": {"class", "status", "message"}} when the client raised.
"""
import json
import sys
import tempfile
from functools import cache

from pydantic import BaseModel

QUESTION = {"role": "user", "content": "What is the weather like?"}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTIONS = [
    {"type": "function", "function": {"name": "weather", "description": "Weather of a city", "parameters": PARAMETERS}}
]
TOOLS = [{"name": "weather", "description": "Weather of a city", "input_schema": PARAMETERS}]
RESULT = "cold"
LIMIT = 1000


def listed(model):
    """Further models of a request, and what may serve them."""
    return {"models": [model + ":floor"], "provider": {"sort": "price", "allow_fallbacks": True}}


class Person(BaseModel):
    name: str
    age: int


class OpenAi:
    """`openai`: the chat endpoint."""

    def __init__(self, job):
        self.model = job["model"]
        self.chats = self.client(job["origin"], job["key"]).chat.completions

    @staticmethod
    @cache
    def client(origin, key):
        import openai

        return openai.OpenAI(base_url=origin + "/v1", api_key=key, max_retries=0)

    def chat(self):
        return whole(self.chats.create(model=self.model, messages=[QUESTION]))

    def stream(self):
        options = {"include_usage": True}
        chunks = self.chats.create(model=self.model, messages=[QUESTION], stream=True, stream_options=options)
        return joined(chunks)

    def tools(self):
        """Two turns, the first whole and the second by the helper that joins a stream's deltas."""
        first = self.chats.create(model=self.model, messages=[QUESTION], tools=FUNCTIONS)
        messages = with_results([QUESTION], first.choices[0].message)
        with self.chats.stream(model=self.model, messages=messages, tools=FUNCTIONS) as stream:
            for _ in stream:
                pass
            second = stream.get_final_completion()
        messages = with_results(messages, second.choices[0].message)
        last = self.chats.create(model=self.model, messages=messages, tools=FUNCTIONS)
        return {"turns": [calls_of(first), calls_of(second)], "text": last.choices[0].message.content}

    def routed(self):
        return {"model": self.chats.create(model="nowhere", messages=[QUESTION], extra_body=listed(self.model)).model}

    def structured(self):
        answer = self.chats.parse(model=self.model, messages=[QUESTION], response_format=Person)
        return answer.choices[0].message.parsed.model_dump()


class OpenAiResponses:
    """`openai`: the Responses API, whose answers the project keeps."""

    def __init__(self, job):
        self.model = job["model"]
        self.responses = OpenAi.client(job["origin"], job["key"]).responses

    def chat(self):
        return answered(self.responses.create(model=self.model, input=[QUESTION]))

    def stream(self):
        with self.responses.stream(model=self.model, input=[QUESTION]) as stream:
            pieces = [event for event in stream if event.type == "response.output_text.delta"]
            return {**answered(stream.get_final_response()), "pieces": len(pieces)}

    def tools(self):
        """Two turns: the items go back after the first, the second is gone on from by its id."""
        tools = [{"type": "function", "strict": False, **FUNCTIONS[0]["function"]}]
        first = self.responses.create(model=self.model, input=[QUESTION], tools=tools)
        whole_input = [QUESTION, *first.output, *outputs_of(first)]
        with self.responses.stream(model=self.model, input=whole_input, tools=tools) as stream:
            second = stream.get_final_response()
        results = outputs_of(second)
        last = self.responses.create(model=self.model, previous_response_id=second.id, input=results, tools=tools)
        kept = self.responses.retrieve(last.id)
        return {"turns": [function_calls(first), function_calls(second)], "text": kept.output_text}

    def routed(self):
        return {"model": self.responses.create(model="nowhere", input=[QUESTION], extra_body=listed(self.model)).model}

    def structured(self):
        answer = self.responses.parse(model=self.model, input=[QUESTION], text_format=Person)
        return answer.output_parsed.model_dump()


PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452") + bytes(24)


class OpenAiMedia:
    """`openai`: images, audio and moderations. A model's name may have a content type behind it, which is sent."""

    def __init__(self, job):
        self.client = OpenAi.client(job["origin"], job["key"])
        model, _, content_type = job["model"].partition(" ")
        headers = {"Content-Type": content_type} if content_type else {}
        self.common = {"model": model, "extra_headers": headers}
        self.audio = {"file": ("a.mp3", bytes(2000)), **self.common}

    def generate(self):
        answer = self.client.images.generate(prompt="a cat", n=2, **self.common)
        return {"images": len(answer.data), "cost": answer.usage.cost}

    def edit(self):
        files = [("a.png", PNG), ("b.png", PNG)]
        answer = self.client.images.edit(prompt="a hat", image=files, mask=("m.png", PNG), **self.common)
        return {"images": len(answer.data), "format": answer.output_format}

    def generate_streamed(self):
        stream = self.client.images.generate(prompt="a cat", stream=True, partial_images=1, **self.common)
        return {"types": [event.type for event in stream]}

    def edit_streamed(self):
        stream = self.client.images.edit(prompt="x", image=("a.png", PNG), stream=True, partial_images=1, **self.common)
        return {"types": [event.type for event in stream]}

    def speak(self):
        """Into a file, as it comes."""
        speech = self.client.audio.speech.with_streaming_response
        with tempfile.NamedTemporaryFile() as file:
            with speech.create(input="Hello", voice="alloy", **self.common) as answer:
                answer.stream_to_file(file.name)
            return {"begins": file.read(4).decode("latin1")}

    def transcribe(self):
        formats = ["json", "text", "srt", "verbose_json", "vtt"]
        answers = [self.client.audio.transcriptions.create(response_format=name, **self.audio) for name in formats]
        texts = [answer if isinstance(answer, str) else answer.text for answer in answers]
        return {"simulated": ["simulated transcript" in text for text in texts]}

    def transcribe_streamed(self):
        stream = self.client.audio.transcriptions.create(stream=True, **self.audio)
        return {"types": [event.type for event in stream]}

    def translate(self):
        return {"text": self.client.audio.translations.create(**self.audio).text}

    def moderate(self):
        answer = self.client.moderations.create(input=["calm", "violence"], **self.common)
        return {"flagged": [result.flagged for result in answer.results]}


class Anthropic:
    """`anthropic`: the Messages endpoint."""

    def __init__(self, job):
        self.common = {"model": job["model"], "max_tokens": LIMIT}
        self.messages = self.client(job["origin"], job["key"]).messages

    @staticmethod
    @cache
    def client(origin, key):
        import anthropic

        return anthropic.Anthropic(base_url=origin, api_key=key, max_retries=0)

    def chat(self):
        return message(self.messages.create(messages=[QUESTION], **self.common))

    def stream(self):
        with self.messages.stream(messages=[QUESTION], **self.common) as stream:
            pieces = list(stream.text_stream)
            return {**message(stream.get_final_message()), "pieces": len(pieces)}

    def tools(self):
        first = self.messages.create(messages=[QUESTION], tools=TOOLS, **self.common)
        messages = with_tool_results([QUESTION], first)
        with self.messages.stream(messages=messages, tools=TOOLS, **self.common) as stream:
            second = stream.get_final_message()
        messages = with_tool_results(messages, second)
        last = self.messages.create(messages=messages, tools=TOOLS, **self.common)
        return {"turns": [uses_of(first), uses_of(second)], "text": last.content[0].text}

    def routed(self):
        common = {**self.common, "model": "nowhere"}
        listing = listed(self.common["model"])
        return {"model": self.messages.create(messages=[QUESTION], extra_body=listing, **common).model}

    def structured(self):
        answer = self.messages.parse(messages=[QUESTION], output_format=Person, **self.common)
        return answer.parsed_output.model_dump()


class GoogleGenAi:
    """`google-genai`: Google's own API."""

    def __init__(self, job):
        self.model = job["model"]
        self.models = self.client(job["origin"], job["key"]).models

    @staticmethod
    @cache
    def client(origin, key):
        from google import genai

        return genai.Client(api_key=key, http_options={"base_url": origin})

    def chat(self):
        return generated(self.models.generate_content(model=self.model, contents=QUESTION["content"]))

    def stream(self):
        chunks = list(self.models.generate_content_stream(model=self.model, contents=QUESTION["content"]))
        text = "".join(chunk.text or "" for chunk in chunks)
        return {**generated(chunks[-1]), "text": text, "pieces": len(chunks)}

    def tools(self):
        """Two turns, the first whole and the second streamed; thoughts are asked for, and dropped."""
        contents = [{"role": "user", "parts": [{"text": QUESTION["content"]}]}]
        declaration = {"name": "weather", "description": "Weather of a city", "parameters_json_schema": PARAMETERS}
        thinking = {"include_thoughts": True, "thinking_budget": 2000}
        config = {"tools": [{"function_declarations": [declaration]}], "thinking_config": thinking}
        config["automatic_function_calling"] = {"disable": True}
        common = {"model": self.model, "config": config}
        turns = []
        for streams in [False, True]:
            if streams:
                answers = self.models.generate_content_stream(contents=contents, **common)
            else:
                answers = [self.models.generate_content(contents=contents, **common)]
            parts = [part for answer in answers for part in answer.candidates[0].content.parts or []]
            calls = [part.function_call for part in parts if part.function_call]
            turns.append([[call.name, call.args] for call in calls])
            results = [{"function_response": {"name": call.name, "response": {"result": RESULT}}} for call in calls]
            contents += [{"role": "model", "parts": [part for part in parts if not part.thought]}]
            contents += [{"role": "user", "parts": results}]
        return {"turns": turns, "text": self.models.generate_content(contents=contents, **common).text}

    def structured(self):
        config = {"response_mime_type": "application/json", "response_schema": Person}
        answer = self.models.generate_content(model=self.model, contents=QUESTION["content"], config=config)
        return answer.parsed.model_dump()


def generated(answer):
    usage = answer.usage_metadata
    return {
        "text": answer.text,
        "finish": answer.candidates[0].finish_reason.value,
        "prompt": usage.prompt_token_count,
        "completion": usage.candidates_token_count,
    }


class LiteLlm:
    """`litellm`: one call for every provider; the model's prefix chooses the endpoint."""

    def __init__(self, job):
        import litellm

        litellm.suppress_debug_info = True
        base = job["origin"] + ("/v1" if job["model"].startswith("openai/") else "")
        self.common = {"model": job["model"], "api_base": base, "api_key": job["key"], "max_retries": 0}
        self.completion = litellm.completion

    def chat(self):
        return whole(self.completion(messages=[QUESTION], **self.common))

    def stream(self):
        options = {"include_usage": True}
        return joined(self.completion(messages=[QUESTION], stream=True, stream_options=options, **self.common))

    def tools(self):
        """Two turns, the first whole and the second joined by litellm's own builder."""
        import litellm

        first = self.completion(messages=[QUESTION], tools=FUNCTIONS, **self.common)
        messages = with_results([QUESTION], first.choices[0].message)
        chunks = list(self.completion(messages=messages, tools=FUNCTIONS, stream=True, **self.common))
        second = litellm.stream_chunk_builder(chunks, messages=messages)
        messages = with_results(messages, second.choices[0].message)
        last = self.completion(messages=messages, tools=FUNCTIONS, **self.common)
        return {"turns": [calls_of(first), calls_of(second)], "text": last.choices[0].message.content}

    def structured(self):
        answer = self.completion(messages=[QUESTION], response_format=Person, **self.common)
        return Person.model_validate_json(answer.choices[0].message.content).model_dump()


def whole(answer):
    choice = answer.choices[0]
    return {"text": choice.message.content, "finish": choice.finish_reason, **tokens(answer.usage)}


def joined(chunks):
    text, finish, pieces, usage = "", None, 0, None
    for chunk in chunks:
        usage = getattr(chunk, "usage", None) or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            pieces += 1 if choice.delta.content else 0
            finish = choice.finish_reason or finish
    return {"text": text, "finish": finish, "pieces": pieces, **tokens(usage)}


def tokens(usage):
    return {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens}


def answered(response):
    usage = response.usage
    return {
        "text": response.output_text,
        "finish": response.status,
        "prompt": usage.input_tokens,
        "completion": usage.output_tokens,
    }


def function_calls(response):
    return [[item.name, json.loads(item.arguments)] for item in response.output if item.type == "function_call"]


def outputs_of(response):
    calls = [item for item in response.output if item.type == "function_call"]
    return [{"type": "function_call_output", "call_id": call.call_id, "output": RESULT} for call in calls]


def calls_of(answer):
    return [[call.function.name, json.loads(call.function.arguments)] for call in answer.choices[0].message.tool_calls]


def with_results(messages, message):
    results = [{"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in message.tool_calls]
    return [*messages, message.model_dump(exclude_none=True), *results]


def message(answer):
    text = "".join(block.text for block in answer.content if block.type == "text")
    usage = answer.usage
    return {
        "text": text,
        "finish": answer.stop_reason,
        "prompt": usage.input_tokens,
        "completion": usage.output_tokens,
    }


def uses_of(answer):
    return [[block.name, block.input] for block in answer.content if block.type == "tool_use"]


def with_tool_results(messages, answer):
    uses = [block for block in answer.content if block.type == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": use.id, "content": RESULT} for use in uses]
    return [*messages, {"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]


def told(error):
    """The class by which a program tells this error from others, and what it carries."""
    return {
        "class": type(error).__name__,
        "status": getattr(error, "status_code", None) or getattr(error, "code", None),
        "message": str(error),
    }


class OpenAiRealtime:
    """`openai`: a session over a WebSocket."""

    def __init__(self, job):
        self.job = job

    def session(self):
        import openai

        origin, key = self.job["origin"], self.job["key"]
        socket = origin.replace("http", "ws", 1) + "/v1"
        client = openai.OpenAI(base_url=origin + "/v1", websocket_base_url=socket, api_key=key)
        text = ""
        with client.realtime.connect(model=self.job["model"]) as connection:
            connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
            connection.response.create()
            for event in connection:
                if event.type == "error":
                    return {"error": event.error.code}
                if event.type == "response.output_text.delta":
                    text += event.delta
                if event.type == "response.done":
                    return {"text": text, "status": event.response.status, "tokens": event.response.usage.total_tokens}


CLIENTS = {
    "openai": OpenAi,
    "openai-responses": OpenAiResponses,
    "openai-media": OpenAiMedia,
    "openai-realtime": OpenAiRealtime,
    "anthropic": Anthropic,
    "litellm": LiteLlm,
    "google-genai": GoogleGenAi,
}

for line in sys.stdin:
    job = json.loads(line)
    try:
        result = getattr(CLIENTS[job["client"]](job), job["run"])()
    except Exception as error:  # Every error is a result.
        result = {"error": told(error)}
    print(json.dumps(result), flush=True)
