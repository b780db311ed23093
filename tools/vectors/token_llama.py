"""llama.cpp's tokenizer through its shared library: the reference for token ids.

LLAMA_LIB is the path of libllama.so (the struct below is that of August 2026's llama.h)."""
import ctypes as c
import os

MASK = (1 << 64) - 1


class ModelParams(c.Structure):
    _fields_ = [("devices", c.c_void_p), ("overrides", c.c_void_p), ("n_gpu_layers", c.c_int32),
                ("split_mode", c.c_int), ("load_mode", c.c_int), ("lazy_mode", c.c_int),
                ("main_gpu", c.c_int32), ("tensor_split", c.c_void_p), ("progress", c.c_void_p),
                ("progress_data", c.c_void_p), ("kv_overrides", c.c_void_p),
                ("vocab_only", c.c_bool), ("rest", c.c_bool * 5)]


LOG = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)
quiet = LOG(lambda level, text, user: None)
lib = None


def load_library():
    global lib
    if lib:
        return
    lib = c.CDLL(os.environ["LLAMA_LIB"])
    lib.llama_model_default_params.restype = ModelParams
    lib.llama_model_load_from_file.argtypes = [c.c_char_p, ModelParams]
    lib.llama_model_load_from_file.restype = c.c_void_p
    lib.llama_model_free.argtypes = [c.c_void_p]
    lib.llama_model_get_vocab.argtypes = [c.c_void_p]
    lib.llama_model_get_vocab.restype = c.c_void_p
    lib.llama_vocab_n_tokens.argtypes = [c.c_void_p]
    lib.llama_vocab_is_eog.argtypes = [c.c_void_p, c.c_int32]
    lib.llama_vocab_is_eog.restype = c.c_bool
    lib.llama_tokenize.argtypes = [c.c_void_p, c.c_char_p, c.c_int32, c.c_void_p, c.c_int32,
                                   c.c_bool, c.c_bool]
    lib.llama_token_to_piece.argtypes = [c.c_void_p, c.c_int32, c.c_char_p, c.c_int32, c.c_int32,
                                         c.c_bool]
    if not os.environ.get("VERBOSE"):
        lib.llama_log_set(quiet, None)
    lib.llama_backend_init()


class Vocab:
    def __init__(self, path):
        load_library()
        params = lib.llama_model_default_params()
        params.vocab_only = True
        self.model = lib.llama_model_load_from_file(os.fsencode(path), params)
        assert self.model, path
        self.vocab = lib.llama_model_get_vocab(self.model)
        self.n = lib.llama_vocab_n_tokens(self.vocab)

    def close(self):
        lib.llama_model_free(self.model)

    def encode(self, text, special, add):
        room = 4 * len(text) + 16
        ids = (c.c_int32 * room)()
        n = lib.llama_tokenize(self.vocab, text, len(text), ids, room, add, special)
        assert n >= 0
        return list(ids[:n])

    def piece(self, i, special):
        out = c.create_string_buffer(4096)
        n = lib.llama_token_to_piece(self.vocab, i, out, 4096, 0, special)
        assert n >= 0
        return out.raw[:n]

    def eog(self):
        return [i for i in range(self.n) if lib.llama_vocab_is_eog(self.vocab, i)]


def fnv(data, h=0xCBF29CE484222325):
    for b in data:
        h = ((h ^ b) * 0x100000001B3) & MASK
    return h


def hash_ids(ids):
    h = fnv(b"".join(i.to_bytes(4, "little") for i in ids))
    return (h ^ h >> 32) & 0xFFFFFFFF


def hash_pieces(vocab):
    h = fnv(b"")
    for i in range(vocab.n):
        for special in (True, False):
            p = vocab.piece(i, special)
            h = fnv(len(p).to_bytes(4, "little") + p, h)
    return h
