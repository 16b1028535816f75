"""Losses and discriminators of the PyTorch side of train_peer.py, as train/losses and train/discriminators have them."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def normalized_error(output, target, emphasis=0.0):
    floor = target.shape[1] * 1e-6
    difference = output - target
    if emphasis:
        difference, target = (x - emphasis * F.pad(x[:, :-1], (1, 0)) for x in (difference, target))
    return (difference.square().sum(1) / (target.square().sum(1) + floor)).mean()


def mel_filters(rate_hz, window):
    """[bins, mels]: Slaney's triangles, 5 for every 32 samples of the window or what the bins allow."""
    step = 27 / math.log(6.4)

    def mels(hz):
        return hz * 3 / 200 if hz < 1000 else 15 + math.log(hz / 1000) * step

    def hz(mel):
        return torch.where(mel < 15, mel * 200 / 3, 1000 * torch.exp((mel - 15) / step))

    most = int(2 * mels(rate_hz / 2) / mels(rate_hz / window) - 1.01)
    count = max(1, min(window * 5 // 32, most))
    feet = hz(torch.arange(count + 2, dtype=torch.float64) * (mels(rate_hz / 2) / (count + 1)))
    left, top, right = feet[:-2], feet[1:-1], feet[2:]
    bins = torch.arange(window // 2 + 1, dtype=torch.float64)[:, None] * rate_hz / window
    triangles = torch.minimum((bins - left) / (top - left), (right - bins) / (right - top)).clamp_min(0)
    return (triangles * 2 / (right - left)).float()


def stft(x, window):
    """[B, frames, bins], complex: its order in memory."""
    return torch.stft(x, len(window), len(window) // 4, window=window, return_complex=True).transpose(1, 2)


class SoundLoss:
    def __init__(self, config):
        self.weights, rate_hz = config["losses"], config["model"]["sample_rate_hz"]
        windows = self.weights["mel_windows"]
        self.scales = [(torch.hann_window(window), mel_filters(rate_hz, window)) for window in windows]

    def log_mels(self, x):
        return [(stft(x, window).abs() @ mels).clamp_min(1e-4).log10() for window, mels in self.scales]

    def __call__(self, output, target):
        loss = 0
        for key, emphasis in (("normalized_error", 0.0), ("pre_emphasized", 0.97)):
            if self.weights[key] > 0:
                loss = loss + self.weights[key] * normalized_error(output, target, emphasis)
        if self.weights["log_mel"] > 0:
            with torch.no_grad():
                wanted = self.log_mels(target)
            terms = [F.l1_loss(a, b) for a, b in zip(self.log_mels(output), wanted)]
            loss = loss + self.weights["log_mel"] * sum(terms) / len(terms)
        return loss


class StftDiscriminator(nn.Module):
    def __init__(self, window, channels, compressed):
        super().__init__()
        self.compressed = compressed
        hann = torch.hann_window(window)
        self.register_buffer("window", hann / hann.square().sum().sqrt())
        layers = [nn.Conv2d(2, channels, (3, 9), padding=(1, 4))]
        for dilation in (1, 2, 4):
            shape = {"stride": (1, 2), "dilation": (dilation, 1), "padding": (dilation, 4)}
            layers.append(nn.Conv2d(channels, channels, (3, 9), **shape))
        layers.append(nn.Conv2d(channels, channels, 3, padding=1))
        self.layers, self.last = nn.ModuleList(layers), nn.Conv2d(channels, 1, 3, padding=1)
        self.to(memory_format=torch.channels_last)

    def forward(self, x, autocast):
        y = torch.view_as_real(stft(x, self.window))  # [B, frames, bins, 2]
        if self.compressed:
            y = y * (y.square().sum(-1, keepdim=True) + 1e-7) ** -0.375
        y = y.permute(0, 3, 1, 2)
        features = []
        with autocast():
            for layer in self.layers:
                y = F.leaky_relu(layer(y), 0.2)
                features.append(y)
            return self.last(y).float(), features


class Jury(nn.Module):
    def __init__(self, config):
        super().__init__()
        options = config["discriminators"]
        width, compressed = options["channels"], options["compressed"]
        members = [StftDiscriminator(window, width, compressed) for window in options["stft"]]
        self.members, self.weights = nn.ModuleList(members), config["losses"]

    def forward(self, x, autocast):
        return [member(x, autocast) for member in self.members]

    def generator_loss(self, judge, output, target):
        with torch.no_grad():
            real = judge(target)
        fool, match = 0, 0
        for (_, wanted), (scores, features) in zip(real, judge(output)):
            fool = fool + F.relu(1 - scores).mean()
            for a, b in zip(features, wanted):
                scale = b.abs().mean(dtype=torch.float32).clamp_min(1e-3)
                match = match + (a - b).abs().mean(dtype=torch.float32) / scale / len(wanted)
        loss = self.weights["adversarial"] * fool + self.weights["feature_matching"] * match
        return loss / len(self.members)

    def discriminator_loss(self, judge, output, target):
        loss = 0
        for scores, _ in judge(torch.cat([target, output])):
            real, fake = scores.chunk(2)
            loss = loss + F.relu(1 - real).mean() + F.relu(1 + fake).mean()
        return loss / len(self.members)
