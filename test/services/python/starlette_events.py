"""A Starlette application with sse-starlette: each subscriber of a topic has a queue."""

import asyncio

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

import serving

arguments = serving.arguments(ping=(15, "seconds between comments"))
topics = {}


async def events(request):
    queue, queues = asyncio.Queue(), topics.setdefault(request.path_params["topic"], set())
    # The subscription precedes the response headers, so that no later message is missed.
    queues.add(queue)

    async def stream():
        try:
            while True:
                yield ServerSentEvent(await queue.get(), event="update")
        finally:
            queues.discard(queue)

    return EventSourceResponse(stream(), ping=arguments.ping)


async def publish(request):
    message = (await request.body()).decode()
    for queue in topics.get(request.path_params["topic"], ()):
        queue.put_nowait(message)
    return Response(status_code=202)


application = Starlette(
    routes=[Route("/events/{topic}", events), Route("/publish/{topic}", publish, methods=["POST"])]
)

if __name__ == "__main__":
    serving.serve(application, arguments.listen)
