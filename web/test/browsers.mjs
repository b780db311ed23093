// Starts a browser with WebGPU on a software adapter and gives one page in it.
import { chromium } from "playwright-core";

const FLAGS = [
  "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-gpu-watchdog", "--disable-component-update", "--disable-sync",
];

/** Chromium with WebGPU on SwiftShader; Playwright's own Browser. */
export function launchChromium() {
  return chromium.launch({
    executablePath: process.env.FRIT_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", ...FLAGS], headless: true, ignoreDefaultArgs: ["--disable-gpu"],
  });
}

async function openChromium(print) {
  const browser = await launchChromium();
  const page = await browser.newPage();
  page.on("console", (m) => print(m.text()));
  page.on("pageerror", (e) => print(`FAIL page: ${e.message}`));
  page.on("crash", () => print("FAIL the page crashed"));
  return { goto: (url) => page.goto(url, { timeout: 120_000 }), evaluate: (f, arg) => page.evaluate(f, arg), close: () => browser.close() };
}

/** name: "chromium". print(line): what the page writes to its console. */
export function openBrowser(name, print) {
  if (name === "chromium") return openChromium(print);
  throw new Error(`no browser is called '${name}'`);
}
