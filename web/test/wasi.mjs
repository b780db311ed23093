// WASI for the C test program: arguments, clock, standard output by lines, and files in memory.
// Runs in Node and in a worker; `wait(ms)` blocks, so not on a page's main thread.

const EBADF = 8, EEXIST = 20, EISDIR = 31, ENOENT = 44, ENOTDIR = 54;
const DIRECTORY = 3, REGULAR = 4, CHARACTER = 2;
const O_CREAT = 1, O_DIRECTORY = 2, O_EXCL = 4, O_TRUNC = 8, FD_APPEND = 1;

export class Exit extends Error {
  constructor(code) {
    super(`exit ${code}`);
    this.code = code;
  }
}

/**
 * files: Map of absolute path -> Uint8Array; folders exist where a file lies in them, and /tmp.
 * print(line): standard output and error, a line at a time.
 */
export function makeWasi({ memory, args, env, files, print, wait }) {
  const dirs = new Set(["/", "/tmp"]);
  for (const path of files.keys())
    for (let i = path.indexOf("/", 1); i > 0; i = path.indexOf("/", i + 1)) dirs.add(path.slice(0, i));
  const fds = new Map([[0, {}], [1, { out: "" }], [2, { out: "" }], [3, { dir: "/" }]]);
  const view = () => new DataView(memory.buffer);
  const bytes = (p, n) => new Uint8Array(memory.buffer, p, n);
  const text = (p, n) => new TextDecoder().decode(bytes(p, n).slice());
  const path = (fd, p, n) => {
    const parts = [];
    for (const s of (fds.get(fd).dir + "/" + text(p, n)).split("/"))
      if (s === "..") parts.pop();
      else if (s && s !== ".") parts.push(s);
    return "/" + parts.join("/");
  };
  const strings = (list) => list.map((s) => new TextEncoder().encode(s + "\0"));
  const sizes = (list, count, size) => {
    view().setUint32(count, list.length, true);
    view().setUint32(size, list.reduce((n, s) => n + s.length, 0), true);
    return 0;
  };
  const put = (list, at, p) => {
    list.forEach((s, i) => {
      view().setUint32(at + 4 * i, p, true);
      bytes(p, s.length).set(s);
      p += s.length;
    });
    return 0;
  };
  const argv = strings(args), envp = strings(Object.entries(env).map(([k, v]) => `${k}=${v}`));
  const decoders = new Map();
  const emit = (fd, n, chunk) => {
    if (!decoders.has(n)) decoders.set(n, new TextDecoder());
    fd.out += decoders.get(n).decode(chunk.slice(), { stream: true });
    const lines = fd.out.split("\n");
    fd.out = lines.pop();
    for (const line of lines) print(line);
  };
  const writeFile = (fd, chunk) => {
    const end = (fd.append ? fd.file.n : fd.at) + chunk.length;
    const at = end - chunk.length;
    if (end > fd.file.data.length) {
      const grown = new Uint8Array(Math.max(end, 2 * fd.file.data.length));
      grown.set(fd.file.data.subarray(0, fd.file.n));
      fd.file.data = grown;
    }
    fd.file.data.set(chunk, at);
    fd.file.n = Math.max(fd.file.n, end);
    fd.at = end;
  };
  const opened = new Map(); // path -> {data, n}
  for (const [name, data] of files) opened.set(name, { data, n: data.length });
  const each = (iovs, n, fn) => {
    let total = 0;
    for (let i = 0; i < n; i++) {
      const got = fn(bytes(view().getUint32(iovs + 8 * i, true), view().getUint32(iovs + 8 * i + 4, true)));
      total += got;
    }
    return total;
  };
  const clock = (id) => BigInt(Math.round((id === 0 ? Date.now() : performance.now()) * 1e6));

  return {
    args_sizes_get: (n, size) => sizes(argv, n, size),
    args_get: (at, p) => put(argv, at, p),
    environ_sizes_get: (n, size) => sizes(envp, n, size),
    environ_get: (at, p) => put(envp, at, p),
    clock_time_get(id, precision, out) {
      view().setBigUint64(out, clock(id), true);
      return 0;
    },
    fd_close: (fd) => (fds.delete(fd) ? 0 : EBADF),
    fd_fdstat_get(n, out) {
      const fd = fds.get(n);
      if (!fd) return EBADF;
      view().setUint8(out, fd.dir ? DIRECTORY : fd.file ? REGULAR : CHARACTER);
      view().setUint16(out + 2, fd.append ? FD_APPEND : 0, true);
      view().setBigUint64(out + 8, 0x1fffffffn, true);
      view().setBigUint64(out + 16, 0x1fffffffn, true);
      return 0;
    },
    fd_fdstat_set_flags: () => 0,
    fd_prestat_get(fd, out) {
      if (fd !== 3) return EBADF;
      view().setUint32(out, 0, true);
      view().setUint32(out + 4, 1, true);
      return 0;
    },
    fd_prestat_dir_name(fd, p) {
      view().setUint8(p, 47);
      return 0;
    },
    fd_read(n, iovs, count, out) {
      const fd = fds.get(n);
      if (!fd) return EBADF;
      if (fd.dir) return EISDIR;
      const total = !fd.file ? 0 : each(iovs, count, (b) => {
        const part = fd.file.data.subarray(fd.at, Math.min(fd.file.n, fd.at + b.length));
        b.set(part);
        fd.at += part.length;
        return part.length;
      });
      view().setUint32(out, total, true);
      return 0;
    },
    fd_write(n, iovs, count, out) {
      const fd = fds.get(n);
      if (!fd || fd.dir) return EBADF;
      const total = each(iovs, count, (b) => {
        if (fd.file) writeFile(fd, b);
        else emit(fd, n, b);
        return b.length;
      });
      view().setUint32(out, total, true);
      return 0;
    },
    fd_seek(n, off, whence, out) {
      const fd = fds.get(n);
      if (!fd?.file) return EBADF;
      fd.at = Number(off) + [0, fd.at, fd.file.n][whence];
      view().setBigUint64(out, BigInt(fd.at), true);
      return 0;
    },
    path_open(dir, dirflags, p, n, flags, rights, inherit, fdflags, out) {
      const name = path(dir, p, n);
      const parent = name.slice(0, name.lastIndexOf("/")) || "/";
      let file = opened.get(name);
      if (dirs.has(name)) {
        fds.set(fds.next = (fds.next ?? 3) + 1, { dir: name });
      } else {
        if (flags & O_DIRECTORY) return file ? ENOTDIR : ENOENT;
        if (file && flags & O_EXCL) return EEXIST;
        if (!file && (!(flags & O_CREAT) || !dirs.has(parent))) return ENOENT;
        if (!file) opened.set(name, (file = { data: new Uint8Array(0), n: 0 }));
        if (flags & O_TRUNC) {
          file.data = new Uint8Array(0);
          file.n = 0;
        }
        fds.set(fds.next = (fds.next ?? 3) + 1, { file, at: 0, append: !!(fdflags & FD_APPEND) });
      }
      view().setUint32(out, fds.next, true);
      return 0;
    },
    path_filestat_get(dir, flags, p, n, out) {
      const name = path(dir, p, n);
      const file = opened.get(name);
      if (!file && !dirs.has(name)) return ENOENT;
      bytes(out, 64).fill(0);
      view().setUint8(out + 16, file ? REGULAR : DIRECTORY);
      view().setBigUint64(out + 32, BigInt(file ? file.n : 0), true);
      return 0;
    },
    path_remove_directory: (fd, p, n) => (opened.has(path(fd, p, n)) ? ENOTDIR : ENOENT),
    path_rename(fd, p, n, fd2, p2, n2) {
      const file = opened.get(path(fd, p, n));
      if (!file) return ENOENT;
      opened.delete(path(fd, p, n));
      opened.set(path(fd2, p2, n2), file);
      return 0;
    },
    path_unlink_file: (fd, p, n) =>
      dirs.has(path(fd, p, n)) ? EISDIR : opened.delete(path(fd, p, n)) ? 0 : ENOENT,
    poll_oneoff(subs, out, n, count) { // only ever a sleep
      wait(Number(view().getBigUint64(subs + 24, true)) / 1e6);
      view().setBigUint64(out, view().getBigUint64(subs, true), true);
      view().setUint16(out + 8, 0, true);
      view().setUint8(out + 10, 0);
      view().setUint32(count, 1, true);
      return 0;
    },
    proc_exit(code) {
      throw new Exit(code);
    },
  };
}

/** Runs the test module to its end; returns its exit status. `frit`: the imports of hw/browser. */
export async function runTests({ module, memory, frit, ...host }) {
  const wasi = makeWasi({ memory, ...host });
  const instance = await WebAssembly.instantiate(module, {
    env: { memory }, frit, wasi_snapshot_preview1: wasi,
  });
  try {
    instance.exports._start();
    return 0;
  } catch (e) {
    if (e instanceof Exit) return e.code;
    throw e;
  }
}

export function testMemory() {
  return new WebAssembly.Memory({ initial: 512, maximum: 32768, shared: true });
}
