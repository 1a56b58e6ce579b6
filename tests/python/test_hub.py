"""hub: local repositories, repositories and files of a server (a local one that answers as GitHub does), hashes, trust."""

import hashlib
import http.server
import io
import threading
import zipfile

import cresset
import pytest
from cresset import hub
from cresset.utils import model_zoo

HUBCONF = """
dependencies = ["json"]
import helper_of_this_repository as helper

def half(x, scale=1):
    "Half of x."
    return helper.half(x) * scale

def _hidden():
    pass

number = 3
"""


def archive(members):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as z:
        for name, text in members.items():
            z.writestr(name, text)
    return data.getvalue()


REPOSITORY = {"owner-repo-1234/": "", "owner-repo-1234/hubconf.py": HUBCONF, "owner-repo-1234/helper_of_this_repository.py": "def half(x): return x / 2\n"}


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A dictionary of answers by path; `asked` lists the paths in order."""
    answers, asked = {}, []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            body = answers.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"") + answers.get("missing bytes", 0)))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *args):
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{httpd.server_address[1]}"
    monkeypatch.setattr(hub, "_GITHUB", address)
    monkeypatch.setattr(hub, "_GITHUB_API", address + "/api")
    monkeypatch.setattr(hub, "_hub_dir", str(tmp_path / "hub"))
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    answers["/owner/repo/zipball/v1"] = archive(REPOSITORY)
    answers["/api/repos/owner/repo/branches?per_page=100&page=1"] = b"[]"
    answers["/api/repos/owner/repo/tags?per_page=100&page=1"] = b'[{"name": "v1", "commit": {"sha": "12ab"}}]'
    answers["/api/repos/owner/repo/tags?per_page=100&page=2"] = b"[]"
    yield type("Server", (), {"answers": answers, "asked": asked, "address": address})
    httpd.shutdown()
    httpd.server_close()


def test_local_repository(tmp_path):
    for name, text in REPOSITORY.items():
        if not name.endswith("/"):
            (tmp_path / name.split("/")[1]).write_text(text)
    assert hub.load(str(tmp_path), "half", 8.0, source="local", scale=3) == 12.0
    for name, message in (("nothing", "Cannot find callable nothing in hubconf"), ("number", "Cannot find callable number in hubconf")):
        with pytest.raises(RuntimeError, match=message):
            hub.load(tmp_path, name, source="local")
    with pytest.raises(ValueError, match='Unknown source: "web". Allowed values: "github" | "local".'):
        hub.load(str(tmp_path), "half", source="web")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package_a', 'json', 'no_such_package_b']\ndef f(): pass\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package_a, no_such_package_b"):
        hub.load(tmp_path, "f", source="local")


def test_repository_of_a_server(server, capsys, monkeypatch):
    assert hub.load("owner/repo:v1", "half", 8.0, trust_repo=True) == 4.0
    assert "Downloading: " in capsys.readouterr().err
    assert hub.list("owner/repo:v1") == ["half"]
    assert hub.help("owner/repo:v1", "half") == "Half of x." and "Using cache found in" in capsys.readouterr().err
    assert server.asked.count("/owner/repo/zipball/v1") == 1
    assert hub.load("owner/repo:v1", "half", 8.0, force_reload=True, skip_validation=True, verbose=False) == 4.0
    assert server.asked.count("/owner/repo/zipball/v1") == 2
    with pytest.raises(ValueError, match="Cannot find v2 in https://github.com/owner/repo"):
        hub.load("owner/repo:v2", "half", trust_repo=True)
    with pytest.raises(ValueError, match="owner/name"):
        hub.load("owner", "half")


@pytest.mark.parametrize(("answer", "error"), [("n", "Untrusted repository"), ("", "Untrusted repository"), ("what", "Unrecognized response what")])
def test_untrusted_repositories_are_asked_about(server, monkeypatch, answer, error):
    monkeypatch.setattr("builtins.input", lambda text: answer)
    for trust in ("check", False):
        with pytest.raises(Exception, match=error):
            hub.load("owner/repo:v1", "half", 8.0, trust_repo=trust)
    assert "/owner/repo/zipball/v1" not in server.asked
    monkeypatch.setattr("builtins.input", lambda text: "y")
    assert hub.load("owner/repo:v1", "half", 8.0) == 4.0
    monkeypatch.setattr("builtins.input", lambda text: pytest.fail("asked again"))
    assert hub.load("owner/repo:v1", "half", 8.0) == 4.0


def test_archives_cannot_write_elsewhere(server, tmp_path):
    server.answers["/owner/repo/zipball/v1"] = archive({"top/": "", "top/../../../evil.py": ""})
    with pytest.raises(RuntimeError, match="outside of its folder"):
        hub.load("owner/repo:v1", "half", trust_repo=True)
    assert not list(tmp_path.rglob("evil.py"))


def saved(value):
    data = io.BytesIO()
    cresset.save(value, data)
    return data.getvalue()


def test_weights_of_a_server(server, tmp_path):
    body = saved({"w": cresset.ones(2)})
    digest = hashlib.sha256(body).hexdigest()
    server.answers[f"/net-{digest[:8]}.pth"] = server.answers["/net-00000000.pth"] = body
    for _ in range(2):
        state = hub.load_state_dict_from_url(f"{server.address}/net-{digest[:8]}.pth", progress=False, check_hash=True)
        assert state["w"].tolist() == [1.0, 1.0]
    assert server.asked == [f"/net-{digest[:8]}.pth"]
    with pytest.raises(RuntimeError, match=f'invalid hash value .expected "00000000", got "{digest}"'):
        model_zoo.load_url(f"{server.address}/net-00000000.pth", progress=False, check_hash=True, file_name="x-00000000.pth")
    folder = tmp_path / "hub" / "checkpoints"
    assert [f.name for f in folder.iterdir()] == [f"net-{digest[:8]}.pth"]  # nothing is left of the file that was refused
    server.answers["missing bytes"] = 7
    with pytest.raises(Exception, match="retrieval incomplete|IncompleteRead|got only"):
        hub.download_url_to_file(f"{server.address}/net-00000000.pth", str(tmp_path / "x"), progress=False)
    assert not (tmp_path / "x").exists()


def test_packed_weights(server):
    server.answers["/packed.zip"] = archive({"inner.pth": saved({"w": cresset.zeros(1)})})
    assert model_zoo.load_url(f"{server.address}/packed.zip", progress=False)["w"].tolist() == [0.0]


def test_folders(monkeypatch, tmp_path):
    monkeypatch.setattr(hub, "_hub_dir", None)
    monkeypatch.delenv("TORCH_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert hub.get_dir() == str(tmp_path / "torch" / "hub")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    assert hub.get_dir() == str(tmp_path / "home" / "hub")
    hub.set_dir(str(tmp_path / "other"))
    assert hub.get_dir() == str(tmp_path / "other")
