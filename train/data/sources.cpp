#include "train/data/sources.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string extension_of(const fs::path& path) {
  const std::string dotted = path.extension().string();
  return dotted.empty() ? "" : lower(dotted.substr(1));
}

bool is_list(const fs::path& path) {
  const std::string extension = extension_of(path);
  return extension == "txt" || extension == "list" || extension == "lst";
}

/// "*.wav, *.flac"
std::string patterns_of(const std::vector<std::string>& extensions) {
  std::string text;
  for (const auto& extension : extensions) text += (text.empty() ? "*." : ", *.") + extension;
  return text;
}

/// The path without links, or made plain where it leads nowhere: what tells whether two names are one file.
std::string identity_of(const fs::path& path) {
  std::error_code error;
  const fs::path canonical = fs::weakly_canonical(path, error);
  return error ? fs::absolute(path, error).lexically_normal().string() : canonical.string();
}

class Finder {
 public:
  explicit Finder(const SourceOptions& options) : options_(options) {
    for (const auto& extension : options.extensions) extensions_.insert(lower(extension));
  }

  Result<SourceFiles> find() {
    if (options_.sources.empty())
      return Error{ErrorCode::usage, "the data has no sources: expected folders, lists or recordings"};
    for (const auto& source : options_.sources)
      if (auto added = add(source); !added) return added.error();
    return std::move(result_);
  }

 private:
  Result<void> add(const std::string& source) {
    std::error_code error;
    const fs::file_status status = fs::status(source, error);
    if (!fs::exists(status))
      return Error{ErrorCode::io, "cannot read the source " + source + ": no such folder or file"};
    found_.clear();
    looked_at_ = 0;
    const std::int64_t excluded_before = result_.excluded;
    std::string looked_for;
    if (fs::is_directory(status)) {
      looked_for = patterns_of(options_.extensions) + " among ";
      std::set<std::string> visited;
      const std::string label = fs::path(identity_of(source)).filename().string();
      if (auto walked = walk(source, "", label, visited); !walked) return walked;
      looked_for += std::to_string(looked_at_) + " files in it and the folders below";
    } else if (!fs::is_regular_file(status)) {
      return Error{ErrorCode::usage,
                   "the source " + source + ": expected a folder or regular file, got a pipe or device"};
    } else if (is_list(source)) {
      if (auto listed = read_list(source); !listed) return listed;
      looked_for = "one path per line";
    } else if (extensions_.contains(extension_of(source))) {
      const std::string name = fs::path(source).filename().string();
      take(source, name, name);
      looked_for = "one recording";
    } else {
      return Error{ErrorCode::usage,
                   "the source " + source +
                       ": expected a folder, a list (*.txt, *.list, *.lst) or a recording (" +
                       patterns_of(options_.extensions) + ")"};
    }
    if (found_.empty()) {
      const std::int64_t excluded = result_.excluded - excluded_before;
      return Error{ErrorCode::format,
                   "no recording in the source " + source + ": looked for " + looked_for +
                       (excluded ? "; patterns excluded " + std::to_string(excluded) : std::string())};
    }
    std::sort(found_.begin(), found_.end(),
              [](const SourceFile& a, const SourceFile& b) { return a.relative < b.relative; });
    for (auto& file : found_) {
      if (taken_.insert(identity_of(file.path)).second) {
        result_.files.push_back(std::move(file));
      } else {
        ++result_.repeated;
      }
    }
    return {};
  }

  Result<void> walk(const fs::path& folder, const std::string& prefix, const std::string& label,
                    std::set<std::string>& visited) {
    if (!visited.insert(identity_of(folder)).second) return {};  // a link back to where we are or were
    std::error_code error;
    std::vector<fs::path> entries;
    for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
      entries.push_back(i->path());
    if (error)
      return Error{ErrorCode::io, "cannot read the folder " + folder.string() + ": " + error.message()};
    std::sort(entries.begin(), entries.end());
    for (const auto& entry : entries) {
      const std::string name = entry.filename().string();
      if (name.starts_with('.')) continue;
      const fs::file_status status = fs::status(entry, error);
      if (fs::is_directory(status)) {
        if (auto walked = walk(entry, prefix + name + "/", label, visited); !walked) return walked;
      } else {  // a link to nowhere, a pipe: whoever opens it says why it cannot be read
        ++looked_at_;
        if (extensions_.contains(extension_of(entry)))
          take(entry.string(), prefix + name, label + "/" + prefix + name);
      }
    }
    return {};
  }

  Result<void> read_list(const std::string& path) {
    std::ifstream list(path);
    if (!list) return Error{ErrorCode::io, "cannot read the list " + path};
    std::error_code error;
    const fs::path home = fs::absolute(path, error).parent_path().lexically_normal();
    for (std::string line; std::getline(list, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (line.empty() || line.starts_with('#')) continue;
      const fs::path entry = (home / line).lexically_normal();
      fs::path relative = entry.lexically_relative(home);
      if (relative.empty()) relative = entry;
      take(entry.string(), relative.generic_string(), relative.generic_string());
    }
    if (list.bad()) return Error{ErrorCode::io, "reading the list " + path + " failed"};
    return {};
  }

  void take(const std::string& path, const std::string& relative, const std::string& name) {
    const std::string own = relative.substr(relative.rfind('/') + 1);
    for (const auto& pattern : options_.exclude) {
      if (fnmatch(pattern.c_str(), relative.c_str(), 0) == 0 ||
          fnmatch(pattern.c_str(), own.c_str(), 0) == 0) {
        ++result_.excluded;
        return;
      }
    }
    found_.push_back({path, relative, name});
  }

  const SourceOptions& options_;
  std::set<std::string> extensions_;
  std::vector<SourceFile> found_;  // of the source at hand
  std::int64_t looked_at_ = 0;     // files in it
  std::set<std::string> taken_;    // identities
  SourceFiles result_;
};

}  // namespace

const std::vector<std::string>& media_extensions() {
  static const std::vector<std::string> extensions = {"wav", "flac", "ogg", "opus", "mp3",
                                                      "m4a", "aac",  "mkv", "mp4"};
  return extensions;
}

Result<SourceFiles> find_sources(const SourceOptions& options) {
  return Finder(options).find();
}

}  // namespace tessera::train
