#include "metrics/metric.h"

namespace tessera::metrics {
namespace {

constexpr std::string_view kDnsmosFile = "dnsmos/dnsmos_p835.safetensors";

constexpr MetricInfo kMetrics[] = {
    {"visqol_speech", "MOS", Better::higher, 16000, "visqol/visqol_lattice.tflite",
     "Predicts listeners' opinion of speech from spectral similarity: sees noise and lost bandwidth, not "
     "level "
     "or polarity; underrates resynthesized voices."},
    {"visqol_speech_exponential", "MOS", Better::higher, 16000, "",
     "The older mapping of the same similarity: needs no file, rates degraded speech one or two points too "
     "high."},
    {"visqol_audio", "MOS", Better::higher, 48000, "visqol/libsvm_nu_svr_model.txt",
     "Predicts listeners' opinion of music and any sound at 48 kHz; counts missing treble heavily, so speech "
     "codecs of narrow band score near 1."},
    {"stoi", "", Better::higher, 0, "",
     "Follows how many words are understood below 5 kHz; close to 1 for all good codecs, blind to timbre and "
     "level."},
    {"estoi", "", Better::higher, 0, "",
     "As STOI, and it also sees what gaps and fluctuations do; falls faster at low rates."},
    {"si_sdr", "dB", Better::higher, 0, "",
     "Waveform match up to a factor of either sign: exact for waveform codecs, meaningless for generative "
     "ones."},
    {"snr", "dB", Better::higher, 0, "",
     "Waveform match including level and polarity; as strict as si_sdr on phase."},
    {"lsd", "log10", Better::lower, 0, "",
     "Distance of log spectra bin by bin: sees level and lost treble, blind to phase; quiet bins weigh as "
     "much as loud ones."},
    {"mel_distance", "log10", Better::lower, 0, "",
     "Distance of log mel spectra at six scales, as codecs are trained: falls with training whether or not "
     "listeners agree."},
    {"dnsmos_sig", "MOS", Better::higher, 16000, kDnsmosFile,
     "Predicts how natural the voice sounds without a reference: cannot notice wrong words or another "
     "voice."},
    {"dnsmos_bak", "MOS", Better::higher, 16000, kDnsmosFile,
     "Predicts how little background noise disturbs: a codec that removes the recording's noise gains."},
    {"dnsmos_ovr", "MOS", Better::higher, 16000, kDnsmosFile,
     "Predicts overall quality without a reference: fit for generative codecs, beside a metric that checks "
     "the content."},
    {"phone_error", "%", Better::lower, 16000, "",
     "Frames within phones in which a small classifier hears another phone than was aligned: follows wrong "
     "and "
     "blurred sounds, blind to voice, level and noise in pauses; it errs on the original, too, so compare "
     "with "
     "the codec identity. English only."},
};

}  // namespace

std::span<const MetricInfo> all_metrics() {
  return kMetrics;
}

const MetricInfo* find_metric(std::string_view name) {
  for (const MetricInfo& metric : kMetrics) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

}  // namespace tessera::metrics
