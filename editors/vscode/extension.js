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

/** How memlint is run. */
async function program() {
  const settings = vscode.workspace.getConfiguration(NAME);
  const path = settings.get("path");
  if (path) {
    return { command: path, args: [] };
  }
  return { command: settings.get("interpreter") || (await selectedInterpreter()), args: ["-m", "memlint"] };
}

/** What is started. The working directory is ours: Python looks for modules there, and the project's are not meant. */
async function serverOptions(context) {
  const { command, args } = await program();
  const options = { cwd: context.extensionPath, env: { ...process.env, PYTHONUNBUFFERED: "1" } };
  return { command, args: [...args, "lsp"], options };
}

/** Run the script of the active editor with probes. This runs code of the folder, so a person asks for it. */
async function verifyInTerminal() {
  const document = vscode.window.activeTextEditor?.document;
  if (document === undefined || document.uri.scheme !== "file" || document.languageId !== "python") {
    vscode.window.showErrorMessage("memlint: open the script that is to be verified");
    return;
  }
  if (!vscode.workspace.isTrusted) {
    vscode.window.showErrorMessage("memlint: scripts of a folder that is not trusted are not run");
    return;
  }
  await document.save();
  const { command, args } = await program();
  const folder = vscode.workspace.getWorkspaceFolder(document.uri);
  const own = vscode.workspace.getConfiguration(NAME).get("verify.args") || [];
  const run = new vscode.ProcessExecution(command, [...args, "verify", document.uri.fsPath, ...own], {
    cwd: folder?.uri.fsPath,
  });
  const task = new vscode.Task({ type: NAME }, folder ?? vscode.TaskScope.Workspace, "verify", NAME, run);
  await vscode.tasks.executeTask(task);
}

/** The server's own command, in a folder that is trusted alone. */
async function executeCommand(command, args, next) {
  if (command === "memlint.verify" && !vscode.workspace.isTrusted) {
    vscode.window.showErrorMessage("memlint: scripts of a folder that is not trusted are not run");
    return undefined;
  }
  return next(command, args);
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
    middleware: { executeCommand },
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
    vscode.commands.registerCommand("memlint.verifyInTerminal", verifyInTerminal),
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
