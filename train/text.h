// Numbers as text, for logs, reports and messages. The same on every machine, whatever its locale.
#pragma once

#include <string>

namespace tessera::train {

/// The shortest text that reads back as the same number: "0.1", "1e-05", "nan".
std::string shortest(double value);
/// About four significant digits, for people: "0.01234", "12.35", "1.2e-07".
std::string rounded(double value);
/// `digits` decimals.
std::string fixed(double value, int digits);
/// "1:02:03" or "2:03".
std::string clock_time(double seconds);

}  // namespace tessera::train
