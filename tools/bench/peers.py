#!/usr/bin/env python3
"""Times Tessera, rustymimi and the moshi package (PyTorch) on the same Mimi: full size, random weights.

Each is a process of its own with one thread, all on one core; they take turns of a few 80 ms frames, so that
what else the machine does hits them alike. Every contender gets the same weights file, sound and tokens, and
what comes out is compared. Packages that are not installed are named and left out. See README.md.
"""

import argparse
import array
import importlib.metadata
import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time

FRAME = 1920  # samples at 24 kHz: 80 ms
CODEBOOK_SIZE = 2048
WINDOW = 125  # frames until the attention window of 250 positions is full
DIRECTIONS = ("encode", "decode")


# ---- The contenders as processes. Each answers as bench_mimi_shape does (mimi_shape.cpp).


class Rustymimi:
    def __init__(self, model, codebooks):
        import rustymimi
        import numpy

        self.numpy = numpy
        self.version = importlib.metadata.version("rustymimi")
        self.codec = rustymimi.Tokenizer(model, num_codebooks=codebooks)

    def frame(self, direction, values):
        return self.numpy.array(values, dtype="float32" if direction == "encode" else "uint32")

    def encode(self, frame):
        return self.codec.encode_step(frame.reshape(1, 1, -1))

    def decode(self, frame):
        return self.codec.decode_step(frame.reshape(1, -1, 1))

    def values(self, output):
        return output.ravel().tolist()


class Moshi:
    def __init__(self, model, codebooks):
        from moshi.models import loaders
        import torch

        torch.set_num_threads(1)
        torch.set_num_interop_threads(1)
        self.torch = torch
        self.version = f"{importlib.metadata.version('moshi')}, torch {torch.__version__}"
        self.codec = loaders.get_mimi(model, device="cpu", num_codebooks=codebooks)
        self.codec.streaming_forever(1)

    def frame(self, direction, values):
        dtype = self.torch.float32 if direction == "encode" else self.torch.int64
        return self.torch.tensor(values, dtype=dtype)

    def encode(self, frame):
        with self.torch.inference_mode():
            return self.codec.encode(frame.view(1, 1, -1))

    def decode(self, frame):
        with self.torch.inference_mode():
            return self.codec.decode(frame.view(1, -1, 1))

    def values(self, output):
        return output.flatten().tolist()


PACKAGES = {"rustymimi": Rustymimi, "moshi": Moshi}


def read_frames(path, kind, size):
    values = array.array(kind)
    with open(path, "rb") as file:
        values.frombytes(file.read())
    return iter([values[i : i + size].tolist() for i in range(0, len(values), size)])


def serve(name, model, sound, tokens, codebooks):
    """Answers commands on standard input; whatever a package prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(what):
        print(json.dumps(what), file=answers, flush=True)

    try:
        codec = PACKAGES[name](model, int(codebooks))
    except ImportError as error:
        return answer({"missing": str(error)})
    inputs = {"encode": read_frames(sound, "f", FRAME), "decode": read_frames(tokens, "i", int(codebooks))}
    answer({"version": codec.version})
    for line in sys.stdin:
        direction, count = line.split()
        step, ms, out = getattr(codec, direction), [], []
        for _ in range(int(count)):
            frame = codec.frame(direction, next(inputs[direction]))
            start = time.perf_counter()
            output = step(frame)
            ms.append((time.perf_counter() - start) * 1000)
            out.append(codec.values(output))
        answer({"ms": ms, "out": out})


# ---- The comparison.


class Contender:
    """One of them, running, with what it measured so far."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        hello = self.read()
        self.missing = hello.get("missing")
        self.version = hello.get("version")
        self.ms = {direction: [] for direction in DIRECTIONS}
        self.first = {direction: [] for direction in DIRECTIONS}  # what came out before the window was full

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"peers: {self.name} ended with code {self.process.wait()}; its message is above")
        return json.loads(line)

    def run(self, direction, count, measured):
        self.process.stdin.write(f"{direction} {count}\n")
        self.process.stdin.flush()
        answer = self.read()
        if measured:
            self.ms[direction] += answer["ms"]
        room = WINDOW - len(self.first[direction])
        self.first[direction] += answer["out"][: max(room, 0)]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def make_inputs(folder, frames, codebooks):
    """Noise that swells and falls, and any tokens: with random weights nothing else would mean more."""
    rng = random.Random(1)
    sound = array.array("f", (rng.gauss(0, 0.1) * (1 + math.sin(i / 3000)) for i in range(frames * FRAME)))
    tokens = array.array("i", (rng.randrange(CODEBOOK_SIZE) for _ in range(frames * codebooks)))
    paths = []
    for name, values in (("sound.f32", sound), ("tokens.i32", tokens)):
        paths.append(os.path.join(folder, name))
        with open(paths[-1], "wb") as file:
            values.tofile(file)
    return paths


def take_turns(contenders, count, frames, measured):
    """`frames` frames in each direction, `count` per turn; the order moves on from turn to turn."""
    for turn in range(math.ceil(frames / count)):
        first = turn % len(contenders)
        for direction in DIRECTIONS:
            for contender in contenders[first:] + contenders[:first]:
                contender.run(direction, min(count, frames - turn * count), measured)


def agreement(contender, reference):
    """Tokens that are equal and the largest difference of the PCM, before the attention window is full."""
    pairs = [pair for a, b in zip(contender.first["encode"], reference.first["encode"]) for pair in zip(a, b)]
    pcm = [pair for a, b in zip(contender.first["decode"], reference.first["decode"]) for pair in zip(a, b)]
    return {
        "frames": len(reference.first["encode"]),
        "tokens": len(pairs),
        "equal_tokens": sum(a == b for a, b in pairs),
        "pcm_peak": max(abs(b) for _, b in pcm),
        "pcm_difference": max(abs(a - b) for a, b in pcm),
    }


def cpu_name():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def summary(contender, reference):
    result = {"name": contender.name, "version": contender.version}
    for direction in DIRECTIONS:
        median = statistics.median(contender.ms[direction])
        result[direction] = {
            "median_ms": median,
            "min_ms": min(contender.ms[direction]),
            "ratio": median / statistics.median(reference.ms[direction]),
        }
    if contender is not reference:
        result["agreement"] = agreement(contender, reference)
    return result


def print_table(report):
    machine, how = report["machine"], report["settings"]
    where = "any core" if how["core"] is None else f"core {how['core']}"
    load = f"{machine['load_before']:.2f} before, {machine['load_after']:.2f} after"
    print(f"{machine['cpu']}, one thread on {where}; load {load}")
    print(f"{how['frames']} frames of 80 ms each way after {how['warm_up']}, {how['codebooks']} codebooks")
    print("ms per frame: median, minimum; ratio of the medians to Tessera's\n")
    print(f"{'':12}{'encode':>8}{'min':>8}{'ratio':>7}{'decode':>10}{'min':>8}{'ratio':>7}   version")
    for row in report["contenders"]:
        line = f"{row['name']:12}"
        for direction, width in (("encode", 8), ("decode", 10)):
            cell = row[direction]
            line += f"{cell['median_ms']:{width}.2f}{cell['min_ms']:8.2f}{cell['ratio']:7.2f}"
        print(f"{line}   {row['version']}")
    print()
    for name, reason in report["missing"].items():
        print(f"{name}: left out ({reason}); README.md says how to install it")
    for row in report["contenders"][1:]:
        same = row["agreement"]
        tokens = f"{same['equal_tokens']} of {same['tokens']} tokens equal Tessera's"
        pcm = f"PCM differs by at most {same['pcm_difference']:.1e} (peak {same['pcm_peak']:.2g})"
        print(f"{row['name']}: first {same['frames']} frames: {tokens}; {pcm}")


def compare(arguments):
    single = ("OMP", "MKL", "OPENBLAS", "RAYON")
    os.environ.update({f"{library}_NUM_THREADS": "1" for library in single})
    core = arguments.core
    if hasattr(os, "sched_setaffinity"):  # the contenders inherit it
        core = max(os.sched_getaffinity(0)) if core is None else core
        os.sched_setaffinity(0, {core})
    elif core is not None:
        sys.exit("peers: this system cannot hold a process to a core; leave --core out")
    load_before = os.getloadavg()[0]
    frames = arguments.warm_up + arguments.frames
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.safetensors")
        subprocess.run([arguments.program, "--write", model], check=True)
        inputs = [model, *make_inputs(folder, frames, arguments.codebooks), str(arguments.codebooks)]
        contenders = [Contender("tessera", [arguments.program, *inputs])]
        for name in PACKAGES:
            itself = [sys.executable, os.path.abspath(__file__), "--serve", name]
            contenders.append(Contender(name, itself + inputs))
        missing = {contender.name: contender.missing for contender in contenders if contender.missing}
        contenders = [contender for contender in contenders if not contender.missing]
        take_turns(contenders, arguments.turn, arguments.warm_up, measured=False)
        take_turns(contenders, arguments.turn, arguments.frames, measured=True)
        for contender in contenders:
            contender.close()
    return {
        "machine": {"cpu": cpu_name(), "load_before": load_before, "load_after": os.getloadavg()[0]},
        "settings": {
            "core": core,
            "codebooks": arguments.codebooks,
            "warm_up": arguments.warm_up,
            "frames": arguments.frames,
            "turn": arguments.turn,
        },
        "contenders": [summary(contender, contenders[0]) for contender in contenders],
        "missing": missing,
    }


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    number = {"type": int, "metavar": "N"}
    program = "build/tools/bench/bench_mimi_shape"
    parser.add_argument("--program", default=program, help="bench_mimi_shape (%(default)s)")
    parser.add_argument("--frames", default=200, help="frames measured each way (%(default)s)", **number)
    parser.add_argument(
        "--warm-up", default=130, help="frames before; 125 fill the attention window (%(default)s)", **number
    )
    parser.add_argument("--turn", default=10, help="frames in a row per turn (%(default)s)", **number)
    parser.add_argument("--codebooks", default=8, help="1 to 32 (%(default)s)", **number)
    parser.add_argument("--core", help="the core they all run on (the last one)", **number)
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    arguments = parser.parse_args()
    if min(arguments.frames, arguments.warm_up, arguments.turn) < 1 or not 1 <= arguments.codebooks <= 32:
        parser.error("expected at least 1 of --frames, --warm-up and --turn, and 1 to 32 codebooks")
    if not os.access(arguments.program, os.X_OK):
        parser.error(f"expected bench_mimi_shape, got {arguments.program}; README.md says how to build it")
    report = compare(arguments)
    if arguments.json:
        print(json.dumps(report, indent=1))
    else:
        print_table(report)


if __name__ == "__main__":
    main()
