// lockstep ckpt cat: what a checkpoint, or a file of weights, holds.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "checkpoint/tensors.hpp"
#include "core/print.hpp"
#include "core/printable.hpp"
#include "core/suggest.hpp"
#include "core/table.hpp"
#include "io/digest.hpp"
#include "training/ckpt/checkpoints.hpp"
#include "training/ckpt/verbs.hpp"

namespace lockstep::training::ckpt {
namespace {

using checkpoint::StoredTensor;
using checkpoint::TensorSource;

struct CatArguments {
  std::string place;
  std::vector<std::string> tensors;
  bool all = false;
};

/// What is shown, and the line above it.
struct Shown {
  std::string heading;
  TensorSource source;
};

Shown open_folder(const std::string& folder) {
  const auto one = checkpoint::open_newest(runtime::Communicator::alone(), folder, "FOLDER");
  const std::string recipe = nlohmann::json::parse(one.content()).value("recipe_name", "unknown");
  Shown shown{.heading = {}, .source = checkpoint::all_tensors(one)};
  const SavedAt at = saved_at(one);
  shown.heading = fmt::format("{}: recipe {}, model {}, resumes at epoch {}, step {}, after {} samples\n", one.path(),
                              recipe, shown.source.info.model, at.epoch, at.step, at.samples_seen);
  return shown;
}

Shown open_place(const std::string& place) {
  std::error_code error;
  if (std::filesystem::is_directory(place, error)) return open_folder(place);
  Shown shown{.heading = {}, .source = checkpoint::open_tensor_file(place, "FOLDER")};
  const checkpoint::WeightsInfo& info = shown.source.info;
  shown.heading = info.model.empty() ? fmt::format("{}: unknown model\n", place)
                                     : fmt::format("{}: model {}, after epoch {}, {} samples\n", place, info.model,
                                                   info.epoch, info.samples_seen);
  return shown;
}

std::string shape_of(const StoredTensor& tensor) {
  std::vector<std::string> sizes;
  for (const std::uint64_t size : tensor.spec.shape) sizes.push_back(std::to_string(size));
  return fmt::format("[{}]", core::join(sizes));
}

std::string type_of(const StoredTensor& tensor) {
  return tensor.dtype ? std::string{core::name(*tensor.dtype)} : "no numbers";
}

std::vector<float> values_of(const TensorSource& source, std::size_t i) {
  checkpoint::require_floats({source.path, "TENSOR"}, source.tensors[i]);
  std::vector<float> values(nn::n_elements(source.tensors[i].spec.shape));
  source.read(i, values);
  return values;
}

std::string digest_of_tensor(const TensorSource& source, std::size_t i) {
  if (!checkpoint::holds_floats(source.tensors[i]) || source.tensors[i].spec.shape.empty()) return "-";
  const std::vector<float> values = values_of(source, i);
  return io::digest_of(std::as_bytes(std::span{values}));
}

void print_list(const Shown& shown) {
  std::size_t longest = 0;
  for (const StoredTensor& tensor : shown.source.tensors) longest = std::max(longest, tensor.spec.name.size());
  const core::Table table{{{.header = "tensor", .unit = "", .width = longest, .align = core::Align::left},
                           {.header = "shape", .unit = "", .width = 16},
                           {.header = "type", .unit = "", .width = 8},
                           {.header = "size", .unit = "", .width = 8},
                           {.header = "digest of values", .unit = "", .align = core::Align::left}}};
  core::print(shown.heading + table.header());
  std::uint64_t n_bytes = 0;
  for (std::size_t i = 0; i < shown.source.tensors.size(); ++i) {
    const StoredTensor& tensor = shown.source.tensors[i];
    const std::uint64_t bytes = nn::n_elements(tensor.spec.shape) * (tensor.dtype ? core::size_of(*tensor.dtype) : 1);
    n_bytes += bytes;
    core::print(table.row({core::printable(tensor.spec.name), shape_of(tensor), type_of(tensor),
                           tensor.dtype ? core::format_decimal({bytes}) : "-", digest_of_tensor(shown.source, i)}));
  }
  core::print("{} tensors, {}\n", shown.source.tensors.size(), core::format_decimal({n_bytes}));
}

[[noreturn]] void refuse_tensor(const Shown& shown, const std::string& name, std::vector<std::string> names) {
  const std::size_t n = names.size();
  for (std::size_t i = 0; i < n; ++i) names.push_back(names[i].substr(names[i].find('/') + 1));
  const auto meant = core::near_miss(name, names);
  core::fail_usage({.what = fmt::format("'{}' has no tensor '{}'", shown.source.path, name),
                    .where = "TENSOR",
                    .expected = fmt::format("one of {}; lockstep ckpt cat without TENSOR lists them", n),
                    .fix = meant ? fmt::format("did you mean '{}'?", *meant) : ""});
}

/// Its number; "conv1.weight" is "parameter/conv1.weight", too.
std::size_t find_tensor(const Shown& shown, const std::string& name) {
  std::vector<std::string> names;
  for (const StoredTensor& tensor : shown.source.tensors) names.push_back(tensor.spec.name);
  for (const char* const prefix : {"", "parameter/", "statistic/"}) {
    const auto found = std::ranges::find(names, prefix + name);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  refuse_tensor(shown, name, std::move(names));
}

/// Summarizes the finite values, and counts them.
struct Summary {
  double least = std::numeric_limits<double>::infinity(), most = -least, sum = 0;
  std::size_t n_finite = 0;
};

Summary summarize(std::span<const float> values) {
  Summary summary;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    summary.least = std::min(summary.least, double{value});
    summary.most = std::max(summary.most, double{value});
    summary.sum += value;
    ++summary.n_finite;
  }
  return summary;
}

void print_summary(const StoredTensor& tensor, std::span<const float> values) {
  constexpr std::size_t most_shown = 8;
  const Summary summary = summarize(values);
  core::print("{} {} {}\n", tensor.spec.name, shape_of(tensor), type_of(tensor));
  if (summary.n_finite > 0)
    core::print("  from {:.9g} to {:.9g}, mean {:.6g}\n", summary.least, summary.most,
                summary.sum / static_cast<double>(summary.n_finite));
  core::print("  {} of {} not finite\n", values.size() - summary.n_finite, values.size());
  std::string first;
  for (const float value : values.first(std::min(values.size(), most_shown))) first += fmt::format(" {:.9g}", value);
  core::print("  begins with{}{}\n", first, values.size() > most_shown ? " ..." : "");
}

/// Each with the digits that bring back its bits.
void print_values(std::span<const float> values) {
  constexpr std::size_t together = 4096;
  for (std::size_t first = 0; first < values.size(); first += together) {
    std::string text;
    for (const float value : values.subspan(first, std::min(together, values.size() - first)))
      text += fmt::format("{:.9g}\n", value);
    core::print(text);
  }
}

core::ExitCode cat(const CatArguments& arguments) {
  const Shown shown = open_place(arguments.place);
  std::vector<std::size_t> numbers;
  for (const std::string& name : arguments.tensors) numbers.push_back(find_tensor(shown, name));
  if (numbers.empty()) print_list(shown);
  for (const std::size_t i : numbers) {
    const std::vector<float> values = values_of(shown.source, i);
    if (arguments.all)
      print_values(values);
    else
      print_summary(shown.source.tensors[i], values);
  }
  return core::ExitCode::ok;
}

}  // namespace

constexpr std::string_view cat_help = R"(  lockstep ckpt cat r
  lockstep ckpt cat r conv1.weight exp_avg/conv1.weight
  lockstep ckpt cat weights.h5 fc.bias --all | sort -g

FOLDER is a run (its newest complete checkpoint is shown), a checkpoint, or a file: HDF5, .npz, .safetensors. Without
TENSOR it lists all tensors with the digest (XXH3, 128 bits) of their values, which does not depend on the number of
ranks. For a TENSOR it prints the minimum, maximum and mean, the number of values that are not finite, and the first
values.

)";

Action declare_cat(core::Flags& flags) {
  flags.note(cat_help);
  auto o = std::make_shared<CatArguments>();
  flags.word("FOLDER", o->place);
  flags.words("TENSOR", o->tensors, 0);
  flags.toggle("--all", o->all, "print all values of each TENSOR, one per line, and nothing else");
  return {.check =
              [o] {
                if (o->all && o->tensors.empty())
                  core::fail_usage({.what = "--all has no effect without a tensor",
                                    .where = "--all",
                                    .expected = "TENSOR after FOLDER",
                                    .fix = "lockstep ckpt cat FOLDER lists their names"});
              },
          .run = [o](const runtime::Session& session) { return on_first_rank(session, [&] { return cat(*o); }); }};
}

}  // namespace lockstep::training::ckpt
