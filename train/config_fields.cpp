#include "train/config_fields.h"

#include <utility>

#include "quantizers/path_search.h"

namespace tessera::train {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();

class Builder {
 public:
  void section(std::string name, std::string help) {
    table.sections.push_back({std::move(name), std::move(help)});
  }
  template <class T>
  void add(std::string key, T& value, Range range, std::string help) {
    push(std::move(key), &value, range, std::move(help));
  }
  template <class T>
  void add(std::string key, T& value, std::string help) {
    push(std::move(key), &value, {}, std::move(help));
  }
  /// `names` of the enum's values, in their order.
  template <class Enum>
  void choose(std::string key, Enum& value, std::vector<std::string> names, std::string help) {
    Choice choice;
    choice.names = std::move(names);
    choice.get = [&value] { return static_cast<std::size_t>(value); };
    choice.set = [&value](std::size_t i) { value = static_cast<Enum>(i); };
    push(std::move(key), std::move(choice), {}, std::move(help));
  }
  void require() { table.fields.back().required = true; }

  ConfigTable table;

 private:
  void push(std::string key, FieldValue value, Range range, std::string help) {
    Field field;
    field.section = table.sections.back().name;
    field.key = std::move(key);
    field.value = std::move(value);
    field.range = range;
    field.help = std::move(help);
    table.fields.push_back(std::move(field));
  }
};

void add_model(Builder& t, ModelConfig& c) {
  t.section("model", "the codec");
  t.add("sample_rate_hz", c.sample_rate_hz, {8000, 48000}, "of the sound, mono");
  t.add("hop", c.hop, {16, 4096}, "samples per row of the transform, an MDCT with a window of two hops");
  t.add("rows", c.rows, {1, 64}, "rows of the transform per frame of the codec");
  t.add("bands", c.bands, {1, 256},
        "of a row, each with a gain of its own; none is narrower than 4 coefficients");
  t.add("channels", c.channels, {8, 8192}, "width of the residual blocks");
  t.add("latent", c.latent, {1, 8192}, "floats of a latent");
  t.add("encoder", c.encoder, {1, 4096}, "dilations of the encoder's residual blocks, one each");
  t.add("decoder", c.decoder, {1, 4096}, "dilations of the decoder's");
  t.add("pitch_filter", c.pitch_filter, "behind it: averages over neighbouring periods of voiced sound");
  t.add("spectral_smoother", c.spectral_smoother,
        "behind that: smooths magnitudes of the low spectrum over time");
  t.add("kernel", c.kernel, {1, 64}, "taps of a residual block's convolution");
  t.choose("quantizer", c.quantizer, {"residual", "factorized"},
           "plain residual, or searched in a few dimensions");
  t.add("codebooks", c.codebooks, {1, 64}, "one token of each per frame");
  t.add("codebook_size", c.codebook_size, {2, 65536}, "codewords of each");
  t.add("code_dimension", c.code_dimension, {1, 8192}, "where a factorized quantizer searches");
  t.add("search_paths", c.search_paths, {1, kMaxSearchPaths},
        "sums of codewords that a residual quantizer's search follows; 1: the nearest of each codebook");
  t.choose("start", c.start, {"transform", "random"},
           "first weights: act as a plain transform codec, or noise");
  t.add("from", c.from, "model file to start from instead; empty: none");
}

void add_data(Builder& t, DataConfig& c) {
  t.section("data", "the recordings; paths are relative to the working directory");
  t.add("train", c.train, "folders, list files or recordings to train on");
  t.require();
  t.add("heldout", c.heldout, "those to evaluate on; empty: train, too");
  t.add("exclude", c.exclude, "patterns of names to leave out");
  t.add("cache", c.cache, "folder of decoded recordings; empty: beside the run");
  t.add("seconds", c.seconds, {0.05, 60}, "length of a crop");
  t.add("batch", c.batch, {1, 4096}, "crops per step");
  t.add("gain_db", c.gain_db, {-60, 60}, "a crop's gain is drawn from here; never lifts its peak above 1");
  t.add("flip_polarity", c.flip_polarity, "of half of the crops");
  t.add("skip_silence_db", c.skip_silence_db, {-200, 0}, "quieter crops (dB of full scale) are drawn again");
  t.add("quiet_fraction", c.quiet_fraction, {0, 1}, "part of the crops taken however quiet");
  t.add("noise_db", c.noise_db, {-200, 0}, "white noise on top, dB of full scale; -200: none");
  t.add("mix_fraction", c.mix_fraction, {0, 1}, "part of the crops to which another is added");
  t.add("mix_db", c.mix_db, {-60, 60}, "its level relative to theirs is drawn from here");
  t.add("memory_mib", c.memory_mib, {0, 1 << 20},
        "sound held in memory; larger sets are mapped from the cache");
  t.add("refused_limit", c.refused_limit, {0, 1}, "part of the recordings that may be unreadable");
}

void add_losses(Builder& t, LossConfig& c) {
  t.section("losses", "weights of the loss terms; 0 leaves one out");
  t.add("normalized_error", c.normalized_error, {0, kAny}, "squared error of the waveform over its energy");
  t.add("pre_emphasized", c.pre_emphasized, {0, kAny}, "the same after a first difference");
  t.add("log_mel", c.log_mel, {0, kAny}, "distance of log-mel spectra, all windows");
  t.add("log_mel_start", c.log_mel_start, {0, kAny}, "first step of log_mel, envelope and stft");
  t.add("mel_windows", c.mel_windows, {64, 4096}, "samples of their windows, even");
  t.add("envelope", c.envelope, {0, kAny}, "log power in 20 mel bands: levels, not fine structure");
  t.add("stft", c.stft, {0, kAny}, "spectral convergence and log magnitude, all windows");
  t.add("commitment", c.commitment, {0, kAny}, "latent to its codewords");
  t.add("adversarial", c.adversarial, {0, kAny}, "fooling the discriminators");
  t.add("feature_matching", c.feature_matching, {0, kAny}, "their hidden layers alike");
  t.add("distillation", c.distillation, {0, kAny}, "first codebook to the teacher");
  t.add("balancer", c.balancer, "weights as shares of the gradient's norm at the output");
}

void add_quantizer(Builder& t, QuantizerConfig& c) {
  t.section("quantizer", "learning of the codebooks");
  t.add("decay", c.decay, {0, 0.999999}, "of the codewords' moving average");
  t.add("dead_below", c.dead_below, {0, 1}, "codewords with less of an even share are replaced; 0: none");
  t.add("codebook_gradient", c.codebook_gradient, "codewords learn by a loss instead of the average");
  t.add("keep_all", c.keep_all, {0, 1}, "part of the crops coded with all codebooks");
  t.add("choices", c.choices, {1, 64}, "numbers of codebooks that the others use; []: 1 to all");
}

void add_discriminators(Builder& t, DiscriminatorConfig& c) {
  t.section("discriminators", "what tells recordings from decoded sound");
  t.add("stft", c.stft, {16, 4096}, "windows of the spectral ones, powers of two; [] for none");
  t.add("periods", c.periods, {1, 1000}, "of the periodic ones, samples; [] for none");
  t.add("channels", c.channels, {1, 1024}, "width");
  t.add("bands", c.bands, {0, 1},
        "upper edges of the spectral ones' bands, rising; what lies above is not judged");
  t.add("compressed", c.compressed, "the spectral ones see the fourth root of magnitudes");
  t.choose("loss", c.loss, {"hinge", "hinge_linear", "least_squares"}, "of both sides of the game");
  t.add("seconds", c.seconds, {0, 60},
        "of each crop that they see, from a point drawn per step; 0: all of it");
  t.add("start_step", c.start_step, {0, kAny}, "first step of the adversarial terms");
  t.add("lead_steps", c.lead_steps, {0, kAny}, "steps before it in which they learn already");
  t.add("every", c.every, {1, 1000}, "steps between updates of the discriminators");
}

void add_teacher(Builder& t, TeacherConfig& c) {
  t.section("teacher", "a model of what is said, for losses.distillation");
  t.choose("kind", c.kind, {"none", "speech_embedding", "features"}, "features: one file per recording");
  t.add("path", c.path, "its weights, or the folder of the features");
  t.add("frame_rate_hz", c.frame_rate_hz, {0.1, 1000}, "of feature files");
}

void add_optimizer(Builder& t, OptimizerConfig& c) {
  t.add("learning_rate", c.learning_rate, {0, 10}, "after the warm-up");
  t.add("betas", c.betas, {0, 0.999999}, "decay of the moments");
  t.add("epsilon", c.epsilon, {1e-30, 1}, "added to the root of the second moment");
  t.add("weight_decay", c.weight_decay, {0, 10}, "not of biases");
  t.add("clip", c.clip, {0, kAny}, "largest norm of the gradient; 0: any");
  t.add("warmup_steps", c.warmup_steps, {0, kAny}, "learning rate rises from 0");
  t.choose("schedule", c.schedule, {"constant", "linear", "cosine"}, "after that, until run.steps");
  t.add("floor", c.floor, {0, 1}, "last learning rate, as a part of the first");
}

void add_run(Builder& t, RunConfig& c) {
  t.section("run", "the run itself");
  t.add("steps", c.steps, {1, 1e12}, "in all");
  t.add("seed", c.seed, {0, 9007199254740992}, "of everything that is drawn");
  t.add("threads", c.threads, {0, 1024}, "0: all cores; the result is the same for every number");
  t.choose("precision", c.precision, {"f32", "bf16"}, "what products multiply; sums are f32");
  t.add("recompute", c.recompute, "less memory, a third more time");
  t.add("log_every", c.log_every, {1, 1e9}, "steps between rows of the log");
  t.add("examples_every", c.examples_every, {0, 1e9}, "between evaluations with examples; 0: only the last");
  t.add("checkpoint_every", c.checkpoint_every, {1, 1e9}, "between checkpoints");
  t.add("keep", c.keep, {1, 1e6}, "the newest checkpoints that stay");
  t.add("keep_every", c.keep_every, {0, kAny}, "and those of multiples of this step; 0: none");
}

}  // namespace

ConfigTable table_of(TrainConfig& config) {
  Builder t;
  add_model(t, config.model);
  add_data(t, config.data);
  add_losses(t, config.losses);
  add_quantizer(t, config.quantizer);
  add_discriminators(t, config.discriminators);
  add_teacher(t, config.teacher);
  t.section("optimizer", "of the model: AdamW");
  add_optimizer(t, config.optimizer);
  t.add("encoder_factor", config.optimizer.encoder_factor, {0, 100}, "of the encoder's learning rate");
  t.add("ema", config.optimizer.ema, {0, 0.999999}, "decay of the averaged weights that are exported");
  t.section("discriminator_optimizer", "of the discriminators: AdamW");
  add_optimizer(t, config.discriminator_optimizer);
  add_run(t, config.run);
  return std::move(t.table);
}

}  // namespace tessera::train
