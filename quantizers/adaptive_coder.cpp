// Adaptive counts: the model that both directions share, and the two directions. Every number here is part of
// the format.
#include "quantizers/adaptive_coder.h"

#include <bit>
#include <string>

#include "quantizers/range_coder.h"

namespace tessera {
namespace {

constexpr std::uint32_t kFirstCount = 1, kCountStep = 2, kFlagStep = 2;
constexpr std::uint32_t kMostFlags = 1024;       // the flag's two counts are halved above this sum
constexpr std::uint32_t kMostCounts = 1u << 17;  // so are the tokens' counts
constexpr std::size_t kTokensPerByte = 128;      // at most: a few bytes cannot claim to be millions of tokens

/// Sums over the first i of a row of numbers, and where a sum is reached, in log time (P. M. Fenwick, 1994).
class PrefixSums {
 public:
  void reset(std::size_t size, std::uint32_t value) {
    sums_.assign(size + 1, 0);
    for (std::size_t i = 1; i <= size; ++i) sums_[i] = value * static_cast<std::uint32_t>(i & (~i + 1));
  }
  void add(std::size_t index, std::uint32_t difference) {  // modulo 2^32, so a negative difference works too
    for (std::size_t i = index + 1; i < sums_.size(); i += i & (~i + 1)) sums_[i] += difference;
  }
  std::uint32_t before(std::size_t index) const {
    std::uint32_t sum = 0;
    for (std::size_t i = index; i > 0; i &= i - 1) sum += sums_[i];
    return sum;
  }
  /// The index with before(index) <= place < before(index + 1).
  std::uint32_t find(std::uint32_t place) const {
    std::size_t index = 0;
    for (std::size_t step = std::bit_floor(sums_.size() - 1); step > 0; step /= 2) {
      if (index + step < sums_.size() && sums_[index + step] <= place) place -= sums_[index += step];
    }
    return static_cast<std::uint32_t>(index);
  }

 private:
  std::vector<std::uint32_t> sums_;  // [size + 1]; element i sums the numbers [i - lowest bit of i, i)
};

/// A symbol's share of the range: [low, low + frequency) of total.
struct Share {
  std::uint32_t low, frequency, total;
};

/// What is known after the tokens so far.
class Counts {
 public:
  void begin(std::uint32_t codebook_size) {
    for (const std::uint32_t token : seen_) {  // cheaper than clearing all when few have occurred
      counts_.add(token, 0 - count_[token]);
      unseen_.add(token, 1);
      count_[token] = 0;
    }
    seen_.clear();
    if (codebook_size > count_.size()) {
      count_.assign(codebook_size, 0);
      counts_.reset(codebook_size, 0);
      unseen_.reset(codebook_size, 1);
    }
    size_ = codebook_size;
    total_ = 0;
    for (Flag& flag : flags_) flag = {};
    after_known_ = false;
  }

  bool is_known(std::uint32_t token) const { return count_[token] != 0; }
  /// No flag is coded while nothing has occurred, or when everything has.
  bool must_be_fresh() const { return seen_.empty(); }
  bool must_be_known() const { return seen_.size() == size_; }

  Share flag_share(bool known) const {
    const Flag& flag = flags_[after_known_];
    return known ? Share{0, flag.known, flag.total()} : Share{flag.known, flag.fresh, flag.total()};
  }
  Share known_share(std::uint32_t token) const { return {counts_.before(token), count_[token], total_}; }
  Share fresh_share(std::uint32_t token) const { return {unseen_.before(token), 1, unseen()}; }
  std::uint32_t known_total() const { return total_; }
  std::uint32_t known_at(std::uint32_t place) const { return counts_.find(place); }
  std::uint32_t unseen() const { return size_ - static_cast<std::uint32_t>(seen_.size()); }
  std::uint32_t fresh_at(std::uint32_t place) const { return unseen_.find(place); }

  void learn(std::uint32_t token, bool known) {
    if (!must_be_fresh() && !must_be_known()) learn_flag(known);
    after_known_ = known;
    const std::uint32_t step = known ? kCountStep : kFirstCount;
    if (!known) {
      seen_.push_back(token);
      unseen_.add(token, 0u - 1u);
    }
    count_[token] += step;
    counts_.add(token, step);
    total_ += step;
    if (total_ > kMostCounts - kCountStep) halve();
  }

 private:
  struct Flag {
    std::uint32_t known = 1, fresh = 1;
    std::uint32_t total() const { return known + fresh; }
  };

  void learn_flag(bool known) {
    Flag& flag = flags_[after_known_];
    (known ? flag.known : flag.fresh) += kFlagStep;
    if (flag.total() > kMostFlags) flag = {(flag.known + 1) / 2, (flag.fresh + 1) / 2};
  }
  void halve() {
    total_ = 0;
    for (const std::uint32_t token : seen_) {
      const std::uint32_t half = (count_[token] + 1) / 2;
      counts_.add(token, half - count_[token]);
      count_[token] = half;
      total_ += half;
    }
  }

  std::uint32_t size_ = 0;
  std::vector<std::uint32_t> count_;  // per token; 0: has not occurred
  std::vector<std::uint32_t> seen_;   // tokens that have
  PrefixSums counts_, unseen_;        // over count_, and over 1 for each token that has not occurred
  std::uint32_t total_ = 0;           // sum of count_
  Flag flags_[2];                     // after a fresh token, after a known one
  bool after_known_ = false;
};

class AdaptiveCoder : public TokenCoder {
 public:
  void encode(std::span<const std::int32_t> tokens, int codebook_size, std::vector<std::byte>& out) override {
    const std::size_t start = out.size();
    RangeEncoder range(out);
    const auto put = [&](Share share) { range.encode(share.low, share.frequency, share.total); };
    counts_.begin(static_cast<std::uint32_t>(codebook_size));
    for (const std::int32_t signed_token : tokens) {
      const auto token = static_cast<std::uint32_t>(signed_token);
      const bool known = counts_.is_known(token);
      if (!counts_.must_be_fresh() && !counts_.must_be_known()) put(counts_.flag_share(known));
      put(known ? counts_.known_share(token) : counts_.fresh_share(token));
      counts_.learn(token, known);
    }
    range.finish();
    const std::size_t least = (tokens.size() + kTokensPerByte - 1) / kTokensPerByte;
    if (out.size() - start < least) out.resize(start + least);
  }

  Result<void> decode(std::span<const std::byte> in, int codebook_size,
                      std::span<std::int32_t> tokens) override {
    if (tokens.size() > in.size() * kTokensPerByte)
      return Error{ErrorCode::format,
                   "expected at least one byte for every " + std::to_string(kTokensPerByte) +
                       " tokens, got " + std::to_string(in.size()) + " for " + std::to_string(tokens.size())};
    RangeDecoder range(in);
    counts_.begin(static_cast<std::uint32_t>(codebook_size));
    const auto take = [&](Share share) { range.consume(share.low, share.frequency); };
    for (std::int32_t& out : tokens) {
      bool known = counts_.must_be_known();
      if (!counts_.must_be_fresh() && !known) {
        const Share share = counts_.flag_share(true);
        known = range.target(share.total) < share.frequency;
        take(counts_.flag_share(known));
      }
      const std::uint32_t token = known ? counts_.known_at(range.target(counts_.known_total()))
                                        : counts_.fresh_at(range.target(counts_.unseen()));
      take(known ? counts_.known_share(token) : counts_.fresh_share(token));
      counts_.learn(token, known);
      out = static_cast<std::int32_t>(token);
    }
    return {};
  }

 private:
  Counts counts_;
};

}  // namespace

std::unique_ptr<TokenCoder> make_adaptive_coder() {
  return std::make_unique<AdaptiveCoder>();
}

}  // namespace tessera
