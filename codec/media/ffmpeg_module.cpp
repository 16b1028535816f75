// Finds and loads libtessera_ffmpeg.so: beside the program (or the library that holds this code), else in
// ../lib/tessera from there, which is right for an installed tree and for the build tree.
#include <dlfcn.h>

#include <filesystem>

#include "codec/media/source.h"

namespace tessera {
namespace {

constexpr const char* kModuleName = "libtessera_ffmpeg.so";

struct ModuleCloser {
  void operator()(void* p) const { dlclose(p); }
};
using ModulePtr = std::unique_ptr<void, ModuleCloser>;

std::vector<std::filesystem::path> candidates() {
  std::vector<std::filesystem::path> homes;
  std::error_code ignored;
  const auto add = [&homes](const std::filesystem::path& file) {
    if (!file.empty() && (homes.empty() || homes.front() != file.parent_path())) {
      homes.push_back(file.parent_path());
    }
  };
  add(std::filesystem::read_symlink("/proc/self/exe", ignored));
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&open_ffmpeg), &self) != 0 && self.dli_fname != nullptr) {
    add(std::filesystem::canonical(self.dli_fname, ignored));
  }
  std::vector<std::filesystem::path> files;
  for (const auto& home : homes) {
    files.push_back(home / kModuleName);
    files.push_back((home / "../lib/tessera" / kModuleName).lexically_normal());
  }
  return files;
}

Error missing(const std::string& name, const std::string& why) {
  return read_error(ErrorCode::unsupported, name, std::string("it needs ") + kModuleName + "; " + why);
}

}  // namespace

Result<std::unique_ptr<AudioSource>> open_ffmpeg(MediaInput input) {
  std::string looked;
  for (const auto& file : candidates()) {
    std::error_code ignored;
    looked += (looked.empty() ? "" : ", ") + file.parent_path().string();
    if (!std::filesystem::exists(file, ignored)) continue;
    // It stays loaded for good (its libraries keep thread-local state); closing only counts.
    const ModulePtr module(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE));
    if (!module) return missing(input.name, std::string("loading it failed: ") + dlerror());
    const auto version =
        reinterpret_cast<MediaModuleVersion*>(dlsym(module.get(), "tessera_media_module_version"));
    const auto open = reinterpret_cast<MediaModuleOpen*>(dlsym(module.get(), "tessera_media_module_open"));
    if (version == nullptr || open == nullptr || version() != kMediaModuleVersion) {
      return missing(input.name, file.string() + " belongs to another version of this program");
    }
    Error error;
    std::unique_ptr<AudioSource> source(open(input, error));
    if (!source) return error;
    return source;
  }
  return missing(input.name, "looked in " + looked);
}

}  // namespace tessera
