// Named float32 tensors from any source: a checkpoint, or a file of ours or of other programs.
// Invariant: names and shapes are known, and fit the stored data, before any value is read; values are never rounded.
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
#include "nn/graph/network.hpp"

namespace lockstep::checkpoint {

struct TensorSpec {
  std::string name{};  ///< as in PyTorch's state_dict
  nn::Shape shape{};   ///< at least one dimension
};

/// The origin of weights.
struct WeightsInfo {
  std::string model{};  ///< empty: unknown
  std::uint64_t epoch = 0;
  std::uint64_t samples_seen = 0;
};

/// Fills in the values of tensor number `i`, in logical order.
using FillTensor = std::function<void(std::size_t i, std::span<float> values)>;
using TakeTensor = std::function<void(std::size_t i, std::span<const float> values)>;

struct StoredTensor {
  TensorSpec spec{};                   ///< in files of other programs perhaps without a dimension
  std::optional<core::DType> dtype{};  ///< empty: not a type of Lockstep
};

struct TensorSource {
  std::string path{};
  WeightsInfo info{};
  std::vector<StoredTensor> tensors{};  ///< sorted by name
  /// Converts float16 and bfloat16 exactly to float32. Throws core::Error as require_floats(); (failed) if values
  /// differ from what Lockstep has written.
  FillTensor read{};
};

/// Opens the tensors of a file: HDF5, .npz or safetensors, recognised by its content. Throws core::Error (usage, naming
/// `flag`) if it is none of these, has no tensor, or contradicts itself; (failed) if it is a damaged file of ours.
[[nodiscard]] TensorSource open_tensor_file(const std::string& path, std::string_view flag);

/// The content of a checkpoint, unchanged: "parameter/conv1.weight", statistics by lane.
[[nodiscard]] TensorSource all_tensors(const Checkpoint& from);
/// The content with the names of a weights file: "conv1.weight", the mean of the lanes' statistics,
/// "exp_avg/conv1.weight".
[[nodiscard]] TensorSource weights_of(const Checkpoint& from);

/// Collective: opens the file, the checkpoint or the run's newest whole checkpoint `path`, as weights_of(). Throws
/// core::Error, the same on all ranks, as open_tensor_file() and open_newest().
[[nodiscard]] TensorSource open_tensors(const runtime::Communicator& world, const std::string& path,
                                        std::string_view flag);

/// The indices of the tensors that are weights: neither optimizer states nor PyTorch's counts of batches.
[[nodiscard]] std::vector<std::size_t> find_weights(const TensorSource& from);

/// Only the tensors `kept` of `from`.
[[nodiscard]] TensorSource subset(TensorSource from, std::vector<std::size_t> kept);

/// Whether its values can be read: float32, or a type whose values float32 holds exactly.
[[nodiscard]] bool holds_floats(const StoredTensor& tensor) noexcept;
/// Throws core::Error (usage) unless its values can be read; called before memory is allocated for them.
void require_floats(const NamedFile& named, const StoredTensor& tensor);

/// The number of elements of the largest tensor.
[[nodiscard]] std::uint64_t largest(std::span<const TensorSpec> tensors);

/// Nothing if it exceeds 2^64 bytes.
[[nodiscard]] std::optional<std::uint64_t> find_bytes(const nn::Shape& shape, std::size_t element_bytes);

/// Converts to `values` the stored elements that `read` provides; errors as for TensorSource::read.
void read_floats(const NamedFile& named, const StoredTensor& tensor, std::span<float> values,
                 const std::function<void(std::span<std::byte>)>& read);

/// Refuses a file that only Python can read.
[[noreturn]] void refuse_pickle(const NamedFile& named);

// The formats that open_tensor_file() distinguishes, with its errors.
[[nodiscard]] TensorSource open_hdf5_tensors(const NamedFile& named);
[[nodiscard]] TensorSource open_npz_tensors(const NamedFile& named);
[[nodiscard]] TensorSource open_safetensors(const NamedFile& named);

}  // namespace lockstep::checkpoint
