#!/usr/bin/env python3
"""Writes the GGUF fixtures of tests/test_gguf.c with the gguf package: every metadata type, nested
arrays, alignment 64, in version 3 and (the same bytes under another number) 2; and a model in three
parts. Usage: gguf_fixtures.py tests/data/gguf (needs numpy and gguf)."""
import sys

import numpy as np
from gguf import GGUFWriter, quants
from gguf.constants import GGMLQuantizationType as T, GGUFValueType as V


def keys(w):
    w.add_key_value("t.u8", 200, V.UINT8)
    w.add_key_value("t.i8", -100, V.INT8)
    w.add_key_value("t.u16", 60000, V.UINT16)
    w.add_key_value("t.i16", -30000, V.INT16)
    w.add_key_value("t.u32", 4000000000, V.UINT32)
    w.add_key_value("t.i32", -2000000000, V.INT32)
    w.add_key_value("t.f32", 0.15625, V.FLOAT32)
    w.add_key_value("t.bool", True, V.BOOL)
    w.add_key_value("t.str", "gr\u00fc\u00dfe \U0001f44b", V.STRING)
    w.add_key_value("t.u64", 1 << 60, V.UINT64)
    w.add_key_value("t.i64", -(1 << 60), V.INT64)
    w.add_key_value("t.f64", 0.1, V.FLOAT64)
    w.add_key_value("t.empty", "", V.STRING)
    w.add_key_value("a.str", ["", "a", "b\u00e9", "<|end|>"], V.ARRAY, V.STRING)
    w.add_key_value("a.f32", [0.5, -2.0, 1e30], V.ARRAY, V.FLOAT32)
    w.add_key_value("a.i32", [1, -2, 3], V.ARRAY, V.INT32)
    w.add_key_value("a.u8", [0, 255], V.ARRAY, V.UINT8)
    w.add_key_value("a.i64", [-(1 << 62)], V.ARRAY, V.INT64)
    w.add_key_value("a.arr", [[1, 2], [-3]], V.ARRAY)
    w.add_key_value("a.deep", [[["x", "yz"], [""]], [["q"]]], V.ARRAY)
    w.add_key_value("a.bool", [True, False, True], V.ARRAY, V.BOOL)


def types_file(path):
    w = GGUFWriter(path, "test")
    w.add_custom_alignment(64)
    keys(w)
    x = np.arange(96, dtype=np.float32).reshape(3, 32) / 16
    w.add_tensor("f32", x)
    w.add_tensor("f16", x.astype(np.float16))
    w.add_tensor("odd", np.arange(5, dtype=np.float32))
    w.add_tensor("q8", quants.quantize(x, T.Q8_0), raw_dtype=T.Q8_0)
    w.add_tensor("i32", np.arange(24, dtype=np.int32).reshape(2, 3, 1, 4))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def split_files(out):
    w = GGUFWriter(f"{out}/split.gguf", "llama", split_max_tensors=2)
    w.add_name("split")
    for i in range(5):
        w.add_tensor(f"blk.{i}.w", np.full((2, 8), i, np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main(out):
    types_file(f"{out}/types-v3.gguf")
    data = bytearray(open(f"{out}/types-v3.gguf", "rb").read())
    data[4] = 2
    open(f"{out}/types-v2.gguf", "wb").write(data)
    split_files(out)


main(sys.argv[1])
