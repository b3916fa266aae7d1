// lockstep ckpt import: a file of weights of another program as one of ours, with check sums.

#include <memory>

#include "training/ckpt/new_file.hpp"
#include "training/ckpt/verbs.hpp"

namespace lockstep::training::ckpt {
namespace {

struct ImportArguments {
  std::string from;
  NewFile file;
};

core::ExitCode import_tensors(const ImportArguments& arguments) {
  check_new(arguments.file);
  auto source = checkpoint::open_tensor_file(arguments.from, "FILE");
  source = checkpoint::subset(source, checkpoint::find_weights(source));
  if (source.tensors.empty())
    core::fail_usage({.what = fmt::format("'{}' holds no weights", arguments.from),
                      .where = "FILE",
                      .expected = "tensors by the names of PyTorch's state_dict",
                      .fix = "lockstep ckpt cat lists what it holds"});
  write_new(arguments.file, source);
  return core::ExitCode::ok;
}

}  // namespace

constexpr std::string_view import_help = R"(  lockstep ckpt import mine.safetensors --out weights.h5
  lockstep train RECIPE --init-from weights.h5

FILE is HDF5, .npz or .safetensors; its content decides, not its name. Tensors have the names and shapes of PyTorch's
state_dict, and are float32, or float16 or bfloat16, which are converted to float32 without loss. num_batches_tracked
and states of an optimizer (exp_avg/NAME beside NAME) are left out. --init-from also reads FILE directly; the import
adds one format, and a check sum for each tensor.

)";

Action declare_import(core::Flags& flags) {
  flags.note(import_help);
  auto o = std::make_shared<ImportArguments>();
  flags.word("FILE", o->from);
  declare_new(flags, o->file, "new file, ends in .h5; appears when it is complete");
  return {
      .check =
          [o, &flags] {
            flags.require("--out", "FILE, such as weights.h5");
            if (!o->file.path.ends_with(".h5") && !o->file.path.ends_with(".hdf5"))
              core::fail_usage({.what = fmt::format("'{}' is not the name of an HDF5 file", o->file.path),
                                .where = "--out",
                                .expected = "a name that ends in .h5",
                                .fix = "lockstep ckpt export writes other formats"});
          },
      .run =
          [o](const runtime::Session& session) { return on_first_rank(session, [&] { return import_tensors(*o); }); }};
}

}  // namespace lockstep::training::ckpt
