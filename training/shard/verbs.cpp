#include "training/shard/verbs.hpp"

namespace lockstep::training::shard {
namespace {

constexpr VerbCommand command{.name = "lockstep shard",
                              .about = R"(lockstep shard: data sets as folders of HDF5 shards

A set is a folder with a manifest and shards that any HDF5 program can read; every byte is covered by a check sum.

  lockstep shard import mnist downloads/mnist --out m    a known format to shards
  lockstep shard synth digits --out d --samples 60000    or data made from a seed
  lockstep shard stat d                                  splits, shapes, classes, sizes
  lockstep shard verify d                                is every byte right?
  lockstep shard bench d --nproc 2 --batch 64            how fast can a trainer read it?
)",
                              .note = R"( All take --nproc N to work with N ranks on this machine, and
give the same bytes for any number of ranks; all need little memory, whatever the size of the set.
)",
                              .verbs = verbs};

}  // namespace

Invocation parse(const std::vector<std::string>& arguments) { return parse_verb(command, arguments); }

}  // namespace lockstep::training::shard
