// Checks whether all of a foreign data set was written, and that no other program still writes it.
// Invariant: values that were never written, which the library would fill in, give one core::Error (usage) or are
// reported.
// Used by io/hdf5_file and io/hdf5_dataset.
#pragma once

#include <string>

#include "core/descriptor.hpp"
#include "io/hdf5.hpp"
#include "io/hdf5_library.hpp"

namespace lockstep::io {

/// As Hdf5Dataset::require_written.
std::string require_written(const Place& place, hid_t dataset, Unwritten unwritten);

/// Locks the file as the library does for reading, until the descriptor is closed; does nothing if the file system has
/// no locks. Throws if another process has locked it for writing.
[[nodiscard]] core::Descriptor lock_for_reading(const Place& place);

}  // namespace lockstep::io
