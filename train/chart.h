// Charts as SVG to stand in an HTML page. Lines tell apart by weight, not by colour: they print.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera::train {

/// Text as the content of an element or of a quoted attribute.
std::string escape_html(const std::string& text);

/// A curve over steps: what was measured in thin gray, its running mean in black. Values that are not finite
/// are left out; the vertical axis is logarithmic where all values are above 0 and span a factor of 20. As
/// many `values` as `steps`, which increase. Size of the text is bounded, whatever the count.
std::string line_chart(const std::string& title, std::span<const std::int64_t> steps,
                       std::span<const double> values);

/// One bar per value, from 0 to `top`.
std::string bar_chart(const std::string& title, std::span<const double> values, double top);

}  // namespace tessera::train
