// One owner per FFmpeg type, and the input as FFmpeg sees it: bytes, never a name. So a file called "http:x"
// is a file, and nothing inside a file (a playlist) can open another.
#pragma once

#include <memory>
#include <string>

#include "codec/media/source.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

namespace tessera {

struct FfmpegDeleter {
  void operator()(AVIOContext* p) const {
    if (p != nullptr) av_freep(&p->buffer);
    avio_context_free(&p);
  }
  void operator()(AVFormatContext* p) const { avformat_close_input(&p); }
  void operator()(AVCodecContext* p) const { avcodec_free_context(&p); }
  void operator()(AVPacket* p) const { av_packet_free(&p); }
  void operator()(AVFrame* p) const { av_frame_free(&p); }
};
template <class T>
using FfmpegPtr = std::unique_ptr<T, FfmpegDeleter>;

/// FFmpeg's text for an error code.
std::string ffmpeg_text(int code);

/// A byte stream over `input`, which must outlive it and stay where it is; null when out of memory.
FfmpegPtr<AVIOContext> make_avio(MediaInput& input);

/// Appends the samples [from, from + count) of a decoded frame, any sample format, to interleaved floats at
/// `to`. Integers become value / 2^(bits - 1). False for a format unknown here.
bool frame_to_float(const AVFrame& frame, int from, int count, float* to);

}  // namespace tessera
