import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const out = here("../../build/site");

/** sw.js gets the list of files to keep, and a version that changes when one of them does. */
const serviceWorker = {
  name: "frit-service-worker",
  closeBundle() {
    const files = readdirSync(out, { recursive: true, withFileTypes: true })
      .filter((f) => f.isFile() && !f.parentPath.includes("/models") && f.name !== "sw.js")
      .map((f) => `${f.parentPath}/${f.name}`.slice(out.length + 1)).sort();
    const text = readFileSync(here("sw.js"), "utf8");
    writeFileSync(`${out}/sw.js`, `const FILES = ${JSON.stringify(["./", ...files])};\n` +
      `const VERSION = ${JSON.stringify(String(Date.now()))};\n${text}`);
  },
};

export default defineConfig({
  base: "./",
  resolve: { alias: { frit: here("../package/dist/package/src/index.js") } },
  build: { outDir: out, emptyOutDir: false, target: "es2022", modulePreload: { polyfill: false } },
  plugins: [serviceWorker],
});
