"""Agents of PyPI, driven by lines of JSON; a client is imported when the first line names it.

A line in is {"client", "origin", "key", "model", "chained", "streams"}; the line out is {"cities", "texts", "response"}: what
the tool was called with, what the agent answered to its two questions, and the id of the last response. A client that
raised has {"error"} instead.
"""
import asyncio
import json
import os
import sys
import traceback

QUESTIONS = ["What is the weather?", "And tomorrow?"]

os.environ.update(OPENAI_AGENTS_DISABLE_TRACING="1", LANGSMITH_TRACING="false")


def tool(cities):
    def weather(city: str) -> str:
        """Weather of a city."""
        cities.append(city)
        return "cold"

    return weather


async def openai_responses(job, cities):
    """`openai`: its client alone, without an agent around it."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=job["origin"] + "/v1", api_key=job["key"], max_retries=0)
    shape = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [{"type": "function", "name": "weather", "parameters": shape, "strict": False}]
    common = {"model": job["model"], "tools": tools, "reasoning": {"effort": "high"}}
    weather, history, previous, texts = tool(cities), [], None, []
    for question in QUESTIONS:
        new = [{"role": "user", "content": question}]
        while new:
            history += new
            given = {"input": new, "previous_response_id": previous} if job["chained"] else {"input": history}
            if job["streams"]:
                async with client.responses.stream(**common, **given) as stream:
                    answer = await stream.get_final_response()
            else:
                answer = await client.responses.create(**common, **given)
            previous, history = answer.id, history + answer.output
            calls = [item for item in answer.output if item.type == "function_call"]
            results = [(call.call_id, weather(**json.loads(call.arguments))) for call in calls]
            new = [{"type": "function_call_output", "call_id": id, "output": output} for id, output in results]
        texts.append(answer.output_text)
    return texts, previous


async def openai_agents(job, cities):
    from agents import Agent, ModelSettings, OpenAIProvider, RunConfig, Runner, function_tool
    from openai.types.shared import Reasoning

    settings = ModelSettings(reasoning=Reasoning(effort="high"), parallel_tool_calls=True)
    agent = Agent(name="a", model=job["model"], tools=[function_tool(tool(cities))], model_settings=settings)
    provider = OpenAIProvider(base_url=job["origin"] + "/v1", api_key=job["key"])
    common = {"run_config": RunConfig(model_provider=provider), "auto_previous_response_id": job["chained"]}
    history, previous, texts = [], None, []
    for question in QUESTIONS:
        given = [*history, {"role": "user", "content": question}]
        if job["streams"]:
            result = Runner.run_streamed(agent, given, previous_response_id=previous, **common)
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agent, given, previous_response_id=previous, **common)
        texts.append(result.final_output)
        last = result.raw_responses[-1].response_id
        history, previous = ([], last) if job["chained"] else (result.to_input_list(), None)
    return texts, last


async def langchain(job, cities):
    """`create_agent` over `ChatOpenAI` with `use_responses_api`."""
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    chat = ChatOpenAI(
        model=job["model"],
        base_url=job["origin"] + "/v1",
        api_key=job["key"],
        max_retries=0,
        use_responses_api=True,
        use_previous_response_id=job["chained"],
        include=["reasoning.encrypted_content"],
        reasoning={"effort": "high"},
        streaming=job["streams"],
    )
    agent = create_agent(chat, [tool(cities)])
    messages, texts = [], []
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        if job["streams"]:
            async for state in agent.astream({"messages": messages}, stream_mode="values"):
                pass
        else:
            state = await agent.ainvoke({"messages": messages})
        messages = state["messages"]
        texts.append(messages[-1].text)
    return texts, messages[-1].response_metadata["id"]


async def pydantic_ai(job, cities):
    """Names of models go to the provider of their prefix, which is told where it is by the environment."""
    from pydantic_ai import Agent

    os.environ.update(OPENAI_BASE_URL=job["origin"] + "/v1", OPENAI_API_KEY=job["key"])
    # Of a model whose name it does not know it neither asks for thinking nor sends it back by itself.
    settings = {"openai_reasoning_effort": "high", "openai_send_reasoning_ids": True}
    if job["chained"]:
        settings["openai_previous_response_id"] = "auto"
    agent = Agent(f"{job['prefix']}:{job['model']}", tools=[tool(cities)], model_settings=settings)
    history, texts = [], []
    for question in QUESTIONS:
        if job["streams"]:
            async with agent.run_stream(question, message_history=history) as result:
                texts.append(await result.get_output())
        else:
            result = await agent.run(question, message_history=history)
            texts.append(result.output)
        history = result.all_messages()
    return texts, history[-1].provider_response_id


async def google_genai(job, cities):
    """A chat of `google-genai` that calls Python functions by itself."""
    from google import genai

    client = genai.Client(api_key=job["key"], http_options={"base_url": job["origin"]})
    thinking = {"include_thoughts": True, "thinking_level": "HIGH"}
    chat = client.aio.chats.create(
        model=job["model"], config={"tools": [tool(cities)], "thinking_config": thinking}
    )
    texts = []
    for question in QUESTIONS:
        if job["streams"]:
            chunks = [chunk async for chunk in await chat.send_message_stream(question)]
        else:
            chunks = [await chat.send_message(question)]
        texts.append("".join(chunk.text or "" for chunk in chunks))
    return texts, None


CLIENTS = {
    "openai": openai_responses,
    "openai-agents": openai_agents,
    "langchain": langchain,
    "pydantic-ai": pydantic_ai,
    "google-genai": google_genai,
}


async def main():
    for line in sys.stdin:
        job, cities = json.loads(line), []
        try:
            texts, response = await CLIENTS[job["client"]](job, cities)
            result = {"cities": cities, "texts": texts, "response": response}
        except Exception as error:
            print(traceback.format_exc(), file=sys.stderr)
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)


asyncio.run(main())
