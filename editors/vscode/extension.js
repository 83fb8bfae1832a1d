// Starts `memlint lsp` and connects VS Code to it: after the template for Python tools of Microsoft, without a bundled
// server. What is checked and shown is the server's matter.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const NAME = "memlint";
const INSTALL = "pip install 'torch-memlint[lsp]'";

let client;
let log;
// one start or stop after the other
let busy = Promise.resolve();

/** The interpreter that the Python extension has selected, or the one on the path. */
async function selectedInterpreter() {
  const python = vscode.extensions.getExtension("ms-python.python");
  if (python !== undefined) {
    const api = python.isActive ? python.exports : await python.activate();
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const environment = await api?.environments?.resolveEnvironment(
      api.environments.getActiveEnvironmentPath(folder),
    );
    const executable = environment?.executable?.uri?.fsPath;
    if (executable) {
      return executable;
    }
  }
  return process.platform === "win32" ? "python" : "python3";
}

/** What is started. The working directory is ours: Python looks for modules there, and the project's are not meant. */
async function serverOptions(context) {
  const settings = vscode.workspace.getConfiguration(NAME);
  const options = { cwd: context.extensionPath, env: { ...process.env, PYTHONUNBUFFERED: "1" } };
  const path = settings.get("path");
  if (path) {
    return { command: path, args: ["lsp"], options };
  }
  const interpreter = settings.get("interpreter") || (await selectedInterpreter());
  return { command: interpreter, args: ["-m", "memlint", "lsp"], options };
}

async function stop() {
  const running = client;
  client = undefined;
  try {
    await running?.dispose();
  } catch (error) {
    log.appendLine(`stopping: ${error}`);
  }
}

async function start(context) {
  const server = await serverOptions(context);
  log.appendLine(`starting ${[server.command, ...server.args].join(" ")}`);
  client = new LanguageClient(NAME, NAME, server, {
    // (the cells of notebooks are documents of their own)
    documentSelector: [
      { scheme: "file", language: "python" },
      { scheme: "vscode-notebook-cell", language: "python" },
    ],
    initializationOptions: { settings: vscode.workspace.getConfiguration(NAME) },
    synchronize: { configurationSection: NAME },
    outputChannel: log,
  });
  try {
    await client.start();
  } catch (error) {
    await stop();
    log.appendLine(`${error}`);
    const choice = await vscode.window.showErrorMessage(
      `memlint does not start (${server.command}). It is installed by: ${INSTALL}`,
      "Show Log",
    );
    if (choice !== undefined) {
      log.show();
    }
  }
}

function restart(context) {
  busy = busy.then(stop).then(() => start(context));
  return busy;
}

async function activate(context) {
  log = vscode.window.createOutputChannel(NAME);
  context.subscriptions.push(
    log,
    vscode.commands.registerCommand("memlint.restart", () => restart(context)),
    vscode.commands.registerCommand("memlint.showLog", () => log.show()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("memlint.path") || event.affectsConfiguration("memlint.interpreter")) {
        restart(context);
      }
    }),
  );
  await restart(context);
  const python = vscode.extensions.getExtension("ms-python.python");
  const changed = python?.isActive ? python.exports?.environments?.onDidChangeActiveEnvironmentPath : undefined;
  if (changed !== undefined) {
    context.subscriptions.push(changed(() => restart(context)));
  }
}

function deactivate() {
  busy = busy.then(stop);
  return busy;
}

module.exports = { activate, deactivate };
