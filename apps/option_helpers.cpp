#include "apps/option_helpers.h"

namespace tessera::app {

CLI::Option* add_count(CLI::App& app, const std::string& name, int& value, int least,
                       const std::string& help) {
  constexpr int kMost = 65536;
  return app
      .add_option_function<std::string>(
          name,
          [&value, least, name](const std::string& text) {
            int number = 0;
            if (!CLI::detail::lexical_cast(text, number) || number < least || number > kMost) {
              throw CLI::ValidationError(name, "expected a whole number from " + std::to_string(least) +
                                                   " to " + std::to_string(kMost) + ", got " + text);
            }
            value = number;
          },
          help)
      ->type_name("N");
}

void add_report(CLI::App& app, ReportOptions& report, bool is_query) {
  app.add_flag("--json", report.json, "Print the result as one JSON object on standard output");
  if (!is_query) app.add_flag("-q,--quiet", report.quiet, "Print nothing but errors and warnings");
}

}  // namespace tessera::app
