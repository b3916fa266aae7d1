// Named float32 tensors, wherever they come from: a checkpoint, or a file of ours or of others.
// Invariant: names and shapes are known, and fit what is stored, before any value is read; values are never rounded.
// Used by weights (--init-from) and lockstep ckpt.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/named_file.hpp"
#include "checkpoint/reader.hpp"
#include "core/dtype.hpp"
#include "nn/network.hpp"

namespace lockstep::checkpoint {

struct TensorSpec {
  std::string name{};  ///< as in PyTorch's state_dict
  nn::Shape shape{};   ///< at least one dimension
};

/// Where weights come from.
struct WeightsInfo {
  std::string model{};  ///< empty: unknown
  std::uint64_t epoch = 0;
  std::uint64_t samples_seen = 0;
};

/// Gives the values of tensor number `i`, in logical order.
using FillTensor = std::function<void(std::size_t i, std::span<float> values)>;
using TakeTensor = std::function<void(std::size_t i, std::span<const float> values)>;

struct StoredTensor {
  TensorSpec spec{};                   ///< of others, perhaps without a dimension
  std::optional<core::DType> dtype{};  ///< empty: none of Lockstep's
};

struct TensorSource {
  std::string path{};
  WeightsInfo info{};
  std::vector<StoredTensor> tensors{};  ///< sorted by name
  /// float16 and bfloat16 become the same numbers in float32. Throws core::Error as require_floats(); (failed) if
  /// values are not what Lockstep has written.
  FillTensor read{};
};

/// The tensors of a file: HDF5, .npz or safetensors, recognised by its content. Throws core::Error (usage, naming
/// `flag`) if it is none of these, has no tensor, or contradicts itself; (failed) if it is a damaged file of ours.
[[nodiscard]] TensorSource open_tensor_file(const std::string& path, std::string_view flag);

/// What a checkpoint holds, as it is: "parameter/conv1.weight", statistics by lane.
[[nodiscard]] TensorSource all_tensors(const Checkpoint& from);
/// By the names of a file of weights: "conv1.weight", the mean of the lanes' statistics, "exp_avg/conv1.weight".
[[nodiscard]] TensorSource weights_of(const Checkpoint& from);

/// Collective: what the file, the checkpoint or the run's newest whole checkpoint `path` holds, as weights_of(). Throws
/// core::Error, the same on all ranks, as open_tensor_file() and open_newest().
[[nodiscard]] TensorSource open_tensors(const runtime::Communicator& world, const std::string& path,
                                        std::string_view flag);

/// Indices of the tensors that are weights: neither optimizer states nor PyTorch's counts of batches.
[[nodiscard]] std::vector<std::size_t> find_weights(const TensorSource& from);

/// Only these tensors of `from`.
[[nodiscard]] TensorSource subset(TensorSource from, std::vector<std::size_t> kept);

/// Whether its values can be read: float32, or a type whose values float32 has, too.
[[nodiscard]] bool holds_floats(const StoredTensor& tensor) noexcept;
/// Throws core::Error (usage) unless its values can be read; called before memory is taken for them.
void require_floats(const NamedFile& named, const StoredTensor& tensor);

/// Elements of the largest tensor.
[[nodiscard]] std::uint64_t largest(std::span<const TensorSpec> tensors);

/// Nothing if it is more than 2^64 bytes.
[[nodiscard]] std::optional<std::uint64_t> find_bytes(const nn::Shape& shape, std::size_t element_bytes);

/// Makes `values` of the elements that `read` brings as they are stored; errors as TensorSource::read's.
void read_floats(const NamedFile& named, const StoredTensor& tensor, std::span<float> values,
                 const std::function<void(std::span<std::byte>)>& read);

/// A file that only Python can read.
[[noreturn]] void refuse_pickle(const NamedFile& named);

// The formats that open_tensor_file() tells from one another; errors as its own.
[[nodiscard]] TensorSource open_hdf5_tensors(const NamedFile& named);
[[nodiscard]] TensorSource open_npz_tensors(const NamedFile& named);
[[nodiscard]] TensorSource open_safetensors(const NamedFile& named);

}  // namespace lockstep::checkpoint
