// Files of weights: named float32 tensors in PyTorch's logical shapes, including running statistics.
// Invariant: a file appears whole or not at all; its content does not depend on ranks, layout or date; every tensor of
// ours is checked when it is loaded. share/doc/weights.md has the format.
// Used by the trainer (--init-from, --save-weights).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensors.hpp"
#include "core/pending.hpp"
#include "core/units.hpp"
#include "nn/graph/network.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::checkpoint {

inline constexpr std::string_view weights_format = "weights";  ///< attribute lockstep_format of the root
inline constexpr std::uint64_t weights_version = 1;

/// Parameters, then running statistics, both in the network's order.
[[nodiscard]] std::vector<TensorSpec> tensors_of(const nn::Network& network);

/// Replaces an old file. One tensor at a time is in memory. Throws core::Error (usage, naming `flag`) if its folder
/// cannot be written to, (system) if the disk is full.
void save_weights(const std::string& path, const WeightsInfo& info, std::span<const TensorSpec> tensors,
                  const FillTensor& fill, std::string_view flag, core::Links links = core::Links::followed);

/// As core::check_writable(); also throws core::Error (usage, naming `flag`) if `path` exists and is not a file of
/// save_weights(), so that a typo replaces nothing.
void check_replaceable(const std::string& path, std::string_view flag);

[[nodiscard]] core::Bytes bytes_of(std::span<const TensorSpec> tensors);

/// Throws core::Error (system, naming `flag`) if the file system of `path` reports that it has no room for `what`.
void check_room(const std::string& path, std::string_view what, core::Bytes needed, std::string_view flag);

/// Collective: calls `take` on each rank for every tensor of the model, in order, after names and shapes of all were
/// checked; `path` as in open_tensors(). Throws core::Error, the same on all ranks: (usage, naming `flag`) if there is
/// nothing, it does not fit (with the first differences), or a value is not finite; (failed) if it is damaged.
WeightsInfo load_weights(const runtime::Communicator& world, const std::string& path, const std::string& model,
                         std::span<const TensorSpec> tensors, const TakeTensor& take, std::string_view flag);

/// Whether an HDF5 file was written by save_weights(). Throws core::Error if it cannot be read.
[[nodiscard]] bool are_weights_of_ours(const std::string& path);

}  // namespace lockstep::checkpoint
