#include "tests/core/contracts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/core/on_every_target.h"

namespace tessera::test {
namespace {

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

// A state block in memory that starts as `fill`.
std::vector<std::byte> fresh_state(const Layer& layer, std::byte fill) {
  std::vector<std::byte> state(layer.state_bytes() + 64, fill);
  layer.init_state(state.data());
  state.resize(layer.state_bytes());
  return state;
}

// One step of several streams on a workspace of exactly the size asked for; x holds the rows of all.
std::vector<float> step(const Layer& layer, std::vector<float> x, const std::vector<int>& lengths,
                        const std::vector<char>& ends, std::vector<std::byte*> states, int threads,
                        std::vector<int>* lengths_out = nullptr) {
  const int streams = static_cast<int>(lengths.size()),
            longest = *std::max_element(lengths.begin(), lengths.end());
  ThreadPool pool(threads);
  const std::size_t input = sequences_bytes(streams, longest, layer.in_channels());
  Workspace workspace(input + layer.workspace_bytes(streams, longest));
  StepContext context{workspace, pool};
  const auto flags = std::make_unique<bool[]>(ends.size() + 1);
  std::copy(ends.begin(), ends.end(), flags.get());
  Sequences in = allocate_sequences(workspace, Workspace::Side::low, lengths, {flags.get(), ends.size()},
                                    layer.in_channels());
  if (!x.empty()) std::memcpy(in.rows.raw(), x.data(), x.size() * sizeof(float));
  const Workspace::Mark before = workspace.mark();
  Sequences y = layer.step(in, States(states), context);
  EXPECT_EQ(workspace.mark().low, before.low) << "scratch left on the input's side";
  EXPECT_TRUE(y.rows.raw() == in.rows.raw() || workspace.side_of(y.rows.raw()) == Workspace::Side::high);
  for (int i = 0; i < streams; ++i) EXPECT_LE(y.lengths[to_size(i)], layer.max_rows(lengths[to_size(i)]));
  if (lengths_out) lengths_out->assign(y.lengths.begin(), y.lengths.end());
  return {y.rows.f32(), y.rows.f32() + y.rows.size()};
}

std::vector<float> rows_of(const Layer& layer, const std::vector<float>& x, int first, int count) {
  const std::ptrdiff_t row = layer.in_channels();
  return {x.begin() + first * row, x.begin() + (first + count) * row};
}

void append(std::vector<float>& to, const std::vector<float>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

// Streams of different lengths that join one another, idle and end at different times.
void expect_batch_invariance(const Layer& layer, int rows) {
  constexpr int kStreams = 3;
  std::array<std::vector<float>, kStreams> inputs, outputs;
  std::array<std::vector<std::byte>, kStreams> states;
  std::array<int, kStreams> totals{rows, rows / 2 + 1, rows / 3}, done{};
  for (int i = 0; i < kStreams; ++i) {
    inputs[to_size(i)] =
        random_floats(to_size(totals[to_size(i)] * layer.in_channels()), 100 + static_cast<std::uint64_t>(i));
    states[to_size(i)] = fresh_state(layer, std::byte{0});
  }
  for (int round = 0; done != totals; ++round) {
    std::vector<float> x;
    std::vector<int> lengths, who;
    std::vector<char> ends;
    std::vector<std::byte*> blocks;
    for (int i = 0; i < kStreams; ++i) {
      int& at = done[to_size(i)];
      const bool idle = at == totals[to_size(i)] || (round + i) % 3 == 0 || (i == 1 && round < 4);
      if (idle) continue;
      const int length = std::min((round * 7 + i * 3) % 11, totals[to_size(i)] - at);
      append(x, rows_of(layer, inputs[to_size(i)], at, length));
      at += length;
      lengths.push_back(length);
      ends.push_back(at == totals[to_size(i)]);
      blocks.push_back(states[to_size(i)].data());
      who.push_back(i);
    }
    if (who.empty()) continue;
    std::vector<int> given;
    const std::vector<float> y = step(layer, x, lengths, ends, blocks, 1, &given);
    std::ptrdiff_t at = 0;
    for (std::size_t k = 0; k < who.size(); ++k) {
      const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(given[k]) * layer.out_channels();
      append(outputs[to_size(who[k])], {y.begin() + at, y.begin() + at + size});
      at += size;
    }
  }
  for (int i = 0; i < kStreams; ++i) {
    expect_same_bits(outputs[to_size(i)], run_layer(layer, inputs[to_size(i)], {1 << 20}),
                     "batch, stream " + std::to_string(i));
  }
}

}  // namespace

std::vector<float> run_layer(const Layer& layer, const std::vector<float>& x, const RowPieces& pieces,
                             int threads, bool end) {
  const int rows = static_cast<int>(x.size()) / layer.in_channels();
  std::vector<std::byte> state = fresh_state(layer, std::byte{0});
  std::vector<float> y;
  int at = 0;
  for (std::size_t i = 0; at < rows || i == 0; ++i) {
    const int length = std::min(pieces[i % pieces.size()], rows - at);
    const bool last = end && at + length == rows;
    append(y, step(layer, rows_of(layer, x, at, length), {length}, {static_cast<char>(last)}, {state.data()},
                   threads));
    at += length;
  }
  return y;
}

void expect_contracts(const Layer& layer, int rows) {
  EXPECT_EQ(layer.state_bytes() % 64, 0u);
  EXPECT_EQ(fresh_state(layer, std::byte{0}), fresh_state(layer, std::byte{0xff}))
      << "init_state leaves bytes unwritten";
  const std::vector<float> x = random_floats(to_size(rows * layer.in_channels()), 7);
  const std::vector<float> whole = run_layer(layer, x, {1 << 20});
  for (const RowPieces& pieces :
       {RowPieces{1}, RowPieces{0, 3, 1, 7}, RowPieces{5}, RowPieces{16, 0, 0, 2}, RowPieces{rows - 1, 1}}) {
    expect_same_bits(run_layer(layer, x, pieces), whole, "split " + std::to_string(pieces.front()));
  }
  for (const int threads : {2, 3}) {
    expect_same_bits(run_layer(layer, x, {1 << 20}, threads), whole, std::to_string(threads) + " threads");
  }
  expect_same_on_every_target([&] { return run_layer(layer, x, {9, 4}); });
  expect_batch_invariance(layer, rows);

  // A copy of the state goes on as the stream itself does.
  std::vector<std::byte> state = fresh_state(layer, std::byte{0});
  const int half = rows / 2;
  const std::vector<float> first = step(layer, rows_of(layer, x, 0, half), {half}, {0}, {state.data()}, 1);
  std::vector<std::byte> copy = state;
  const std::vector<float> rest = rows_of(layer, x, half, rows - half);
  for (std::vector<std::byte>* block : {&state, &copy}) {
    std::vector<float> y = first;
    append(y, step(layer, rest, {rows - half}, {1}, {block->data()}, 1));
    expect_same_bits(y, whole, "copied state");
  }
  EXPECT_EQ(state, copy);
}

}  // namespace tessera::test
