// The codec that a command works with, the stream options that suit files, and what a codec writes into a
// .tsr header.
#pragma once

#include <memory>
#include <string>

#include "apps/options.h"
#include "codec/codec.h"
#include "codec/tsr.h"
#include "core/result.h"

namespace tessera::app {

enum class CodecParts { encoder, decoder, none };

/// The weights file that the options name, or the built-in codec; only the parts needed.
Result<std::shared_ptr<const Codec>> load_codec(const CodecOptions& options, CodecParts parts);

/// Steps of about a second: fast, and little memory.
StreamOptions stream_options(const CodecInfo& info, int codebooks, int threads);

/// Error (usage) unless the codec has that many codebooks; 0 stands for all of them.
Result<int> checked_codebooks(const CodecInfo& info, int codebooks);

/// What a .tsr file of this codec says.
TsrHeader tsr_header(const CodecInfo& info, int codebooks, int channels, EntropyCoder coder);

/// Error (mismatch, naming both) unless the file was made with this codec.
Result<void> check_belongs(const TsrHeader& header, const std::string& file, const CodecInfo& info);

/// Error (usage) when both names lead to one file.
Result<void> check_not_same(const std::string& input, const std::string& output);

}  // namespace tessera::app
