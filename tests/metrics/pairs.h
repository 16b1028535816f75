// Ten real pairs with their scores by independent programs: pystoi 0.4.1 for STOI, and the formulas of the
// headers in NumPy for the rest.
#pragma once

#include "tests/metrics/support.h"

namespace tessera::test {

struct ScoredPair {
  const char *first, *second;
  float factor;  ///< degraded: first + factor * second; 0: the second recording itself
  double stoi, estoi, si_sdr, snr, lsd, mel_distance;
};

constexpr ScoredPair kPairs[] = {
    {"data/speech16/test_libri_tc/103-1240-0000.flac", "data/speech16/test_libri_tc/1235-135883-0000.flac",
     0.05f, 0.9762384, 0.9319508, 28.847797, 28.847088, 0.140630, 0.024076},
    {"data/speech16/test_libri_tc/1235-135883-0000.flac", "data/speech16/test_libri_tc/1502-122615-0000.flac",
     0.3f, 0.7283411, 0.5916569, 2.696527, 2.700803, 0.806199, 0.251337},
    {"data/speech16/test_libri_tc/1502-122615-0000.flac", "data/speech16/test_libri_tc/1867-148436-0000.flac",
     1.0f, 0.5927631, 0.4816068, 1.241662, 1.220883, 1.563325, 0.528665},
    {"data/speech16/test_libri_tc/1867-148436-0000.flac", "data/speech16/test_libri_tc/103-1240-0000.flac",
     3.0f, 0.6471750, 0.4123580, -5.971156, -5.965008, 1.411187, 0.575547},
    {"data/speech16/test_so762/000240010.flac", "data/speech16/test_so762/003060002.flac", 0.5f, 0.8908018,
     0.6886943, 5.628931, 5.595394, 0.954058, 0.348208},
    {"data/speech16/test_so762/003060002.flac", "data/speech16/test_libri_tc/103-1240-0000.flac", 0.2f,
     0.9692258, 0.9219141, 22.505230, 22.505758, 0.659124, 0.126142},
    {"data/audio44/esc10/002_-_Rain/1-17367-A.ogg", "data/audio44/esc10/003_-_Sea_waves/1-28135-A.ogg", 0.1f,
     0.9070947, 0.8991798, 18.768262, 18.766922, 3.100919, 0.168144},
    {"metrics/visqol/strauss48_stereo.flac", "metrics/visqol/CA01_01.flac", 0.4f, 0.9903885, 0.9878238,
     22.689147, 22.691600, 0.508665, 0.019505},
    {"metrics/visqol/CA01_01.flac", "metrics/visqol/transcoded_CA01_01.flac", 0.0f, 0.9230732, 0.8775865,
     7.384961, 8.095257, 3.003780, 0.433754},
    {"metrics/visqol/guitar48_stereo.flac", "metrics/visqol/guitar48_stereo_64kbps_aac.flac", 0.0f, 0.0837872,
     0.0864141, -17.484132, -3.536074, 1.573644, 0.387825},
};

/// Reference and degraded sound, equally long.
struct SoundPair {
  std::vector<float> reference = {}, degraded = {};
  int rate_hz = 0;
};

inline SoundPair sounds_of(const ScoredPair& pair) {
  const Recording a = read_recording(pair.first), b = read_recording(pair.second);
  SoundPair sounds;
  sounds.reference = a.samples;
  sounds.degraded = pair.factor == 0 ? b.samples : mixed(a.samples, b.samples, pair.factor);
  const std::size_t length = std::min(sounds.reference.size(), sounds.degraded.size());
  sounds.reference.resize(length);
  sounds.degraded.resize(length);
  sounds.rate_hz = a.rate_hz;
  return sounds;
}

}  // namespace tessera::test
