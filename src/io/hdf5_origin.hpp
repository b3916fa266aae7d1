// The origin of a foreign data set's content: links to it, other files that it is made of, filters that it went
// through.
// Invariant: content that the library would treat as missing, read as zeros, or take from files that the user has not
// named gives one core::Error (usage) that names it.
// Used by io/hdf5_file and io/hdf5_dataset.
#pragma once

#include <string>

#include "io/hdf5_library.hpp"

namespace lockstep::io {

/// Which files a file may lead to.
struct Reach {
  bool has_others = false;  ///< other files are read, if the file refers to them
  std::string refused{};    ///< the other file that a link led to, if that is not allowed
};

/// Makes every open with this list follow links within `reach`, which must live as long.
void limit_links(const Place& place, hid_t link_list, Reach& reach);

/// Throws if a link led to another file since the last time.
void refuse_far_link(const Place& place, Reach& reach);

/// Throws if `name` or a group on the way to it is a link that leads nowhere, or exists and cannot be opened.
void refuse_dead_links(const Place& place, hid_t file, const std::string& name, hid_t link_list);

/// A part of a virtual data set, where the library finds it.
struct VirtualSource {
  Place place{};
  FileId file{};  ///< another file; objects in it are closed before it
  DatasetId dataset{};
  bool is_elsewhere = false;  ///< by HDF5_VDS_PREFIX, or a number of a block in its name: its place is unknown
};
/// Opens part `i` of `dataset`, which has the properties `list`; without a data set if there is none.
[[nodiscard]] VirtualSource open_virtual_source(const Place& place, hid_t dataset, hid_t list, std::size_t i);

/// Throws if the library lacks a filter of the data set, a file of a virtual data set does not exist, or its content is
/// beyond `reach`. `link_list` has that reach.
void require_origin(const Place& place, hid_t file, hid_t dataset, hid_t link_list, Reach& reach);

}  // namespace lockstep::io
