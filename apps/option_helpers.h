// What the sub-commands' options share. Values with names are turned into enums here, so that a wrong one is
// answered with the list of right ones.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "apps/options.h"

namespace tessera::app {

template <class T>
using Choice = std::pair<std::string_view, T>;

/// An option whose value is one of a few words.
template <class T, std::size_t N>
CLI::Option* add_choice(CLI::App& app, const std::string& name, T& value,
                        const std::array<Choice<T>, N>& choices, const std::string& help) {
  std::string words, alternatives;
  for (std::size_t i = 0; i < N; ++i) {
    words += (i ? (i + 1 == N ? " or " : ", ") : "") + std::string(choices[i].first);
    alternatives += (i ? "|" : "") + std::string(choices[i].first);
  }
  return app
      .add_option_function<std::string>(
          name,
          [&value, choices, words, name](const std::string& word) {
            for (const auto& [text, choice] : choices) {
              if (text == word) {
                value = choice;
                return;
              }
            }
            throw CLI::ValidationError(name, "expected " + words + ", got " + word);
          },
          help)
      ->type_name(alternatives);
}

/// A whole number from `least` on.
CLI::Option* add_count(CLI::App& app, const std::string& name, int& value, int least,
                       const std::string& help);
/// --json, and --quiet unless the command only answers a question.
void add_report(CLI::App& app, ReportOptions& report, bool is_query);

/// The sub-commands that have files of their own.
CLI::App* add_train(CLI::App& app, TrainOptions& options);
CLI::App* add_bench(CLI::App& app, BenchOptions& options);

}  // namespace tessera::app
