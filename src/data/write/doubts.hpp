// What was perhaps not meant though it is well-formed, as the samples of a set show it: the same x twice, classes that
// only val has, numbers that float32 lacks.
// Invariant: depends on the samples and how they are split, never on the number of ranks; of many samples those are
// compared whose digest ends in zeros, so that memory is bounded and twins are compared both or neither.
// Used by data/write/pack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/format/source.hpp"
#include "data/format/values.hpp"

namespace lockstep::data {

/// A sample as it is compared with others, in a form that can be sent.
struct SampleDigest {
  std::uint64_t x = 0;
  std::uint64_t y = 0;      ///< up to eight bytes as they are, else their digest
  std::uint64_t index = 0;  ///< in its split of the source
  std::uint32_t split = 0;  ///< of the set
  std::uint32_t shard = 0;  ///< within the split
};

/// Returns n where one in n samples is compared: a power of two, and 1 for up to some two million samples.
[[nodiscard]] std::uint64_t compared_one_in(std::uint64_t n_samples) noexcept;

/// Returns the digests of an x and its y. It sets only `x` and `y` of the result.
[[nodiscard]] SampleDigest digest_sample(std::span<const std::byte> x, std::span<const std::byte> y) noexcept;
[[nodiscard]] inline bool is_compared(const SampleDigest& sample, std::uint64_t one_in) noexcept {
  return (sample.x & (one_in - 1)) == 0;
}

/// Samples of some kind among others: how many, and the first of them in its split of the source.
struct CountedSamples {
  std::uint64_t n = 0;
  std::uint64_t first = UINT64_MAX;
};
void add(CountedSamples& sum, const CountedSamples& more) noexcept;

/// What is seen of a split of the set.
struct SplitFacts {
  std::string name{};
  std::uint64_t n_samples = 0;
  ValueFacts x{};
  ValueFacts y{};
  CountedSamples blank{};  ///< whose x is zeros alone
};

struct SetFacts {
  const SetSpec& spec;
  std::vector<SplitFacts> splits{};
  std::vector<SampleDigest> digests{};  ///< of what is compared
  std::uint64_t one_in = 1;
  /// What a sample of the source is called, by a split of the set and the index in its source.
  std::function<std::string(std::size_t split, std::uint64_t index)> name_of{};
};

/// Names that differ by slips, numbers that are sorted as texts.
[[nodiscard]] std::vector<Remark> remarks_on_classes(const std::vector<std::string>& classes);
/// NaN, infinity, and numbers that training takes as others.
[[nodiscard]] std::vector<Remark> remarks_on_values(const SetFacts& facts);
/// What samples have in common, and splits not. Sorts the digests.
[[nodiscard]] std::vector<Remark> remarks_on_samples(SetFacts& facts);

}  // namespace lockstep::data
