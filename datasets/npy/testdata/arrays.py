#!/usr/bin/env python3
"""Writes arrays.npz, arrays of every accepted element type, byte order and layout, and arrays.txt, what
NumPy says that each holds: name, shape, and the elements in C order as the bits of a float32. Run it in this
folder with a Python that has NumPy (1.24 made the files):

    python3 arrays.py
"""
import numpy as np

shapes = {"flat": (12,), "matrix": (3, 4), "images": (2, 3, 2), "single": (1, 1, 12, 1)}
rng = np.random.default_rng(20)
arrays = {}
for kind in ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]:
    for order, spelled in (("<", "little"), (">", "big")):
        dtype = np.dtype(order + kind)
        if dtype.itemsize == 1 and order == ">":
            continue
        if dtype.kind == "b":
            values = rng.integers(0, 2, 12).astype(dtype)
        elif dtype.kind == "f":
            values = (rng.standard_normal(12) * 10.0 ** rng.integers(-8, 4, 12)).astype(dtype)
            largest = np.finfo(np.float32 if dtype.itemsize > 2 else dtype).max
            values[:4] = [largest, -largest, np.finfo(np.float16).smallest_subnormal, -0.0]
        else:
            info = np.iinfo(dtype)
            values = rng.integers(info.min, info.max, 12, dtype=dtype.newbyteorder("=")).astype(dtype)
            values[:2] = [info.min, info.max]
        for shape, dims in shapes.items():
            for layout in "CF":
                arrays[f"{kind}-{spelled}-{shape}-{layout}"] = np.array(values.reshape(dims), dtype=dtype, order=layout)

np.savez_compressed("arrays.npz", **arrays)
with open("arrays.txt", "w", encoding="ascii") as out:
    for name, a in arrays.items():
        bits = np.ascontiguousarray(a.astype("=f4")).reshape(-1).view(np.uint32)
        print(name, ",".join(map(str, a.shape)), " ".join(f"{b:08x}" for b in bits), file=out)
