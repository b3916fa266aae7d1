#include "training/shard/verbs.hpp"

namespace lockstep::training::shard {
namespace {

constexpr VerbCommand command{.name = "lockstep shard",
                              .about = R"(lockstep shard: data sets as folders of HDF5 shards

A set is a folder with a manifest and shards. Any HDF5 program can read the shards. Check sums cover every byte.

  lockstep shard import mnist downloads/mnist --out m    convert a known format to shards
  lockstep shard synth digits --out d --samples 60000    make data from a seed
  lockstep shard stat d                                  show splits, shapes, classes, sizes
  lockstep shard verify d                                verify every byte
  lockstep shard bench d --nproc 2 --batch 64            measure how fast a trainer can read it
)",
                              .note = R"( All verbs
accept --nproc N, write the same bytes with any number of ranks, and need little memory for sets of any size.
)",
                              .verbs = verbs};

}  // namespace

Invocation parse(const std::vector<std::string>& arguments) { return parse_verb(command, arguments); }

}  // namespace lockstep::training::shard
