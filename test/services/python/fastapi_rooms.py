"""A service with FastAPI and sse-starlette: a chat room, and prices. Messages have no numbers."""

import asyncio
import itertools
import json
import random
from contextlib import asynccontextmanager
from datetime import datetime, timezone

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from sse_starlette import EventSourceResponse

import serving

arguments = serving.arguments()
prices = set()


async def send_prices():
    """Changes the price at random intervals, and sends it to all subscribers."""
    price = 10000
    while True:
        await asyncio.sleep(random.uniform(0.05, 0.4))
        price += random.randint(-20, 20)
        for queue in prices:
            queue.put_nowait(price / 100)


@asynccontextmanager
async def lifespan(_):
    task = asyncio.create_task(send_prices())
    yield
    task.cancel()


application = FastAPI(lifespan=lifespan)
rooms = {"news": set()}
ids = itertools.count(1)


class Message(BaseModel):
    author: str
    text: str


def subscribers(room):
    if room not in rooms:
        raise HTTPException(404, f"there is no room {room}")
    return rooms[room]


@application.get("/api/rooms/{room}/events")
async def events(room: str):
    queue, queues = asyncio.Queue(), subscribers(room)
    queues.add(queue)

    async def stream():
        try:
            while True:
                yield {"data": json.dumps(await queue.get())}
        finally:
            queues.discard(queue)

    return EventSourceResponse(stream())


@application.get("/api/prices")
async def price_events():
    queue, subscriber = asyncio.Queue(), next(ids)
    prices.add(queue)

    async def stream():
        try:
            while True:
                yield {"event": "price", "data": json.dumps({"price": await queue.get(), "subscriber": subscriber})}
        finally:
            prices.discard(queue)

    return EventSourceResponse(stream())


@application.post("/api/rooms/{room}/messages", status_code=201)
async def publish(room: str, message: Message):
    created = datetime.now(timezone.utc).isoformat()
    item = {"id": next(ids), "author": message.author, "text": message.text, "created_at": created}
    for queue in subscribers(room):
        queue.put_nowait(item)
    return item


if __name__ == "__main__":
    serving.serve(application, arguments.listen)
