// Checks of markup for tests: whether every element is closed where it must be, and what a page would load.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace tessera::test {

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// Empty when every element is closed in order; otherwise the first trouble. HTML's elements without an end
/// are known.
inline std::string markup_trouble(const std::string& text) {
  static const std::set<std::string> kEmpty = {"meta", "img", "br"};
  std::vector<std::string> open;
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    if (text.compare(at, 2, "<!") == 0) continue;
    std::size_t end = at;  // of the tag; what stands in quotes does not end it
    for (bool quoted = false; end < text.size() && (quoted || text[end] != '>'); ++end) {
      if (text[end] == '"') quoted = !quoted;
    }
    if (end >= text.size()) return "a tag does not end: " + text.substr(at, 60);
    const bool closing = text[at + 1] == '/';
    const std::size_t begin = at + (closing ? 2 : 1);
    const std::string name = text.substr(begin, text.find_first_of(" >/", begin) - begin);
    if (closing) {
      if (open.empty() || open.back() != name) {
        return "</" + name + "> closes " + (open.empty() ? std::string("nothing") : open.back());
      }
      open.pop_back();
    } else if (text[end - 1] != '/' && !kEmpty.count(name)) {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

/// Values of an attribute, in order.
inline std::vector<std::string> attribute_values(const std::string& text, const std::string& name) {
  std::vector<std::string> values;
  const std::string start = " " + name + "=\"";
  for (std::size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
    const std::size_t begin = at + start.size();
    values.push_back(text.substr(begin, text.find('"', begin) - begin));
  }
  return values;
}

}  // namespace tessera::test
