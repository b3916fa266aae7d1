// Files of tensors for other programs: HDF5, .npz, safetensors.
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

/// As save_weights(), but writes a stored zip archive that numpy.load reads; it holds only arrays.
void save_npz(const std::string& path, const WeightsInfo& info, std::span<const TensorSpec> tensors,
              const FillTensor& fill, std::string_view flag);
/// As save_weights(), but in the format of https://github.com/huggingface/safetensors; info is in its __metadata__.
void save_safetensors(const std::string& path, const WeightsInfo& info, std::span<const TensorSpec> tensors,
                      const FillTensor& fill, std::string_view flag);

/// Finds the format by the ending of `path`: .h5 or .hdf5, .npz, .safetensors. Throws core::Error (usage, naming
/// `flag`) for another ending.
[[nodiscard]] SaveTensors find_format(const std::string& path, std::string_view flag);

}  // namespace lockstep::checkpoint
