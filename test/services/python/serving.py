"""What both services have in common: where they listen, and how many streams they may hold."""

import argparse
import resource

import uvicorn


def arguments(**more):
    """The flags, --listen and those of the service: name=(default, help)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", default="127.0.0.1:8000", help="address:port")
    for name, (default, text) in more.items():
        parser.add_argument("--" + name, default=default, type=type(default), help=text)
    return parser.parse_args()


def serve(application, listen):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    host, port = listen.rsplit(":", 1)
    # A stream has no end that a graceful shutdown could wait for.
    uvicorn.run(application, host=host, port=int(port), log_level="warning", backlog=8192, timeout_graceful_shutdown=1)
