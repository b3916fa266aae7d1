#include "io/hdf5_origin.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::io {
namespace {

namespace fs = std::filesystem;

/// Where an existing link points to: "'/x' of 'other.h5'".
std::string target_of(hid_t file, const std::string& link, const H5L_info_t& info) {
  std::vector<char> value(info.u.val_size + 1);
  if (H5Lget_val(file, link.c_str(), value.data(), info.u.val_size, H5P_DEFAULT) < 0) return "an unknown place";
  if (info.type == H5L_TYPE_SOFT) return fmt::format("'{}'", value.data());
  const char* path = "";
  const char* object = "";
  if (H5Lunpack_elink_val(value.data(), info.u.val_size, nullptr, &path, &object) < 0) return "an unknown place";
  return fmt::format("'{}' of '{}'", object, path);
}

bool leads_somewhere(hid_t file, const std::string& link, hid_t link_list) {
  const hid_t object = H5Oopen(file, link.c_str(), link_list);
  if (object >= 0) H5Oclose(object);
  return object >= 0;
}

void require_filter(const Place& place, hid_t list, unsigned number) {
  std::array<char, 64> name{};
  std::size_t n_values = 0;
  unsigned flags = 0;
  const H5Z_filter_t id = checked(place, "read the filters", [&] {
    return H5Pget_filter2(list, number, &flags, &n_values, nullptr, name.size() - 1, name.data(), nullptr);
  });
  if (H5Zfilter_avail(id) > 0) return;
  core::fail_usage({.what = fmt::format("its content needs filter {} ({}), which is not available", id, name.data()),
                    .where = describe(place),
                    .expected = "no compression, gzip, zstd or lz4, or a plugin in HDF5_PLUGIN_PATH",
                    .fix = "write it again with gzip, or without compression"});
}

/// The library looks in the folder of `file`, then in the current one.
bool is_source_there(const std::string& source, const std::string& file) {
  // "." is the file itself; "%" stands for the number of a block; with a prefix the library looks elsewhere.
  if (source == "." || source.find('%') != std::string::npos || std::getenv("HDF5_VDS_PREFIX") != nullptr) return true;
  std::error_code ignored;
  return fs::exists(fs::path{file}.parent_path() / source, ignored) || fs::exists(source, ignored);
}

/// Whether `path`, as the file `parent` names it, is `parent` itself.
bool is_itself(const std::string& path, const std::string& parent) {
  std::error_code none;
  return path == "." || fs::equivalent(fs::path{parent}.parent_path() / path, parent, none);
}

/// Callback for H5Pset_elink_cb: a negative answer stops a link that leads to another file.
herr_t stay_in_file(const char* parent, const char*, const char* child, const char*, unsigned*, hid_t, void* raw) {
  try {
    if (is_itself(child, parent)) return 0;
    static_cast<Reach*>(raw)->refused = child;
  } catch (const std::exception&) {
    // Out of memory: ends anyway. No exception may pass through the library.
  }
  return -1;
}

[[noreturn]] void refuse_other_file(const Place& place, const std::string& path) {
  core::fail_usage(
      {.what = fmt::format("its content is in another file, '{}'", path),
       .where = describe(place),
       .expected = "content in the file itself: another file may hold data that you do not want to read or pass on",
       .fix = "copy the data set into this file; if you trust it, use `lockstep shard import hdf5` with "
              "--allow-external-files"});
}

void refuse_external_storage(const Place& place, hid_t list) {
  const int n_files = checked(place, "read the layout", [&] { return H5Pget_external_count(list); });
  if (n_files == 0) return;
  std::array<char, 4096> name{};
  checked(place, "read the layout",
          [&] { return H5Pget_external(list, 0, name.size() - 1, name.data(), nullptr, nullptr); });
  refuse_other_file(place, name.data());
}

/// Name of the file (or of the data set in it) that has part `i` of a virtual data set.
template <class Get>
std::string source_name(const Place& place, hid_t list, std::size_t i, Get get) {
  const auto length = checked(place, "read its sources", [&] { return get(list, i, nullptr, 0); });
  std::string name(static_cast<std::size_t>(length), '\0');
  checked(place, "read its sources", [&] { return get(list, i, name.data(), name.size() + 1); });
  return name;
}

void require_sources(const Place& place, hid_t list) {
  std::size_t n_sources = 0;
  checked(place, "read its sources", [&] { return H5Pget_virtual_count(list, &n_sources); });
  for (std::size_t i = 0; i < n_sources; ++i) {
    const std::string source = source_name(place, list, i, H5Pget_virtual_filename);
    if (is_source_there(source, place.path)) continue;
    core::fail_usage({.what = fmt::format("'{}', which holds a part of it, does not exist", source),
                      .where = describe(place),
                      .expected = "all source files of a virtual data set",
                      .fix = "put the file there, or write the data set as a whole"});
  }
}

void require_reach(const Place& place, hid_t file, hid_t dataset, hid_t link_list, Reach& reach, int depth);

/// Sources in the file itself may in turn be elsewhere.
void require_near_sources(const Place& place, hid_t file, hid_t list, hid_t link_list, Reach& reach, int depth) {
  constexpr int deepest = 16;
  std::size_t n_sources = 0;
  checked(place, "read its sources", [&] { return H5Pget_virtual_count(list, &n_sources); });
  for (std::size_t i = 0; i < n_sources; ++i) {
    const std::string path = source_name(place, list, i, H5Pget_virtual_filename);
    const std::string name = source_name(place, list, i, H5Pget_virtual_dsetname);
    if (!is_itself(path, place.path)) refuse_other_file(place, path);
    // "%" stands for the number of a block, so the name alone is not enough.
    if (depth == deepest || name.find('%') != std::string::npos) refuse_other_file(place, name);
    const DatasetId source{H5Dopen2(file, name.c_str(), link_list)};
    refuse_far_link(place, reach);
    if (source) require_reach(place, file, source.get(), link_list, reach, depth + 1);
  }
}

void require_reach(const Place& place, hid_t file, hid_t dataset, hid_t link_list, Reach& reach, int depth) {
  if (reach.has_others) return;
  const ListId list{checked(place, "read the layout", [&] { return H5Dget_create_plist(dataset); })};
  const Silence silence;
  refuse_external_storage(place, list.get());
  if (H5Pget_layout(list.get()) == H5D_VIRTUAL) require_near_sources(place, file, list.get(), link_list, reach, depth);
}

}  // namespace

VirtualSource open_virtual_source(const Place& place, hid_t dataset, hid_t list, std::size_t i) {
  const std::string file = source_name(place, list, i, H5Pget_virtual_filename);
  const std::string name = source_name(place, list, i, H5Pget_virtual_dsetname);
  VirtualSource source{.place = {place.code, place.path, name, -1}};
  source.is_elsewhere = std::getenv("HDF5_VDS_PREFIX") != nullptr || (file + name).find('%') != std::string::npos;
  if (source.is_elsewhere) return source;
  const Silence silence;
  source.file = FileId{H5Iget_file_id(dataset)};
  if (file != ".") {
    const ListId access{H5Fget_access_plist(source.file.get())};
    for (const fs::path& path : {fs::path{place.path}.parent_path() / file, fs::path{file}}) {
      source.file = FileId{H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get())};
      source.place.path = path.string();
      if (source.file) break;
    }
  }
  if (source.file) source.dataset = DatasetId{H5Dopen2(source.file.get(), name.c_str(), H5P_DEFAULT)};
  return source;
}

void limit_links(const Place& place, hid_t link_list, Reach& reach) {
  if (reach.has_others) return;
  checked(place, "set its options", [&] { return H5Pset_elink_cb(link_list, stay_in_file, &reach); });
}

void refuse_far_link(const Place& place, Reach& reach) {
  const std::string path = std::exchange(reach.refused, {});
  if (!path.empty()) refuse_other_file(place, path);
}

void refuse_dead_links(const Place& place, hid_t file, const std::string& name, hid_t link_list) {
  const Silence silence;
  for (std::size_t end = 0; end != std::string::npos;) {
    end = name.find('/', end + 1);
    const std::string link = name.substr(0, end);
    H5L_info_t info;
    if (link == "/") continue;
    if (H5Lget_info(file, link.c_str(), &info, link_list) < 0) return;
    if (leads_somewhere(file, link, link_list)) continue;
    if (info.type == H5L_TYPE_HARD)
      fail_hdf5(place, fmt::format("open {}", link),
                core::SourceLocation::current());  // damaged, or of a newer version
    core::fail_usage(
        {.what = fmt::format("the link {} leads nowhere: it points to {}", link, target_of(file, link, info)),
         .where = describe({.path = place.path}),
         .expected = "links to existing objects",
         .fix = "put the linked file beside this one, or copy the data set into this file"});
  }
}

void require_origin(const Place& place, hid_t file, hid_t dataset, hid_t link_list, Reach& reach) {
  require_reach(place, file, dataset, link_list, reach, 0);
  const ListId list{checked(place, "read the layout", [&] { return H5Dget_create_plist(dataset); })};
  const Silence silence;
  const int n_filters = checked(place, "read the filters", [&] { return H5Pget_nfilters(list.get()); });
  for (int i = 0; i < n_filters; ++i) require_filter(place, list.get(), static_cast<unsigned>(i));
  if (H5Pget_layout(list.get()) == H5D_VIRTUAL) require_sources(place, list.get());
}

}  // namespace lockstep::io
