#!/usr/bin/env python3
"""Times a step of training Tessera's default codec here and in PyTorch: same network, losses and batch.

PyTorch trains in float32 and bfloat16 autocast, eager and compiled, in several layouts; the best setting of
each precision then takes turns with train_bench. Weights are random and the sound is made up: only the speed
means anything. The PyTorch side is train_peer_torch.py. See README.md.
"""

import argparse
import copy
import json
import os
import re
import statistics
import subprocess
import sys

from peers import cpu_name

PRECISIONS = ("f32", "bf16")
MODES = ("eager", "compiled")
LAYOUTS = ("conv1d", "channels_last", "linear")
SETTINGS = ("threads", "adversarial", "steps", "turns", "warm_up")
PHASES = ("forward", "losses", "backward", "discriminators", "optimizer")

# What decides the speed, as `tessera train --default-config` has it; check_defaults() tells when it differs.
DEFAULTS = {
    "model": {
        "sample_rate_hz": 16000,
        "hop": 320,
        "rows": 1,
        "bands": 20,
        "channels": 512,
        "latent": 128,
        "encoder": [1, 2, 4],
        "decoder": [1, 2, 4, 1, 2],
        "kernel": 3,
        "quantizer": "residual",
        "codebooks": 16,
        "codebook_size": 1024,
    },
    "data": {"seconds": 1.28, "batch": 16},
    "losses": {
        "normalized_error": 0.1,
        "pre_emphasized": 0.1,
        "log_mel": 3.0,
        "mel_windows": [64, 128, 256, 512, 1024, 2048],
        "envelope": 0.0,
        "stft": 0.0,
        "commitment": 1.0,
        "adversarial": 0.05,
        "feature_matching": 0.3,
        "distillation": 0.0,
        "balancer": False,
    },
    "quantizer": {
        "decay": 0.99,
        "dead_below": 0.4,
        "codebook_gradient": False,
        "keep_all": 0.2,
        "choices": [],
    },
    "discriminators": {
        "stft": [512, 256, 128],
        "periods": [],
        "channels": 12,
        "bands": [1.0],
        "compressed": True,
        "seconds": 0.4,
        "loss": "hinge",
        "every": 1,
    },
    "optimizer": {
        "learning_rate": 1e-3,
        "betas": [0.9, 0.99],
        "epsilon": 1e-8,
        "weight_decay": 0.01,
        "clip": 1.0,
        "ema": 0.999,
    },
    "discriminator_optimizer": {
        "learning_rate": 1e-3,
        "betas": [0.8, 0.99],
        "epsilon": 1e-8,
        "weight_decay": 0.01,
        "clip": 1.0,
    },
}
# Keys for which PyTorch's side has the default value only.
FIXED = {
    "model": ("quantizer",),
    "losses": ("envelope", "stft", "distillation", "balancer"),
    "quantizer": ("codebook_gradient",),
    "discriminators": ("periods", "bands", "loss", "every"),
}


# ---- The configuration.


def parse(text, where):
    """JSON with // comments, as the trainer reads it."""
    try:
        return json.loads(re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*', lambda match: match[1] or "", text))
    except ValueError as error:
        sys.exit(f"train_peer: {where}: expected JSON, got: {error}")


def merged(given, where):
    """The defaults with what `given` says; keys that do not touch the speed are passed over."""
    config = copy.deepcopy(DEFAULTS)
    for section, keys in config.items():
        for key in keys:
            value = given.get(section, {}).get(key, keys[key])
            if key in FIXED.get(section, ()) and value != keys[key]:
                wanted = f"{json.dumps(keys[key])}, the only value that is timed here"
                sys.exit(f"train_peer: {where}: {section}: {key}: expected {wanted}, got {json.dumps(value)}")
            keys[key] = value
    return config


def assign(config, assignment):
    """section.key=value of --set."""
    match = re.fullmatch(r"(\w+)\.(\w+)=(.+)", assignment)
    if not match or match[2] not in DEFAULTS.get(match[1], {}):
        keys = ", ".join(f"{section}.{key}" for section, keys in DEFAULTS.items() for key in keys)
        sys.exit(f"train_peer: --set: expected KEY=VALUE with a key of {keys}; got {assignment}")
    config[match[1]][match[2]] = parse(match[3], "--set")


def check_defaults(tessera):
    """Notes: where the built tool has other defaults, the two sides train different things."""
    if not os.access(tessera, os.X_OK):
        return [f"defaults not compared with Tessera's: no {tessera}"]
    command = [tessera, "train", "--default-config"]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    built, notes = parse(printed, tessera), []
    for section, keys in DEFAULTS.items():
        for key, value in keys.items():
            other = built.get(section, {}).get(key)
            if other != value:
                values = f"{json.dumps(value)} in PyTorch, {json.dumps(other)} in Tessera"
                notes.append(f"not the same: {section}.{key} is {values}")
    return notes


# ---- The contenders. A turn gives seconds by phase for each step.


class PyTorch:
    """A process that trains in one setting."""

    def __init__(self, config, precision, mode, layout, adversarial, threads):
        self.precision, self.name, self.failed = precision, f"{mode} {layout}", None
        settings = {
            "config": config,
            "precision": precision,
            "mode": mode,
            "layout": layout,
            "adversarial": adversarial,
            "threads": threads,
        }
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train_peer_torch.py")
        command = [sys.executable, script, json.dumps(settings)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.losses = []

    def turn(self, steps):
        try:
            self.process.stdin.write(f"{steps}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # readline() finds the end, too
        line = self.process.stdout.readline()
        if not line:
            self.failed = f"ended with code {self.process.wait()}; its message is above"
            return []
        answer = json.loads(line)
        self.losses += answer["losses"]
        return answer["seconds"]

    def close(self):
        if not self.failed:
            self.process.stdin.close()
            self.process.wait()


class Tessera:
    """A benchmark of train_bench, a process for each turn; it decides itself how many steps that is."""

    def __init__(self, program, precision, adversarial, threads):
        self.program, self.precision, self.name = program, precision, "train_bench"
        wanted = f"train_peer/{precision}/{threads}" + ("/adversarial" if adversarial else "")
        command = [program, "--benchmark_list_tests"]
        listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        pattern = re.escape(wanted) + r"(/min_time:[^/]+)?(/real_time)?"
        names = [name for name in listed.split() if re.fullmatch(pattern, name)]
        self.failed = None if names else f"{program} has no {wanted}"
        self.filter = f"--benchmark_filter=^{re.escape(names[0])}$" if names else None

    def turn(self, _):
        command = [self.program, self.filter, "--benchmark_format=json"]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        result = json.loads(output)["benchmarks"][0]
        if result.get("error_occurred"):
            sys.exit(f"train_peer: {result['name']}: {result['error_message']}")
        return [[result[f"{phase}_ms"] / 1000 for phase in PHASES]]

    def close(self):
        pass


# ---- The comparison.


def fastest(precision, arguments, config, notes):
    """Tries every setting; the best one stays open. None if none ran."""
    best = None
    for mode in arguments.modes:
        for layout in arguments.layouts:
            one = PyTorch(config, precision, mode, layout, arguments.adversarial, arguments.threads)
            one.turn(arguments.warm_up)
            steps = [] if one.failed else one.turn(arguments.steps)
            if one.failed:
                notes.append(f"PyTorch {precision} {one.name}: {one.failed}")
                continue
            one.seconds = min(sum(step) for step in steps)
            notes.append(f"PyTorch {precision} {one.name}: {1000 * one.seconds:.0f} ms at best when tried")
            if best and best.seconds <= one.seconds:
                one.close()
                continue
            if best:
                best.close()
            best = one
    return best


def summary(contender, turns, audio_seconds):
    """Medians over the turns, each of which is a mean over steps."""
    step = statistics.median(sum(turn) for turn in turns)
    return {
        "name": "tessera" if isinstance(contender, Tessera) else "pytorch",
        "precision": contender.precision,
        "setting": contender.name,
        "audio_s_per_s": audio_seconds / step,
        "step_ms": 1000 * step,
        "phases_ms": {
            phase: 1000 * statistics.median(turn[i] for turn in turns) for i, phase in enumerate(PHASES)
        },
    }


def take_turns(contenders, arguments):
    """Mean seconds by phase for each turn of each contender; who begins changes from turn to turn."""
    turns = [[] for _ in contenders]
    for first in range(arguments.turns):
        for i in range(len(contenders)):
            i = (i + first) % len(contenders)
            steps = contenders[i].turn(arguments.steps)
            if contenders[i].failed:
                sys.exit(f"train_peer: PyTorch {contenders[i].name}: {contenders[i].failed}")
            turns[i].append([statistics.mean(phase) for phase in zip(*steps)])
    return turns


def compare(arguments, config, notes):
    load_before = os.getloadavg()[0]
    contenders = []
    for precision in arguments.precisions:
        if arguments.program:
            ours = Tessera(arguments.program, precision, arguments.adversarial, arguments.threads)
            notes += [ours.failed] if ours.failed else []
            contenders += [] if ours.failed else [ours]
        best = fastest(precision, arguments, config, notes)
        contenders += [best] if best else []
    audio_seconds = config["data"]["batch"] * config["data"]["seconds"]
    rows = [summary(*each, audio_seconds) for each in zip(contenders, take_turns(contenders, arguments))]
    for contender in contenders:
        contender.close()
    speeds = {(row["name"], row["precision"]): row["audio_s_per_s"] for row in rows}
    ratios = {
        precision: speeds["tessera", precision] / speeds["pytorch", precision]
        for precision in arguments.precisions
        if ("tessera", precision) in speeds and ("pytorch", precision) in speeds
    }
    return {
        "machine": {"cpu": cpu_name(), "load_before": load_before, "load_after": os.getloadavg()[0]},
        "settings": {key: getattr(arguments, key) for key in SETTINGS},
        "config": config,
        "contenders": rows,
        "ratios": ratios,
        "losses": {f"{c.precision} {c.name}": c.losses for c in contenders if isinstance(c, PyTorch)},
        "notes": notes,
    }


def print_table(report):
    machine, how, data = report["machine"], report["settings"], report["config"]["data"]
    load = f"{machine['load_before']:.2f} before, {machine['load_after']:.2f} after"
    print(f"{machine['cpu']}, threads: {how['threads']}; load {load}")
    kind = "with discriminators" if how["adversarial"] else "without discriminators"
    print(f"{data['batch']} clips of {data['seconds']:g} s, {kind}; medians of {how['turns']} turns")
    print("ms per step and phase; losses: with their gradients to the sound\n")
    names = "".join(f"{name:>{len(name) + 2}}" for name in PHASES)
    print(f"{'':14}{'setting':24}{'audio s/s':>10}{'step':>8}{names}")
    for row in report["contenders"]:
        cells = "".join(f"{row['phases_ms'][name]:{len(name) + 2}.1f}" for name in PHASES)
        speeds = f"{row['audio_s_per_s']:10.2f}{row['step_ms']:8.0f}"
        print(f"{row['name']:8}{row['precision']:>5} {row['setting']:24}{speeds}{cells}")
    print()
    for precision, ratio in report["ratios"].items():
        print(f"{precision}: Tessera trains {ratio:.2f} times as much sound per second as PyTorch")
    for name, losses in report["losses"].items():
        print(f"PyTorch {name}: loss {losses[0]:.3f} at first, {losses[-1]:.3f} after {len(losses)} steps")
    for note in report["notes"]:
        print(note)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    number = {"type": int, "metavar": "N"}
    program, tessera = "build/tests/bench/train_bench", "build/tessera"
    parser.add_argument("--program", default=program, help="train_bench (%(default)s); '' for PyTorch alone")
    parser.add_argument("--tessera", default=tessera, help="the tool, to compare its defaults (%(default)s)")
    parser.add_argument("--config", metavar="FILE", help="a configuration of tessera train")
    key = {"metavar": "KEY=VALUE", "action": "append", "default": []}
    parser.add_argument("--set", help="on top of that, such as model.channels=64; may be repeated", **key)
    parser.add_argument("--threads", default=2, help="of either side (%(default)s)", **number)
    parser.add_argument("--steps", default=5, help="of PyTorch in a row per turn (%(default)s)", **number)
    parser.add_argument("--turns", default=3, help="of each contender (%(default)s)", **number)
    parser.add_argument("--warm-up", default=2, help="steps before, which compile (%(default)s)", **number)
    parser.add_argument("--adversarial", action="store_true", help="with the discriminators")
    for name, choices in (("precisions", PRECISIONS), ("modes", MODES), ("layouts", LAYOUTS)):
        parser.add_argument(f"--{name}", nargs="+", choices=choices, default=choices, help="to try (all)")
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    arguments = parser.parse_args()
    if min(arguments.threads, arguments.steps, arguments.turns, arguments.warm_up) < 1:
        parser.error("expected at least 1 of --threads, --steps, --turns and --warm-up")
    if arguments.program and not os.access(arguments.program, os.X_OK):
        parser.error(f"expected train_bench, got {arguments.program}; README.md says how to build it")
    if subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode:
        parser.error(f"expected PyTorch for {sys.executable}, got none; README.md says how to install it")
    given = {}
    if arguments.config:
        try:
            with open(arguments.config) as file:
                given = parse(file.read(), arguments.config)
        except OSError as error:
            parser.error(f"expected a configuration, got: {error}")
    config = merged(given, arguments.config or "defaults")
    for assignment in arguments.set:
        assign(config, assignment)
    config = merged(config, "--set")
    notes = check_defaults(arguments.tessera) if arguments.program else []
    if arguments.program and config != DEFAULTS:
        notes.append("no comparison: train_bench trains the default configuration only")
        arguments.program = ""
    report = compare(arguments, config, notes)
    if arguments.json:
        print(json.dumps(report, indent=1))
    else:
        print_table(report)


if __name__ == "__main__":
    main()
