// The tensors of an HDF5 file: of --save-weights, with check sums, or of another program.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "checkpoint/tensors.hpp"
#include "checkpoint/weights.hpp"
#include "core/crc32c.hpp"
#include "io/hdf5.hpp"

namespace lockstep::checkpoint {
namespace {

/// Returns the result of `step`. The file begins as HDF5, so an error of HDF5 means damage.
template <class Step>
auto undamaged(const NamedFile& named, Step&& step) {
  try {
    return step();
  } catch (const core::Error& error) {
    if (error.code() != core::ExitCode::usage) throw;
    fail_damaged(named, error.problem().what);
  }
}

/// The root's attributes. Files of other programs have no format and no check sums.
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

void refuse_other_formats(const NamedFile& named, const Header& header) {
  if (!header.format) return;
  if (*header.format != weights_format)
    refuse(named, fmt::format("is a Lockstep {}", *header.format), "a weights file", "");
  if (!header.version) fail_damaged(named, "it does not state its format version");
  if (*header.version > weights_version) {
    refuse(named, fmt::format("has format version {}", *header.version),
           fmt::format("at most version {}", weights_version), "use a newer Lockstep");
  }
}

std::vector<StoredTensor> list_datasets(const NamedFile& named, const io::Hdf5File& file, bool is_ours) {
  std::vector<StoredTensor> tensors;
  for (const std::string& path : undamaged(named, [&] { return file.dataset_names(); })) {
    const io::Hdf5Dataset dataset = undamaged(named, [&] { return file.open_dataset(path); });
    const std::string name = path.substr(1);  // without the slash of the root
    if (!find_bytes(dataset.dimensions(), sizeof(double)))
      refuse(named, fmt::format("has {} with an impossible number of bytes", name), "tensors that fit into memory", "");
    const auto require_written = [&] { dataset.require_written(); };
    if (dataset.dtype()) is_ours ? undamaged(named, require_written) : require_written();
    tensors.push_back({{name, dataset.dimensions()}, dataset.dtype()});
  }
  return tensors;
}

void read_dataset(const NamedFile& named, const io::Hdf5File& file, const StoredTensor& tensor, bool is_ours,
                  std::span<float> values) {
  const io::Hdf5Dataset dataset = undamaged(named, [&] { return file.open_dataset("/" + tensor.spec.name); });
  read_floats(named, tensor, values, [&](std::span<std::byte> bytes) {
    undamaged(named, [&] { dataset.read_rows(0, tensor.spec.shape.front(), bytes); });
  });
  if (!is_ours) return;
  const auto expected = undamaged(named, [&] { return dataset.find_number_attribute("crc32c"); });
  if (expected != core::crc32c(std::as_bytes(values)))
    fail_damaged(named, tensor.spec.name + " differs from what was saved");
}

}  // namespace

bool are_weights_of_ours(const std::string& path) {
  return read_header(io::Hdf5File::open(path)).format == weights_format;
}

TensorSource open_hdf5_tensors(const NamedFile& named) {
  const auto file = std::make_shared<io::Hdf5File>(undamaged(named, [&] { return io::Hdf5File::open(named.path); }));
  const Header header = undamaged(named, [&] { return read_header(*file); });
  refuse_other_formats(named, header);
  const bool is_ours = header.format.has_value();
  TensorSource source{.path = named.path, .info = header.info, .tensors = list_datasets(named, *file, is_ours)};
  source.read = [named, file, is_ours, tensors = source.tensors](std::size_t i, std::span<float> values) {
    if (tensors.at(i).spec.shape.empty())
      refuse(named, fmt::format("has {} as a single value", tensors[i].spec.name), "an array",
             "store it as an array of shape [1]");
    read_dataset(named, *file, tensors[i], is_ours, values);
  };
  return source;
}

}  // namespace lockstep::checkpoint
