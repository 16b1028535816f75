// What libtessera_ffmpeg.so exports.
#include "codec/media/ffmpeg/ffmpeg_source.h"

extern "C" {

__attribute__((visibility("default"))) int tessera_media_module_version() {
  return tessera::kMediaModuleVersion;
}

__attribute__((visibility("default"))) tessera::AudioSource* tessera_media_module_open(
    tessera::MediaInput& input, tessera::Error& error) {
  av_log_set_level(AV_LOG_QUIET);  // FFmpeg talks to stderr otherwise; what matters comes back as an Error
  auto source = tessera::FfmpegSource::open(std::move(input));
  if (source) return (*source).release();
  error = source.error();
  return nullptr;
}

}  // extern "C"
