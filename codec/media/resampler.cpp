// Two choices make this exact. Samples become 32-bit integers with 27 bits below the point, so that
// libswresample runs its integer filter. And a lead of silence goes in first, a whole number of rate periods
// and longer than the filter: the start of the sound then meets a filter full of zeros instead of
// libswresample's mirrored edge, and its output is dropped by an exact count.
#include "codec/media/resampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "core/error.h"

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/opt.h>
#include <libswresample/swresample.h>
}

namespace tessera {
namespace {

constexpr int kTaps = 128;        // at the lower of the two rates
constexpr int kKaiserBeta = 10;   // stopband 100 dB: the shape (A - 8.7) * 0.1102 rounded
constexpr double kCutoff = 0.95;  // the middle of the transition band, which 128 taps make 0.1 wide
// Ratios of more phases (44101 -> 44100) take the nearest of 2^14: an error of -86 dB at the very top, -116
// at 1 kHz.
constexpr int kMaxPhaseBits = 14;
constexpr size_t kBlockFrames = 4096;
constexpr float kOne = 1 << 27;       // leaves headroom of 16 below the limit of int32
constexpr float kLimit = 2147483520;  // the largest float below 2^31

struct SwrDeleter {
  void operator()(SwrContext* p) const { swr_free(&p); }
};
using SwrPtr = std::unique_ptr<SwrContext, SwrDeleter>;

Error av_failure(int code) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
  av_strerror(code, text.data(), text.size());
  return Error{ErrorCode::unsupported, std::string("resampling failed: libswresample says ") + text.data()};
}

SwrPtr make_swr(int rate_in_hz, int rate_out_hz, int channels, int& code) {
  AVChannelLayout layout{};
  av_channel_layout_default(&layout, channels);
  SwrContext* raw = nullptr;
  code = swr_alloc_set_opts2(&raw, &layout, AV_SAMPLE_FMT_S32, rate_out_hz, &layout, AV_SAMPLE_FMT_S32,
                             rate_in_hz, 0, nullptr);
  av_channel_layout_uninit(&layout);
  SwrPtr swr(raw);
  if (code < 0) return nullptr;
  const int phases = rate_out_hz / std::gcd(rate_in_hz, rate_out_hz);
  int phase_bits = 0;
  while (phase_bits < kMaxPhaseBits && (1 << phase_bits) < phases) ++phase_bits;
  av_opt_set_int(raw, "filter_size", kTaps, 0);
  av_opt_set_int(raw, "kaiser_beta", kKaiserBeta, 0);
  av_opt_set(raw, "filter_type", "kaiser", 0);
  av_opt_set_double(raw, "cutoff", kCutoff, 0);
  av_opt_set_int(raw, "phase_shift", phase_bits, 0);
  av_opt_set_int(raw, "exact_rational", 1, 0);
  av_opt_set_int(raw, "linear_interp", 0, 0);
  av_opt_set_sample_fmt(raw, "internal_sample_fmt", AV_SAMPLE_FMT_S32P, 0);
  code = swr_init(raw);
  return code < 0 ? nullptr : std::move(swr);
}

}  // namespace

struct Resampler::State {
  SwrPtr swr;  // null when the rates are equal
  int rate_in_hz, rate_out_hz, channels;
  int64_t skip = 0;   // output frames of the lead still to drop
  int64_t taken = 0;  // input frames so far
  int64_t given = 0;  // output frames so far
  int64_t clipped = 0;
  bool over = false;
  std::vector<int32_t> in, out;

  // Converts the first `frames` of `in` and appends at most `most` output frames.
  Result<void> convert(size_t frames, int64_t most, std::vector<float>& result) {
    const int capacity = swr_get_out_samples(swr.get(), static_cast<int>(frames));
    if (capacity < 0) return av_failure(capacity);
    out.resize(static_cast<size_t>(capacity) * channels);
    auto* to = reinterpret_cast<uint8_t*>(out.data());
    const auto* from = reinterpret_cast<const uint8_t*>(in.data());
    const int made = swr_convert(swr.get(), &to, capacity, &from, static_cast<int>(frames));
    if (made < 0) return av_failure(made);
    const int64_t dropped = std::min<int64_t>(skip, made);
    skip -= dropped;
    const int64_t kept = std::min<int64_t>(made - dropped, most);
    for (int64_t i = dropped * channels; i < (dropped + kept) * channels; ++i) {
      result.push_back(static_cast<float>(out[static_cast<size_t>(i)]) / kOne);
    }
    given += kept;
    return {};
  }

  Result<void> silence(size_t frames, int64_t most, std::vector<float>& result) {
    in.assign(std::min(frames, kBlockFrames) * channels, 0);
    for (size_t done = 0; done < frames; done += kBlockFrames) {
      if (auto r = convert(std::min(kBlockFrames, frames - done), most, result); !r) return r;
    }
    return {};
  }

  int32_t to_int(float x) {
    const float scaled = x * kOne;
    if (std::abs(scaled) <= kLimit) return static_cast<int32_t>(std::lrintf(scaled));
    ++clipped;
    if (std::isnan(x)) return 0;
    return static_cast<int32_t>(x > 0 ? kLimit : -kLimit);
  }
};

int64_t Resampler::output_frames(int64_t frames, int rate_in_hz, int rate_out_hz) {
  // Whole seconds first: frames * rate would overflow for counts that a hostile header may claim.
  const int64_t seconds = frames / rate_in_hz;
  const int64_t rest = frames % rate_in_hz * rate_out_hz;
  if (seconds > std::numeric_limits<int64_t>::max() / rate_out_hz - 1)
    return std::numeric_limits<int64_t>::max();
  return seconds * rate_out_hz + (rest + rate_in_hz - 1) / rate_in_hz;
}

Result<Resampler> Resampler::create(int rate_in_hz, int rate_out_hz, int channels) {
  for (const int rate : {rate_in_hz, rate_out_hz}) {
    if (rate < 1000 || rate > 768000) {
      return Error{ErrorCode::usage,
                   "resampling takes rates from 1000 to 768000 Hz, got " + std::to_string(rate) + " Hz"};
    }
  }
  if (channels < 1 || channels > 64) {
    return Error{ErrorCode::usage, "resampling takes 1 to 64 channels, got " + std::to_string(channels)};
  }
  auto state = std::make_unique<State>();
  state->rate_in_hz = rate_in_hz;
  state->rate_out_hz = rate_out_hz;
  state->channels = channels;
  if (rate_in_hz != rate_out_hz) {
    int code = 0;
    state->swr = make_swr(rate_in_hz, rate_out_hz, channels, code);
    if (!state->swr) return av_failure(code);
    const int period = std::gcd(rate_in_hz, rate_out_hz);
    const int64_t block_in = rate_in_hz / period;
    const int64_t filter = 2 * kTaps * std::max<int64_t>(1, rate_in_hz / rate_out_hz + 1);
    const int64_t blocks = (filter + block_in - 1) / block_in;
    state->skip = blocks * (rate_out_hz / period);
    std::vector<float> none;
    if (auto r = state->silence(static_cast<size_t>(blocks * block_in), 0, none); !r) return r.error();
  }
  return Resampler(std::move(state));
}

Result<void> Resampler::push(std::span<const float> interleaved, std::vector<float>& out) {
  State& s = *state_;
  const size_t channels = static_cast<size_t>(s.channels);
  if (s.over) fail("resampler", "no push after flush", "one");
  if (interleaved.size() % channels != 0) {
    fail("resampler", "whole frames of " + std::to_string(channels) + " samples",
         std::to_string(interleaved.size()) + " samples");
  }
  s.taken += static_cast<int64_t>(interleaved.size() / channels);
  if (!s.swr) {
    out.insert(out.end(), interleaved.begin(), interleaved.end());
    return {};
  }
  while (!interleaved.empty()) {
    const auto block = interleaved.first(std::min(interleaved.size(), kBlockFrames * channels));
    interleaved = interleaved.subspan(block.size());
    s.in.resize(block.size());
    std::transform(block.begin(), block.end(), s.in.begin(), [&s](float x) { return s.to_int(x); });
    const int64_t all = std::numeric_limits<int64_t>::max();
    if (auto r = s.convert(block.size() / channels, all, out); !r) return r;
  }
  return {};
}

Result<void> Resampler::flush(std::vector<float>& out) {
  State& s = *state_;
  s.over = true;
  if (!s.swr) return {};
  const int64_t total = output_frames(s.taken, s.rate_in_hz, s.rate_out_hz);
  while (s.given < total) {
    if (auto r = s.silence(kBlockFrames, total - s.given, out); !r) return r;
  }
  return {};
}

int64_t Resampler::clipped() const {
  return state_->clipped;
}

Resampler::Resampler(std::unique_ptr<State> state) : state_(std::move(state)) {}
Resampler::Resampler(Resampler&&) noexcept = default;
Resampler& Resampler::operator=(Resampler&&) noexcept = default;
Resampler::~Resampler() = default;

}  // namespace tessera
