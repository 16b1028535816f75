#include "train/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/train/run_support.h"
#include "train/config_fields.h"
#include "train/config_options.h"

namespace tessera::train {
namespace {

const std::string kData = R"("data": {"train": ["a"]})";

std::string error_of(const std::string& text) {
  const auto config = parse_config(text, "config.json");
  if (config) return "none";
  EXPECT_EQ(config.error().code, ErrorCode::usage);
  return config.error().message;
}

TEST(Config, ReadsWhatIsGivenAndKeepsTheRest) {
  const TrainConfig config = parse_config(R"({
    // a comment
    "model": {"encoder": [1, 3], "quantizer": "factorized", "latent": 64},
    "data": {"train": ["a", "b"], "gain_db": [-3, 0.5]},
    "losses": {"log_mel": 0, "balancer": true},
    "run": {"steps": 50, "seed": 9007199254740992, "precision": "bf16"}
  })",
                                          "config.json")
                                 .value();
  EXPECT_EQ(config.model.encoder, (std::vector<int>{1, 3}));
  EXPECT_EQ(config.model.quantizer, ModelConfig::Quantizer::factorized);
  EXPECT_EQ(config.model.latent, 64);
  EXPECT_EQ(config.model.decoder, TrainConfig().model.decoder);
  EXPECT_EQ(config.data.train, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(config.data.gain_db, (std::array<double, 2>{-3, 0.5}));
  EXPECT_EQ(config.losses.log_mel, 0);
  EXPECT_TRUE(config.losses.balancer);
  EXPECT_EQ(config.run.steps, 50);
  EXPECT_EQ(config.run.seed, 9007199254740992);
  EXPECT_EQ(config.run.precision, Precision::bf16);
}

TEST(Config, ErrorsNameThePlace) {
  EXPECT_EQ(error_of(R"({"losses": {"log_mell": 1}})"),
            "config.json: losses: unknown key \"log_mell\"; did you mean \"log_mel\"?");
  EXPECT_EQ(error_of(R"({"loses": {}})"), "config.json: unknown section \"loses\"; did you mean \"losses\"?");
  EXPECT_EQ(error_of(R"({"model": {"checkpoint_every": 1}})"),
            "config.json: model: unknown key \"checkpoint_every\"; it belongs to \"run\"");
  EXPECT_EQ(error_of(R"({"model": {"zzzzzzzz": 1}})"), "config.json: model: unknown key \"zzzzzzzz\"");
  EXPECT_EQ(error_of(R"({"model": {"hop": "x"}})"),
            "config.json: model: hop: expected a whole number from 16 to 4096, got \"x\"");
  EXPECT_EQ(error_of(R"({"model": {"hop": 15}})"),
            "config.json: model: hop: expected a whole number from 16 to 4096, got 15");
  EXPECT_EQ(error_of(R"({"model": {"hop": 320.5}})"),
            "config.json: model: hop: expected a whole number from 16 to 4096, got 320.5");
  EXPECT_EQ(error_of(R"({"model": {"encoder": [1, 0]}})"),
            "config.json: model: encoder: expected a list of whole numbers from 1 to 4096, got [1,0]");
  EXPECT_EQ(error_of(R"({"model": {"start": "cold"}})"),
            "config.json: model: start: expected \"transform\" or \"random\", got \"cold\"");
  EXPECT_EQ(error_of(R"({"losses": {"stft": -1}})"),
            "config.json: losses: stft: expected a number, 0 or more, got -1");
  EXPECT_EQ(error_of(R"({"losses": {"balancer": 1}})"),
            "config.json: losses: balancer: expected true or false, got 1");
  EXPECT_EQ(error_of(R"({"data": {"gain_db": [1]}})"),
            "config.json: data: gain_db: expected a pair of numbers from -60 to 60, got [1]");
  EXPECT_EQ(error_of(R"({"run": {"keep_every": 18446744073709551615}})"),
            "config.json: run: keep_every: expected a whole number, 0 or more, got 18446744073709551615");
  EXPECT_EQ(error_of(R"({"run": 3})"), "config.json: run: expected an object, got number");
  EXPECT_EQ(error_of("[]"), "config.json: expected an object of sections, got array");
  EXPECT_EQ(error_of(R"({"run": {"keep": 1, "keep": 2}})"), "config.json: the key \"keep\" comes twice");
  EXPECT_EQ(error_of("{\n\"run\" {}}").substr(0, 42), "config.json: expected JSON: line 2, column");
  EXPECT_NE(error_of(std::string(2 << 20, ' ')).find("expected at most 1 MiB"), std::string::npos);
  EXPECT_NE(error_of(std::string(100000, '[')).find("expected JSON"), std::string::npos);
}

TEST(Config, ErrorsOfValuesThatDoNotFitOneAnother) {
  EXPECT_EQ(error_of("{}"), "config.json: data: train: expected at least one folder or recording, got none");
  EXPECT_EQ(error_of("{" + kData + R"(, "model": {"latent": 400}})"),
            "config.json: model: latent: expected at most channels (512) and rows x hop (320), got 400");
  EXPECT_EQ(error_of("{" + kData + R"(, "losses": {"distillation": 1}})"),
            "config.json: teacher: kind: expected a teacher for losses.distillation above 0, got \"none\"");
  EXPECT_EQ(error_of("{" + kData + R"(, "teacher": {"kind": "features"}})"),
            "config.json: teacher: path: expected one for this kind, got none");
  EXPECT_EQ(error_of("{" + kData + R"(, "discriminators": {"stft": [500]}})"),
            "config.json: discriminators: stft: expected powers of two, got 500");
  EXPECT_EQ(error_of("{" + kData + R"(, "discriminators": {"bands": [0.5, 0.5, 1]}})"),
            "config.json: discriminators: bands: expected edges that rise");
  EXPECT_EQ(error_of("{" + kData + R"(, "quantizer": {"choices": [4, 20]}})"),
            "config.json: quantizer: choices: expected at most model.codebooks (16), got 20");
  EXPECT_EQ(error_of(R"({"data": {"train": ["a"], "mix_db": [3, 1]}})"),
            "config.json: data: mix_db: expected the lower level first");
}

TEST(Config, CropsMustHoldTheSpectra) {
  EXPECT_EQ(error_of(R"({"data": {"train": ["a"], "seconds": 0.05}, "losses": {"mel_windows": [2048]}})"),
            "config.json: data: seconds: expected crops of more than half the longest of losses.mel_windows "
            "(2048 samples), got 960 samples");
  EXPECT_EQ(
      error_of(R"({"data": {"train": ["a"], "seconds": 0.05}, "losses": {"envelope": 1},
                         "model": {"sample_rate_hz": 8000, "hop": 40, "latent": 16}})"),
      "config.json: data: seconds: expected crops of more than 512 samples for losses.envelope above 0, "
      "got 400 samples");
  EXPECT_EQ(error_of("{" + kData + R"(, "losses": {"mel_windows": [65]}})"),
            "config.json: losses: mel_windows: expected even lengths, got 65");
  EXPECT_EQ(error_of("{" + kData + R"(, "losses": {"mel_windows": []}})"),
            "config.json: losses: mel_windows: expected at least one for log_mel or stft above 0, got none");
}

TEST(Config, TheDefaultConfigurationIsComplete) {
  const std::string text = default_config();
  TrainConfig expected;
  expected.data.train = {"recordings"};
  EXPECT_EQ(to_json(parse_config(text, "default").value()), to_json(expected));
  const std::string help = config_help();
  TrainConfig config;
  for (const Field& field : table_of(config).fields) {
    EXPECT_NE(text.find("\"" + field.key + "\": "), std::string::npos) << field.key;
    EXPECT_NE(help.find("  " + field.key + " "), std::string::npos) << field.key;
    EXPECT_FALSE(field.help.empty()) << field.key;
  }
  EXPECT_NE(help.find("a whole number from 16 to 4096; default 320"), std::string::npos);
  EXPECT_NE(help.find("a list of texts; required"), std::string::npos);
}

// Each key, changed alone, is written and read again; keys of a section are distinct.
TEST(Config, EveryKeyMakesTheRoundTrip) {
  TrainConfig defaults;
  defaults.data.train = {"recordings"};
  const auto plain = nlohmann::json::parse(to_json(defaults));
  std::set<std::string> seen;
  for (const Field& field : table_of(defaults).fields) {
    EXPECT_TRUE(seen.insert(field.section + "." + field.key).second) << field.key;
    EXPECT_TRUE(plain.at(field.section).contains(field.key)) << field.key;
  }
  std::size_t keys = 0;
  for (const auto& section : plain) keys += section.size();
  EXPECT_EQ(keys, seen.size());

  auto changed = plain;
  changed["model"]["channels"] = 160;
  changed["optimizer"]["betas"] = {0.5, 0.75};
  changed["optimizer"]["encoder_factor"] = 0.15;
  changed["discriminator_optimizer"]["schedule"] = "linear";
  changed["data"]["heldout"] = {"quote\"\\ü"};
  changed["run"]["recompute"] = true;
  const TrainConfig config = parse_config(changed.dump(), "changed").value();
  EXPECT_EQ(nlohmann::json::parse(to_json(config)), changed);
  EXPECT_EQ(config.optimizer.encoder_factor, 0.15);
  EXPECT_EQ(config.discriminator_optimizer.schedule, ScheduleShape::linear);
  EXPECT_EQ(config.optimizer.schedule, ScheduleShape::cosine);
}

TEST(Config, ReadsAFile) {
  const test::RunFolder folder("config");
  test::write_text(folder / "c.json", "{" + kData + "}");
  EXPECT_EQ(read_config(folder / "c.json").value().data.train.size(), 1u);
  EXPECT_EQ(read_config(folder / "none.json").error().code, ErrorCode::io);
  EXPECT_FALSE(read_config(folder.path()));
}

TEST(ConfigOptions, ConfigureTheParts) {
  TrainConfig config = parse_config(R"({
    "data": {"train": ["a"], "seconds": 0.51, "batch": 3, "noise_db": -60, "memory_mib": 1, "exclude": ["x*"]},
    "optimizer": {"encoder_factor": 0.15, "betas": [0.5, 0.6], "learning_rate": 0.25, "warmup_steps": 7},
    "quantizer": {"choices": [2]},
    "discriminators": {"stft": [64], "periods": [3], "channels": 5}})",
                                    "c")
                           .value();
  const CropOptions crops = crop_options(config);
  EXPECT_EQ(crops.length, 26 * 320);
  EXPECT_EQ(crops.batch, 3);
  EXPECT_EQ(crops.noise_dbfs, -60);
  config.data.noise_db = -200;
  EXPECT_FALSE(crop_options(config).noise_dbfs);
  const DatasetOptions data = dataset_options(config, config.data.train, "beside");
  EXPECT_EQ(data.cache_folder, "beside");
  EXPECT_EQ(data.memory_limit_bytes, 1 << 20);
  EXPECT_EQ(data.sources.sources, config.data.train);
  EXPECT_EQ(data.sources.exclude, config.data.exclude);
  const AdamWOptions adamw = adamw_options(config.optimizer);
  ASSERT_EQ(adamw.groups.size(), 1u);
  EXPECT_EQ(adamw.groups[0].prefix, "encoder.");
  EXPECT_EQ(adamw.groups[0].learning_rate, 0.15);
  EXPECT_EQ(adamw.beta2, 0.6);
  EXPECT_TRUE(adamw_options(config.discriminator_optimizer).groups.empty());
  EXPECT_EQ(schedule_of(config.optimizer, 99).steps, 99);
  EXPECT_EQ(schedule_of(config.optimizer, 99).warmup_steps, 7);
  EXPECT_EQ(learning_rate(schedule_of(config.optimizer, 99), 6), 0.25);
  EXPECT_EQ(quantizer_learner_options(config).dimension, 128);
  EXPECT_EQ(dropout_options(config.quantizer).choices, (std::vector<int>{2}));
  EXPECT_EQ(log_mel_loss_options(config).scales.size(), config.losses.mel_windows.size());
  EXPECT_EQ(stft_loss_options(config.losses).windows, config.losses.mel_windows);
  EXPECT_EQ(stft_discriminator_config(config.discriminators).windows, (std::vector<int>{64}));
  EXPECT_EQ(period_discriminator_config(config.discriminators).channels, 5);
}

}  // namespace
}  // namespace tessera::train
