# Reads .tsr (docs/bitstream.md), both coders, and prints JSON lines: the header, each frame's tokens
# [channels][codebooks], the length in samples. Stops at damage. Usage: read_tsr.py FILE
import json, sys

def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8): crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF

class Block:
    def __init__(self, data, at): self.data, self.start, self.at = data, at, at
    def number(self, n): self.at += n; return int.from_bytes(self.data[self.at - n:self.at], "little")
    def varint(self):
        byte = self.number(1)
        return byte & 127 | self.varint() << 7 if byte & 128 else byte
    def take(self, n): self.at += n; return self.data[self.at - n:self.at]
    def check(self):
        covered = self.data[self.start:self.at]
        if crc32c(covered) != self.number(4): sys.exit("checksum of the block at byte %d" % self.start)
        return self.at

def packed(data, sizes):
    bits = int.from_bytes(data, "little")
    for size in sizes:
        width = (size - 1).bit_length()
        yield bits & (1 << width) - 1
        bits >>= width

def adaptive(data, n, size):
    rest, code, rng = list(data[4:]), int.from_bytes((data + bytes(4))[:4], "big"), 0xFFFFFFFF
    def symbol(frequencies):  # (name, frequency) in order
        nonlocal code, rng
        unit, low = rng // sum(f for _, f in frequencies), 0
        place = min(code // unit, sum(f for _, f in frequencies) - 1)
        for name, f in frequencies:
            if place < low + f: break
            low += f
        code, rng = code - unit * low, unit * f
        while rng < 1 << 24: rng, code = rng << 8, (code << 8 | (rest.pop(0) if rest else 0)) & 0xFFFFFFFF
        return name
    count, flags, known, out = {}, [[1, 1], [1, 1]], False, []
    for _ in range(n):
        pair, known = flags[known], len(count) == size
        if 0 < len(count) < size:
            known = symbol([(True, pair[0]), (False, pair[1])])
            pair[not known] += 2
            if sum(pair) > 1024: pair[:] = [(v + 1) // 2 for v in pair]
        token = symbol(sorted(count.items()) if known else [(t, 1) for t in range(size) if t not in count])
        count[token] = count.get(token, 0) + (2 if known else 1)
        if sum(count.values()) > 131070: count = {t: (c + 1) // 2 for t, c in count.items()}
        out.append(token)
    return out

data, at = open(sys.argv[1], "rb").read(), 0
while at < len(data):
    b = Block(data, at)
    tag = b.number(1)
    if tag == 0x54:
        assert b.take(3) == b"SR\x01"
        end = b.number(1) + b.at
        flags, weights, rate, per_frame = b.number(1), b.number(8), b.varint(), b.varint()
        skip, full, channels, sizes = b.varint(), b.varint(), b.number(1), []
        codec = b.take(b.varint()).decode()
        while b.at < end:
            size = b.varint() + 1
            sizes += [size] * b.number(1)
        if not flags & 128:
            print(json.dumps([codec, weights, rate, per_frame, skip, channels, sizes]))
    elif tag == 0xD0: b.take(b.varint())
    elif tag & 0xF0 == 0xA0:
        first, frames = b.varint(), b.varint() if tag & 1 else full
        n, bits = frames * channels, [(size - 1).bit_length() for size in sizes]
        if tag & 2:
            lengths = [b.varint() for _ in sizes]
            layers = [adaptive(b.take(length), n, size) if length else list(packed(b.take((n * w + 7) // 8), [size] * n))
                      for length, size, w in zip(lengths, sizes, bits)]
        else:
            tokens = list(packed(b.take((n * sum(bits) + 7) // 8), [size for size in sizes for _ in range(n)]))
            layers = [tokens[k * n:k * n + n] for k in range(len(sizes))]
        for f in range(frames):
            print(json.dumps([[layer[c * frames + f] for layer in layers] for c in range(channels)]))
    elif tag & 0xFE == 0xE0:
        count, trim = b.varint(), b.varint()
        if tag & 1:
            for _ in range(2 * b.varint() + 1): b.varint()
            assert b.at - at == b.number(2)
        print(json.dumps(max(0, count * per_frame - skip) - trim))
    else: sys.exit("no block at byte %d" % at)
    at = b.check()
