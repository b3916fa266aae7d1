#include "checkpoint/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "core/pending.hpp"
#include "core/result_path.hpp"
#include "core/suggest.hpp"
#include "core/units.hpp"
#include "io/file.hpp"
#include "io/hdf5.hpp"

namespace lockstep::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "check sums are of the bytes in memory and in the file");

constexpr const char* format = "weights";
constexpr std::uint64_t version = 1;

/// A file, and the flag that named it.
struct NamedFile {
  std::string path;
  std::string_view flag;
};

[[noreturn]] void refuse(const NamedFile& named, std::string what, std::string expected, std::string fix) {
  core::fail_usage({.what = fmt::format("'{}' {}", named.path, what),
                    .where = std::string{named.flag},
                    .expected = std::move(expected),
                    .fix = std::move(fix)});
}

[[noreturn]] void fail_damaged(const NamedFile& named, const std::string& what) {
  throw core::Error{core::ExitCode::failed,
                    {.what = fmt::format("'{}' is damaged: {}", named.path, what),
                     .where = std::string{named.flag},
                     .fix = "copy the file again, or use an older one"}};
}

/// What `step` gives; what HDF5 cannot read in a file that begins as one is damage.
template <class Step>
auto undamaged(const NamedFile& named, Step&& step) {
  try {
    return step();
  } catch (const core::Error& error) {
    if (error.code() != core::ExitCode::usage) throw;
    fail_damaged(named, error.problem().what);
  }
}

bool begins_as_hdf5(const std::string& path) {
  constexpr std::array<unsigned char, 8> signature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  const io::File file{path};
  std::array<unsigned char, signature.size()> begin{};
  if (file.size().value < begin.size()) return false;
  file.read_at(0, std::as_writable_bytes(std::span{begin}));
  return begin == signature;
}

io::Hdf5File open(const NamedFile& named) {
  bool is_hdf5 = false;
  try {
    is_hdf5 = begins_as_hdf5(named.path);
  } catch (const core::Error& error) {
    core::Problem problem = error.problem();
    problem.where = named.flag;
    throw core::Error{error.code(), problem, error.location()};
  }
  if (!is_hdf5) refuse(named, "is no HDF5 file", "a file of --save-weights, or one that h5py wrote", "");
  return undamaged(named, [&] { return io::Hdf5File::open(named.path); });
}

/// What the root's attributes say. Files of others have no format, and no check sums.
struct Header {
  std::optional<std::string> format;
  std::optional<std::uint64_t> version;
  WeightsInfo info;
};

Header read_header(const io::Hdf5File& file) {
  return {.format = file.find_text_attribute("lockstep_format"),
          .version = file.find_number_attribute("lockstep_version"),
          .info = {.model = file.find_text_attribute("model").value_or(""),
                   .epoch = file.find_number_attribute("epoch").value_or(0),
                   .samples_seen = file.find_number_attribute("samples_seen").value_or(0)}};
}

bool are_weights_of_ours(const std::string& path) {
  try {
    return begins_as_hdf5(path) && read_header(io::Hdf5File::open(path)).format == format;
  } catch (const core::Error& error) {
    if (error.code() == core::ExitCode::system) throw;
    return false;
  }
}

void refuse_other_formats(const NamedFile& named, const Header& header) {
  if (!header.format) return;
  if (*header.format != format)
    refuse(named, fmt::format("is a {} of Lockstep", *header.format), "a file of weights", "");
  if (!header.version) fail_damaged(named, "it does not say which version of the format it has");
  if (*header.version > version) {
    refuse(named, fmt::format("has version {} of the format", *header.version),
           fmt::format("at most version {}", version), "use a newer Lockstep");
  }
}

std::string shape_text(const nn::Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

/// PyTorch's count of batches, which nothing of ours needs.
bool is_ignored(std::string_view name) { return name.ends_with(".num_batches_tracked"); }

/// "2 missing (fc.bias, fc.weight)": the first ones by name.
std::string list_first(std::string_view what, const std::vector<std::string>& names) {
  constexpr std::size_t most = 3;
  const std::span<const std::string> first{names.data(), std::min(most, names.size())};
  return fmt::format("{} {} ({}{})", names.size(), what, core::join(first), names.size() > most ? ", ..." : "");
}

struct Differences {
  std::vector<std::string> missing{};
  std::vector<std::string> unexpected{};
  std::vector<std::string> shaped{};  ///< with the two shapes

  [[nodiscard]] std::string text() const {
    std::vector<std::string> parts;
    if (!missing.empty()) parts.push_back(list_first("missing", missing));
    if (!unexpected.empty()) parts.push_back(list_first("unexpected", unexpected));
    if (!shaped.empty()) parts.push_back(list_first("of another shape", shaped));
    return core::join(parts, "; ");
  }
};

Differences compare(const std::map<std::string, nn::Shape>& stored, std::span<const TensorSpec> tensors) {
  Differences differences;
  std::set<std::string> wanted;
  for (const TensorSpec& tensor : tensors) {
    wanted.insert(tensor.name);
    const auto found = stored.find(tensor.name);
    if (found == stored.end()) {
      differences.missing.push_back(tensor.name);
    } else if (found->second != tensor.shape) {
      differences.shaped.push_back(
          fmt::format("{}: {}, not {}", tensor.name, shape_text(found->second), shape_text(tensor.shape)));
    }
  }
  for (const auto& [name, shape] : stored)
    if (!wanted.contains(name)) differences.unexpected.push_back(name);
  return differences;
}

std::map<std::string, nn::Shape> stored_tensors(const io::Hdf5File& file) {
  std::map<std::string, nn::Shape> stored;
  for (const std::string& path : file.dataset_names()) {
    const std::string name = path.substr(1);  // without the slash of the root
    if (!is_ignored(name)) stored[name] = file.open_dataset(path).dimensions();
  }
  return stored;
}

void refuse_misfit(const NamedFile& named, const std::string& stored_model, const std::string& model,
                   const Differences& differences) {
  const std::string text = differences.text();
  if (text.empty()) return;
  const bool is_other_model = !stored_model.empty() && stored_model != model;
  refuse(named, fmt::format("does not fit model {}: {}", model, text), "the tensors of the model, by name and shape",
         is_other_model ? fmt::format("it was saved from model {}: choose that one", stored_model)
                        : "choose the model and the number of outputs it was saved from");
}

std::span<const std::byte> bytes_of(std::span<const float> values) { return std::as_bytes(values); }

void write_tensor(io::Hdf5File& file, const TensorSpec& tensor, std::span<const float> values) {
  io::Hdf5Dataset dataset =
      file.create_dataset("/" + tensor.name, core::DType::float32, tensor.shape, 0, io::Filter::none);
  dataset.write_all(bytes_of(values));
  dataset.set_attribute("crc32c", core::crc32c(bytes_of(values)));
}

void read_tensor(const NamedFile& named, const io::Hdf5File& file, bool is_checked, const TensorSpec& tensor,
                 std::span<float> values) {
  const io::Hdf5Dataset dataset = undamaged(named, [&] { return file.open_dataset("/" + tensor.name); });
  if (dataset.dtype() != core::DType::float32) {
    refuse(named,
           fmt::format("has {} in {}", tensor.name, dataset.dtype() ? core::name(*dataset.dtype()) : "no numbers"),
           "float32", "store it as float32 (h5py: dtype='f4')");
  }
  undamaged(named, [&] { dataset.read_rows(0, tensor.shape.front(), std::as_writable_bytes(values)); });
  if (!is_checked) return;
  const auto expected = undamaged(named, [&] { return dataset.find_number_attribute("crc32c"); });
  if (expected != core::crc32c(bytes_of(values))) fail_damaged(named, tensor.name + " is not what was saved");
}

std::uint64_t largest(std::span<const TensorSpec> tensors) {
  std::uint64_t most = 0;
  for (const TensorSpec& tensor : tensors) most = std::max(most, nn::n_elements(tensor.shape));
  return most;
}

}  // namespace

std::vector<TensorSpec> tensors_of(const nn::Network& network) {
  std::vector<TensorSpec> tensors;
  for (const nn::Parameter& parameter : network.parameters()) tensors.push_back({parameter.name, parameter.shape});
  for (const nn::Statistic& statistic : network.statistics())
    tensors.push_back({statistic.name, {statistic.n_channels}});
  return tensors;
}

void save_weights(const std::string& path, const WeightsInfo& info, std::span<const TensorSpec> tensors,
                  const FillTensor& fill, std::string_view flag) {
  core::PendingFile pending{path, flag};
  io::Hdf5File file = io::Hdf5File::create(pending.path());
  file.set_attribute("lockstep_format", std::string{format});
  file.set_attribute("lockstep_version", version);
  file.set_attribute("model", info.model);
  file.set_attribute("epoch", info.epoch);
  file.set_attribute("samples_seen", info.samples_seen);
  std::vector<float> buffer(largest(tensors));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::span<float> values = std::span{buffer}.first(nn::n_elements(tensors[i].shape));
    fill(i, values);
    write_tensor(file, tensors[i], values);
  }
  file.close();
  pending.commit();
}

void check_replaceable(const std::string& path, std::string_view flag) {
  core::check_writable(path, flag);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || are_weights_of_ours(path)) return;
  refuse({path, flag}, "is there, and is no file of weights that Lockstep has written",
         "the name of a new file, or of weights to replace", "choose another name, or move that file away");
}

core::Bytes bytes_of(std::span<const TensorSpec> tensors) {
  std::uint64_t n = 0;
  for (const TensorSpec& tensor : tensors) n += nn::n_elements(tensor.shape) * sizeof(float);
  return {n};
}

void check_room(const std::string& path, std::string_view what, core::Bytes needed, std::string_view flag) {
  const std::filesystem::path folder = std::filesystem::absolute(core::behind_links(path)).parent_path();
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  const std::uint64_t left = geteuid() == 0 ? space.free : space.available;  // some of it is for root alone
  if (error || space.capacity == 0 || left >= needed.value) return;          // 0: one that does not tell
  throw core::Error{core::ExitCode::system,
                    {.what = fmt::format("{} of {} have no room in '{}', where {} are left", what,
                                         core::format_decimal(needed), folder.string(), core::format_decimal({left})),
                     .where = std::string{flag},
                     .expected = "room for one of them",
                     .fix = "make room there, or name another place with --save-weights or --run-dir"}};
}

WeightsInfo load_weights(const std::string& path, const std::string& model, std::span<const TensorSpec> tensors,
                         const TakeTensor& take, std::string_view flag) {
  const NamedFile named{path, flag};
  const io::Hdf5File file = open(named);
  const Header header = undamaged(named, [&] { return read_header(file); });
  refuse_other_formats(named, header);
  const auto stored = undamaged(named, [&] { return stored_tensors(file); });
  refuse_misfit(named, header.info.model, model, compare(stored, tensors));
  std::vector<float> buffer(largest(tensors));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::span<float> values = std::span{buffer}.first(nn::n_elements(tensors[i].shape));
    read_tensor(named, file, header.format.has_value(), tensors[i], values);
    take(i, values);
  }
  return header.info;
}

}  // namespace lockstep::checkpoint
