"""Tessera's codec, its losses and a step of its training in PyTorch, for train_peer.py.

A process of its own: standard input says how many steps to train, standard output how long each took. It has
what the default configuration uses, written for speed on CPUs. Weights are random, the sound is made up.
"""

import json
import math
import os
import random
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

from train_peer_losses import Jury, SoundLoss

GAIN_FLOOR, SHAPE_FLOOR, GAIN_LIMIT = 1e-6, 1e-4, 16.0  # core/gain.h
CANDIDATES = 128  # rows of a step from which dead codewords are replaced


# ---- The network. Sound is [B, L], rows of coefficients and latents [B, T, C].


def mdct_basis(hop):
    """[hop, 2 hop], as core/spectral.h has it."""
    n = torch.arange(2 * hop, dtype=torch.float64)
    window = math.sqrt(2 / hop) * torch.sin(math.pi * (n + 0.5) / (2 * hop))
    return (torch.cos(math.pi / hop * (n + 0.5 + hop / 2) * (n[:hop, None] + 0.5)) * window).float()


class CausalConv(nn.Module):
    """In one of three layouts: [B, C, T] for conv1d, channels-last images of height 1, or [B, T, C] with the
    taps side by side for one product."""

    def __init__(self, layout, inputs, outputs, kernel=1, dilation=1, variance=1.0):
        super().__init__()
        self.layout, self.taps, self.dilation = layout, kernel, dilation
        weight = torch.randn(outputs, inputs, kernel) * math.sqrt(variance / (inputs * kernel))
        if layout == "channels_last":
            weight = weight[:, :, None].contiguous(memory_format=torch.channels_last)
        elif layout == "linear":
            weight = weight.transpose(1, 2).reshape(outputs, -1)
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        before = (self.taps - 1) * self.dilation
        if self.layout == "linear":
            if before:
                padded, length = F.pad(x, (0, 0, before, 0)), x.shape[1]
                x = torch.cat([padded[:, i * self.dilation :][:, :length] for i in range(self.taps)], -1)
            return F.linear(x, self.weight, self.bias)
        if before:
            x = F.pad(x, (before, 0))
        if self.layout == "conv1d":
            return F.conv1d(x, self.weight, self.bias, dilation=self.dilation)
        return F.conv2d(x, self.weight, self.bias, dilation=(1, self.dilation))


class Residual(nn.Module):
    def __init__(self, layout, channels, kernel, dilation):
        super().__init__()
        self.first = CausalConv(layout, channels, channels, kernel, dilation)
        self.second = CausalConv(layout, channels, channels, variance=0.01)

    def forward(self, x):
        return x + self.second(F.elu(self.first(F.elu(x))))


class Stack(nn.Module):
    """A convolution, residual blocks, a convolution: [B, T, in] -> [B, T, out]."""

    def __init__(self, layout, model, inputs, outputs, dilations):
        super().__init__()
        self.layout, channels = layout, model["channels"]
        blocks = [Residual(layout, channels, model["kernel"], dilation) for dilation in dilations]
        self.blocks = nn.Sequential(
            CausalConv(layout, inputs, channels), *blocks, CausalConv(layout, channels, outputs)
        )

    def forward(self, x):
        if self.layout == "linear":
            return self.blocks(x)
        if self.layout == "conv1d":
            return self.blocks(x.transpose(1, 2)).transpose(1, 2)
        return self.blocks(x.transpose(1, 2)[:, :, None])[:, :, 0].transpose(1, 2)


def gain_bands(model):
    """The band of each coefficient (train/model_start.cpp)."""
    hop, bands, nyquist = model["hop"], model["bands"], model["sample_rate_hz"] / 2
    top, begin, widths = math.log(1 + 0.00437 * nyquist), 0, []
    for i in range(1, bands + 1):
        if begin >= hop:
            break
        end = max(begin + 4, round((math.exp(top * i / bands) - 1) / 0.00437 * hop / nyquist))
        if i == bands or end + 4 > hop:
            end = hop
        widths.append(end - begin)
        begin = end
    return torch.repeat_interleave(torch.arange(len(widths)), torch.tensor(widths))


class Codec(nn.Module):
    def __init__(self, layout, model):
        super().__init__()
        self.hop, self.rows = model["hop"], model["rows"]
        self.register_buffer("band", gain_bands(model))
        membership = F.one_hot(self.band).float()
        self.register_buffer("mean", membership / membership.sum(0))  # [hop, bands]
        coefficients = self.hop + membership.shape[1]
        self.register_buffer("basis", mdct_basis(self.hop))
        self.register_buffer("scale", 1 / (0.05 + torch.rand(self.hop)))
        width = self.rows * coefficients  # a frame's rows side by side
        self.encoder = Stack(layout, model, width, model["latent"], model["encoder"])
        self.decoder = Stack(layout, model, model["latent"], width, model["decoder"])

    def encode(self, pcm, autocast):
        with torch.no_grad():
            windows = F.pad(pcm, (self.hop, 0)).unfold(1, 2 * self.hop, self.hop)  # [B, rows, window]
            x = windows @ self.basis.t() * self.scale
            gain = torch.sqrt(x.square() @ self.mean + GAIN_FLOOR)
            x = torch.cat([x / gain[..., self.band], gain.log()], -1).unflatten(1, (-1, self.rows)).flatten(2)
        with autocast():
            return self.encoder(x)

    def decode(self, latents, autocast):
        with autocast():
            x = self.decoder(latents)
        x = x.float().unflatten(2, (self.rows, -1)).flatten(1, 2)
        shape, gain = x[..., : self.hop], x[..., self.hop :].clamp(-GAIN_LIMIT, GAIN_LIMIT).exp()
        x = shape * (gain / torch.sqrt(shape.square() @ self.mean + SHAPE_FLOOR))[..., self.band]
        x = x / self.scale @ self.basis
        return (x[..., : self.hop] + F.pad(x[:, :-1, self.hop :], (0, 0, 1, 0))).flatten(1)


class ResidualVq:
    """Codebooks that follow what chose them; the gradient goes straight through."""

    def __init__(self, model, options):
        self.options, self.levels, self.size = options, model["codebooks"], model["codebook_size"]
        self.books = torch.zeros(self.levels, self.size, model["latent"])
        self.used = 0

    def start(self, rows):
        """From rows drawn at random, level by level: speed needs no k-means."""
        for book in self.books:
            book.copy_(rows[torch.randint(len(rows), (self.size,))])
            book.add_(torch.randn_like(book), alpha=0.1 * float(rows.std()))
            rows = rows - book[self.nearest(book, rows)]
        self.sums, self.sizes = self.books.clone(), torch.ones(self.levels, self.size)

    def nearest(self, book, rows):
        return torch.addmm(book.square().sum(1), rows, book.t(), beta=-0.5).argmax(1)

    def active(self, batch):
        """Codebooks per clip, most first: clips are random already, and a level's rows lie together then."""
        choices = torch.tensor(self.options["choices"] or range(1, self.levels + 1))
        counts = choices[torch.randint(len(choices), (batch,))]
        counts[torch.rand(batch) < self.options["keep_all"]] = self.levels
        return counts.sort(descending=True).values.tolist()

    def __call__(self, z):
        """z [B, T, D] -> what the decoder gets, and the commitment loss."""
        active, length = self.active(len(z)), z.shape[1]
        with torch.no_grad():
            left = rows = z.flatten(0, 1)
            total, pull, error = torch.zeros_like(rows), torch.zeros_like(rows), 0
            seen, chosen, self.candidates = [], [], []
            for level in range(max(active)):
                count = sum(n > level for n in active) * length
                left = left[:count]
                index = self.nearest(self.books[level], left)
                seen.append(left)
                chosen.append(index + level * self.size)
                self.candidates.append(left[torch.randint(count, (CANDIDATES,))])
                words = self.books[level][index]
                left = left - words
                total[:count] += words
                pull[:count] += left
                error += left.square().sum()
            self.used = len(seen)
            seen, chosen = torch.cat(seen), torch.cat(chosen)
            self.counts = torch.bincount(chosen, minlength=self.used * self.size).view(self.used, -1).float()
            self.batch_sums = torch.zeros(self.used * self.size, rows.shape[1]).index_add_(0, chosen, seen)
            scale = 1 / (seen.numel() * rows.square().mean().clamp_min(1e-12))
            pull = (pull * (2 * scale)).view_as(z)
        commitment = error * scale + (pull * (z - z.detach())).sum()
        return z + (total.view_as(z) - z).detach(), commitment

    @torch.no_grad()
    def update(self):
        books, sums, sizes = self.books[: self.used], self.sums[: self.used], self.sizes[: self.used]
        take = 1 - self.options["decay"]
        sizes.lerp_(self.counts, take)
        sums.lerp_(self.batch_sums.view_as(sums), take)
        whole, epsilon = sizes.sum(1, keepdim=True), 1e-5
        smoothed = (sizes + epsilon) * (whole / (whole + self.size * epsilon))
        torch.div(sums, smoothed[..., None], out=books)
        share = whole / self.size
        level, word = torch.nonzero(sizes < self.options["dead_below"] * share, as_tuple=True)
        if len(level):
            rows = torch.stack(self.candidates)[level, torch.randint(CANDIDATES, (len(level),))]
            books[level, word], sizes[level, word] = rows, share[level, 0]
            sums[level, word] = rows * share[level]


# ---- A step of training.


def adamw(module, options):
    """Biases do not decay."""
    weights = {"params": [p for p in module.parameters() if p.dim() > 1]}
    biases = {"params": [p for p in module.parameters() if p.dim() <= 1], "weight_decay": 0.0}
    rest = {"betas": tuple(options["betas"]), "eps": options["epsilon"]}
    rest["weight_decay"] = options["weight_decay"]
    return torch.optim.AdamW([weights, biases], lr=options["learning_rate"], fused=True, **rest)


def apply_gradients(module, optimizer, options):
    if options["clip"] > 0:
        nn.utils.clip_grad_norm_(module.parameters(), options["clip"], foreach=True)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def sound(clips, samples):
    """Noise over a gliding tone that swells."""
    t = torch.arange(clips * samples, dtype=torch.float64)
    tone = torch.sin(0.03 * t + 1e-7 * t * t) * (0.3 + 0.2 * torch.sin(t / 3000))
    return (tone.float() + 0.02 * torch.randn(len(t))).view(clips, samples)


class Training:
    def __init__(self, config, precision, mode, layout, adversarial):
        torch.manual_seed(1)
        self.config, self.sound_loss, self.codec = config, SoundLoss(config), Codec(layout, config["model"])
        self.quantizer = ResidualVq(config["model"], config["quantizer"])
        self.values = [p.detach() for p in self.codec.parameters()]
        self.average = [value.clone() for value in self.values]
        self.optimizer = adamw(self.codec, config["optimizer"])
        self.jury = Jury(config) if adversarial else None
        self.jury_optimizer = adamw(self.jury, config["discriminator_optimizer"]) if adversarial else None

        def autocast():
            return torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")

        def prepared(function):
            def call(x):
                return function(x, autocast)

            return torch.compile(call, dynamic=False) if mode == "compiled" else call

        self.encode, self.decode = prepared(self.codec.encode), prepared(self.codec.decode)
        self.judge = prepared(self.jury) if adversarial else None
        if mode == "compiled":
            self.sound_loss = torch.compile(self.sound_loss, dynamic=False)
        frame = config["model"]["hop"] * config["model"]["rows"]
        length = round(config["data"]["seconds"] * config["model"]["sample_rate_hz"] / frame) * frame
        self.pcm = sound(config["data"]["batch"], length)
        with torch.no_grad():
            self.quantizer.start(self.codec.encode(self.pcm, autocast).float().flatten(0, 1))

    def step(self):
        """Seconds by phase, and the loss of the sound."""
        laps, skip = [time.perf_counter()], self.config["model"]["hop"]
        quantized, commitment = self.quantizer(self.encode(self.pcm).float())
        output, target = self.decode(quantized)[:, skip:], self.pcm[:, :-skip]
        laps.append(time.perf_counter())
        heard = output.detach().requires_grad_()
        loss = self.sound_loss(heard, target)
        if self.jury:
            seen = round(self.config["discriminators"]["seconds"] * self.config["model"]["sample_rate_hz"])
            begin = random.randrange(max(heard.shape[1] - seen, 0) + 1)
            part = slice(begin, begin + seen) if seen else slice(None)
            self.jury.requires_grad_(False)
            loss = loss + self.jury.generator_loss(self.judge, heard[:, part], target[:, part])
            self.jury.requires_grad_(True)
        loss.backward()
        laps.append(time.perf_counter())
        beside = self.config["losses"]["commitment"] * commitment
        torch.autograd.backward([output, beside], [heard.grad, None])
        laps.append(time.perf_counter())
        apply_gradients(self.codec, self.optimizer, self.config["optimizer"])
        self.quantizer.update()
        torch._foreach_lerp_(self.average, self.values, 1 - self.config["optimizer"]["ema"])
        laps.append(time.perf_counter())
        if self.jury:
            self.jury.discriminator_loss(self.judge, output.detach()[:, part], target[:, part]).backward()
            apply_gradients(self.jury, self.jury_optimizer, self.config["discriminator_optimizer"])
        laps.append(time.perf_counter())
        forward, losses, backward, optimizer, discriminators = (b - a for a, b in zip(laps, laps[1:]))
        return (forward, losses, backward, discriminators, optimizer), float(loss.detach())


def serve(settings):
    """Trains as standard input asks; whatever PyTorch prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    settings = json.loads(settings)
    torch.set_num_threads(settings.pop("threads"))
    torch.set_num_interop_threads(1)
    training = Training(**settings)
    for line in sys.stdin:
        steps = [training.step() for _ in range(int(line))]
        answer = {"seconds": [step[0] for step in steps], "losses": [step[1] for step in steps]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
