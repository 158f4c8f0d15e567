"""A LangGraph agent with modestream as its store: `python langgraph_agent.py USER`.

Needs `modestream-client[http,langgraph]`, `langgraph` and `openai`.
"""

import asyncio
import os
import sys
from typing import Any, TypedDict
from uuid import uuid4

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore
from modestream_client import HttpMemoryClient
from modestream_client.adapters.langgraph import ModestreamStore
from openai import AsyncOpenAI

NOTES = ("notes",)


class State(TypedDict, total=False):
    """What flows through the graph."""

    question: str
    notes: list[str]
    answer: str


async def recall(state: State, *, store: BaseStore) -> State:
    """Look up what was said before; keep what is said now."""
    found = await store.asearch(NOTES, query=state["question"], limit=5)
    await store.aput(NOTES, str(uuid4()), {"text": state["question"]})
    return {"notes": [item.value["text"] for item in found]}


async def answer(state: State) -> State:
    """Ask the model. It reads OPENAI_API_KEY and OPENAI_BASE_URL."""
    said = "\n".join(f"- {note}" for note in state["notes"])
    messages: Any = [
        {"role": "user", "content": f"Earlier I said:\n{said}" if said else "This is the first time we talk."},
        {"role": "user", "content": state["question"]},
    ]
    model = os.environ.get("MODEL", "gpt-4o-mini")
    completion = await AsyncOpenAI().chat.completions.create(model=model, messages=messages)
    return {"answer": completion.choices[0].message.content or ""}


async def main(user: str) -> None:
    """Answer lines of the terminal until an empty one."""
    graph = StateGraph(State)
    graph.add_node("recall", recall)
    graph.add_node("answer", answer)
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "answer")
    graph.add_edge("answer", END)
    url, key = os.environ.get("MODESTREAM_URL", "http://127.0.0.1:8080"), os.environ.get("MODESTREAM_KEY")
    async with HttpMemoryClient(url, key=key, user_id=user) as memory:
        agent = graph.compile(store=ModestreamStore(memory, user_id=user))
        while question := await asyncio.to_thread(input, "> "):
            print((await agent.ainvoke({"question": question}))["answer"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
