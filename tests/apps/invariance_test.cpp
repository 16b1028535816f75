// The result does not depend on pipes, threads or the instruction set; an interrupted run leaves nothing
// behind.
#include <csignal>

#include "core/cpu.h"
#include "support.h"

namespace tessera::test {
namespace {

using InvarianceTest = CommandTest;

TEST_F(InvarianceTest, PipesGiveTheSameBytes) {
  write_wav("in.wav", voice(1.3, 16000, 2));
  ok({"encode", "in.wav", "x.tsr"});
  ok({"decode", "x.tsr", "x.wav"});
  const Outcome run =
      shell("cat in.wav | \"$T\" encode -q - - | tee piped.tsr | \"$T\" decode -q - - > piped.wav");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(read("piped.tsr"), read("x.tsr"));
  EXPECT_EQ(read_wav("piped.wav").samples, read_wav("x.wav").samples);
}

TEST_F(InvarianceTest, AReaderThatGoesAwayIsNoNews) {
  write_wav("in.wav", voice(3));
  ok({"encode", "in.wav", "x.tsr"});
  const Outcome run = shell("{ \"$T\" decode -q x.tsr -; echo $? >code; } | head -c 100 >part");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(read("code"), "3\n");
}

TEST_F(InvarianceTest, ThreadsChangeNothing) {
  write_wav("in.wav", voice(1.2, 16000, 2));
  ok({"encode", "in.wav", "1.tsr", "--threads", "1"});
  ok({"decode", "1.tsr", "1.wav", "--threads", "1"});
  for (const std::string threads : {"2", "3", "0"}) {
    ok({"encode", "in.wav", "n.tsr", "--threads", threads});
    EXPECT_EQ(read("n.tsr"), read("1.tsr")) << threads;
    ok({"decode", "1.tsr", "n.wav", "--threads", threads});
    EXPECT_EQ(read("n.wav"), read("1.wav")) << threads;
  }
}

TEST_F(InvarianceTest, InstructionSetsChangeNothing) {
  write_wav("in.wav", voice(0.1));
  ok({"encode", "in.wav", "x.tsr"});
  ok({"decode", "x.tsr", "x.wav"});
  for (const std::string& target : available_cpu_targets()) {
    const std::vector<std::string> held{"TESSERA_CPU=" + target};
    ok({"encode", "in.wav", "held.tsr"}, held);
    EXPECT_EQ(read("held.tsr"), read("x.tsr")) << target;
    ok({"decode", "x.tsr", "held.wav"}, held);
    EXPECT_EQ(read("held.wav"), read("x.wav")) << target;
    EXPECT_NE(ok({"--version"}, held).out.find(target + " (of"), std::string::npos) << target;
  }
}

TEST_F(InvarianceTest, ASignalLeavesNothingBehind) {
  const std::string wav = wav_bytes(voice(10), 16);
  write("part.wav", wav.substr(0, wav.size() * 2 / 3));
  for (const std::string signal : {"INT", "TERM", "HUP"}) {
    const bool replaces = signal == "TERM";
    if (replaces) write("x.tsr", "as before");
    // The pipe stays open after two thirds of the sound, so the command waits for more until it is told to
    // stop. (A shell without a terminal starts commands in the background with SIGINT ignored: undone by
    // env.)
    const Outcome run = shell(
        "mkfifo pipe; env --default-signal=INT \"$T\" encode -q pipe x.tsr & pid=$!; exec 3>pipe; "
        "cat part.wav >&3; for i in $(seq 400); do if ls -a | grep -q tessera-; then break; fi; "
        "sleep 0.05; done; kill -" +
        signal + " $pid; wait $pid; code=$?; rm pipe; exit $code");
    EXPECT_EQ(run.exit_code, 128 + (signal == "INT"    ? SIGINT
                                    : signal == "TERM" ? SIGTERM
                                                       : SIGHUP))
        << run.err;
    EXPECT_EQ(run.err.find("tessera:"), std::string::npos) << run.err;
    EXPECT_EQ(listing(), (replaces ? std::vector<std::string>{"part.wav", "x.tsr"}
                                   : std::vector<std::string>{"part.wav"}));
    EXPECT_EQ(read("x.tsr"), replaces ? "as before" : "");
    std::filesystem::remove(folder_ / "x.tsr");
  }
}

TEST_F(InvarianceTest, MemoryDoesNotGrowWithTheInput) {
  Sound sound = voice(30);
  const std::vector<float> part = sound.samples;
  write_wav("short.wav", sound);
  for (int i = 1; i < 10; ++i) sound.samples.insert(sound.samples.end(), part.begin(), part.end());
  write_wav("long.wav", sound);
  const auto short_kib = ok({"encode", "short.wav", "short.tsr", "-n", "2"}).peak_kib;
  const auto long_kib = ok({"encode", "long.wav", "long.tsr", "-n", "2"}).peak_kib;
  EXPECT_LT(static_cast<double>(long_kib), 1.05 * static_cast<double>(short_kib));
  const auto short_out_kib = ok({"decode", "short.tsr", "short_out.wav"}).peak_kib;
  const Outcome decoded = ok({"decode", "long.tsr", "long_out.wav", "--json"});
  EXPECT_LT(static_cast<double>(decoded.peak_kib), 1.05 * static_cast<double>(short_out_kib));
  EXPECT_EQ(decoded.json()["samples"], sound.frames());
}

}  // namespace
}  // namespace tessera::test
