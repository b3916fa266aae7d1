#include "checkpoint/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/pending.hpp"
#include "core/result_path.hpp"
#include "core/suggest.hpp"
#include "core/units.hpp"
#include "io/hdf5.hpp"
#include "runtime/together.hpp"

namespace lockstep::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "check sums are of the bytes in memory and in the file");

std::string shape_text(const nn::Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

/// "2 missing (fc.bias, fc.weight)": with the first names.
std::string list_first(std::string_view what, const std::vector<std::string>& names) {
  constexpr std::size_t most = 3;
  const std::span<const std::string> first{names.data(), std::min(most, names.size())};
  return fmt::format("{} {} ({}{})", names.size(), what, core::join(first), names.size() > most ? ", ..." : "");
}

struct Differences {
  std::vector<std::string> missing{};
  std::vector<std::string> unexpected{};
  std::vector<std::string> shaped{};  ///< with both shapes

  [[nodiscard]] std::string text() const {
    std::vector<std::string> parts;
    if (!missing.empty()) parts.push_back(list_first("missing", missing));
    if (!unexpected.empty()) parts.push_back(list_first("unexpected", unexpected));
    if (!shaped.empty()) parts.push_back(list_first("of a different shape", shaped));
    return core::join(parts, "; ");
  }
};

Differences find_differences(const TensorSource& from, std::span<const TensorSpec> tensors) {
  std::map<std::string, nn::Shape> unused;
  for (const std::size_t i : find_weights(from)) unused[from.tensors[i].spec.name] = from.tensors[i].spec.shape;
  Differences differences;
  for (const TensorSpec& tensor : tensors) {
    const auto found = unused.extract(tensor.name);
    if (found.empty()) {
      differences.missing.push_back(tensor.name);
    } else if (found.mapped() != tensor.shape) {
      differences.shaped.push_back(
          fmt::format("{}: {}, not {}", tensor.name, shape_text(found.mapped()), shape_text(tensor.shape)));
    }
  }
  for (const auto& [name, shape] : unused) differences.unexpected.push_back(name);
  return differences;
}

bool all_begin_with(const TensorSource& from, std::span<const std::size_t> weights, std::string_view prefix) {
  return std::ranges::all_of(weights, [&](std::size_t i) { return from.tensors[i].spec.name.starts_with(prefix); });
}

/// The prefix that a wrapper adds to the names of a model.
struct Wrapper {
  std::string_view prefix;
  std::string_view made_by;
};
constexpr std::array wrappers{Wrapper{"module.", "DistributedDataParallel"}, Wrapper{"_orig_mod.", "torch.compile"},
                              Wrapper{"_fsdp_wrapped_module.", "FullyShardedDataParallel"},
                              Wrapper{"model.", "a module that holds the model"}};

/// Returns `prefix` and the known wrapper's prefix that all weights have after it; the same if there is none.
std::string with_wrapper(const TensorSource& from, std::span<const std::size_t> weights, const std::string& prefix) {
  for (const Wrapper& wrapper : wrappers)
    if (const std::string longer = prefix + std::string{wrapper.prefix}; all_begin_with(from, weights, longer))
      return longer;
  return prefix;
}

/// Only the weights, without `prefix`, which all of them have.
TensorSource without_prefix(const TensorSource& from, std::string_view prefix) {
  TensorSource source = subset(from, find_weights(from));
  for (StoredTensor& tensor : source.tensors) tensor.spec.name.erase(0, prefix.size());
  std::vector<std::size_t> order(source.tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) -> const std::string& { return source.tensors[i].spec.name; });
  return subset(std::move(source), std::move(order));
}

/// A source whose names fit the model, and the prefix that was removed; if none fits, the longest known one.
struct Unwrapped {
  std::optional<TensorSource> source{};
  std::string prefix{};
};

Unwrapped unwrap(const TensorSource& from, std::span<const TensorSpec> tensors) {
  const std::vector<std::size_t> weights = find_weights(from);
  if (weights.empty()) return {};
  const std::string& first = from.tensors[weights.front()].spec.name;
  for (const TensorSpec& tensor : tensors) {
    if (!first.ends_with("." + tensor.name)) continue;
    const std::string prefix = first.substr(0, first.size() - tensor.name.size());
    if (!all_begin_with(from, weights, prefix)) continue;
    TensorSource source = without_prefix(from, prefix);
    if (find_differences(source, tensors).text().empty()) return {std::move(source), prefix};
  }
  std::string known;
  for (std::string next = with_wrapper(from, weights, ""); next != known; next = with_wrapper(from, weights, known))
    known = next;
  return {std::nullopt, known};
}

std::string wrapper_text(const std::string& prefix) {
  const auto found = std::ranges::find_if(wrappers, [&](const Wrapper& one) { return prefix.starts_with(one.prefix); });
  return fmt::format("'{}', which {} puts before all names", prefix,
                     found != wrappers.end() ? found->made_by : wrappers.back().made_by);
}

[[noreturn]] void refuse_wrapped(const NamedFile& named, const std::string& model, const TensorSource& from,
                                 const std::string& prefix, std::span<const TensorSpec> tensors) {
  refuse(named,
         fmt::format("does not fit model {}, with or without {}; without: {}", model, wrapper_text(prefix),
                     find_differences(without_prefix(from, prefix), tensors).text()),
         "the tensors of the model, by name and shape",
         "choose the model and the number of outputs that it was saved with");
}

[[noreturn]] void refuse_misfit(const NamedFile& named, const std::string& stored_model, const std::string& model,
                                const Differences& differences) {
  const std::string text = differences.text();
  const bool is_other_model = !stored_model.empty() && stored_model != model;
  refuse(named, fmt::format("does not fit model {}: {}", model, text), "the tensors of the model, by name and shape",
         is_other_model ? fmt::format("it was saved from model {}: choose that one", stored_model)
                        : "choose the model and the number of outputs that it was saved with");
}

/// Removes a wrapper's prefix from all names of `source`, and reports it, if the names then fit.
void require_fit(const NamedFile& named, TensorSource& source, const std::string& model,
                 std::span<const TensorSpec> tensors) {
  const Differences differences = find_differences(source, tensors);
  if (differences.text().empty()) return;
  Unwrapped unwrapped = unwrap(source, tensors);
  if (!unwrapped.source && !unwrapped.prefix.empty()) refuse_wrapped(named, model, source, unwrapped.prefix, tensors);
  if (!unwrapped.source) refuse_misfit(named, source.info.model, model, differences);
  core::log_info(fmt::format("'{}': left out {}", named.path, wrapper_text(unwrapped.prefix)));
  source = std::move(*unwrapped.source);
}

/// Whether save_weights() may replace the file.
bool is_replaceable(const std::string& path) {
  try {
    return are_weights_of_ours(path);
  } catch (const core::Error& error) {
    if (error.code() == core::ExitCode::system) throw;
    return false;
  }
}

std::span<const std::byte> bytes_of(std::span<const float> values) { return std::as_bytes(values); }

void write_tensor(io::Hdf5File& file, const TensorSpec& tensor, std::span<const float> values) {
  io::Hdf5Dataset dataset =
      file.create_dataset("/" + tensor.name, core::DType::float32, tensor.shape, 0, io::Filter::none);
  dataset.write_all(bytes_of(values));
  dataset.set_attribute("crc32c", core::crc32c(bytes_of(values)));
}

/// Returns the index of the tensor, which must be in the list.
std::size_t place_by_name(const TensorSource& from, const std::string& name) {
  const auto name_of = [](const StoredTensor& tensor) -> const std::string& { return tensor.spec.name; };
  return static_cast<std::size_t>(std::ranges::lower_bound(from.tensors, name, {}, name_of) - from.tensors.begin());
}

/// A network with one such value would compute nothing else.
void require_finite(const NamedFile& named, const std::string& name, std::span<const float> values) {
  const auto is_not_finite = [](float value) { return !std::isfinite(value); };
  const auto first = std::ranges::find_if(values, is_not_finite);
  if (first == values.end()) return;
  refuse(named,
         fmt::format("has {} of {} values of {} that are not finite, the first of them number {}: {}",
                     std::ranges::count_if(values, is_not_finite), values.size(), name, first - values.begin(), *first),
         "finite weights", "use the weights of an earlier step, from before training diverged");
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
                  const FillTensor& fill, std::string_view flag, core::Links links) {
  core::PendingFile pending{path, flag, links};
  io::Hdf5File file = io::Hdf5File::create(pending.path());
  file.set_attribute("lockstep_format", std::string{weights_format});
  file.set_attribute("lockstep_version", weights_version);
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
  if (!std::filesystem::is_regular_file(path, error) || is_replaceable(path)) return;
  refuse({path, std::string{flag}}, "exists, and is not a weights file written by Lockstep",
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
  const std::uint64_t left = geteuid() == 0 ? space.free : space.available;  // root has a reserve
  if (error || space.capacity == 0 || left >= needed.value) return;          // 0: the file system does not tell
  throw core::Error{core::ExitCode::system,
                    {.what = fmt::format("no room for {} of {} in '{}', where {} are free", what,
                                         core::format_decimal(needed), folder.string(), core::format_decimal({left})),
                     .where = std::string{flag},
                     .expected = "enough free space",
                     .fix = "make room there, or name another place"}};
}

WeightsInfo load_weights(const runtime::Communicator& world, const std::string& path, const std::string& model,
                         std::span<const TensorSpec> tensors, const TakeTensor& take, std::string_view flag) {
  TensorSource source = open_tensors(world, path, flag);
  runtime::together(world, [&] {
    require_fit({path, std::string{flag}}, source, model, tensors);
    std::vector<float> buffer(largest(tensors));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::span<float> values = std::span{buffer}.first(nn::n_elements(tensors[i].shape));
      source.read(place_by_name(source, tensors[i].name), values);
      require_finite({path, std::string{flag}}, tensors[i].name, values);
      take(i, values);
    }
  });
  return source.info;
}

}  // namespace lockstep::checkpoint
