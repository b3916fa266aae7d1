#include "training/ckpt/new_file.hpp"

#include <filesystem>

#include "checkpoint/weights.hpp"
#include "core/pending.hpp"
#include "core/print.hpp"

namespace lockstep::training::ckpt {

void declare_new(core::Flags& flags, NewFile& file, const char* help) {
  flags.text("--out FILE", file.path, {help, "required"});
  flags.toggle("--force", file.is_forced, {"replace FILE if it exists", "refuse"});
}

void check_new(const NewFile& file) {
  std::error_code error;
  if (!file.is_forced && std::filesystem::exists(std::filesystem::symlink_status(file.path, error)))
    core::fail_usage({.what = fmt::format("'{}' exists", file.path),
                      .where = "--out",
                      .expected = "the name of a new file",
                      .fix = "choose another name, or replace it with --force"});
  core::check_writable(file.path, "--out");
}

void write_new(const NewFile& file, const checkpoint::TensorSource& from) {
  std::vector<checkpoint::TensorSpec> specs;
  for (const checkpoint::StoredTensor& tensor : from.tensors) {
    checkpoint::require_floats({from.path, "FILE"}, tensor);
    if (tensor.spec.shape.empty())
      checkpoint::refuse({from.path, "FILE"}, fmt::format("has {} as a single value", tensor.spec.name), "an array",
                         "store it as an array of shape [1]");
    specs.push_back(tensor.spec);
  }
  checkpoint::find_format(file.path, "--out")(file.path, from.info, specs, from.read, "--out");
  core::print("{}: {} tensors, {}, from {}\n", file.path, specs.size(),
              core::format_decimal(checkpoint::bytes_of(specs)), from.path);
}

}  // namespace lockstep::training::ckpt
