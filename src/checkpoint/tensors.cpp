#include "checkpoint/tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "io/file.hpp"
#include "runtime/together.hpp"

namespace lockstep::checkpoint {
namespace {

constexpr const char* tensor_files = "a file written by --save-weights, h5py, NumPy or safetensors";

/// The first bytes of a file, fewer if it is shorter.
std::string beginning_of(const NamedFile& named, std::size_t n) try {
  const io::File file{named.path};
  std::string begin(std::min<std::uint64_t>(n, file.size().value), '\0');
  file.read_at(0, std::as_writable_bytes(std::span{begin}));
  return begin;
} catch (const core::Error& error) {
  core::Problem problem = error.problem();
  problem.where = named.flag;
  throw core::Error{error.code(), problem, error.location()};
}

TensorSource open_by_content(const NamedFile& named, std::string_view begin) {
  if (begin.starts_with("\x89HDF\r\n\x1a\n")) return open_hdf5_tensors(named);
  if (begin.starts_with("PK\x03\x04") || begin.starts_with("PK\x05\x06")) return open_npz_tensors(named);
  if (begin.ends_with('{') && begin.size() == 9) return open_safetensors(named);
  if (begin.starts_with('\x80')) refuse_pickle(named);
  if (begin.empty()) refuse(named, "is an empty file", tensor_files, "copy or write it again");
  refuse(named, "is not an HDF5, .npz or .safetensors file", tensor_files, "");
}

/// PyTorch's count of batches, which we do not need.
bool is_count(std::string_view name) { return name.ends_with(".num_batches_tracked"); }

/// Whether it is a state: "exp_avg/fc.weight" beside "fc.weight".
bool is_state(const std::string& name, const std::set<std::string>& names) {
  const std::size_t slash = name.find('/');
  return slash != std::string::npos && names.contains(name.substr(slash + 1));
}

template <class Half>
void widen(std::span<const std::uint16_t> halves, std::span<float> values) {
  std::ranges::transform(halves, values.begin(),
                         [](std::uint16_t half) { return static_cast<float>(Half::from_bits(half)); });
}

}  // namespace

TensorSource open_tensor_file(const std::string& path, std::string_view flag) {
  const NamedFile named{path, std::string{flag}};
  TensorSource source = open_by_content(named, beginning_of(named, 9));
  if (source.tensors.empty())
    refuse(named, "holds no tensors", tensor_files, "write it again, with the tensors of the model");
  return source;
}

void refuse_pickle(const NamedFile& named) {
  refuse(named, "is a Python pickle, as torch.save writes", tensor_files,
         "convert it in Python: safetensors.torch.save_file(model.state_dict(), 'w.safetensors')");
}

TensorSource open_tensors(const runtime::Communicator& world, const std::string& path, std::string_view flag) {
  std::error_code error;
  const bool is_folder = world.rank() == 0 && std::filesystem::is_directory(path, error);
  if (runtime::broadcast_value(world, is_folder)) return weights_of(open_newest(world, path, flag));
  TensorSource source;
  runtime::together(world, [&] { source = open_tensor_file(path, flag); });
  return source;
}

std::vector<std::size_t> find_weights(const TensorSource& from) {
  std::set<std::string> names;
  for (const StoredTensor& tensor : from.tensors) names.insert(tensor.spec.name);
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < from.tensors.size(); ++i) {
    const std::string& name = from.tensors[i].spec.name;
    if (!is_count(name) && !is_state(name, names)) found.push_back(i);
  }
  return found;
}

TensorSource subset(TensorSource from, std::vector<std::size_t> kept) {
  std::vector<StoredTensor> tensors;
  for (const std::size_t i : kept) tensors.push_back(from.tensors.at(i));
  from.tensors = std::move(tensors);
  from.read = [read = std::move(from.read), kept = std::move(kept)](std::size_t i, std::span<float> values) {
    read(kept.at(i), values);
  };
  return from;
}

std::uint64_t largest(std::span<const TensorSpec> tensors) {
  std::uint64_t most = 0;
  for (const TensorSpec& tensor : tensors) most = std::max(most, nn::n_elements(tensor.shape));
  return most;
}

std::optional<std::uint64_t> find_bytes(const nn::Shape& shape, std::size_t element_bytes) {
  if (std::ranges::find(shape, 0u) != shape.end()) return 0;
  std::uint64_t bytes = element_bytes;
  for (const std::uint64_t size : shape)
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  return bytes;
}

bool holds_floats(const StoredTensor& tensor) noexcept {
  return tensor.dtype == core::DType::float32 || tensor.dtype == core::DType::float16 ||
         tensor.dtype == core::DType::bfloat16;
}

void require_floats(const NamedFile& named, const StoredTensor& tensor) {
  if (holds_floats(tensor)) return;
  refuse(named,
         fmt::format("stores {} as {}", tensor.spec.name,
                     tensor.dtype ? core::name(*tensor.dtype) : "something else than numbers"),
         "float32, float16 or bfloat16",
         "store it as float32 (h5py: dtype='f4', NumPy: .astype('f4'), PyTorch: .float())");
}

void read_floats(const NamedFile& named, const StoredTensor& tensor, std::span<float> values,
                 const std::function<void(std::span<std::byte>)>& read) {
  require_floats(named, tensor);
  if (tensor.dtype == core::DType::float32) return read(std::as_writable_bytes(values));
  std::vector<std::uint16_t> halves(values.size());
  read(std::as_writable_bytes(std::span{halves}));
  tensor.dtype == core::DType::float16 ? widen<core::float16>(halves, values) : widen<core::bfloat16>(halves, values);
}

}  // namespace lockstep::checkpoint
