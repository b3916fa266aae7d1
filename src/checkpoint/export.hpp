// Files of tensors for others: HDF5, .npz, safetensors.
// Invariant: a file appears whole or not at all; the same tensors give the same bytes, on any day.
// Used by lockstep ckpt.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "checkpoint/tensors.hpp"

namespace lockstep::checkpoint {

using SaveTensors = void (*)(const std::string& path, const WeightsInfo& info, std::span<const TensorSpec> tensors,
                             const FillTensor& fill, std::string_view flag);

/// As save_weights(): a stored zip archive that numpy.load reads; it holds arrays alone.
void save_npz(const std::string& path, const WeightsInfo& info, std::span<const TensorSpec> tensors,
              const FillTensor& fill, std::string_view flag);
/// As save_weights(), in the format of https://github.com/huggingface/safetensors; info is in its __metadata__.
void save_safetensors(const std::string& path, const WeightsInfo& info, std::span<const TensorSpec> tensors,
                      const FillTensor& fill, std::string_view flag);

/// By the ending of `path`: .h5 or .hdf5, .npz, .safetensors. Throws core::Error (usage, naming `flag`) if it is
/// another.
[[nodiscard]] SaveTensors find_format(const std::string& path, std::string_view flag);

}  // namespace lockstep::checkpoint
