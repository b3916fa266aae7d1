#include "training/ckpt/verbs.hpp"

namespace lockstep::training::ckpt {
namespace {

constexpr VerbCommand command{.name = "lockstep ckpt",
                              .about = R"(lockstep ckpt: what lockstep train --resume goes on from

A checkpoint is a folder with HDF5 files, an index and the index's digest. FOLDER is that of a run, or of a checkpoint.

  lockstep ckpt ls r               the checkpoints of run r
  lockstep ckpt verify r           is every byte of them right?
  lockstep ckpt diff r s           are the newest ones of two runs equal, and where not?
  lockstep ckpt prune r --keep 1   remove the older ones
  lockstep ckpt cat r fc.bias      which values has a tensor of it? Without a name: which tensors?
  lockstep ckpt export r --out w.npz    its weights for other programs; import takes theirs
  lockstep ckpt bench /scratch/me  how fast are checkpoints written there?
)",
                              .note = "\n",
                              .verbs = verbs};

}  // namespace

Invocation parse(const std::vector<std::string>& arguments) { return parse_verb(command, arguments); }

}  // namespace lockstep::training::ckpt
