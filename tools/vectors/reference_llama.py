"""llama.cpp's forward pass through its shared library: the reference for logits and perplexity.

Adds contexts to token_llama.py; LLAMA_LIB names libllama.so as there. The structs are those of
August 2026's llama.h (PyPI llama-cpp-python 0.3.36)."""
import ctypes as c
import os

import numpy as np
import token_llama
from token_llama import ModelParams, Vocab

F32, F16 = 0, 1  # ggml_type
FLASH_AUTO, FLASH_OFF = -1, 0


class ContextParams(c.Structure):
    _fields_ = [(n, c.c_uint32) for n in
                ("n_ctx", "n_batch", "n_ubatch", "n_seq_max", "n_rs_seq", "n_outputs_max",
                 "n_outputs_max_per_seq")] + \
               [(n, c.c_int32) for n in
                ("n_threads", "n_threads_batch", "ctx_type", "rope_scaling_type", "pooling_type",
                 "attention_type", "flash_attn_type")] + \
               [(n, c.c_float) for n in
                ("rope_freq_base", "rope_freq_scale", "yarn_ext_factor", "yarn_attn_factor",
                 "yarn_beta_fast", "yarn_beta_slow")] + \
               [("yarn_orig_ctx", c.c_uint32), ("defrag_thold", c.c_float),
                ("cb_eval", c.c_void_p), ("cb_eval_user_data", c.c_void_p),
                ("type_k", c.c_int32), ("type_v", c.c_int32),
                ("abort_callback", c.c_void_p), ("abort_callback_data", c.c_void_p)] + \
               [(n, c.c_bool) for n in
                ("embeddings", "offload_kqv", "no_perf", "op_offload", "swa_full", "kv_unified")] + \
               [("samplers", c.c_void_p), ("n_samplers", c.c_size_t), ("ctx_other", c.c_void_p)]


class Batch(c.Structure):
    _fields_ = [("n_tokens", c.c_int32), ("token", c.POINTER(c.c_int32)), ("embd", c.c_void_p),
                ("pos", c.POINTER(c.c_int32)), ("n_seq_id", c.POINTER(c.c_int32)),
                ("seq_id", c.POINTER(c.POINTER(c.c_int32))), ("logits", c.POINTER(c.c_int8))]


def library():
    token_llama.load_library()
    lib = token_llama.lib
    lib.llama_context_default_params.restype = ContextParams
    lib.llama_init_from_model.argtypes = [c.c_void_p, ContextParams]
    lib.llama_init_from_model.restype = c.c_void_p
    lib.llama_free.argtypes = [c.c_void_p]
    lib.llama_batch_init.argtypes = [c.c_int32] * 3
    lib.llama_batch_init.restype = Batch
    lib.llama_batch_free.argtypes = [Batch]
    lib.llama_decode.argtypes = [c.c_void_p, Batch]
    lib.llama_get_logits_ith.argtypes = [c.c_void_p, c.c_int32]
    lib.llama_get_logits_ith.restype = c.POINTER(c.c_float)
    lib.llama_get_memory.argtypes = [c.c_void_p]
    lib.llama_get_memory.restype = c.c_void_p
    lib.llama_memory_clear.argtypes = [c.c_void_p, c.c_bool]
    lib.llama_vocab_n_tokens.argtypes = [c.c_void_p]
    return lib


class Llama(Vocab):
    """A model and one context. exact: f32 cache, no flash attention, no repacked weights; else
    llama.cpp's own defaults."""

    def __init__(self, path, n_ctx, exact=True, threads=1):
        self.lib = library()
        params = self.lib.llama_model_default_params()
        params.n_gpu_layers = 0
        self.model = self.lib.llama_model_load_from_file(os.fsencode(path), params)
        assert self.model, path
        self.vocab = self.lib.llama_model_get_vocab(self.model)
        self.n = self.lib.llama_vocab_n_tokens(self.vocab)
        p = self.lib.llama_context_default_params()
        assert p.n_seq_max == 1 and p.type_k == F16 and p.flash_attn_type == FLASH_AUTO, \
            "llama.h has changed: update ContextParams"
        p.n_ctx, p.n_batch, p.n_ubatch = n_ctx, 512, 512
        p.n_threads = p.n_threads_batch = threads
        if exact:
            p.type_k = p.type_v = F32
            p.flash_attn_type = FLASH_OFF
        self.ctx = self.lib.llama_init_from_model(self.model, p)
        assert self.ctx, "no context"
        self.batch = self.lib.llama_batch_init(512, 0, 1)
        self.pos = 0

    def close(self):
        self.lib.llama_batch_free(self.batch)
        self.lib.llama_free(self.ctx)
        super().close()

    def reset(self):
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self.ctx), True)
        self.pos = 0

    def feed(self, ids, rows="last"):
        """Runs ids; the logits of the last one [n], or of all of them [len(ids), n]."""
        out = []
        for at in range(0, len(ids), 512):
            part = ids[at:at + 512]
            b = self.batch
            b.n_tokens = len(part)
            for i, t in enumerate(part):
                b.token[i], b.pos[i], b.n_seq_id[i], b.seq_id[i][0] = t, self.pos + i, 1, 0
                b.logits[i] = rows == "all" or at + i + 1 == len(ids)
            assert self.lib.llama_decode(self.ctx, b) == 0
            self.pos += len(part)
            for i in range(len(part)):
                if b.logits[i]:
                    row = self.lib.llama_get_logits_ith(self.ctx, i)
                    out.append(np.ctypeslib.as_array(row, (self.n,)).copy())
        return out[-1] if rows == "last" else np.stack(out)

    def nll(self, ids):
        """Mean over i >= 1 of -log p(ids[i] | ids before it), in one window, in f64."""
        self.reset()
        z = self.feed(ids, "all")[:-1].astype(np.float64)
        z -= z.max(axis=1, keepdims=True)
        log_p = z[np.arange(len(z)), ids[1:]] - np.log(np.exp(z).sum(axis=1))
        return -log_p.mean()
