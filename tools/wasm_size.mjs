// Prints what a page downloads besides weights, raw and gzipped; exit 1 over the limit.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const LIMIT = 300_000; // bytes, gzipped
const build = fileURLToPath(new URL("../build/wasm/", import.meta.url));
const files = ["frit.wasm", ...readdirSync(`${build}core`).filter((f) => f.endsWith(".js")).map((f) => `core/${f}`)];
let raw = 0, packed = 0;
for (const name of files) {
  const bytes = readFileSync(build + name), zip = gzipSync(bytes, { level: 9 }).length;
  raw += bytes.length;
  packed += zip;
  console.log(`${name.padEnd(24)} ${String(bytes.length).padStart(8)} ${String(zip).padStart(8)} gzipped`);
}
console.log(`${"all".padEnd(24)} ${String(raw).padStart(8)} ${String(packed).padStart(8)} gzipped (limit ${LIMIT})`);
if (packed > LIMIT) process.exitCode = 1;
