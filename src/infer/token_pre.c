/* Pre-tokenizer rules: how a text is cut into words before bytes are merged.
 *
 * A rule is a few passes, each cutting the words of the one before. A pass is a matcher that says
 * where the match beginning at a character ends; what lies between two matches is a word too. The
 * matchers are the regular expressions of the models' tokenizer.json files written out by hand, as
 * llama.cpp reads them (where it departs from the original, so do we). A pass looks at a character
 * a few times at most, so it is linear in the text. */
#include <string.h>

#include "infer/token_impl.h"

enum {
  SPACE = 1 << UC_SPACE,
  LETTER = 1 << UC_LETTER,
  NUMBER = 1 << UC_NUMBER,
  MARK = 1 << UC_MARK,
  PUNCT = 1 << UC_PUNCT,
  SYMBOL = 1 << UC_SYMBOL,
  OTHER = 1 << UC_OTHER,
  ANY = SPACE | LETTER | NUMBER | MARK | PUNCT | SYMBOL | OTHER
};

/* End of the match that starts at p in the word that ends at e; p when there is none;
 * q | NONE_BEFORE when none starts in [p, q). */
#define NONE_BEFORE 0x80000000u
typedef uint32_t (*pre_match)(const pre_text *t, uint32_t p, uint32_t e, uint32_t arg);

typedef struct pre_pass {
  pre_match match;
  uint32_t arg;
} pre_pass;

static bool is(const pre_text *t, uint32_t p, uint32_t classes) {
  return 1u << t->cls[p] & classes;
}

static uint32_t run(const pre_text *t, uint32_t p, uint32_t e, uint32_t classes) {
  while (p < e && is(t, p, classes)) p++;
  return p;
}

static bool is_newline(uint32_t c) { return c == '\r' || c == '\n'; }
static uint32_t lower(uint32_t c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }
static bool is_lower(uint32_t c) { return c >= 'a' && c <= 'z'; }
static bool is_upper(uint32_t c) { return c >= 'A' && c <= 'Z'; }

/* ---- pieces that the rules share ---- */

/* 's 't 'm 'd 're 've 'll, in capitals too when `fold`. */
static uint32_t contraction(const pre_text *t, uint32_t p, uint32_t e, bool fold) {
  if (p + 1 >= e || t->cp[p] != '\'') return p;
  uint32_t a = fold ? lower(t->cp[p + 1]) : t->cp[p + 1];
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
  if (p + 2 >= e) return p;
  uint32_t b = fold ? lower(t->cp[p + 2]) : t->cp[p + 2];
  bool two = (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
  return two ? p + 3 : p;
}

/* \s+(?!\S)|\s+ : a run of blanks leaves its last one to the word that follows. */
static uint32_t blanks(const pre_text *t, uint32_t p, uint32_t e) {
  uint32_t q = run(t, p, e, SPACE);
  return q < e && q - p > 1 ? q - 1 : q;
}

/* \s*[\r\n]+ : up to the last line end of a run of blanks. */
static uint32_t line_end(const pre_text *t, uint32_t p, uint32_t e) {
  uint32_t last = p;
  for (uint32_t q = p; q < e && is(t, q, SPACE); q++) {
    if (is_newline(t->cp[q])) last = q + 1;
  }
  return last;
}

/* Where one blank may stand before the match: after it when the next character fits. */
static uint32_t after_blank(const pre_text *t, uint32_t p, uint32_t e, uint32_t classes) {
  uint32_t s = p + (t->cp[p] == ' ');
  return s < e && is(t, s, classes) ? s : e;
}

/* ---- matchers ---- */

static uint32_t m_class_run(const pre_text *t, uint32_t p, uint32_t e, uint32_t classes) {
  return run(t, p, e, classes);
}

static uint32_t m_class_one(const pre_text *t, uint32_t p, uint32_t e, uint32_t classes) {
  (void)e;
  return p + is(t, p, classes);
}

/* \p{N}{1,arg} */
static uint32_t m_digits(const pre_text *t, uint32_t p, uint32_t e, uint32_t most) {
  return run(t, p, e - p > most ? p + most : e, NUMBER);
}

static uint32_t m_three_digits(const pre_text *t, uint32_t p, uint32_t e, uint32_t arg) {
  (void)arg;
  if (e - p < 3) return p;
  for (uint32_t i = p; i < p + 3; i++) {
    if (t->cp[i] < '0' || t->cp[i] > '9') return p;
  }
  return p + 3;
}

static uint32_t m_newline(const pre_text *t, uint32_t p, uint32_t e, uint32_t arg) {
  (void)e, (void)arg;
  return p + is_newline(t->cp[p]);
}

/* [^\n]+|\n+ */
static uint32_t m_lines(const pre_text *t, uint32_t p, uint32_t e, uint32_t arg) {
  (void)arg;
  uint32_t q = p + 1;
  while (q < e && (t->cp[q] == '\n') == (t->cp[p] == '\n')) q++;
  return q;
}

/* \s+$ */
static uint32_t m_last_blanks(const pre_text *t, uint32_t p, uint32_t e, uint32_t arg) {
  (void)arg;
  uint32_t q = run(t, p, e, SPACE);
  return q == e || q == p ? q : q | NONE_BEFORE;
}

/* [\p{P}$+<=>^~|]+ and, with arg, the backtick */
static uint32_t m_punct(const pre_text *t, uint32_t p, uint32_t e, uint32_t backtick) {
  for (; p < e; p++) {
    uint32_t c = t->cp[p];
    bool sign = c && c < 128 && strchr("$+<=>^~|", (int)c);
    if (!is(t, p, PUNCT) && !sign && !(backtick && c == '`')) break;
  }
  return p;
}

/* \s?[classes]+ */
static uint32_t m_blank_class(const pre_text *t, uint32_t p, uint32_t e, uint32_t classes) {
  uint32_t s = p + is(t, p, SPACE), q = run(t, s, e, classes);
  return q > s ? q : p;
}

/* GPT-2: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static uint32_t m_gpt2(const pre_text *t, uint32_t p, uint32_t e, uint32_t arg) {
  static const uint32_t kinds[] = {LETTER, NUMBER, ANY & ~(SPACE | LETTER | NUMBER)};
  (void)arg;
  uint32_t q = contraction(t, p, e, false);
  if (q > p) return q;
  for (int i = 0; i < 3; i++) {
    uint32_t s = after_blank(t, p, e, kinds[i]);
    if (s < e) return run(t, s, e, kinds[i]);
  }
  return blanks(t, p, e);
}

/* Llama 3 and its many relatives:
 * (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
 * |\s*[\r\n]+|\s+(?!\S)|\s+ */
enum {
  W_DIGITS = 3,     /* at most so many numbers in a word; 0: no limit */
  W_MARKS = 4,      /* \p{M} counts as \p{L} */
  W_NO_SHORT = 8,   /* no contractions */
  W_NO_NEWLINE = 16 /* signs do not take the line ends after them */
};

static uint32_t m_words(const pre_text *t, uint32_t p, uint32_t e, uint32_t arg) {
  uint32_t letters = LETTER | (arg & W_MARKS ? MARK : 0), most = arg & W_DIGITS;
  uint32_t signs = ANY & ~(SPACE | NUMBER | letters);
  if (!(arg & W_NO_SHORT)) {
    uint32_t q = contraction(t, p, e, true);
    if (q > p) return q;
  }
  if (is(t, p, letters)) return run(t, p, e, letters);
  if (!is_newline(t->cp[p]) && !is(t, p, NUMBER) && p + 1 < e && is(t, p + 1, letters))
    return run(t, p + 1, e, letters);
  if (is(t, p, NUMBER)) return m_digits(t, p, e, most ? most : e - p);
  uint32_t s = after_blank(t, p, e, signs);
  if (s < e) {
    s = run(t, s, e, signs);
    while (!(arg & W_NO_NEWLINE) && s < e && is_newline(t->cp[s])) s++;
    return s;
  }
  s = line_end(t, p, e);
  if (s > p) return s;
  return blanks(t, p, e);
}

/* GPT-4o and Tekken cut at changes of case. The originals tell Lu, Lt, Ll apart; llama.cpp takes a
 * letter outside ASCII as both, with U: a letter not in a-z, W: a letter not in A-Z:
 * [^\r\n\p{L}\p{N}]?U*W+(short)?|[^\r\n\p{L}\p{N}]?U+W*(short)?|\p{N}{1,n}
 * | ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static uint32_t case_word(const pre_text *t, uint32_t p, uint32_t e) {
  uint32_t s = p;
  if (!is(t, p, LETTER | NUMBER) && !is_newline(t->cp[p])) s++;
  if (s >= e || !is(t, s, LETTER)) return p;
  uint32_t u = s;
  while (u < e && is(t, u, LETTER) && !is_lower(t->cp[u])) u++;
  if (u < e && is(t, u, LETTER)) { /* a lower-case letter: W+ starts here */
    while (u < e && is(t, u, LETTER) && !is_upper(t->cp[u])) u++;
    return u;
  }
  for (uint32_t k = u; k > s; k--) { /* U* gives back letters until W+ has one */
    if (!is_upper(t->cp[k - 1])) return k;
  }
  return u;
}

static uint32_t m_case_words(const pre_text *t, uint32_t p, uint32_t e, uint32_t arg) {
  uint32_t signs = ANY & ~(SPACE | LETTER | NUMBER), q = case_word(t, p, e);
  if (q > p) return arg & W_NO_SHORT ? q : contraction(t, q, e, true);
  if (is(t, p, NUMBER)) return m_digits(t, p, e, arg & W_DIGITS);
  uint32_t s = after_blank(t, p, e, signs);
  if (s < e) {
    s = run(t, s, e, signs);
    while (s < e && (is_newline(t->cp[s]) || t->cp[s] == '/')) s++;
    return s;
  }
  s = line_end(t, p, e);
  return s > p ? s : blanks(t, p, e);
}

/* DeepSeek V3: [!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+
 * | ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ ; other characters match nothing. */
static uint32_t m_deepseek3(const pre_text *t, uint32_t p, uint32_t e, uint32_t arg) {
  (void)arg;
  uint32_t c = t->cp[p], q = p + 1;
  if (c < 128 && is(t, p, PUNCT | SYMBOL)) {
    while (q < e && is_lower(lower(t->cp[q]))) q++;
    if (q > p + 1) return q;
  }
  if (is(t, p, LETTER | MARK)) return run(t, p, e, LETTER | MARK);
  if (!is_newline(c) && !is(t, p, PUNCT | SYMBOL) && p + 1 < e && is(t, p + 1, LETTER | MARK))
    return run(t, p + 1, e, LETTER | MARK);
  uint32_t s = after_blank(t, p, e, PUNCT | SYMBOL);
  if (s < e) {
    s = run(t, s, e, PUNCT | SYMBOL);
    while (s < e && is_newline(t->cp[s])) s++;
    return s;
  }
  s = line_end(t, p, e);
  return s > p ? s : blanks(t, p, e);
}

/* BLOOM: " ?[^(\s|.,!?...]+", with the full stops of several scripts. */
static uint32_t m_bloom(const pre_text *t, uint32_t p, uint32_t e, uint32_t arg) {
  static const uint32_t stops[] = {'(',    '|',    '.',    ',',    '!',    '?',    0x2026,
                                   0x3002, 0xFF0C, 0x3001, 0x0964, 0x06D4, 0x060C, ')'};
  (void)arg;
  uint32_t s = p + (t->cp[p] == ' '), q = s;
  for (; q < e && !is(t, q, SPACE); q++) {
    size_t i = 0, n = sizeof stops / sizeof stops[0];
    while (i < n && stops[i] != t->cp[q]) i++;
    if (i < n) break;
  }
  return q > s ? q : p;
}

/* ---- sets of characters ---- */

typedef struct range {
  uint32_t lo, hi;
} range;

/* The cased letters that deepseek-llm's rule lists. */
static const range cased[] = {
    {0x41, 0x5A},       {0x61, 0x7A},       {0xB5, 0xB5},       {0xC0, 0xD6},
    {0xD8, 0xF6},       {0xF8, 0x1BA},      {0x1BC, 0x1BF},     {0x1C4, 0x293},
    {0x295, 0x2AF},     {0x370, 0x373},     {0x376, 0x377},     {0x37B, 0x37D},
    {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x38A},     {0x38C, 0x38C},
    {0x38E, 0x3A1},     {0x3A3, 0x3F5},     {0x3F7, 0x481},     {0x48A, 0x52F},
    {0x531, 0x556},     {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},
    {0x1C90, 0x1CBA},   {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},
    {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},   {0x1F18, 0x1F1D},   {0x1F20, 0x1F45},
    {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},   {0x1F5B, 0x1F5B},
    {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},   {0x1FB6, 0x1FBC},
    {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},
    {0x1FD6, 0x1FDB},   {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},
    {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210A, 0x2113},   {0x2115, 0x2115},
    {0x2119, 0x211D},   {0x2124, 0x2124},   {0x2126, 0x2126},   {0x2128, 0x2128},
    {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},   {0x213C, 0x213F},
    {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2184},   {0x2C00, 0x2C7B},
    {0x2C7E, 0x2CE4},   {0x2CEB, 0x2CEE},   {0x2CF2, 0x2CF3},   {0xA640, 0xA66D},
    {0xA680, 0xA69B},   {0xA722, 0xA76F},   {0xA771, 0xA787},   {0xA78B, 0xA78E},
    {0xAB70, 0xABBF},   {0xFB00, 0xFB06},   {0xFB13, 0xFB17},   {0xFF21, 0xFF3A},
    {0xFF41, 0xFF5A},   {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB},
    {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943}};
static const range signs_cjk[] = {{0x21, 0x2F},     {0x3A, 0x7E},     {0x2018, 0x201F},
                                  {0x3001, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}};
static const range east_asian[] = {{0x800, 0x9FA5}, {0xAC00, 0xD7FF}};
static const range han_kana[] = {{0x3040, 0x30FF}, {0x4E00, 0x9FA5}};

enum { SET_CASED, SET_SIGNS, SET_EAST_ASIAN, SET_HAN_KANA };
static const struct {
  const range *r;
  uint32_t n;
} sets[] = {{cased, sizeof cased / sizeof cased[0]},
            {signs_cjk, sizeof signs_cjk / sizeof signs_cjk[0]},
            {east_asian, sizeof east_asian / sizeof east_asian[0]},
            {han_kana, sizeof han_kana / sizeof han_kana[0]}};

/* Blanks are in no set, whatever a range says. */
static uint32_t m_set_run(const pre_text *t, uint32_t p, uint32_t e, uint32_t set) {
  for (; p < e && !is(t, p, SPACE); p++) {
    uint32_t lo = 0, hi = sets[set].n; /* ranges before lo end below the character */
    while (lo < hi) {
      uint32_t mid = (lo + hi) / 2;
      if (sets[set].r[mid].hi < t->cp[p]) lo = mid + 1;
      else hi = mid;
    }
    if (lo == sets[set].n || t->cp[p] < sets[set].r[lo].lo) break;
  }
  return p;
}

/* \s?[set]+ */
static uint32_t m_blank_set(const pre_text *t, uint32_t p, uint32_t e, uint32_t set) {
  uint32_t s = p + is(t, p, SPACE), q = m_set_run(t, s, e, set);
  return q > s ? q : p;
}

/* ---- rules and their names ---- */

enum { MAX_PASSES = 6, IGNORE_MERGES = 1, ADD_BOS = 2, NO_BOS = 4 };

struct pre_rule {
  const char *names; /* each followed by a blank */
  uint32_t flags;
  pre_pass pass[MAX_PASSES];
};

static const pre_rule rules[] = {
    {"default ", 0, {{m_punct, 0}, {m_gpt2, 0}, {m_class_run, NUMBER}, {m_three_digits, 0}}},
    {"gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert "
     "jina-v1-en jina-v2-code roberta-bpe mpt olmo jais trillion granite-docling exaone4 ",
     0,
     {{m_gpt2, 0}}},
    {"smollm starcoder refact command-r codeshell exaone minerva-7b mellum2 ",
     0,
     {{m_class_one, NUMBER}, {m_gpt2, 0}}},
    {"falcon ", 0, {{m_punct, 1}, {m_gpt2, 0}, {m_three_digits, 0}}},
    {"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano ",
     IGNORE_MERGES | ADD_BOS,
     {{m_words, 3}}},
    {"dbrx smaug-bpe ", 0, {{m_words, 3}}},
    {"chatglm-bpe ", NO_BOS, {{m_words, 3}}},
    {"glm4 glm5 ", NO_BOS | IGNORE_MERGES, {{m_words, 3}}},
    {"qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2 bailingmoe "
     "bailingmoe2 llada-moe ",
     0,
     {{m_words, 1}}},
    {"qwen35 ", 0, {{m_words, 1 | W_MARKS}}},
    {"seed-coder ", 0, {{m_words, 1 | W_NO_NEWLINE}}},
    {"ufakzeka ", 0, {{m_words, 1 | W_NO_SHORT}}},
    {"minicpm5 ", IGNORE_MERGES, {{m_digits, 3}, {m_words, 0}}},
    {"laguna ", 0, {{m_lines, 0}, {m_words, 1}}},
    {"gpt-4o llama4 kanana2 talkie minimax-m2 ", 0, {{m_case_words, 3}}},
    {"tekken ", IGNORE_MERGES | ADD_BOS, {{m_case_words, 1 | W_NO_SHORT}}},
    {"deepseek-llm ",
     0,
     {{m_newline, 0},
      {m_blank_set, SET_CASED},
      {m_blank_set, SET_SIGNS},
      {m_last_blanks, 0},
      {m_set_run, SET_EAST_ASIAN},
      {m_class_run, NUMBER}}},
    {"deepseek-coder ",
     0,
     {{m_newline, 0},
      {m_blank_class, LETTER},
      {m_blank_class, PUNCT},
      {m_set_run, SET_EAST_ASIAN},
      {m_class_one, NUMBER}}},
    {"deepseek-v3 hunyuan-dense joyai-llm hy_v4 ",
     0,
     {{m_digits, 3}, {m_set_run, SET_HAN_KANA}, {m_deepseek3, 0}}},
    {"poro-chat bloom gpt3-finnish ", 0, {{m_bloom, 0}}},
    {"viking ", 0, {{m_bloom, 0}, {m_class_one, NUMBER}}},
};

const pre_rule *pre_find(const char *name) {
  size_t n = strlen(name);
  if (n == 0 || strchr(name, ' ')) return NULL;
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
    for (const char *p = rules[i].names; *p; p = strchr(p, ' ') + 1) {
      if (strncmp(p, name, n) == 0 && p[n] == ' ') return &rules[i];
    }
  }
  return NULL;
}

bool pre_ignores_merges(const pre_rule *r) { return r->flags & IGNORE_MERGES; }
bool pre_adds_bos(const pre_rule *r) { return r->flags & ADD_BOS; }
bool pre_has_bos(const pre_rule *r) { return !(r->flags & NO_BOS); }

static void run_pass(const pre_pass *pass, const pre_text *t, uint32_t b, uint32_t e,
                     uint8_t *cut) {
  for (uint32_t p = b; p < e;) {
    uint32_t q = pass->match(t, p, e, pass->arg);
    if (q == p || q & NONE_BEFORE) {
      p = q == p ? p + 1 : q & ~NONE_BEFORE;
      continue;
    }
    cut[p] = 1;
    if (q < e) cut[q] = 1;
    p = q;
  }
}

void pre_split(const pre_rule *r, const pre_text *t, uint32_t n, uint8_t *cut) {
  if (n == 0) return;
  cut[0] = 1;
  for (int i = 0; i < MAX_PASSES && r->pass[i].match; i++) {
    for (uint32_t b = 0, e; b < n; b = e) {
      for (e = b + 1; e < n && !cut[e];) e++;
      run_pass(&r->pass[i], t, b, e, cut);
    }
  }
}
