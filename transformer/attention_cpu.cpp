// Attention kernels. Scores are computed with lanes across keys, outputs with lanes across channels, both by
// the same register tile of fused multiply-add chains. Slots that a query does not see may hold anything:
// their scores are replaced, and their values are never read for that query.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transformer/attention_cpu.cpp"
#include "core/simd.h"
#include "hwy/foreach_target.h"
// After foreach_target:
#include <algorithm>
#include <cstring>
#include <limits>

#include "core/norm.h"
#include "core/simd-inl.h"
#include "core/simd_math-inl.h"
#include "hwy/highway.h"
#include "transformer/attention_cpu.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

using Floats = hn::CappedTag<float, kKeyGroup>;
using Vector = hn::Vec<Floats>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Floats()));
constexpr int kVectorsPerGroup = kKeyGroup / kLanes;

// Vectors of a register tile per row: four, or as many as 16 registers hold.
template <int kRows>
constexpr int columns() {
  constexpr bool kManyRegisters = HWY_ARCH_ARM_A64 || kLanes == 16;
  return kRows == 4 && !kManyRegisters ? 2 : 4;
}

// One query head at one position.
struct Query {
  const float* q;
  float* out;
  std::int64_t first, last;  // it sees the positions [first, last)
};

// sum[r][c] += left[r][i] * right[c][i * step + lane], i = 0, 1, ...: one chain per element.
template <int kRows, int kColumns>
HWY_INLINE void extend_chains(const float* const (&left)[kRows], const float* const (&right)[kColumns],
                              std::ptrdiff_t step, std::int64_t count, Vector (&sum)[kRows][kColumns]) {
  const Floats d;
  for (std::int64_t i = 0; i < count; ++i) {
    Vector x[kColumns];
    for (int c = 0; c < kColumns; ++c) x[c] = hn::LoadU(d, right[c] + i * step);
    for (int r = 0; r < kRows; ++r) {
      const Vector a = hn::Set(d, left[r][i]);
      for (int c = 0; c < kColumns; ++c) sum[r][c] = Fma(d, a, x[c], sum[r][c]);
    }
  }
}

// scores[r][j] = scale * (q_r . key at position first_group * kKeyGroup + j) for j in [0, count), and some
// beyond.
template <int kRows>
void compute_scores(const AttentionHead& head, const Query* queries, std::int64_t first_group, int count,
                    float* const (&scores)[kRows]) {
  constexpr int kColumns = columns<kRows>();
  static_assert(kColumns * kLanes <= kScoreSlack);
  const Floats d;
  const int ring_groups = head.capacity / kKeyGroup;
  const int first_slot = static_cast<int>(first_group % ring_groups);
  const Vector scale = hn::Set(d, head.scale);
  const float* q[kRows];
  for (int r = 0; r < kRows; ++r) q[r] = queries[r].q;
  for (int j = 0; j < count; j += kColumns * kLanes) {
    const float* keys[kColumns];
    for (int c = 0; c < kColumns; ++c) {
      const int key = j + c * kLanes;
      const std::ptrdiff_t group = (first_slot + key / kKeyGroup) % ring_groups;
      keys[c] = head.keys + group * head.head_dim * kKeyGroup + key % kKeyGroup;
    }
    Vector sum[kRows][kColumns];
    for (auto& row : sum) {
      for (Vector& s : row) s = hn::Zero(d);
    }
    extend_chains(q, keys, kKeyGroup, head.head_dim, sum);
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < kColumns; ++c) hn::StoreU(hn::Mul(sum[r][c], scale), d, scores[r] + j + c * kLanes);
    }
  }
}

// Turns scores[first..last) into exp(score - largest) and returns their sum. scores[0] belongs to a position
// that is a multiple of kKeyGroup; what else lies in the first and the last group is overwritten.
float exponentials(float* scores, int first, int last) {
  const Floats d;
  const int begin = first / kKeyGroup * kKeyGroup, end = (last + kKeyGroup - 1) / kKeyGroup * kKeyGroup;
  const auto fill_edges = [&](float value) {
    std::fill(scores + begin, scores + first, value);
    std::fill(scores + last, scores + end, value);
  };
  fill_edges(-std::numeric_limits<float>::infinity());
  Vector largest = hn::LoadU(d, scores + begin);
  for (int j = begin; j < end; j += kLanes) largest = hn::Max(largest, hn::LoadU(d, scores + j));
  largest = hn::MaxOfLanes(d, largest);
  for (int j = begin; j < end; j += kLanes) {
    hn::StoreU(Exp(d, hn::Sub(hn::LoadU(d, scores + j), largest)), d, scores + j);
  }
  fill_edges(0.0f);
  Vector sum[kVectorsPerGroup];
  for (Vector& s : sum) s = hn::Zero(d);
  for (int j = begin; j < end; j += kKeyGroup) {
    for (int c = 0; c < kVectorsPerGroup; ++c)
      sum[c] = hn::Add(sum[c], hn::LoadU(d, scores + j + c * kLanes));
  }
  float partial[kKeyGroup];
  for (int c = 0; c < kVectorsPerGroup; ++c) hn::StoreU(sum[c], d, partial + c * kLanes);
  return fixed_sum(partial, kKeyGroup);
}

// Continues the chains of the output channels from `channel` on, kColumns vectors wide, over `count` values.
template <int kRows, int kColumns>
HWY_INLINE void add_channels(const Query* queries, const float* const (&weights)[kRows], const float* values,
                             std::ptrdiff_t head_dim, std::int64_t count, int channel) {
  const Floats d;
  const float* from[kColumns];
  for (int c = 0; c < kColumns; ++c) from[c] = values + channel + c * kLanes;
  Vector sum[kRows][kColumns];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) sum[r][c] = hn::LoadU(d, queries[r].out + channel + c * kLanes);
  }
  extend_chains(weights, from, head_dim, count, sum);
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) hn::StoreU(sum[r][c], d, queries[r].out + channel + c * kLanes);
  }
}

// out[r] += weight * value over the positions [first, last), all of which the queries see. Row r's weights,
// from position `origin` on, lie at weights[r].
template <int kRows>
void add_values(const AttentionHead& head, const Query* queries, const float* const* weights,
                std::int64_t origin, std::int64_t first, std::int64_t last) {
  constexpr int kColumns = columns<kRows>();
  while (first < last) {
    const std::int64_t slot = first % head.capacity;
    const std::int64_t count = std::min(last - first, head.capacity - slot);
    const float* const values = head.values + slot * head.head_dim;
    const float* from[kRows];
    for (int r = 0; r < kRows; ++r) from[r] = weights[r] + (first - origin);
    int channel = 0;
    for (; channel + kColumns * kLanes <= head.head_dim; channel += kColumns * kLanes) {
      add_channels<kRows, kColumns>(queries, from, values, head.head_dim, count, channel);
    }
    for (; channel < head.head_dim; channel += kLanes) {
      add_channels<kRows, 1>(queries, from, values, head.head_dim, count, channel);
    }
    first += count;
  }
}

// Answers kRows queries, in order of position and at most kQueryTile - 1 positions apart.
template <int kRows>
void answer(const AttentionHead& head, const Query* queries) {
  const Floats d;
  const std::int64_t first_group = queries[0].first / kKeyGroup, origin = first_group * kKeyGroup;
  float* scores[kRows];
  for (int r = 0; r < kRows; ++r) scores[r] = head.scores + r * score_length(head.capacity);
  compute_scores<kRows>(head, queries, first_group, static_cast<int>(queries[kRows - 1].last - origin),
                        scores);

  float sum[kRows];
  const float* weights[kRows];
  for (int r = 0; r < kRows; ++r) {
    sum[r] = exponentials(scores[r], static_cast<int>(queries[r].first - origin),
                          static_cast<int>(queries[r].last - origin));
    weights[r] = scores[r];
    std::fill_n(queries[r].out, head.head_dim, 0.0f);
  }
  // Each query's chain runs over positions that not all of them see, then over the shared ones, then over its
  // own last.
  const std::int64_t shared_first = queries[kRows - 1].first;
  const std::int64_t shared_last = std::max(shared_first, queries[0].last);
  for (int r = 0; r < kRows; ++r) {
    add_values<1>(head, queries + r, weights + r, origin, queries[r].first,
                  std::min(shared_first, queries[r].last));
  }
  add_values<kRows>(head, queries, weights, origin, shared_first, shared_last);
  for (int r = 0; r < kRows; ++r) {
    add_values<1>(head, queries + r, weights + r, origin, shared_last, queries[r].last);
    for (int c = 0; c < head.head_dim; c += kLanes) {
      hn::StoreU(hn::Div(hn::LoadU(d, queries[r].out + c), hn::Set(d, sum[r])), d, queries[r].out + c);
    }
  }
}

void store(const AttentionHead& head, int row) {
  const std::ptrdiff_t slot = (head.position + row) % head.capacity;
  const float* const k = head.k + row * head.qkv_stride;
  float* const key = head.keys + slot / kKeyGroup * head.head_dim * kKeyGroup + slot % kKeyGroup;
  for (int i = 0; i < head.head_dim; ++i) key[i * kKeyGroup] = k[i];
  std::memcpy(head.values + slot * head.head_dim, head.v + row * head.qkv_stride,
              static_cast<std::size_t>(head.head_dim) * sizeof(float));
}

// Queries are numbered row by row, the heads of a row one after the other.
Query query(const AttentionHead& head, int index) {
  const int row = index / head.group, member = index % head.group;
  const std::int64_t position = head.position + row;
  return {.q = head.q + row * head.qkv_stride + member * head.head_dim,
          .out = head.out + row * head.out_stride + member * head.head_dim,
          .first = std::max<std::int64_t>(0, position - head.window + 1),
          .last = position + 1};
}

void attend(const AttentionHead& head) {
  for (int row = 0; row < head.rows; row += kAttentionBlock) {
    const int end = std::min(row + kAttentionBlock, head.rows);
    for (int m = row; m < end; ++m) store(head, m);
    for (int index = row * head.group; index < end * head.group;) {
      const int left = end * head.group - index;
      const int count = left >= kQueryTile ? kQueryTile : left >= 2 ? 2 : 1;
      Query queries[kQueryTile];
      for (int r = 0; r < count; ++r) queries[r] = query(head, index + r);
      if (count == kQueryTile) {
        answer<kQueryTile>(head, queries);
      } else if (count == 2) {
        answer<2>(head, queries);
      } else {
        answer<1>(head, queries);
      }
      index += count;
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(attend);

void attend_cpu(const AttentionHead& head) {
  HWY_DYNAMIC_DISPATCH(attend)(head);
}

}  // namespace tessera
#endif
