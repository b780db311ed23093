// A static server on loopback for tests and demos: the repository's web parts, ranges, and the
// headers that make a page cross-origin isolated.
//
//     node tools/web_server.mjs [PORT [FOLDER]]
//
// With a folder that is served instead, from its root, with nothing of the repository.
import { createReadStream, realpathSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const OPEN = ["/web/", "/build/wasm/", "/.cache/models/"]; // nothing else is served
const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript",
  ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm", ".svg": "image/svg+xml",
};

/** Every file under tests/data as one body: see web/test/tests.html. */
function testData() {
  const data = join(root, "tests/data"), sizes = {}, chunks = [];
  for (const name of readdirSync(data, { recursive: true }).sort()) {
    if (!statSync(join(data, name)).isFile()) continue;
    const bytes = readFileSync(join(data, name));
    sizes[`/data/${name}`] = bytes.length;
    chunks.push(bytes);
  }
  return Buffer.concat([Buffer.from(JSON.stringify(sizes) + "\n"), ...chunks]);
}

function range(header, size) {
  const m = /^bytes=(\d+)-(\d*)$/.exec(header ?? "");
  if (!m) return null;
  return { start: Number(m[1]), end: Math.min(m[2] ? Number(m[2]) : size - 1, size - 1) };
}

/** The file that a path means, or null when it is none of those that are served. */
function fileOf(path, folder) {
  if (folder) return join(folder, path.endsWith("/") ? `${path}index.html` : path);
  return OPEN.some((p) => path.startsWith(p)) ? join(root, path) : null;
}

function serve(req, res, log, folder) {
  const path = normalize(decodeURIComponent(new URL(req.url, "http://x").pathname));
  const headers = {
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store", "Accept-Ranges": "bytes",
  };
  if (path === "/test-data" && !folder) return res.writeHead(200, headers).end(testData());
  const file = fileOf(path, folder);
  const stat = file && statSync(file, { throwIfNoEntry: false });
  if (!stat?.isFile()) return res.writeHead(404, headers).end("not found");
  headers["Content-Type"] = TYPES[extname(file)] ?? "application/octet-stream";
  headers.ETag = `"${stat.size}-${Math.round(stat.mtimeMs)}"`;
  const part = range(req.headers.range, stat.size);
  log?.({ path, range: part });
  if (part && part.start > part.end)
    return res.writeHead(416, { ...headers, "Content-Range": `bytes */${stat.size}` }).end();
  if (part) headers["Content-Range"] = `bytes ${part.start}-${part.end}/${stat.size}`;
  headers["Content-Length"] = part ? part.end - part.start + 1 : stat.size;
  res.writeHead(part ? 206 : 200, headers);
  if (req.method === "HEAD") return res.end();
  createReadStream(file, part ?? {}).on("error", () => res.destroy()).pipe(res);
}

/** log({path, range}) is called for each file served. Resolves with {url, close}. */
export function startServer({ port = 0, log, folder } = {}) {
  const server = createServer((req, res) => {
    try {
      serve(req, res, log, folder);
    } catch (e) {
      res.writeHead(500).end(String(e));
    }
  });
  return new Promise((resolve, reject) => {
    server.on("error", reject);
    server.listen(port, "127.0.0.1", () => resolve({
      url: `http://127.0.0.1:${server.address().port}`,
      close: () => new Promise((done) => {
        server.closeAllConnections();
        server.close(done);
      }),
    }));
  });
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [, , port = 8080, folder] = process.argv;
  try {
    console.log(`serving on ${(await startServer({ port: Number(port), folder })).url}`);
  } catch (e) {
    console.error(`web_server: port ${port} of 127.0.0.1 cannot be had: ${e.message}`);
    process.exitCode = 1;
  }
}
