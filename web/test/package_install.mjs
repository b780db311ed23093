// The npm package as a stranger meets it: `npm pack`, installed into an empty Vite project; the
// README's example type-checked, built and run in Chromium; the same from a plain page without a build.
//
//     node web/test/package_install.mjs
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer } from "../../tools/web_server.mjs";
import { launchChromium } from "./browsers.mjs";

const path = (p) => fileURLToPath(new URL(`../../${p}`, import.meta.url));
const dir = mkdtempSync(join(tmpdir(), "frit-install."));
process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
const sh = (cwd, command, ...args) => execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
let passed = 0, failed = 0;
const check = (ok, text) => {
  if (ok) passed++;
  else failed++;
  console.log(`${ok ? "ok  " : "FAIL"} package.${text}`);
};

const tarball = sh(path("web/package"), "npm", "pack", "--silent", "--pack-destination", dir).trim().split("\n").at(-1);
const files = sh(dir, "tar", "tzf", tarball);
check(/dist\/package\/src\/frit\.wasm/.test(files) && /LICENSE/.test(files) && !/src\/.*[^d]\.ts$/m.test(files), "pack: what it holds");

const example = /```ts\n([\s\S]*?)```/.exec(readFileSync(path("web/package/README.md"), "utf8"))[1];
const app = join(dir, "app"), site = JSON.parse(readFileSync(path("web/site/package.json"), "utf8"));
mkdirSync(join(app, "src"), { recursive: true });
mkdirSync(join(app, "public"));
writeFileSync(join(app, "package.json"), JSON.stringify({ name: "app", private: true, type: "module", devDependencies: site.devDependencies }));
writeFileSync(join(app, "tsconfig.json"), JSON.stringify({ compilerOptions: {
  target: "ES2022", module: "ESNext", moduleResolution: "bundler", lib: ["ES2022", "DOM", "DOM.Iterable"], types: [],
  strict: true, noEmit: true, skipLibCheck: false }, include: ["src"] }));
writeFileSync(join(app, "index.html"), `<!doctype html><body><script type="module" src="/src/main.ts"></script></body>`);
writeFileSync(join(app, "src/main.ts"), `${example}document.title = "done";\n`);
sh(app, "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefer-offline", join(dir, tarball));
execFileSync(path("build/native/frit"), ["synth", join(app, "public/model.gguf"), "--arch", "tiny", "--type", "q4_0"], { stdio: "ignore" });

sh(app, "npx", "tsc", "--noEmit");
check(true, "types: the example, with the package's own declarations checked");
sh(app, "npx", "vite", "build", "--logLevel", "error");
check(true, "vite build");

const plain = join(dir, "plain");
mkdirSync(plain);
cpSync(join(app, "node_modules/frit"), join(plain, "frit"), { recursive: true });
cpSync(join(app, "public/model.gguf"), join(plain, "model.gguf"));
writeFileSync(join(plain, "index.html"), `<!doctype html><body><script type="importmap">{"imports":{"frit":` +
  `"./frit/dist/package/src/index.js"}}</script><script type="module">${example}document.title = "done";</script></body>`);

const browser = await launchChromium();
for (const [name, folder] of [["vite", join(app, "dist")], ["plain", plain]]) {
  const server = await startServer({ folder });
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (e) => errors.push(e.message));
  page.on("console", (m) => m.type() === "error" && errors.push(m.text()));
  try {
    await page.goto(`${server.url}/`);
    await page.waitForFunction(() => document.title === "done", null, { timeout: 60000 });
    const text = await page.evaluate(() => document.body.innerText);
    check(text.length > 0, `run, ${name}: the example answers (${text.length} characters)`);
  } catch (e) {
    check(false, `run, ${name}: ${e.message} ${errors.join("; ")}`);
  }
  await page.close();
  await server.close();
}
await browser.close();
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed ? 1 : 0;
