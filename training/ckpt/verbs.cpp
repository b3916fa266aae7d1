#include "training/ckpt/verbs.hpp"

namespace lockstep::training::ckpt {
namespace {

constexpr VerbCommand command{.name = "lockstep ckpt",
                              .about = R"(lockstep ckpt: list, check, compare, export and remove checkpoints

A checkpoint is a folder with HDF5 files, an index and the index's digest; lockstep train --resume reads it. FOLDER is a
run or a checkpoint.

  lockstep ckpt ls r               list the checkpoints of run r
  lockstep ckpt verify r           verify every byte of them
  lockstep ckpt diff r s           compare the newest checkpoints of two runs
  lockstep ckpt prune r --keep 1   remove the older ones
  lockstep ckpt cat r fc.bias      print the values of a tensor; without a name, list all tensors
  lockstep ckpt export r --out w.npz    write its weights for other programs; import reads theirs
  lockstep ckpt bench /scratch/me  measure how fast checkpoints are written there
)",
                              .note = "\n",
                              .verbs = verbs};

}  // namespace

Invocation parse(const std::vector<std::string>& arguments) { return parse_verb(command, arguments); }

}  // namespace lockstep::training::ckpt
