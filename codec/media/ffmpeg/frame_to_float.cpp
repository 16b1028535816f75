// Any of FFmpeg's sample formats to interleaved float, without libswresample: no dither, no clipping, no
// rounding beyond that of the float itself.
#include "codec/media/ffmpeg/ffmpeg.h"

namespace tessera {
namespace {

template <class T>
void convert(const AVFrame& frame, bool planar, int from, int count, double bias, double scale, float* to) {
  const int channels = frame.ch_layout.nb_channels;
  for (int t = 0; t < count; ++t) {
    for (int c = 0; c < channels; ++c) {
      const auto* data = reinterpret_cast<const T*>(frame.extended_data[planar ? c : 0]);
      const T x = planar ? data[from + t] : data[static_cast<ptrdiff_t>(from + t) * channels + c];
      *to++ = static_cast<float>((static_cast<double>(x) - bias) * scale);
    }
  }
}

}  // namespace

bool frame_to_float(const AVFrame& frame, int from, int count, float* to) {
  const auto format = static_cast<AVSampleFormat>(frame.format);
  const bool planar = av_sample_fmt_is_planar(format) != 0;
  switch (av_get_packed_sample_fmt(format)) {
    case AV_SAMPLE_FMT_U8:
      convert<uint8_t>(frame, planar, from, count, 0x1p7, 0x1p-7, to);
      return true;
    case AV_SAMPLE_FMT_S16:
      convert<int16_t>(frame, planar, from, count, 0, 0x1p-15, to);
      return true;
    case AV_SAMPLE_FMT_S32:
      convert<int32_t>(frame, planar, from, count, 0, 0x1p-31, to);
      return true;
    case AV_SAMPLE_FMT_S64:
      convert<int64_t>(frame, planar, from, count, 0, 0x1p-63, to);
      return true;
    case AV_SAMPLE_FMT_FLT:
      convert<float>(frame, planar, from, count, 0, 1, to);
      return true;
    case AV_SAMPLE_FMT_DBL:
      convert<double>(frame, planar, from, count, 0, 1, to);
      return true;
    default:
      return false;
  }
}

}  // namespace tessera
