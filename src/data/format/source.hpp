// The origin of samples before they are shards: an importer or a synthesizer.
// Invariant: sample i of a split is the same at any time, on any rank and in any order of requests.
// Used by data/write/pack and data/load/store_synthetic; implemented by data/importers/ and data/synth/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/format/spec.hpp"

namespace lockstep::data {

struct SourceSplit {
  std::string name;  ///< "train", "val"
  std::uint64_t n_samples = 0;
};

/// The only kind of extra file so far: the original ids of users and items.
inline constexpr std::string_view ids_file_name = "ids.h5";

/// A file stored beside the shards, such as the mapping of encoded ids: one-dimensional int64 data sets of an HDF5
/// file.
struct ExtraFile {
  std::string name;  ///< ids_file_name
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> datasets;
};

/// One sentence about a source for the user, such as "3 of 100 values are NaN". It depends only on the input, not on
/// its place, because manifests store it: files are named relative to the input.
struct Remark {
  /// Something found, assumed, changed or left out, or a possible mistake.
  enum class Kind { note, assumed, changed, left_out, warning };
  Kind kind = Kind::warning;
  std::string text;
  bool operator==(const Remark&) const = default;
};
[[nodiscard]] inline Remark note(std::string text) { return {Remark::Kind::note, std::move(text)}; }
[[nodiscard]] inline Remark assumed(std::string text) { return {Remark::Kind::assumed, std::move(text)}; }
[[nodiscard]] inline Remark changed(std::string text) { return {Remark::Kind::changed, std::move(text)}; }
[[nodiscard]] inline Remark left_out(std::string text) { return {Remark::Kind::left_out, std::move(text)}; }
[[nodiscard]] inline Remark warning(std::string text) { return {Remark::Kind::warning, std::move(text)}; }

/// "left out: column 0, an index", printable.
[[nodiscard]] std::string line_of(const Remark& remark);
/// Parses a line of line_of().
[[nodiscard]] Remark parse_remark(std::string_view line);

/// Samples that were changed while they were read: how many, and the first of them by split and index.
struct Treated {
  std::uint64_t n = 0;
  std::uint64_t split = UINT64_MAX;
  std::uint64_t index = UINT64_MAX;
};

/// The source knows what was done to those of each entry.
using Tally = std::array<Treated, 14>;

inline void add(Treated& sum, const Treated& more) noexcept {
  sum.n += more.n;
  if (std::pair{more.split, more.index} >= std::pair{sum.split, sum.index}) return;
  sum.split = more.split;
  sum.index = more.index;
}

inline void add(Tally& sum, const Tally& tally) noexcept {
  for (std::size_t i = 0; i < sum.size(); ++i) add(sum[i], tally[i]);
}

/// Thrown by Source::read for one damaged sample; what() names file and defect. With --skip-bad the sample is left out
/// and counted.
class BadSample : public std::runtime_error {
 public:
  BadSample(std::uint64_t index, const std::string& what) : std::runtime_error{what}, index_{index} {}
  [[nodiscard]] std::uint64_t index() const noexcept { return index_; }

 private:
  std::uint64_t index_;
};

class Source {
 public:
  virtual ~Source() = default;

  [[nodiscard]] virtual const SetSpec& spec() const = 0;
  [[nodiscard]] virtual std::vector<SourceSplit> splits() const = 0;

  /// Reads samples [first, first + n) of split number `split`: n times spec().x.bytes() and n times spec().y.bytes().
  /// Throws BadSample, or core::Error (usage) naming file, place, expected and found.
  virtual void read(std::size_t split, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
                    std::span<std::byte> y) = 0;
  /// How many threads may and should call read() at once. More than one only if read() does not call HDF5.
  [[nodiscard]] virtual std::size_t n_readers() const { return 1; }

  /// Only if spec().is_encoded(): returns the bytes of one image file, and writes its label to `y`.
  virtual std::vector<std::byte> read_encoded(std::size_t split, std::uint64_t index, std::span<std::byte> y);

  /// A user's name for a sample: a file within the input, or "sample 7 of val", counted from 0.
  [[nodiscard]] virtual std::string name_of(std::size_t split, std::uint64_t index) const;

  [[nodiscard]] virtual std::vector<ExtraFile> extra_files() { return {}; }
  [[nodiscard]] virtual std::vector<Remark> remarks() const { return {}; }

  /// Returns what read() and read_encoded() have changed in samples on this thread since the last call.
  [[nodiscard]] virtual Tally take_tally() { return {}; }
  /// Remarks about the changes to all samples of a set.
  [[nodiscard]] virtual std::vector<Remark> remarks_on(const Tally& /*all*/) const { return {}; }
  /// Notes of the sets from which the samples come.
  [[nodiscard]] virtual std::vector<std::string> earlier_notes() const { return {}; }
};

}  // namespace lockstep::data
