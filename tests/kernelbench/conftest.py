"""A stand-in for the model, a server of answers that are none, and a browser."""

import contextlib
import importlib.util
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browser import chromium, colours, resize

_SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(scope="session")
def stand_in():
    """The module of the stand-in endpoint."""
    spec = importlib.util.spec_from_file_location("stand_in", _SCRIPTS / "stand_in.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def answering():
    """Serve this status and these headers, then what ``write`` writes with the handler, whatever is posted."""
    servers = []

    def serve(write, status=200, **headers):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                with contextlib.suppress(OSError):
                    write(self)

            def log_message(self, *_):
                pass

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        servers[-1].daemon_threads = True
        threading.Thread(target=servers[-1].serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def chrome():
    with chromium() as opened:
        yield opened


@pytest.fixture
def browser(chrome):
    """A light desktop; what a page complains about in the console fails the test."""
    chrome.get("about:blank")
    resize(chrome, 1400, 900)
    colours(chrome, "light")
    yield chrome
    errors = [entry for entry in chrome.get_log("browser") if entry["level"] == "SEVERE"]
    assert not errors, errors
