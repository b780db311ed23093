#!/usr/bin/env python3
"""Makes tests/data/token/*: nasty strings, two small vocabularies, and llama.cpp's ids.

    LLAMA_LIB=.../libllama.so token_vectors.py [SMOLLM2.gguf]

Needs the gguf package. Files:
  nasty.txt    one string a line, escaped (token_nasty.py)
  bpe.vocab, spm.vocab   "t TYPE SCORE TEXT" and "m MERGE" lines, escaped
  bpe.ids, spm.ids, smollm2.ids   for each run a line "run key=value ...", "eog ID ...",
      "pieces HASH" (over all tokens), then for each string of nasty.txt the FNV-1a hash of its ids
      as 32-bit little-endian numbers (64 bits folded to 32), or with ids=1 the ids themselves."""
import collections
import os
import random
import sys
import tempfile

import gguf

import token_llama as ref
import token_nasty as nasty

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "../../tests/data/token")
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

PRES = ["default", "gpt-2", "smollm", "falcon", "llama-bpe", "dbrx", "chatglm-bpe", "glm4", "qwen2",
        "bailingmoe", "qwen35", "seed-coder", "ufakzeka", "minicpm5", "laguna", "gpt-4o", "tekken",
        "deepseek-llm", "deepseek-coder", "deepseek-v3", "poro-chat", "viking", "stablelm2",
        "command-r", "starcoder", "refact", "mpt", "olmo"]

SPECIAL = [("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL), ("<|endoftext|>", USER),
           ("<|begin_of_text|>", CONTROL), ("<|eot_id|>", CONTROL), ("<reponame>", NORMAL),
           ("<|tool|>", CONTROL), ("<|tool", USER), ("<tool>", USER), ("[TAG]", USER),
           ("[TAG][TAG]", USER), ("<mask>", UNUSED), ("  ", USER), ("\n\n", USER), ("<|", USER),
           ("<pad>", UNKNOWN), ("é", USER), ("<unk>", UNKNOWN),
           ("<s>", CONTROL), ("</s>", CONTROL)]


def byte_alphabet():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, n = {}, 0
    for b in range(256):
        if b in keep:
            table[b] = chr(b)
        else:
            table[b] = chr(256 + n)
            n += 1
    return table


def train(sequences, n):
    """Greedy BPE over whole strings, so that merges cross every border a rule may cut at."""
    merges = []
    for _ in range(n):
        pairs = collections.Counter()
        for s in sequences:
            pairs.update(zip(s, s[1:]))
        (a, b), _ = max(pairs.items(), key=lambda kv: (kv[1], kv[0]))
        merges.append((a, b))
        for k, s in enumerate(sequences):
            out, i = [], 0
            while i < len(s):
                if i + 1 < len(s) and s[i] == a and s[i + 1] == b:
                    out.append(a + b)
                    i += 2
                else:
                    out.append(s[i])
                    i += 1
            sequences[k] = out
    return merges


def corpus():
    return nasty.strings() + nasty.mixed(150, 2)


def make_bpe():
    enc = byte_alphabet()
    merges = train([[enc[b] for b in s] for s in corpus()], 900)
    tokens = [(enc[b], NORMAL, 0.0) for b in range(256)]
    seen = {t[0] for t in tokens}
    extra = ["".join(enc[b] for b in s.encode()) for s in
             ["Hello", " world", " the", "世界", "\n\n\n", "    ", "123", "'re", " Привет", "HTTP"]]
    for text in [a + b for a, b in merges] + extra:
        if text not in seen:
            tokens.append((text, NORMAL, 0.0))
            seen.add(text)
    tokens += [(text, kind, 0.0) for text, kind in SPECIAL if text not in seen]
    return tokens, [a + " " + b for a, b in merges]


def make_spm():
    tokens = [("<unk>", UNKNOWN, 0.0), ("<s>", CONTROL, 0.0), ("</s>", CONTROL, 0.0)]
    tokens += [("<0x%02X>" % b, BYTE, 0.0) for b in range(256)]
    texts = [s.decode().replace(" ", "\u2581") for s in corpus()
             if s.decode("utf-8", "ignore").encode() == s]
    chars = collections.Counter("".join(texts))
    merges = train([list(t) for t in texts], 500)
    rng = random.Random(3)
    seen = {t[0] for t in tokens}
    pieces = [a + b for a, b in merges] + ["\u2581\u2581", "\u2581\u2581\u2581\u2581", "\u2581The"]
    for i, text in enumerate(pieces):
        if text not in seen:  # ties and disorder on purpose
            tokens.append((text, NORMAL, float(-(i // 3)) + rng.choice([0.0, 0.0, 0.5, -8.0])))
            seen.add(text)
    for ch, _ in sorted(chars.most_common(180)):
        if ch not in seen and ch != "\0":  # llama.cpp ends a text at a NUL
            tokens.append((ch, NORMAL, -1000.0))
            seen.add(ch)
    tokens += [(text, kind, 0.0) for text, kind in SPECIAL if text not in seen]
    return tokens, []


def write_vocab(name, tokens, merges):
    with open(os.path.join(DATA, name), "w", encoding="utf-8", newline="\n") as f:
        for text, kind, score in tokens:
            f.write("t %d %g %s\n" % (kind, score, nasty.escape(text.encode())))
        for m in merges:
            f.write("m %s\n" % nasty.escape(m.encode()))


def write_gguf(path, model, tokens, merges, run):
    w = gguf.GGUFWriter(path, "llama")
    if "title" in run:
        w.add_name(run["title"].replace("_", " "))
    w.add_context_length(64)
    w.add_embedding_length(8)
    w.add_block_count(1)
    w.add_feed_forward_length(8)
    w.add_head_count(1)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_vocab_size(len(tokens))
    w.add_tokenizer_model(model)
    if "pre" in run:
        w.add_tokenizer_pre(run["pre"])
    drop = int(run.get("drop", 0))
    texts = ["[DROP_%d]" % i if drop and i % drop == 3 and t[1] != BYTE else t[0]
             for i, t in enumerate(tokens)]
    w.add_token_list([t.encode() for t in texts])
    w.add_token_scores([t[2] for t in tokens])
    w.add_token_types([t[1] for t in tokens])
    if model == "gpt2":
        w.add_token_merges([m.encode() for m in merges])
    for key, add in (("bos", w.add_bos_token_id), ("eos", w.add_eos_token_id)):
        if key in run:
            add(int(run[key]))
    for key, add in (("add_bos", w.add_add_bos_token), ("add_eos", w.add_add_eos_token),
                     ("prefix", w.add_add_space_prefix)):
        if key in run:
            add(run[key] == "1")
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


def record(f, vocab, run, strings):
    f.write("run %s\n" % " ".join("%s=%s" % kv for kv in run.items()))
    f.write("eog %s\n" % " ".join(map(str, vocab.eog())))
    f.write("pieces %016x\n" % ref.hash_pieces(vocab))
    for s in strings:
        ids = vocab.encode(s, run.get("special") == "1", run.get("add") == "1")
        if run.get("ids") == "1":
            f.write(" ".join(map(str, ids)) + "\n")
        else:
            f.write("%08x\n" % ref.hash_ids(ids))


def make_ids(name, model, tokens, merges, runs, strings):
    with open(os.path.join(DATA, name), "w", encoding="ascii", newline="\n") as f, \
            tempfile.TemporaryDirectory() as tmp:
        for run in runs:
            path = os.path.join(tmp, "vocab.gguf")
            write_gguf(path, model, tokens, merges, run)
            vocab = ref.Vocab(path)
            record(f, vocab, run, strings)
            vocab.close()


def runs_of(text):
    return [dict(kv.split("=", 1) for kv in line.split()) for line in text.strip().split("\n")]


BPE_RUNS = [{"pre": p} for p in PRES] + runs_of("""
pre=gpt-2 special=1 add=1 add_bos=1 add_eos=1 bos=3 eos=5
pre=llama-bpe special=1 add=1
pre=qwen2 special=1 add=1 drop=7
pre=llama-bpe special=0 drop=5
pre=smollm special=1 title=phi-3-mini
add=1 special=1""")

SPM_RUNS = runs_of("""
special=0
special=1 add=1
special=0 prefix=0
special=1 prefix=0 add=1 add_bos=0 add_eos=1
special=1 title=Phi-3_mini add=1
special=1 title=phi3 prefix=0
special=0 drop=11""")


def main():
    os.makedirs(DATA, exist_ok=True)
    strings = nasty.strings()
    with open(os.path.join(DATA, "nasty.txt"), "w", encoding="utf-8", newline="\n") as f:
        f.writelines(nasty.escape(s) + "\n" for s in strings)
    if len(sys.argv) > 1:
        vocab = ref.Vocab(sys.argv[1])
        with open(os.path.join(DATA, "smollm2.ids"), "w", encoding="ascii", newline="\n") as f:
            for run in runs_of("special=0 add=0 ids=1\nspecial=1 add=1"):
                record(f, vocab, run, strings)
        vocab.close()
    tokens, merges = make_bpe()
    write_vocab("bpe.vocab", tokens, merges)
    make_ids("bpe.ids", "gpt2", tokens, merges, BPE_RUNS, strings)
    tokens, merges = make_spm()
    write_vocab("spm.vocab", tokens, merges)
    make_ids("spm.ids", "llama", tokens, merges, SPM_RUNS, strings)


if __name__ == "__main__":
    main()
