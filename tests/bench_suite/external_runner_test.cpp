// Codecs that are programs: what is put into the lines, what comes back, and every way to fail.
#include "apps/bench/external_runner.h"

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "apps/bench/ffmpeg_runner.h"
#include "apps/bench/process.h"
#include "apps/bench/sound_files.h"
#include "metrics/alignment.h"
#include "tests/bench_suite/runner_support.h"

namespace tessera::bench {
namespace {

ExternalOptions copying() {
  ExternalOptions options;
  options.name = "copy";
  options.encode = "cp {input} {output}";
  options.decode = "cp {input} {output}";
  return options;
}

std::string run_error(const ExternalOptions& options) {
  const auto made = make_external_runner(options);
  const FileRunner& runner = file_runner(made);
  const auto ran = runner.run(runner.points()[0], speech_like(0.1, 16000), 16000, {});
  return ran ? "" : ran.error().message;
}

std::string make_error(const ExternalOptions& options) {
  const auto made = make_external_runner(options);
  if (made) return "";
  EXPECT_EQ(made.error().code, ErrorCode::usage);
  return made.error().message;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Dead but not reaped, as in a container whose first process does not care.
bool zombie(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string number, name, state;
  return static_cast<bool>(stat >> number >> name >> state) && state == "Z";
}

TEST(ExternalRunner, ACopyIsTheInput) {
  const auto made = make_external_runner(copying());
  const FileRunner& runner = file_runner(made);
  const auto pcm = speech_like(0.3, 16000);
  const auto sound = expect_run(runner, runner.points()[0], pcm, 16000, 0);
  EXPECT_EQ(sound.pcm, pcm);
  EXPECT_EQ(sound.file_bytes, std::ssize(wav_bytes(pcm, 16000)));
  EXPECT_EQ(sound.payload_bytes, -1);
  EXPECT_GT(sound.encode_s, 0);
}

TEST(ExternalRunner, FillsInThePoint) {
  ExternalOptions options = copying();
  options.encode = "cp {input} {output} && head -c {point} /dev/zero >> {output}";
  options.decode = "test {point} != 7 && cp {input} {output}";
  options.points = {"5", "1000"};
  options.coded_ending = ".bin";
  const auto made = make_external_runner(options);
  const FileRunner& runner = file_runner(made);
  const auto points = runner.points();
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[1].nominal_kbps, 1000);
  const auto pcm = speech_like(0.1, 16000);
  const auto header_and_data = std::ssize(wav_bytes(pcm, 16000));
  EXPECT_EQ(runner.run(points[0], pcm, 16000, {}).value().file_bytes, header_and_data + 5);
  EXPECT_EQ(runner.run(points[1], pcm, 16000, {}).value().file_bytes, header_and_data + 1000);
  EXPECT_EQ(
      runner.recipe(points[0]),
      "cp IN.wav CODED.bin && head -c 5 /dev/zero >> CODED.bin; test 5 != 7 && cp CODED.bin DECODED.wav");
}

TEST(ExternalRunner, BringsOtherRatesBack) {
  const auto other = TempFolder::create().value();
  const auto low = speech_like(0.5, 8000);
  write_bytes(other.file("low.wav"), wav_bytes(low, 8000)).value();
  ExternalOptions options = copying();
  options.decode = ": {input}; cp " + other.file("low.wav") + " {output}";
  const auto made = make_external_runner(options);
  const auto sound =
      expect_run(file_runner(made), file_runner(made).points()[0], speech_like(0.5, 16000), 16000, 0);
  EXPECT_EQ(sound.pcm, resampled(low, 8000, 16000).value());
}

TEST(ExternalRunner, SaysWhatFailed) {
  ExternalOptions options = copying();
  options.encode = "echo first >&2; echo '  no such mode' >&2; echo >&2; : {input} {output}; exit 3";
  EXPECT_TRUE(has(run_error(options), "failed with exit status 3:   no such mode")) << run_error(options);
  options.encode = "kill -9 $$; : {input} {output}";
  EXPECT_TRUE(has(run_error(options), "failed with signal 9")) << run_error(options);
  options.encode = "tessera_no_such_program {input} {output}";
  EXPECT_TRUE(has(run_error(options), "exit status 127")) << run_error(options);
  EXPECT_TRUE(has(run_error(options), "copy: '")) << run_error(options);
  options.encode = ": {input} {output}";
  EXPECT_TRUE(has(run_error(options), "left no file")) << run_error(options);
  options = copying();
  options.decode = ": {input}; echo no sound > {output}";
  EXPECT_TRUE(has(run_error(options), "left no sound")) << run_error(options);
}

TEST(ExternalRunner, EndsWhatTakesTooLong) {
  const auto folder = TempFolder::create().value();
  ExternalOptions options = copying();
  options.timeout_s = 0.3;
  options.encode = "(sleep 30 & echo $! > " + folder.file("pid") + "; wait); : {input} {output}";
  EXPECT_TRUE(has(run_error(options), "did not end within 300 ms")) << run_error(options);
  const auto bytes = read_bytes(folder.file("pid")).value();
  std::string text;
  for (const std::byte b : bytes) text += static_cast<char>(b);
  const pid_t sleeper = std::atoi(text.c_str());
  ASSERT_GT(sleeper, 1);
  // Its children too; whoever inherits them may reap them a moment later.
  bool ended = false;
  for (int i = 0; i < 200 && !ended; ++i) {
    ended = kill(sleeper, 0) != 0 || zombie(sleeper);
    if (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(ended);
}

TEST(ExternalRunner, LeavesNoFilesBehind) {
  const auto count = [] {
    std::size_t folders = 0;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::temp_directory_path())) {
      folders += entry.path().filename().string().starts_with("tessera_bench_") ? 1 : 0;
    }
    return folders;
  };
  const auto outer = TempFolder::create().value();
  const char* set = std::getenv("TMPDIR");
  const std::string before = set ? set : "";
  const std::string inside = std::filesystem::path(outer.file("x")).parent_path().string();
  setenv("TMPDIR", inside.c_str(), 1);
  ExternalOptions failing = copying();
  failing.decode = "false {input} {output}";
  EXPECT_EQ(run_error(copying()), "");
  EXPECT_NE(run_error(failing), "");
  EXPECT_EQ(count(), 0u);
  before.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before.c_str(), 1);
}

TEST(ExternalRunner, RejectsLinesThatCannotWork) {
  ExternalOptions options = copying();
  options.encode = "cp {input} out";
  EXPECT_TRUE(has(make_error(options), "expected {output} in the line to encode")) << make_error(options);
  options = copying();
  options.decode = "cp in {output}";
  EXPECT_TRUE(has(make_error(options), "expected {input} in the line to decode")) << make_error(options);
  options = copying();
  options.points = {"1", "2"};
  EXPECT_TRUE(has(make_error(options), "no {point}")) << make_error(options);
  options = copying();
  options.encode += " {point}";
  EXPECT_TRUE(has(make_error(options), "expected a list of points")) << make_error(options);
  options.points = {"1", ""};
  EXPECT_TRUE(has(make_error(options), "empty")) << make_error(options);
  options = copying();
  options.name = "a/b";
  EXPECT_TRUE(has(make_error(options), "name")) << make_error(options);
}

TEST(FfmpegRunner, RunsTheEncodersThatAreThere) {
  const auto encoders = ffmpeg_encoders();
  int ran = 0;
  for (const std::string name : {"libmp3lame", "g722", "libvo_amrwbenc"}) {  // starting ffmpeg takes a moment
    const auto encoder =
        std::find_if(encoders.begin(), encoders.end(), [&](const auto& e) { return e.name == name; });
    ASSERT_NE(encoder, encoders.end());
    const auto made = make_ffmpeg_runner({.encoder = name});
    ASSERT_EQ(static_cast<bool>(made), encoder->absence.empty()) << name;
    if (!made) {
      EXPECT_TRUE(has(made.error().message, encoder->absence));
      continue;
    }
    const FileRunner& runner = file_runner(made);
    EXPECT_EQ(runner.name(), "ffmpeg_" + name);
    EXPECT_TRUE(has(runner.version(), "ffmpeg version"));
    const auto pcm = speech_like(1, 16000);
    const OperatingPoint point = runner.points().back();
    const auto sound = expect_run(runner, point, pcm, 16000, 4096);
    EXPECT_NEAR(static_cast<double>(sound.file_bytes) * 8 / 1000, point.nominal_kbps,
                0.3 * point.nominal_kbps);
    EXPECT_GT(metrics::find_delay(pcm, sound.pcm, 4096).correlation, 0.8) << name;
    ++ran;
  }
  if (ran == 0) GTEST_SKIP() << "no ffmpeg command with an encoder";
}

TEST(FfmpegRunner, RejectsWhatItDoesNotKnow) {
  const auto unknown = make_ffmpeg_runner({.encoder = "libnothing"});
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(has(unknown.error().message, "libmp3lame")) << unknown.error().message;
  for (const FfmpegEncoder& encoder : ffmpeg_encoders()) {
    if (!encoder.absence.empty()) continue;
    EXPECT_FALSE(make_ffmpeg_runner({.encoder = encoder.name, .kbps = {"8; rm x"}}));
    return;
  }
}

}  // namespace
}  // namespace tessera::bench
