#include "cli/fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "frit.h"

enum { TAG_MAX = 300, CHUNK = 1 << 18, CONNECT_S = 30, STALL_S = 30 };

/* Headers of the response at hand; a redirect's are forgotten when the next one begins. */
typedef struct response {
  long status;
  char etag[TAG_MAX], modified[TAG_MAX];
  bool has_range;
  uint64_t start, total; /* Content-Range; total 0 when the server does not say */
  uint64_t length;       /* Content-Length, 0 when unknown */
} response;

typedef struct fetch {
  const fetch_options *o;
  char *part, *tag_path;
  int fd;
  CURL *curl;
  char tag[TAG_MAX]; /* validator of the bytes in part; "" when there is none */
  uint64_t have;     /* bytes in part, all of them in the hash */
  uint64_t first;    /* of which an earlier call had brought */
  uint64_t total;    /* 0 while unknown */
  SHA2_CTX sha;
  response r;
  bool ours;     /* part is locked by this call and not yet renamed */
  bool begun;    /* the response's status and headers have been judged */
  bool received; /* this call has got bytes */
  bool again;    /* the failure is one that another try may mend */
  bool restart;  /* the bytes in part are of another version of the file */
  err failed;    /* set by a callback; the reason of curl's own error */
} fetch;

static void hex(const uint8_t digest[SHA256_DIGEST_LENGTH], char out[65]) {
  for (int i = 0; i < SHA256_DIGEST_LENGTH; i++) snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

static err io_error(const char *path) { return err_set(ERR_IO, "%s: %s", path, strerror(errno)); }

/* Adds what fd holds from its present position to the hash. */
static err hash_fd(int fd, const char *path, SHA2_CTX *sha, uint64_t *size) {
  uint8_t *chunk = mem_alloc(CHUNK);
  if (!chunk) return mem_err("read buffer", CHUNK);
  ssize_t n;
  *size = 0;
  while ((n = read(fd, chunk, CHUNK)) > 0 || (n < 0 && errno == EINTR)) {
    if (n < 0) continue;
    SHA256Update(sha, chunk, (size_t)n);
    *size += (uint64_t)n;
  }
  mem_free(chunk);
  return n < 0 ? io_error(path) : ERR_NONE;
}

err fetch_sha256(const char *path, char out[65]) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return io_error(path);
  SHA2_CTX sha;
  SHA256Init(&sha);
  uint64_t size;
  err e = hash_fd(fd, path, &sha, &size);
  uint8_t digest[SHA256_DIGEST_LENGTH];
  SHA256Final(digest, &sha);
  hex(digest, out);
  close(fd);
  return e;
}

/* --- the partial file ------------------------------------------------------------------------- */

static err part_reset(fetch *f) {
  if (ftruncate(f->fd, 0) != 0 || lseek(f->fd, 0, SEEK_SET) != 0) return io_error(f->part);
  SHA256Init(&f->sha);
  f->have = f->first = f->total = 0;
  f->tag[0] = 0;
  return ERR_NONE;
}

/* The tag file: the address and the validator, a line each. One that does not fit is no tag. */
static void tag_load(fetch *f) {
  char *text = NULL;
  size_t size = 0, n = strlen(f->o->url);
  if (file_read(f->tag_path, 1 << 16, &text, &size) == ERR_NONE && size > n + 2 &&
      memcmp(text, f->o->url, n) == 0 && text[n] == '\n' && text[size - 1] == '\n' &&
      size - n - 2 < TAG_MAX && !memchr(text + n + 1, '\n', size - n - 2))
    snprintf(f->tag, sizeof f->tag, "%.*s", (int)(size - n - 2), text + n + 1);
  mem_free(text);
}

static err tag_save(fetch *f) {
  buf b = {0};
  buf_printf(&b, "%s\n%s\n", f->o->url, f->tag);
  err e = b.failed ? mem_err("download tag", b.n) : file_write(f->tag_path, b.p, b.n);
  buf_free(&b);
  return e;
}

/* Opens part, keeps other processes off it, and takes over what an earlier call left. */
static err part_open(fetch *f) {
  f->fd = open(f->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (f->fd < 0) return io_error(f->part);
  struct stat here, there;
  if (flock(f->fd, LOCK_EX | LOCK_NB) != 0 || fstat(f->fd, &here) != 0 ||
      stat(f->part, &there) != 0 || here.st_ino != there.st_ino)
    return err_set(ERR_IO, "%s: another download is writing it", f->part);
  f->ours = true;
  tag_load(f);
  if (!f->tag[0]) return part_reset(f);
  err e = hash_fd(f->fd, f->part, &f->sha, &f->have);
  f->first = f->have;
  return e;
}

static err part_room(const fetch *f) {
  struct statvfs fs;
  if (!f->total || fstatvfs(f->fd, &fs) != 0) return ERR_NONE;
  uint64_t need = f->total - f->have, room = (uint64_t)fs.f_bavail * fs.f_frsize;
  if (need <= room) return ERR_NONE;
  return err_set(ERR_IO, "%s: needs %.1f MB more and the disk has %.1f MB left", f->part,
                 (double)need / 1e6, (double)room / 1e6);
}

/* --- curl's callbacks --------------------------------------------------------------------------
 */

static bool header_is(const char *line, size_t n, const char *name, char *value, size_t cap) {
  size_t k = strlen(name);
  if (n <= k || strncasecmp(line, name, k) != 0 || line[k] != ':') return false;
  const char *p = line + k + 1, *end = line + n;
  while (p < end && (*p == ' ' || *p == '\t')) p++;
  while (end > p && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ')) end--;
  value[0] = 0;
  if ((size_t)(end - p) < cap) snprintf(value, cap, "%.*s", (int)(end - p), p);
  return true;
}

static size_t on_header(char *line, size_t one, size_t n, void *user) {
  fetch *f = user;
  response *r = &f->r;
  char v[TAG_MAX];
  (void)one;
  if (n > 5 && memcmp(line, "HTTP/", 5) == 0) {
    *r = (response){0};
    const char *space = memchr(line, ' ', n);
    r->status = space ? strtol(space, NULL, 10) : 0;
  } else if (header_is(line, n, "ETag", v, sizeof v)) {
    /* A weak validator may stand for different bytes (RFC 9110, 8.8.1): no use in If-Range. */
    if (strncmp(v, "W/", 2) != 0) snprintf(r->etag, sizeof r->etag, "%s", v);
  } else if (header_is(line, n, "Last-Modified", v, sizeof v)) {
    snprintf(r->modified, sizeof r->modified, "%s", v);
  } else if (header_is(line, n, "Content-Length", v, sizeof v)) {
    r->length = strtoull(v, NULL, 10);
  } else if (header_is(line, n, "Content-Range", v, sizeof v)) {
    const char *slash = strchr(v, '/');
    r->has_range = sscanf(v, "bytes %" SCNu64 "-", &r->start) == 1;
    r->total = slash ? strtoull(slash + 1, NULL, 10) : 0;
  }
  return n;
}

/* Judges a response with a body for us: resumes, or starts the part anew. */
static err body_begin(fetch *f) {
  const response *r = &f->r;
  const char *tag = r->etag[0] ? r->etag : r->modified;
  f->begun = true;
  err e = ERR_NONE;
  if (r->status == 206) {
    if (!r->has_range || r->start != f->have || strcmp(tag, f->tag) != 0) {
      f->restart = true;
      return err_set(ERR_IO, "%s: the file changed on the server", f->o->url);
    }
    f->total = r->total ? r->total : r->length ? f->have + r->length : 0;
  } else {
    TRY(part_reset(f));
    f->total = r->length;
    snprintf(f->tag, sizeof f->tag, "%s", tag);
    TRY(tag_save(f));
  }
  TRY(part_room(f));
done:
  return e;
}

static size_t on_body(char *bytes, size_t one, size_t n, void *user) {
  fetch *f = user;
  (void)one;
  if (f->r.status != 200 && f->r.status != 206) return n; /* the text of an error page */
  if (!f->begun) f->failed = body_begin(f);
  if (f->failed) return 0;
  for (size_t at = 0; at < n;) {
    ssize_t k = write(f->fd, bytes + at, n - at);
    if (k < 0 && errno == EINTR) continue;
    if (k < 0) {
      f->failed =
          err_set(ERR_IO, "%s: %s after %.1f MB", f->part, strerror(errno), (double)f->have / 1e6);
      return 0;
    }
    SHA256Update(&f->sha, (const uint8_t *)bytes + at, (size_t)k);
    at += (size_t)k;
    f->have += (uint64_t)k;
  }
  f->received = true;
  if (f->o->progress) f->o->progress(f->o->user, f->have, f->total);
  return n;
}

/* --- one try -----------------------------------------------------------------------------------
 */

static bool mendable(const fetch *f, CURLcode c) {
  switch (c) {
  case CURLE_PARTIAL_FILE:
  case CURLE_RECV_ERROR:
  case CURLE_SEND_ERROR:
  case CURLE_GOT_NOTHING:
  case CURLE_OPERATION_TIMEDOUT:
  case CURLE_HTTP2:
  case CURLE_HTTP2_STREAM: return true;
  case CURLE_COULDNT_CONNECT: return f->received; /* a server that was there a moment ago */
  default: return false;
  }
}

static const char *status_words(long status) {
  switch (status) {
  case 401:
  case 403: return " (access refused; does it need an account?)";
  case 404: return " (no such file)";
  case 410: return " (gone)";
  case 429: return " (too many requests)";
  default: return status >= 500 ? " (the server failed)" : "";
  }
}

/* What the finished exchange means. */
static err judge(fetch *f, CURLcode c, const char *words) {
  const char *url = f->o->url;
  long status = f->r.status;
  if (f->failed) return f->failed;
  if (status == 416 && f->have > 0) {
    /* Nothing lies beyond what is here: it is all of the file, or more than the file now has. */
    if (f->r.total == f->have) return ERR_NONE;
    f->restart = true;
    return err_set(ERR_IO, "%s: the file changed on the server", url);
  }
  if (c == CURLE_OK && status != 200 && status != 206) {
    f->again = status >= 500 || status == 429 || status == 408;
    return err_set(ERR_IO, "%s: the server answered %ld%s", url, status, status_words(status));
  }
  if (c != CURLE_OK) {
    f->again = mendable(f, c);
    if (!words[0]) words = curl_easy_strerror(c);
    if (!f->have || !f->tag[0]) return err_set(ERR_IO, "%s: %s", url, words);
    return err_set(ERR_IO, "%s: %s; %.1f MB are kept in %s, the same command goes on from there",
                   url, words, (double)f->have / 1e6, f->part);
  }
  if (!f->begun) return body_begin(f); /* an empty file */
  return ERR_NONE;
}

static err attempt(fetch *f) {
  char range[32], words[CURL_ERROR_SIZE] = "", if_range[TAG_MAX + 16];
  struct curl_slist *headers = NULL;
  CURL *c = f->curl;
  f->begun = f->again = f->restart = false;
  f->failed = ERR_NONE;
  f->r = (response){0};
  curl_easy_reset(c);
  if (f->have > 0 && f->tag[0]) {
    snprintf(range, sizeof range, "%" PRIu64 "-", f->have);
    snprintf(if_range, sizeof if_range, "If-Range: %s", f->tag);
    headers = curl_slist_append(NULL, if_range);
    if (!headers) return mem_err("request header", sizeof if_range);
    curl_easy_setopt(c, CURLOPT_RANGE, range);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
  }
  bool secure = strncasecmp(f->o->url, "https:", 6) == 0;
  char agent[64];
  snprintf(agent, sizeof agent, "frit/%s", frit_version());
  curl_easy_setopt(c, CURLOPT_URL, f->o->url);
  curl_easy_setopt(c, CURLOPT_USERAGENT, agent);
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
  curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(c, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
  curl_easy_setopt(c, CURLOPT_BUFFERSIZE, (long)CHUNK);
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, words);
  curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(c, CURLOPT_HEADERDATA, f);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, f);
  err e = judge(f, curl_easy_perform(c), words);
  curl_slist_free_all(headers);
  return e;
}

/* --- the whole ---------------------------------------------------------------------------------
 */

static err part_finish(fetch *f, fetch_result *out) {
  uint8_t digest[SHA256_DIGEST_LENGTH];
  SHA256Final(digest, &f->sha);
  *out = (fetch_result){.bytes = f->have, .resumed = f->first};
  hex(digest, out->sha256);
  if (f->o->sha256 && strcmp(out->sha256, f->o->sha256) != 0) {
    unlink(f->part);
    unlink(f->tag_path);
    return err_set(ERR_FORMAT, "%s: its SHA-256 is %s, not %s; nothing was kept", f->o->url,
                   out->sha256, f->o->sha256);
  }
  if (fsync(f->fd) != 0) return io_error(f->part);
  if (rename(f->part, f->o->path) != 0) return io_error(f->o->path);
  unlink(f->tag_path);
  f->ours = false;
  return ERR_NONE;
}

static void fetch_close(fetch *f) {
  if (f->curl) curl_easy_cleanup(f->curl);
  if (f->ours && (f->have == 0 || !f->tag[0])) { /* nothing that could be resumed */
    unlink(f->part);
    unlink(f->tag_path);
  }
  if (f->fd >= 0) close(f->fd);
  mem_free(f->part);
  mem_free(f->tag_path);
}

err fetch_file(const fetch_options *o, fetch_result *out) {
  fetch f = {.o = o, .fd = -1};
  err e = ERR_NONE;
  buf part = {0}, tag = {0};
  buf_printf(&part, "%s.part", o->path);
  buf_printf(&tag, "%s.part.tag", o->path);
  f.part = part.p;
  f.tag_path = tag.p;
  if (part.failed || tag.failed) {
    e = mem_err("file name", strlen(o->path));
    goto done;
  }
  if (file_special(o->path)) {
    e = err_set(ERR_IO, "%s: not a regular file", o->path);
    goto done;
  }
  SHA256Init(&f.sha);
  f.curl = curl_easy_init();
  if (!f.curl) {
    e = mem_err("libcurl", 0);
    goto done;
  }
  TRY(part_open(&f));
  for (int tries = 0, restarts = 0;;) {
    e = attempt(&f);
    if (f.restart && restarts++ == 0) {
      TRY(part_reset(&f));
      continue;
    }
    if (!e || !f.again || tries >= o->retries) break;
    sleep(1u << (tries < 3 ? tries : 3));
    tries++;
  }
  if (!e) e = part_finish(&f, out);
done:
  fetch_close(&f);
  return e;
}
