// Sound as a picture, for the examples of a training run: time to the right, frequency upward, loud is dark.
#pragma once

#include <span>

#include "core/thread_pool.h"
#include "train/png.h"

namespace tessera::train {

struct SpectrogramOptions {
  int window = 512;         ///< samples, even: window / 2 rows
  int most_columns = 1600;  ///< the hop grows with the length so that there are no more
  double range_db = 80;     ///< from black down to white
};

/// One spectrogram; black is the loudest point (silence is white). The window is at most 4096.
GrayImage spectrogram_image(std::span<const float> pcm, ThreadPool& pool,
                            const SpectrogramOptions& options = {});
/// That of `input` above that of `decoded`, on one scale: black is the loudest point of the input. Columns
/// stand at the same time in both.
GrayImage spectrogram_pair(std::span<const float> input, std::span<const float> decoded, ThreadPool& pool,
                           const SpectrogramOptions& options = {});

}  // namespace tessera::train
