"""Flags and the server that all services share."""

import argparse
import resource

import uvicorn


def arguments(**flags):
    """Parses --listen and the flags of a service, given as name=(default, help)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", default="127.0.0.1:8000", help="address:port")
    for name, (default, text) in flags.items():
        parser.add_argument("--" + name, default=default, type=type(default), help=text)
    return parser.parse_args()


def serve(application, listen):
    """Serves an application with the maximum number of file descriptors."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    host, port = listen.rsplit(":", 1)
    # Streams do not end by themselves, so a graceful shutdown must not wait for them.
    uvicorn.run(application, host=host, port=int(port), log_level="warning", backlog=8192, timeout_graceful_shutdown=1)
