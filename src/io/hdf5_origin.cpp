#include "io/hdf5_origin.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

namespace lockstep::io {
namespace {

namespace fs = std::filesystem;

/// "'/x' of 'other.h5'": where a link that is there points to.
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
  core::fail_usage({.what = fmt::format("its content went through filter {} ({}), which is not there", id, name.data()),
                    .where = describe(place),
                    .expected = "no compression, gzip, zstd or lz4, or a plugin in HDF5_PLUGIN_PATH",
                    .fix = "write it again with gzip, or without compression"});
}

/// The library looks in the folder of `file`, then in the current one.
bool is_source_there(const std::string& source, const std::string& file) {
  // "." is the file itself, "%" stands for the number of a block, and with a prefix the library looks elsewhere.
  if (source == "." || source.find('%') != std::string::npos || std::getenv("HDF5_VDS_PREFIX") != nullptr) return true;
  std::error_code ignored;
  return fs::exists(fs::path{file}.parent_path() / source, ignored) || fs::exists(source, ignored);
}

void require_sources(const Place& place, hid_t list) {
  std::size_t n_sources = 0;
  checked(place, "read its sources", [&] { return H5Pget_virtual_count(list, &n_sources); });
  for (std::size_t i = 0; i < n_sources; ++i) {
    const auto length =
        checked(place, "read its sources", [&] { return H5Pget_virtual_filename(list, i, nullptr, 0); });
    std::string source(static_cast<std::size_t>(length), '\0');
    checked(place, "read its sources",
            [&] { return H5Pget_virtual_filename(list, i, source.data(), source.size() + 1); });
    if (is_source_there(source, place.path)) continue;
    core::fail_usage({.what = fmt::format("'{}', which has a part of it, is not there", source),
                      .where = describe(place),
                      .expected = "all files of a virtual data set beside its own",
                      .fix = "put the file there, or write the data set as a whole"});
  }
}

}  // namespace

void refuse_dead_links(const Place& place, hid_t file, const std::string& name, hid_t link_list) {
  const Silence silence;
  for (std::size_t end = 0; end != std::string::npos;) {
    end = name.find('/', end + 1);
    const std::string link = name.substr(0, end);
    H5L_info_t info;
    if (link == "/") continue;
    if (H5Lget_info(file, link.c_str(), &info, H5P_DEFAULT) < 0) return;
    if (leads_somewhere(file, link, link_list)) continue;
    if (info.type == H5L_TYPE_HARD)
      fail_hdf5(place, fmt::format("open {}", link),
                core::SourceLocation::current());  // damaged, or of a newer version
    core::fail_usage(
        {.what = fmt::format("the link {} leads nowhere: it points to {}", link, target_of(file, link, info)),
         .where = describe({.path = place.path}),
         .expected = "links to what is there",
         .fix = "put the linked file beside this one, or copy the data set into this file"});
  }
}

void require_origin(const Place& place, hid_t dataset) {
  const ListId list{checked(place, "read the layout", [&] { return H5Dget_create_plist(dataset); })};
  const Silence silence;
  const int n_filters = checked(place, "read the filters", [&] { return H5Pget_nfilters(list.get()); });
  for (int i = 0; i < n_filters; ++i) require_filter(place, list.get(), static_cast<unsigned>(i));
  if (H5Pget_layout(list.get()) == H5D_VIRTUAL) require_sources(place, list.get());
}

}  // namespace lockstep::io
