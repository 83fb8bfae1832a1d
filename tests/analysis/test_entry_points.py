"""Functions that a runtime calls for each request: what they keep grows as long as the process lives."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from linting import codes_in, findings_in

found = functools.partial(codes_in, name="server.py")

#: a function that keeps what a network gives for each call
KEEPS = """
import torch
{imports}
from outside import decode
from torchvision.models import resnet50

net = resnet50(weights="DEFAULT").cuda().eval()
seen = []


{above}
def answer({given}):
    with torch.no_grad():
        out = net(decode({name}).cuda())
    seen.append(out)
    return out.argmax(dim=1).tolist()


{below}
"""


@pytest.mark.parametrize(
    ("imports", "above", "given", "below"),
    [
        ("from fastapi import FastAPI\napp = FastAPI()", '@app.post("/predict")', "image", ""),
        ("from flask import Flask\napp = Flask(__name__)", '@app.route("/", methods=["POST"])', "image", ""),
        ("from bottle import route", '@route("/predict")', "image", ""),
        ("from outside import router", '@router.websocket("/stream")', "image", ""),
        ("from aiohttp import web", "", "image", "web.Application().router.add_post('/', answer)"),
        ("import gradio as gr", "", "image", 'gr.Interface(fn=answer, inputs="image", outputs="label").launch()'),
        (
            "import gradio as gr",
            "",
            "image",
            "with gr.Blocks():\n    gr.Button().click(answer, gr.Image(), gr.Label())",
        ),
        ("import rospy", "", "image", 'rospy.Subscriber("image", Image, answer)'),
        ("import rospy, functools", "", "image", 'rospy.Subscriber("i", Image, functools.partial(answer, size=3))'),
        ("import runpod", "", "image", 'runpod.serverless.start({"handler": answer})'),
        (
            "from telegram.ext import MessageHandler",
            "",
            "image",
            "app.add_handler(MessageHandler(filters.PHOTO, answer))",
        ),
        ("import telebot\nbot = telebot.TeleBot('')", '@bot.message_handler(content_types=["photo"])', "image", ""),
        ("from celery import Celery\napp = Celery('tasks')", "@app.task", "image", ""),
        ("from celery import shared_task", "@shared_task(bind=True)", "image", ""),
        ("from django.http import JsonResponse", "", "request", ""),
    ],
)
def test_what_a_runtime_calls(tmp_path: Path, imports: str, above: str, given: str, below: str) -> None:
    text = KEEPS.format(imports=imports, above=above, given=given, name=given, below=below)
    (finding,) = findings_in(tmp_path, text, "server.py")
    assert (finding.code, "each call of answer" in finding.message) == ("MEM104", True)


@pytest.mark.parametrize(
    ("imports", "above", "given", "below"),
    [
        ("", "", "image", ""),
        ("", "", "image", "answer(1)"),
        # no such packages
        ("from outside import app", "@app.task", "image", ""),
        ("", "", "request", ""),
        ("", "", "image", 'Subscriber("image", Image, answer)'),
        # once in the life of the process
        ("from fastapi import FastAPI\napp = FastAPI()", '@app.on_event("startup")', "image", ""),
        ("import click", "@click.command()", "image", "answer()"),
        ("import discord\nbot = discord.Client()", "@bot.event", "image", ""),
        # no path of a server
        ("from outside import cache", '@cache.get("limit")', "image", ""),
        # another argument than the function
        ("import gradio as gr", "", "image", "gr.Interface(fn=show, inputs=answer(1))"),
    ],
)
def test_what_nothing_repeats(tmp_path: Path, imports: str, above: str, given: str, below: str) -> None:
    text = KEEPS.format(imports=imports, above=above, given=given, name=given, below=below)
    assert found(tmp_path, text) == []


#: a class whose method a runtime calls
OBJECT = """
import torch
{imports}
from outside import decode
from torchvision.models import resnet50


{above}
class Server({base}):
    def {first}(self, *args):
        self.net = resnet50(weights="DEFAULT").cuda().eval()
        self.seen = []

    def {method}(self, image):
        with torch.no_grad():
            out = self.net(decode(image).cuda())
        self.seen.append(out)
        return out.argmax(dim=1).tolist()
"""


@pytest.mark.parametrize(
    ("imports", "above", "base", "first", "method", "codes"),
    [
        ("from cog import BasePredictor", "", "BasePredictor", "setup", "predict", ["MEM104"]),
        ("import litserve as ls", "", "ls.LitAPI", "setup", "predict", ["MEM104"]),
        ("import mlflow", "", "mlflow.pyfunc.PythonModel", "load_context", "predict", ["MEM104"]),
        ("from kserve import Model", "", "Model", "load", "predict", ["MEM104"]),
        ("from ray import serve", "@serve.deployment", "object", "__init__", "__call__", ["MEM104"]),
        # nothing is known to call it again
        ("from outside import BasePredictor", "", "BasePredictor", "setup", "predict", []),
        ("from cog import BasePredictor", "", "BasePredictor", "setup", "export", []),
        ("from outside import serve", "@serve.deployment", "object", "__init__", "__call__", []),
        # a new object for each request
        ("import tornado.web", "", "tornado.web.RequestHandler", "initialize", "post", []),
        ("from django.views import View", "", "View", "setup", "post", []),
    ],
)
def test_methods(
    tmp_path: Path, imports: str, above: str, base: str, first: str, method: str, codes: list[str]
) -> None:
    text = OBJECT.format(imports=imports, above=above, base=base, first=first, method=method)
    assert found(tmp_path, text) == codes


ROUTE = """
import torch
from collections import deque
from fastapi import FastAPI
from outside import decode, outside
from torchvision.models import resnet50

app = FastAPI()
net = resnet50(weights="DEFAULT").cuda().eval()
seen = []
recent = deque(maxlen=8)
total = 0
gallery = torch.empty(0, 1000).cuda()


class Log:
    def __init__(self):
        self.outputs = []

    def add(self, out):
        self.outputs.append(out)


log = Log()


def look(image):
    net.layer4.register_forward_hook(lambda module, args, output: print(output.std()))
    return net(image)


@app.post("/predict")
def predict(image):
    global total, gallery
    x = decode(image).cuda()
    with torch.no_grad():
        {body}
    return 1
"""


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("log.add(net(x))", ["MEM104"]),
        ("gallery = torch.cat([gallery, net(x)])", ["MEM302"]),
        ("look(x)", ["MEM105"]),
        ("net.layer4.register_forward_hook(show); net(x)", ["MEM105"]),
        # bounded, emptied, numbers, and what goes with the request
        ("recent.append(net(x))", []),
        ("seen.append(net(x)); seen.pop(0)", []),
        ("seen.clear(); seen.append(net(x))", []),
        ("seen.append(net(x).cpu())", []),
        ("seen.append(net(x).argmax().item())", []),
        ("total = total + net(x).max().item()", []),
        ("mine = []; mine.append(net(x)); torch.cat(mine).sum().item()", []),
        ("mine = Log(); mine.add(net(x)); len(mine.outputs)", []),
        ("gallery = torch.cat([gallery, net(x)])[-8:]", []),
        ("outside.append(net(x))", []),
        ("handle = net.layer4.register_forward_hook(show); net(x); handle.remove()", []),
        ("mine = resnet50().cuda(); mine.layer4.register_forward_hook(show); mine(x)", []),
        # a cost for each request is small
        ("net(x); torch.cuda.empty_cache()", []),
    ],
)
def test_what_a_request_leaves(tmp_path: Path, body: str, codes: list[str]) -> None:
    assert found(tmp_path, ROUTE.format(body=body)) == codes


@pytest.mark.parametrize(
    ("body", "empty"),
    [
        ("seen.append(net(x))", "seen.clear()"),
        ("seen.append(net(x))", "global seen; seen = []"),
        ("seen.append(net(x))", "global seen; part, seen = seen[:8], seen[8:]"),
        ("seen.append(net(x))", "del seen[:]"),
        ("seen.append(net(x))", "return seen.pop()"),
        ("gallery = torch.cat([gallery, net(x)])", "global gallery; gallery = torch.empty(0, 1000).cuda()"),
        ("log.add(net(x))", "log.outputs.clear()"),
        ("log.add(net(x))", "log.outputs = log.outputs[-8:]"),
    ],
)
def test_what_other_code_empties(tmp_path: Path, body: str, empty: str) -> None:
    text = ROUTE.format(body=body)
    assert len(found(tmp_path, text)) == 1
    assert found(tmp_path, f"{text}\n\ndef work():\n    {empty}\n") == []


@pytest.mark.parametrize(
    ("other", "count"),
    [
        ("import server\n\ndef work():\n    server.seen.clear()", 0),
        ("from server import seen\n\ndef work():\n    seen.pop()", 0),
        # another variable of that name
        ("seen = []\n\ndef work():\n    seen.clear()", 1),
    ],
)
def test_what_another_file_empties(tmp_path: Path, other: str, count: int) -> None:
    (tmp_path / "work.py").write_text(other)
    assert len(found(tmp_path, ROUTE.format(body="seen.append(net(x))"))) == count


@pytest.mark.parametrize(("beside", "codes"), [("model_fn", ["MEM201"]), ("load_data", [])])
def test_a_convention_of_names(tmp_path: Path, beside: str, codes: list[str]) -> None:
    text = f"""
import torch
from outside import attack, images
from torchvision.models import resnet50

net = resnet50().cuda().eval()


def {beside}(path):
    return net


def predict_fn(image, model):
    return net(image)


attack(predict_fn, images)
"""
    assert found(tmp_path, text) == codes


def test_the_graph_of_each_request(tmp_path: Path) -> None:
    text = ROUTE.replace("with torch.no_grad():", "if True:").format(body="seen.append(net(x))")
    assert {(one.code, one.severity) for one in findings_in(tmp_path, text)} == {
        ("MEM201", "error"),
        ("MEM102", "note"),
    }


@pytest.mark.parametrize(
    ("above", "body", "codes"),
    [
        # the answer to a request is trained by nobody
        ('@app.post("/predict")', "return net(decode(image))", ["MEM201"]),
        ("", "return net(decode(image))", []),
        # its file trains
        ('@app.post("/step")', "loss = net(decode(image)); loss.backward(); return loss", []),
    ],
)
def test_an_answer_with_its_graph(tmp_path: Path, above: str, body: str, codes: list[str]) -> None:
    text = f"""
import torch
from outside import app, load, decode

net = load().cuda()
net.eval()


{above}
def answer(image):
    {body}
"""
    assert found(tmp_path, text) == codes


@pytest.mark.parametrize(("name", "codes"), [("predict", ["MEM201"]), ("answer", [])])
def test_an_answer_of_an_unknown_network(tmp_path: Path, name: str, codes: list[str]) -> None:
    text = f"""
import torch
from outside import app, decode, model, show

model.load_state_dict(torch.load("weights.pt", map_location="cpu"))


@app.post("/predict")
def {name}(image):
    return show(model(decode(image)))
"""
    assert found(tmp_path, text) == codes


@pytest.mark.parametrize(("first", "codes"), [("initialize", []), ("finalize", ["MEM201"])])
def test_what_is_turned_off_before_the_first_request(tmp_path: Path, first: str, codes: list[str]) -> None:
    text = f"""
import torch
from torchvision.models import resnet50


class TritonPythonModel:
    def {first}(self, args):
        torch.set_grad_enabled(False)

    def __init__(self):
        self.net = resnet50(weights="DEFAULT").cuda().eval()

    def execute(self, requests):
        return [self.net(read(one).cuda()).argmax(dim=1).tolist() for one in requests]
"""
    assert found(tmp_path, text) == codes


CACHED = """
import torch
from fastapi import FastAPI
from outside import decode
from torchvision.models import resnet50

app = FastAPI()
net = resnet50(weights="DEFAULT").cuda().eval()
cache = {}


@app.get("/embed/{name}")
def embed(name: str):
    if name not in cache:
        cache[name] = net(decode(name).cuda())
    return cache[name].tolist()
"""


def test_a_cache_by_names_keeps_the_graph(tmp_path: Path) -> None:
    (one,) = findings_in(tmp_path, CACHED, name="server.py")
    assert one.code == "MEM201" and "`cache` keeps the graph" in one.message
    assert "nothing keeps" not in one.message


LIBRARY = """
import torch
from cog import BasePredictor
from speech.model import Recognizer


class Predictor(BasePredictor):
    def setup(self):
        self.models = {}
        self.load("large")

    def load(self, name):
        if name not in self.models:
            model = Recognizer(name)
            model.load_state_dict(torch.load(name, map_location="cpu"))
            model.to("cuda")
            self.models[name] = model
        return self.models[name]

    def predict(self, audio):
        self.model = self.load("large")
        return self.model.METHOD(str(audio))["text"]
"""


@pytest.mark.parametrize(("method", "codes"), [("transcribe", []), ("forward", ["MEM201"])])
def test_a_method_that_libraries_guard(tmp_path: Path, method: str, codes: list[str]) -> None:
    assert found(tmp_path, LIBRARY.replace("METHOD", method)) == codes
