"""A chat service on FastAPI and sse-starlette: rooms that exist beforehand; a text goes in and comes out, without numbers."""

import asyncio
import itertools
import json
from datetime import datetime, timezone

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from sse_starlette import EventSourceResponse

import serving

given = serving.arguments()
application = FastAPI()
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


@application.post("/api/rooms/{room}/messages", status_code=201)
async def publish(room: str, message: Message):
    created = datetime.now(timezone.utc).isoformat()
    item = {"id": next(ids), "author": message.author, "text": message.text, "created_at": created}
    for queue in subscribers(room):
        queue.put_nowait(item)
    return item


if __name__ == "__main__":
    serving.serve(application, given.listen)
