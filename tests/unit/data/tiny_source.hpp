// A source of known content, and sets made of it without MPI.
// Invariant: byte j of sample i of split s is pattern(s, i, j), its label i modulo the classes; damaged samples throw.
// Used by the tests of the shard format and of packing.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/pending.hpp"
#include "data/format/manifest.hpp"
#include "data/format/source.hpp"
#include "data/write/shard_writer.hpp"

namespace lockstep::data {

[[nodiscard]] inline std::byte pattern(std::uint64_t split, std::uint64_t sample, std::uint64_t j) {
  const std::uint64_t mixed =
      (sample * 0x9e37'79b9'7f4a'7c15 + j * 0xbf58'476d'1ce4'e5b9 + split) * 0x94d0'49bb'1331'11eb;
  return static_cast<std::byte>(mixed >> 56);
}

class TinySource : public Source {
 public:
  explicit TinySource(std::vector<SourceSplit> splits) : splits_{std::move(splits)} {
    spec_.x = {.dtype = core::DType::uint8, .shape = {5, 7}};
    spec_.classes = {"zero", "one", "two"};
  }

  [[nodiscard]] const SetSpec& spec() const override { return spec_; }
  [[nodiscard]] std::vector<SourceSplit> splits() const override { return splits_; }
  [[nodiscard]] std::vector<ExtraFile> extra_files() override { return extras; }

  [[nodiscard]] std::size_t n_readers() const override { return readers; }

  void read(std::size_t split, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
            std::span<std::byte> y) override {
    for (std::uint64_t i = 0; i < n; ++i) {
      check(split, first + i);
      fill(split, first + i, x.subspan(i * spec_.x.bytes(), spec_.x.bytes()));
      label(first + i, y.subspan(i * spec_.y.bytes(), spec_.y.bytes()));
    }
  }

  std::vector<std::byte> read_encoded(std::size_t split, std::uint64_t index, std::span<std::byte> y) override {
    check(split, index);
    std::vector<std::byte> image(encoded_bytes(index));
    fill(split, index, image);
    label(index, y);
    return image;
  }

  void make_encoded() {
    spec_.x = {};
    spec_.encoding = "image";
  }
  [[nodiscard]] static std::uint64_t encoded_bytes(std::uint64_t index) { return index % 5 == 3 ? 0 : 20 + index % 13; }
  SetSpec& spec_to_change() { return spec_; }

  std::set<std::pair<std::size_t, std::uint64_t>> bad{};
  std::vector<ExtraFile> extras{};
  std::uint64_t wrong_label_at = UINT64_MAX;
  std::size_t readers = 1;

 private:
  void check(std::size_t split, std::uint64_t index) const {
    if (bad.contains({split, index}))
      throw BadSample{index, fmt::format("{}/{}.jpg: truncated", splits_[split].name, index)};
  }
  static void fill(std::size_t split, std::uint64_t sample, std::span<std::byte> bytes) {
    for (std::size_t j = 0; j < bytes.size(); ++j) bytes[j] = pattern(split, sample, j);
  }
  void label(std::uint64_t index, std::span<std::byte> y) const {
    std::fill(y.begin(), y.end(), std::byte{0});
    y[0] = static_cast<std::byte>(index == wrong_label_at ? 77 : index % 3);
  }

  SetSpec spec_;
  std::vector<SourceSplit> splits_;
};

/// Split `number` of the source as shards in `folder`.
inline Split write_split(const std::string& folder, TinySource& source, std::size_t number, const ShardLayout& layout) {
  const SourceSplit from = source.splits()[number];
  Split split{.name = from.name, .n_samples = from.n_samples};
  const SetSpec& spec = source.spec();
  std::vector<std::byte> x(spec.x.bytes()), y(spec.y.bytes());
  for (std::uint64_t first = 0; first < from.n_samples; first += layout.shard_samples) {
    const std::uint64_t n = std::min(layout.shard_samples, from.n_samples - first);
    ShardWriter writer{folder, {from.name, split.shards.size(), first, n}, spec, layout};
    for (std::uint64_t i = first; i < first + n; ++i) {
      if (spec.is_encoded()) {
        const auto image = source.read_encoded(number, i, y);
        writer.append_encoded(image, y);
      } else {
        source.read(number, i, 1, x, y);
        writer.append(x, y);
      }
    }
    split.shards.push_back(writer.finish());
  }
  return split;
}

/// All splits of the source, and their manifest.
inline Manifest write_set(const std::string& folder, TinySource& source, const ShardLayout& layout) {
  Manifest manifest{.spec = source.spec(), .filter = layout.filter, .chunk_samples = layout.chunk_samples};
  for (std::size_t i = 0; i < source.splits().size(); ++i)
    manifest.splits.push_back(write_split(folder, source, i, layout));
  const std::string text = serialize(manifest);
  core::write_whole(fmt::format("{}/{}", folder, manifest_name), std::as_bytes(std::span{text}));
  return manifest;
}

}  // namespace lockstep::data
