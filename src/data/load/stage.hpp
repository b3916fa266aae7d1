// A copy of a set on each node, for nodes whose own disks are faster than what they share.
// Invariant: a copy exists whole and verified, or not at all.
// Used by the trainer and by `lockstep shard bench` (--stage).
#pragma once

#include <functional>
#include <string>

#include "runtime/communicator.hpp"

namespace lockstep::data {

/// Collective: copies the set's files into a folder of its own within `parent` (node-local) once per node, verified by
/// digest, and returns that folder, to be opened instead; its name follows from the manifest, and what is there already
/// and right is kept. `on_file` is called as files are done. A signal ends it early: it returns `set_folder` then.
std::string stage(const runtime::Communicator& world, const std::string& set_folder, const std::string& parent,
                  const std::function<void()>& on_file = {});

}  // namespace lockstep::data
