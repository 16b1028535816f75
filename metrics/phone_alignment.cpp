// Reads alignments line by line. The end of a recording is kept as a segment of class kNone.
#include "metrics/phone_alignment.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "core/hash.h"

namespace tessera::metrics {
namespace {

constexpr std::size_t kMostPhones = 1000;
constexpr std::string_view kEnd = "</s>";

/// The start of a text of any length, for an error that stays one short line.
std::string quoted(std::string_view text) {
  std::string shown(text.substr(0, 40));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 32; }, '?');
  return "\"" + shown + (text.size() > 40 ? "...\"" : "\"");
}

bool is_silence(std::string_view name) {
  return (name.front() == '<' && name.back() == '>') || (name.front() == '[' && name.back() == ']');
}

std::string stem(const std::string& recording) {
  return std::filesystem::path(recording).stem().string();
}

}  // namespace

Result<PhoneAlignments> PhoneAlignments::read(std::span<const std::string> paths) {
  PhoneAlignments alignments;
  alignments.phones_.push_back("<sil>");
  std::map<std::string, std::int32_t, std::less<>> ids;
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::error_code ignored;
    if (!file || std::filesystem::is_directory(path, ignored)) {
      return Error{ErrorCode::io,
                   path + ": cannot open the alignments: " + std::strerror(file ? EISDIR : errno)};
    }
    std::string line;
    for (std::int64_t number = 1; std::getline(file, line); ++number) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line.empty()) continue;
      if (const auto done = alignments.read_line(line, ids); !done) {
        return Error{done.error().code,
                     path + ": line " + std::to_string(number) + ": " + done.error().message};
      }
    }
    if (file.bad()) return Error{ErrorCode::io, path + ": cannot read the alignments to their end"};
  }
  return alignments;
}

Result<void> PhoneAlignments::read_line(const std::string& line,
                                        std::map<std::string, std::int32_t, std::less<>>& ids) {
  const auto bad = [](const std::string& expected, std::string_view got) {
    return Error{ErrorCode::format, "expected " + expected + ", got " + quoted(got)};
  };
  const std::size_t tab = line.find('\t');
  if (tab == std::string::npos || tab == 0) return bad("NAME<tab>FRAME:PHONE ...", line);
  std::vector<Segment> segments;
  bool ended = false;
  for (std::string_view rest = std::string_view(line).substr(tab + 1); !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t colon = item.find(':');
    Segment segment;
    if (colon == std::string_view::npos || colon + 1 == item.size()) return bad("FRAME:PHONE", item);
    const char* stop = item.data() + colon;
    const auto [parsed, error] = std::from_chars(item.data(), stop, segment.begin);
    if (error != std::errc() || parsed != stop || segment.begin < 0) {
      return bad("FRAME:PHONE", item);
    }
    if (ended) return bad("nothing after </s>", item);
    if (!segments.empty() && segment.begin <= segments.back().begin) {
      return bad("a frame above " + std::to_string(segments.back().begin), item);
    }
    const std::string_view phone = item.substr(colon + 1);
    ended = phone == kEnd;
    if (!ended && is_silence(phone)) {
      segment.phone = kSilence;
    } else if (!ended) {
      const auto known = ids.find(phone);
      if (known == ids.end()) {
        if (phones_.size() >= kMostPhones) return bad("at most 1000 different phones", phone);
        segment.phone = static_cast<std::int32_t>(phones_.size());
        phones_.emplace_back(phone);
        ids.emplace(phone, segment.phone);
      } else {
        segment.phone = known->second;
      }
    }
    segments.push_back(segment);
  }
  if (!ended)
    return bad("FRAME:</s> at the end", std::string_view(line).substr(line.find_last_of(" \t") + 1));
  if (!recordings_.emplace(line.substr(0, tab), std::move(segments)).second) {
    return bad("every recording once", std::string_view(line).substr(0, tab));
  }
  return {};
}

bool PhoneAlignments::contains(const std::string& recording) const {
  return recordings_.contains(stem(recording));
}

std::string PhoneAlignments::hash(const std::string& recording) const {
  const auto found = recordings_.find(stem(recording));
  if (found == recordings_.end()) return {};
  std::string text;
  for (const Segment& segment : found->second) {
    text += std::to_string(segment.begin) + ":";
    text += segment.phone == kNone ? std::string(kEnd) : phones_[static_cast<std::size_t>(segment.phone)];
    text += " ";
  }
  return hex(content_hash(std::as_bytes(std::span(text))));
}

Result<std::vector<std::int32_t>> PhoneAlignments::labels(const std::string& recording, std::int64_t frames,
                                                          double frame_rate_hz) const {
  const auto found = recordings_.find(stem(recording));
  if (found == recordings_.end()) {
    return Error{ErrorCode::mismatch, recording + ": expected an alignment, got none for " + stem(recording)};
  }
  const std::vector<Segment>& segments = found->second;
  std::vector<std::int32_t> labels(static_cast<std::size_t>(std::max<std::int64_t>(frames, 0)), kNone);
  std::size_t next = 0;  // the first segment that begins later
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double middle = std::floor((static_cast<double>(i) + 0.5) * kFrameRateHz / frame_rate_hz);
    while (next < segments.size() && segments[next].begin <= middle) ++next;
    if (next > 0) labels[i] = segments[next - 1].phone;
  }
  return labels;
}

}  // namespace tessera::metrics
