// Attributes of HDF5 objects: texts and numbers.
// Invariant: texts have fixed length, so that they are completely inside the object.
// Used by io/hdf5_dataset and io/hdf5_file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/hdf5_library.hpp"

namespace lockstep::io {

/// Replaces an attribute of the same name.
void write_attribute(const Place& place, hid_t object, const std::string& name, const std::string& value);
void write_attribute(const Place& place, hid_t object, const std::string& name, std::uint64_t value);

/// Returns nothing if there is no attribute of this name, or it is not a single text.
[[nodiscard]] std::optional<std::string> read_text_attribute(const Place& place, hid_t object, const std::string& name);

/// Returns nothing if there is no attribute of this name, or it is not a single integer.
[[nodiscard]] std::optional<std::uint64_t> read_number_attribute(const Place& place, hid_t object,
                                                                 const std::string& name);

}  // namespace lockstep::io
