// Where the content of a foreign data set comes from: links to it, other files it is made of, filters it went through.
// Invariant: what the library would take for missing, or read as zeros, is one core::Error (usage) that names it.
// Used by io/hdf5_file.
#pragma once

#include <string>

#include "io/hdf5_library.hpp"

namespace lockstep::io {

/// Throws if `name` or a group on the way to it is a link that leads nowhere, or is there and cannot be opened.
void refuse_dead_links(const Place& place, hid_t file, const std::string& name, hid_t link_list);

/// Throws if the library lacks a filter of the data set, or a file of a virtual data set is not there.
void require_origin(const Place& place, hid_t dataset);

}  // namespace lockstep::io
