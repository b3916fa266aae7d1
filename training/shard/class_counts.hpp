// How many samples of a split have each label.
// Invariant: reads labels only, one chunk at a time.
// Used by `lockstep shard stat`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/format/manifest.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::training::shard {

struct ClassCounts {
  std::vector<std::uint64_t> by_class{};
  std::uint64_t n_out_of_range = 0;
};

/// The label number `index` of labels stored as `dtype`; for floats and negative numbers, one that is not a class.
[[nodiscard]] std::uint64_t label_at(core::DType dtype, std::span<const std::byte> labels, std::size_t index);

/// Counts every `stride`-th shard from `first_shard` on.
[[nodiscard]] ClassCounts count_classes(const std::string& folder, const data::Manifest& manifest,
                                        const std::string& split, int first_shard, int stride);

/// Collective: the sum over ranks at rank 0.
[[nodiscard]] ClassCounts sum(const runtime::Communicator& world, const ClassCounts& mine);

}  // namespace lockstep::training::shard
