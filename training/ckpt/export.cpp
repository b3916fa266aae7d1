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

std::string export_help() {
  return R"(  lockstep ckpt export r --out weights.safetensors
  lockstep ckpt export r/checkpoints/step-000000100 --out all.npz --optimizer
  lockstep ckpt export weights.h5 --out weights.npz

FOLDER is that of a run, whose newest whole checkpoint is taken, or of a checkpoint, or a file: HDF5, .npz, .safetensors.
Parameters and running statistics, float32, have the names and shapes of PyTorch's state_dict; of statistics that lanes have
(--deterministic) it is the mean. --init-from reads the file, as do:

  .h5, .hdf5      h5py, h5dump: one data set for each tensor, as in weights.h5
  .npz            numpy.load: not compressed
  .safetensors    safetensors.torch.load_file, ...

      --out FILE         where; its ending chooses the format; appears when it is complete  (required)
      --optimizer        also the optimizer's states, such as exp_avg/conv1.weight
      --force            replace FILE if it is there                                        (refuse)
)";
}

Action declare_export(core::Flags& flags) {
  auto o = std::make_shared<ExportArguments>();
  flags.word("FOLDER", o->place);
  flags.toggle("--optimizer", o->optimizer);
  declare_new(flags, o->file);
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
