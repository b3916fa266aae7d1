// Existing sets as the source of a new one.
// Invariant: splits of the same name are joined in the order of the folders; all sets have the same spec and the same
// extra files.
// Used by `lockstep shard pack|split|merge`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "data/format/source.hpp"
#include "data/load/store.hpp"
#include "data/read/shard_set.hpp"

namespace lockstep::training::shard {

/// The difference, in half a sentence ("class 3 is 'cat', but 'dog' in b"); nothing if the two sets can be merged.
[[nodiscard]] std::optional<std::string> find_difference(const data::SetSpec& first, const data::SetSpec& second,
                                                         const std::string& second_name);

/// Decoded chunks of compressed sets that a rank keeps, so that samples may be read one by one in any order.
inline constexpr core::Bytes most_decoded{std::uint64_t{256} << 20};

class SetSource final : public data::Source {
 public:
  /// Throws core::Error (usage) naming the difference, if there is one; (failed) if an extra file is damaged.
  explicit SetSource(const std::vector<std::string>& folders);

  /// Joins all splits to a single one, "train".
  void join_splits();

  [[nodiscard]] io::Filter filter() const noexcept { return filter_; }
  [[nodiscard]] const data::SetSpec& spec() const override { return spec_; }
  [[nodiscard]] std::vector<data::SourceSplit> splits() const override;
  void read(std::size_t split, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
            std::span<std::byte> y) override;
  std::vector<std::byte> read_encoded(std::size_t split, std::uint64_t index, std::span<std::byte> y) override;
  [[nodiscard]] std::vector<data::ExtraFile> extra_files() override { return extras_; }
  [[nodiscard]] std::vector<std::string> earlier_notes() const override { return notes_; }

 private:
  /// One split of one set within a joined split.
  struct Part {
    std::uint64_t first = 0;
    std::shared_ptr<const data::ShardSet> set;
    std::unique_ptr<data::Store> decoded;  ///< for a compressed set: its last chunks, decoded
  };
  struct Joined {
    std::string name;
    std::uint64_t n_samples = 0;
    std::vector<Part> parts{};
  };

  void add(const std::string& folder, const data::Manifest& manifest);
  Joined& find_or_add(const std::string& name);
  static const Part& part_of(const Joined& joined, std::uint64_t sample);
  void keep_decoded();
  void read_decoded(data::Store& store, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
                    std::span<std::byte> y);

  data::SetSpec spec_;
  io::Filter filter_ = io::Filter::none;
  std::vector<Joined> splits_{};
  std::vector<data::ExtraFile> extras_{};
  std::vector<std::string> notes_{};
  data::Fetched fetched_{};
  std::vector<std::uint64_t> ids_{};
};

}  // namespace lockstep::training::shard
