#include "cli/pull.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <curl/curl.h>
#include <popt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/fetch.h"

static const char help_text[] =
    "Usage: frit pull [OPTION...] URL\n"
    "       frit pull [OPTION...] hf:OWNER/REPOSITORY[@REVISION]/FILE\n"
    "\n"
    "Fetches a model file over HTTP and prints the path where it is. The file appears under its\n"
    "name only when it is whole; until then it is FILE.part. An interrupted download is resumed "
    "by\n"
    "the same command, if the server still has the same file, and started anew if not.\n"
    "\n"
    "hf:OWNER/REPOSITORY/FILE is the file on huggingface.co, of the branch, tag or commit "
    "REVISION\n"
    "(default main).\n"
    "\n"
    "Options:\n"
    "  -o, --out=PATH     where the file goes: a name, or a folder that exists\n"
    "                     (default: the address's last part, in the current folder)\n"
    "      --sha256=HEX   the SHA-256 that the file must have; another one is not kept\n"
    "  -f, --force        fetch it even if it is there already\n"
    "      --retries=N    further tries after a broken connection (default 4)\n"
    "  -q, --quiet        no progress bar\n"
    "      --json         print one object: path, bytes, resumed, sha256, fetched\n"
    "  -h, --help         this text\n"
    "\n"
    "A file that is there already is not fetched again; with --sha256 it is checked.\n"
    "\n"
    "Environment:\n"
    "  FRIT_HF_BASE       server for hf: addresses, in place of https://huggingface.co\n"
    "  https_proxy, http_proxy, all_proxy, no_proxy\n"
    "                     as for curl\n"
    "\n"
    "Exit status: 0 done, 1 the file could not be had (network, server, disk, SHA-256), 2 bad "
    "usage.\n"
    "\n"
    "Examples:\n"
    "  frit pull hf:HuggingFaceTB/SmolLM2-135M-Instruct-GGUF/smollm2-135m-instruct-q8_0.gguf\n"
    "  frit pull https://example.org/m.gguf --out models/ --sha256 0123...\n";

typedef struct options {
  const char *source;
  char *out, *sha256;
  int force, retries, quiet, json, help;
} options;

static int usage(const char *what, const char *arg) {
  fprintf(stderr, "frit: pull: %s%s%s; 'frit pull --help' explains\n", what, arg ? ": " : "",
          arg ? arg : "");
  return 2;
}

/* --- addresses and names -----------------------------------------------------------------------
 */

/* Appends `path` with all but the unreserved characters (RFC 3986) and the slash escaped. */
static void put_escaped(buf *b, const char *path, size_t n) {
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)path[i];
    if (isalnum(c) || strchr("-._~/", c)) buf_putc(b, (char)c);
    else buf_printf(b, "%%%02X", c);
  }
}

/* owner/repository[@revision]/file -> BASE/owner/repository/resolve/revision/file */
static bool hf_url(const char *name, buf *url) {
  const char *base = getenv("FRIT_HF_BASE");
  const char *repo = strchr(name, '/');
  const char *file = repo ? strchr(repo + 1, '/') : NULL;
  if (!file || repo == name || file == repo + 1 || !file[1] || strstr(name, "//") ||
      strstr(name, "/../"))
    return false;
  const char *at = memchr(repo, '@', (size_t)(file - repo));
  const char *repo_end = at ? at : file;
  if (repo_end == repo + 1 || (at && at + 1 == file)) return false;
  buf_puts(url, base && base[0] ? base : "https://huggingface.co");
  while (url->n > 0 && url->p[url->n - 1] == '/') url->p[--url->n] = 0;
  buf_putc(url, '/');
  put_escaped(url, name, (size_t)(repo_end - name));
  buf_puts(url, "/resolve/");
  if (at) put_escaped(url, at + 1, (size_t)(file - at - 1));
  else buf_puts(url, "main");
  put_escaped(url, file, strlen(file));
  return true;
}

/* The last part of the address's path, decoded; false when it is no name for a file. */
static bool url_file_name(const char *url, buf *name) {
  CURLU *u = curl_url();
  char *path = NULL;
  bool good = false;
  if (u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
      curl_url_get(u, CURLUPART_PATH, &path, 0) == CURLUE_OK) {
    int n = 0;
    char *last = curl_easy_unescape(NULL, strrchr(path, '/') + 1, 0, &n);
    good = last && n > 0 && strlen(last) == (size_t)n && !strchr(last, '/') && last[0] != '.';
    for (int i = 0; good && i < n; i++) good = (unsigned char)last[i] >= 0x20 && last[i] != 0x7F;
    if (good) buf_puts(name, last);
    curl_free(last);
  }
  curl_free(path);
  curl_url_cleanup(u);
  return good;
}

/* Fills url and path; 0 or the exit status. */
static int resolve(const options *o, buf *url, buf *path) {
  const char *s = o->source;
  struct stat st;
  buf name = {0};
  int status = 0;
  if (strncmp(s, "hf:", 3) == 0) {
    if (!hf_url(s + 3, url)) return usage("not of the form hf:OWNER/REPOSITORY/FILE", s);
  } else if (strncmp(s, "http://", 7) == 0 || strncmp(s, "https://", 8) == 0) {
    buf_puts(url, s);
  } else {
    return usage("the source is neither an http(s) address nor hf:OWNER/REPOSITORY/FILE", s);
  }
  bool folder = o->out && stat(o->out, &st) == 0 && S_ISDIR(st.st_mode);
  if ((!o->out || folder) && !url_file_name(url->p, &name)) {
    status = usage("the address ends in no file name, so --out is needed", s);
    goto done;
  }
  if (o->out) buf_puts(path, o->out);
  if (folder && path->p[path->n - 1] != '/') buf_putc(path, '/');
  if (!o->out || folder) buf_puts(path, name.p);
  if (url->failed || path->failed || name.failed) {
    fprintf(stderr, "frit: pull: out of memory\n");
    status = 1;
  }
done:
  buf_free(&name);
  return status;
}

/* --- the bar ------------------------------------------------------------------------------------
 */

typedef struct meter {
  const char *name;
  bool on, drawn;
  double t0, shown; /* start, last drawing */
  uint64_t first;   /* bytes that were there at the start */
} meter;

static void meter_draw(void *user, uint64_t done, uint64_t total) {
  meter *m = user;
  double now = time_now();
  if (!m->on) return;
  if (m->t0 == 0) {
    m->t0 = now;
    m->first = done;
  }
  if (now - m->shown < 0.1 && done != total) return;
  m->shown = now;
  m->drawn = true;
  struct winsize w;
  int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : 80;
  double rate = now > m->t0 ? (double)(done - m->first) / (now - m->t0) : 0;
  char left[64], right[96];
  int n;
  if (total) {
    double eta = rate > 0 ? (double)(total - done) / rate : 0;
    if (eta > 359999) eta = 359999;
    snprintf(left, sizeof left, "%3.0f %%", 100.0 * (double)done / (double)total);
    n = snprintf(right, sizeof right, "%.1f/%.1f MB  %.1f MB/s  %d:%02d", (double)done / 1e6,
                 (double)total / 1e6, rate / 1e6, (int)eta / 60, (int)eta % 60);
  } else {
    left[0] = 0;
    n = snprintf(right, sizeof right, "%.1f MB  %.1f MB/s", (double)done / 1e6, rate / 1e6);
  }
  char bar[64] = "";
  int name = (int)strlen(m->name) > 32 ? 32 : (int)strlen(m->name);
  int room = columns - name - (int)strlen(left) - n - 8;
  if (total && room >= 8) {
    int width = room > 40 ? 40 : room, full = (int)((uint64_t)width * done / total);
    if (full > width) full = width;
    snprintf(bar, sizeof bar, "[%.*s%*s]", full, "########################################",
             width - full, "");
  }
  fprintf(stderr, "\r\033[K%.*s %s %s %s", name, m->name, left, bar, right);
  fflush(stderr);
}

/* --- the command --------------------------------------------------------------------------------
 */

static int print_result(const options *o, const char *path, const fetch_result *r, bool fetched) {
  if (!o->json) {
    puts(path);
    return cli_flush();
  }
  cJSON *j = cJSON_CreateObject();
  cJSON_AddStringToObject(j, "path", path);
  cJSON_AddNumberToObject(j, "bytes", (double)r->bytes);
  cJSON_AddNumberToObject(j, "resumed", (double)r->resumed);
  if (r->sha256[0]) cJSON_AddStringToObject(j, "sha256", r->sha256);
  else cJSON_AddNullToObject(j, "sha256");
  cJSON_AddBoolToObject(j, "fetched", fetched);
  return cli_print_json(j);
}

/* The file is there already: checked if there is something to check it against. */
static int already_there(const options *o, const char *path, uint64_t size) {
  fetch_result r = {.bytes = size};
  if (o->sha256) {
    if (fetch_sha256(path, r.sha256) != ERR_NONE) {
      fprintf(stderr, "frit: pull: %s\n", err_text());
      return 1;
    }
    if (strcmp(r.sha256, o->sha256) != 0) {
      fprintf(stderr,
              "frit: pull: %s is there and its SHA-256 is %s, not %s; --force replaces it\n", path,
              r.sha256, o->sha256);
      return 1;
    }
  }
  if (!o->quiet)
    fprintf(stderr, "frit: pull: %s is there already (%.1f MB%s)\n", path, (double)size / 1e6,
            o->sha256 ? ", SHA-256 right" : "");
  return print_result(o, path, &r, false);
}

static int pull(const options *o, const char *url, const char *path) {
  struct stat st;
  if (!o->force && stat(path, &st) == 0) return already_there(o, path, (uint64_t)st.st_size);
  const char *slash = strrchr(path, '/');
  meter m = {.name = slash ? slash + 1 : path, .on = !o->quiet && isatty(STDERR_FILENO)};
  fetch_result r = {0};
  double t0 = time_now();
  err e = fetch_file(&(fetch_options){.url = url,
                                      .path = path,
                                      .sha256 = o->sha256,
                                      .retries = o->retries,
                                      .progress = meter_draw,
                                      .user = &m},
                     &r);
  if (m.drawn) fputc('\n', stderr);
  if (e) {
    fprintf(stderr, "frit: pull: %s\n", err_text());
    return 1;
  }
  if (!o->quiet)
    fprintf(stderr, "frit: pull: %.1f MB in %.1f s, SHA-256 %s%s\n", (double)r.bytes / 1e6,
            time_now() - t0, r.sha256, o->sha256 ? " (as asked)" : "");
  return print_result(o, path, &r, true);
}

static bool sha256_normalise(char *s) {
  size_t n = strspn(s, "0123456789abcdefABCDEF");
  if (n != 64 || s[n]) return false;
  for (; *s; s++) *s = (char)tolower((unsigned char)*s);
  return true;
}

int cmd_pull(int argc, const char **argv) {
  options o = {.retries = 4};
  const struct poptOption table[] = {
      {"out", 'o', POPT_ARG_STRING, &o.out, 0, NULL, NULL},
      {"sha256", 0, POPT_ARG_STRING, &o.sha256, 0, NULL, NULL},
      {"force", 'f', POPT_ARG_NONE, &o.force, 0, NULL, NULL},
      {"retries", 0, POPT_ARG_INT, &o.retries, 0, NULL, NULL},
      {"quiet", 'q', POPT_ARG_NONE, &o.quiet, 0, NULL, NULL},
      {"json", 0, POPT_ARG_NONE, &o.json, 0, NULL, NULL},
      {"help", 'h', POPT_ARG_NONE, &o.help, 0, NULL, NULL},
      POPT_TABLEEND,
  };
  poptContext pc = poptGetContext(NULL, argc, argv, table, 0);
  buf url = {0}, path = {0};
  int status, rc = poptGetNextOpt(pc);
  if (rc < -1) {
    status = usage(poptStrerror(rc), poptBadOption(pc, POPT_BADOPTION_NOALIAS));
  } else if (o.help) {
    fputs(help_text, stdout);
    status = cli_flush();
  } else if (!(o.source = poptGetArg(pc))) {
    status = usage("no address was given", NULL);
  } else if (poptPeekArg(pc)) {
    status = usage("one address at a time, not also", poptPeekArg(pc));
  } else if (o.sha256 && !sha256_normalise(o.sha256)) {
    status = usage("--sha256 takes 64 hexadecimal digits, not", o.sha256);
  } else if (o.out && !o.out[0]) {
    status = usage("--out is empty", NULL);
  } else if (o.retries < 0) {
    status = usage("--retries is negative", NULL);
  } else if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
    fprintf(stderr, "frit: pull: libcurl does not start\n");
    status = 1;
  } else {
    status = resolve(&o, &url, &path);
    if (status == 0) status = pull(&o, url.p, path.p);
    curl_global_cleanup();
  }
  buf_free(&url);
  buf_free(&path);
  free(o.out);
  free(o.sha256);
  poptFreeContext(pc);
  return status;
}
