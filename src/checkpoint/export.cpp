#include "checkpoint/export.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/weights.hpp"
#include "core/pending.hpp"
#include "data/format/little_endian.hpp"

namespace lockstep::checkpoint {
namespace {

void save_hdf5(const std::string& path, const WeightsInfo& info, std::span<const TensorSpec> tensors,
               const FillTensor& fill, std::string_view flag) {
  save_weights(path, info, tensors, fill, flag);
}

struct Format {
  std::string_view ending;
  SaveTensors save;
};

constexpr std::array<Format, 4> formats{
    {{".h5", save_hdf5}, {".hdf5", save_hdf5}, {".npz", save_npz}, {".safetensors", save_safetensors}}};

/// Padded with blanks, so that data are aligned to 8 bytes.
std::string header_text(const WeightsInfo& info, std::span<const TensorSpec> tensors) {
  nlohmann::ordered_json header{{"__metadata__",
                                 {{"format", "pt"},
                                  {"model", info.model},
                                  {"epoch", std::to_string(info.epoch)},
                                  {"samples_seen", std::to_string(info.samples_seen)}}}};
  std::uint64_t at = 0;
  for (const TensorSpec& tensor : tensors) {
    const std::uint64_t end = at + nn::n_elements(tensor.shape) * sizeof(float);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace

void save_safetensors(const std::string& path, const WeightsInfo& info, std::span<const TensorSpec> tensors,
                      const FillTensor& fill, std::string_view flag) {
  core::PendingFile pending{path, flag};
  const std::string header = header_text(info, tensors);
  std::vector<std::byte> length;
  data::append_little_endian(length, std::uint64_t{header.size()});
  pending.write(length);
  pending.write(std::as_bytes(std::span{header}));
  std::vector<float> buffer(largest(tensors));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::span<float> values = std::span{buffer}.first(nn::n_elements(tensors[i].shape));
    fill(i, values);
    pending.write(std::as_bytes(values));
  }
  pending.commit();
}

SaveTensors find_format(const std::string& path, std::string_view flag) {
  for (const Format& format : formats)
    if (path.ends_with(format.ending)) return format.save;
  core::fail_usage({.what = fmt::format("the name '{}' does not say which format to write", path),
                    .where = std::string{flag},
                    .expected = "a name that ends in .h5, .npz or .safetensors",
                    .fix = "choose one of these endings"});
}

}  // namespace lockstep::checkpoint
