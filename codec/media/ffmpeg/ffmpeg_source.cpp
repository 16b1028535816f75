// The usual three steps of FFmpeg (container, decoder, frames), with every way to fail put into a line of
// words. Damaged packets are passed over and counted, so that one bad spot does not end the sound.
#include "codec/media/ffmpeg/ffmpeg_source.h"

#include <algorithm>
#include <new>
#include <string_view>

namespace tessera {
namespace {

constexpr int kMaxTries = 1000;        // "try again" in a row before a demuxer counts as stuck
constexpr double kLengthSlack = 0.15;  // seconds by which encoder delay makes honest headers promise too much

// A playlist or a reference movie may not open anything.
int refuse_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EPERM);
}

bool is_sound(const AVStream* stream) {
  return stream->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
}

void discard_all_but_sound(AVFormatContext* format) {
  for (unsigned i = 0; i < format->nb_streams; ++i) {
    if (!is_sound(format->streams[i])) format->streams[i]->discard = AVDISCARD_ALL;
  }
}

}  // namespace

Result<std::unique_ptr<AudioSource>> FfmpegSource::open(MediaInput input) {
  std::unique_ptr<FfmpegSource> source(new FfmpegSource(std::move(input)));
  if (auto r = source->open_container(); !r) return r.error();
  if (auto r = source->open_decoder(); !r) return r.error();
  if (auto r = source->open_first_frame(); !r) return r.error();
  return std::unique_ptr<AudioSource>(std::move(source));
}

Result<void> FfmpegSource::open_container() {
  info_.name = input_.name;
  std::string start;  // before reading moves the head
  for (size_t i = 0; i < std::min<size_t>(input_.head_size, 8); ++i) {
    const char c = input_.head[i];
    start += c >= ' ' && c <= '~' ? c : '.';
  }
  if (start.ends_with("ftyp")) {
    mp4_hint_ = input_.seekable()
                    ? "; its index is missing or damaged"
                    : "; an index at the end does not come through a pipe: give the path of the file";
  }
  io_ = make_avio(input_);
  packet_.reset(av_packet_alloc());
  frame_.reset(av_frame_alloc());
  AVFormatContext* raw = avformat_alloc_context();
  if (!io_ || !packet_ || !frame_ || raw == nullptr) throw std::bad_alloc();
  raw->pb = io_.get();
  raw->io_open = refuse_open;
  int code = avformat_open_input(&raw, nullptr, nullptr, nullptr);  // frees on failure
  format_.reset(raw);
  if (code == AVERROR_INVALIDDATA) {
    return read_error(
        ErrorCode::format, info_.name,
        "not a media file that FFmpeg knows, or a broken one (it starts with \"" + start + "\")" + mp4_hint_);
  }
  if (code >= 0) {
    discard_all_but_sound(format_.get());
    code = avformat_find_stream_info(format_.get(), nullptr);
  }
  if (code < 0) return read_error(ErrorCode::format, info_.name, "FFmpeg says " + ffmpeg_text(code));
  return {};
}

Result<void> FfmpegSource::open_decoder() {
  const AVCodec* codec = nullptr;
  const int best = av_find_best_stream(format_.get(), AVMEDIA_TYPE_AUDIO, -1, -1, &codec, 0);
  const auto count = std::count_if(format_->streams, format_->streams + format_->nb_streams, is_sound);
  if (count == 0) {
    return read_error(ErrorCode::format, info_.name,
                      std::string("there is no sound in it (container ") + format_->iformat->name + ", " +
                          std::to_string(format_->nb_streams) + " other streams)");
  }
  if (best < 0) {
    const auto* sound = *std::find_if(format_->streams, format_->streams + format_->nb_streams, is_sound);
    return read_error(ErrorCode::unsupported, info_.name,
                      std::string("no decoder for its sound (codec ") +
                          avcodec_get_name(sound->codecpar->codec_id) + ", container " +
                          format_->iformat->name + ")");
  }
  stream_ = format_->streams[best];
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    if (format_->streams[i] != stream_) format_->streams[i]->discard = AVDISCARD_ALL;
  }
  if (count > 1) {
    notes_.push_back("took sound stream " +
                     std::to_string(1 + std::count_if(format_->streams, format_->streams + best, is_sound)) +
                     " of " + std::to_string(count) + " (" + codec->name + ", " +
                     std::to_string(stream_->codecpar->ch_layout.nb_channels) + " channels)");
  }
  decoder_.reset(avcodec_alloc_context3(codec));
  if (!decoder_) throw std::bad_alloc();
  int code = avcodec_parameters_to_context(decoder_.get(), stream_->codecpar);
  decoder_->pkt_timebase = stream_->time_base;
  decoder_->request_sample_fmt = AV_SAMPLE_FMT_FLTP;
  decoder_->thread_count = 1;
  if (code >= 0) code = avcodec_open2(decoder_.get(), codec, nullptr);
  if (code < 0) {
    return read_error(
        ErrorCode::unsupported, info_.name,
        std::string("its sound (codec ") + codec->name + ") does not open: FFmpeg says " + ffmpeg_text(code));
  }
  info_.container = format_->iformat->name;
  info_.codec = codec->name;
  return {};
}

Result<void> FfmpegSource::open_first_frame() {
  if (!next_frame()) {
    return read_error(ErrorCode::format, info_.name,
                      "its sound (codec " + info_.codec + ") does not decode" +
                          (first_trouble_.empty() ? ": there is none" : ": FFmpeg says " + first_trouble_) +
                          mp4_hint_);
  }
  info_.sample_rate_hz = frame_->sample_rate;
  info_.channels = frame_->ch_layout.nb_channels;
  if (info_.sample_rate_hz < 1 || info_.channels < 1) {
    return read_error(ErrorCode::format, info_.name, "its sound has no rate or no channels");
  }
  if (stream_->duration != AV_NOPTS_VALUE && stream_->duration >= 0) {
    info_.duration_s = static_cast<double>(stream_->duration) * av_q2d(stream_->time_base);
  } else if (format_->duration != AV_NOPTS_VALUE && format_->duration >= 0) {
    info_.duration_s = static_cast<double>(format_->duration) / AV_TIME_BASE;
  }
  return {};
}

// Gives the decoder one packet of the stream, or tells it that there are no more.
void FfmpegSource::feed_decoder() {
  int tries = 0;
  int code = 0;
  do {
    av_packet_unref(packet_.get());
    code = av_read_frame(format_.get(), packet_.get());
  } while ((code == AVERROR(EAGAIN) && ++tries < kMaxTries) ||
           (code >= 0 && packet_->stream_index != stream_->index));
  if (code < 0) {
    if (code != AVERROR_EOF && first_trouble_.empty()) first_trouble_ = ffmpeg_text(code);
    input_over_ = true;
    avcodec_send_packet(decoder_.get(), nullptr);
    return;
  }
  if (packet_->pts != AV_NOPTS_VALUE && packet_->duration > 0)
    packets_end_ = packet_->pts + packet_->duration;
  code = avcodec_send_packet(decoder_.get(), packet_.get());
  av_packet_unref(packet_.get());
  if (code < 0 && code != AVERROR_EOF) {
    ++bad_packets_;
    if (first_trouble_.empty()) first_trouble_ = ffmpeg_text(code);
  }
}

// An MP4 tells the length of its last packet, which FFmpeg's decoders fill to a whole frame. Only where the
// time base counts whole frames exactly: elsewhere a rounded duration would cut into every frame.
void FfmpegSource::cut_padding() {
  const AVRational tick = stream_->time_base;
  const int64_t ticks_per_rate = int64_t{tick.num} * frame_->sample_rate;
  if (!info_.container.starts_with("mov") || decoder_->frame_size <= 0 || ticks_per_rate <= 0 ||
      int64_t{decoder_->frame_size} * tick.den % ticks_per_rate != 0 || frame_->pts == AV_NOPTS_VALUE) {
    return;
  }
  const int64_t left = av_rescale_q(packets_end_ - frame_->pts, tick, AVRational{1, frame_->sample_rate});
  if (left >= 0 && left < frame_->nb_samples) frame_->nb_samples = static_cast<int>(left);
}

// The next decoded frame that has samples; false at the end.
bool FfmpegSource::next_frame() {
  frame_at_ = 0;
  for (;;) {
    const int code = avcodec_receive_frame(decoder_.get(), frame_.get());
    if (code >= 0) cut_padding();
    if (code >= 0 && frame_->nb_samples > 0) return true;
    if (code >= 0) continue;
    if (code != AVERROR(EAGAIN) && code != AVERROR_EOF) {
      ++bad_packets_;
      if (first_trouble_.empty()) first_trouble_ = ffmpeg_text(code);
    }
    if (code == AVERROR_EOF || input_over_) {
      av_frame_unref(frame_.get());
      return false;
    }
    feed_decoder();
  }
}

// How much is missing against a header that is known to count what is there; empty when nothing.
std::string FfmpegSource::missing_sound() const {
  const std::string_view container = info_.container;
  const bool counted = container.starts_with("mov") || container == "mp3" || container == "flac" ||
                       container == "aiff" || container == "wav";
  if (!counted || !info_.duration_s || format_->duration_estimation_method == AVFMT_DURATION_FROM_BITRATE)
    return "";
  const double bytes = *info_.duration_s * info_.sample_rate_hz * std::max(1, stream_->codecpar->block_align);
  if (container == "wav" && bytes > 0x7fff0000) return "";  // "until the end", as a pipe's header says
  const double seconds = static_cast<double>(given_) / info_.sample_rate_hz;
  if (seconds >= *info_.duration_s - kLengthSlack) return "";
  return "its header promises " + std::to_string(*info_.duration_s) + " s of sound, " +
         std::to_string(seconds) + " s are there";
}

Result<size_t> FfmpegSource::end() {
  over_ = true;
  const std::string read = "; " + std::to_string(given_) + " frames were read";
  if (bad_packets_ > 0) {
    return damage(info_.name, std::to_string(bad_packets_) +
                                  " packets of sound did not decode (FFmpeg says " + first_trouble_ + ")" +
                                  read);
  }
  if (!first_trouble_.empty()) return damage(info_.name, "FFmpeg says " + first_trouble_ + read);
  if (const auto missing = missing_sound(); !missing.empty()) return damage(info_.name, missing + read);
  return size_t{0};
}

Result<size_t> FfmpegSource::read(std::span<float> out) {
  if (over_) return size_t{0};
  if (frame_at_ >= frame_->nb_samples && !next_frame()) return end();
  if (frame_->sample_rate != info_.sample_rate_hz || frame_->ch_layout.nb_channels != info_.channels) {
    over_ = true;
    return damage(info_.name, "it changes from " + std::to_string(info_.sample_rate_hz) + " Hz, " +
                                  std::to_string(info_.channels) + " channels to " +
                                  std::to_string(frame_->sample_rate) + " Hz, " +
                                  std::to_string(frame_->ch_layout.nb_channels) + " channels after " +
                                  std::to_string(given_) + " frames");
  }
  const auto room = out.size() / static_cast<size_t>(info_.channels);
  const int n = static_cast<int>(std::min<size_t>(room, static_cast<size_t>(frame_->nb_samples - frame_at_)));
  if (!frame_to_float(*frame_, frame_at_, n, out.data())) {
    over_ = true;
    return read_error(ErrorCode::unsupported, info_.name, "its decoder gives an unknown sample format");
  }
  frame_at_ += n;
  given_ += n;
  return static_cast<size_t>(n);
}

}  // namespace tessera
