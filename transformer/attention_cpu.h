// The part of attention that runs on one thread: one key/value head of one stream. Internal to transformer/.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

/// Positions whose keys and values enter the ring before their queries are answered.
inline constexpr int kAttentionBlock = 16;
/// Keys that lie together, lane by lane; the ring holds whole groups, so lane = absolute position mod 16.
inline constexpr int kKeyGroup = 16;
/// Query rows answered together: they share the passes over keys and values.
inline constexpr int kQueryTile = 4;
/// Slack behind each row of scores: the kernels compute up to this many scores past the last visible group.
inline constexpr int kScoreSlack = 64;

/// Row m of q, k, v lies `qkv_stride` floats after row m - 1, of out `out_stride` floats.
struct AttentionHead {
  const float* q;  ///< [rows, group * head_dim]: the query heads that share this key/value head
  const float* k;  ///< [rows, head_dim]
  const float* v;  ///< [rows, head_dim]
  float* out;      ///< [rows, group * head_dim]
  std::ptrdiff_t qkv_stride;
  std::ptrdiff_t out_stride;
  int rows;
  int group;
  int head_dim;
  int window;
  int capacity;  ///< slots of the ring: a multiple of kKeyGroup, at least window - 1 + kAttentionBlock
  float scale;   ///< of the scores
  std::int64_t position;  ///< of the first row
  float* keys;            ///< [capacity / kKeyGroup, head_dim, kKeyGroup]: lanes run across keys
  float* values;          ///< [capacity, head_dim]: lanes run across channels
  float* scores;          ///< scratch [kQueryTile, score_length(capacity)]
};

/// Floats of one row of scores. A tile sees fewer than capacity positions, which may start and end inside a
/// group.
inline int score_length(int capacity) {
  return capacity + kKeyGroup + kScoreSlack;
}

/// Stores the rows' keys and values in the ring and answers their queries.
void attend_cpu(const AttentionHead& head);

}  // namespace tessera
