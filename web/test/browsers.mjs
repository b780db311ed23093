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

/** Firefox with WebGPU on what Vulkan driver there is: lavapipe where VK_DRIVER_FILES names it. */
async function openFirefox(print) {
  const { default: puppeteer } = await import("puppeteer-core");
  const browser = await puppeteer.launch({
    browser: "firefox", executablePath: process.env.FRIT_FIREFOX ?? "/usr/bin/firefox-esr", headless: true,
    protocolTimeout: 0, extraPrefsFirefox: {
      "dom.webgpu.enabled": true, "gfx.webgpu.ignore-blocklist": true, "dom.webgpu.workers.enabled": true,
      "app.update.enabled": false, "datareporting.policy.dataSubmissionEnabled": false,
    },
  });
  const page = await browser.newPage();
  page.on("console", (m) => print(m.text()));
  page.on("pageerror", (e) => print(`FAIL page: ${e.message}`));
  return { goto: (url) => page.goto(url, { timeout: 120_000 }), evaluate: (f, arg) => page.evaluate(f, arg), close: () => browser.close() };
}

/** name: "chromium", "firefox" or "webkit" (which has no WebGPU). print(line): what the page writes to its console. */
export async function openBrowser(name, print) {
  if (name === "chromium") return openChromium(print);
  if (name === "firefox") return openFirefox(print);
  if (name === "webkit") return (await import("./webkit.mjs")).openWebKit(print);
  throw new Error(`no browser is called '${name}'`);
}
