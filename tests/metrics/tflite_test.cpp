// Reading of the lattice network: its inputs, and files that are damaged in every byte that matters.
#include "metrics/tflite_graph.h"

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/mapped_file.h"
#include "metrics/visqol.h"
#include "tests/metrics/support.h"

namespace tessera::metrics {
namespace {

constexpr const char* kFile = "metrics/visqol/visqol_lattice.tflite";

std::vector<std::byte> lattice_bytes() {
  const MappedFile file = MappedFile::open(test::shared(kFile)).value();
  return {file.bytes().begin(), file.bytes().end()};
}

std::map<std::string, float, std::less<>> features(const TfliteGraph& graph, float value) {
  std::map<std::string, float, std::less<>> inputs;
  for (const std::string& name : graph.inputs()) inputs[name] = value;
  return inputs;
}

TEST(Tflite, RunsTheLattice) {
  TESSERA_NEED_SHARED(kFile);
  const TfliteGraph graph = TfliteGraph::open(test::shared(kFile)).value();
  EXPECT_EQ(graph.inputs().size(), 85u);
  auto inputs = features(graph, 0.5f);
  const auto with = [&](float similarity) {
    for (auto& [name, value] : inputs) {
      if (name.starts_with("fvnsim")) value = similarity;
    }
    return graph.run(inputs);
  };
  // More similar bands never score lower: the network is monotonic in them.
  double before = 1;
  for (const float similarity : {0.5f, 0.8f, 0.9f, 0.95f, 1.0f}) {
    EXPECT_GE(with(similarity), before) << similarity;
    before = with(similarity);
  }
  EXPECT_GT(before, 2);
  EXPECT_LT(before, 5);
  inputs.erase("tau");
  EXPECT_THROW((void)graph.run(inputs), UsageError);
}

TEST(Tflite, RefusesOtherFiles) {
  EXPECT_EQ(TfliteGraph::open("/no/such/file").error().code, ErrorCode::io);
  const auto refuse = [](const std::string& bytes) {
    const auto graph = TfliteGraph::parse(std::as_bytes(std::span(bytes)), "file");
    ASSERT_FALSE(graph);
    EXPECT_TRUE(graph.error().message.starts_with("file: ")) << graph.error().message;
  };
  refuse("");
  refuse("abc");
  refuse(std::string(100, 'x'));
  refuse(std::string("\x08\0\0\0TFL3", 8));
  refuse(std::string("\xff\xff\xff\xffTFL3", 8));
  refuse(std::string("\x08\0\0\0TFL3", 8) + std::string(100, '\x7f'));
}

TEST(Tflite, SurvivesDamage) {
  TESSERA_NEED_SHARED(kFile);
  std::vector<std::byte> bytes = lattice_bytes();
  for (std::size_t size = bytes.size() - 1; size > 8; size = size * 2 / 3) {
    EXPECT_FALSE(TfliteGraph::parse(std::span(bytes).first(size), "file")) << size;
  }
  // Words all over the file: whatever still loads must run.
  const std::vector<std::byte> whole = bytes;
  int refused = 0;
  for (int i = 0; i < 120; ++i) {
    const std::size_t at = (static_cast<std::size_t>(i) * 2654435761u) % (bytes.size() / 4) * 4;
    const std::uint32_t words[] = {0, 0xffffffffu, 0x7fffffffu, 3};
    std::memcpy(bytes.data() + at, &words[i % 4], 4);
    if (const auto graph = TfliteGraph::parse(bytes, "file")) {
      (void)graph->run(features(*graph, 0.5f));
    } else {
      ++refused;
    }
    bytes = whole;
  }
  EXPECT_GT(refused, 5);
}

TEST(Tflite, VisqolAsksForItsInputs) {
  VisqolOptions options;
  options.mode = VisqolMode::speech_lattice;
  options.model_path = "/no/such/lattice";
  EXPECT_EQ(Visqol::load(options).error().code, ErrorCode::io);
}

}  // namespace
}  // namespace tessera::metrics
