// WebKitGTK's MiniBrowser through WebKitWebDriver (W3C WebDriver), on an X server of its own when there
// is no display. It has neither WebGPU nor OPFS: what runs here is the CPU path.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

function miniBrowser() {
  const lib = "/usr/lib";
  for (const arch of readdirSync(lib).filter((d) => d.endsWith("-linux-gnu")))
    for (const kit of readdirSync(join(lib, arch)).filter((d) => d.startsWith("webkit2gtk-")))
      if (readdirSync(join(lib, arch, kit)).includes("MiniBrowser")) return join(lib, arch, kit, "MiniBrowser");
  throw new Error("WebKitGTK's MiniBrowser is not installed (Debian: webkit2gtk-driver)");
}

function freePort() {
  return new Promise((resolve) => {
    const s = createServer().listen(0, "127.0.0.1", () => {
      const { port } = s.address();
      s.close(() => resolve(port));
    });
  });
}

/** One WebDriver command; rejects with the driver's message. */
async function command(url, method, body) {
  const r = await fetch(url, { method, body: body && JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  const { value } = await r.json();
  if (!r.ok) throw new Error(`WebDriver: ${value.error}: ${value.message}`);
  return value;
}

async function connect(url, capabilities) {
  for (let tries = 0; ; tries++) { // the driver takes a moment to listen
    try {
      return await command(`${url}/session`, "POST", { capabilities });
    } catch (e) {
      if (!e.message.startsWith("fetch failed") || tries >= 100) throw e;
      await sleep(200);
    }
  }
}

/* Both run in the page. A call is started and asked for, so that no time limit of the driver cuts it
   and its console is heard meanwhile. */
function start(f, arg) {
  const run = (window.fritRun = { lines: [], done: false });
  for (const level of ["log", "warn", "error"]) console[level] = (...a) => run.lines.push(a.map(String).join(" "));
  window.onerror = (e) => run.lines.push(`FAIL page: ${e}`);
  window.onunhandledrejection = (e) => run.lines.push(`FAIL page: ${e.reason}`);
  (async () => f(arg))().then((value) => { run.value = value ?? null; },
    (e) => { run.error = `${e.message}\n${e.stack}`; }).finally(() => { run.done = true; });
}
function ask() {
  const { lines, done, value, error } = window.fritRun;
  return { lines: lines.splice(0), done, value, error };
}

/** As openBrowser in browsers.mjs. */
export async function openWebKit(print) {
  const port = await freePort(), data = mkdtempSync(join(tmpdir(), "frit-webkit."));
  const driver = ["WebKitWebDriver", `--port=${port}`, "--host=127.0.0.1"];
  const [program, ...args] = process.env.DISPLAY ? driver : ["xvfb-run", "-a", "-s", "-screen 0 1280x900x24", ...driver];
  const child = spawn(program, args, { stdio: "ignore", detached: true, env: {
    ...process.env, XDG_DATA_HOME: data, XDG_CACHE_HOME: data, WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: "1",
    JSC_useSharedArrayBuffer: "1",
  } });
  child.on("error", (e) => print(`FAIL ${program}: ${e.message}`));
  const end = () => {
    try {
      process.kill(-child.pid); // the driver, its X server and browser: a group of their own
    } catch { /* it has ended */ }
    rmSync(data, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };
  process.once("exit", end);
  for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(1));
  const { sessionId } = await connect(`http://127.0.0.1:${port}`, { alwaysMatch: {
    browserName: "MiniBrowser", "webkitgtk:browserOptions": { binary: miniBrowser(), args: ["--automation"] },
  } });
  const session = `http://127.0.0.1:${port}/session/${sessionId}`;
  const script = (text, ...args) => command(`${session}/execute/sync`, "POST", { script: text, args });
  return {
    async goto(url) {
      await command(`${session}/url`, "POST", { url });
      const loaded = "return location.href === arguments[0] && document.readyState === 'complete'";
      while (!await script(loaded, url)) await sleep(50); // the driver may answer before the page's modules have run
    },
    async evaluate(f, arg) {
      await script(`return (${start})(${f}, ...arguments)`, arg ?? null);
      for (;;) {
        const { lines, done, value, error } = await script(`return (${ask})()`);
        for (const line of lines) print(line);
        if (error) throw new Error(error);
        if (done) return value;
        await sleep(100);
      }
    },
    async close() {
      await command(session, "DELETE").catch(() => {});
      end();
    },
  };
}
