// bench_phone_probe: how much of what is said is in the tokens of a codec's first codebook, and how evenly
// its codebooks are used. Probes (train/probe.h) learn phones from the recordings of --train and are scored
// on those of --test: from the token of a frame, from its codeword, and from the codewords of 80 ms, the rate
// of the teachers that codecs are distilled from. Leaves out later codebooks and what a deeper reader finds.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codec/codec.h"
#include "codec/media.h"
#include "core/cpu.h"
#include "core/thread_pool.h"
#include "metrics/phone_alignment.h"
#include "quantizers/codebook_learning.h"
#include "train/data/sources.h"
#include "train/model_file.h"
#include "train/probe.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using metrics::PhoneAlignments;
using Labels = std::vector<std::int32_t>;

constexpr double kPooledRateHz = 12.5;

struct Options {
  std::string model, align;
  std::vector<std::string> train, test;
  int threads = 0, limit = 0;
  bool json = false;
};

struct Coded {
  std::string path;
  int codebooks = 1;
  std::vector<std::int32_t> tokens;  // [frames, codebooks]

  std::int64_t frames() const { return static_cast<std::int64_t>(tokens.size()) / codebooks; }
  std::int32_t first(std::int64_t frame) const { return tokens[static_cast<std::size_t>(frame * codebooks)]; }
};

PhoneAlignments read_alignments(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return PhoneAlignments::read(std::span(&path, 1)).value();
  std::vector<std::string> files;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".tsv") files.push_back(entry->path().string());
  }
  if (error) throw ResultError({ErrorCode::io, path + ": cannot list the folder: " + error.message()});
  if (files.empty()) throw ResultError({ErrorCode::usage, path + ": expected *.tsv in the folder, got none"});
  std::ranges::sort(files);
  return PhoneAlignments::read(files).value();
}

std::vector<std::string> recordings_of(const std::vector<std::string>& sources) {
  train::SourceOptions options;
  options.sources = sources;
  std::vector<std::string> paths;
  for (const train::SourceFile& file : train::find_sources(options).value().files) paths.push_back(file.path);
  return paths;
}

std::vector<std::string> spread(const std::vector<std::string>& paths, int limit) {
  const auto most = static_cast<std::size_t>(limit);
  if (limit == 0 || paths.size() <= most) return paths;
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < most; ++i) kept.push_back(paths[i * paths.size() / most]);
  return kept;
}

// Encodes recordings, each in one thread, and says how far it is every few seconds.
class Coder {
 public:
  Coder(const Codec& codec, ThreadPool& pool) : codec_(codec), pool_(pool) {}

  std::vector<Coded> encode(const std::vector<std::string>& paths, int codebooks, const std::string& what) {
    std::vector<Coded> coded(paths.size());
    std::exception_ptr failure;
    std::size_t done = 0;
    auto last = std::chrono::steady_clock::now();
    pool_.parallel_for(static_cast<int>(paths.size()), [&](int index) {
      const auto i = static_cast<std::size_t>(index);
      try {
        if (const std::lock_guard lock(mutex_); failure) return;
        coded[i] = encode(paths[i], codebooks);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failure = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      const auto now = std::chrono::steady_clock::now();
      if (++done < paths.size() && now - last < std::chrono::seconds(5)) return;
      last = now;
      std::cerr << what << ": " << done << " of " << paths.size() << " recordings encoded\n";
    });
    if (failure) std::rethrow_exception(failure);
    return coded;
  }

  // What was done to the sound on the way -> recordings.
  const std::map<std::string, int>& notes() const { return notes_; }

 private:
  Coded encode(const std::string& path, int codebooks) {
    ReadOptions options;
    options.sample_rate_hz = codec_.info().sample_rate_hz;
    options.channels = ChannelMode::mix;
    AudioReader reader = AudioReader::open(path, options).value();
    Encoder encoder = codec_.encoder({.codebooks = codebooks, .threads = 1, .max_frames_per_step = 64});
    Coded coded;
    coded.path = path;
    coded.codebooks = codebooks;
    const auto keep = [&](const Frame& frame) {
      coded.tokens.insert(coded.tokens.end(), frame.tokens.begin(), frame.tokens.end());
    };
    std::vector<float> pcm(65536);
    while (const std::size_t got = reader.read(pcm).value()) encoder.push(std::span(pcm).first(got), keep);
    encoder.flush(keep);
    const std::lock_guard lock(mutex_);
    for (const std::string& note : reader.notes()) ++notes_[note];
    return coded;
  }

  const Codec& codec_;
  ThreadPool& pool_;
  std::mutex mutex_;
  std::map<std::string, int> notes_;
};

// Labels of groups of `group` frames; a last group may have fewer.
Labels labels_of(const std::vector<Coded>& recordings, const PhoneAlignments& alignments, double rate_hz,
                 int group) {
  Labels all;
  for (const Coded& coded : recordings) {
    const std::int64_t groups = (coded.frames() + group - 1) / group;
    const Labels labels = alignments.labels(coded.path, groups, rate_hz / group).value();
    all.insert(all.end(), labels.begin(), labels.end());
  }
  return all;
}

Labels first_tokens(const std::vector<Coded>& recordings) {
  Labels tokens;
  for (const Coded& coded : recordings) {
    for (std::int64_t i = 0; i < coded.frames(); ++i) tokens.push_back(coded.first(i));
  }
  return tokens;
}

// Codewords [S, d] of the first tokens in rows of labels_of(): [rows, d], the means of the groups, or
// [rows, group d], side by side.
Tensor codewords_of(const std::vector<Coded>& recordings, const Tensor& codebook, int group,
                    bool side_by_side) {
  const std::int64_t width = codebook.dim(1), columns = side_by_side ? group * width : width;
  std::vector<float> values;
  for (const Coded& coded : recordings) {
    for (std::int64_t begin = 0; begin < coded.frames(); begin += group) {
      const std::int64_t count = std::min<std::int64_t>(group, coded.frames() - begin);
      const std::size_t row = values.size();
      values.resize(row + static_cast<std::size_t>(columns));
      for (std::int64_t i = 0; i < count; ++i) {
        const float* codeword = codebook.f32() + coded.first(begin + i) * width;
        float* to = values.data() + row + (side_by_side ? i * width : 0);
        const float share = side_by_side ? 1.0f : 1.0f / static_cast<float>(count);
        for (std::int64_t j = 0; j < width; ++j) to[j] += share * codeword[j];
      }
    }
  }
  Tensor features = Tensor::zeros({static_cast<std::int64_t>(values.size()) / columns, columns});
  std::ranges::copy(values, features.f32());
  return features;
}

struct Reading {
  std::string from;
  double rate_hz = 0;
  std::int64_t train_rows = 0;
  train::ProbeScore score = {};
  double commonest_phone = 0;  // share of the rows without silence
};

// All recordings have an alignment.
std::vector<Reading> probe(const CodecInfo& info, const std::optional<Tensor>& codebook,
                           const std::vector<Coded>& train, const std::vector<Coded>& test,
                           const PhoneAlignments& alignments, ThreadPool& pool) {
  const double rate_hz = info.frame_rate_hz();
  std::vector<Reading> readings;
  // `answer` learns from the labels of --train and answers for --test.
  const auto read = [&](const std::string& from, int group, auto answer) {
    const Labels learnt = labels_of(train, alignments, rate_hz, group);
    const Labels labels = labels_of(test, alignments, rate_hz, group), answers = answer(learnt);
    Labels phones = labels;
    std::ranges::replace(phones, PhoneAlignments::kSilence, PhoneAlignments::kNone);
    Reading& result = readings.emplace_back();
    result.from = from;
    result.rate_hz = rate_hz / group;
    result.train_rows = std::ranges::count_if(learnt, [](std::int32_t label) { return label >= 0; });
    result.score = train::score(answers, labels, PhoneAlignments::kSilence);
    result.commonest_phone = train::score(answers, phones, PhoneAlignments::kSilence).commonest;
  };
  read("token", 1, [&](const Labels& learnt) {
    return train::TokenProbe::fit(first_tokens(train), learnt, info.codebook_sizes[0], alignments.classes())
        .predict(first_tokens(test));
  });
  if (!codebook) return readings;
  const auto read_codewords = [&](const std::string& from, int group, bool side_by_side) {
    read(from, group, [&](const Labels& learnt) {
      return train::LinearProbe::fit(codewords_of(train, *codebook, group, side_by_side), learnt,
                                     alignments.classes(), pool)
          .predict(codewords_of(test, *codebook, group, side_by_side), pool);
    });
  };
  read_codewords("codeword", 1, false);
  if (const int group = static_cast<int>(std::lround(rate_hz / kPooledRateHz)); group > 1) {
    read_codewords("mean of " + std::to_string(group) + " codewords", group, false);
    read_codewords(std::to_string(group) + " codewords side by side", group, true);
  }
  return readings;
}

std::vector<CodebookUsage> usage_of(const CodecInfo& info, const std::vector<Coded>& recordings) {
  std::vector<CodebookUsage> usage;
  for (std::size_t i = 0; i < info.codebook_sizes.size(); ++i) {
    std::vector<float> counts(static_cast<std::size_t>(info.codebook_sizes[i]));
    for (const Coded& coded : recordings) {
      for (std::size_t at = i; at < coded.tokens.size(); at += static_cast<std::size_t>(coded.codebooks)) {
        ++counts[static_cast<std::size_t>(coded.tokens[at])];
      }
    }
    usage.emplace_back(info.codebook_sizes[i]);
    usage.back().add(counts);
  }
  return usage;
}

struct Findings {
  std::size_t phones = 0, trained = 0, tested = 0, unlabelled = 0;  // recordings, but for the phones
  std::int64_t frames = 0;                                          // of all recordings of --test
  std::vector<Reading> readings = {};
  std::vector<CodebookUsage> usage = {};
};

void print_text(const CodecInfo& info, const Findings& found) {
  std::printf("codec       %s, %d codebooks, %.2f frames a second\n", info.name.c_str(), info.codebooks,
              info.frame_rate_hz());
  std::printf("phones      %zu and silence\n", found.phones);
  std::printf("learnt on   %zu recordings\nscored on   %zu recordings", found.trained, found.tested);
  if (found.unlabelled) std::printf("; %zu more have no alignment: codebook use only", found.unlabelled);
  std::printf("\n\n%-29s %8s %11s %10s %8s %10s %16s %11s\n", "codebook 1: phone read from", "a second",
              "rows learnt", "rows", "right", "commonest", "without silence", "commonest");
  for (const Reading& r : found.readings) {
    std::printf("%-29s %8.2f %11lld %10lld %6.1f %% %8.1f %% %14.1f %% %9.1f %%\n", r.from.c_str(), r.rate_hz,
                static_cast<long long>(r.train_rows), static_cast<long long>(r.score.rows),
                100 * r.score.correct, 100 * r.score.commonest, 100 * r.score.correct_without_silence,
                100 * r.commonest_phone);
  }
  std::printf("\n%8s %8s %12s %8s %12s\n", "codebook", "size", "perplexity", "unused", "tokens");
  for (std::size_t i = 0; i < found.usage.size(); ++i) {
    std::printf("%8zu %8d %12.1f %8d %12lld\n", i + 1, info.codebook_sizes[i], found.usage[i].perplexity(),
                found.usage[i].unused(), static_cast<long long>(found.frames));
  }
}

void print_json(const CodecInfo& info, const Findings& found) {
  nlohmann::ordered_json out;
  out["codec"] = info.name;
  out["frame_rate_hz"] = info.frame_rate_hz();
  out["phones"] = found.phones;
  out["train_recordings"] = found.trained;
  out["test_recordings"] = found.tested;
  out["test_recordings_without_alignment"] = found.unlabelled;
  for (const Reading& r : found.readings) {
    out["probes"].push_back({{"from", r.from},
                             {"rate_hz", r.rate_hz},
                             {"train_rows", r.train_rows},
                             {"rows", r.score.rows},
                             {"correct", r.score.correct},
                             {"commonest", r.score.commonest},
                             {"rows_without_silence", r.score.rows_without_silence},
                             {"correct_without_silence", r.score.correct_without_silence},
                             {"commonest_phone", r.commonest_phone}});
  }
  for (std::size_t i = 0; i < found.usage.size(); ++i) {
    out["codebooks"].push_back({{"size", info.codebook_sizes[i]},
                                {"perplexity", found.usage[i].perplexity()},
                                {"unused", found.usage[i].unused()},
                                {"tokens", found.frames}});
  }
  std::cout << out.dump(2) << '\n';
}

void run(const Options& options) {
  const PhoneAlignments alignments = read_alignments(options.align);
  const auto labelled = [&](const std::string& path) { return alignments.contains(path); };
  std::vector<std::string> train = recordings_of(options.train);
  const std::size_t left_out = std::erase_if(train, [&](const std::string& p) { return !labelled(p); });
  if (left_out) std::cerr << "--train: " << left_out << " recordings without alignment left out\n";
  train = spread(train, options.limit);
  const std::vector<std::string> test = spread(recordings_of(options.test), options.limit);
  Findings found;
  found.phones = alignments.phones().size() - 1;
  found.trained = train.size();
  found.tested = static_cast<std::size_t>(std::ranges::count_if(test, labelled));
  found.unlabelled = test.size() - found.tested;
  for (const auto& [count, option] : {std::pair(found.trained, "--train"), {found.tested, "--test"}}) {
    if (count) continue;
    throw ResultError(
        {ErrorCode::mismatch,
         std::string(option) + ": expected recordings with an alignment in " + options.align + ", got none"});
  }
  const auto name = [](const std::string& path) { return fs::path(path).stem().string(); };
  std::set<std::string> learnt;
  std::ranges::transform(train, std::inserter(learnt, learnt.end()), name);
  for (const std::string& path : test) {
    if (!labelled(path) || !learnt.contains(name(path))) continue;
    throw ResultError({ErrorCode::usage, path + ": expected a recording that is not in --train, too"});
  }

  const auto codec = Codec::load(options.model, {.decoder = false}).value();
  const CodecInfo& info = codec->info();
  std::optional<Tensor> codebook;
  if (info.family == "tessera") {
    codebook = train::read_model_file(options.model).value().codebooks.at(0).second;
  } else {
    std::cerr << "a codec of the family " << info.family << ": tokens are read, its codewords are not\n";
  }
  ThreadPool pool(options.threads);
  Coder coder(*codec, pool);
  const std::vector<Coded> train_coded = coder.encode(train, 1, "--train");
  std::vector<Coded> test_coded = coder.encode(test, info.codebooks, "--test");
  for (const auto& [note, count] : coder.notes()) std::cerr << note << " (" << count << " recordings)\n";
  for (const Coded& coded : test_coded) found.frames += coded.frames();
  found.usage = usage_of(info, test_coded);
  std::erase_if(test_coded, [&](const Coded& coded) { return !labelled(coded.path); });
  found.readings = probe(info, codebook, train_coded, test_coded, alignments, pool);
  options.json ? print_json(info, found) : print_text(info, found);
}

int run_program(int argc, char** argv) {
  Options options;
  CLI::App app("How much of what is said is in a codec's first tokens, and how evenly its codebooks are used",
               "bench_phone_probe");
  app.add_option("MODEL", options.model, "Weights file of the codec")->type_name("FILE")->required();
  const auto add_sources = [&](const std::string& name, auto& value, const std::string& help) {
    app.add_option(name, value, help)->type_name("DIR")->required();
  };
  add_sources("--align", options.align, "Folder of alignments, *.tsv, or one of them (docs/teachers.md)");
  add_sources("--train", options.train, "Recordings to learn from: folders, lists or files");
  add_sources("--test", options.test,
              "The same to score on, of other speakers; without alignment: codebook use only");
  const auto add_count = [&](const std::string& name, int& value, int least, int most,
                             const std::string& help) {
    app.add_option(name, value, help)->type_name("N")->check(CLI::Range(least, most).description(""));
  };
  add_count("--limit", options.limit, 1, 1 << 30,
            "Only N recordings of --train and of --test, evenly from all");
  add_count("--threads", options.threads, 0, 1024,
            "Recordings at a time (0, the default: as many as cores). Any number gives the same scores");
  app.add_flag("--json", options.json, "Print JSON");
  app.footer("Example: bench_phone_probe model.safetensors --align align --train train --test test");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    set_cpu_target_from_environment().value();
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "bench_phone_probe: " << error.what() << '\n';
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape)
  return tessera::run_program(argc, argv);
}
