// Output goes through files, so that a full pipe cannot stop a run; they lie outside the test's folder.
#include "support.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tessera::test {
namespace {

const std::string kCommand = std::string(TESSERA_BINARY_DIR) + "/tessera";

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T get(const std::string& bytes, std::size_t at) {
  T value{};
  if (at + sizeof value > bytes.size()) {
    ADD_FAILURE() << "the file ends at byte " << bytes.size();
  } else {
    std::memcpy(&value, bytes.data() + at, sizeof value);
  }
  return value;
}

Outcome run_shell(const std::filesystem::path& folder, const std::string& line) {
  const std::string stem = folder.string() + ".run";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (stem + ".out").c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (stem + ".err").c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const std::string script = "cd '" + folder.string() + "' && " + line;
  std::string shell = "/bin/sh", option = "-c", body = script;
  char* argv[] = {shell.data(), option.data(), body.data(), nullptr};
  pid_t pid = 0;
  Outcome run;
  if (posix_spawn(&pid, "/bin/sh", &actions, nullptr, argv, environ) == 0) {
    int status = 0;
    rusage usage{};
    wait4(pid, &status, 0, &usage);
    run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    run.peak_kib = usage.ru_maxrss;
  }
  posix_spawn_file_actions_destroy(&actions);
  run.out = read_file(stem + ".out");
  run.err = read_file(stem + ".err");
  std::filesystem::remove(stem + ".out");
  std::filesystem::remove(stem + ".err");
  return run;
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

}  // namespace

Sound voice(double seconds, int rate_hz, int channels) {
  Sound sound{rate_hz, channels, {}};
  const auto frames = static_cast<std::size_t>(std::llround(seconds * rate_hz));
  sound.samples.resize(frames * static_cast<std::size_t>(channels));
  std::uint32_t noise = 1;
  for (int c = 0; c < channels; ++c) {
    double phase = 0;
    for (std::size_t i = 0; i < frames; ++i) {
      const double t = static_cast<double>(i) / rate_hz;
      phase += 2 * M_PI * (140 + 60 * c + 30 * std::sin(2 * M_PI * 0.7 * t)) / rate_hz;
      double value = 0;
      for (int k = 1; k <= 8; ++k) value += std::sin(k * phase) / k;
      noise = noise * 1664525u + 1013904223u;
      const double hiss = static_cast<double>(noise >> 16) / 32768 - 1;
      const double envelope = 0.5 + 0.5 * std::sin(2 * M_PI * 2.1 * t + c);
      sound.samples[i * static_cast<std::size_t>(channels) + static_cast<std::size_t>(c)] =
          static_cast<float>(0.15 * envelope * value + 0.01 * hiss);
    }
  }
  return sound;
}

std::string wav_bytes(const Sound& sound, int bits) {
  std::string data;
  for (const float value : sound.samples) {
    if (bits == 8) put(data, static_cast<std::uint8_t>(std::lround(value * 127) + 128));
    if (bits == 16) put(data, static_cast<std::int16_t>(std::lround(value * 32767)));
    if (bits == 24) {
      const auto number = static_cast<std::int32_t>(std::lround(value * 8388607.0));
      data.append(reinterpret_cast<const char*>(&number), 3);
    }
    if (bits == 32) put(data, value);
  }
  const auto block = static_cast<std::uint16_t>(sound.channels * bits / 8);
  std::string wav = "RIFF";
  put(wav, static_cast<std::uint32_t>(36 + data.size()));
  wav += "WAVEfmt ";
  put(wav, std::uint32_t{16});
  put(wav, static_cast<std::uint16_t>(bits == 32 ? 3 : 1));
  put(wav, static_cast<std::uint16_t>(sound.channels));
  put(wav, static_cast<std::uint32_t>(sound.rate_hz));
  put(wav, static_cast<std::uint32_t>(sound.rate_hz * block));
  put(wav, block);
  put(wav, static_cast<std::uint16_t>(bits));
  wav += "data";
  put(wav, static_cast<std::uint32_t>(data.size()));
  return wav + data;
}

Sound parse_wav(const std::string& bytes) {
  Sound sound{0, 1, {}};
  if (bytes.compare(0, 4, "RIFF") != 0 || bytes.compare(8, 4, "WAVE") != 0) {
    ADD_FAILURE() << "not a WAV file, " << bytes.size() << " bytes";
    return sound;
  }
  int bits = 0;
  for (std::size_t at = 12; at + 8 <= bytes.size();) {
    const std::string tag = bytes.substr(at, 4);
    const std::size_t size = std::min<std::size_t>(get<std::uint32_t>(bytes, at + 4), bytes.size() - at - 8);
    if (tag == "fmt ") {
      sound.channels = get<std::uint16_t>(bytes, at + 10);
      sound.rate_hz = get<std::int32_t>(bytes, at + 12);
      bits = get<std::uint16_t>(bytes, at + 22);
    } else if (tag == "data") {
      for (std::size_t i = at + 8; i < at + 8 + size; i += static_cast<std::size_t>(bits / 8)) {
        sound.samples.push_back(bits == 32 ? get<float>(bytes, i)
                                           : static_cast<float>(get<std::int16_t>(bytes, i)) / 32768);
      }
    }
    at += 8 + size + size % 2;
  }
  return sound;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
}

CommandTest::CommandTest() {
  std::string name = (std::filesystem::temp_directory_path() / "tessera-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder for the test");
  folder_ = name;
}

CommandTest::~CommandTest() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

Outcome CommandTest::tessera(const std::vector<std::string>& arguments,
                             const std::vector<std::string>& environment) const {
  std::string line = "exec env";
  for (const std::string& setting : environment) line += " " + quoted(setting);
  line += " " + quoted(kCommand);
  for (const std::string& argument : arguments) line += " " + quoted(argument);
  return run_shell(folder_, line);
}

Outcome CommandTest::shell(const std::string& line) const {
  return run_shell(folder_, "T=" + quoted(kCommand) + "; " + line);
}

Outcome CommandTest::ok(const std::vector<std::string>& arguments,
                        const std::vector<std::string>& environment) const {
  Outcome run = tessera(arguments, environment);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run;
}

std::vector<std::string> CommandTest::listing() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tessera::test
