// lockstep ckpt export: the tensors of a checkpoint as a file that other programs read.

#include <memory>

#include "training/ckpt/new_file.hpp"
#include "training/ckpt/verbs.hpp"

namespace lockstep::training::ckpt {
namespace {

struct ExportArguments {
  std::string place;
  NewFile file;
  bool optimizer = false;
};

core::ExitCode export_tensors(const ExportArguments& arguments) {
  check_new(arguments.file);
  auto source = checkpoint::open_tensors(runtime::Communicator::alone(), arguments.place, "FOLDER");
  if (!arguments.optimizer) source = checkpoint::subset(source, checkpoint::find_weights(source));
  write_new(arguments.file, source);
  return core::ExitCode::ok;
}

}  // namespace

constexpr std::string_view export_help = R"(  lockstep ckpt export r --out weights.safetensors
  lockstep ckpt export r/checkpoints/step-000000100 --out all.npz --optimizer
  lockstep ckpt export weights.h5 --out weights.npz

FOLDER is a run (its newest complete checkpoint is used), a checkpoint, or a file: HDF5, .npz, .safetensors. Parameters
and running statistics are float32, with the names and shapes of PyTorch's state_dict. Statistics of several lanes
(--deterministic) are averaged. --init-from reads the file, and so do:

  .h5, .hdf5      h5py, h5dump: one data set for each tensor, as in weights.h5
  .npz            numpy.load: not compressed
  .safetensors    safetensors.torch.load_file, ...

)";

Action declare_export(core::Flags& flags) {
  flags.note(export_help);
  auto o = std::make_shared<ExportArguments>();
  flags.word("FOLDER", o->place);
  declare_new(flags, o->file, "new file; its ending sets the format; appears when it is complete");
  flags.toggle("--optimizer", o->optimizer, "also export the optimizer's states, such as exp_avg/conv1.weight");
  return {
      .check =
          [o, &flags] {
            flags.require("--out", "FILE, such as weights.safetensors");
            static_cast<void>(checkpoint::find_format(o->file.path, "--out"));
          },
      .run =
          [o](const runtime::Session& session) { return on_first_rank(session, [&] { return export_tensors(*o); }); }};
}

}  // namespace lockstep::training::ckpt
