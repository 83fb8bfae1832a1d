"""The extension for VS Code: its settings are the server's, and it starts what it says."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from memlint.lsp import settings as server_settings

EXTENSION = Path(__file__).resolve().parents[2] / "editors" / "vscode"
PACKAGE = json.loads((EXTENSION / "package.json").read_text("utf-8"))
PROPERTIES = PACKAGE["contributes"]["configuration"]["properties"]
#: loads the extension beside a VS Code that has these settings and this interpreter, and prints what it starts
HARNESS = """
const Module = require("module");
const [settings, interpreter] = JSON.parse(process.argv[1]);
const started = [], tasks = [], commands = {}, saved = [];
const uri = { scheme: "file", fsPath: "/folder/train.py" };
const document = { uri, languageId: "python", save: async () => saved.push(true) };
const configuration = { get: (name) => settings[name] };
const environments = {
  getActiveEnvironmentPath: () => ({ path: interpreter }),
  resolveEnvironment: async (path) => ({ executable: { uri: { fsPath: path.path } } }),
  onDidChangeActiveEnvironmentPath: () => ({ dispose() {} }),
};
const python = interpreter === null ? undefined : { isActive: true, exports: { environments } };
const channel = { appendLine() {}, show() {}, dispose() {} };
const vscode = {
  extensions: { getExtension: () => python },
  workspace: {
    getConfiguration: () => configuration,
    getWorkspaceFolder: () => ({ uri: { fsPath: "/folder" } }),
    isTrusted: settings.trusted !== false,
    onDidChangeConfiguration: () => ({}),
    workspaceFolders: [],
  },
  window: {
    activeTextEditor: { document },
    createOutputChannel: () => channel,
    showErrorMessage: async () => undefined,
  },
  commands: { registerCommand: (name, run) => { commands[name] = run; return { name }; } },
  tasks: { executeTask: async (task) => tasks.push(task) },
  Task: class { constructor(definition, scope, name, source, execution) { this.execution = execution; } },
  ProcessExecution: class { constructor(command, args, options) { Object.assign(this, { command, args, options }); } },
};
class LanguageClient {
  constructor(id, name, server, client) { this.server = server; this.client = client; }
  async start() { started.push(this); }
  async dispose() { started.push(null); }
}
const load = Module._load;
Module._load = (name, ...rest) =>
  name === "vscode" ? vscode : name === "vscode-languageclient/node" ? { LanguageClient } : load(name, ...rest);
const extension = require(process.argv[2]);
const subscriptions = [];
const run = async () => {
  await extension.activate({ extensionPath: "/extension", subscriptions });
  const before = tasks.length;
  await commands["memlint.verifyInTerminal"]();
  await extension.deactivate();
  const [first, ended] = started;
  const { command, args, options } = first.server;
  const selector = first.client.documentSelector;
  let passed = false;
  await first.client.middleware.executeCommand("memlint.verify", [], () => (passed = true));
  const said = { command, args, cwd: options.cwd, selector, ended, subscriptions, before, tasks, saved, passed };
  console.log(JSON.stringify(said));
};
run();
"""


def test_the_settings_are_those_of_the_server() -> None:
    ours = {f"memlint.{name}" for name in server_settings._FIELDS}
    others = {f"memlint.{name}" for name in server_settings._OTHERS}
    assert ours <= PROPERTIES.keys() <= ours | others
    defaults = {name.removeprefix("memlint."): row["default"] for name, row in PROPERTIES.items()}
    assert server_settings.settings_of(defaults) == (server_settings.Settings(), [])


@pytest.mark.parametrize("name", sorted(name for name, row in PROPERTIES.items() if "enum" in row))
def test_each_word_that_is_offered_is_taken(name: str) -> None:
    for word in PROPERTIES[name]["enum"]:
        assert server_settings.settings_of({name: word})[1] == []


def test_a_folder_chooses_no_program_before_it_is_trusted() -> None:
    restricted = PACKAGE["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert {"memlint.path", "memlint.interpreter", "memlint.verify.args"} == set(restricted)


def test_the_page_names_every_setting_and_the_version() -> None:
    page = (EXTENSION / "README.md").read_text("utf-8")
    assert [name for name in PROPERTIES if f"`{name}`" not in page] == []
    assert f"memlint-{PACKAGE['version']}.vsix" in page
    assert (EXTENSION / PACKAGE["main"]).is_file()


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize(
    ("settings", "interpreter", "started"),
    [
        ({}, "/env/bin/python", ["/env/bin/python", "-m", "memlint", "lsp"]),
        ({"interpreter": "/my/python"}, "/env/bin/python", ["/my/python", "-m", "memlint", "lsp"]),
        ({"path": "/my/memlint", "interpreter": "/my/python"}, "/env/bin/python", ["/my/memlint", "lsp"]),
        ({}, None, ["python3", "-m", "memlint", "lsp"]),
    ],
)
def test_it_starts_the_server_of_the_selected_interpreter(
    settings: dict[str, Any], interpreter: str | None, started: list[str]
) -> None:
    command = ["node", "-e", HARNESS, json.dumps([settings, interpreter]), str(EXTENSION / "extension.js")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [said["command"], *said["args"]] == started
    # not the project's folder, whose modules Python would find first
    assert said["cwd"] == "/extension"
    schemes = ("file", "vscode-notebook-cell")
    assert said["selector"] == [{"scheme": scheme, "language": "python"} for scheme in schemes]
    assert said["ended"] is None
    commands = {row["command"] for row in PACKAGE["contributes"]["commands"]}
    assert commands == {one["name"] for one in said["subscriptions"] if "name" in one}


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("trusted", [True, False])
def test_a_script_is_run_on_request_in_a_folder_that_is_trusted(trusted: bool) -> None:
    settings = {"trusted": trusted, "verify.args": ["--", "--epochs", "1"]}
    command = ["node", "-e", HARNESS, json.dumps([settings, "/env/bin/python"]), str(EXTENSION / "extension.js")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["before"] == 0 and said["passed"] == trusted
    words = ["-m", "memlint", "verify", "/folder/train.py", "--", "--epochs", "1"]
    run = {"command": "/env/bin/python", "args": words, "options": {"cwd": "/folder"}}
    assert said["tasks"] == ([{"execution": run}] if trusted else [])
    assert said["saved"] == ([True] if trusted else [])


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=400
    )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_the_extension_can_be_built(tmp_path: Path) -> None:
    folder = tmp_path / "vscode"
    shutil.copytree(EXTENSION, folder, ignore=shutil.ignore_patterns("node_modules", "*.vsix"))
    install = ["npm", "install", "--no-audit", "--no-fund"]
    try:
        installed = run(install, folder)
    except subprocess.TimeoutExpired:
        pytest.skip("npm cannot install the packages in time")
    if installed.returncode:
        pytest.skip(f"npm cannot install the packages: {installed.stderr.strip().splitlines()[-1]}")
    done = run(["npx", "vsce", "package", "--allow-missing-repository", "--out", "memlint.vsix"], folder)
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(folder / "memlint.vsix") as built:
        names = set(built.namelist())
    assert {"extension/package.json", "extension/extension.js", "extension/LICENSE.txt"} <= names
    assert any(name.startswith("extension/node_modules/vscode-languageclient/") for name in names)
