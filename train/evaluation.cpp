#include "train/evaluation.h"

#include <algorithm>
#include <filesystem>

#include "codec/codec.h"
#include "codec/media.h"
#include "core/autograd/tape.h"
#include "quantizers/codebook_learning.h"
#include "train/config_options.h"
#include "train/losses/spectral_loss.h"
#include "train/losses/waveform_loss.h"
#include "train/png.h"
#include "train/spectrogram_image.h"

namespace tessera::train {
namespace {

using Floats = std::vector<float>;
using Tokens = std::vector<std::vector<std::int32_t>>;  // [frame][codebook]

Tokens encode(const Codec& codec, std::span<const float> pcm) {
  Tokens tokens;
  const auto keep = [&](const Frame& frame) {
    tokens.emplace_back(frame.tokens.begin(), frame.tokens.end());
  };
  auto encoder = codec.encoder({});
  encoder.push(pcm, keep);
  encoder.flush(keep);
  return tokens;
}

// As many samples as went in.
Floats decode(const Codec& codec, const Tokens& tokens, int codebooks, std::size_t samples) {
  Floats pcm;
  const auto keep = [&](std::span<const float> part) { pcm.insert(pcm.end(), part.begin(), part.end()); };
  auto decoder = codec.decoder({.codebooks = codebooks});
  for (const auto& frame : tokens) {
    decoder.push(std::span(frame).first(static_cast<std::size_t>(codebooks)), keep).value();
  }
  decoder.flush(keep);
  pcm.resize(samples);
  return pcm;
}

Result<void> write_sound(const std::string& path, std::span<const float> pcm, int rate) {
  WriteOptions options;
  options.sample_rate_hz = rate;
  options.channels = 1;
  auto writer = AudioWriter::create(path, options);
  if (!writer) return writer.error();
  if (auto ok = writer->write(pcm); !ok) return ok.error();
  return writer->finish();
}

Tensor clip_tensor(const Floats& pcm) {
  Tensor tensor = Tensor::zeros({1, static_cast<std::int64_t>(pcm.size())});
  std::copy(pcm.begin(), pcm.end(), tensor.f32());
  return tensor;
}

// Clips, each at least a long window of the loss.
std::vector<std::pair<std::string, Floats>> clips_of(const Dataset& dataset, int clips_wanted, double seconds,
                                                     std::size_t least) {
  const std::int64_t all = static_cast<std::int64_t>(dataset.recordings().size());
  const std::int64_t count = std::min<std::int64_t>(clips_wanted, all);
  const auto most = static_cast<std::int64_t>(seconds * dataset.sample_rate_hz());
  std::vector<std::pair<std::string, Floats>> clips;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = i * all / count;
    const Recording& recording = dataset.recordings()[static_cast<std::size_t>(index)];
    Floats pcm(static_cast<std::size_t>(std::min(recording.samples, most)));
    dataset.read(index, 0, pcm);
    if (pcm.size() < least) pcm.resize(least);
    clips.emplace_back(recording.relative, std::move(pcm));
  }
  return clips;
}

// Counts of the tokens of all codebooks.
std::vector<CodebookUsage> usage_of(const CodecInfo& info, const std::vector<Tokens>& coded) {
  std::vector<CodebookUsage> usage;
  for (std::size_t i = 0; i < info.codebook_sizes.size(); ++i) {
    std::vector<float> counts(static_cast<std::size_t>(info.codebook_sizes[i]));
    for (const Tokens& tokens : coded) {
      for (const auto& frame : tokens) ++counts[static_cast<std::size_t>(frame[i])];
    }
    usage.emplace_back(info.codebook_sizes[i]);
    usage.back().add(counts);
  }
  return usage;
}

// "LibriSpeech/a/b.flac" as the name of a file.
std::string file_name(std::string name) {
  std::ranges::replace(name, '/', '_');
  return name.substr(0, name.find_last_of('.'));
}

}  // namespace

std::vector<int> evaluated_prefixes(int codebooks) {
  std::vector<int> prefixes;
  for (int n = 1; n < codebooks; n *= 2) prefixes.push_back(n);
  prefixes.push_back(codebooks);
  return prefixes;
}

std::vector<std::string> evaluation_columns(int codebooks) {
  std::vector<std::string> columns;
  for (const int n : evaluated_prefixes(codebooks)) {
    columns.push_back("heldout_error_" + std::to_string(n));
    columns.push_back("heldout_log_mel_" + std::to_string(n));
  }
  columns.emplace_back("heldout_perplexity");
  columns.emplace_back("heldout_perplexity_mean");
  return columns;
}

Result<Evaluation> evaluate(const std::string& model, const Dataset& dataset, std::int64_t step,
                            const EvaluationOptions& options, ThreadPool& pool) {
  const auto codec = Codec::load(model);
  if (!codec) return codec.error();
  const CodecInfo& info = (*codec)->info();
  Tape tape(pool);
  LogMelLossOptions loss_options;
  loss_options.sample_rate_hz = info.sample_rate_hz;
  const LogMelLoss log_mel(codec_log_mel(loss_options));
  const auto clips = clips_of(dataset, options.clips, options.seconds, 2048);
  std::vector<Tokens> coded, coded_for_usage;
  for (const auto& clip : clips) coded.push_back(encode(**codec, clip.second));
  for (const auto& clip : clips_of(dataset, options.coded_clips, options.seconds, 2048)) {
    coded_for_usage.push_back(encode(**codec, clip.second));
  }

  Evaluation result;
  const std::string folder = options.folder + "/examples";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return Error{ErrorCode::io, "cannot make " + folder + ": " + failed.message()};
  const int all = static_cast<int>(info.codebook_sizes.size());
  for (const int n : evaluated_prefixes(all)) {
    double error = 0, mel = 0;
    for (std::size_t i = 0; i < clips.size(); ++i) {
      const auto& [name, pcm] = clips[i];
      const Floats decoded = decode(**codec, coded[i], n, pcm.size());
      error += *normalized_error(tape, clip_tensor(decoded), clip_tensor(pcm)).f32();
      mel += *log_mel(tape, clip_tensor(decoded), clip_tensor(pcm)).f32();
      if (n != all || static_cast<int>(i) >= options.examples) continue;
      ReportExample example;
      example.name = name;
      example.caption = "step " + std::to_string(step) + ", " + std::to_string(n) + " codebooks";
      const std::string stem = "examples/" + file_name(name);
      example.input = stem + ".input.wav";
      example.decoded = stem + ".decoded.wav";
      example.spectrogram = stem + ".png";
      if (auto ok = write_sound(options.folder + "/" + example.input, pcm, info.sample_rate_hz); !ok)
        return ok.error();
      if (auto ok = write_sound(options.folder + "/" + example.decoded, decoded, info.sample_rate_hz); !ok) {
        return ok.error();
      }
      if (auto ok =
              write_png(options.folder + "/" + example.spectrogram, spectrogram_pair(pcm, decoded, pool));
          !ok) {
        return ok.error();
      }
      result.examples.push_back(std::move(example));
    }
    const double count = static_cast<double>(clips.size());
    result.metrics.emplace_back("heldout_error_" + std::to_string(n), error / count);
    result.metrics.emplace_back("heldout_log_mel_" + std::to_string(n), mel / count);
  }
  double least = 0, sum = 0;
  for (const CodebookUsage& usage : usage_of(info, coded_for_usage)) {
    const double perplexity = usage.perplexity();
    least = sum == 0 ? perplexity : std::min(least, perplexity);
    sum += perplexity;
  }
  result.metrics.emplace_back("heldout_perplexity", least);
  result.metrics.emplace_back("heldout_perplexity_mean", sum / all);
  return result;
}

}  // namespace tessera::train
