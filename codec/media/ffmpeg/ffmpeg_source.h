// Decodes the sound of anything FFmpeg opens. Encoder delay and padding (MP3, AAC, Opus) are removed as
// FFmpeg does: the decoder honours the container's skip and discard counts, so the length is that of the
// original. Left out: gaps in the time stamps (the sound closes up), a start later than the picture's.
#pragma once

#include "codec/media/ffmpeg/ffmpeg.h"

namespace tessera {

class FfmpegSource final : public AudioSource {
 public:
  /// Takes `input` over; reads up to the first decoded frame, which tells rate and channels better than the
  /// header.
  static Result<std::unique_ptr<AudioSource>> open(MediaInput input);

  const AudioInfo& info() const override { return info_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  Result<size_t> read(std::span<float> out) override;

 private:
  explicit FfmpegSource(MediaInput input) : input_(std::move(input)) {}
  Result<void> open_container();
  Result<void> open_decoder();
  Result<void> open_first_frame();
  bool next_frame();
  void feed_decoder();
  void cut_padding();
  std::string missing_sound() const;
  Result<size_t> end();

  MediaInput input_;  // the parts below refer to it and to each other: destroyed from the bottom up
  FfmpegPtr<AVIOContext> io_;
  FfmpegPtr<AVFormatContext> format_;
  FfmpegPtr<AVCodecContext> decoder_;
  FfmpegPtr<AVPacket> packet_;
  FfmpegPtr<AVFrame> frame_;
  AVStream* stream_ = nullptr;

  AudioInfo info_;
  std::vector<std::string> notes_;
  int frame_at_ = 0;           // samples of frame_ handed out
  int64_t given_ = 0;          // frames handed out
  int64_t bad_packets_ = 0;    // packets that did not decode
  std::string first_trouble_;  // what FFmpeg said about the first of them, or about reading on
  int64_t packets_end_ = 0;    // of the last packet decoded, in the stream's time base
  std::string mp4_hint_;       // what to add when an MP4 cannot be read
  bool input_over_ = false;
  bool over_ = false;
};

}  // namespace tessera
